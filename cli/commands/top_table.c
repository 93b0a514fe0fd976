/* SPDX-License-Identifier: Apache-2.0 */
#include "top_table.h"

#include <stdlib.h>
#include <string.h>

#include "../erlang/term_json.h"
#include "../erlang/term_print.h"
#include "../ground/utf8.h"
#include "../views/grid.h"

/* ---- cells ---- */

enum column { COL_CALLS, COL_TIME, COL_SHARE, COL_PER_CALL, COL_WORDS, COL_WORDS_EACH, COL_NODE, COL_PROCESS, COLUMNS };

static const struct {
    const char *title;
    unsigned width;
    unsigned needs; /* the counter that the column shows */
    int sort;       /* the sort order that the column belongs to, or -1 */
    bool left;
    enum paint_what what;
} columns[COLUMNS] = {
    [COL_CALLS] = {"calls", 10, 0, TOP_CALLS, false, PAINT_KIND},
    [COL_TIME] = {"own time", 9, TOP_COUNT_TIME, TOP_TIME, false, PAINT_DURATION},
    [COL_SHARE] = {"%", 5, TOP_COUNT_TIME, -1, false, PAINT_DURATION},
    [COL_PER_CALL] = {"per call", 8, TOP_COUNT_TIME, -1, false, PAINT_DURATION},
    [COL_WORDS] = {"words", 11, TOP_COUNT_MEMORY, TOP_MEMORY, false, PAINT_NAME},
    [COL_WORDS_EACH] = {"per call", 8, TOP_COUNT_MEMORY, -1, false, PAINT_NAME},
    [COL_NODE] = {"node", 20, 0, -1, true, PAINT_NODE},
    [COL_PROCESS] = {"process", 26, 0, -1, true, PAINT_PID},
};

/* The text of a process can be long, so its column adapts to the terminal. */
static unsigned width_of(const struct top_table *t, enum column c)
{
    if (c != COL_PROCESS || !t->columns)
        return columns[c].width;
    return t->columns < 80 ? 20 : t->columns < 110 ? columns[c].width : 36;
}

/* Columns that are omitted if the terminal is narrow, in this order. */
static const enum column spare[] = {COL_WORDS_EACH, COL_PER_CALL, COL_SHARE, COL_NODE, COL_WORDS, COL_PROCESS};

#define ROOM 24 /* for the function, at least */
#define ROOM_BY_PROCESS 16

static int64_t total_us(const struct top_table *t)
{
    int64_t us = 0;

    for (size_t i = 0; i < t->count; i++)
        us += t->nodes[i].us;
    return us;
}

static void ratio(struct buf *to, int64_t sum, int64_t calls)
{
    if (calls)
        buf_printf(to, sum % calls && sum / calls < 1000 ? "%.1f" : "%.0f", (double)sum / (double)calls);
    else
        buf_char(to, '-');
}

static void value(const struct top_table *t, const struct top_row *x, enum column c, int64_t all_us, struct buf *to)
{
    switch (c) {
    case COL_CALLS:
        print_i64(to, x->calls);
        break;
    case COL_TIME:
        print_duration(to, x->us * 1000);
        break;
    case COL_SHARE:
        buf_printf(to, "%.1f", all_us ? 100.0 * (double)x->us / (double)all_us : 0.0);
        break;
    case COL_PER_CALL:
        if (x->calls)
            print_duration(to, x->us * 1000 / x->calls);
        else
            buf_char(to, '-');
        break;
    case COL_WORDS:
        print_i64(to, x->words);
        break;
    case COL_WORDS_EACH:
        ratio(to, x->words, x->calls);
        break;
    case COL_NODE:
        buf_puts(to, t->names[x->node]);
        break;
    case COL_PROCESS:
        buf_puts(to, x->pid);
        if (x->name[0])
            buf_printf(to, "(%s)", x->name);
        else if (!x->alive)
            buf_puts(to, "(exited)");
        break;
    case COLUMNS:
        break;
    }
}

/* Appends a cell. Cuts it to the column's width if the table has a width. */
static void cell(const struct top_table *t, struct buf *to, enum column c, struct str text, enum paint_what what)
{
    struct buf b = {0};

    if (t->columns)
        grid_cut(&b, text, width_of(t, c));
    else
        buf_str(&b, text);
    size_t width = utf8_width(b.data, b.len), pad = width < width_of(t, c) ? width_of(t, c) - width : 0;
    if (!columns[c].left)
        buf_printf(to, "%*s", (int)pad, "");
    paint_str(&t->paint, to, what, buf_view(&b));
    buf_printf(to, "%*s", (columns[c].left ? (int)pad : 0) + 2, "");
    buf_release(&b);
}

/* ---- text ---- */

static unsigned chosen(const struct top_table *t)
{
    unsigned counters = 0, set = 0, width = t->by_process ? ROOM_BY_PROCESS : ROOM;

    for (size_t i = 0; i < t->count; i++)
        counters |= t->nodes[i].counters;
    for (unsigned c = 0; c < COLUMNS; c++) {
        bool wanted = !columns[c].needs || (counters & columns[c].needs);
        if ((c == COL_NODE && t->count < 2) || (c == COL_PROCESS && !t->by_process) || !wanted)
            continue;
        set |= 1u << c;
        width += width_of(t, (enum column)c) + 2;
    }
    for (size_t i = 0; t->columns && width > t->columns && i < ARRAY_LEN(spare); i++)
        if (set & 1u << spare[i]) {
            set &= ~(1u << spare[i]);
            width -= width_of(t, spare[i]) + 2;
        }
    return set;
}

static unsigned room(const struct top_table *t, unsigned set)
{
    unsigned used = 0;

    for (unsigned c = 0; c < COLUMNS; c++)
        if (set & 1u << c)
            used += width_of(t, (enum column)c) + 2;
    return t->columns > used ? t->columns - used : 0;
}

static void top_table_head(const struct top_table *t, unsigned set, struct buf *to)
{
    for (unsigned c = 0; c < COLUMNS; c++)
        if (set & 1u << c)
            cell(t, to, (enum column)c, (struct str){columns[c].title, strlen(columns[c].title)},
                 columns[c].sort == (int)t->sort ? PAINT_FUN : PAINT_TIME);
    paint_str(&t->paint, to, t->sort == TOP_NAME ? PAINT_FUN : PAINT_TIME, STR("function"));
}

static void line(const struct top_table *t, const struct top_row *x, unsigned set, int64_t all_us, struct buf *to)
{
    struct buf b = {0};

    for (unsigned c = 0; c < COLUMNS; c++) {
        if (!(set & 1u << c))
            continue;
        buf_clear(&b);
        value(t, x, (enum column)c, all_us, &b);
        cell(t, to, (enum column)c, buf_view(&b), columns[c].what);
    }
    buf_clear(&b);
    buf_str(&b, fun_text(x->fun));
    buf_printf(&b, "/%d", x->arity);
    paint_begin(&t->paint, to, PAINT_FUN);
    if (t->columns)
        grid_cut(to, buf_view(&b), room(t, set));
    else
        buf_str(to, buf_view(&b));
    paint_end(&t->paint, to);
    buf_release(&b);
}

/* Appends the sums of everything that is not in the rows, so that the reader can add up the total. */
static void rest(const struct top_table *t, size_t shown, const struct top_row *sum, struct buf *to)
{
    int64_t more = 0, calls = 0, us = 0, words = 0;
    unsigned counters = 0;
    struct buf b = {0};

    for (size_t i = 0; i < t->count; i++) {
        more += t->nodes[i].more;
        calls += t->nodes[i].calls;
        us += t->nodes[i].us;
        words += t->nodes[i].words;
        counters |= t->nodes[i].counters;
    }
    if (calls <= sum->calls && more <= (int64_t)shown)
        return;
    if (more > (int64_t)shown)
        buf_printf(&b, "%lld more: ", (long long)(more - (int64_t)shown));
    else
        buf_puts(&b, "not in these rows: ");
    buf_printf(&b, "%lld call%s", (long long)MAX(calls - sum->calls, 0), PLURAL(calls - sum->calls));
    if (counters & TOP_COUNT_TIME) {
        buf_puts(&b, ", ");
        print_duration(&b, MAX(us - sum->us, 0) * 1000);
    }
    if (counters & TOP_COUNT_MEMORY)
        buf_printf(&b, ", %lld words", (long long)MAX(words - sum->words, 0));
    paint_begin(&t->paint, to, PAINT_TIME);
    if (t->columns)
        grid_cut(to, buf_view(&b), t->columns);
    else
        buf_str(to, buf_view(&b));
    paint_end(&t->paint, to);
    buf_release(&b);
}

void top_table_text(const struct top_table *t, const char *end, struct buf *to)
{
    size_t count;
    const struct top_row **rows = top_sorted(t->nodes, t->count, t->sort, &count);
    int64_t all_us = total_us(t);
    unsigned set = chosen(t);
    struct top_row sum = {0};

    top_table_head(t, set, to);
    buf_puts(to, end);
    if (t->most && count > t->most)
        count = t->most;
    for (size_t i = 0; i < count; i++) {
        line(t, rows[i], set, all_us, to);
        buf_puts(to, end);
        sum.calls += rows[i]->calls;
        sum.us += rows[i]->us;
        sum.words += rows[i]->words;
    }
    size_t from = to->len;
    rest(t, count, &sum, to);
    if (to->len > from)
        buf_puts(to, end);
    free(rows);
}

void top_table_title(const struct top_table *t, struct buf *to)
{
    int64_t functions = 0, calls = 0, elapsed = 0, begun = 0, anew = 0;
    unsigned counters = 0;

    for (size_t i = 0; i < t->count; i++) {
        const struct top_node *n = &t->nodes[i];
        functions += n->functions;
        calls += n->calls;
        elapsed = MAX(elapsed, n->elapsed_us);
        begun += n->begun;
        anew += n->anew;
        counters |= n->counters;
    }
    buf_puts(to, t->count > 1 ? "" : t->names[0]);
    if (t->count > 1)
        buf_printf(to, "%zu nodes", t->count);
    buf_printf(to, " · %.1fs · %lld function%s · %lld call%s", (double)elapsed / 1e6, (long long)functions,
               PLURAL(functions), (long long)calls, PLURAL(calls));
    if (counters & TOP_COUNT_TIME) {
        buf_puts(to, " · ");
        print_duration(to, total_us(t) * 1000);
        buf_puts(to, " own time");
    }
    if (begun)
        buf_printf(to, " · restarted %lld time%s", (long long)begun, PLURAL(begun));
    if (anew)
        buf_printf(to, " · code reloaded %lld time%s", (long long)anew, PLURAL(anew));
}

/* ---- JSON ---- */

static void json_sums(struct buf *to, unsigned counters, int64_t calls, int64_t us, int64_t words)
{
    json_key(to, "calls"), json_int(to, calls);
    if (counters & TOP_COUNT_TIME)
        json_key(to, "time_us"), json_int(to, us);
    if (counters & TOP_COUNT_MEMORY)
        json_key(to, "words"), json_int(to, words);
}

static void json_row(const struct top_table *t, struct buf *to, const struct top_row *x)
{
    const struct top_node *n = &t->nodes[x->node];

    json_begin_record(to, "count");
    json_key(to, "node"), json_text(to, t->names[x->node]);
    json_ready(to, x->fun->json);
    json_key(to, "a"), json_int(to, x->arity);
    if (x->pid[0])
        json_key(to, "pid"), json_text(to, x->pid);
    if (x->pid[0] && x->name[0])
        json_key(to, "name"), json_text(to, x->name);
    if (x->pid[0])
        json_key(to, "alive"), json_bool(to, x->alive);
    json_sums(to, n->counters, x->calls, x->us, x->words);
    if (x->all >= 0)
        json_key(to, "calls_all"), json_int(to, x->all);
    json_key(to, "elapsed_us"), json_int(to, n->elapsed_us);
    json_end_record(to);
}

static void json_node(struct buf *to, const struct top_node *n, const char *name)
{
    json_begin_record(to, "counted");
    json_key(to, "node"), json_text(to, name);
    json_key(to, "functions"), json_int(to, n->functions);
    json_key(to, "rows"), json_int(to, n->more);
    json_sums(to, n->counters, n->calls, n->us, n->words);
    json_key(to, "begun_anew"), json_int(to, n->begun);
    json_key(to, "loaded_anew"), json_int(to, n->anew);
    json_key(to, "elapsed_us"), json_int(to, n->elapsed_us);
    json_end_record(to);
}

void top_table_json(const struct top_table *t, struct buf *to)
{
    size_t count;
    const struct top_row **rows = top_sorted(t->nodes, t->count, t->sort, &count);

    for (size_t i = 0; i < count && (!t->most || i < t->most); i++)
        json_row(t, to, rows[i]);
    for (unsigned i = 0; i < t->count; i++)
        json_node(to, &t->nodes[i], t->names[i]);
    free(rows);
}

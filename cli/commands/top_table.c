/* SPDX-License-Identifier: Apache-2.0 */
#include "top_table.h"

#include <stdlib.h>
#include <string.h>

#include "../erlang/term_json.h"
#include "../erlang/term_print.h"
#include "../views/grid.h"

/* ---- cells ---- */

enum column {
    COL_CALLS,
    COL_TIME,
    COL_SHARE,
    COL_PER_CALL,
    COL_WORDS,
    COL_WORDS_EACH,
    COL_NODE,
    COL_PROCESS,
    COL_FUNCTION,
    COLUMNS
};

static const struct grid_column columns[COLUMNS] = {
    [COL_CALLS] = {.title = "calls", .number = true, .least = 10, .paint = PAINT_KIND},
    [COL_TIME] = {.title = "own time", .number = true, .least = 9, .rank = 7, .paint = PAINT_DURATION},
    [COL_SHARE] = {.title = "%", .number = true, .least = 5, .rank = 3, .paint = PAINT_DURATION},
    [COL_PER_CALL] = {.title = "per call", .number = true, .least = 8, .rank = 2, .paint = PAINT_DURATION},
    [COL_WORDS] = {.title = "words", .number = true, .least = 11, .rank = 5, .paint = PAINT_NAME},
    [COL_WORDS_EACH] = {.title = "per call", .number = true, .least = 8, .rank = 1, .paint = PAINT_NAME},
    [COL_NODE] = {.title = "node", .rank = 4, .paint = PAINT_NODE},
    [COL_PROCESS] = {.title = "process", .least = 20, .rank = 6, .paint = PAINT_PID},
    [COL_FUNCTION] = {.title = "function", .least = 24, .keep = 24, .paint = PAINT_FUN},
};

static const enum column sort_columns[TOP_SORTS] =
    {[TOP_CALLS] = COL_CALLS, [TOP_TIME] = COL_TIME, [TOP_MEMORY] = COL_WORDS, [TOP_NAME] = COL_FUNCTION};

struct top_sorted_table {
    const struct top_table *table;
    const struct top_row **rows;
    int64_t all_us;
};

static int64_t total_us(const struct top_table *t)
{
    int64_t us = 0;

    for (size_t i = 0; i < t->count; i++)
        us += t->nodes[i].us;
    return us;
}

static unsigned all_counters(const struct top_table *t)
{
    unsigned counters = 0;

    for (size_t i = 0; i < t->count; i++)
        counters |= t->nodes[i].counters;
    return counters;
}

static void put_process(const struct top_row *x, struct buf *to)
{
    buf_puts(to, x->pid);
    if (x->name[0])
        buf_printf(to, "(%s)", x->name);
    else if (!x->alive)
        buf_puts(to, "(exited)");
}

static void top_put_cell(const void *data, size_t row, size_t column, struct grid_cell *cell)
{
    const struct top_sorted_table *s = data;
    const struct top_row *x = s->rows[row];
    struct buf *to = &cell->text;

    switch ((enum column)column) {
    case COL_CALLS:
        print_i64(to, x->calls);
        break;
    case COL_TIME:
        print_duration(to, x->us * 1000);
        break;
    case COL_SHARE:
        buf_printf(to, "%.1f", s->all_us ? 100.0 * (double)x->us / (double)s->all_us : 0.0);
        break;
    case COL_PER_CALL:
        if (x->calls)
            print_duration(to, x->us * 1000 / x->calls);
        break;
    case COL_WORDS:
        print_i64(to, x->words);
        break;
    case COL_WORDS_EACH:
        if (x->calls)
            buf_printf(to, x->words % x->calls && x->words / x->calls < 1000 ? "%.1f" : "%.0f",
                       (double)x->words / (double)x->calls);
        break;
    case COL_NODE:
        buf_puts(to, s->table->names[x->node]);
        break;
    case COL_PROCESS:
        put_process(x, to);
        break;
    case COL_FUNCTION:
        buf_str(to, fun_text(x->fun));
        buf_printf(to, "/%d", x->arity);
        break;
    case COLUMNS:
        break;
    }
}

/* ---- text ---- */

/* Appends a line with the sums of everything that is not in the rows, so that the reader can add up the total. */
static void top_put_rest(const struct top_table *t, const struct top_row **rows, size_t shown, const char *end,
                         struct buf *to)
{
    int64_t more = 0, calls = 0, us = 0, words = 0;
    unsigned counters = all_counters(t);
    struct buf b = {0};

    for (size_t i = 0; i < t->count; i++) {
        more += t->nodes[i].more;
        calls += t->nodes[i].calls;
        us += t->nodes[i].us;
        words += t->nodes[i].words;
    }
    more -= (int64_t)shown;
    for (size_t i = 0; i < shown; i++) {
        calls -= rows[i]->calls;
        us -= rows[i]->us;
        words -= rows[i]->words;
    }
    if (calls <= 0 && more <= 0)
        return;
    if (more > 0)
        buf_printf(&b, "%lld more: ", (long long)more);
    else
        buf_puts(&b, "not in these rows: ");
    buf_printf(&b, "%lld call%s", (long long)MAX(calls, 0), PLURAL(calls));
    if (counters & TOP_COUNT_TIME) {
        buf_puts(&b, ", ");
        print_duration(&b, MAX(us, 0) * 1000);
    }
    if (counters & TOP_COUNT_MEMORY)
        buf_printf(&b, ", %lld words", (long long)MAX(words, 0));
    paint_begin(&t->paint, to, PAINT_TIME);
    grid_cut(to, buf_view(&b), t->columns ? t->columns : SIZE_MAX);
    paint_end(&t->paint, to);
    buf_puts(to, end);
    buf_release(&b);
}

void top_table_text(const struct top_table *t, const char *end, struct buf *to)
{
    struct top_sorted_table s = {.table = t, .all_us = total_us(t)};
    struct grid_column own[COLUMNS];
    struct grid g = {own, COLUMNS, top_put_cell, &s, .width = t->columns, .paint = t->paint};
    unsigned counters = all_counters(t);

    s.rows = top_sorted(t->nodes, t->count, t->sort, &g.nrows);
    g.nrows = t->most ? MIN(g.nrows, t->most) : g.nrows;
    memcpy(own, columns, sizeof(own));
    own[COL_TIME].hidden = own[COL_SHARE].hidden = own[COL_PER_CALL].hidden = !(counters & TOP_COUNT_TIME);
    own[COL_WORDS].hidden = own[COL_WORDS_EACH].hidden = !(counters & TOP_COUNT_MEMORY);
    own[COL_NODE].hidden = t->count < 2;
    own[COL_PROCESS].hidden = !t->by_process;
    own[sort_columns[t->sort]].sorted = true;
    grid_text(&g, end, to);
    top_put_rest(t, s.rows, g.nrows, end, to);
    free(s.rows);
}

void top_table_title(const struct top_table *t, struct buf *to)
{
    int64_t functions = 0, calls = 0, elapsed = 0, begun = 0, anew = 0;

    for (size_t i = 0; i < t->count; i++) {
        const struct top_node *n = &t->nodes[i];
        functions += n->functions;
        calls += n->calls;
        elapsed = MAX(elapsed, n->elapsed_us);
        begun += n->begun;
        anew += n->anew;
    }
    buf_puts(to, t->count > 1 ? "" : t->names[0]);
    if (t->count > 1)
        buf_printf(to, "%zu nodes", t->count);
    buf_printf(to, " · %.1fs · %lld function%s · %lld call%s", (double)elapsed / 1e6, (long long)functions,
               PLURAL(functions), (long long)calls, PLURAL(calls));
    if (all_counters(t) & TOP_COUNT_TIME) {
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

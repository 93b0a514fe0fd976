/* SPDX-License-Identifier: Apache-2.0 */
#include "top_table.h"

#include <stdlib.h>
#include <string.h>

#include "../erlang/term_json.h"
#include "../erlang/term_print.h"
#include "../ground/command_line.h"

/* ---- cells ---- */

enum column {
    COL_AT,
    COL_M,
    COL_F,
    COL_A,
    COL_PID,
    COL_NAME,
    COL_ALIVE,
    COL_CALLS,
    COL_TIME,
    COL_SHARE,
    COL_PER_CALL,
    COL_WORDS,
    COL_WORDS_EACH,
    COL_NODE,
    COL_PROCESS,
    COL_FUNCTION,
    COL_ALL,
    COL_ELAPSED,
    COLUMNS
};

static const struct grid_column columns[COLUMNS] = {
    [COL_AT] = {.key = "node"},
    [COL_M] = {.key = "m"},
    [COL_F] = {.key = "f"},
    [COL_A] = {.key = "a", .number = true},
    [COL_PID] = {.key = "pid"},
    [COL_NAME] = {.key = "name"},
    [COL_ALIVE] = {.key = "alive", .number = true},
    [COL_CALLS] = {.title = "calls", .key = "calls", .number = true, .least = 10, .paint = PAINT_KIND},
    [COL_TIME] =
        {.title = "own time", .key = "time_us", .number = true, .least = 9, .rank = 7, .paint = PAINT_DURATION},
    [COL_SHARE] = {.title = "%", .also = "share", .number = true, .least = 5, .rank = 3, .paint = PAINT_DURATION},
    [COL_PER_CALL] =
        {.title = "per call", .also = "time_each", .number = true, .least = 8, .rank = 2, .paint = PAINT_DURATION},
    [COL_WORDS] = {.title = "words",
                   .key = "words",
                   .also = "memory",
                   .number = true,
                   .least = 11,
                   .rank = 5,
                   .paint = PAINT_NAME},
    [COL_WORDS_EACH] =
        {.title = "per call", .also = "words_each", .number = true, .least = 8, .rank = 1, .paint = PAINT_NAME},
    [COL_NODE] = {.title = "node", .rank = 4, .paint = PAINT_NODE},
    [COL_PROCESS] = {.title = "process", .least = 20, .rank = 6, .paint = PAINT_PID},
    [COL_FUNCTION] = {.title = "function", .also = "name", .least = 24, .keep = 24, .paint = PAINT_FUN},
    [COL_ALL] = {.key = "calls_all", .number = true},
    [COL_ELAPSED] = {.key = "elapsed_us", .number = true},
};

const struct grid_table top_columns = GRID_TABLE(columns);

/*
 * How the nodes choose their rows if the table is sorted by `column`. For other columns they choose by time, or by
 * calls if they do not count time. `same`: the first rows that they choose are then the first rows of the table.
 */
static const struct {
    enum column column;
    enum top_kept kept;
    bool same;
} kept_for[] = {
    {COL_CALLS, TOP_CALLS, true},        {COL_TIME, TOP_TIME, true},     {COL_WORDS, TOP_MEMORY, true},
    {COL_WORDS_EACH, TOP_MEMORY, false}, {COL_FUNCTION, TOP_NAME, true}, {COL_M, TOP_NAME, true},
};

/* The state of a table while it is printed. */
struct top_grid {
    const struct top_table *table;
    const struct top_row **rows;
    int64_t all_us;
    struct grid_column columns[COLUMNS];
    struct grid grid;
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

static void top_put_process(const struct top_row *x, struct buf *to)
{
    buf_puts(to, x->pid);
    if (x->name[0])
        buf_printf(to, "(%s)", x->name);
    else if (!x->alive)
        buf_puts(to, "(exited)");
}

static void top_put_cell(const void *data, size_t row, size_t column, struct grid_cell *cell)
{
    const struct top_grid *s = data;
    const struct top_row *x = s->rows[row];
    const struct top_node *n = &s->table->nodes[x->node];
    struct buf *to = &cell->text;

    switch ((enum column)column) {
    case COL_M:
        grid_put_name(cell, x->fun->module);
        break;
    case COL_F:
        grid_put_name(cell, x->fun->name);
        break;
    case COL_A:
        print_i64(to, x->arity);
        break;
    case COL_PID:
        buf_puts(to, x->pid);
        break;
    case COL_NAME:
        buf_puts(to, x->name);
        break;
    case COL_ALIVE:
        buf_puts(to, x->alive ? "true" : "false");
        break;
    case COL_ALL:
        if (x->all >= 0)
            print_i64(to, x->all);
        break;
    case COL_ELAPSED:
        print_i64(to, n->elapsed_us);
        break;
    case COL_CALLS:
        print_i64(to, x->calls);
        break;
    case COL_TIME:
        if (cell->as == GRID_TEXT)
            print_duration(to, x->us * 1000);
        else if (n->counters & TOP_COUNT_TIME)
            print_i64(to, x->us);
        break;
    case COL_SHARE:
        buf_printf(to, "%.1f", s->all_us ? 100.0 * (double)x->us / (double)s->all_us : 0.0);
        break;
    case COL_PER_CALL:
        if (x->calls && cell->as == GRID_TEXT)
            print_duration(to, x->us * 1000 / x->calls);
        else if (x->calls && n->counters & TOP_COUNT_TIME)
            print_i64(to, x->us * 1000 / x->calls);
        break;
    case COL_WORDS:
        if (n->counters & TOP_COUNT_MEMORY)
            print_i64(to, x->words);
        break;
    case COL_WORDS_EACH:
        if (x->calls && (cell->as == GRID_TEXT || n->counters & TOP_COUNT_MEMORY))
            buf_printf(to, x->words % x->calls && x->words / x->calls < 1000 ? "%.1f" : "%.0f",
                       (double)x->words / (double)x->calls);
        break;
    case COL_AT:
    case COL_NODE:
        buf_puts(to, s->table->names[x->node]);
        break;
    case COL_PROCESS:
        top_put_process(x, to);
        break;
    case COL_FUNCTION:
        buf_str(to, cell->as == GRID_ORDER ? x->fun->erl : fun_text(x->fun));
        buf_printf(to, cell->as == GRID_ORDER ? " %3d" : "/%d", x->arity);
        break;
    case COLUMNS:
        break;
    }
}

/* ---- text ---- */

/* Appends a line with the sums of the rows that are left out, so that the lines add up to the total. */
static void top_put_rest(const struct top_grid *x, struct buf *to)
{
    const struct top_table *t = x->table;
    const size_t shown = grid_end(&x->grid) - x->grid.first;
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
    for (size_t i = x->grid.first; i < grid_end(&x->grid); i++) {
        const struct top_row *row = x->rows[grid_row(&x->grid, i)];
        calls -= row->calls;
        us -= row->us;
        words -= row->words;
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
    buf_char(to, '\n');
    buf_release(&b);
}

static void top_put_id(const void *data, size_t row, struct buf *to)
{
    const struct top_row *x = ((const struct top_grid *)data)->rows[row];

    buf_printf(to, "%u %s ", x->node, x->pid);
    buf_str(to, x->fun->erl);
    buf_printf(to, "/%d", x->arity);
}

static void top_grid_init(struct top_grid *x, const struct top_table *t)
{
    const unsigned counters = all_counters(t);
    struct grid_column *c = x->columns;

    x->table = t;
    x->all_us = total_us(t);
    x->grid = (struct grid){c, COLUMNS, top_put_cell, x, .width = t->columns, .paint = t->paint, .name = top_put_id};
    x->rows = top_rows(t->nodes, t->count, &x->grid.nrows);
    memcpy(c, columns, sizeof(columns));
    c[COL_TIME].hidden = c[COL_SHARE].hidden = c[COL_PER_CALL].hidden = !(counters & TOP_COUNT_TIME);
    c[COL_WORDS].hidden = c[COL_WORDS_EACH].hidden = !(counters & TOP_COUNT_MEMORY);
    c[COL_NODE].hidden = t->count < 2;
    c[COL_ALL].hidden = t->by_process;
    c[COL_PID].hidden = c[COL_NAME].hidden = c[COL_ALIVE].hidden = c[COL_PROCESS].hidden = !t->by_process;
    grid_order(&x->grid, &t->sort);
    grid_show(&x->grid, t->window);
}

static void top_grid_release(struct top_grid *x)
{
    grid_release(&x->grid);
    free(x->rows);
}

bool top_table_kept(const struct top_table *t, unsigned counters, enum top_kept *ret)
{
    struct top_grid x;
    bool same = false;

    *ret = counters & TOP_COUNT_TIME ? TOP_TIME : TOP_CALLS;
    top_grid_init(&x, t);
    for (size_t i = 0; i < ARRAY_LEN(kept_for); i++)
        if (x.grid.sorted == kept_for[i].column + 1u) {
            *ret = kept_for[i].kept == TOP_TIME ? *ret : kept_for[i].kept;
            same = kept_for[i].same && x.grid.descends == (*ret != TOP_NAME);
        }
    top_grid_release(&x);
    return same;
}

void top_table_text(const struct top_table *t, struct buf *to)
{
    struct top_grid x;

    top_grid_init(&x, t);
    grid_text(&x.grid, to);
    top_put_rest(&x, to);
    top_grid_release(&x);
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

/* ---- one row ---- */

/* Begins a command about the process of the row, or about all processes. */
static void top_begin_command(const struct top_table *t, const struct top_row *x, struct command_line *c)
{
    command_line_clear(c);
    command_line_begin(c, NULL, t->ssh, t->named ? t->names[x->node] : NULL);
    if (!x->pid[0])
        return;
    command_line_add(c, " -P");
    command_line_word(c, x->pid);
}

/* Ends the command with an expression about the function of the row, and prints it in a line. */
static void top_end_command(const struct top_table *t, const struct top_row *x, const char *after,
                            struct command_line *c, struct buf *to)
{
    struct buf expr = {0};

    buf_str(&expr, fun_text(x->fun));
    buf_printf(&expr, "/%d %s", x->arity, after);
    command_line_word(c, buf_cstr(&expr));
    buf_release(&expr);
    paint_begin(&t->paint, to, PAINT_COMMAND);
    buf_puts(to, command_line_text(c));
    paint_end(&t->paint, to);
    buf_char(to, '\n');
}

static void top_put_commands(const struct top_table *t, const struct top_row *x, struct buf *to)
{
    struct command_line c = {0};

    buf_char(to, '\n');
    top_begin_command(t, x, &c);
    command_line_add(&c, " -l 10");
    top_end_command(t, x, "-> return", &c, to);
    top_begin_command(t, x, &c);
    command_line_add(&c, " --for 10s");
    top_end_command(t, x, "by caller: count", &c, to);
    command_line_release(&c);
}

bool top_table_details(const struct top_table *t, struct buf *to)
{
    struct top_grid x;

    top_grid_init(&x, t);
    const bool found = x.grid.marked > 0;
    if (found) {
        grid_row_text(&x.grid, x.grid.marked - 1, to);
        top_put_commands(t, x.rows[grid_row(&x.grid, x.grid.marked - 1)], to);
    }
    top_grid_release(&x);
    return found;
}

/* ---- for programs ---- */

static void json_node(struct buf *to, const struct top_node *n, const char *name)
{
    json_begin_record(to, "counted");
    json_put_text(to, "node", name);
    json_put_int(to, "functions", n->functions);
    json_put_int(to, "rows", n->more);
    json_put_int(to, "calls", n->calls);
    if (n->counters & TOP_COUNT_TIME)
        json_put_int(to, "time_us", n->us);
    if (n->counters & TOP_COUNT_MEMORY)
        json_put_int(to, "words", n->words);
    json_put_int(to, "begun_anew", n->begun);
    json_put_int(to, "loaded_anew", n->anew);
    json_put_int(to, "elapsed_us", n->elapsed_us);
    json_end_record(to);
}

void top_table_data(const struct top_table *t, enum grid_as as, struct buf *to)
{
    struct top_grid x;

    top_grid_init(&x, t);
    grid_data(&x.grid, as, "count", to);
    for (unsigned i = 0; i < t->count && as == GRID_JSON; i++)
        if (t->names[i]) /* NULL: the node was not reached, or was left out */
            json_node(to, &t->nodes[i], t->names[i]);
    top_grid_release(&x);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The summary view (-c): a table of functions with counts and durations. */
#include <string.h>

#include "../erlang/term_print.h"
#include "../fold/stats.h"
#include "grid.h"
#include "key_text.h"
#include "missing.h"

struct summary {
    struct sink sink;
    struct stats stats;
};

static void event_summary(struct sink *sink, const struct event *e)
{
    struct summary *s = (struct summary *)sink;

    s->stats.by_node = sink->look.nodes;
    if (event_is_traced(e) || e->tally)
        stats_event(&s->stats, e);
}

enum column {
    COL_CALLS,
    COL_ERRORS,
    COL_UNTIMED,
    COL_TOTAL,
    COL_MEAN,
    COL_P50,
    COL_P99,
    COL_MAX,
    COL_FUNCTION,
    COLUMNS
};

static const struct grid_column columns[COLUMNS] = {
    [COL_CALLS] = {.title = "calls", .number = true},
    [COL_ERRORS] = {.title = "errors", .number = true},
    [COL_UNTIMED] = {.title = "untimed", .number = true},
    [COL_TOTAL] = {.title = "total", .number = true},
    [COL_MEAN] = {.title = "mean", .number = true, .rank = 2},
    [COL_P50] = {.title = "p50", .number = true, .rank = 1},
    [COL_P99] = {.title = "p99", .number = true, .rank = 4},
    [COL_MAX] = {.title = "max", .number = true, .rank = 3},
    [COL_FUNCTION] = {.title = "function", .keep = GRID_WHOLE, .paint = PAINT_FUN},
};

static const struct grid_table summary_table = GRID_TABLE(columns);

static void summary_put_cell(const void *data, size_t row, size_t column, struct grid_cell *cell)
{
    const struct stat *t = &((const struct summary *)data)->stats.items[row];
    struct buf *to = &cell->text;

    if (column == COL_FUNCTION) {
        stat_name(t, to);
    } else if (column <= COL_UNTIMED) {
        if (t->estimated && column != COL_ERRORS && cell->as == GRID_TEXT)
            buf_char(to, '~');
        print_u64(to, column == COL_CALLS    ? stat_calls(t)
                      : column == COL_ERRORS ? t->errors
                                             : stat_calls(t) - MIN(t->timed, stat_calls(t)));
    } else if (t->timed) {
        const uint64_t ns = column == COL_TOTAL  ? t->total_ns
                            : column == COL_MEAN ? t->total_ns / t->timed
                            : column == COL_MAX  ? t->max_ns
                                                 : stat_percentile(t, column == COL_P50 ? 50 : 99);
        if (cell->as == GRID_TEXT)
            print_duration(to, (int64_t)ns);
        else
            print_u64(to, ns);
    }
}

/* Returns true if a duration covers only a part of the counted calls of a function. */
static bool partly_timed(const struct summary *s)
{
    for (size_t i = 0; i < s->stats.n; i++)
        if ((s->stats.items[i].timed || s->stats.items[i].counted) &&
            s->stats.items[i].timed < stat_calls(&s->stats.items[i]))
            return true;
    return false;
}

/* Returns true if a budget has left calls without an event, so that their results are unknown. */
static bool partly_traced(const struct summary *s)
{
    for (size_t i = 0; i < s->stats.n; i++)
        if (s->stats.items[i].counted > s->stats.items[i].events)
            return true;
    return false;
}

static void end_summary(struct sink *sink, const struct totals *totals)
{
    struct summary *s = (struct summary *)sink;
    struct buf *to = sink->out;
    struct grid_column own[COLUMNS];
    struct grid g =
        {own, COLUMNS, summary_put_cell, s, s->stats.n, .width = sink->look.width, .paint.on = sink->look.colour};

    stats_sort(&s->stats);
    memcpy(own, columns, sizeof(own));
    own[COL_UNTIMED].hidden = !partly_timed(s);
    if (sink->look.nodes)
        own[COL_FUNCTION].title = "node function";
    grid_order(&g, &sink->look.sort);
    grid_text(&g, to);
    grid_release(&g);
    for (size_t i = 0; i < s->stats.n; i++)
        if (s->stats.items[i].estimated) {
            buf_puts(to, "~: estimated, because counting all calls would take more than --overhead allows\n");
            break;
        }
    if (partly_traced(s))
        buf_puts(to,
                 "untimed: calls that were only counted, because of --overhead; their times and errors are unknown\n");
    missing_events(to, totals, "");
}

static void release_summary(struct sink *sink)
{
    stats_release(&((struct summary *)sink)->stats);
}

const struct sink_type sink_summary = {
    .name = "summary",
    .about = "calls, errors, total, mean, p50, p99, max of each function",
    .without_results = "has no durations",
    .size = sizeof(struct summary),
    .flags = SINK_FIGURES | SINK_AGAIN | SINK_FOLDS | SINK_SORTS,
    .table = &summary_table,
    .event = event_summary,
    .end = end_summary,
    .release = release_summary,
};

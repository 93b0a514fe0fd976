/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table view: a row for each key of the events that `by` counts, and histograms below. The pipeline counts
 * (pipeline/grouping.h); this view only prints.
 */
#include <stdlib.h>

#include "bars.h"
#include "grid_window.h"
#include "group_grid.h"
#include "missing.h"

static bool has_nodes(const struct groups *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->items[i].key.node)
            return true;
    return false;
}

/* ---- histograms ---- */

/* The rows of a histogram; `duration`: their lower bounds are durations. */
struct floors {
    struct group_rows rows;
    bool duration;
};

/*
 * Prints the lower bound of a row. The bounds are … -4 -2 -1 0 1 2 4 … for integers, … -0.5 -0.25 0 0.25 0.5 … for
 * fractions, and 1ns 2ns 4ns … for durations.
 */
static void put_floor(struct buf *to, int number, const void *data)
{
    const struct floors *f = data;
    struct group_number n;
    const bool open = !group_row_from(&f->rows, number, &n);

    if (open)
        group_row_from(&f->rows, number + 1, &n);
    buf_puts(to, open ? "< " : "");
    group_put_short(to, n, f->duration);
}

static void put_bars(const struct group_grid *x, const struct group_sums *s, bool duration, struct buf *to)
{
    const struct bars bars = {&x->grid.paint, x->grid.width};
    struct floors floors = {group_rows(s), duration};
    struct bars_row *rows = mem_zalloc(s->nbuckets * sizeof(*rows));
    struct group_row row;
    size_t n = 0;

    while (group_next_row(&floors.rows, &row))
        rows[n++] = (struct bars_row){row.number, row.count};
    bars_rows(&bars, to, rows, n, put_floor, &floors);
    free(rows);
}

static void put_histograms(const struct group_grid *x, const struct group *row, struct buf *to)
{
    for (size_t i = 0; i < x->g->by->naggregates; i++) {
        if (x->g->by->aggregates[i].kind != BY_HIST || !row->sums[i].n)
            continue;
        buf_char(to, '\n');
        paint_begin(&x->grid.paint, to, PAINT_FUN);
        group_grid_put_name(x, row, to);
        paint_end(&x->grid.paint, to);
        buf_puts(to, "  ");
        buf_str(to, x->g->by->aggregates[i].text);
        buf_printf(to, "  %llu\n", (unsigned long long)row->sums[i].n);
        put_bars(x, &row->sums[i], groups_is_duration(x->g, i), to);
    }
}

/* ---- what is missing ---- */

static void put_count(struct buf *to, uint64_t n, const char *what, const char *rest)
{
    if (n)
        buf_printf(to, "*** %llu %s%s %s ***\n", (unsigned long long)n, what, PLURAL(n), rest);
}

static void put_notes(struct buf *to, const struct groups *g)
{
    if (g->other.count)
        buf_printf(to, "*** (other): the keys after the first %zu ***\n", g->n);
    put_count(to, groups_cut(g), "key", "cut: --size, --depth and --items keep more");
    for (size_t i = 0; i < g->by->naggregates; i++) {
        const uint64_t skipped = groups_skipped(g, i);
        if (skipped)
            buf_printf(to, "*** %.*s: %llu event%s without a number ***\n", (int)g->by->aggregates[i].text.len,
                       g->by->aggregates[i].text.at, (unsigned long long)skipped, PLURAL(skipped));
    }
    put_count(to, g->open > 0 ? (uint64_t)g->open : 0, "call", "without a result, not counted");
    put_count(to, g->unpaired, "result", "without a call, not counted");
}

/* Prints the details of a row of the grid, or that it is gone. */
static void put_row_details(const struct group_grid *x, size_t row, struct buf *to)
{
    if (row == x->grid.nrows) {
        buf_puts(to, "the row is gone\n");
        return;
    }
    grid_row_text(&x->grid, row, to);
    put_histograms(x, group_grid_row(x, row), to);
}

/* Prints the table on a screen: the histograms of a row are among its details. */
static void put_on_screen(const struct group_grid *x, struct grid_screen *screen, struct buf *to)
{
    size_t row;

    if (grid_screen_wants(screen, &x->grid, &row)) {
        put_row_details(x, row, to);
        return;
    }
    grid_screen_name(screen, &x->grid);
    grid_text(&x->grid, to);
    put_notes(to, x->g);
}

static void end_table(struct sink *sink, const struct totals *totals)
{
    const bool on_screen = totals->ngroups == 1 && grid_screen_is_open(sink->look.screen);

    if (!totals->ngroups)
        buf_puts(sink->out, "nothing is counted: no expression has 'by'\n");
    for (size_t i = 0; i < totals->ngroups; i++) {
        struct groups *g = totals->groups[i];
        struct group_grid x;
        group_grid_init(&x, g, &sink->look, sink->look.nodes && has_nodes(g));
        if (i)
            buf_char(sink->out, '\n');
        if (totals->ngroups > 1) {
            buf_str(sink->out, g->by->text);
            buf_char(sink->out, '\n');
        }
        if (on_screen) {
            put_on_screen(&x, sink->look.screen, sink->out);
        } else {
            grid_text(&x.grid, sink->out);
            for (size_t k = 0; k < x.grid.nrows; k++)
                put_histograms(&x, group_grid_row(&x, k), sink->out);
            put_notes(sink->out, g);
        }
        group_grid_release(&x);
    }
    if (!on_screen || !sink->look.screen->wanted.len)
        missing_report(sink->out, totals, "");
}

const struct sink_type sink_table = {
    .name = "table",
    .about = "the events that 'by' counts, a row for each key",
    .size = sizeof(struct sink),
    .flags = SINK_AGAIN | SINK_ALONE | SINK_ANONYMOUS | SINK_ROWS | SINK_FOLDS | SINK_SORTS,
    .end = end_table,
};

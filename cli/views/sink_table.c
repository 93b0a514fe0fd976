/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table view: the events that `by` counts, a row for each key, and histograms below. The pipeline counts
 * (pipeline/grouping.h); this view only prints.
 */
#include <stdlib.h>
#include <string.h>

#include "../ground/utf8.h"
#include "bars.h"
#include "group_text.h"
#include "missing.h"
#include "paint.h"

#define NARROW 16   /* columns that a key keeps before aggregates are left out */
#define NARROWEST 8 /* columns that a key always keeps */
#define OTHER "(other)"

struct table_view {
    struct sink sink;
    struct paint paint;
    struct buf cell;
};

/* One table on its way to the text. */
struct layout {
    struct table_view *view;
    struct groups *g;
    const struct printer *printer;
    bool nodes;  /* the first column is the node of pids */
    size_t keys; /* columns of the key, the node included */
    struct group_column columns[GROUP_COLUMNS];
    size_t ncolumns;
    size_t widths[1 + SPEC_KEYS_MAX + GROUP_COLUMNS];
};

static bool open_table(struct sink *sink, struct err *e)
{
    (void)e;
    ((struct table_view *)sink)->paint.on = sink->look.colour;
    return true;
}

static void release_table(struct sink *sink)
{
    buf_release(&((struct table_view *)sink)->cell);
}

/* ---- cells ---- */

/* Puts the text of a cell into view->cell. A NULL row is the titles. */
static void make_cell(const struct layout *l, const struct group *row, size_t column)
{
    struct buf *to = &l->view->cell;
    const size_t part = column - l->nodes;
    struct group_number n;

    buf_clear(to);
    if (column >= l->keys) {
        const struct group_column c = l->columns[column - l->keys];
        if (!row)
            group_column_name(to, l->g, c);
        else if (group_column_value(l->g, row, c, &n))
            group_put_short(to, n, groups_is_duration(l->g, c.aggregate));
        else
            buf_char(to, '-');
    } else if (row == &l->g->other) {
        buf_puts(to, column ? "" : OTHER);
    } else if (l->nodes && !column) {
        if (!row)
            buf_puts(to, "node");
        else if (row->key.node)
            buf_safe(to, row->key.node->name);
    } else if (!row) {
        buf_str(to, l->g->by->keys[part].text);
    } else {
        group_put_part(to, l->g, row, part, l->printer);
    }
}

/* Cuts the text of the cell to the width; it then ends in an ellipsis. */
static size_t cut_cell(struct buf *cell, size_t width)
{
    size_t used = utf8_width(cell->data, cell->len);

    if (used <= width)
        return used;
    while (cell->len && used >= width) {
        while (cell->len && ((unsigned char)cell->data[--cell->len] & 0xc0) == 0x80)
            continue;
        used = utf8_width(cell->data, cell->len);
    }
    buf_puts(cell, "…");
    return used + 1;
}

static void put_cell(const struct layout *l, const struct group *row, size_t column, bool last)
{
    struct table_view *v = l->view;
    struct buf *to = v->sink.out;
    const bool key = column < l->keys;

    make_cell(l, row, column);
    const size_t used = cut_cell(&v->cell, l->widths[column]);
    for (size_t i = used; !key && i < l->widths[column]; i++)
        buf_char(to, ' ');
    if (row)
        paint_begin(&v->paint, to, key ? PAINT_FUN : PAINT_DURATION);
    buf_str(to, buf_view(&v->cell));
    if (row)
        paint_end(&v->paint, to);
    for (size_t i = used; key && !last && i < l->widths[column]; i++)
        buf_char(to, ' ');
    buf_puts(to, last ? "\n" : "  ");
}

static void table_put_row(const struct layout *l, const struct group *row)
{
    const size_t all = l->keys + l->ncolumns;

    for (size_t i = 0; i < all; i++)
        put_cell(l, row, i, i + 1 == all);
}

/* ---- the table ---- */

static void fit_row(struct layout *l, const struct group *row)
{
    for (size_t i = 0; i < l->keys + l->ncolumns; i++) {
        make_cell(l, row, i);
        l->widths[i] = MAX(l->widths[i], utf8_width(l->view->cell.data, l->view->cell.len));
    }
}

/* The room that the keys need, each with at most `most` columns, and the first `n` columns of aggregates. */
static size_t room_of(const struct layout *l, size_t most, size_t n)
{
    size_t all = 0;

    for (size_t i = 0; i < l->keys + n; i++)
        all += (i < l->keys ? MIN(l->widths[i], most) : l->widths[i]) + (i ? 2 : 0);
    return all;
}

/*
 * Computes the widths of the columns. On a narrow terminal the widest keys give way, then the last aggregates are left out,
 * and then the keys give way again.
 */
static void table_fit(struct layout *l)
{
    const size_t room = l->view->sink.look.width;

    fit_row(l, NULL);
    for (size_t i = 0; i < l->g->n; i++)
        fit_row(l, &l->g->items[i]);
    if (l->g->other.count)
        fit_row(l, &l->g->other);
    while (room && l->ncolumns > 1 && room_of(l, NARROW, l->ncolumns) > room)
        l->ncolumns--;
    while (room && room_of(l, SIZE_MAX, l->ncolumns) > room) {
        size_t widest = 0;
        for (size_t i = 1; i < l->keys; i++)
            widest = l->widths[i] > l->widths[widest] ? i : widest;
        if (l->widths[widest] <= NARROWEST)
            break;
        l->widths[widest]--;
    }
}

static bool has_nodes(const struct groups *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->items[i].key.node)
            return true;
    return false;
}

static void put_table(struct layout *l)
{
    struct table_view *v = l->view;

    table_fit(l);
    paint_begin(&v->paint, v->sink.out, PAINT_TIME);
    table_put_row(l, NULL);
    paint_end(&v->paint, v->sink.out);
    for (size_t i = 0; i < l->g->n; i++)
        table_put_row(l, &l->g->items[i]);
    if (l->g->other.count)
        table_put_row(l, &l->g->other);
}

/* ---- histograms ---- */

/* The rows of a histogram and how to print their lower bounds. */
struct floors {
    struct group_rows rows;
    bool duration;
};

/* The lower bounds are ... -4 -2 -1 0 1 2 4 ..., with fractions ... -0.5 -0.25 0 0.25 0.5 ..., or 1ns 2ns 4ns ... */
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

static void put_bars(const struct layout *l, const struct group_sums *s, bool duration)
{
    const struct bars bars = {&l->view->paint, l->view->sink.look.width};
    struct floors floors = {group_rows(s), duration};
    struct bars_row *rows = mem_zalloc(s->nbuckets * sizeof(*rows));
    struct group_row row;
    size_t n = 0;

    while (group_next_row(&floors.rows, &row))
        rows[n++] = (struct bars_row){row.number, row.count};
    bars_rows(&bars, l->view->sink.out, rows, n, put_floor, &floors);
    free(rows);
}

static void put_title(const struct layout *l, const struct group *row, size_t aggregate)
{
    struct buf *to = l->view->sink.out;

    buf_char(to, '\n');
    paint_begin(&l->view->paint, to, PAINT_FUN);
    for (size_t i = 0; i < l->keys; i++) {
        make_cell(l, row, i);
        if (l->view->cell.len)
            buf_puts(to, i ? "  " : "");
        buf_str(to, buf_view(&l->view->cell));
    }
    paint_end(&l->view->paint, to);
    buf_puts(to, "  ");
    buf_str(to, l->g->by->aggregates[aggregate].text);
    buf_printf(to, "  %llu\n", (unsigned long long)row->sums[aggregate].n);
}

static void put_histograms(const struct layout *l, const struct group *row)
{
    for (size_t i = 0; i < l->g->by->naggregates; i++)
        if (l->g->by->aggregates[i].kind == BY_HIST && row->sums[i].n) {
            put_title(l, row, i);
            put_bars(l, &row->sums[i], groups_is_duration(l->g, i));
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
        buf_printf(to, "*** " OTHER ": the keys after the first %zu ***\n", g->n);
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

static void end_table(struct sink *sink, const struct totals *totals)
{
    struct table_view *v = (struct table_view *)sink;

    if (!totals->ngroups)
        buf_puts(sink->out, "nothing is counted: no expression has 'by'\n");
    for (size_t i = 0; i < totals->ngroups; i++) {
        struct groups *g = totals->groups[i];
        struct layout l = {.view = v, .g = g, .printer = group_printer(g, sink->look.terms)};
        groups_sort(g);
        l.nodes = sink->look.nodes && has_nodes(g);
        l.keys = g->by->nkeys + l.nodes;
        l.ncolumns = group_columns(g, true, l.columns);
        if (i)
            buf_char(sink->out, '\n');
        if (totals->ngroups > 1) {
            buf_str(sink->out, g->by->text);
            buf_char(sink->out, '\n');
        }
        put_table(&l);
        for (size_t k = 0; k < g->n; k++)
            put_histograms(&l, &g->items[k]);
        put_histograms(&l, &g->other);
        put_notes(sink->out, g);
    }
    missing_report(sink->out, totals, "");
}

const struct sink_type sink_table = {
    .name = "table",
    .about = "the events that 'by' counts, a row for each key",
    .size = sizeof(struct table_view),
    .flags = SINK_AGAIN | SINK_ALONE | SINK_ANONYMOUS | SINK_ROWS,
    .open = open_table,
    .end = end_table,
    .release = release_table,
};

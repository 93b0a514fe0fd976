/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view `requests`: a table with the numbers and times of the requests of each shape. A shape is a request without
 * its variable parts, such as {place,_,_}. The view `requesthist`: histograms of these times.
 */
#include "../ground/number.h"
#include "bars.h"
#include "grid_window.h"
#include "request_grid.h"
#include "request_notes.h"

/*
 * Returns true if the column is useful: the node and the server if there are several, unanswered requests and ended
 * servers if there are any.
 */
static bool has_column(const struct request_view *q, enum request_column c)
{
    const struct request_rows *rows = &q->rows;

    for (size_t i = 0; i < rows->n; i++) {
        const struct request_row *r = &rows->items[i];
        if ((c == REQUEST_COL_OPEN && r->open) || (c == REQUEST_COL_DOWN && r->down))
            return true;
    }
    return c == REQUEST_COL_NODE     ? rows->by_node
           : c == REQUEST_COL_SERVER ? request_rows_of_several(rows)
                                     : c != REQUEST_COL_OPEN && c != REQUEST_COL_DOWN;
}

static uint64_t count_of(const struct request_row *r, enum request_column c)
{
    /* open requests are not counted here, because put_unanswered() reports them */
    return c == REQUEST_COL_TIMED_OUT ? r->timed_out : c == REQUEST_COL_DOWN ? r->down : 0;
}

/* Prints how many requests a column that was left out would have shown. Prints nothing if there are none. */
static void put_sum(const struct request_view *q, struct buf *to, enum request_column c)
{
    uint64_t n = 0;

    for (size_t i = 0; i < q->rows.n; i++)
        n += count_of(&q->rows.items[i], c);
    if (n)
        buf_printf(to, "%s: %llu\n", request_table.columns[c].title, (unsigned long long)n);
}

/* Prints the percentiles and the histogram of a time. */
static void put_times(const struct request_view *q, const char *part, const struct stat *t)
{
    const struct bars bars = {&q->paint, q->sink.look.width};
    struct buf *to = q->sink.out;

    buf_printf(to, "%s  ", part);
    print_u64(to, t->timed);
    if (t->timed)
        bars_durations(&bars, to, t);
    else
        buf_puts(to, ", no time known\n");
    buf_char(to, '\n');
}

/* Prints the details of a row of the grid, or that it is gone. */
static void put_request_details(const struct request_grid *x, size_t row)
{
    const struct request_view *q = x->grid.data;

    if (row == x->grid.nrows) {
        buf_puts(q->sink.out, "the row is gone\n");
        return;
    }
    const struct request_row *r = request_grid_row(x, row);
    grid_row_text(&x->grid, row, q->sink.out);
    buf_char(q->sink.out, '\n');
    put_times(q, "waited", &r->waited);
    put_times(q, "worked", &r->worked);
    put_times(q, "reply", &r->reply);
}

/* Prints the table and returns true. Prints the details of a row and returns false if the screen wants them. */
static bool put_rows(const struct request_view *q, struct buf *to)
{
    struct request_grid x;
    size_t row;

    request_grid_init(&x, q);
    for (enum request_column c = 0; c < REQUEST_COLUMNS; c++)
        x.columns[c].hidden = !has_column(q, c);
    if (grid_screen_wants(q->sink.look.screen, &x.grid, &row)) {
        put_request_details(&x, row);
        grid_release(&x.grid);
        return false;
    }
    grid_screen_name(q->sink.look.screen, &x.grid);
    const uint64_t shown = grid_text(&x.grid, to);
    grid_release(&x.grid);
    for (enum request_column c = REQUEST_COL_TIMED_OUT; c <= REQUEST_COL_DOWN; c++)
        if (!(shown >> c & 1))
            put_sum(q, to, c);
    return true;
}

static void end_requests(struct sink *sink, const struct totals *totals)
{
    struct request_view *q = (struct request_view *)sink;

    request_rows_open(&q->rows);
    if (put_rows(q, sink->out))
        request_put_notes(q, sink->out, totals);
}

const struct sink_type sink_requests = {
    .name = "requests",
    .about = "where the time of requests to servers goes, by their shape",
    .item = "request",
    .size = sizeof(struct request_view),
    .flags = SINK_AGAIN | SINK_ANONYMOUS | SINK_PAIRS | SINK_FOLDS | SINK_SORTS,
    .table = &request_table,
    .open = request_view_open,
    .event = request_view_event,
    .end = end_requests,
    .release = request_view_release,
};

/* ---- histograms ---- */

/* Prints the histogram of a time of the row `row` of the grid. */
static void put_histogram(const struct request_grid *x, size_t row, const char *part, const struct stat *t)
{
    const struct request_view *q = x->grid.data;
    struct buf *to = q->sink.out;
    struct grid_cell cell = {0};

    paint_begin(&q->paint, to, PAINT_FUN);
    for (enum request_column c = REQUEST_COL_NODE; c <= REQUEST_COL_SHAPE; c++)
        if (has_column(q, c)) {
            grid_make(&x->grid, row, c, &cell);
            buf_str(to, buf_view(&cell.text));
            buf_char(to, ' ');
        }
    paint_end(&q->paint, to);
    put_times(q, part, t);
    buf_release(&cell.text);
}

static void end_requesthist(struct sink *sink, const struct totals *totals)
{
    struct request_view *q = (struct request_view *)sink;

    struct request_grid x;

    request_rows_open(&q->rows);
    request_grid_init(&x, q);
    for (size_t i = 0; i < x.grid.nrows; i++) {
        const struct request_row *r = request_grid_row(&x, i);
        put_histogram(&x, i, "waited", &r->waited);
        put_histogram(&x, i, "worked", &r->worked);
        put_histogram(&x, i, "reply", &r->reply);
    }
    grid_release(&x.grid);
    for (enum request_column c = REQUEST_COL_TIMED_OUT; c <= REQUEST_COL_DOWN; c++)
        put_sum(q, sink->out, c);
    request_put_notes(q, sink->out, totals);
}

const struct sink_type sink_requesthist = {
    .name = "requesthist",
    .about = "histograms of the times of requests to servers, by their shape",
    .item = "request",
    .brief = "hist",
    .size = sizeof(struct request_view),
    .flags = SINK_AGAIN | SINK_ANONYMOUS | SINK_PAIRS | SINK_FOLDS | SINK_SORTS,
    .table = &request_table,
    .open = request_view_open,
    .event = request_view_event,
    .end = end_requesthist,
    .release = request_view_release,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view `requests`: a table with the numbers and times of the requests of each shape. A shape is a request without
 * its variable parts, such as {place,_,_}. The view `requesthist`: histograms of these times.
 */
#include "../ground/number.h"
#include "bars.h"
#include "grid.h"
#include "request_notes.h"
#include "request_text.h"

enum column {
    COL_NODE,
    COL_SERVER,
    COL_REQUEST,
    COL_CALLS,
    COL_WAITED,
    COL_WORKED,
    COL_REPLY,
    COL_TIMED_OUT,
    COL_OPEN,
    COL_DOWN,
    COLUMNS
};

static const struct grid_column columns[COLUMNS] = {
    [COL_NODE] = {.title = "node", .rank = 5},
    [COL_SERVER] = {.title = "server", .rank = 6},
    [COL_REQUEST] = {.title = "request", .paint = PAINT_FUN},
    [COL_CALLS] = {.title = "calls", .number = true, .rank = 8},
    [COL_WAITED] = {.title = "waited p50/p99", .number = true, .rank = 9},
    [COL_WORKED] = {.title = "worked p50/p99", .number = true, .rank = 7},
    [COL_REPLY] = {.title = "reply p99", .number = true, .rank = 1},
    [COL_TIMED_OUT] = {.title = "timed out", .number = true, .rank = 4},
    [COL_OPEN] = {.title = "unanswered", .number = true, .rank = 2},
    [COL_DOWN] = {.title = "server ended", .number = true, .rank = 3},
};

static void put_pair(struct buf *to, const struct stat *t)
{
    if (!t->timed)
        return;
    print_duration(to, (int64_t)stat_percentile(t, 50));
    buf_puts(to, " / ");
    print_duration(to, (int64_t)stat_percentile(t, 99));
}

static void put_cell(const struct request_view *q, struct buf *to, const struct request_row *r, enum column c)
{
    switch (c) {
    case COL_NODE:
        if (r->node)
            buf_safe(to, r->node->name);
        break;
    case COL_SERVER:
        if (r->label)
            request_view_put_key(q, to, r->label, r->elixir);
        break;
    case COL_REQUEST:
        if (r->shape || !r->label)
            request_view_put_key(q, to, r->shape, r->elixir);
        else
            buf_puts(to, "(not captured)");
        break;
    case COL_CALLS:
        print_u64(to, r->calls);
        break;
    case COL_WAITED:
        put_pair(to, &r->waited);
        break;
    case COL_WORKED:
        put_pair(to, &r->worked);
        break;
    case COL_REPLY:
        if (r->reply.timed)
            print_duration(to, (int64_t)stat_percentile(&r->reply, 99));
        break;
    case COL_TIMED_OUT:
        if (r->callers || r->timed_out)
            print_u64(to, r->timed_out);
        break;
    case COL_OPEN:
        print_u64(to, r->open);
        break;
    case COL_DOWN:
        print_u64(to, r->down);
        break;
    case COLUMNS:
        break;
    }
}

/*
 * Returns true if the column is useful: the node and the server if there are several, unanswered requests and ended
 * servers if there are any.
 */
static bool has_column(const struct request_view *q, enum column c)
{
    const struct request_rows *rows = &q->rows;

    for (size_t i = 0; i < rows->n; i++) {
        const struct request_row *r = &rows->items[i];
        if ((c == COL_OPEN && r->open) || (c == COL_DOWN && r->down))
            return true;
    }
    return c == COL_NODE     ? rows->by_node
           : c == COL_SERVER ? request_rows_of_several(rows)
                             : c != COL_OPEN && c != COL_DOWN;
}

static uint64_t count_of(const struct request_row *r, enum column c)
{
    /* open requests are not counted here, because put_unanswered() reports them */
    return c == COL_TIMED_OUT ? r->timed_out : c == COL_DOWN ? r->down : 0;
}

/* Prints how many requests a column that was left out would have shown. Prints nothing if there are none. */
static void put_sum(const struct request_view *q, struct buf *to, enum column c)
{
    uint64_t n = 0;

    for (size_t i = 0; i < q->rows.n; i++)
        n += count_of(&q->rows.items[i], c);
    if (n)
        buf_printf(to, "%s: %llu\n", columns[c].title, (unsigned long long)n);
}

static void put_grid_cell(const void *data, size_t row, size_t column, struct grid_cell *cell)
{
    const struct request_view *q = data;

    put_cell(q, &cell->text, &q->rows.items[row], (enum column)column);
}

static void put_rows(const struct request_view *q, struct buf *to)
{
    struct grid_column own[COLUMNS];
    const struct grid g = {own, COLUMNS, put_grid_cell, q, q->rows.n, .width = q->sink.look.width, .paint = q->paint};

    memcpy(own, columns, sizeof(own));
    for (enum column c = 0; c < COLUMNS; c++)
        own[c].hidden = !has_column(q, c);
    const uint64_t shown = grid_text(&g, "\n", to);
    for (enum column c = COL_TIMED_OUT; c <= COL_DOWN; c++)
        if (!(shown >> c & 1))
            put_sum(q, to, c);
}

static void end_requests(struct sink *sink, const struct totals *totals)
{
    struct request_view *q = (struct request_view *)sink;

    request_rows_open(&q->rows);
    put_rows(q, sink->out);
    request_put_notes(q, sink->out, totals);
}

const struct sink_type sink_requests = {
    .name = "requests",
    .about = "where the time of requests to servers goes, by their shape",
    .item = "request",
    .size = sizeof(struct request_view),
    .flags = SINK_AGAIN | SINK_ANONYMOUS | SINK_PAIRS | SINK_FOLDS,
    .open = request_view_open,
    .event = request_view_event,
    .end = end_requests,
    .release = request_view_release,
};

/* ---- histograms ---- */

static void put_histogram(struct request_view *q, const struct request_row *r, const char *part, const struct stat *t)
{
    struct buf *to = q->sink.out;
    const struct bars bars = {&q->paint, q->sink.look.width};

    paint_begin(&q->paint, to, PAINT_FUN);
    for (enum column c = COL_NODE; c <= COL_REQUEST; c++)
        if (has_column(q, c)) {
            put_cell(q, to, r, c);
            buf_char(to, ' ');
        }
    paint_end(&q->paint, to);
    buf_printf(to, "%s  ", part);
    print_u64(to, t->timed);
    if (t->timed)
        bars_durations(&bars, to, t);
    else
        buf_puts(to, ", no time known\n");
    buf_char(to, '\n');
}

static void end_requesthist(struct sink *sink, const struct totals *totals)
{
    struct request_view *q = (struct request_view *)sink;

    request_rows_open(&q->rows);
    for (size_t i = 0; i < q->rows.n; i++) {
        const struct request_row *r = &q->rows.items[i];
        put_histogram(q, r, "waited", &r->waited);
        put_histogram(q, r, "worked", &r->worked);
        put_histogram(q, r, "reply", &r->reply);
    }
    for (enum column c = COL_TIMED_OUT; c <= COL_DOWN; c++)
        put_sum(q, sink->out, c);
    request_put_notes(q, sink->out, totals);
}

const struct sink_type sink_requesthist = {
    .name = "requesthist",
    .about = "histograms of the times of requests to servers, by their shape",
    .item = "request",
    .size = sizeof(struct request_view),
    .flags = SINK_AGAIN | SINK_ANONYMOUS | SINK_PAIRS | SINK_FOLDS,
    .open = request_view_open,
    .event = request_view_event,
    .end = end_requesthist,
    .release = request_view_release,
};

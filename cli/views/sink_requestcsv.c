/* SPDX-License-Identifier: Apache-2.0 */
/* The requestcsv and requesttsv views: the figures of requests by their shape, in columns. */
#include "../ground/number.h"
#include "grid.h"
#include "request_text.h"
#include "request_view.h"

enum {
    COL_NODE,
    COL_SERVER,
    COL_SHAPE,
    COL_CALLS,
    COL_WAITED, /* a time has three columns */
    COL_WORKED = COL_WAITED + 3,
    COL_REPLY = COL_WORKED + 3,
    COL_TIMED_OUT = COL_REPLY + 3,
    COL_LATE,
    COL_OPEN,
    COL_OLDEST,
    COL_DOWN,
    COLUMNS
};

#define FIGURE(name)                                                                                                   \
    {                                                                                                                  \
        .key = name, .number = true                                                                                    \
    }
#define PART(name) FIGURE(name "_p50_us"), FIGURE(name "_p99_us"), FIGURE(name "_max_us")
static const struct grid_column columns[COLUMNS] = {
    {.key = "node"}, {.key = "server"},    {.key = "shape"},    FIGURE("calls"),
    PART("waited"),  PART("worked"),       PART("reply"),       FIGURE("timed_out"),
    FIGURE("late"),  FIGURE("unanswered"), FIGURE("oldest_us"), FIGURE("server_ended"),
};

static void requestcsv_put_key(const struct request_view *q, struct buf *to, uint32_t key, bool elixir)
{
    if (key)
        request_view_put_key(q, to, key, elixir);
}

static void requestcsv_put_stat(struct buf *to, const struct stat *t, size_t figure)
{
    if (t->timed)
        request_put_us(to, figure == 2 ? (int64_t)t->max_ns : (int64_t)stat_percentile(t, figure ? 99 : 50));
}

static void requestcsv_put_cell(const void *data, size_t row, size_t column, struct grid_cell *cell)
{
    const struct request_view *q = data;
    const struct request_row *r = &q->rows.items[row];
    struct buf *to = &cell->text;

    switch (column) {
    case COL_NODE:
        if (r->node)
            buf_safe(to, r->node->name);
        break;
    case COL_SERVER:
        requestcsv_put_key(q, to, r->label, r->elixir);
        break;
    case COL_SHAPE:
        requestcsv_put_key(q, to, r->shape, r->elixir);
        break;
    case COL_CALLS:
        print_u64(to, r->calls);
        break;
    case COL_TIMED_OUT:
        if (r->callers || r->timed_out)
            print_u64(to, r->timed_out);
        break;
    case COL_LATE:
        print_u64(to, r->late);
        break;
    case COL_OPEN:
        print_u64(to, r->open);
        break;
    case COL_OLDEST:
        request_put_us(to, r->oldest_ns);
        break;
    case COL_DOWN:
        print_u64(to, r->down);
        break;
    default:
        requestcsv_put_stat(to,
                            column < COL_WORKED  ? &r->waited
                            : column < COL_REPLY ? &r->worked
                                                 : &r->reply,
                            (column - COL_WAITED) % 3);
        break;
    }
}

static void requestcsv_put(struct sink *sink, enum grid_as as)
{
    struct request_view *q = (struct request_view *)sink;
    struct grid g = {.columns = columns, .ncolumns = COLUMNS, .put = requestcsv_put_cell, .data = q};

    request_rows_open(&q->rows);
    g.nrows = q->rows.n;
    grid_data(&g, as, NULL, sink->out);
}

static void end_requestcsv(struct sink *sink, const struct totals *totals)
{
    (void)totals;
    requestcsv_put(sink, GRID_CSV);
}

static void end_requesttsv(struct sink *sink, const struct totals *totals)
{
    (void)totals;
    requestcsv_put(sink, GRID_TSV);
}

const struct sink_type sink_requestcsv = {
    .name = "requestcsv",
    .extensions = ".csv",
    .about = "the table of requests with columns for spreadsheets",
    .item = "request",
    .size = sizeof(struct request_view),
    .flags = SINK_AGAIN | SINK_ANONYMOUS | SINK_PAIRS | SINK_FOLDS,
    .open = request_view_open,
    .event = request_view_event,
    .end = end_requestcsv,
    .release = request_view_release,
};

const struct sink_type sink_requesttsv = {
    .name = "requesttsv",
    .extensions = ".tsv",
    .about = "the same, separated by tabs",
    .item = "request",
    .size = sizeof(struct request_view),
    .flags = SINK_AGAIN | SINK_ANONYMOUS | SINK_PAIRS | SINK_FOLDS,
    .open = request_view_open,
    .event = request_view_event,
    .end = end_requesttsv,
    .release = request_view_release,
};

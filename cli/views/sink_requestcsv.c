/* SPDX-License-Identifier: Apache-2.0 */
/* The requestcsv and requesttsv views: the figures of requests by their shape, in columns. */
#include "request_grid.h"

static void requestcsv_put(struct sink *sink, enum grid_as as)
{
    struct request_view *q = (struct request_view *)sink;
    struct request_grid x;

    request_rows_open(&q->rows);
    request_grid_init(&x, q);
    grid_data(&x.grid, as, NULL, sink->out);
    grid_release(&x.grid);
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
    .brief = "csv",
    .size = sizeof(struct request_view),
    .flags = SINK_AGAIN | SINK_ANONYMOUS | SINK_PAIRS | SINK_FOLDS | SINK_SORTS,
    .table = &request_table,
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
    .brief = "tsv",
    .size = sizeof(struct request_view),
    .flags = SINK_AGAIN | SINK_ANONYMOUS | SINK_PAIRS | SINK_FOLDS | SINK_SORTS,
    .table = &request_table,
    .open = request_view_open,
    .event = request_view_event,
    .end = end_requesttsv,
    .release = request_view_release,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the table with the figures of requests: a row for each shape, and columns for people and for programs. */
#ifndef ETRACE_REQUEST_GRID_H
#define ETRACE_REQUEST_GRID_H

#include "grid_order.h"
#include "request_view.h"

enum request_column {
    REQUEST_COL_NODE,
    REQUEST_COL_SERVER,
    REQUEST_COL_SHAPE,
    REQUEST_COL_CALLS,
    REQUEST_COL_WAITED,                         /* p50 and p99 together, for people */
    REQUEST_COL_TIMES,                          /* p50, p99 and maximum, for programs */
    REQUEST_COL_WORKED = REQUEST_COL_TIMES + 3, /* the same four columns for the work */
    REQUEST_COL_REPLY = REQUEST_COL_WORKED + 4, /* p50, p99 and maximum; people see p99 */
    REQUEST_COL_TIMED_OUT = REQUEST_COL_REPLY + 3,
    REQUEST_COL_LATE,
    REQUEST_COL_OPEN,
    REQUEST_COL_OLDEST,
    REQUEST_COL_DOWN,
    REQUEST_COLUMNS
};

extern const struct grid_table request_table;

struct request_grid {
    struct grid_column columns[REQUEST_COLUMNS]; /* a copy, so that the caller can hide some */
    struct grid grid;
};

/* Makes the grid of all rows, sorted by look.sort. The caller must call grid_release(). */
void request_grid_init(struct request_grid *x, const struct request_view *q);
/* Returns the row of the figures that is the row `row` of the grid. */
const struct request_row *request_grid_row(const struct request_grid *x, size_t row);

#endif

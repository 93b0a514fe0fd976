/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts the rows of a grid by one of its columns, for --sort and for the keys of a screen. Numbers sort by value,
 * the largest first. Texts sort by their bytes, which is the order of Unicode, but numbers in them by value: <0.9.0>
 * comes before <0.10.0>. `:asc` and `:desc` choose the direction. Rows without a value come last. Equal rows keep the
 * order that they had before.
 */
#ifndef ETRACE_GRID_ORDER_H
#define ETRACE_GRID_ORDER_H

#include "../ground/err.h"
#include "grid.h"

/* The columns of a table. The help, the completion and the check of --sort read the names here. */
struct grid_table {
    const struct grid_column *columns;
    size_t count;
};
#define GRID_TABLE(columns)                                                                                            \
    {                                                                                                                  \
        columns, ARRAY_LEN(columns)                                                                                    \
    }

/* The changes of the order by the keys of a screen. */
struct grid_turn {
    int steps;     /* columns to the right of the given one; negative: to the left */
    bool reversed; /* the other direction */
};

struct grid_sort {
    const char *given;            /* COLUMN, COLUMN:asc or COLUMN:desc; NULL: the order that the rows have */
    const struct grid_turn *turn; /* may be NULL */
};

/* Returns the name of the column for --sort: its key, otherwise `also` or its title. NULL: it has no name. */
const char *grid_column_name(const struct grid_column *k);
/* Appends the names of the columns, each once, with `between` between them. */
void grid_column_names(const struct grid_table *t, const char *between, struct buf *to);

/*
 * Returns the column that `given` names: by its key, the key without `_us`, `also`, or the title. Returns t->count if
 * there is none.
 */
size_t grid_order_column(const struct grid_table *t, const char *given);
/* Returns false, with an error that lists the columns, if `given` names no column of the table. */
bool grid_order_check(const struct grid_table *t, const char *given, struct err *e);

/*
 * Sorts the rows. Does nothing if the table has no such column. The caller may then lower g->nrows, and must call
 * grid_release().
 */
void grid_order(struct grid *g, const struct grid_sort *by);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a grid of the table of `by`: a column for each part of the key, and one for each figure. */
#ifndef ETRACE_GROUP_GRID_H
#define ETRACE_GROUP_GRID_H

#include "../ground/mem.h"
#include "grid_order.h"
#include "group_text.h"

struct group_grid {
    struct grid grid;
    struct groups *g; /* borrowed */
    const struct printer *printer;
    struct group_column figures[GROUP_COLUMNS];
    struct grid_column columns[1 + SPEC_KEYS_MAX + GROUP_COLUMNS];
    struct arena names;
};

/*
 * Sorts the groups and makes the grid. `nodes`: shows the first column, which is the node of the pids in a key. The
 * caller must call group_grid_release().
 */
void group_grid_init(struct group_grid *x, struct groups *g, const struct look *look, bool nodes);
void group_grid_release(struct group_grid *x);
/* Returns false, with an error, if there are tables, and none has the column `sort`. */
bool group_grid_check(struct groups *const *tables, size_t n, const char *sort, struct err *e);
const struct group *group_grid_row(const struct group_grid *x, size_t row); /* returns the group of a row of the grid */

/* Appends the name of a row: the cells of its key, separated by two spaces. */
void group_grid_put_name(const struct group_grid *x, const struct group *row, struct buf *to);

#endif

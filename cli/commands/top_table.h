/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the table of `etrace top` as text, JSON, CSV or TSV. The text fits the width of a terminal, or is unlimited.
 */
#ifndef ETRACE_TOP_TABLE_H
#define ETRACE_TOP_TABLE_H

#include "../views/grid.h"
#include "top_rows.h"

struct top_table {
    const struct top_node *nodes;
    const char *const *names; /* names of the nodes */
    size_t count;
    enum top_sort sort;
    bool by_process;
    struct paint paint;
    unsigned columns; /* width of the terminal; 0: unlimited */
    size_t most;      /* limit for the rows; 0: no limit */
};

/* Prints the titles, the rows, and a line with the sums of the rows that are left out. Prints `end` after each line. */
void top_table_text(const struct top_table *t, const char *end, struct buf *to);
/* Prints `etrace top · NODE · …`: what is counted and for how long. Prints no newline. */
void top_table_title(const struct top_table *t, struct buf *to);
void top_table_data(const struct top_table *t, enum grid_as as, struct buf *to); /* prints JSON, CSV or TSV */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Renders the table of `etrace top` as text, fitted to a terminal or unlimited in width, and as JSON, CSV and TSV. */
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
    unsigned columns; /* the width; 0: unlimited */
    size_t most;      /* rows; 0: all */
};

/* Prints the titles, the rows and a line about the rows that are left out. Each line ends with `end`. */
void top_table_text(const struct top_table *t, const char *end, struct buf *to);
/* Prints `etrace top · NODE · …`: what is counted and for how long, without the end of the line. */
void top_table_title(const struct top_table *t, struct buf *to);
void top_table_data(const struct top_table *t, enum grid_as as, struct buf *to); /* JSON, CSV or TSV */

#endif

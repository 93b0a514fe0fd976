/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the table of `etrace top` as text, JSON, CSV or TSV. The text fits the width of a terminal, or is unlimited.
 */
#ifndef ETRACE_TOP_TABLE_H
#define ETRACE_TOP_TABLE_H

#include "../views/grid_order.h"
#include "../views/grid_window.h"
#include "top_rows.h"

struct top_table {
    const struct top_node *nodes;
    const char *const *names; /* names of the nodes */
    size_t count;
    struct grid_sort sort;
    bool by_process;
    struct paint paint;
    unsigned columns;           /* width of the terminal; 0: unlimited */
    struct grid_window *window; /* the rows to print; NULL: all */
    /* The commands that the details show: ssh as in struct node_opts; named: they name the node of the row. */
    const char *ssh;
    bool named;
};

extern const struct grid_table top_columns;
#define TOP_USUAL "time" /* the column by which the rows are sorted without --sort */

/*
 * Sets *ret to the figure by which the nodes must choose their rows. `counters` are the figures that they count
 * (TOP_COUNT_ bits). Returns true if the first rows that the nodes choose are the first rows of the table.
 */
bool top_table_kept(const struct top_table *t, unsigned counters, enum top_kept *ret);

/* Prints the titles, the rows, and a line with the sums of the rows that are left out. */
void top_table_text(const struct top_table *t, struct buf *to);
/* Prints `etrace top · NODE · …`: what is counted and for how long. Prints no newline. */
void top_table_title(const struct top_table *t, struct buf *to);
/*
 * Prints all figures of the row that the window marks, and the commands that trace its function. Returns false if there
 * is no such row.
 */
bool top_table_details(const struct top_table *t, struct buf *to);
void top_table_data(const struct top_table *t, enum grid_as as, struct buf *to); /* prints JSON, CSV or TSV */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the processes of nodes from their answers (nif/tracer_look.hrl), sorts and prints them. */
#ifndef ETRACE_PS_ROWS_H
#define ETRACE_PS_ROWS_H

#include "../views/grid_order.h"
#include "../views/grid_window.h"
#include "look.h"

/* The figures of a process. A node keeps the rows with the largest values of one of them. */
enum ps_figure { PS_QUEUE, PS_MEMORY, PS_BINARIES, PS_REDUCTIONS, PS_FIGURES };
extern const char *const ps_figures[PS_FIGURES]; /* their names, for requests and JSON */

#define PS_FRAMES 4
#define PS_ANCESTORS 8

/* Names or pids of related processes, the closest first. */
struct ps_names {
    char items[PS_ANCESTORS][80];
    unsigned count;
};

struct ps_row {
    unsigned node;
    struct look_process process;
    bool known; /* the process has answered the request for details; otherwise the members below are not set */
    char application[40], status[24];
    struct look_frame initial; /* its `fun` is NULL if the process was started with a fun */
    bool idle;
    /* callers: processes that wait for the result, if the process is an Elixir task */
    struct ps_names ancestors, callers;
    struct look_frame stack[PS_FRAMES]; /* innermost function first */
    unsigned nstack;
    int64_t figures[PS_FIGURES], growth[PS_FIGURES];
    bool least; /* the memory is a lower bound, because the queue is too long to measure its messages */
    bool about; /* the size of the binaries is an estimate, because there are too many to list */
    int64_t total_heap, old_heap, stack_bytes, fragments;
};

struct ps_node {
    struct ps_row *rows;
    size_t count, cap;
    int64_t total[5]; /* the number of processes, then sums in the order of enum ps_figure */
    int64_t since_us; /* time between the two looks from which `growth` is computed; -1: unknown */
    struct look_process *silent;
    size_t nsilent, silent_cap;
    bool known; /* the members above are those of a complete look; the table leaves out other nodes */
};

void ps_node_release(struct ps_node *n);
void ps_node_forget(struct ps_node *n); /* leaves the node out of the table until the next complete look */
/* Prints an idle process like `idle Shop.Stock (gen_server)`. Prints nothing and returns false if it is not idle. */
bool ps_put_idle(const struct ps_row *x, struct buf *to);
/* Write a member of a JSON object: a list of names, or the initial call if it is known. */
void ps_json_names(const struct ps_names *x, const char *key, struct buf *to);
void ps_json_initial(const struct ps_row *x, struct buf *to);
bool ps_row_read(struct etf *r, struct ps_row *x, struct funs *funs);
/* Reads the rows and totals from the last answer of a look. */
bool ps_node_read(struct ps_node *n, unsigned index, const struct look_answer *a, struct funs *funs, struct err *e);

struct ps_table {
    const struct ps_node *nodes;
    const char *const *names;
    size_t count; /* number of nodes */
    struct grid_sort sort;
    enum ps_figure kept; /* the figure by which the nodes have chosen the rows */
    bool growth;         /* sort by the growth of the figure, and show the growth */
    struct paint paint;
    unsigned columns;           /* width of the terminal; 0: unlimited */
    struct grid_window *window; /* the rows to print; NULL: all */
};

extern const struct grid_table ps_columns;
#define PS_USUAL "memory" /* the column by which the rows are sorted without --sort */

/*
 * Returns true if the table is sorted by a figure, the largest first: the nodes can then choose its first rows. Sets
 * *ret to the figure by which the nodes choose rows, which is memory if the table is sorted by anything else.
 */
bool ps_table_figure(const struct ps_table *t, enum ps_figure *ret);
const struct ps_row *ps_table_chosen(const struct ps_table *t); /* the row that the window marks; NULL: none */

void ps_table_title(const struct ps_table *t, struct buf *to); /* prints no newline */
void ps_table_text(const struct ps_table *t, struct buf *to);
void ps_table_data(const struct ps_table *t, enum grid_as as, struct buf *to); /* prints JSON, CSV or TSV */

/* Returns the name of the part that takes most of the process's memory: heap, old heap, stack, messages or binaries. */
const char *ps_holder(const struct ps_row *x);

void ps_put_bytes(struct buf *to, int64_t bytes, bool sign);   /* prints 812 B, 3.4 KB or 12 MB; with `sign`, +12 MB */
void ps_put_memory(struct buf *to, int64_t bytes, bool least); /* like ps_put_bytes(); puts > before a least value */
void ps_put_binaries(struct buf *to, const struct ps_row *x);  /* like ps_put_bytes(); puts ~ before an estimate */
void ps_put_count(struct buf *to, int64_t count, bool sign);   /* prints 8120, 12k or 1.2M */

#endif

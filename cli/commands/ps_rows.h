/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the processes of nodes from their answers (nif/tracer_look.hrl), sorts them, and prints them. */
#ifndef ETRACE_PS_ROWS_H
#define ETRACE_PS_ROWS_H

#include "../views/grid.h"
#include "look.h"

enum ps_sort { PS_QUEUE, PS_MEMORY, PS_BINARIES, PS_REDUCTIONS, PS_SORTS };
extern const char *const ps_sorts[PS_SORTS]; /* the names in options and in requests to the node */

#define PS_FRAMES 4
#define PS_ANCESTORS 8

/* Processes as names or pids, the nearest first. */
struct ps_names {
    char items[PS_ANCESTORS][80];
    unsigned count;
};

struct ps_row {
    unsigned node;
    struct look_process process;
    bool known; /* the process has answered the second question, so the other members are known */
    char application[40], status[24];
    struct look_frame initial; /* the initial function; without `fun` if it is a fun */
    bool idle;
    struct ps_names ancestors, callers; /* callers: the processes for which a task of Elixir works */
    struct look_frame stack[PS_FRAMES]; /* the innermost first */
    unsigned nstack;
    int64_t figures[PS_SORTS], growth[PS_SORTS];
    bool about; /* the figure of binaries is an estimate, because there are too many to list */
    int64_t total_heap, old_heap, stack_bytes, fragments;
};

struct ps_node {
    struct ps_row *rows;
    size_t count, cap;
    int64_t total[5]; /* number of processes; sums in the order of enum ps_sort */
    int64_t since_us; /* time between the two looks for the growth; -1: unknown */
    struct look_process *silent;
    size_t nsilent, silent_cap;
};

void ps_node_release(struct ps_node *n);
/* Prints `idle Shop.Stock (gen_server)`; returns false if the process is not idle. */
bool ps_put_idle(const struct ps_row *x, struct buf *to);
/* Write a member of an object: a list of names; the initial call, if it is known. */
void ps_json_names(const struct ps_names *x, const char *key, struct buf *to);
void ps_json_initial(const struct ps_row *x, struct buf *to);
bool ps_row_read(struct etf *r, struct ps_row *x, struct funs *funs);
/* Reads the rows and totals of a complete look. */
bool ps_node_read(struct ps_node *n, unsigned index, const struct look_answer *a, struct funs *funs, struct err *e);

struct ps_table {
    const struct ps_node *nodes;
    const char *const *names;
    size_t count; /* of nodes */
    enum ps_sort sort;
    bool growth; /* sort by growth, and show growth */
    struct paint paint;
    unsigned columns;   /* the width; 0: unlimited */
    size_t most;        /* rows; 0: all */
    size_t chosen;      /* the marked row, or the last row if there are fewer; SIZE_MAX: none */
    const char *filter; /* show only rows with this text; "" or NULL: all */
};

/* Returns the rows of all nodes that match the filter, sorted. The caller frees the array. */
const struct ps_row **ps_sorted(const struct ps_table *t, size_t *ret_count);

void ps_table_title(const struct ps_table *t, struct buf *to);                   /* without the end of the line */
size_t ps_table_text(const struct ps_table *t, const char *end, struct buf *to); /* returns the number of rows */
void ps_table_data(const struct ps_table *t, enum grid_as as, struct buf *to);   /* JSON, CSV or TSV */

/* Returns the part that has most of the process's memory: heap, old heap, stack, messages or binaries. */
const char *ps_holder(const struct ps_row *x);

void ps_put_bytes(struct buf *to, int64_t bytes, bool sign);  /* 812 B, 3.4 KB, 12 MB; `sign`: +12 MB */
void ps_put_binaries(struct buf *to, const struct ps_row *x); /* like ps_put_bytes(); an estimate begins with ~ */
void ps_put_count(struct buf *to, int64_t count, bool sign);  /* 8120, 12k, 1.2M */

#endif

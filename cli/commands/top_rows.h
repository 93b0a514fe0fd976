/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the counters of nodes from their answers and sorts the rows of all nodes. The rows of a node are valid until
 * the node answers again.
 */
#ifndef ETRACE_TOP_ROWS_H
#define ETRACE_TOP_ROWS_H

#include "../erlang/etf.h"
#include "../events/names.h"
#include "../ground/err.h"

enum top_sort { TOP_CALLS, TOP_TIME, TOP_MEMORY, TOP_NAME, TOP_SORTS };
extern const char *const top_sorts[TOP_SORTS]; /* the names in options and in requests to the node */

enum { TOP_COUNT_CALLS = 1, TOP_COUNT_TIME = 2, TOP_COUNT_MEMORY = 4, TOP_COUNT_ALL = 7 };

struct top_row {
    const struct fun *fun;
    int arity;
    unsigned node;
    int64_t calls, us, words;
    int64_t all;            /* calls by any process, traced or not; -1: unknown */
    char pid[32], name[80]; /* empty: the row is about all processes; safe to print */
    bool alive;
};

struct top_node {
    struct top_row *rows;
    size_t count, cap;
    int64_t more;             /* number of rows that the node has, shown or not */
    int64_t calls, us, words; /* sums of all these rows */
    int64_t functions, elapsed_us;
    int64_t begun;  /* how often the counters had to be restarted */
    int64_t unread; /* functions whose figures are older than this answer, because the node had no time to read them */
    int64_t anew;   /* how often a module lost its counters, because its code was reloaded or removed */
    unsigned counters; /* TOP_COUNT_ bits */
    /*
     * Names of -P that have another process now: [{Name, Pid | none}], valid until the reply is released; and how many
     * of them are left to read.
     */
    struct etf moved;
    size_t moved_left;
    bool untraced; /* another process has cleared our trace flags, so times and words no longer grow */
};

void top_node_release(struct top_node *n);

/* Reads the answer to {read, …}. */
bool top_node_read(struct top_node *n, unsigned index, struct etf r, struct funs *funs, struct err *e);

/* Takes the next name from `moved`. *ret_pid is empty if no process has the name now. Returns false at the end. */
bool top_node_moved(struct top_node *n, struct raw *ret_name, struct raw *ret_pid);

/* Reads the answer to {count, …} and passes each warning to `warn`. */
bool top_node_begun(struct top_node *n, struct etf r, uint64_t *ret_processes,
                    void (*warn)(void *data, struct str text), void *data, struct err *e);

/* Returns pointers to the rows of all nodes, sorted. The caller frees the array. */
const struct top_row **top_sorted(const struct top_node *nodes, size_t n, enum top_sort sort, size_t *ret_count);

#endif

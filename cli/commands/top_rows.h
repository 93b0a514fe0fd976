/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the counters of nodes from their answers, and collects the rows of all nodes. The rows of a node are valid
 * until its next answer is read.
 */
#ifndef ETRACE_TOP_ROWS_H
#define ETRACE_TOP_ROWS_H

#include "../erlang/etf.h"
#include "../events/names.h"
#include "../ground/err.h"

/* The rows that a node sends if it has too many: those with the largest figures, or the first names. */
enum top_kept { TOP_CALLS, TOP_TIME, TOP_MEMORY, TOP_NAME };
extern const char *const top_kept_names[]; /* their names in requests */

enum { TOP_COUNT_CALLS = 1, TOP_COUNT_TIME = 2, TOP_COUNT_MEMORY = 4, TOP_COUNT_ALL = 7 };

struct top_row {
    const struct fun *fun;
    int arity;
    unsigned node;
    int64_t calls, us, words;
    int64_t all;            /* number of calls by all processes, also by those that are not traced; -1: unknown */
    char pid[32], name[80]; /* empty if the row is about all processes; safe to print */
    bool alive;
};

struct top_node {
    struct top_row *rows;
    size_t count, cap;
    int64_t more;             /* number of rows on the node, including those that the answer does not have */
    int64_t calls, us, words; /* sums over all rows on the node */
    int64_t functions, elapsed_us;
    int64_t begun; /* number of times that the node had to restart the counters */
    /* number of functions whose figures are older than the answer, because the node had no time to read them */
    int64_t unread;
    int64_t anew;      /* number of times that a module lost its counters because its code was reloaded or removed */
    unsigned counters; /* which figures are counted: TOP_COUNT_ bits */
    /*
     * Names of -P that now belong to another process: [{Name, Pid | none}], valid until the reply is released.
     * moved_left is the number of names that top_node_moved() has not returned yet.
     */
    struct etf moved;
    size_t moved_left;
    bool untraced; /* another process has cleared our trace flags, so times and words are no longer counted */
};

void top_node_release(struct top_node *n);

/* Reads the answer to {read, …}. Returns false, with an error, if it is malformed. */
bool top_node_read(struct top_node *n, unsigned index, struct etf r, struct funs *funs, struct err *e);

/*
 * Returns the next name in `moved` and the pid of its new process, which is empty if there is none. Returns false after
 * the last name.
 */
bool top_node_moved(struct top_node *n, struct raw *ret_name, struct raw *ret_pid);

/*
 * Reads the answer to {count, …}, and passes each warning in it to `warn`. Returns false, with an error, if it is
 * malformed.
 */
bool top_node_begun(struct top_node *n, struct etf r, uint64_t *ret_processes,
                    void (*warn)(void *data, struct str text), void *data, struct err *e);

/* Returns pointers to the rows of all nodes, those with the most calls first. The caller frees the array. */
const struct top_row **top_rows(const struct top_node *nodes, size_t n, size_t *ret_count);

#endif

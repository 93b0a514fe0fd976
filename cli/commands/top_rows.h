/*
 * What nodes have counted: read from their answers, and brought together in one order. Rows are valid until their node
 * answers again.
 */
#ifndef ETRACE_TOP_ROWS_H
#define ETRACE_TOP_ROWS_H

#include "../erlang/etf.h"
#include "../events/names.h"
#include "../ground/err.h"

enum top_sort { TOP_CALLS, TOP_TIME, TOP_MEMORY, TOP_NAME, TOP_SORTS };
extern const char *const top_sorts[TOP_SORTS]; /* as the options and the node name them */

enum { TOP_COUNT_CALLS = 1, TOP_COUNT_TIME = 2, TOP_COUNT_MEMORY = 4, TOP_COUNT_ALL = 7 };

struct top_row {
    const struct fun *fun;
    int arity;
    unsigned node;
    int64_t calls, us, words;
    int64_t all; /* calls of every process, traced or not; -1: not known */
    char pid[32], name[80]; /* empty: of all processes; safe to print */
    bool alive;
};

struct top_node {
    struct top_row *rows;
    size_t count, cap;
    int64_t more;  /* rows that there are, shown or not */
    int64_t calls, us, words; /* of all of them */
    int64_t functions, elapsed_us;
    int64_t begun; /* how often the counters had to be begun anew */
    int64_t unread; /* functions whose figures are older than the answer: the node had no time to read them */
    int64_t anew;  /* how often a module was found to have lost its counters */
    unsigned counters; /* TOP_COUNT_x */
    bool untraced; /* somebody has stopped tracing its processes: times and words stand still */
};

void top_node_release(struct top_node *n);

/* The answer to {read, …}. */
bool top_node_read(struct top_node *n, unsigned index, struct etf r, struct funs *funs, struct err *e);

/* The answer to {count, …}; each warning is given to `warn`. */
bool top_node_begun(struct top_node *n, struct etf r, uint64_t *ret_processes, void (*warn)(void *data, struct str text),
                    void *data, struct err *e);

/* Pointers to the rows of all nodes in that order; to be freed. */
const struct top_row **top_sorted(const struct top_node *nodes, size_t n, enum top_sort sort, size_t *ret_count);

#endif

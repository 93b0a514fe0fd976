/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the stacks of processes by state and stack, and prints them: a table, JSON, or events for the views of stacks. */
#ifndef ETRACE_STACK_GROUPS_H
#define ETRACE_STACK_GROUPS_H

#include "../views/paint.h"
#include "../views/sink.h"
#include "look.h"

#define GROUP_FRAMES 64
#define GROUP_NAMES 4
#define GROUPS_MAX 100000

struct stack_group {
    unsigned node;
    char status[24];
    size_t first, count; /* of frames; the innermost first */
    uint64_t looks;      /* how often a process had this stack */
    int64_t waited_ms;   /* how long one of them has not run, at least */
    struct look_process processes[GROUP_NAMES];
    unsigned nprocesses;
};

struct stack_groups {
    struct stack_group *items;
    size_t count, cap;
    struct look_frame *frames;
    size_t nframes, frames_cap;
    struct table by_stack;
    uint64_t looks;    /* in all groups */
    uint64_t left_out; /* looks beyond GROUPS_MAX groups */
};

void stack_groups_release(struct stack_groups *g);
bool stack_groups_add(struct stack_groups *g, unsigned node, const struct look_answer *a, struct funs *funs, struct err *e);

/* Returns the groups in the order of the table: the most frequent first. The caller frees the array. */
struct stack_group **stack_groups_sorted(const struct stack_groups *g);

/*
 * Appends a request for the names of the processes of a node's first groups. False: there are none. stack_groups_named()
 * takes the answer; false: it is malformed.
 */
bool stack_groups_ask_names(const struct stack_groups *g, unsigned node, int patience_ms, struct buf *to);
bool stack_groups_named(struct stack_groups *g, unsigned node, struct etf names);

struct stack_table {
    const struct stack_groups *groups;
    const char *const *names; /* of nodes */
    size_t nnodes;
    bool samples; /* shows shares instead of counts */
    struct paint paint;
    unsigned columns;   /* the width; 0: unlimited */
    size_t most;        /* rows; 0: all */
    const char *filter; /* only rows with this text; "" or NULL: all */
    size_t chosen;      /* the row with a mark; SIZE_MAX: none */
};

/* The groups that the filter admits, in the order of the table. The caller frees the array. */
struct stack_group **stack_table_rows(const struct stack_table *t, size_t *ret_count);

void stack_table_text(const struct stack_table *t, const char *end, struct buf *to); /* each line ends with `end` */
void stack_table_json(const struct stack_table *t, struct buf *to);

/*
 * Passes each group to a view as one event with a stack and its weight. `nodes` are those of the events; the times are of
 * the wall clock.
 */
void stack_groups_show(const struct stack_groups *g, const struct event_node *nodes, int64_t from_ns, int64_t to_ns,
                       struct sink *view);

#endif

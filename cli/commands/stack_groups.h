/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the stacks of processes in groups, and shows them in the views of stacks. The processes of a group have the
 * same stack, the same state and the same initial call.
 */
#ifndef ETRACE_STACK_GROUPS_H
#define ETRACE_STACK_GROUPS_H

#include "../views/sink.h"
#include "look.h"

#define STACK_FRAMES 64
#define STACK_PIDS 4       /* limit for the processes that are listed for a stack */
#define STACK_PIDS_ALL 100 /* the same if the user asks for more processes */
#define GROUPS_MAX 100000

struct one_stack {
    unsigned node;
    char status[24];
    bool idle;           /* the process waits for any message, in the loop of a behaviour or of OTP */
    size_t first, count; /* the frames of the stack in `frames`, innermost first */
};

/* The processes that have the same stack and initial call. */
struct stack_group {
    size_t stack;              /* index in `stacks` */
    struct look_frame initial; /* initial function; its `fun` is NULL if the processes were started with a fun */
    uint64_t looks;            /* number of times that a look found a process in this group */
    int64_t waited_ms;         /* lower bound of the longest time for which one of the processes has not run */
    int64_t growth;            /* if `grown` is set: how many processes the group has more than at the first pass */
    /*
     * Private. Each pass looks at all processes. `first`, `now` and `before` are how many of them were in the group: in
     * the first pass, in pass number `pass`, and in the pass before that.
     */
    uint64_t first, now, before, pass;
    struct look_process *processes;
    size_t nprocesses, processes_cap;
};

struct stack_groups {
    bool running; /* leave out processes that neither run nor could run */
    struct stack_group *items;
    size_t count, cap;
    struct one_stack *stacks;
    size_t nstacks, stacks_cap;
    struct look_frame *frames;
    size_t nframes, frames_cap;
    struct table by_stack, by_initial;
    uint64_t looks;    /* number of looks at processes in all groups */
    uint64_t left_out; /* number of looks at processes that were left out, because there are GROUPS_MAX groups */
    bool grown;        /* the growth of each group is known */
};

/* Returns true if a process with this status neither runs nor waits for a scheduler. */
bool stack_rests(const char *status);

void stack_groups_release(struct stack_groups *g);
/* `pass`: number of complete passes over all processes of the node before this answer. */
bool stack_groups_add(struct stack_groups *g, unsigned node, const struct look_answer *a, uint64_t pass,
                      struct funs *funs, struct err *e);

/* Drops the groups of a node. `left_out`: the part of g->left_out that is of the node. */
void stack_groups_drop(struct stack_groups *g, unsigned node, uint64_t left_out);

/*
 * stack_groups_grow() sets the growth of the groups of a node from the first to the last of its complete passes.
 * stack_groups_grow_from() sets that of all groups since another look, whose functions are in the same tables.
 */
void stack_groups_grow(struct stack_groups *g, unsigned node, uint64_t passes);
void stack_groups_grow_from(struct stack_groups *g, const struct stack_groups *from);

/*
 * Appends a request for names of the first processes of each group of the node. Returns false if there are none.
 * stack_groups_named() reads the answer; it returns false if the answer is malformed.
 */
bool stack_groups_ask_names(const struct stack_groups *g, unsigned node, int patience_ms, struct buf *to);
bool stack_groups_named(struct stack_groups *g, unsigned node, struct etf names);

/*
 * Passes each group to a view as one event with a stack and a weight. `nodes` are the nodes of the groups. from_ns and
 * to_ns are wall clock times.
 */
void stack_groups_show(const struct stack_groups *g, const struct event_node *nodes, int64_t from_ns, int64_t to_ns,
                       struct sink *view);

#endif

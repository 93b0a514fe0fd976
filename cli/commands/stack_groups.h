/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the stacks of processes by state, stack and initial call, and shows them in the views of stacks. */
#ifndef ETRACE_STACK_GROUPS_H
#define ETRACE_STACK_GROUPS_H

#include "../views/sink.h"
#include "look.h"

#define STACK_FRAMES 64
#define STACK_PIDS 4       /* limit for the processes that a stack lists */
#define STACK_PIDS_ALL 100 /* limit if the user wants more processes */
#define GROUPS_MAX 100000

struct one_stack {
    unsigned node;
    char status[24];
    bool idle;           /* waits for any message, in the loop of a behaviour or of OTP */
    size_t first, count; /* of `frames`, the innermost first */
};

/* The processes with the same stack and initial call. */
struct stack_group {
    size_t stack;              /* of the stacks */
    struct look_frame initial; /* without `fun` if the initial function is a fun */
    uint64_t looks;            /* number of looks that found a process in this group */
    int64_t waited_ms;         /* longest time that one of the processes has not run, at least */
    struct look_process *processes;
    size_t nprocesses, processes_cap;
};

struct stack_groups {
    bool running; /* leave out processes that rest */
    struct stack_group *items;
    size_t count, cap;
    struct one_stack *stacks;
    size_t nstacks, stacks_cap;
    struct look_frame *frames;
    size_t nframes, frames_cap;
    struct table by_stack, by_initial;
    uint64_t looks;    /* in all groups */
    uint64_t left_out; /* number of looks beyond GROUPS_MAX groups */
};

/* Returns true if a process in this state would not run even if a scheduler were free. */
bool stack_rests(const char *status);

void stack_groups_release(struct stack_groups *g);
bool stack_groups_add(struct stack_groups *g, unsigned node, const struct look_answer *a, struct funs *funs,
                      struct err *e);

/*
 * Appends a request for the names of the processes of a node's first groups. Returns false if there are none.
 * stack_groups_named() takes the answer, and returns false if it is malformed.
 */
bool stack_groups_ask_names(const struct stack_groups *g, unsigned node, int patience_ms, struct buf *to);
bool stack_groups_named(struct stack_groups *g, unsigned node, struct etf names);

/*
 * Passes each group to a view, as one event with a stack and its weight. `nodes` are the nodes of the events; the times
 * are wall clocks.
 */
void stack_groups_show(const struct stack_groups *g, const struct event_node *nodes, int64_t from_ns, int64_t to_ns,
                       struct sink *view);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folds calls by stack: a tree of functions with their counts and own times.
 *
 * The tree is built from calls and their results. If events have stack traces, it is built only from the traces. Each
 * trace counts once; the trace of a sample counts event.weight times. Bounded: after STACKS_MAX nodes, a new function
 * is counted in the node that would be its parent.
 */
#ifndef ETRACE_STACKS_H
#define ETRACE_STACKS_H

#include "../events/event.h"
#include "../ground/mem.h"
#include "../ground/table.h"

#define STACKS_MAX 200000

/*
 * Identifies a node of the tree or the file of a call site. Each key is stored once, so keys are compared by
 * number.
 */
struct stack_key {
    enum stack_key_type { STACK_ROOT, STACK_FUNCTION, STACK_NODE /* of Erlang */, STACK_FILE } type;
    struct raw module, name; /* a node and a file have no module */
    int64_t arity;
};

struct stack_node {
    uint32_t parent, child, sibling; /* 0: none; node 0 is the root */
    uint32_t key;                    /* number of the key; the root has 0 */
    uint32_t file, line; /* the place of the call in the parent: number of a key; a line; 0: unknown or not wanted */
    uint64_t count, own_ns;
};

struct stack_process;

struct stacks {
    struct stack_node *nodes;
    size_t n, cap;
    struct stack_key *keys; /* in the order of their appearance */
    size_t nkeys, keys_cap;
    struct table by_key;
    struct arena names; /* the names of keys */
    struct stack_process *processes;
    size_t nprocesses, room; /* room: capacity of `processes` */
    struct table by_tracee;
    size_t idle;  /* processes that became idle since the last make_room() */
    size_t ndone; /* ended calls that are not in the tree yet */
    bool by_node; /* give each Erlang node a tree node; `top` hides it if there is only one */
    uint32_t top; /* the tree node to show as root, set by stacks_settle(): 0 or 1 */
    bool callers; /* separate calls from different lines, and add a tree node for a caller that is not traced */
    bool traces;  /* the tree is built from stack traces, so nodes have only counts */
    bool full;    /* a limit was reached, so some calls are counted elsewhere or not at all */
    struct buf file;
};

void stacks_init(struct stacks *s);
void stacks_release(struct stacks *s);
void stacks_event(struct stacks *s, const struct event *e);
void stacks_settle(struct stacks *s); /* completes the tree; call it before reading */
/* Returns the cost of a tree node without its children: nanoseconds, or a count if the tree has no times. */
uint64_t stacks_own(const struct stacks *s, uint32_t node);
/* Returns an array with the cost of each tree node, including its descendants. The caller frees the array. */
uint64_t *stacks_totals(const struct stacks *s);

#endif

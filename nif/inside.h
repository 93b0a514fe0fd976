/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Knows which processes are inside an open call of a root: a function that a probe names after `inside`. Events of
 * probes with `inside` are shown only there.
 *
 * A root is armed in meta, so it needs no flag of any process. Its match specification switches the flag `call` on for
 * the process that calls it. The other functions are armed local and make events only in processes with the flag. The
 * callback enabled_call/3 answers `remove` for the first call after the last root has returned, and the VM clears the
 * flag. So a process that never calls a root costs nothing. If the session has flags that must stay, the answer is
 * `discard` instead.
 *
 * A function that is a root and is also traced inside of roots is armed in meta only. Its match specification names the
 * probes that match, so the callback knows whether the call opens a root. Any other call in meta is a root. Each open
 * call of a function in meta is on the list of its process, because a result does not name its probes.
 *
 * If the result of a root decides whether to show what happened inside (ROUTE_TREES), the list has a tree (tree.h) from
 * the call of its outermost root to the result.
 *
 * A root that calls itself in a loop returns from all its turns at once, and the VM keeps a frame for each. So after
 * such a call enabled/3 rejects all calls in meta until the outermost root has returned: the process stays inside, and
 * no more frames pile up. These calls are not shown; a notice says so.
 *
 * A root that the sample leaves out is on the list without being open, and so are the calls inside of it.
 *
 * If only some processes may open roots, a table has these processes, or all others. enabled/3 discards the calls in
 * meta of the rest, before the VM runs the match specification: they set no flag and leave no frame.
 *
 * Memory is bounded. A root of a process without a free list is lost, with everything inside. Calls that do not fit on
 * a list are only counted: results come in reverse order of calls, so the count is enough. The tree has what its filter
 * needs to know of these calls. A process that ends or hibernates inside of a root never gives the results that it
 * owes. When it has ended, another process takes its list.
 *
 * A process runs on one thread at a time, so a list has one writer. The owner calls inside_begin() while no session is
 * live, and the unload inside_unmap().
 */
#ifndef ETRACE_INSIDE_H
#define ETRACE_INSIDE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "etrace_wire.h"
#include "hidden.h"
#include "stack.h"
#include "tree.h"

#define INSIDE_PROCESSES 8192 /* at least so many processes have a list at once */
#define INSIDE_PLACES (2 * INSIDE_PROCESSES)
#define INSIDE_CALLS 40            /* on one list */
#define INSIDE_ROOTS ETW_MAX_ROOTS /* probes that are roots */
#define INSIDE_CHOSEN 131072       /* processes that are chosen, or left out */

struct inside_call {
    uint64_t module, name, tick;
    uint32_t arity;
    uint32_t number; /* number of the call's event in the tree */
    bool root;
};

struct inside {
    uint32_t open;       /* roots on the list */
    uint32_t used, over; /* open calls on the list; open calls that did not fit */
    bool flat;           /* a root calls itself in a loop, so tracer.c rejects the further calls of roots */
    struct tree *tree;   /* NULL: events are sent at once */
    struct inside_call calls[INSIDE_CALLS];
};

/* The process of each list; 0: free. Apart from the lists, so that a search reads at most two cache lines. */
extern HIDDEN _Atomic uint64_t *inside_owners;
extern HIDDEN struct inside *inside_lists;

/*
 * Empties all lists, and lets every process open roots. roots: the numbers of the probes that are roots, at most
 * INSIDE_ROOTS. sample: one of so many outermost roots is shown. Returns false if memory is missing.
 */
bool inside_begin(const uint32_t *roots, unsigned count, unsigned sample, stack_alive_fn *alive);
void inside_unmap(void);

/*
 * Lets only the given processes open roots, or with `others` only all other processes. Several calls add up. Returns
 * false if memory is missing or the processes are too many. The worker calls this before the pattern of the first root
 * is set. The owner calls it later for a process that has got a name of -P (tracer_follow.hrl).
 */
bool inside_choose(const uint64_t *processes, size_t count, bool others);

bool inside_is_root(uint32_t probe);

enum inside_call_is { INSIDE_OUT, INSIDE_IN, INSIDE_LOST /* a root without a list or a tree */ };

/* A call of a function that is armed in meta. */
struct inside_meta {
    struct stack_function function;
    uint64_t tick;
    bool root;    /* it opens a root */
    bool returns; /* its result will come */
    bool keeps;   /* as an outermost root, the call needs a tree */
    bool loops;   /* the function calls itself in a loop (owed.h) */
};

/* The call that a result closes. */
struct inside_closed {
    struct inside_call call;
    struct tree *tree; /* the tree of an outermost root, which the caller frees */
};

/* Any thread calls these, in a callback of the process. */
bool inside_is_chosen(uint64_t process); /* returns true if the process may open roots */
bool inside_is_open(uint64_t process);
bool inside_is_flat(uint64_t process);      /* returns true if enabled/3 must reject the further calls in meta */
struct tree *inside_tree(uint64_t process); /* returns NULL if the process has no tree */
enum inside_call_is inside_call(void *env, uint64_t process, const struct inside_meta *call);
/* Closes a call of a function that is armed in meta. Returns true if the result is shown. */
bool inside_result(uint64_t process, const struct stack_function *f, struct inside_closed *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Knows which processes are inside a root. A root is an open call of a function that a probe names after `inside`. The
 * events of that probe are shown only inside of roots.
 *
 * The function of a root is traced with meta tracing, so its calls are events in every process, with or without trace
 * flags. Its match specification sets the trace flag `call` of the process that calls it. The functions to trace inside
 * of roots are traced with local tracing, so their calls are events only in processes with that flag. At the first such
 * call after the last root has returned, enabled_call/3 answers `remove`, and the VM clears the flag. So a process that
 * never calls a root costs nothing. If the session has flags that must stay, the answer is `discard` instead.
 *
 * A function that is a root and is also to be traced inside of roots has only meta tracing. Its match specification
 * names the probes that match, so the callback knows whether the call opens a root. Every call of another function with
 * meta tracing is a root. Each open call of a function with meta tracing is on the list of its process, because a
 * result does not name its probes.
 *
 * If the result of a root decides whether to show the events inside of it (ROUTE_TREES), the list has a tree (tree.h)
 * from the call of the outermost root to its result.
 *
 * A root that calls itself in a loop returns from all iterations at once, and the VM keeps a stack frame for each
 * iteration. So after such a call, enabled/3 rejects all calls with meta tracing until the outermost root has returned.
 * The process stays inside, and no more stack frames pile up. The rejected calls are not shown; a notice says so.
 *
 * If the sample leaves out a root, the root and the calls inside of it are on the list, but the root does not count as
 * open.
 *
 * If only some processes may open roots, a table has either these processes or the processes that may not. enabled/3
 * discards the meta-traced calls of a process that may not, before the VM runs the match specification. Such calls set
 * no flag and leave no stack frame.
 *
 * Memory is bounded. If no list is free for a process, its root is lost, with everything inside. Calls that do not fit
 * on a list are only counted: results come in reverse order of the calls, so the number is enough. The tree keeps what
 * the filter needs to know about these calls. A process that ends or hibernates inside of a root never returns from it.
 * When the process has ended, another process takes over its list.
 *
 * A process runs on one thread at a time, so a list has one writer. The owner calls inside_begin() while no session is
 * live. The unloading of the library calls inside_unmap().
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

#define INSIDE_PROCESSES 8192 /* at least this many processes can have a list at once */
#define INSIDE_PLACES (2 * INSIDE_PROCESSES)
#define INSIDE_CALLS 40            /* the most calls on one list */
#define INSIDE_ROOTS ETW_MAX_ROOTS /* the most probes for roots */
#define INSIDE_CHOSEN 131072       /* the most processes in the table of inside_choose() */

/* An open call of a function with meta tracing. */
struct inside_call {
    uint64_t module, name, tick;
    uint32_t arity;
    uint32_t number; /* number of the call's event in the tree */
    bool root;       /* the call is a root that the sample has not left out */
};

/* The list of a process. */
struct inside {
    uint32_t open;       /* roots among `calls` */
    uint32_t used, over; /* open calls in `calls`; open calls that did not fit */
    bool flat;           /* a root calls itself in a loop, so tracer.c rejects further meta-traced calls */
    struct tree *tree;   /* NULL: events are sent at once */
    struct inside_call calls[INSIDE_CALLS];
};

/*
 * The process of each list; 0: the list is free. The processes are not members of the lists, so that a search reads at
 * most two cache lines.
 */
extern HIDDEN _Atomic uint64_t *inside_owners;
extern HIDDEN struct inside *inside_lists;

/*
 * Empties all lists, and lets every process open roots. roots: the numbers of the probes whose calls are roots, at most
 * INSIDE_ROOTS. sample: one of this many outermost roots is shown. Returns false if memory is missing.
 */
bool inside_begin(const uint32_t *roots, unsigned count, unsigned sample, stack_alive_fn *alive);
void inside_unmap(void);

/*
 * Lets only the given processes open roots. With `others`, lets all processes except these open roots. Each call adds
 * processes. Returns false if memory is missing or the processes are too many. The worker calls this before it sets the
 * trace pattern of the first root. The owner calls it later for a process that has got a name of -P
 * (tracer_follow.hrl).
 */
bool inside_choose(const uint64_t *processes, size_t count, bool others);

bool inside_is_root(uint32_t probe); /* returns true if the calls of this probe are roots */

enum inside_call_is { INSIDE_OUT, INSIDE_IN, INSIDE_LOST /* a root for which no list or no tree is free */ };

/* A call of a function with meta tracing. */
struct inside_meta {
    struct stack_function function;
    uint64_t tick;
    bool root;    /* the call opens a root */
    bool returns; /* the VM will report the result of the call */
    bool keeps;   /* if this is an outermost root, it needs a tree */
    bool loops;   /* the function calls itself in a loop (owed.h) */
};

/* The call that a result closes. */
struct inside_closed {
    struct inside_call call;
    struct tree *tree; /* the tree of an outermost root, which the caller frees */
};

/* Any thread calls these functions, in a callback of the process. */
bool inside_is_chosen(uint64_t process);    /* returns true if the process may open roots */
bool inside_is_open(uint64_t process);      /* returns true if the process is inside a root */
bool inside_is_flat(uint64_t process);      /* returns true if enabled/3 must reject further meta-traced calls */
struct tree *inside_tree(uint64_t process); /* returns NULL if the process has no tree */
/* Puts a call on the list of the process. Returns INSIDE_IN if the call is a root or inside of a root. */
enum inside_call_is inside_call(void *env, uint64_t process, const struct inside_meta *call);
/* Closes a call of a function with meta tracing. Returns true if the call was a root or inside of a root. */
bool inside_result(uint64_t process, const struct stack_function *f, struct inside_closed *ret);

#endif

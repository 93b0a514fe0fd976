/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a stack of open calls for each process. These are the calls whose results are traced. The caller may store some
 * bytes beside a call.
 *
 * All threads share one hash table of stacks. The key is the raw term of the process's pid. A process runs on one
 * thread at a time, so a stack has one writer.
 *
 * The owner may pause the tracing of all processes (tracer_budget.hrl). The VM does not report the result of a call
 * that returns in a pause, so the call stays on its stack. Each resume begins an epoch. A result may then seem to close
 * a call of an earlier epoch. stack_pop() marks such a call as sure only if no other call of its function is on the
 * stacks of the process. The first call of a process in an epoch empties its stack if more than half of the stack is in
 * use.
 *
 * The memory is bounded: stack_push() fails if no stack is free or the stack is full. After a call that did not fit,
 * the stack also rejects the newer calls of the process, until that call has returned. A stack becomes free when it is
 * empty or when its process has died. A process may have several stacks: if a slot that its probe sequence visits
 * earlier becomes free, the next call of the process starts a stack in that slot.
 *
 * The owner calls stacks_open(), stacks_clear() and stacks_waits(). The unloading of the library calls stacks_unmap().
 * Any thread calls the rest, in a callback of the process.
 */
#ifndef ETRACE_STACK_H
#define ETRACE_STACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring.h"

#define STACK_CALLS 510 /* calls on a full stack, if no call carries bytes */

/* A function. module, name: the atoms as raw terms. */
struct stack_function {
    uint64_t module, name;
    uint32_t arity;
};

struct stack_call {
    struct stack_function function;
    uint64_t tick;
    uint32_t bytes;  /* bytes that follow this struct */
    uint16_t below;  /* the offset of the call below this one on the stack */
    uint8_t follows; /* the call below is known to have been open when this one began */
    uint8_t sure;    /* set by stack_pop(): the result certainly belongs to this call */
    uint8_t verdict; /* verdict, flags and words are for the caller of stack_push() */
    uint8_t flags;
    uint16_t words;
    uint32_t epoch; /* the last epoch in which the call is known to have been open */
};

#define STACK_BYTES (STACK_CALLS * sizeof(struct stack_call))

struct stack {
    _Alignas(RING_LINE) _Atomic uint64_t process; /* 0: free */
    uint32_t top, used;                           /* offsets into bytes; the newest call is at `top` unless used is 0 */
    uint32_t over;                                /* newer open calls that found no room */
    uint32_t epoch;                               /* the epoch of the last stack_push() */
    _Alignas(8) uint8_t bytes[STACK_BYTES];
};

/* Returns true if the process with this raw pid is alive. env: as for stack_push(). */
typedef bool stack_alive_fn(void *env, uint64_t process);

/* Maps the memory of the stacks at the first call, and keeps it. Returns false if memory is missing. */
bool stacks_open(stack_alive_fn *alive);

/*
 * Clears about `bytes` bytes of the stacks, beginning at the byte *at, and advances *at. Returns false once all stacks
 * are empty.
 */
bool stacks_clear(size_t *at, size_t bytes);
void stacks_unmap(void);

/* Begins an epoch, because results may have been missed. Called after a pause and before the first call. */
void stacks_resume(void);

/*
 * Pushes a call of the process and returns its place. The caller writes the call's bytes to stack_beside() of that
 * place. Returns NULL if there is no room.
 */
struct stack_call *stack_push(void *env, uint64_t process, const struct stack_call *call);

/*
 * Pops the process's newest call of a function that has returned, and all newer calls, which can no longer return.
 * Returns NULL if the call is not on the stacks. If the returned call is not `sure`, the result belongs to this call or
 * to an older one. The returned call is valid until stack_rest(), which the caller must call if *ret_stack is not NULL.
 */
struct stack_call *stack_pop(uint64_t process, const struct stack_function *f, struct stack **ret_stack);
void stack_rest(struct stack *s);

/*
 * Removes the newest call of a function that loops (owed.h) from the stacks of the process, because its result is no
 * longer awaited. Newer calls of other functions stay, because they may still return. Returns NULL if the stacks have
 * no call of the function. The returned call is valid until stack_rest(), as for stack_pop().
 */
struct stack_call *stack_drop(uint64_t process, const struct stack_function *f, struct stack **ret_stack);

/* The number of calls that have not returned, and the call that began first among them. */
struct stack_waits {
    uint32_t calls;
    uint64_t process, tick;
    struct stack_function function;
};

/*
 * Counts the calls on all stacks that began before a tick and that `counts` accepts, up to STACK_WAITS_MOST. The owner
 * calls it at the end of a trace. If a late callback changes a stack at the same time, some calls of that stack may be
 * left out. env: for stack_alive_fn.
 */
#define STACK_WAITS_MOST 65536
void stacks_waits(void *env, uint64_t before, bool (*counts)(const struct stack_call *), struct stack_waits *ret);

static inline uint8_t *stack_beside(struct stack_call *call)
{
    return (uint8_t *)(call + 1);
}

static inline bool stack_same(const struct stack_function *a, const struct stack_function *b)
{
    return a->name == b->name && a->module == b->module && a->arity == b->arity;
}

#endif

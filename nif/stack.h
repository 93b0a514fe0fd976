/*
 * Which calls every process is in, of those whose result is waited for: with each call there may stand some bytes.
 *
 * One table for all threads, by the word of the process: a process runs on one thread at a time, so a stack has one writer. It is
 * bounded: a process may find no stack, and a call no room on it; then the caller is told so, and calls above it are without
 * room, too, until it has returned. A stack is free again when it is empty, or when its process has died. Where a place became
 * free before that of its stack, a process begins another one there.
 *
 * stacks_open/unmap: the owner's calls and unload. All else: any thread, in a callback of that process.
 */
#ifndef ETRACE_STACK_H
#define ETRACE_STACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring.h"

#define STACK_CALLS 510 /* with nothing beside them */

/* The words of a function. */
struct stack_function {
    uint64_t module, name;
    uint32_t arity;
};

struct stack_call {
    struct stack_function function;
    uint64_t tick;
    uint32_t below, bytes; /* where the call around it lies; how many bytes stand behind this one */
    uint8_t verdict;       /* the caller's, as the next two */
    uint8_t flags;
    uint16_t words;
    uint32_t spare;
};

#define STACK_BYTES (STACK_CALLS * sizeof(struct stack_call))

struct stack {
    _Alignas(RING_LINE) _Atomic uint64_t process; /* 0: free */
    uint32_t top, used;                           /* of bytes; the newest call is at `top` unless used is 0 */
    uint32_t over;                                /* calls above it that found no room */
    _Alignas(8) uint8_t bytes[STACK_BYTES];
};

/* Whether the process of a word lives; env is what stack_push() was given. */
typedef bool stack_alive_fn(void *env, uint64_t process);

/* Makes the stacks, at the first call. False: no memory. */
bool stacks_open(stack_alive_fn *alive);

/* Empties the stacks: gives back the memory of some of them, from the byte *at on, which moves; false: those were the last. */
bool stacks_clear(size_t *at, size_t bytes);
void stacks_unmap(void);

/* Of a call of that process, with as many bytes as it says behind it, which are the caller's to write; NULL: no room. */
struct stack_call *stack_push(void *env, uint64_t process, const struct stack_call *call);

/*
 * Takes the process's newest call of that function off its stack, with those above it, which will not return any more; NULL:
 * nothing is known of it. It is there until stack_rest(), which is to follow where *ret_stack is not NULL.
 */
struct stack_call *stack_pop(uint64_t process, const struct stack_function *f, struct stack **ret_stack);
void stack_rest(struct stack *s);

static inline uint8_t *stack_beside(struct stack_call *call)
{
    return (uint8_t *)(call + 1);
}

static inline bool stack_same(const struct stack_function *a, const struct stack_function *b)
{
    return a->name == b->name && a->module == b->module && a->arity == b->arity;
}

#endif

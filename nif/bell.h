/*
 * The bell: wakes the owner at the first event after it dozed off. An eventfd that the VM watches (enif_select), rung by
 * a producer only while it is armed; no message is ever sent from a callback.
 *
 * The descriptor lives from the first bell_open() until both the last bell is stopped and the library is unloaded,
 * whichever comes last, so that no producer can ever write to a descriptor that has become somebody else's. The resource
 * behind it (one for each open) is never given to Erlang but in the select message, and goes with the owner.
 */
#ifndef ETRACE_BELL_H
#define ETRACE_BELL_H

#include <erl_nif.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "hidden.h"

/* In its own line: read by every producer behind every frame. */
extern HIDDEN struct bell {
    _Alignas(64) _Atomic bool armed;
} bell;

bool bell_load(ErlNifEnv *env);
void bell_unload(ErlNifEnv *env);

/* The calling process becomes the one that is woken. */
bool bell_open(ErlNifEnv *env);
void bell_close(ErlNifEnv *env);

/*
 * Arms the bell; after it a producer either sees it armed, or its frame is visible to the caller, who looks at the rings
 * next and calls bell_disarm() if there is something after all.
 */
bool bell_arm(ErlNifEnv *env);
void bell_disarm(void);

/* Any thread, in any callback. */
void bell_strike(void);

static inline void bell_ring(void)
{
    /* Only the compiler is held to the order here; bell_arm() makes the processors agree. */
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&bell.armed, memory_order_relaxed), 0))
        bell_strike();
}

#endif

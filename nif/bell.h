/*
 * The bell: wakes the owner at the first event after it dozed off, and when a ring is half full before it has come by itself.
 * A producer strikes it only while it is armed, and a thread of our own, which waits for that, sends the
 * message, for no callback may.
 *
 * Not enif_select(): on OTP 29 what the schedulers poll themselves, the client's socket say, may not be looked at for ten
 * seconds after an event that came through it, as long as they are busy.
 *
 * The thread lives from the first bell_open() to the unload, when no producer can run any more; a process that
 * has died is not woken, and nobody minds.
 */
#ifndef ETRACE_BELL_H
#define ETRACE_BELL_H

#include <erl_nif.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "hidden.h"

/* In its own line: read by every producer behind every frame. Armed by the owner, or by a ring (ring.h). */
extern HIDDEN struct bell {
    _Alignas(64) _Atomic bool armed;
    _Atomic bool asked; /* a question is open that the process of bell_answers() has not been told of */
} bell;

void bell_load(ErlNifEnv *env);
void bell_unload(void);

/* The calling process becomes the one that is woken: it is sent the atom ready_input. */
bool bell_open(ErlNifEnv *env);

/*
 * Arms the bell. False: there is no bell any more, so the owner has to look by itself. After it a producer either sees it armed, or its frame is visible to the caller, who looks at the rings
 * next and calls bell_disarm() if there is something after all.
 */
bool bell_arm(void);
void bell_disarm(void);

/* Any thread, in any callback. */
void bell_strike(void);
void bell_wake(void);

/* The calling process is sent the atom owing whenever bell_ask() was called. */
bool bell_answers(ErlNifEnv *env);

/* Any thread, in any callback: there is a question about results that are owed. */
static inline void bell_ask(void)
{
    if (!atomic_load_explicit(&bell.asked, memory_order_relaxed) && !atomic_exchange(&bell.asked, true))
        bell_wake();
}

static inline void bell_ring(void)
{
    /* Only the compiler is held to the order here; bell_arm() makes the processors agree. */
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&bell.armed, memory_order_relaxed), 0))
        bell_strike();
}

#endif

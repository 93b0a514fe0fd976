/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wakes the owner at the first event after the owner went to sleep, and when a ring becomes half full before the owner
 * drains it.
 *
 * A callback may not send messages. So a producer only wakes a thread of this library, and only while the bell is
 * armed. That thread sends the message to the owner. The thread runs from the first bell_open() until the library is
 * unloaded, when no producer can run. A message to a dead owner is lost without harm.
 *
 * enif_select() could replace the thread, but on OTP 29 it can delay other descriptors, such as the client's socket:
 * busy schedulers may not poll the other descriptors for ten seconds after an event.
 */
#ifndef ETRACE_BELL_H
#define ETRACE_BELL_H

#include <erl_nif.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "hidden.h"

/*
 * The owner arms the bell before it sleeps, and a ring that is half full arms it too (ring.alarm). The struct has a
 * cache line of its own, because every producer reads `armed` after every frame.
 */
extern HIDDEN struct bell {
    _Alignas(64) _Atomic bool armed;
    _Atomic bool asked; /* bell_ask() has announced a question, and the bell has not sent the message for it */
} bell;

void bell_load(ErlNifEnv *env);
void bell_unload(void);

/* Starts the thread if it does not run yet, and lets the bell send the message ready_input to the calling process. */
bool bell_open(ErlNifEnv *env);

/*
 * Arms the bell. The caller must look at the rings next, and call bell_disarm() if a ring has a frame. A producer
 * either sees the armed bell, or its frame is visible to that look. Returns false if the bell's thread has ended: then
 * the owner must poll the rings.
 */
bool bell_arm(void);
void bell_disarm(void);

/* Both wake the bell's thread, bell_strike() only if the bell is armed. Any thread may call them in a callback. */
void bell_strike(void);
void bell_wake(void);

/* Lets each bell_ask() send the atom `owing` to the calling process. */
bool bell_answers(ErlNifEnv *env);

/* Announces a question about owed results. Any thread may call this, in any callback. */
static inline void bell_ask(void)
{
    if (!atomic_load_explicit(&bell.asked, memory_order_relaxed) && !atomic_exchange(&bell.asked, true))
        bell_wake();
}

static inline void bell_ring(void)
{
    /* This fence orders only the compiler. bell_arm() has the barrier for the processors. */
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&bell.armed, memory_order_relaxed), 0))
        bell_strike();
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wakes the owner at the first event after it went to sleep, and when a ring becomes half full before the owner drains
 * it.
 *
 * A callback may not send messages. So a producer only wakes a thread of our own, and only while the bell is armed;
 * that thread sends the message to the owner. It runs from the first bell_open() to the unload, when no producer can
 * run. A message to a dead owner is lost without harm.
 *
 * enif_select() could replace the thread, but on OTP 29 it can delay other descriptors that the schedulers poll, such
 * as the client's socket: while the schedulers are busy, they may not poll them for ten seconds after an event.
 */
#ifndef ETRACE_BELL_H
#define ETRACE_BELL_H

#include <erl_nif.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "hidden.h"

/*
 * The owner arms the bell before it sleeps, and so does a ring that fills (ring.h). The struct has a cache line of its
 * own, because every producer reads `armed` after every frame.
 */
extern HIDDEN struct bell {
    _Alignas(64) _Atomic bool armed;
    _Atomic bool asked; /* a question is open, and the process of bell_answers() has not been told */
} bell;

void bell_load(ErlNifEnv *env);
void bell_unload(void);

/* Starts the thread if it does not run yet, and lets the bell send the message ready_input to the calling process. */
bool bell_open(ErlNifEnv *env);

/*
 * Arms the bell. Afterwards a producer sees the armed bell, or the caller sees the producer's frame: the caller must
 * look at the rings next and call bell_disarm() if one has a frame. False: the bell's thread has ended, so the owner
 * must poll the rings.
 */
bool bell_arm(void);
void bell_disarm(void);

/* Wakes the bell's thread, bell_strike() only if the bell is armed. Any thread may call this, in any callback. */
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds calls until their results decide whether to send them, for filters that test a call's result or its duration.
 * An encoded call stays on the stack of its process (stack.h). A hidden call costs no ring, no batch and no wake-up. If
 * the filter may show a call, the node sends the call and then its result. The client has the same filter and the exact
 * times, and decides.
 *
 * A call is sent at once if no stack has room for it, or if the filter shows it whatever its result is. Its result is
 * then sent too. If the stacks do not know whether the call of a result was sent, or which call that was, the rate
 * decides about the result. Hidden and held calls count as in tally_waiting(). The rate applies only to events that are
 * sent; the bound on a thread's time applies to every call.
 *
 * Any thread calls these functions, in a callback of the traced process. hold_call(), hold_endless() and hold_result()
 * return true if the caller must send the event now. Otherwise the function has counted or held the event.
 */
#ifndef ETRACE_HOLD_H
#define ETRACE_HOLD_H

#include "tracer.h"
#include "gate.h"
#include "stack.h"
#include "verdict.h"

/* Makes the result of a call count as lost for the reason `why`, after gate_admits_waiting() has rejected the call. */
void hold_lost(ErlNifEnv *env, ERL_NIF_TERM process, const struct stack_function *f, enum etw_loss why);

/* Decides about a call. terms: encoded by lane->held, including the result of the match specification. */
bool hold_call(struct lane *lane, uint32_t rules, ERL_NIF_TERM process, const struct stack_function *f,
               const uint8_t *terms, size_t bytes);

/*
 * Decides about a call of a function that loops (owed.h), without waiting for its result. Hides the held calls of the
 * function in this process: their results never come, so a condition on the result does not hold.
 */
bool hold_endless(struct lane *lane, uint32_t rules, ERL_NIF_TERM process, const struct stack_function *f,
                  size_t bytes);

bool hold_result(ErlNifEnv *env, struct lane *lane, uint32_t rules, ERL_NIF_TERM process,
                 const struct stack_function *f, const struct verdict_end *end);

/*
 * Sends an event that happened at an earlier tick. The caller has counted it as seen, and has checked that the
 * ring has room.
 */
void hold_send(ErlNifEnv *env, struct lane *lane, ERL_NIF_TERM process, enum etw_kind kind, uint32_t flags,
               uint64_t tick, const struct encode_held *held);

#endif

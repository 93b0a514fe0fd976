/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds calls until their result decides whether to send both. This is for filters that test a call's result or its
 * duration. An encoded call stays on the stack of its process (stack.h). A hidden call costs no ring, no batch and no
 * wake-up. If the filter may show a call, it is sent with its result after it. The client has the same filter and the
 * exact times, and decides.
 *
 * A call is sent at once if no stack has room for it, or if the filter shows it whatever its result is. Its result is
 * then sent too. If the stacks do not know whether a call was sent, the rate decides about its result. Hidden and held
 * calls are counted with the figures (tally_waiting()). The rate applies only to events that are sent; the bound on a
 * thread's time applies to every call.
 *
 * Any thread calls these functions, in a callback of the traced process. Each returns whether the caller sends the
 * event now; if not, the function has counted or held it.
 */
#ifndef ETRACE_HOLD_H
#define ETRACE_HOLD_H

#include "tracer.h"
#include "gate.h"
#include "stack.h"

/* Remembers that gate_admits_waiting() rejected this call: its result is lost too, for the same reason. */
void hold_lost(ErlNifEnv *env, ERL_NIF_TERM process, const struct stack_function *f, enum etw_loss why);

/* Terms: encoded by lane->held, including the result of the match specification. */
bool hold_call(struct lane *lane, uint32_t rules, ERL_NIF_TERM process, const struct stack_function *f,
               const uint8_t *terms, size_t bytes);

/*
 * For a call of a function that does not return (owed.h). Its earlier calls in this process are hidden, because a
 * condition on a result that never comes does not hold. The filter decides about the new call without a result.
 */
bool hold_endless(struct lane *lane, uint32_t rules, ERL_NIF_TERM process, const struct stack_function *f, size_t bytes);

/* ETW_CLASSES: no exception, or one of unknown class. */
bool hold_result(ErlNifEnv *env, struct lane *lane, uint32_t rules, ERL_NIF_TERM process,
                 const struct stack_function *f, enum etw_class class);

#endif

/*
 * Calls that wait for their result: where a filter asks how a call ended or how long it took, the call is kept on the stack of its
 * process (stack.h), encoded, until its result decides. What is hidden costs no ring, no batch and no wake-up; what may be shown
 * is sent as both were, one behind the other, and the client, which has the same filter and the exact times, decides.
 *
 * A call that finds no room is sent at once, as is one that the filter shows whatever comes of it: then its result is, too; by the
 * rate where nobody remembers whether the call was. What is hidden and what waits is told with the figures (tally_waiting()). The
 * rate is for what is sent, the time that events may take for every call.
 *
 * Any thread, in a callback of that process. Each returns whether the event is to be sent now; else it has been accounted for.
 */
#ifndef ETRACE_HOLD_H
#define ETRACE_HOLD_H

#include "tracer.h"
#include "session.h"
#include "stack.h"

/* A call that session_admits_waiting() turned away: its result is lost, too, by the same reason. */
void hold_lost(ErlNifEnv *env, ERL_NIF_TERM process, const struct stack_function *f, enum etw_loss why);

/* Terms: as e, whose words are set, has encoded them, with what its match specification says. */
bool hold_call(struct lane *lane, uint32_t rules, ERL_NIF_TERM process, const struct stack_function *f, const uint8_t *terms, size_t bytes);

/*
 * The function does not return (owed.h). Calls of this process that wait for its result are hidden, as a condition on a result
 * that never comes does not hold. The new call is decided about without a result.
 */
bool hold_endless(struct lane *lane, uint32_t rules, ERL_NIF_TERM process, const struct stack_function *f, size_t bytes);

/* ETW_CLASSES: it did not fail, or in no way that has a name. */
bool hold_result(ErlNifEnv *env, struct lane *lane, uint32_t rules, ERL_NIF_TERM process, const struct stack_function *f, enum etw_class class);

#endif

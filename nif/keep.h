/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps events inside of a root (inside.h) until the root's result decides whether to send them.
 *
 * The session's filter (verdict.h) decides about the results of roots. If the filter rejects the outermost root of a
 * process, only the events inside of accepted inner roots are sent. Events that are not sent count as hidden, as held
 * calls do (hold.h). TALLY_OPEN counts the outermost roots that are open. The filter uses the durations by the node's
 * clock, and the client does not decide again.
 *
 * Any thread calls these functions, in a callback of the process, with room for an event in its ring.
 */
#ifndef ETRACE_KEEP_H
#define ETRACE_KEEP_H

#include "inside.h"
#include "tracer.h"
#include "verdict.h"

/* An event that lane->held has encoded. terms: the encoded terms, without the function. */
struct keep_event {
    struct stack_function function; /* not set if `bare` */
    enum etw_kind kind;
    const uint8_t *terms;
    size_t bytes; /* of the terms */
    bool bare;    /* the event has no function */
    bool roots;   /* the event is the call of an outermost root */
};

/* Adds an event to a tree and counts it as hidden. */
void keep_event(struct lane *lane, struct tree *t, const struct keep_event *k);

/*
 * Marks the events of an inner root for sending if the filter accepts its result. The caller has called keep_event()
 * for that result.
 */
void keep_inner(struct tree *t, const struct inside_closed *closed, uint64_t tick, const struct verdict_end *end);

/*
 * Ends an outermost root: sends the events of its tree, or the marked events, and frees the tree. Returns true if the
 * caller must send the result of the root; otherwise this function has counted the result.
 */
bool keep_end(ErlNifEnv *env, struct lane *lane, uint32_t rules, ERL_NIF_TERM process,
              const struct inside_closed *closed, const struct verdict_end *end);

#endif

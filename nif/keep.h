/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps events inside of a root (inside.h) until the root's result decides whether to send them.
 *
 * The session's filter (verdict.h) decides about the results of roots. If it rejects the outermost root of a process,
 * only the trees of inner roots that it accepts are sent. Events that are not sent count as hidden, like those of held
 * calls (hold.h); `open` is the number of outermost roots. The clock of the node decides, and the client does not
 * decide again.
 *
 * Any thread calls these functions, in a callback of the process, with room for an event in its ring.
 */
#ifndef ETRACE_KEEP_H
#define ETRACE_KEEP_H

#include "inside.h"
#include "tracer.h"
#include "verdict.h"

/* An event that lane->held has encoded. terms: without the function. */
struct keep_event {
    struct stack_function function; /* unless `bare` */
    enum etw_kind kind;
    const uint8_t *terms;
    size_t bytes;
    bool bare;
    bool roots; /* the call of an outermost root */
};

void keep_event(struct lane *lane, struct tree *t, const struct keep_event *k);

/*
 * Chooses the tree of an inner root for sending if the filter accepts its result. Call it after keep_event() for that
 * result.
 */
void keep_inner(struct tree *t, const struct inside_closed *closed, uint64_t tick, const struct verdict_end *end);

/*
 * Ends an outermost root: sends its tree, or a part of the tree, and frees it. Returns true if the caller must send
 * the result; otherwise this function has counted the result.
 */
bool keep_end(ErlNifEnv *env, struct lane *lane, uint32_t rules, ERL_NIF_TERM process,
              const struct inside_closed *closed, const struct verdict_end *end);

#endif

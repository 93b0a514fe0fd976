/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers what the expressions matched when the nodes were armed, and says what they did not match. */
#ifndef ETRACE_MATCHES_H
#define ETRACE_MATCHES_H

#include "../node/arm.h"
#include "../pipeline/pipeline.h"
#include "ctx.h"
#include "exprs.h"

struct matches {
    const struct exprs *exprs;
    /*
     * For each probe, the reason why it matched no function when it was armed. Status 0: it matched a function, or the
     * node gave no reason.
     */
    struct err *missing;
    struct buf loaded; /* the modules that were loaded for the trace on the first node that lacked some, as text */
};

void matches_release(struct matches *m);
/* Takes the answer of a node. `started`: the node has just started, so it has loaded little. */
void matches_take(struct matches *m, const struct arm_result *result, bool started);
/* Appends the line about a node: its name, its OTP release, and how much is traced there. */
void matches_put(const struct matches *m, const struct session_node *node, const struct arm_result *result,
                 struct buf *b);
/*
 * Warns of each probe that selected no function when it was armed, and had no event later. `hint`: what may help, or
 * "".
 */
void matches_warn(const struct matches *m, struct ctx *ctx, const struct pipeline *p, const char *hint);
/*
 * Says which expressions had no event, and why, if that is known: the functions or roots were not called, or no call
 * matched. If only functions were traced and no call matched, *ret_unmatched gets their selectors; NULL: not wanted.
 */
void matches_say_silent(const struct matches *m, struct ctx *ctx, const struct pipeline *p, const struct totals *t,
                        bool some_processes, struct buf *ret_unmatched);

#endif

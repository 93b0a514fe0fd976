/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the last lines of a trace to standard error: how many events it showed, and all other figures that are not
 * zero.
 */
#ifndef ETRACE_OUTCOME_H
#define ETRACE_OUTCOME_H

#include "../pipeline/pipeline.h"
#include "ctx.h"

void outcome_node(struct ctx *ctx, const struct totals_node *n); /* prints the line for one of several nodes */

/*
 * Prints the summary. took_ms: for how long the trace ran; negative: no node was traced. end: the result of
 * live_session_end().
 */
void outcome_trace(struct ctx *ctx, const struct totals *t, int64_t took_ms, const char *end);

/* If no event was shown, says which conditions have rejected events, and how near the events came. */
void outcome_rejections(struct ctx *ctx, const struct pipeline *p);

#endif

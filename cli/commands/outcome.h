/*
 * The last lines of a trace, on standard error: how many events it showed, and of everything else only what is not zero.
 */
#ifndef ETRACE_OUTCOME_H
#define ETRACE_OUTCOME_H

#include "../views/sink.h"
#include "ctx.h"

void outcome_node(struct ctx *ctx, const struct totals_node *n); /* one of several */

/* took_ms: how long events were shown; negative: no node was ever traced. end: how the sessions ended; NULL: in the usual way. */
void outcome_trace(struct ctx *ctx, const struct totals *t, int64_t took_ms, const char *end);

#endif

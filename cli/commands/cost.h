/*
 * What tracing would cost the node, looked at before it begins: a wildcard that takes functions which a busy node calls all the
 * time is measured first.
 */
#ifndef ETRACE_COST_H
#define ETRACE_COST_H

#include "../node/arm.h"
#include "ctx.h"

#define COST_MOST 100000 /* calls a second that are traced without --force */

/* Says the rates that a node has counted for these functions (ARM_COUNT). False: too many calls, with status ERR_GUARD, or it cannot be read. */
bool cost_judge(struct ctx *ctx, const char *node, uint64_t functions, struct etf answer, struct err *e);

#endif

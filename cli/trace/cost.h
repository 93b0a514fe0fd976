/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges what tracing would cost the node, before it begins. If a wildcard selects functions that a busy node calls all
 * the time, the node first counts their calls.
 */
#ifndef ETRACE_COST_H
#define ETRACE_COST_H

#include "../node/arm.h"
#include "ctx.h"

#define COST_MOST 100000 /* calls a second; more need --force */

/*
 * Reports the call rates that a node has counted for these functions (ARM_COUNT). False: too many calls (ERR_GUARD), or
 * the answer is malformed.
 */
bool cost_judge(struct ctx *ctx, const char *node, uint64_t functions, struct etf answer, struct err *e);

#endif

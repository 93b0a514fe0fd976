/*
 * What tracing would cost the node, looked at before it begins: a wildcard that takes functions which a busy node calls all the
 * time is measured first.
 */
#ifndef ETRACE_COST_H
#define ETRACE_COST_H

#include "../node/arm.h"
#include "question.h"
#include "ctx.h"

#define COST_MOST 100000 /* calls a second that are traced without --force */

/* Measures the functions that ARM_SELECT found busy for a second and says the rate. False: refused, with status ERR_GUARD, or the node did not answer. */
bool cost_measure(struct ctx *ctx, struct question *ask, const char *node, uint64_t functions, struct str asked, struct err *e);

#endif

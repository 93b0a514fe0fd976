/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles the part of `where` that the node can evaluate: comparisons of a call's duration, class and size with
 * constants, combined with and, or, xor and not. The steps (struct etw_filter_step) give the same verdict as where.h,
 * except for the precision of the clocks.
 */
#ifndef ETRACE_WHERE_STEPS_H
#define ETRACE_WHERE_STEPS_H

#include "../ground/buf.h"
#include "../lang/spec.h"

/* Appends steps that test all conditions. False: the node cannot evaluate them all; ignore what was appended. */
bool where_steps(const struct where *const *wheres, size_t n, struct buf *ret_steps);

/* Appends steps for those parts of the conjunction that the node can evaluate. An event that fails them would fail the
 * whole. False: none. */
bool where_steps_some(const struct where *const *wheres, size_t n, struct buf *ret_steps);

/* True if the steps test the size of events, so the node must capture them. */
bool where_steps_measure(struct str steps);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles the part of `where` that the node can evaluate: comparisons of a call's duration, class and size with
 * constants, and tests of its result (a pattern, a constant, a type), combined with and, or, xor and not. The filter
 * gives the same verdict as where.h, except for the precision of the clocks, and that the node has the whole result.
 *
 * A filter is an encoded {Steps, Programs} (struct etw_filter_step). Empty: there is none.
 */
#ifndef ETRACE_WHERE_STEPS_H
#define ETRACE_WHERE_STEPS_H

#include "../ground/buf.h"
#include "spec.h"

/* Sets the filter to one that tests all conditions. False: the node cannot evaluate them all. */
bool where_steps(const struct where *const *wheres, size_t n, struct buf *ret_filter);

/* As where_steps(), for events that the node does not encode. False: also if the filter tests the size of events. */
bool where_steps_of_ends(const struct where *const *wheres, size_t n, struct buf *ret_filter);

/* Sets the filter to those parts of the conjunction that the node can evaluate. An event that fails them would fail the
 * whole. False: none. */
bool where_steps_some(const struct where *const *wheres, size_t n, struct buf *ret_filter);

/* True if the filter tests the size of events, so the node must capture them. */
bool where_steps_measure(struct str filter);

/* Returns the steps of a filter. */
struct str where_steps_view(struct str filter);

#endif

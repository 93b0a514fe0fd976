/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles the part of `where` that the node can evaluate: comparisons of a call's duration, class and size with
 * constants, and tests of its result (a pattern, a constant, a type), combined with and, or, xor and not. The filter
 * gives the same verdict as pipeline/where.h, with two exceptions: the clocks differ in precision, and the node has the
 * whole result.
 *
 * A filter is an encoded {Steps, Programs} (struct etw_filter_step); it is empty if there is nothing to test.
 */
#ifndef ETRACE_WHERE_STEPS_H
#define ETRACE_WHERE_STEPS_H

#include "../ground/buf.h"
#include "spec.h"

/* Sets *ret_filter to a filter that tests all conditions. Returns false if the node cannot evaluate all of them. */
bool where_steps(const struct where *const *wheres, size_t n, struct buf *ret_filter);

/*
 * Works like where_steps(), but also returns false if the filter tests the size of events. Use it for events that the
 * node only counts: it does not encode such events, so it does not know their size.
 */
bool where_steps_of_ends(const struct where *const *wheres, size_t n, struct buf *ret_filter);

/*
 * Sets *ret_filter to a filter of the parts of the conjunction that the node can evaluate. An event that fails the
 * filter also fails the conjunction. Returns false if the node can evaluate no part.
 */
bool where_steps_some(const struct where *const *wheres, size_t n, struct buf *ret_filter);

/* Returns true if the filter tests the size of events, so that the node must encode them. */
bool where_steps_measure(struct str filter);

/* Returns the steps of a filter. */
struct str where_steps_view(struct str filter);

#endif

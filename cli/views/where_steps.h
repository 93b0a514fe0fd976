/*
 * A `where` as the node can decide it: tests of a call's duration, class and size against constants, with and, or, xor, not.
 * The steps (struct etw_filter_step) say what where.h says of the same event, where durations differ by nothing but the precision
 * of the clocks.
 */
#ifndef ETRACE_WHERE_STEPS_H
#define ETRACE_WHERE_STEPS_H

#include "../ground/buf.h"
#include "../lang/spec.h"

/* Appends the steps for all of them holding; false: the node cannot decide that, and what was appended means nothing. */
bool where_steps(const struct where *const *wheres, size_t n, struct buf *ret_steps);

/* The same for those parts, all of which must hold, that the node can decide: nothing for which they fail is shown. False: none. */
bool where_steps_some(const struct where *const *wheres, size_t n, struct buf *ret_steps);

/* Whether they ask for the size of events, which then have to be captured. */
bool where_steps_measure(struct str steps);

#endif

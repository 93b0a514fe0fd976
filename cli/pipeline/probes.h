/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assigns events to specs, and unpacks the results of match specifications (event.ms).
 *
 * If several specs share a function, the node marks the event with the specs that it answers. If there are several, the
 * event gets a combined spec (combo.h). An event without a mark gets the spec that fits best, even if only the node can
 * tell whether a selector matches (by application or behaviour).
 */
#ifndef ETRACE_PROBES_H
#define ETRACE_PROBES_H

#include "../events/event.h"
#include "../lang/spec.h"
#include "combo.h"

struct probes;

/* Borrows all arguments. `specs` may be NULL if n is 0. */
struct probes *probes_new(const struct spec *const *specs, size_t n, struct combos *combos);
void probes_free(struct probes *p);

/* Returns the event's spec; NULL: unknown. Removes the node's mark from event.ms. */
const struct spec *probes_find(struct probes *p, struct event *e);

/*
 * Returns the event kinds that the specs request; bit K stands for kind K. The bits of kinds that are no @event, such
 * as calls, are always set. All bits are set if the specs request no @event, or if an action may enable further events.
 */
uint64_t probes_kinds(const struct spec *const *specs, size_t n);

/* Returns true if an action of the spec can set trace flags, which enable events that no expression names. */
bool probes_switches(const struct spec *s);

/*
 * Returns true if the specs request @events and this event is not a requested one. Such events come because a trace
 * flag of the VM enables several kinds of events.
 */
bool probes_unasked(const struct probes *p, const struct event *e);

/*
 * Sets caller, stack, dump, user, sender and sender_node of the event from event.ms. May replace event.ms by bytes that
 * are valid until the next event. `s` may be NULL.
 */
void probes_unpack(struct probes *p, const struct spec *s, struct event *e);
/* Sets the same members of the event from `at`, a term that the match specification of `s` has collected. */
void probes_collected(const struct spec *s, struct event *e, const uint8_t *at);

/*
 * Sets by_arity and args_shown of a call from the clause that matched. Works before and after probes_unpack(). `s` may
 * be NULL.
 */
void probes_project(const struct spec *s, struct event *e);

/*
 * Returns 0 if a call reports no result, 1 if it reports its result, 2 if this is unknown. For a result, the answer is
 * about calls of the same function.
 */
int probes_wants_return(struct probes *p, const struct event *e);

/* Returns true if calls of this spec may report their results. */
bool probes_reports(const struct spec *s);

#endif

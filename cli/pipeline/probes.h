/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assigns events to specs, and unpacks the results of match specifications.
 *
 * If several specs share a function, the node marks which of them an event answers; the event then gets a combined spec
 * (combo.h). Without such a mark, an event may get a spec although only the node could tell whether it matches (a
 * selector by application or behaviour).
 */
#ifndef ETRACE_PROBES_H
#define ETRACE_PROBES_H

#include "../events/event.h"
#include "../lang/spec.h"
#include "combo.h"

struct probes;

/* Borrows all arguments. specs may be NULL with n 0. */
struct probes *probes_new(const struct spec *const *specs, size_t n, struct combos *combos);
void probes_free(struct probes *p);

/* Returns the event's spec; NULL: unknown. Removes the node's mark from the event's ms. */
const struct spec *probes_find(struct probes *p, struct event *e);

/*
 * Returns the event kinds that the specs request; bit K stands for kind K. A kind without an @event of its own, such as
 * a call, is always set. All kinds are set if the specs request no @event, or if an action may enable further events.
 */
uint64_t probes_kinds(const struct spec *const *specs, size_t n);

/* Returns true if an action of the spec can enable trace flags in the VM, and thus events that no expression names. */
bool probes_switches(const struct spec *s);

/*
 * Returns true if @events were requested and this event is none of them. Such events come because a trace flag of the
 * VM enables a whole family of events.
 */
bool probes_unasked(const struct probes *p, const struct event *e);

/*
 * Sets caller, stack, dump, user, sender and sender_node of the event. The event's ms is valid until the next event.
 * `s` may be NULL.
 */
void probes_unpack(struct probes *p, const struct spec *s, struct event *e);
/* Sets the same fields from a term that a match specification of this spec has collected. */
void probes_collected(const struct spec *s, struct event *e, const uint8_t *at);

/*
 * Sets by_arity and args_shown of a call from the clause that matched. Works before and after probes_unpack(). `s` may
 * be NULL.
 */
void probes_project(const struct spec *s, struct event *e);

/* Returns whether a call (for a result: a call of its function) reports its result: 0 no; 1 yes; 2 perhaps. */
int probes_wants_return(struct probes *p, const struct event *e);

/* Returns true if calls of this spec may report their results. */
bool probes_reports(const struct spec *s);

#endif

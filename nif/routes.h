/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of events that trace/5 does not simply send: those of the routes (enum gate_route), of the roots of
 * `inside`, of the trigger of the flight recorder, and of requests. tracer.c calls them in their order; most events
 * take none.
 *
 * Any thread calls these functions, in a callback of the tracee.
 */
#ifndef ETRACE_ROUTES_H
#define ETRACE_ROUTES_H

#include "requests.h"
#include "traced.h"

/*
 * Counts owed results if only some calls owe one (RULE_OWES). Returns false if the call must not be shown, because it
 * is armed only so that its result is counted.
 */
bool routes_count_owing(const struct traced *t);

/*
 * Under RULE_TRIGGER, remembers when a call began, and asks for a snapshot if the filter accepts a result. This does
 * not depend on room in the ring: calls that were lost count, too.
 */
void routes_trigger(const struct traced *t);

/* On ROUTE_TALLY, counts a call or a result by its function. The event need not have the arguments. */
void routes_tally(const struct traced *t);

/* On ROUTE_BY, counts an event in the row of its key. Returns false if the event must be sent instead. */
bool routes_count(const struct traced *t);

/*
 * Under RULE_INSIDE and on ROUTE_TREES: returns true if the event goes on. Otherwise the event is outside of every
 * root, waits for the result of its root, or is lost. *ret_admitted: the rate has already admitted the event with its
 * tree.
 */
bool routes_inside(const struct traced *t, bool *ret_admitted);

/* On ROUTE_HOLD: returns true if a call or a result must be sent now, and otherwise holds or counts it. */
bool routes_hold(const struct traced *t);

/* Under RULE_REQUESTS: the first function admits an event if its request is sent, the second one encodes the event. */
bool routes_admit_request(const struct traced *t, const struct requests_read *read);
uint8_t *routes_put_request(const struct traced *t, struct encoder *e, uint8_t *at, const struct requests_read *read);

#endif

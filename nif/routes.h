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
 * Counts owed results if only some calls owe one (RULE_OWES). False: the call is armed only so that its result is
 * counted, and must not be shown.
 */
bool routes_count_owing(const struct traced *t);

/*
 * Under RULE_TRIGGER, remembers when a call began, and asks for a snapshot if the filter accepts a result. This does
 * not depend on room in the ring: calls that were lost count, too.
 */
void routes_trigger(const struct traced *t);

/* On ROUTE_TALLY, counts a call or a result by its function. The event need not have the arguments. */
void routes_tally(const struct traced *t);

/* On ROUTE_BY, counts an event in the row of its key. False: it must be sent instead. */
bool routes_count(const struct traced *t);

/*
 * Under RULE_INSIDE and on ROUTE_TREES: whether the event goes on. If not, it is outside of every root, or it waits for
 * the result of its root. Admitted: it is sent with its tree, which the rate has admitted.
 */
bool routes_inside(const struct traced *t, bool *ret_admitted);

/* On ROUTE_HOLD: whether to send a call or a result now. */
bool routes_hold(const struct traced *t);

/* Under RULE_REQUESTS: whether the request that the event belongs to is sent, and the encoding of the event. */
bool routes_admit_request(const struct traced *t, const struct requests_read *read);
uint8_t *routes_put_request(const struct traced *t, struct encoder *e, uint8_t *at, const struct requests_read *read);

#endif

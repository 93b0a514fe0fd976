/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles the events that trace/5 does not simply send: events of a route other than ROUTE_SEND (enum gate_route),
 * events inside of roots, results that trigger a snapshot, and events of requests. tracer.c calls these functions; most
 * events need none of them.
 *
 * Any thread calls these functions, in a callback of the tracee.
 */
#ifndef ETRACE_ROUTES_H
#define ETRACE_ROUTES_H

#include "requests.h"
#include "traced.h"

/*
 * Counts owed results if only some calls owe a result (RULE_OWES). Returns false if the call must not be shown, because
 * it is traced only for counting its result.
 */
bool routes_count_owing(const struct traced *t);

/*
 * Under RULE_TRIGGER: remembers when a call began, and requests a snapshot if the filter accepts a result. A call or
 * result that is then lost can also request a snapshot.
 */
void routes_trigger(const struct traced *t);

/* On ROUTE_TALLY, counts a call or a result by its function. The event need not have the arguments. */
void routes_tally(const struct traced *t);

/* On ROUTE_BY, counts an event in the row of its key. Returns false if the event must be sent instead. */
bool routes_count(const struct traced *t);

/*
 * Under RULE_INSIDE and on ROUTE_TREES: returns true if the caller must count or send the event. Otherwise the event is
 * outside of every root, waits for the result of its root, or is lost. *ret_admitted: the rate has admitted the event
 * together with its tree, so the caller must not charge it again.
 */
bool routes_inside(const struct traced *t, bool *ret_admitted);

/* On ROUTE_HOLD: returns true if a call or a result must be sent now, and otherwise holds or counts it. */
bool routes_hold(const struct traced *t);

/*
 * Under RULE_REQUESTS: routes_admit_request() admits or rejects an event together with its request, and
 * routes_put_request() encodes the event.
 */
bool routes_admit_request(const struct traced *t, const struct requests_read *read);
uint8_t *routes_put_request(const struct traced *t, struct encoder *e, uint8_t *at, const struct requests_read *read);

#endif

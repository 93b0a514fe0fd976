/*
 * --expect and --fail-on: conditions about a whole run, looked at with every event that is shown. A call whose result
 * decides is decided when that comes, as with a filter; what cannot be evaluated for an event does not hold for it.
 */
#ifndef ETRACE_ASSERT_H
#define ETRACE_ASSERT_H

#include "../ground/buf.h"
#include "where.h"

struct asserts;

/* The expressions are borrowed; there may be none. NULL: e is filled. */
struct asserts *asserts_new(const struct where *const *expects, size_t nexpects, const struct where *const *fails, size_t nfails,
                            struct err *e);
void asserts_free(struct asserts *a); /* accepts NULL */

void asserts_event(struct asserts *a, const struct event *e);

/* Nothing that comes can change the outcome: one of `fails` held, or every expectation is met and there are no `fails`. */
bool asserts_decided(const struct asserts *a);

/* Which of `fails` held first, and the event's line; false: none. */
bool asserts_failed(const struct asserts *a, size_t *ret_index, struct str *ret_line);
bool asserts_met(const struct asserts *a, size_t expect);

#endif

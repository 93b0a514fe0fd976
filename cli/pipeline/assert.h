/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --expect and --fail-on: conditions on a whole run, evaluated for every shown event. A condition on a call's result is
 * evaluated when the result arrives, as in a filter. A condition that cannot be evaluated for an event does not hold
 * for it.
 */
#ifndef ETRACE_ASSERT_H
#define ETRACE_ASSERT_H

#include "../ground/buf.h"
#include "where.h"

struct asserts;

/* The expressions are borrowed; both lists may be empty. NULL: e is filled. */
struct asserts *asserts_new(const struct where *const *expects, size_t nexpects, const struct where *const *fails,
                            size_t nfails, struct err *e);
void asserts_free(struct asserts *a); /* accepts NULL */

void asserts_event(struct asserts *a, const struct event *e);

/* True if no later event can change the outcome: one of `fails` held, or every expectation is met and there are no
 * `fails`. */
bool asserts_decided(const struct asserts *a);

/* The index of the first of `fails` that held, and the line of its event. False: none held. */
bool asserts_failed(const struct asserts *a, size_t *ret_index, struct str *ret_line);
bool asserts_met(const struct asserts *a, size_t expect);

#endif

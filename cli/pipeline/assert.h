/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --expect and --fail-on: conditions on a whole run, evaluated for every shown event, or for every key of a table. A
 * condition on a call's result is evaluated when the result arrives, as in a filter. A condition that cannot be
 * evaluated for an event does not hold for it.
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

/*
 * A trigger is one condition whose events are counted, and decides nothing. A condition on rows is evaluated for each
 * row that changes, and counts once until asserts_take_held().
 */
struct asserts *asserts_new_trigger(const struct where *condition, struct err *e);
/* How many events the condition held for since the last call. */
uint64_t asserts_take_held(struct asserts *a);

void asserts_event(struct asserts *a, const struct event *e);

/*
 * Conditions on rows (count > 10) are evaluated when a row changes, if what holds then holds at the end, too. The
 * others are evaluated at the end, for each key. The row of further keys is no key.
 */
void asserts_row(struct asserts *a, const struct groups *table, const struct group *row);
void asserts_end(struct asserts *a, struct groups *const *tables, size_t n);

/* Whether a table has each aggregate of the conditions on rows. False: e names one that none has. */
bool asserts_fit(const struct where *const *conditions, size_t n, const struct spec_by *const *clauses, size_t nclauses,
                 struct err *e);
uint64_t asserts_unjudged(const struct asserts *a); /* events whose keys were not evaluated: they have no row */

/* True if no later event can change the outcome: one of `fails` held, or every expectation is met and there are no
 * `fails`. */
bool asserts_decided(const struct asserts *a);

/* The index of the first of `fails` that held, and the line of its event. False: none held. */
bool asserts_failed(const struct asserts *a, size_t *ret_index, struct str *ret_line);
bool asserts_met(const struct asserts *a, size_t expect);
bool asserts_of_rows(const struct asserts *a, size_t expect);

#endif

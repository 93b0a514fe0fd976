/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates --expect and --fail-on: conditions on a whole run, tested for every shown event, or for every key of a
 * table. A condition on a call's result is tested when the result arrives, as in a filter. A condition that cannot be
 * decided for an event does not hold for it.
 */
#ifndef ETRACE_ASSERT_H
#define ETRACE_ASSERT_H

#include "../ground/buf.h"
#include "where.h"

struct asserts;

/* Borrows the expressions; both lists may be empty. NULL: e is filled. */
struct asserts *asserts_new(const struct where *const *expects, size_t nexpects, const struct where *const *fails,
                            size_t nfails, struct err *e);
void asserts_free(struct asserts *a); /* accepts NULL */

/*
 * Makes a trigger: one condition. It only counts the events for which the condition holds. A condition on rows is
 * tested for each row that changes, and a row counts once until asserts_take_held().
 */
struct asserts *asserts_new_trigger(const struct where *condition, struct err *e);
/* Returns the number of events for which the condition has held since the last call. */
uint64_t asserts_take_held(struct asserts *a);

void asserts_event(struct asserts *a, const struct event *e);

/*
 * Tests conditions on rows (count > 10). asserts_row() tests the conditions that hold to the end once they hold, when a
 * row changes. asserts_end() tests the others for each key. The row of all further keys (`other`) is not tested.
 */
void asserts_row(struct asserts *a, const struct groups *table, const struct group *row);
void asserts_end(struct asserts *a, struct groups *const *tables, size_t n);

/*
 * Returns true if the tables have the aggregates of all conditions on rows. After false, e names an aggregate that no
 * table has.
 */
bool asserts_fit(const struct where *const *conditions, size_t n, const struct spec_by *const *clauses, size_t nclauses,
                 struct err *e);
/* Returns the number of events in the row of further keys, which is not tested. */
uint64_t asserts_unjudged(const struct asserts *a);

/*
 * Returns true if no later event can change the outcome: one of `fails` has held, or every expectation is met and there
 * are no `fails`.
 */
bool asserts_decided(const struct asserts *a);

/* Returns true if one of `fails` has held, with the index of the first and the line of its event. */
bool asserts_failed(const struct asserts *a, size_t *ret_index, struct str *ret_line);
bool asserts_met(const struct asserts *a, size_t expect);
bool asserts_of_rows(const struct asserts *a, size_t expect);

#endif

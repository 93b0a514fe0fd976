/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates --expect and --fail-on. Their conditions are tested for every shown event, or for every row of a table of
 * `by`. A condition on a call's result is tested when the result arrives, as in a filter. If an event lacks the data
 * for a condition, the condition does not hold for the event.
 */
#ifndef ETRACE_ASSERT_H
#define ETRACE_ASSERT_H

#include "../ground/buf.h"
#include "where.h"

struct asserts;

/* Borrows the expressions; both lists may be empty. Returns NULL and sets *e if a pattern is malformed. */
struct asserts *asserts_new(const struct where *const *expects, size_t nexpects, const struct where *const *fails,
                            size_t nfails, struct err *e);
void asserts_free(struct asserts *a); /* accepts NULL */

/*
 * Makes a trigger: a single condition, which only counts the events for which it holds. A condition on rows is tested
 * for each row that changes, and counts at most once between two calls of asserts_take_held().
 */
struct asserts *asserts_new_trigger(const struct where *condition, struct err *e);
/* Returns how often the condition of a trigger has held since the last call. */
uint64_t asserts_take_held(struct asserts *a);

void asserts_event(struct asserts *a, const struct event *e);

/*
 * Test the conditions on rows (count > 10). asserts_row(), for a row that has changed, tests only the conditions that
 * stay true once they are true. asserts_end() tests all conditions for each row of the tables. Neither tests the row
 * `other`, which counts the events whose keys had no room in the table.
 */
void asserts_row(struct asserts *a, const struct groups *table, const struct group *row);
void asserts_end(struct asserts *a, struct groups *const *tables, size_t n);

/*
 * Returns true if the clauses `by` have the aggregates of all conditions on rows. Otherwise *e names an aggregate that
 * no clause has.
 */
bool asserts_fit(const struct where *const *conditions, size_t n, const struct spec_by *const *clauses, size_t nclauses,
                 struct err *e);
/*
 * Returns the number of events in `other` rows, which are not tested. Returns 0 if neither --fail-on nor an unmet
 * --expect has a condition on rows.
 */
uint64_t asserts_unjudged(const struct asserts *a);

/*
 * Returns true if no later event can change the outcome: a condition of --fail-on has held, or all of --expect are met
 * and there is no --fail-on.
 */
bool asserts_decided(const struct asserts *a);

/*
 * Returns true if a condition of --fail-on has held. Sets the index of the first one that has held, and the line of its
 * event or row.
 */
bool asserts_failed(const struct asserts *a, size_t *ret_index, struct str *ret_line);
bool asserts_met(const struct asserts *a, size_t expect);
bool asserts_of_rows(const struct asserts *a, size_t expect);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts events by the keys of `by`: evaluates the keys and values of an event, and adds them to the table of each
 * clause (fold/group_table.h).
 *
 * A call and its result count as one event. The event counts when the call comes; a value that depends on the result is
 * added when the result comes. If a key depends on the result, the event counts only when the result comes, and a call
 * without a result does not count.
 */
#ifndef ETRACE_GROUPING_H
#define ETRACE_GROUPING_H

#include "../fold/group_table.h"
#include "where.h"

struct grouping;

/* `all` is a clause that counts every event, in addition to the clauses of the specs. Borrowed; may be NULL. */
struct grouping *grouping_new(const struct spec_by *all);
void grouping_free(struct grouping *g);

/* Announces specs, which must live as long as the grouping. Their tables exist from then on, even without events. */
bool grouping_specs(struct grouping *g, const struct spec *const *specs, size_t n, struct err *e);

bool grouping_is_empty(const struct grouping *g); /* returns true if nothing is counted */
bool grouping_pairs(const struct grouping *g);    /* returns true if results need their calls */

/* A row that the latest event has changed. */
struct grouping_row {
    const struct groups *table;
    const struct group *row;
};

/*
 * Adds a shown event. `before` is the spec with which the event was added before; NULL: it was not. The event counts
 * once in each table, so it counts only in the tables that `before` does not have. Returns the number of rows that the
 * event changed. *ret_rows is valid until the next event.
 */
size_t grouping_event(struct grouping *g, const struct event *e, const struct spec *before,
                      const struct grouping_row **ret_rows);

/* Adds a row that a node has counted (ETW_ROW). Returns the number of changed rows: 0 for a malformed row. */
size_t grouping_add_row(struct grouping *g, const struct event *e, const struct grouping_row **ret_rows);

void grouping_clear(struct grouping *g); /* clears all tables */

struct groups *const *grouping_tables(const struct grouping *g, size_t *ret_n);

#endif

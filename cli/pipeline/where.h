/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates `where` expressions for events. The value of an expression is a term or one of three special values, which
 * `and`, `or` and `not` combine logically:
 *
 *   - later: the result of the call will decide.
 *   - unknown: the event lacks the data to decide. A term was cut, elided or redacted, the type of a term is unknown to
 *     this etrace, a number has more than 64 bits, or the call of a result was lost.
 *   - failed: a guard would fail, as hd() of a number does, or an argument does not exist. The whole condition is then
 *     false.
 *
 * If the condition of an event remains unknown, the filter shows the event, and counts it as undecided.
 */
#ifndef ETRACE_PIPELINE_WHERE_H
#define ETRACE_PIPELINE_WHERE_H

#include "../fold/group_table.h"
#include "../lang/value.h"
#include "filter.h"

struct wheres; /* state of all evaluations: compiled patterns, constants, scratch memory */

struct wheres *wheres_new(enum terms_style style);
void wheres_free(struct wheres *w);

/*
 * Compiles the regular expressions in an expression. Call it before where_holds(). Returns false and sets *e if a
 * regular expression is malformed.
 */
bool wheres_prepare(struct wheres *w, const struct where *expr, struct err *e);

enum filter_verdict where_holds(struct wheres *w, const struct where *expr, const struct event *e);

/* Returns true if a condition on rows (where_is_of_rows()) holds for this row of the table. */
bool where_holds_for(struct wheres *w, const struct where *expr, const struct groups *table, const struct group *row);

/* Returns how often a regular expression exceeded its limits. The test then counts as true. */
uint64_t wheres_errors(const struct wheres *w);

/* Returns the value of an expression, valid until the next evaluation. */
struct value where_value_of(struct wheres *w, const struct where *expr, const struct event *e);

#endif

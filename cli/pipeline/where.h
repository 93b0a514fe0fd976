/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates `where` expressions for events. A result is a term or one of three special values, which `and`, `or` and
 * `not` combine logically:
 *
 *   - later: the result of the call will decide.
 *   - unknown: the event lacks the data to decide: a term was cut, elided or redacted, its type is unknown here, a
 *     number has more than 64 bits, or the call of a result was lost.
 *   - failed: a guard would fail, as hd() of a number does, or an argument does not exist. The whole condition is then
 *     false.
 *
 * A filter shows an event whose condition remains unknown, and counts it.
 */
#ifndef ETRACE_PIPELINE_WHERE_H
#define ETRACE_PIPELINE_WHERE_H

#include "../fold/group_table.h"
#include "filter.h"

struct wheres; /* state shared by evaluations: compiled patterns, constants, scratch memory */

struct wheres *wheres_new(enum terms_style style);
void wheres_free(struct wheres *w);

/* Compiles the patterns in an expression. False: a pattern is wrong, and e is filled. Call it before where_holds(). */
bool wheres_prepare(struct wheres *w, const struct where *expr, struct err *e);

enum filter_verdict where_holds(struct wheres *w, const struct where *expr, const struct event *e);

/* The same for a condition on the rows of a table (where_is_of_rows()). */
bool where_holds_for(struct wheres *w, const struct where *expr, const struct groups *table, const struct group *row);

/* number of patterns that exceeded their limits; such events are shown */
uint64_t wheres_errors(const struct wheres *w);

/* ---- values: between where.c, where_fn.c and grouping.c ---- */

/* An encoded term, or a special value. */
struct value {
    enum { VALUE_TERM, VALUE_FAILED, VALUE_LATER, VALUE_UNKNOWN } state;
    bool never; /* the value is not known, but it is not true */
    const uint8_t *at;
    const struct term_env *env;
};

#define VALUE_FAIL ((struct value){.state = VALUE_FAILED})
#define VALUE_DONT_KNOW ((struct value){.state = VALUE_UNKNOWN})

/* These allocate terms that live until the end of the evaluation. */
struct value value_int(struct arena *a, int64_t v);
struct value value_float(struct arena *a, double v);
struct value value_bool(bool v);
struct value value_atom(struct arena *a, struct raw name);
struct value value_bin(struct arena *a, struct str bytes);
struct value value_bytes(struct arena *a, const struct buf *encoded);

bool value_is_bool(struct value v, bool *ret);

/* The value of an expression. It is valid until the next evaluation. */
struct value where_value_of(struct wheres *w, const struct where *expr, const struct event *e);

/* Applies a guard function to terms. `name` is an enum fn. */
struct value where_apply(struct arena *a, enum fn fn, const struct value *args, size_t n, const struct event *e);

#endif

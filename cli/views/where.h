/*
 * The value of a `where` expression for an event. Beside terms there are three other values, with which `and`, `or` and
 * `not` go on as logic demands:
 *  - later: the result of the call will decide.
 *  - unknown: the event does not hold enough to decide: a term was cut, elided or redacted, its type is not known here,
 *    a number has more than 64 bits, the call of a result was lost.
 *  - failed: a guard would fail, as at hd of a number or an argument that does not exist. The whole condition is false.
 * A filter shows an event whose condition is unknown in the end, and counts it.
 */
#ifndef ETRACE_VIEWS_WHERE_H
#define ETRACE_VIEWS_WHERE_H

#include "filter.h"

struct wheres; /* what expressions need between events: compiled patterns, constants, scratch */

struct wheres *wheres_new(enum terms_style style);
void wheres_free(struct wheres *w);

/* Looks at the patterns in it; false: one is wrong, and e says so. To be called before where_holds() with it. */
bool wheres_prepare(struct wheres *w, const struct where *expr, struct err *e);

enum filter_verdict where_holds(struct wheres *w, const struct where *expr, const struct event *e);

uint64_t wheres_errors(const struct wheres *w); /* patterns that gave up; the event is kept then */

/* ---- between where.c and where_fn.c ---- */

/* A value: an encoded term, or that there is none. */
struct value {
    enum { VALUE_TERM, VALUE_FAILED, VALUE_LATER, VALUE_UNKNOWN } state;
    const uint8_t *at;
    const struct term_env *env;
};

#define VALUE_FAIL ((struct value){.state = VALUE_FAILED})
#define VALUE_DONT_KNOW ((struct value){.state = VALUE_UNKNOWN})

/* Terms that live until the expression is done. */
struct value value_int(struct arena *a, int64_t v);
struct value value_float(struct arena *a, double v);
struct value value_bool(bool v);
struct value value_atom(struct arena *a, struct raw name);
struct value value_bin(struct arena *a, struct str bytes);
struct value value_bytes(struct arena *a, const struct buf *encoded);

bool value_is_bool(struct value v, bool *ret);

/* A function of guards on values that are all terms; `name` is an enum fn. */
struct value where_apply(struct arena *a, int name, const struct value *args, size_t n, const struct event *e);

#endif

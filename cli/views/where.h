/*
 * The value of a `where` expression for an event. It is three-valued: what a call's result will decide is not known
 * before it comes, and `and`, `or`, `not` go on with that as logic demands. What fails (hd of a number, an argument
 * that is not there, a term that was cut before the place that is asked about) makes the whole false, as in a guard.
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
    enum { VALUE_TERM, VALUE_FAILED, VALUE_LATER } state;
    const uint8_t *at;
    const struct term_env *env;
};

#define VALUE_FAIL ((struct value){.state = VALUE_FAILED})

/* Terms that live until the expression is done. */
struct value value_int(struct arena *a, int64_t v);
struct value value_float(struct arena *a, double v);
struct value value_bool(bool v);
struct value value_atom(struct arena *a, struct str raw);
struct value value_bin(struct arena *a, struct str bytes);
struct value value_bytes(struct arena *a, const struct buf *encoded);

bool value_is_bool(struct value v, bool *ret);

/* A function of guards on values that are all terms; `name` is an enum fn. */
struct value where_apply(struct arena *a, int name, const struct value *args, size_t n, const struct event *e);

#endif

/*
 * The value of a `where` expression for an event. It is three-valued: what a call's result will decide is not known
 * before it comes, and `and`, `or`, `not` go on with that as logic demands. What fails (hd of a number, an argument
 * that is not there, a term that was cut before the place that is asked about) makes the whole false, as in a guard.
 */
#ifndef ETRACE_WHERE_H
#define ETRACE_WHERE_H

#include "filter.h"

struct wheres; /* what expressions need between events: compiled patterns, scratch */

struct wheres *wheres_new(enum terms_style style);
void wheres_free(struct wheres *w);

enum filter_verdict where_holds(struct wheres *w, const struct where *expr, const struct event *e);

uint64_t wheres_errors(const struct wheres *w); /* patterns that gave up; the event is kept then */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether an event is shown: --grep tests its line, and `where` its properties. All conditions must hold.
 *
 * Conditions on the result of a call (dur, ret, class, reason) are unknown when the call begins. Unless another
 * condition already fails, the verdict for the call is FILTER_LATER, and the caller filters again when the result
 * arrives, with both events. If a grep matches the line of a call or of its result, both are shown. An inverted grep
 * tests only the line of the call and hides both, so the call need not be held.
 */
#ifndef ETRACE_FILTER_H
#define ETRACE_FILTER_H

#include "../ground/err.h"
#include "pipeline.h"

enum filter_verdict {
    FILTER_PASS,
    FILTER_FAIL,
    FILTER_LATER,
    FILTER_UNKNOWN, /* the event lacks the data to decide; only filter_spec() and single conditions return it */
};

struct filter;

/* Borrows the greps' texts and the expressions. NULL: e is filled. */
struct filter *filter_new(const struct grep *greps, size_t ngreps, const struct where *const *wheres, size_t nwheres,
                          const struct spec *const *specs, size_t nspecs, enum terms_style style, struct err *e);
void filter_free(struct filter *f);

bool filter_is_empty(const struct filter *f); /* returns true if there are no conditions, so that every event passes */

/*
 * Evaluates all conditions. An event passes if no condition can decide, and filter_undecided() counts it. `spec`: the
 * event's own spec, or NULL; with a combined spec (combo.h) the event passes if one part passes. If `e` is a result,
 * e->call->event is its call, if known.
 */
enum filter_verdict filter_event(struct filter *f, const struct event *e, const struct spec *spec);

/* Evaluates only the conditions of the spec. FILTER_UNKNOWN: they cannot decide. */
enum filter_verdict filter_spec(struct filter *f, const struct event *e, const struct spec *spec);

/* Returns how often a grep exceeded its matching limits. Such an event is shown. */
uint64_t filter_errors(const struct filter *f);

/* Returns the number of events that passed because no condition could decide. */
uint64_t filter_undecided(const struct filter *f);

#endif

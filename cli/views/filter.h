/*
 * Whether an event is shown: --grep on its line, and `where` on its properties. All of them must hold.
 *
 * What depends on the result of a call (dur, ret, class, reason) is not known when it begins; then the answer for the
 * call is FILTER_LATER, unless the rest decides already, and its result is asked about again with both at hand. A
 * pattern that finds the line of a call or of its result shows both. An inverted one looks at the call: what hides it
 * hides its result, so a call that has not ended yet is not kept back.
 */
#ifndef ETRACE_FILTER_H
#define ETRACE_FILTER_H

#include "../ground/err.h"
#include "pipeline.h"

enum filter_verdict {
    FILTER_PASS,
    FILTER_FAIL,
    FILTER_LATER,
    FILTER_UNKNOWN, /* of a single condition: the event does not hold enough to decide */
};

struct filter;

/* The greps' texts and the expressions are borrowed. NULL: e is filled. */
struct filter *filter_new(const struct grep *greps, size_t ngreps, const struct where *const *wheres, size_t nwheres,
                          const struct spec *const *specs, size_t nspecs, enum terms_style style, struct err *e);
void filter_free(struct filter *f);

bool filter_is_empty(const struct filter *f); /* everything passes */

/*
 * Passes what no condition can decide, and counts it. spec: the event's own, or NULL; of a combined one (combo.h) the event passes
 * with any of the parts. For a result, e->call->event is its call where that is known.
 */
enum filter_verdict filter_event(struct filter *f, const struct event *e, const struct spec *spec);

/* The verdict of the spec's own conditions, without those for all events; FILTER_UNKNOWN if they cannot decide. */
enum filter_verdict filter_spec(struct filter *f, const struct event *e, const struct spec *spec);

/* Patterns that gave up at their limits; such an event is shown. */
uint64_t filter_errors(const struct filter *f);

/* Events that passed because a condition could not be decided. */
uint64_t filter_undecided(const struct filter *f);

#endif

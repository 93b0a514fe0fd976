/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether an event is shown: --grep tests its line, and `where` its properties. All conditions must hold.
 *
 * Conditions on the result of a call (dur, ret, class, reason) are unknown when the call begins. If no other condition
 * fails, the verdict for the call is FILTER_LATER, and the pipeline filters again when the result arrives. If a grep
 * matches the line of a call or of its result, both events are shown. An inverted grep does not make a call wait: if
 * the grep matches the line of the call, both events are hidden. If another condition makes the call wait, the inverted
 * grep also tests the line of the result.
 */
#ifndef ETRACE_FILTER_H
#define ETRACE_FILTER_H

#include "../ground/err.h"
#include "pipeline.h"

enum filter_verdict {
    FILTER_PASS,
    FILTER_FAIL,
    FILTER_LATER,   /* the result of the call will decide */
    FILTER_UNKNOWN, /* the event lacks the data to decide; filter_event() never returns this */
};

struct filter;

struct rejections;

/*
 * Borrows the greps, the expressions, and the rejections, to which it adds the events that it rejects. Returns NULL and
 * sets *e on failure.
 */
struct filter *filter_new(const struct grep *greps, size_t ngreps, const struct where *const *wheres, size_t nwheres,
                          const struct spec *const *specs, size_t nspecs, enum terms_style style,
                          struct rejections *rejections, struct err *e);
void filter_free(struct filter *f);

bool filter_is_empty(const struct filter *f); /* returns true if there are no conditions, so that every event passes */

/*
 * Evaluates all conditions. If the conditions cannot decide, the event passes, and filter_undecided() counts it. `spec`
 * is the event's spec, or NULL. With a combined spec (combo.h), the event passes if it passes for one part. If `e` is a
 * result, conditions on the call read e->call->event.
 */
enum filter_verdict filter_event(struct filter *f, const struct event *e, const struct spec *spec);

/* Evaluates only the conditions of the spec. Returns FILTER_UNKNOWN if these conditions cannot decide. */
enum filter_verdict filter_spec(struct filter *f, const struct event *e, const struct spec *spec);

/* Returns how often a regular expression exceeded its limits. The condition then holds for the event. */
uint64_t filter_errors(const struct filter *f);

/* Returns the number of events that passed because the conditions could not decide. */
uint64_t filter_undecided(const struct filter *f);

#endif

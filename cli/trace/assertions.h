/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the assertions of one command (--expect, --fail-on), from the options to the exit status. Assertions and filters
 * are written in one language and compiled together; this file separates them again.
 */
#ifndef ETRACE_ASSERTIONS_H
#define ETRACE_ASSERTIONS_H

#include "../pipeline/assert.h"
#include "exprs.h"
#include "outputs.h"

struct assertions {
    const struct assert_opts *opts;
    struct asserts *asserts; /* NULL: no assertions were given */
};

/*
 * Returns the texts for exprs_compile(): the filters, then those of --expect, then those of --fail-on. The caller
 * releases the array.
 */
struct texts assertions_texts(const struct texts *filters, const struct assert_opts *o);

/*
 * Makes the assertions. `exprs` must be compiled from the result of assertions_texts(), which begins with `nfilters`
 * filters. Call assertions_release() also after a failure.
 */
bool assertions_init(struct assertions *a, const struct assert_opts *o, const struct exprs *exprs, size_t nfilters,
                     struct err *e);
/* Warns of filters, assertions and views that need results if no expression asks for results. */
void assertions_warn(const struct assertions *a, const struct exprs *exprs, const struct texts *filters,
                     const struct outputs *outputs, struct ctx *ctx);
/*
 * Checks that `by` counts every figure that the conditions after the filters test, such as the count in count > 10.
 * These conditions are the assertions and --snapshot-when.
 */
bool assertions_fit(const struct exprs *exprs, size_t nfilters, const struct spec *const *specs, size_t nspecs,
                    struct err *e);
void assertions_release(struct assertions *a);

/*
 * Checks the assertions at the end of the run, reports those that failed and returns the exit status. If `status` is
 * not 0 already, returns `status` without a check.
 */
int assertions_status(const struct assertions *a, struct ctx *ctx, int status);

#endif

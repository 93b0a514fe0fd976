/*
 * Runs the assertions of one command (--expect, --fail-on), from the options to the exit status. They are compiled
 * together with the filters because they are the same language; this file splits the result.
 */
#ifndef ETRACE_ASSERTED_H
#define ETRACE_ASSERTED_H

#include "../views/assert.h"
#include "asked.h"
#include "show.h"

struct asserted {
    const struct assert_opts *opts;
    struct asserts *asserts; /* NULL: no assertions were given */
};

/* Returns the texts for asked_compile(): the filters, then --expect, then --fail-on. The caller releases them. */
struct texts asserted_texts(const struct texts *filters, const struct assert_opts *o);

/*
 * `asked` was compiled from these texts; the first `nfilters` of them are filters. Call asserted_release() also after a
 * failure.
 */
bool asserted_init(struct asserted *a, const struct assert_opts *o, const struct asked *asked, size_t nfilters, struct err *e);
/* Warns of filters and assertions that no event can meet, and of views that no event is for. */
void asserted_warn(const struct asserted *a, const struct asked *asked, const struct texts *filters, const struct show *show, struct ctx *ctx);
void asserted_release(struct asserted *a);

/*
 * Checks the assertions at the end of the run, reports those that failed and returns the resulting exit status. If
 * `status` is not 0 already, returns it without a check.
 */
int asserted_status(const struct asserted *a, struct ctx *ctx, int status);

#endif

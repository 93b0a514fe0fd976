/*
 * The assertions of one run (--expect, --fail-on): from the options to the exit status. They are compiled together with
 * the filters, because they are the same language; here is what belongs to which.
 */
#ifndef ETRACE_ASSERTED_H
#define ETRACE_ASSERTED_H

#include "../views/assert.h"
#include "asked.h"
#include "show.h"

struct asserted {
    const struct assert_opts *opts;
    struct asserts *asserts; /* NULL: none were asked for */
};

/* What asked_compile() is to be given: the filters, then the expectations, then the others. The caller releases it. */
struct texts asserted_texts(const struct texts *filters, const struct assert_opts *o);

/* `asked` was compiled from these texts, of which the first `nfilters` are filters. To be released, also after a failure. */
bool asserted_init(struct asserted *a, const struct assert_opts *o, const struct asked *asked, size_t nfilters, struct err *e);
/* Of filters and conditions that no event can meet, and of views that no event is for. */
void asserted_warn(const struct asserted *a, const struct asked *asked, const struct texts *filters, const struct show *show, struct ctx *ctx);
void asserted_release(struct asserted *a);

/* At the end of the run: says what failed. Returns `status` unless that is 0. */
int asserted_status(const struct asserted *a, struct ctx *ctx, int status);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recompiles the request of a recording. It is needed to know which calls report a result and what ms results contain.
 * Skips entries that this build does not understand.
 */
#ifndef ETRACE_RECORDED_SPECS_H
#define ETRACE_RECORDED_SPECS_H

#include "../lang/lang.h"

struct recorded_specs {
    struct recorded_specs *before; /* earlier requests, which open calls still answer */
    struct arena arena;            /* owns all following members */
    struct str text;               /* what recorded_specs_new() got */
    const struct spec **specs;
    size_t nspecs;
};

/* `bytes` come from recfile_spec_add() and are copied. Takes ownership of `before`. */
struct recorded_specs *recorded_specs_new(struct str bytes, struct recorded_specs *before);
void recorded_specs_free(struct recorded_specs *r); /* also frees the earlier requests; accepts NULL */

#endif

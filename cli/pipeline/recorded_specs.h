/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles the request of a recording again. A replay needs the specs to know which calls report a result, and what the
 * match specifications have collected. Skips entries that this etrace does not understand.
 */
#ifndef ETRACE_RECORDED_SPECS_H
#define ETRACE_RECORDED_SPECS_H

#include "../lang/lang.h"

struct recorded_specs {
    struct recorded_specs *before; /* earlier requests, whose calls may still be open */
    struct arena arena;            /* owns the text and the specs */
    struct str text;               /* the bytes that recorded_specs_new() got */
    const struct spec **specs;
    size_t nspecs;
    bool held_back; /* filters wait for results, so the nodes may have sent events later than they happened */
};

/* `bytes` come from recfile_spec_add() and are copied. Takes ownership of `before`. */
struct recorded_specs *recorded_specs_new(struct str bytes, struct recorded_specs *before);
void recorded_specs_free(struct recorded_specs *r); /* also frees the earlier requests; accepts NULL */

#endif

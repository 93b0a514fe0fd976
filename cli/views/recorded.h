/*
 * What a recording says was asked for, compiled again: without it nobody knows which calls report a result, and what a
 * match specification's result holds. Entries that this build does not understand are left out.
 */
#ifndef ETRACE_RECORDED_H
#define ETRACE_RECORDED_H

#include "../lang/lang.h"

struct recorded {
    struct recorded *before; /* what was asked for earlier: open calls still answer it */
    struct arena arena; /* owns everything below */
    const struct spec **specs;
    size_t nspecs;
};

/* `bytes` as recfile_spec_add() made them; they are not needed afterwards. */
struct recorded *recorded_new(struct str bytes, struct recorded *before);
void recorded_free(struct recorded *r); /* and all before it; accepts NULL */

#endif

/*
 * What a recording says was asked for, compiled again: without it nobody knows which calls report a result, and what a
 * match specification's result holds. Entries that this build does not understand are left out.
 */
#ifndef ETRACE_RECORDED_H
#define ETRACE_RECORDED_H

#include "../lang/lang.h"

struct recorded {
    struct arena arena; /* owns everything below */
    const struct spec **specs;
    size_t nspecs;
};

/* `bytes` as recfile_spec_add() made them; they are not needed afterwards. */
void recorded_init(struct recorded *r, struct str bytes);
void recorded_release(struct recorded *r);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions of `etrace browse`: those of its options, and the one that the user types in the list. */
#ifndef ETRACE_BROWSE_FILTER_H
#define ETRACE_BROWSE_FILTER_H

#include "../pipeline/pipeline.h"
#include "../trace/exprs.h"
#include "recordings.h"

struct browse_filter {
    const struct view_opts *view; /* borrowed */
    const struct part_opts *part; /* borrowed */
    struct str request;           /* of the recording, borrowed; for recordings_find_record() */
    struct exprs exprs;           /* owns what `options` has */
    struct grep *greps;
    char *text; /* what the user typed; NULL: nothing */
};

/*
 * Compiles the conditions of the options and the text that the user typed; NULL or empty: none. A text that begins like
 * a condition of --where is one, otherwise it is a regular expression. On success replaces the conditions in *options
 * and sets *ret_before to the ones that it replaced, which the caller frees when no reader uses them any more.
 */
bool browse_filter_set(struct browse_filter *f, const char *text, struct pipeline_options *options,
                       struct browse_filter *ret_before, struct err *e);
void browse_filter_release(struct browse_filter *f);

#endif

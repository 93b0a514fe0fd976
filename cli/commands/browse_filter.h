/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles the conditions of `etrace browse`: those of its options, and the one that the user types in the list. */
#ifndef ETRACE_BROWSE_FILTER_H
#define ETRACE_BROWSE_FILTER_H

#include "../pipeline/pipeline.h"
#include "../trace/exprs.h"
#include "recordings.h"

struct browse_filter {
    const struct view_opts *view; /* borrowed */
    const struct part_opts *part; /* borrowed */
    struct str request; /* request at the beginning of the recording, borrowed; for recordings_find_record() */
    struct exprs exprs; /* owns the compiled conditions that the pipeline options use */
    struct grep *greps;
    char *text; /* the condition that the user typed; NULL: none */
};

/*
 * Compiles the conditions of the command line and the text that the user typed. `text` may be NULL or empty. It is a
 * condition if it begins like one of --where, otherwise a regular expression. On success, replaces the conditions in
 * *options and moves the old ones to *ret_before. The caller frees the old ones when no reader uses them any more.
 */
bool browse_filter_set(struct browse_filter *f, const char *text, struct pipeline_options *options,
                       struct browse_filter *ret_before, struct err *e);
void browse_filter_release(struct browse_filter *f);

#endif

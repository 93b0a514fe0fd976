/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows a live trace in the list of `etrace browse` (struct live_table). The trace records into a file without a name,
 * which the list follows. The kernel deletes the file when the process ends, even after a crash.
 */
#ifndef ETRACE_BROWSE_TRACE_H
#define ETRACE_BROWSE_TRACE_H

#include "../trace/live.h"
#include "browse_screen.h"

struct browse_trace {
    struct ctx *ctx;
    const struct view_opts *view; /* borrowed */
    struct live_table table;      /* for struct live_options */
    int file;                     /* the recording; -1: none */
    char path[40];                /* path by which the readers open the file */
    uint64_t freed;               /* number of bytes at the beginning of the file whose disk space was freed */
    struct loop_timer timer;      /* wakes the loop for the next turn of the screen */
    struct part_opts part;
    struct browse_recording of;
    struct browse_filter filter;
    struct browse_growth growth;
    struct browse_options options;
    struct browse_screen *screen; /* NULL: the file has no complete block yet */
    bool open;                    /* the screen covers the terminal */
    bool full;                    /* the file has reached its limit, and freeing space failed */
    struct buf words, title;      /* `words`: the expressions; `title`: the first line of the screen */
    struct buf request;           /* the first block of the recording, which contains the request */
};

/*
 * Creates the file and sets view->record to its path. `words` are the expressions. Returns false, with an error, if the
 * list cannot be combined with the options, the terminal cannot show it, or the file cannot be created.
 */
bool browse_trace_begin(struct browse_trace *b, struct ctx *ctx, struct view_opts *view, const struct what_opts *what,
                        const struct texts *words, struct err *e);
void browse_trace_end(struct browse_trace *b); /* accepts a zeroed struct */

#endif

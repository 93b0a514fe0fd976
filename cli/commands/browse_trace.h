/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows a live trace in the list of `etrace browse` (struct live_table). The trace records into a file without a name,
 * which the list follows. The kernel deletes the file when the process ends, even after a crash.
 */
#ifndef ETRACE_BROWSE_TRACE_H
#define ETRACE_BROWSE_TRACE_H

#include "../trace/live.h"
#include "browse_screen.h"

/* The settings of the trace; all are borrowed. The list changes the expressions, and what selects their events. */
struct browse_settings {
    struct node_opts *node;
    struct what_opts *what;
    struct view_opts *view;
    const struct assert_opts *asserts;
    struct texts *words; /* the expressions */
};

/* The settings that the list changes. */
struct browse_probes {
    struct browse_probes *before;
    struct texts words, files, procs, wheres, nodes;
    bool cluster;
};

struct browse_trace {
    struct ctx *ctx;
    struct browse_settings set;
    struct browse_probes *before; /* the probes that were traced before the current ones; NULL: none */
    bool changed;                 /* the user has changed the probes, so the trace begins again */
    bool refined;                 /* the current probes are those of an event, and their trace has not begun yet */
    bool refused;                 /* the probes of an event could not be traced; the next screen says so */
    struct arena arena;           /* the texts of all probes of the list */
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
    struct buf probes, title;     /* `probes`: the expressions and conditions; `title`: the first line of the screen */
    struct buf request;           /* the first block of the recording, which contains the request */
};

/*
 * Creates the file and sets view->record to its path. Returns false, with an error, if the list cannot be combined with
 * the options, the terminal cannot show it, or the file cannot be created.
 */
bool browse_trace_begin(struct browse_trace *b, struct ctx *ctx, const struct browse_settings *set, struct err *e);
/*
 * Call this after the trace has ended. Makes a new list for another trace, and returns true, if the user has changed
 * the probes. If the changed probes could not be traced, it first restores the settings and sets *status to 0. Reports
 * an error and sets *status if the file cannot be created.
 */
bool browse_trace_again(struct browse_trace *b, int *status);
void browse_trace_end(struct browse_trace *b); /* accepts a zeroed struct */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the scrollback for one view. A reel is the view's pipeline with its filters and outputs, and the place up to
 * which the reel has read.
 */
#ifndef ETRACE_REPL_REEL_H
#define ETRACE_REPL_REEL_H

#include "../trace/exprs.h"
#include "../trace/outputs.h"
#include "repl_nodes.h"

struct reel {
    struct exprs exprs; /* owns the filters */
    struct outputs outputs;
    struct pipeline *pipeline;
    struct source *source;
    bool nodes; /* events name their node */
    bool done;  /* the reel shows no more events: the limit was reached, or the output has failed or is closed */
};

enum reel_to { TO_US, TO_FILES /* of -o */, TO_FILE };

struct reel_options {
    const struct view_opts *view;
    enum reel_to to;
    const char *file; /* TO_FILE: the file; its view is view->as, or else the view of its extension */
    bool tells;       /* prints the notices of nodes also as messages */
    bool from_now;    /* begins with the next event, not with the oldest; if TO_US, the reel also ends at --limit */
    bool (*write)(void *output, struct buf *bytes); /* TO_US */
    void *output;
};

struct reel *reel_new(struct repl_base *base, struct repl_nodes *nodes, const struct reel_options *o, struct err *e);
void reel_free(struct reel *reel); /* accepts NULL */

/*
 * Tells the pipeline up to which time each node has reported, also with empty batches. The caller must call it when the
 * reel has read all events, because an event waits in the pipeline until every other node has reported a later time.
 */
enum pipeline_status reel_keep_order(struct reel *reel, struct repl_base *base, struct repl_nodes *nodes,
                                     struct err *e);

size_t reel_behind(const struct reel *reel); /* bytes that the reel has not read; 0 if the reel is done or NULL */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the scrollback for one view. A reel is the pipeline of the view with its filters and outputs, and the position
 * up to which it has read the scrollback.
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
    bool nodes; /* each event is shown with its node */
    bool done;  /* the reel is finished: it has reached its limit, or its output has failed or was closed */
};

enum reel_to { TO_US, TO_FILES /* TO_FILES: the files of -o */, TO_FILE };

struct reel_options {
    const struct view_opts *view;
    enum reel_to to;
    const char *file; /* for TO_FILE: the file. Its view is view->as, or else depends on its extension */
    bool tells;       /* also print notices of the nodes as messages */
    bool from_now;    /* begin with the next event, not with the oldest one; for TO_US, also end at --limit */
    bool (*write)(void *output, struct buf *bytes); /* for TO_US */
    void *output;
};

struct reel *reel_new(struct repl_base *base, struct repl_nodes *nodes, const struct reel_options *o, struct err *e);
void reel_free(struct reel *reel); /* accepts NULL */

/*
 * Tells the pipeline up to which time each node has reported, even if it had no events. Must be called when the reel
 * has read all events: the pipeline holds back each event until every other node has reported a later time.
 */
enum pipeline_status reel_keep_order(struct reel *reel, struct repl_base *base, struct repl_nodes *nodes,
                                     struct err *e);

/* Returns the number of bytes that the reel has not read; 0 if it is done or NULL. */
size_t reel_behind(const struct reel *reel);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a live trace: sessions on nodes feed one pipeline until something ends the trace. Only this file decides why a
 * trace ends and turns the reason into the exit status.
 */
#ifndef ETRACE_LIVE_H
#define ETRACE_LIVE_H

#include "../node/session.h"
#include "settings.h"
#include "exprs.h"
#include "outputs.h"
#include "peers.h"

struct child;

/*
 * A table on the terminal that the command draws again and again while the trace runs. It is the view of standard
 * output, which is the only output; the view has SINK_AGAIN. live_run() fills in `text`, `totals` and `ran_ms`, and
 * calls the functions. With view_opts.record, standard output has no view, `text` is not used, and the command reads
 * that file and draws its events.
 */
struct live_table {
    void *data;
    int64_t interval_ms;
    void (*open)(void *data);             /* the trace runs: takes the screen */
    bool (*draw)(void *data, bool fresh); /* `fresh`: `text` is new. Returns false if the user ends the trace */
    void (*close)(void *data);            /* gives the screen back; live_run() then prints the last table */
    bool if_counts;                       /* use the table only if the trace counts by keys and prints that table */
    bool paused;                          /* set by the command: `text` must stay the same */
    bool again;                           /* set by the command: make `text` again at once, unless paused */
    struct buf text;
    const struct totals *totals;
    int64_t ran_ms;
};

/*
 * The questions that a command asks the nodes when a snapshot begins (--then stacks). live_run() calls these functions.
 * While waits() returns true, --snapshots does not end the trace.
 */
struct live_moment {
    void *data;
    /* `file`: where the answers may be written; NULL: no file. Returns false if there is nothing to ask. */
    bool (*begin)(void *data, uint64_t number, const char *file);
    void (*ask)(void *data, struct peer *p);
    /* Gets each reply of a node, also replies to other questions. */
    void (*answer)(void *data, struct peer *p, const struct session_reply *reply);
    void (*lost)(void *data, const struct peer *p);
    /*
     * Called after every event of the loop; returns true while answers are missing. `end`: the trace ends, so the
     * command must stop waiting.
     */
    bool (*waits)(void *data, bool end);
};

struct live_options {
    const struct node_opts *node;
    const struct what_opts *what;
    const struct limit_opts *limit;
    const struct view_opts *view;
    const struct assert_opts *asserts;
    const struct texts *words;
    struct child *child;              /* the command whose node is held until it is traced; NULL: none */
    struct live_table *table;         /* NULL: the views are only printed */
    const struct live_moment *moment; /* NULL: no questions when a snapshot begins */
    /* out: the selectors of the traced functions, if they were called and no call matched; NULL: not wanted */
    struct buf *unmatched;
};

/* Attaches, arms, streams and leaves. Reports all errors itself and returns the exit status. */
int live_run(struct ctx *ctx, const struct live_options *o, const char *default_view);

#endif

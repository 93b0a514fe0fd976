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
 * A table on the terminal that the command draws again and again while the trace runs: the view of standard output,
 * which has SINK_AGAIN and is the only output. live_run() fills in `text`, `totals` and `ran_ms`, and calls the
 * functions.
 */
struct live_table {
    void *data;
    int64_t interval_ms;
    void (*open)(void *data);             /* the trace runs: take the screen */
    bool (*draw)(void *data, bool fresh); /* fresh: `text` is new. False: the user has ended the trace */
    void (*close)(void *data);            /* give the screen back: live_run() prints the last table */
    bool if_counts; /* only if the trace counts by keys and prints that table; else live_run() ignores it */
    bool paused;    /* set by the command: `text` stays the same */
    struct buf text;
    const struct totals *totals;
    int64_t ran_ms;
};

/*
 * The questions of a command to the nodes when a snapshot begins (--then stacks). live_run() calls these functions, and
 * ends no trace by --snapshots while it waits for the answers.
 */
struct live_moment {
    void *data;
    /* file: where it may write; NULL: none. False: asks nothing */
    bool (*begin)(void *data, uint64_t number, const char *file);
    void (*ask)(void *data, struct peer *p);
    void (*answer)(void *data, struct peer *p, const struct session_reply *reply); /* may be of another question */
    void (*lost)(void *data, const struct peer *p);
    bool (*waits)(void *data, bool end); /* called after every event of the loop. end: gives up */
};

struct live_options {
    const struct node_opts *node;
    const struct what_opts *what;
    const struct limit_opts *limit;
    const struct view_opts *view;
    const struct assert_opts *asserts;
    const struct texts *words;
    struct child *child;              /* the command whose node this is, held until it is traced; NULL: none */
    struct live_table *table;         /* NULL: print the views as usual */
    const struct live_moment *moment; /* NULL: nothing is asked */
    struct buf *unmatched; /* takes an expression for the functions if none of their calls matched; NULL: not wanted */
};

/* Attaches, arms, streams and leaves. Reports all errors itself and returns the exit status. */
int live_run(struct ctx *ctx, const struct live_options *o, const char *default_view);

#endif

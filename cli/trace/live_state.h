/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a trace, for the files live*.c alone. */
#ifndef ETRACE_LIVE_STATE_H
#define ETRACE_LIVE_STATE_H

#include "assertions.h"
#include "live.h"
#include "matches.h"
#include "node_merge.h"
#include "record_lookup.h"
#include "redraw.h"
#include "session_set.h"
#include "snapshots.h"

/*
 * The state of a node in the trace, in addition to its state as a peer:
 *
 *   AWAITED  the session does not answer yet, or has failed
 *   HERE     the session answers
 *   CLOCK    its clock is being measured, if there are several nodes
 *   ARMING   it is asked to trace
 *   ARMED    it traces, or would without --dry-run
 *   WITHOUT  etrace leaves it: with --cluster nothing matches there, or it came back and refuses
 *
 * AWAITED -> HERE -> CLOCK -> ARMING -> ARMED | WITHOUT; a node that fails is AWAITED again. Only move_node() changes
 * the state.
 */
enum node_state { NODE_AWAITED, NODE_HERE, NODE_CLOCK, NODE_ARMING, NODE_ARMED, NODE_WITHOUT };

struct live_node {
    enum node_state state;
    char *banner;  /* ARMING: the line to print once the node is ARMED; NULL: ctx_begin() has begun that line */
    int64_t began; /* when the node entered this state */
    int patience;  /* ARMING: number of messages so far about its delay */
};

/*
 * The state of the trace:
 *
 *   BEGINNING  until each wanted node is ARMED or WITHOUT, is AWAY, or has failed
 *   RUNNING    until something ends it
 *   LEAVING    all sessions are ending; the remaining events still arrive
 *
 * Only move_trace() changes the state, and never to an earlier one.
 */
enum live_state { LIVE_BEGINNING, LIVE_RUNNING, LIVE_LEAVING };

struct live {
    struct ctx *ctx;
    const struct live_options *o; /* points to `own`, for functions that only read */
    struct live_options own;      /* the options as given, but with pointers to `what` and `view` below */
    struct what_opts what;
    struct view_opts view;
    enum live_state state;
    struct arena arena;
    struct texts texts;  /* the expressions as text */
    struct texts wheres; /* the filters, then the assertions, then the condition of --snapshot-when */
    struct exprs exprs;
    struct assertions assertions;
    struct outputs outputs;
    struct snapshots snapshots;
    bool unread;               /* the reader of an output has gone away */
    struct pipeline *pipeline; /* NULL until a node has answered which records the expressions use */
    struct record_lookup records;
    struct peer *teller; /* the node that is asked for records; NULL: none */
    struct buf told;     /* the answer of `teller` */
    struct session_set sessions;
    struct node_merge merge;
    struct live_node nodes[PEERS_MAX];
    struct what_opts again; /* like `what`, for nodes that come back: an expression may match nothing there yet */
    struct err empty;       /* the reason why the last node became WITHOUT */
    struct matches matches;
    struct buf found; /* the records that a node defines, as text */
    int64_t until;    /* loop_now() time at which the trace stops; -1: no limit */
    /* --limit was reached or the command has ended, and the trace waits for the last events until `until` */
    bool rests;
    uint64_t seq;   /* sequence number of the last batch; used only with a command, which has one node */
    int64_t ask_at; /* loop_now() time at which etrace next asks the nodes for their time, if a view waits for it */
    struct redraw redraw;
    /* loop_now() times: when the first node began to trace (-1: none does), and when LEAVING began (0: not yet) */
    int64_t begun_at, stopped_at;
    /* loop_now() time at which etrace says that it has shown no event yet; -1: never */
    int64_t nothing_at;
    int status;
};

/* ---- live.c: why a trace ends ---- */

/* Reports an error. The first one decides the exit status. */
void live_fail(struct live *l, const struct err *e);
void live_move(struct live *l, enum live_state to);
void live_stop_with(struct live *l, const struct err *e); /* reports an error, and leaves the nodes */
void live_handle_status(struct live *l, enum pipeline_status status, const struct err *e);
bool live_has_begun(const struct live *l); /* returns true if at least one node traces */
void live_mark_begun(struct live *l);
/* Takes a note that node_merge makes. */
void live_on_note(void *data, unsigned node, struct str note);

/* ---- live_setup.c ---- */

/* Borrows the options until live_release(). */
void live_init(struct live *l, struct ctx *ctx, const struct live_options *given,
               const struct session_set_handlers *handlers);
bool live_prepare(struct live *l, const char *default_view,
                  struct err *e); /* takes every step before the first event */
void live_release(struct live *l);
/* Asks the first node that is UP for the missing records. If that node is lost, asks the next one. */
void live_look_for_records(struct live *l);
/* Writes the expressions into a recording, so that a replay interprets the events as this trace does. */
void live_record_specs(struct live *l, const struct peer *p, struct pipeline *to);

/* ---- live_nodes.c ---- */

void live_on_ready(void *data, struct peer *p);
void live_on_failed(void *data, struct peer *p, const struct err *cause);
void live_on_refused(void *data, struct peer *p, const struct err *e);
void live_on_chosen(void *data, struct peer *p, const struct arm_result *result);
void live_on_armed(void *data, struct peer *p, const struct arm_result *result);

/* Takes the next step of each node. Begins the trace once no node is still being attached or armed. */
void live_look_at_nodes(struct live *l);
int64_t live_next_patience(const struct live *l); /* time of the next message about a node that arms slowly; -1: none */

struct live_node *live_node_of(struct live *l, const struct peer *p);
bool live_is_traced(struct live *l, const struct peer *p);
size_t live_count_armed(const struct live *l);
/* Returns true if no node was ever UP; with --reattach that may last until the end. */
bool live_none_came(const struct live *l);
/* Returns true if a session was lost, even if its node traced nothing yet. */
bool live_has_lost_one(const struct live *l);
/* Returns true if a node is traced without the NIF, which may miss events. */
bool live_any_fallback(const struct live *l);
/*
 * Warns of nodes that have not answered when the user stops early, because no other message names them. Prints nothing
 * after an error, or if the reader of the output has gone.
 */
void live_say_unanswered(const struct live *l);
/*
 * Returns how the sessions ended, for the summary. NULL: as expected, because every node has confirmed the end, or the
 * command's node has ended.
 */
const char *live_session_end(const struct live *l, const struct totals *t);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../events/recfile.h"
#include "../ground/mem.h"
#include "../ground/tty.h"
#include "../ground/utf8.h"
#include "../lang/where_steps.h"
#include "../views/line.h"
#include "assertions.h"
#include "child.h"
#include "matches.h"
#include "outcome.h"
#include "prepare.h"
#include "redraw.h"
#include "session_set.h"
#include "snapshots.h"
#include "node_merge.h"

#define BACKLOG_FULL (8u << 20) /* bytes of unwritten output from which on the nodes are not asked for events */
#define BACKLOG_LOW (1u << 20)
#define SLOW_MS 300   /* if arming takes longer, print which node etrace waits for */
#define STUCK_MS 5000 /* if arming takes longer, warn that this is unusual */
#define RECORD_MS 10000
#define REST_MS 1000 /* how long to wait for the results of the calls within --limit */

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
    char *banner;  /* ARMING: the line to print when the node is ARMED; NULL: ctx_begin() has begun that line */
    int64_t began; /* when the node entered this state */
    int patience;  /* ARMING: number of messages about the delay */
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
    const struct live_options *o; /* `own`, for functions that only read */
    struct live_options own;      /* as given, but with `what` and `view` below */
    struct what_opts what;
    struct view_opts view;
    enum live_state state;
    struct arena arena;
    struct texts texts;  /* the expressions as text */
    struct texts wheres; /* the filters, followed by the assertions */
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
    struct what_opts again; /* the request for nodes that come back: there an expression may match nothing yet */
    struct err empty;       /* the refusal of the last node that became WITHOUT */
    struct matches matches;
    struct buf found; /* the records that a node defines, as text */
    int64_t until;    /* loop_now() time at which the trace stops; -1: no limit */
    bool rests;       /* until `until`: --limit was reached, or the command has ended, and the last events may come */
    uint64_t seq;     /* sequence number of the last batch; used only with a command, which has one node */
    int64_t ask_at;   /* loop_now() time of the next question to the nodes for their time, if a view waits for it */
    struct redraw redraw;
    /* loop_now() times: the first node traces (-1: none does); LEAVING began (0: not yet) */
    int64_t begun_at, stopped_at;
    int status;
};

/* ---- ending ---- */

static void live_fail(struct live *l, const struct err *e)
{
    int status = ctx_fail(l->ctx, e);

    if (!l->status)
        l->status = status;
}

static size_t count_armed(const struct live *l)
{
    size_t n = 0;

    for (size_t i = 0; i < l->sessions.peers.count; i++)
        n += l->nodes[i].state == NODE_ARMED;
    return n;
}

/*
 * Warns of nodes that have not answered when the user stops early, because no other message names them. Prints nothing
 * after an error, or if the reader of the output has gone.
 */
static void say_unanswered(const struct live *l)
{
    for (size_t i = 0; i < l->sessions.peers.count && !l->status && !l->unread; i++) {
        const struct peer *p = &l->sessions.peers.items[i];
        const char *name = peer_name(p) ? peer_name(p) : "the node";
        bool attaching = p->state == PEER_CONNECTING || p->state == PEER_BOOTING || p->state == PEER_LISTING;
        if (attaching && !p->late)
            ctx_warn(l->ctx, "not traced: %s has not answered yet", name);
        else if (p->state == PEER_UP && l->nodes[i].state == NODE_ARMING)
            ctx_warn(l->ctx, "not traced: %s was still being armed", name);
    }
}

static const char *const states[] = {"beginning", "running", "leaving"};

static void move_trace(struct live *l, enum live_state to)
{
    if (l->state >= to)
        return;
    ctx_debug(l->ctx, "the trace: %s -> %s", states[l->state], states[to]);
    l->state = to;
    if (to == LIVE_RUNNING) {
        if (l->o->child)
            child_go(l->o->child);
        if (l->o->limit->for_ns)
            l->until = loop_sooner(l->until, loop_now() + l->o->limit->for_ns / 1000000);
        if (peers_several(&l->sessions.peers))
            ctx_say(l->ctx, "%zu node%s · %s", count_armed(l), PLURAL(count_armed(l)),
                    l->o->child ? "ends with the command" : "Ctrl-C stops");
    } else {
        l->stopped_at = loop_now();
        say_unanswered(l);
        peers_stop(&l->sessions.peers);
    }
}

static void stop_trace(struct live *l)
{
    move_trace(l, LIVE_LEAVING);
}

static void stop_with(struct live *l, const struct err *e)
{
    live_fail(l, e);
    stop_trace(l);
}

/* ---- what sessions send ---- */

/* Returns true if at least one node traces. */
static bool has_begun(const struct live *l)
{
    return l->begun_at >= 0;
}

static void mark_begun(struct live *l)
{
    if (!has_begun(l))
        l->begun_at = loop_now();
    outputs_begin(&l->outputs);
}

static void handle_status(struct live *l, enum pipeline_status status, const struct err *e)
{
    switch (status) {
    case PIPELINE_MORE:
        break;
    case PIPELINE_LIMIT:
        if (!l->rests)
            l->until = loop_now() + REST_MS;
        l->rests = true;
        break;
    case PIPELINE_DONE:
        stop_trace(l);
        break;
    case PIPELINE_FAILED: /* the pipeline repeats this error from now on; only the first one is reported */
        if (l->state != LIVE_LEAVING)
            stop_with(l, e);
        break;
    }
}

static uint64_t batch_seq(const void *batch)
{
    struct etw_batch head;

    memcpy(&head, batch, sizeof head);
    return head.seq;
}

static void live_on_batch(void *data, struct peer *p, const void *batch, size_t len)
{
    struct live *l = data;
    struct err e;

    if (!l->pipeline) /* the trace may end before it has a pipeline, and batches still arrive */
        return;
    l->seq = batch_seq(batch);
    node_merge_batch(&l->merge, p);
    handle_status(l, snapshots_batch(&l->snapshots, p->index, (struct str){batch, len}, &e), &e);
    if (!has_begun(l) && pipeline_totals(l->merge.pipeline)->seen)
        mark_begun(l); /* a meta probe reports events while other probes are still being armed */
}

static void on_note(void *data, unsigned node, struct str note)
{
    struct live *l = data;
    struct err e;

    handle_status(l, snapshots_note(&l->snapshots, node, note, &e), &e);
}

static void live_on_time(void *data, struct peer *p, const struct session_time *time)
{
    node_merge_time(&((struct live *)data)->merge, p, time);
}

static struct live_node *live_node_of(struct live *l, const struct peer *p)
{
    return &l->nodes[p->index];
}

static const char *const node_states[] = {"awaited", "here", "clock", "arming", "armed", "without"};

static void move_node(struct live *l, const struct peer *p, enum node_state to)
{
    struct live_node *n = live_node_of(l, p);

    ctx_debug(l->ctx, "%s, traced: %s -> %s", peer_name(p) ? peer_name(p) : "the node", node_states[n->state],
              node_states[to]);
    snapshots_node_moved(&l->snapshots, p, to == NODE_ARMED);
    if (l->o->moment && n->state == NODE_ARMED)
        l->o->moment->lost(l->o->moment->data, p);
    free(n->banner);
    *n = (struct live_node){.state = to, .began = loop_now()};
}

/* Ends the time in which a signal may end the program at once: now there is something to clean up. */
static void live_on_ready(void *data, struct peer *p)
{
    struct live *l = data;

    ctx_let_die(l->ctx, false);
    move_node(l, p, NODE_HERE);
}

/* With --reattach, a lost node is only a warning. The node of `-- COMMAND` is expected to exit. */
static void live_on_failed(void *data, struct peer *p, const struct err *cause)
{
    struct live *l = data;
    bool was_here = live_node_of(l, p)->state != NODE_AWAITED, was_armed = live_node_of(l, p)->state == NODE_ARMED;
    struct err e;

    move_node(l, p, NODE_AWAITED);
    if (was_here && l->pipeline && !l->o->child)
        handle_status(l, node_merge_down(&l->merge, p, cause, &e), &e);
    if (p->state == PEER_AWAY && l->state != LIVE_LEAVING)
        ctx_warn(l->ctx, "%s; waiting for it", cause->text);
    else if (l->state == LIVE_BEGINNING && !(l->o->child && was_armed))
        stop_with(l, cause);
    else if (!l->o->child || cause->status == ERR_GUARD)
        live_fail(l, cause);
}

/* Returns true for a node of --cluster that lacks the functions. Not every node of a cluster needs them. */
static bool may_lack(const struct live *l, const struct err *e)
{
    return l->o->node->cluster && e->status == ERR_EMPTY;
}

/* With several nodes, prefix the error with the node's name unless it already starts with it. */
static struct err prefix_error(const struct live *l, const struct peer *p, const struct err *e)
{
    struct err full = *e;

    if (peers_several(&l->sessions.peers) && strncmp(e->text, peer_name(p), strlen(peer_name(p))) != 0)
        snprintf(full.text, sizeof(full.text), "%.255s: %.250s", peer_name(p), e->text);
    utf8_make_safe(full.text);
    return full;
}

static void live_on_refused(void *data, struct peer *p, const struct err *e)
{
    struct live *l = data;
    struct err full = prefix_error(l, p, e);

    if (l->state == LIVE_LEAVING)
        return;
    if (p->late || may_lack(l, e)) {
        l->empty = *e;
        ctx_warn(l->ctx, "%s: not traced: %s", peer_name(p), e->text);
        move_node(l, p, NODE_WITHOUT);
        peer_detach(p);
    } else {
        stop_with(l, &full);
    }
}

/* ---- messages ---- */

static void on_notice(void *data, const struct event_node *node, struct str text)
{
    struct live *l = data;
    bool several = peers_several(&l->sessions.peers);

    ctx_warn(l->ctx, "%.*s%s%.*s", several ? (int)node->name.len : 0, node->name.at, several ? ": " : "", (int)text.len,
             text.at);
}

static void on_reached(void *data, const struct event_node *node UNUSED, int64_t us)
{
    snapshots_tell_reach(&((struct live *)data)->snapshots, us);
}

/*
 * Prints what will be traced. A single node has one line, which live_on_armed() completes. Each of several nodes has a
 * line of its own, and a last line is about all of them.
 */
static void on_chosen(void *data, struct peer *p, const struct arm_result *result)
{
    struct live *l = data;
    const struct session_node *node = session_node(p->session);
    struct buf b = {0};

    matches_take(&l->matches, result, l->o->child);
    if (node->fallback)
        ctx_warn(l->ctx, "%s: tracing without the NIF, at most 1000 events a second: %s", node->name,
                 node->fallback_why);
    for (size_t i = 0; i < result->warnings.n; i++)
        ctx_warn(l->ctx, "%s: warning: %s", node->name, result->warnings.items[i]);
    matches_put(&l->matches, node, result, &b);
    if (peers_several(&l->sessions.peers))
        live_node_of(l, p)->banner = mem_strndup(b.data, b.len);
    else
        ctx_begin(l->ctx, "%s", buf_cstr(&b));
    buf_release(&b);
}

static void live_on_armed(void *data, struct peer *p, const struct arm_result *result UNUSED)
{
    struct live *l = data;
    const char *end = l->o->what->dry_run         ? "not traced (--dry-run)"
                      : l->o->child               ? "ends with the command"
                      : l->o->limit->ring.when    ? "Ctrl-C stops"
                      : l->o->limit->ring.on      ? "Ctrl-C stops and shows the last events"
                      : outputs_wait(&l->outputs) ? "Ctrl-C stops and prints"
                                                  : "Ctrl-C stops";
    const char *banner = live_node_of(l, p)->banner;

    if (!l->o->what->dry_run)
        mark_begun(l);
    if (banner)
        ctx_say(l->ctx, "%s%s", banner, l->o->what->dry_run ? " · not traced (--dry-run)" : "");
    else
        ctx_end(l->ctx, end);
    move_node(l, p, NODE_ARMED);
}

/* Returns true if a session was lost, even if its node traced nothing yet. */
static bool has_lost_one(const struct live *l)
{
    for (size_t i = 0; i < l->sessions.peers.count; i++)
        if (l->sessions.peers.items[i].came && l->sessions.peers.items[i].session &&
            session_lost(l->sessions.peers.items[i].session))
            return true;
    return false;
}

/* Returns true if no node was ever UP. With --reattach that may last until the end. */
static bool none_came(const struct live *l)
{
    for (size_t i = 0; i < l->sessions.peers.count; i++)
        if (l->sessions.peers.items[i].came)
            return false;
    return true;
}

static bool any_remains(const struct live *l)
{
    for (size_t i = 0; i < l->sessions.peers.count; i++)
        if (l->sessions.peers.items[i].session && session_remains(l->sessions.peers.items[i].session))
            return true;
    return false;
}

/*
 * Returns how the sessions ended, for the summary. NULL: as expected, because every node has confirmed the end, or the
 * command's node has ended.
 */
static const char *session_end(const struct live *l, const struct totals *t)
{
    if (none_came(l))
        return "never started";
    if (peers_gone(&l->sessions.peers) || (l->o->child && t->complete))
        return NULL;
    if (!t->complete)
        return "ended without confirmation: the last events may be missing";
    return any_remains(l) ? "destroyed, but the node has not unloaded the tracer yet" : "ended by the node";
}

/* Returns true if a node is traced without the NIF, which may miss events. */
static bool any_fallback(const struct live *l)
{
    for (size_t i = 0; i < l->sessions.peers.count; i++)
        if (l->sessions.peers.items[i].session && session_node(l->sessions.peers.items[i].session)->fallback)
            return true;
    return false;
}

static void say_summary(struct live *l)
{
    const struct totals *t = pipeline_totals(l->pipeline);

    for (size_t i = 0; i < t->nnodes && peers_several(&l->sessions.peers); i++)
        outcome_node(l->ctx, &t->nodes[i]);
    if (!l->o->what->builtin)
        matches_warn(&l->matches, l->ctx, l->merge.pipeline,
                     l->o->child ? "compile before you trace: a module that the command compiles is traced up to a "
                                   "second late"
                                 : "");
    if (t->undecided)
        ctx_say(l->ctx,
                "%llu event%s shown because the filter could not decide: terms were cut (--size, --depth, --items keep "
                "more)",
                (unsigned long long)t->undecided, PLURAL(t->undecided));
    outcome_trace(l->ctx, t, has_begun(l) ? (l->stopped_at ? l->stopped_at : loop_now()) - l->begun_at : -1,
                  session_end(l, t));
    if (has_begun(l) && l->exprs.count && !any_fallback(l))
        matches_say_nothing(&l->matches, l->ctx, t, l->o->what->procs.count, l->o->unmatched);
}

/* ---- attaching ---- */

/* Writes the expressions into a recording, so that a replay interprets the events as this trace does. */
static void record_specs(struct live *l, const struct peer *p, struct pipeline *to)
{
    const struct what_opts *what = l->o->what;
    struct buf text = {0};

    for (size_t i = 0; i < l->exprs.count; i++)
        recfile_spec_add(&text, l->exprs.specs[i]->root ? "root" : "expr", l->exprs.specs[i]->own);
    for (size_t i = 0; i < l->exprs.nheaders; i++)
        recfile_spec_add(&text, "hrl", l->exprs.headers[i]);
    if (l->found.len)
        recfile_spec_add(&text, "hrl", buf_view(&l->found));
    for (size_t i = 0; i < what->lets.count; i++)
        recfile_spec_add(&text, "let", (struct str){what->lets.items[i], strlen(what->lets.items[i])});
    recfile_spec_needs(&text, l->exprs.needs);
    pipeline_specs(to, p->index, buf_view(&text));
    buf_release(&text);
}

static void record_all_specs(void *data, struct pipeline *to)
{
    struct live *l = data;

    for (struct peer *p = NULL; (p = peers_next(&l->sessions.peers, p));)
        if (live_node_of(l, p)->state != NODE_AWAITED)
            record_specs(l, p, to);
}

static struct plan_from plan_inputs(struct live *l, bool unknown_records)
{
    return (struct plan_from){.exprs = &l->exprs,
                              .nfilters = l->o->view->wheres.count,
                              .what = l->o->what,
                              .limit = l->o->limit,
                              .outputs = &l->outputs,
                              .fallback = l->o->node->fallback,
                              .unknown_records = unknown_records,
                              .arena = &l->arena};
}

/* Creates the pipeline: before etrace attaches, or after a node has defined the records that the expressions use. */
static bool live_begin(struct live *l, struct err *e)
{
    const struct plan_from from = plan_inputs(l, false);
    const size_t filters = from.nfilters;

    if (!assertions_init(&l->assertions, l->o->asserts, &l->exprs, filters, e) ||
        !assertions_fit(&l->exprs, filters, l->exprs.specs, l->exprs.count, e))
        return false;
    struct pipeline_options options = outputs_pipeline(&l->outputs, &l->exprs, l->o->view->wheres.count);

    options.specs = l->exprs.specs;
    options.nspecs = l->exprs.count;
    options.asserts = l->assertions.asserts;
    options.limit = (uint64_t)l->o->limit->limit;
    options.notice = on_notice;
    options.reached = on_reached;
    options.ctx = l;
    exprs_warn(&l->exprs, l->ctx);
    assertions_warn(&l->assertions, &l->exprs, &l->o->view->wheres, &l->outputs, l->ctx);
    l->pipeline = pipeline_new(&options, e);
    l->merge.pipeline = l->pipeline;
    if (!l->pipeline || !snapshots_begin(&l->snapshots, &from, l->sessions.plan.recorder, l->pipeline, &options,
                                         record_all_specs, l, e))
        return false;
    if (l->snapshots.keeper)
        l->merge.pipeline = keeper_judge(l->snapshots.keeper);
    if (l->snapshots.keeper || l->snapshots.files) {
        l->merge.keep = on_note;
        l->merge.data = l;
    }
    plan_choose(&l->sessions.plan, &from);
    return true;
}

/* ---- records ---- */

/* Compiles with the records that are known so far. Asks the node for the next missing record. */
static void live_learn(struct live *l)
{
    struct str wanted;
    struct err e;

    bool ok = record_lookup_compile(&l->records, &l->exprs, l->o->what, &l->texts, &l->wheres,
                                    session_node(l->teller->session)->otp, &wanted, &e);
    if (wanted.len) {
        buf_clear(&l->told);
        if (!peer_request(l->teller, wanted, RECORD_MS, &l->told, &e))
            peer_fail(l->teller, &e);
        return;
    }
    l->teller = NULL;
    record_lookup_text(&l->records, &l->found);
    if (!ok || !live_begin(l, &e))
        stop_with(l, &e);
}

/* Asks the first node that is UP for the missing records. If that node is lost, asks the next one. */
static void look_for_records(struct live *l)
{
    struct etf answer;
    struct err e;

    if (l->pipeline || l->state == LIVE_LEAVING)
        return;
    if (!l->teller || l->teller->state != PEER_UP) {
        struct peer *p = NULL;
        while ((p = peers_next(&l->sessions.peers, p)) && p->state != PEER_UP)
            continue;
        if ((l->teller = p))
            live_learn(l);
    } else if (!peer_waits(l->teller)) {
        etf_open(&answer, l->told.data, l->told.len);
        if (peer_answer(l->teller, &e) && record_lookup_read(&l->records, answer, &e))
            live_learn(l);
        else
            stop_with(l, &e);
    }
}

/* ---- steps of each node ---- */

static void enter_here(struct live *l, struct peer *p)
{
    struct err e;

    record_specs(l, p, l->pipeline);
    if (l->snapshots.keeper)
        record_specs(l, p, keeper_judge(l->snapshots.keeper));
    if (p->late)
        handle_status(l, node_merge_up(&l->merge, p, &e), &e);
    move_node(l, p, NODE_CLOCK);
    if (!session_pull_allowed(p->session, !l->merge.blocked, &e) || !node_merge_ask(&l->merge, p, &e))
        peer_fail(p, &e);
}

/* Arms a node. A node that came back may not have loaded the functions yet, so there they may be missing. */
static void arm_node(struct live *l, struct peer *p)
{
    move_node(l, p, NODE_ARMING);
    session_set_arm_peer(&l->sessions, p, p->late ? &l->again : l->o->what, &l->texts, (struct arm_mark){0});
}

static void look_at_patience(struct live *l, const struct peer *p)
{
    struct live_node *n = live_node_of(l, p);
    int64_t waited = loop_now() - n->began;

    if (n->patience == 0 && waited >= SLOW_MS) {
        n->patience++;
        ctx_show(l->ctx);
    }
    if (n->patience == 1 && waited >= STUCK_MS) {
        n->patience++;
        ctx_warn(l->ctx, "%s has been arming for %d seconds; Ctrl-C cancels", peer_name(p), STUCK_MS / 1000);
    }
}

static void look_at_nodes(struct live *l)
{
    bool beginning = peers_attaching(&l->sessions.peers), any = false;

    for (struct peer *p = NULL; (p = peers_next(&l->sessions.peers, p)) && l->pipeline && l->state != LIVE_LEAVING;) {
        if (p->state == PEER_UP && live_node_of(l, p)->state == NODE_HERE)
            enter_here(l, p);
        if (p->state == PEER_UP && live_node_of(l, p)->state == NODE_CLOCK && node_merge_known(&l->merge, p))
            arm_node(l, p);
        if (p->state == PEER_UP && live_node_of(l, p)->state == NODE_ARMING)
            look_at_patience(l, p);
    }
    for (size_t i = 0; i < l->sessions.peers.count; i++) {
        const struct peer *p = &l->sessions.peers.items[i];
        enum node_state s = l->nodes[i].state;
        any = any || (p->state != PEER_FREE && s != NODE_WITHOUT);
        beginning = beginning || s == NODE_HERE || s == NODE_CLOCK || s == NODE_ARMING;
    }
    if (beginning || l->state != LIVE_BEGINNING)
        return;
    if (!any)
        stop_with(l, &l->empty);
    else
        move_trace(l, l->o->what->dry_run ? LIVE_LEAVING : LIVE_RUNNING);
}

/* Returns the time of the next message about a node that arms slowly; -1: none. */
static int64_t next_patience(const struct live *l)
{
    int64_t next = -1;

    for (size_t i = 0; i < l->sessions.peers.count; i++) {
        const struct live_node *n = &l->nodes[i];
        if (n->state == NODE_ARMING && n->patience < 2)
            next = loop_sooner(next, n->began + (n->patience ? STUCK_MS : SLOW_MS));
    }
    return next;
}

static bool attach_all(struct live *l, struct err *e)
{
    l->sessions.leftover = l->o->child ? l->o->child->rest_path : NULL;
    ctx_let_die(l->ctx, true);
    return session_set_start(&l->sessions, l->o->node, l->o->limit, e);
}

/* ---- streaming ---- */

/*
 * Stops asking the nodes for events while an output is full, for example because a pager waits. Leases are still
 * renewed.
 */
static void throttle_nodes(struct live *l)
{
    const size_t enough = l->merge.blocked ? BACKLOG_LOW : BACKLOG_FULL - 1;
    const size_t backlog =
        MAX(outputs_backlog(&l->outputs, enough), snapshot_files_backlog(l->snapshots.files, enough));

    if (l->state == LIVE_LEAVING || (l->merge.blocked ? backlog > BACKLOG_LOW : backlog < BACKLOG_FULL))
        return;
    l->merge.blocked = !l->merge.blocked;
    peers_pull(&l->sessions.peers, !l->merge.blocked);
}

/* ---- snapshots ---- */

static bool is_traced(struct live *l, const struct peer *p)
{
    return p->state == PEER_UP && live_node_of(l, p)->state == NODE_ARMED && l->state == LIVE_RUNNING;
}

/* Asks each node that has no snapshot yet for one, if another node has begun a snapshot or the user asks. */
static void look_for_snapshots(struct live *l)
{
    const struct live_moment *m = l->o->moment;
    bool begins;

    if (snapshots_due(&l->snapshots, &begins))
        for (struct peer *p = NULL; (p = peers_next(&l->sessions.peers, p));)
            if (is_traced(l, p))
                snapshots_ask(&l->snapshots, p);
    if (begins && l->state == LIVE_RUNNING && snapshots_then(&l->snapshots))
        for (struct peer *p = NULL; (p = peers_next(&l->sessions.peers, p));)
            if (is_traced(l, p))
                m->ask(m->data, p);
}

/* Returns true while answers about the beginning of a snapshot are missing. Tells the command that the trace ends. */
static bool poll_moment(const struct live *l)
{
    const struct live_moment *m = l->o->moment;

    return m && m->waits(m->data, l->state == LIVE_LEAVING);
}

static void on_answer(void *data, struct peer *p, const struct session_reply *reply)
{
    struct live *l = data;

    if (l->o->moment)
        l->o->moment->answer(l->o->moment->data, p, reply);
    snapshots_answer(&l->snapshots, p, reply);
}

/*
 * Returns true, with an error, if --on-loss stop applies. live_finish() checks again, because the last losses arrive at
 * the end.
 */
static bool lost_too_much(const struct live *l, struct err *e)
{
    const struct totals *t = pipeline_totals(l->merge.pipeline);

    for (size_t i = 0; l->o->limit->on_loss == 1 && i < ETW_LOSSES; i++)
        if (t->lost[i] && i != ETW_LOST_OVERWRITTEN)
            return !err_set(e, ERR_GUARD,
                            l->state == LIVE_LEAVING ? "events were lost (%s)" : "stopped: events were lost (%s)",
                            event_losses[i]);
    return false;
}

static void look_for_an_end(struct live *l)
{
    struct err e;
    bool closed;

    if (l->o->child && l->o->child->ended && !l->rests) {
        /* Read the last events of the command's node for REST_MS, then leave the node even if it lives on. */
        l->until = loop_sooner(l->until, loop_now() + REST_MS);
        l->rests = true;
    }
    const bool asks = poll_moment(l);
    if (l->pipeline && l->o->limit->ring.when && l->o->limit->ring.snapshots &&
        snapshots_count(&l->snapshots) >= l->o->limit->ring.snapshots && !asks)
        stop_trace(l);
    if (l->ctx->interrupts || (l->until >= 0 && loop_now() >= l->until))
        stop_trace(l);
    if (l->state != LIVE_LEAVING && outputs_ended(&l->outputs, &closed, &e)) {
        if (!closed)
            live_fail(l, &e);
        l->unread = closed;
        stop_trace(l);
    }
    if (l->state != LIVE_LEAVING && l->pipeline && lost_too_much(l, &e))
        stop_with(l, &e);
}

static int64_t next_step(const struct live *l)
{
    int64_t next = l->state == LIVE_LEAVING ? -1 : loop_sooner(l->until, next_patience(l));

    if (l->snapshots.keeper)
        next = loop_sooner(next, keeper_next(l->snapshots.keeper, !l->merge.blocked));
    if (poll_moment(l))
        next = loop_sooner(next, loop_now() + 1000);
    if (l->redraw.table && l->state == LIVE_RUNNING)
        next = loop_sooner(next, l->redraw.due);
    if (l->pipeline && l->state == LIVE_RUNNING && pipeline_waits(l->pipeline))
        next = loop_sooner(next, l->ask_at);
    return l->pipeline ? loop_sooner(next, node_merge_next(&l->merge)) : next;
}

/* ---- a table on the screen ---- */

/* Returns true if standard output is the only output, and shows a table of counted events. */
static bool prints_a_table(const struct live *l)
{
    return l->o->view->tables && !l->o->what->dry_run && l->outputs.count == 1 &&
           l->outputs.outs[0] == l->outputs.own && l->outputs.views[0].type->flags & SINK_AGAIN;
}

static void look_at_table(struct live *l)
{
    bool fresh;

    if (!l->redraw.table || l->state != LIVE_RUNNING || !has_begun(l))
        return;
    if (!redraw_step(&l->redraw, l->pipeline, loop_now() - l->begun_at, &fresh))
        stop_trace(l);
    else if (fresh && l->o->what->requests) /* the next table shows the ages of open requests */
        node_merge_ask_all(&l->merge);
}

#define PASSED_MS 250

/* Asks the nodes for their time if a view waits for it: a quiet node sends nothing by itself. */
static void ask_for_time(struct live *l)
{
    if (l->state != LIVE_RUNNING || !l->pipeline || !pipeline_waits(l->pipeline) || loop_now() < l->ask_at)
        return;
    l->ask_at = loop_now() + PASSED_MS;
    node_merge_ask_all(&l->merge);
}

/* Serves the loop once, and then everything that may have changed. Returns false if no peer is left. */
static bool live_step(struct live *l)
{
    struct err e;

    if (!peers_step(&l->sessions.peers, next_step(l)))
        return false;
    if (!peers_attaching(&l->sessions.peers))
        ctx_let_die(l->ctx, false);
    look_for_records(l);
    if (l->pipeline)
        /* Before look_at_nodes(), which arms a node once its clock is known. */
        handle_status(l, node_merge_step(&l->merge, &e), &e);
    look_at_nodes(l);
    handle_status(l, snapshots_keep(&l->snapshots, l->state == LIVE_RUNNING, !l->merge.blocked, &e), &e);
    if (has_begun(l)) /* if every node refuses the trace, print nothing */
        pipeline_flush(l->pipeline);
    look_at_table(l);
    ask_for_time(l);
    /* Before snapshots_step(), which ends a snapshot: the other nodes must be asked before. */
    look_for_snapshots(l);
    if (!snapshots_step(&l->snapshots, l->state == LIVE_LEAVING, &e))
        stop_with(l, &e);
    look_for_an_end(l);
    throttle_nodes(l);
    return true;
}

/* ---- the command ---- */

static void live_finish(struct live *l)
{
    struct err e;
    bool closed;

    pipeline_end(l->pipeline);
    if (!l->status && lost_too_much(l, &e))
        live_fail(l, &e);
    if (outputs_ended(&l->outputs, &closed, &e) && !closed && !l->status)
        live_fail(l, &e);
    if (tty_is(STDOUT_FILENO)) /* the summary must appear below the events */
        l->status = ctx_flush(l->ctx, l->status);
    say_summary(l);
    l->status = assertions_status(&l->assertions, l->ctx, l->status);
}

/* Takes the batches that the command's node could not send before it ended. */
static void take_leftover(struct live *l)
{
    struct etw_batch head;
    struct str rest;

    if (!l->o->child || !l->pipeline || pipeline_totals(l->pipeline)->complete || !has_lost_one(l))
        return;
    for (rest = child_leftover(l->o->child); rest.len >= sizeof head; rest.at += head.bytes, rest.len -= head.bytes) {
        memcpy(&head, rest.at, sizeof head);
        if (head.magic != ETW_BATCH_MAGIC || head.bytes > rest.len || head.bytes < sizeof head || head.seq > l->seq + 1)
            return; /* malformed, or a batch is missing */
        if (head.seq > l->seq)
            live_on_batch(l, &l->sessions.peers.items[0], rest.at, head.bytes);
    }
}

static void live_init(struct live *l, struct ctx *ctx, const struct live_options *given)
{
    const struct session_set_handlers handlers = {.data = l,
                                                  .ready = live_on_ready,
                                                  .batch = live_on_batch,
                                                  .chosen = on_chosen,
                                                  .armed = live_on_armed,
                                                  .refused = live_on_refused,
                                                  .failed = live_on_failed,
                                                  .time = live_on_time,
                                                  .answer = on_answer};

    *l = (struct live){.ctx = ctx,
                       .own = *given,
                       .what = *given->what,
                       .view = *given->view,
                       .until = -1,
                       .begun_at = -1};
    l->own.what = &l->what;
    l->own.view = &l->view;
    l->o = &l->own;
    snapshots_init(&l->snapshots, ctx, &l->own, &l->view);
    session_set_begin(&l->sessions, ctx, &handlers);
    node_merge_init(&l->merge, ctx, &l->sessions.peers, NULL);
    arena_init(&l->arena);
    exprs_init(&l->exprs);
    l->matches.exprs = &l->exprs;
    record_lookup_init(&l->records);
}

/* Compiles the expressions and filters. Sets *ret_later if a node must define records first. */
static bool live_compile(struct live *l, bool *ret_later, struct err *e)
{
    const struct ring_opts *ring = &l->o->limit->ring;

    l->exprs.find_record = exprs_later;
    l->exprs.find_data = ret_later;
    l->exprs.by_text = l->view.by;
    l->wheres = assertions_texts(&l->view.wheres, l->o->asserts);
    if (ring->when && !ring->system)
        texts_add(&l->wheres, ring->when); /* after the filters and assertions, whose indices are fixed */
    if (!exprs_texts(l->ctx, &l->what, l->o->words, &l->arena, &l->texts, e) ||
        !exprs_compile(&l->exprs, &l->what, &l->texts, &l->wheres, 0, e))
        return false;
    l->what.needs = l->exprs.needs;
    l->again = l->what;
    l->again.allow_empty = true;
    return true;
}

/* Opens the outputs: as tables if the trace counts by keys, unless a snapshot shows the events. */
static bool live_open(struct live *l, const char *default_view, struct err *e)
{
    const struct live_table *t = l->o->table;

    l->view.tables = l->snapshots.numbered.tables =
        exprs_counts(&l->exprs) && !plan_watches_rows(&l->sessions.plan, &l->exprs);
    l->view.live = t && (!t->if_counts || l->view.tables);
    ctx_let_die(l->ctx, true); /* reading a long recording before continuing it may take long */
    const bool ok = outputs_open(&l->outputs, l->ctx, &l->view, default_view, e);
    ctx_let_die(l->ctx, false);
    if (ok && t && t->if_counts && !prints_a_table(l))
        l->own.table = NULL;
    if (ok && l->own.table)
        redraw_begin(&l->redraw, l->ctx, l->own.table, &l->outputs.views[0]);
    return ok;
}

/* Takes every step before the first event of the loop. */
static bool live_prepare(struct live *l, const char *default_view, struct err *e)
{
    struct plan *plan = &l->sessions.plan;
    bool later = false;

    if (!live_compile(l, &later, e) || !outputs_fit(&l->view, exprs_counts(&l->exprs), e))
        return false;
    const struct plan_from from = plan_inputs(l, later);
    if (!plan_recorder(plan, &from, e) || !live_open(l, default_view, e))
        return false;
    if (later)
        plan_choose(plan, &from);
    else if (!live_begin(l, e))
        return false;
    if (plan->recorder == PLAN_CLIENT_RECORDS)
        ctx_say(l->ctx, "etrace decides the condition of --snapshot-when, so the nodes send all events, within --rate");
    return attach_all(l, e);
}

static void live_end(struct live *l)
{
    struct err e;

    take_leftover(l);
    ctx_let_die(l->ctx, false);
    redraw_close(&l->redraw);
    const bool ran = !l->status && !l->o->what->dry_run;
    if (!l->status && none_came(l) && !l->unread) {
        err_set(&e, ERR_NODE, "nothing was traced: etrace could not attach to any node");
        live_fail(l, &e);
    }
    if (!snapshots_end(&l->snapshots, &e) && !l->status)
        live_fail(l, &e);
    poll_moment(l);
    l->status = snapshot_files_end(l->snapshots.files, l->status);
    /* A dry run and a trace that failed before it began have no summary, unless a node was lost. */
    if (l->pipeline && (has_begun(l) || has_lost_one(l) || ran))
        live_finish(l);
    l->status = outputs_flush(&l->outputs, l->ctx, l->status);
    l->ctx->takes_snapshots = false;
}

static void live_release(struct live *l)
{
    session_set_close(&l->sessions);
    for (size_t i = 0; i < PEERS_MAX; i++)
        free(l->nodes[i].banner);
    record_lookup_release(&l->records);
    buf_release(&l->told);
    pipeline_free(l->pipeline);
    snapshots_release(&l->snapshots);
    if (l->o->limit->ring.on)
        texts_release(&l->view.outputs);
    outputs_close(&l->outputs);
    buf_release(&l->found);
    assertions_release(&l->assertions);
    texts_release(&l->wheres);
    exprs_release(&l->exprs);
    matches_release(&l->matches);
    texts_release(&l->texts);
    arena_release(&l->arena);
}

int live_run(struct ctx *ctx, const struct live_options *o, const char *default_view)
{
    struct live l;
    struct err e;

    live_init(&l, ctx, o);
    if (!outputs_makes_sense(o->view, &e) || !live_prepare(&l, default_view, &e))
        stop_with(&l, &e);
    while (live_step(&l))
        continue;
    live_end(&l);
    live_release(&l);
    return l.status;
}

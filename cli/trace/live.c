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
#include "assertions.h"
#include "child.h"
#include "outcome.h"
#include "prepare.h"
#include "session_set.h"
#include "node_merge.h"

#define BACKLOG_FULL (8u << 20) /* bytes of unwritten output; above it the nodes are asked for no more events */
#define BACKLOG_LOW (1u << 20)
/* How long to wait for the nodes after a stop; after that the lease on the node ends the session. */
#define LEAVE_MS 5000
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
 *   WITHOUT  --cluster: nothing matches there, so etrace leaves it
 */
enum node_state { NODE_AWAITED, NODE_HERE, NODE_CLOCK, NODE_ARMING, NODE_ARMED, NODE_WITHOUT };

struct live_node {
    enum node_state state;
    char *banner;  /* ARMING: the line to print once it is ARMED; NULL: ctx_begin() has begun that line */
    int64_t began; /* when the node entered this state */
    int patience;  /* ARMING: how many messages about the delay were printed */
};

/*
 * The state of the trace:
 *
 *   BEGINNING  until each wanted node is ARMED or WITHOUT, is AWAY, or has failed
 *   RUNNING    until something ends it
 *   LEAVING    all sessions are ending; the remaining events still arrive
 */
enum state { LIVE_BEGINNING, LIVE_RUNNING, LIVE_LEAVING };

struct live {
    struct ctx *ctx;
    const struct live_options *o;
    enum state state;
    struct arena arena;
    struct texts texts;  /* the expressions as text */
    struct texts wheres; /* the filters, followed by the assertions */
    struct exprs exprs;
    struct assertions assertions;
    struct outputs outputs;
    struct pipeline *pipeline; /* NULL until a node has answered which records the expressions use */
    struct record_lookup records;
    struct peer *teller; /* the node that is asked for records; NULL: none */
    struct buf told;     /* the answer of `teller` */
    struct session_set sessions;
    struct node_merge merge;
    struct live_node nodes[PEERS_MAX];
    struct what_opts again; /* the request for nodes that come back: theirs may match nothing yet */
    struct err empty;       /* the refusal of the last node that became WITHOUT */
    /* For each probe why it matched no function at arming; status 0: it matched, or the node gave no reason. */
    struct err *missing;
    struct buf filter;            /* the filter by which the nodes count or hold events (struct etw_filter_step) */
    struct buf found;             /* the records that a node defines, as text */
    int64_t until;                /* the loop_now() time at which the trace stops; -1: none */
    int64_t gone_by;              /* LEAVING: when etrace stops waiting for the nodes */
    bool blocked;                 /* the output is full: the nodes are not asked for events */
    bool limited;                 /* --limit was reached */
    bool childless;               /* the command has ended */
    bool begun;                   /* some node traces */
    int64_t begun_at, stopped_at; /* when tracing began; when LEAVING began */
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
 * Warns of nodes that have not answered when the user stops early: nothing else reports them. After an error it prints
 * nothing.
 */
static void say_unanswered(const struct live *l)
{
    for (size_t i = 0; i < l->sessions.peers.count && !l->status; i++) {
        const struct peer *p = &l->sessions.peers.items[i];
        const char *name = peer_name(p) ? peer_name(p) : "the node";
        bool attaching = p->state == PEER_CONNECTING || p->state == PEER_BOOTING || p->state == PEER_LISTING;
        if (attaching && !p->late)
            ctx_warn(l->ctx, "not traced: %s has not answered yet", name);
        else if (p->state == PEER_UP && l->nodes[i].state == NODE_ARMING)
            ctx_warn(l->ctx, "%s was still being armed", name);
    }
}

static const char *const states[] = {"beginning", "running", "leaving"};

static void move(struct live *l, enum state to)
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
        l->gone_by = l->stopped_at + LEAVE_MS;
        say_unanswered(l);
        peers_stop(&l->sessions.peers);
    }
}

static void stop(struct live *l)
{
    move(l, LIVE_LEAVING);
}

static void stop_with(struct live *l, const struct err *e)
{
    live_fail(l, e);
    stop(l);
}

/* ---- what sessions send ---- */

static void begun(struct live *l)
{
    if (!l->begun)
        l->begun_at = loop_now();
    l->begun = true;
    outputs_begin(&l->outputs);
}

static void took(struct live *l, enum pipeline_status status, const struct err *e)
{
    switch (status) {
    case PIPELINE_MORE:
        break;
    case PIPELINE_LIMIT:
        if (!l->limited)
            l->until = loop_now() + REST_MS;
        l->limited = true;
        break;
    case PIPELINE_DONE:
        stop(l);
        break;
    case PIPELINE_FAILED: /* the pipeline returns it from now on; the first time has the reason */
        if (l->state != LIVE_LEAVING)
            stop_with(l, e);
        break;
    }
}

static void live_on_batch(void *data, struct peer *p, const void *batch, size_t len)
{
    struct live *l = data;
    struct err e;

    if (!l->pipeline) /* a batch may arrive while the trace ends before it has a pipeline */
        return;
    node_merge_batch(&l->merge, p);
    enum pipeline_status status = pipeline_batch(l->pipeline, p->index, (struct str){batch, len}, &e);
    if (!l->begun && pipeline_totals(l->pipeline)->seen)
        begun(l); /* a meta probe reports events while other probes are still being armed */
    took(l, status, &e);
}

static void live_on_time(void *data, struct peer *p, const struct session_time *time)
{
    node_merge_time(&((struct live *)data)->merge, p, time);
}

static struct live_node *node_of(struct live *l, const struct peer *p)
{
    return &l->nodes[p->index];
}

static const char *const node_states[] = {"awaited", "here", "clock", "arming", "armed", "without"};

static void move_node(struct live *l, const struct peer *p, enum node_state to)
{
    struct live_node *n = node_of(l, p);

    ctx_debug(l->ctx, "%s, traced: %s -> %s", peer_name(p) ? peer_name(p) : "the node", node_states[n->state],
              node_states[to]);
    free(n->banner);
    *n = (struct live_node){.state = to, .began = loop_now()};
}

/* Until a node is ready there is nothing to clean up, so a signal may end the program. */
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
    bool was_here = node_of(l, p)->state != NODE_AWAITED, was_armed = node_of(l, p)->state == NODE_ARMED;
    struct err e;

    move_node(l, p, NODE_AWAITED);
    if (was_here && l->pipeline && !l->o->child)
        took(l, node_merge_down(&l->merge, p, cause, &e), &e);
    if (p->state == PEER_AWAY && l->state != LIVE_LEAVING)
        ctx_warn(l->ctx, "%s; waiting for it", cause->text);
    else if (l->state == LIVE_BEGINNING && !(l->o->child && was_armed))
        stop_with(l, cause);
    else if (!l->o->child || cause->status == ERR_GUARD)
        live_fail(l, cause);
}

/* With --cluster, not every node needs to have the functions. */
static bool may_lack(const struct live *l, const struct err *e)
{
    return l->o->node->cluster && e->status == ERR_EMPTY;
}

/* With several nodes, prefix the error with the node's name unless it already starts with it. */
static struct err about(const struct live *l, const struct peer *p, const struct err *e)
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
    struct err full = about(l, p, e);

    if (l->state == LIVE_LEAVING)
        return;
    if (p->late) {
        ctx_warn(l->ctx, "%s: %s", peer_name(p), e->text);
        peer_detach(p);
    } else if (may_lack(l, e)) {
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

static void note_missing(struct live *l, const struct arm_result_probe *probe)
{
    if (!l->missing)
        l->missing = mem_zalloc((l->exprs.count + 1) * sizeof *l->missing);
    if (probe->id >= 0 && (size_t)probe->id < l->exprs.count)
        l->missing[probe->id] = probe->functions ? (struct err){0} : probe->missing;
}

/* Warns of probes that had no function when they were armed and no event later. */
static void say_missing(struct live *l)
{
    for (size_t i = 0; l->missing && i < l->exprs.count; i++) {
        const struct err *why = &l->missing[i];
        const struct spec *s = l->exprs.specs[i];
        if (why->status && !pipeline_answered(l->pipeline, i))
            ctx_warn(l->ctx, "warning: nothing matched '%.*s': %s%s%s", (int)s->text.len, s->text.at, why->text,
                     why->hint[0] ? "; " : "", why->hint);
    }
}

/*
 * A single node has one line, which ends when the node traces. With several nodes each has a line, and a last line is
 * about all of them.
 */
static void on_chosen(void *data, struct peer *p, const struct arm_result *result)
{
    struct live *l = data;
    const struct session_node *node = session_node(p->session);
    bool calls = false;

    for (size_t i = 0; i < l->exprs.count; i++)
        calls = calls || l->exprs.specs[i]->kind == SPEC_CALL;
    for (size_t i = 0; i < result->nprobes; i++)
        note_missing(l, &result->probes[i]);
    if (node->fallback)
        ctx_warn(l->ctx, "%s: tracing without the NIF, at most 1000 events a second: %s", node->name, node->fallback_why);
    for (size_t i = 0; i < result->nwarnings; i++)
        ctx_warn(l->ctx, "%s: warning: %s", node->name, result->warnings[i]);
    char found[64] = "", ports[40] = "";
    if (calls)
        snprintf(found, sizeof(found), " · %llu function%s", (unsigned long long)result->functions,
                 PLURAL(result->functions));
    if (result->ports)
        snprintf(ports, sizeof(ports), " · %llu port%s", (unsigned long long)result->ports, PLURAL(result->ports));
    struct buf b = {0};
    buf_printf(&b, "%s · OTP %s%s · %llu process%s%s", node->name, node->otp_version, found,
               (unsigned long long)result->processes, PLURAL_ES(result->processes), ports);
    if (peers_several(&l->sessions.peers))
        node_of(l, p)->banner = mem_strndup(b.data, b.len);
    else
        ctx_begin(l->ctx, "%s", buf_cstr(&b));
    buf_release(&b);
}

static void live_on_armed(void *data, struct peer *p, const struct arm_result *result UNUSED)
{
    struct live *l = data;
    const char *end = l->o->what->dry_run ? "not traced (--dry-run)"
                      : l->o->child       ? "ends with the command"
                                          : "Ctrl-C stops";
    const char *banner = node_of(l, p)->banner;

    if (!l->o->what->dry_run)
        begun(l);
    if (banner)
        ctx_say(l->ctx, "%s%s", banner, l->o->what->dry_run ? " · not traced (--dry-run)" : "");
    else
        ctx_end(l->ctx, end);
    move_node(l, p, NODE_ARMED);
}

/* Whether a node was lost while it was attached, even if it traced nothing yet. */
static bool has_lost_one(const struct live *l)
{
    for (size_t i = 0; i < l->sessions.peers.count; i++)
        if (l->sessions.peers.items[i].came && l->sessions.peers.items[i].session &&
            session_lost(l->sessions.peers.items[i].session))
            return true;
    return false;
}

/* Whether no node was ever UP: --reattach may wait for every node until the end. */
static bool none_came(const struct live *l)
{
    for (size_t i = 0; i < l->sessions.peers.count; i++)
        if (l->sessions.peers.items[i].came)
            return false;
    return true;
}

/* NULL: as usual */
static const char *session_end(const struct live *l, const struct totals *t)
{
    if (none_came(l))
        return "never started";
    if (peers_gone(&l->sessions.peers))
        return NULL;
    if (!t->complete)
        return "ended by the node: the last events may be missing";
    /* The node's code server can be busy for a long time, which delays the unload. */
    return l->state == LIVE_LEAVING && loop_now() >= l->gone_by ? "destroyed, but the node has not unloaded the tracer yet"
                                                                : "ended by the node";
}

static void summary(struct live *l)
{
    const struct totals *t = pipeline_totals(l->pipeline);

    for (size_t i = 0; i < t->nnodes && peers_several(&l->sessions.peers); i++)
        outcome_node(l->ctx, &t->nodes[i]);
    say_missing(l);
    if (t->undecided)
        ctx_say(l->ctx,
                "%llu event%s shown because the filter could not decide: terms were cut (--size, --depth, --items keep more)",
                (unsigned long long)t->undecided, PLURAL(t->undecided));
    outcome_trace(l->ctx, t, l->begun ? (l->stopped_at ? l->stopped_at : loop_now()) - l->begun_at : -1, session_end(l, t));
}

/* ---- attaching ---- */

/* Whether the client decides about single events. The node then cannot count them for --limit. */
static bool sifts(const struct live *l)
{
    for (size_t i = 0; i < l->exprs.count; i++)
        if (l->exprs.specs[i]->nwhere)
            return true;
    return l->outputs.ngreps || l->o->view->wheres.count;
}

static bool pairs(const struct live *l)
{
    uint64_t besides;

    exprs_kinds(&l->exprs, &besides);
    return besides;
}

/*
 * Whether the nodes can count calls instead of sending events: the views show only figures, and the node can decide
 * every filter.
 */
static bool wants_figures(struct live *l)
{
    size_t filters = l->o->view->wheres.count;

    if (!outputs_is_figures(&l->outputs) || l->outputs.ngreps || l->o->limit->limit || l->wheres.count > filters)
        return false;
    for (size_t i = 0; i < l->exprs.count; i++)
        if (l->exprs.specs[i]->kind != SPEC_CALL)
            return false;
    if (!exprs_filter(&l->exprs, l->exprs.wheres, filters, &l->filter))
        return false;
    l->sessions.filter = buf_view(&l->filter);
    return true;
}

/*
 * Whether the nodes can drop the calls that a filter on results or durations hides. This requires that no view shows
 * anything that depends on the calls around. If the node cannot decide about a call, it sends it and the client filters
 * it.
 */
static bool wants_hold(struct live *l)
{
    if (!outputs_is_alone(&l->outputs) || l->o->what->silent ||
        !exprs_hold(&l->exprs, l->exprs.wheres, l->o->view->wheres.count, &l->filter))
        return false;
    l->sessions.filter = buf_view(&l->filter);
    return true;
}

/*
 * Whether nobody reads the senders of messages. A match specification has to fetch the sender, which costs nearly half
 * as much as the rest of tracing a message.
 */
static bool is_anonymous(const struct live *l)
{
    return !l->outputs.ngreps && !outputs_has_senders(&l->outputs) && !exprs_reads_sender(&l->exprs);
}

/* Writes the expressions into a recording, so that a replay reads the events as they were read here. */
static void record_specs(struct live *l, const struct peer *p)
{
    const struct what_opts *what = l->o->what;
    struct buf text = {0};

    for (size_t i = 0; i < l->exprs.count; i++)
        recfile_spec_add(&text, "expr", l->exprs.specs[i]->text);
    for (size_t i = 0; i < l->exprs.nheaders; i++)
        recfile_spec_add(&text, "hrl", l->exprs.headers[i]);
    if (l->found.len)
        recfile_spec_add(&text, "hrl", buf_view(&l->found));
    for (size_t i = 0; i < what->lets.count; i++)
        recfile_spec_add(&text, "let", (struct str){what->lets.items[i], strlen(what->lets.items[i])});
    recfile_spec_needs(&text, l->exprs.needs);
    pipeline_specs(l->pipeline, p->index, buf_view(&text));
    buf_release(&text);
}

/*
 * Creates the pipeline. If the expressions use unknown records, it runs after a node has defined them, otherwise before
 * etrace attaches.
 */
static bool live_begin(struct live *l, struct err *e)
{
    if (!assertions_init(&l->assertions, l->o->asserts, &l->exprs, l->o->view->wheres.count, e))
        return false;
    struct pipeline_options options = {
        .views = l->outputs.views,
        .nviews = l->outputs.count,
        .specs = l->exprs.specs,
        .nspecs = l->exprs.count,
        .greps = l->outputs.greps,
        .ngreps = l->outputs.ngreps,
        .wheres = l->exprs.wheres,
        .nwheres = l->o->view->wheres.count,
        .asserts = l->assertions.asserts,
        .limit = (uint64_t)l->o->limit->limit,
        .notice = on_notice,
        .ctx = l,
    };

    exprs_warn(&l->exprs, l->ctx);
    assertions_warn(&l->assertions, &l->exprs, &l->o->view->wheres, &l->outputs, l->ctx);
    l->pipeline = pipeline_new(&options, e);
    l->merge.pipeline = l->pipeline;
    if (!l->pipeline)
        return false;
    l->sessions.figures = wants_figures(l);
    l->sessions.hold = !l->sessions.figures && wants_hold(l);
    l->sessions.anonymous = is_anonymous(l);
    return true;
}

/* ---- records ---- */

/* Compiles with the records that are known so far, and asks for a missing one. */
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

/* Asks the first node that is UP for the records. If it is lost meanwhile, asks the next one. */
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

static void is_here(struct live *l, struct peer *p)
{
    struct err e;

    record_specs(l, p);
    if (p->late)
        took(l, node_merge_up(&l->merge, p, &e), &e);
    move_node(l, p, NODE_CLOCK);
    if (!session_pull_allowed(p->session, !l->blocked, &e) || !node_merge_ask(&l->merge, p, &e))
        peer_fail(p, &e);
}

/* A node that comes back may not have loaded the functions yet. */
static void arm(struct live *l, struct peer *p)
{
    move_node(l, p, NODE_ARMING);
    session_set_arm_peer(&l->sessions, p, p->late ? &l->again : l->o->what, &l->texts, (struct arm_mark){0});
}

static void look_at_patience(struct live *l, const struct peer *p)
{
    struct live_node *n = node_of(l, p);
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
        if (p->state == PEER_UP && node_of(l, p)->state == NODE_HERE)
            is_here(l, p);
        if (p->state == PEER_UP && node_of(l, p)->state == NODE_CLOCK && node_merge_known(&l->merge, p))
            arm(l, p);
        if (p->state == PEER_UP && node_of(l, p)->state == NODE_ARMING)
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
        move(l, l->o->what->dry_run ? LIVE_LEAVING : LIVE_RUNNING);
}

/* The time of the next message about a node that arms slowly; -1: none. */
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
    unsigned how = (sifts(l) || pairs(l) ? SESSION_SET_SIFTS : 0) | (l->pipeline ? 0 : SESSION_SET_HOLDS);

    ctx_let_die(l->ctx, true);
    return session_set_start(&l->sessions, l->o->node, l->o->limit, how, e);
}

/* ---- streaming ---- */

/* Stops asking for events while an output is full, for example a pager that waits. The leases are still renewed. */
static void throttle(struct live *l)
{
    size_t backlog = outputs_backlog(&l->outputs, l->blocked ? BACKLOG_LOW : BACKLOG_FULL - 1);

    if (l->state == LIVE_LEAVING || (l->blocked ? backlog > BACKLOG_LOW : backlog < BACKLOG_FULL))
        return;
    l->blocked = !l->blocked;
    l->merge.blocked = l->blocked;
    peers_pull(&l->sessions.peers, !l->blocked);
}

/* Whether --on-loss stop applies. live_finish() checks again, because the last losses arrive at the end. */
static bool lost_too_much(const struct live *l, struct err *e)
{
    const struct totals *t = pipeline_totals(l->pipeline);

    for (size_t i = 0; l->o->limit->on_loss == 1 && i < ETW_LOSSES; i++)
        if (t->lost[i])
            return !err_set(e, ERR_GUARD,
                            l->state == LIVE_LEAVING ? "events were lost (%s)" : "stopped: events were lost (%s)",
                            event_losses[i]);
    return false;
}

static void look_for_an_end(struct live *l)
{
    struct err e;
    bool closed;

    if (l->o->child && l->o->child->ended && !l->childless) {
        l->childless = true; /* its last events are still read; if its node lives on, etrace leaves it */
        l->until = l->until < 0 ? loop_now() + REST_MS : MIN(l->until, loop_now() + REST_MS);
    }
    if (l->ctx->interrupts || (l->until >= 0 && loop_now() >= l->until))
        stop(l);
    if (l->state != LIVE_LEAVING && outputs_ended(&l->outputs, &closed, &e)) {
        if (!closed)
            live_fail(l, &e);
        stop(l);
    }
    if (l->state != LIVE_LEAVING && l->pipeline && lost_too_much(l, &e))
        stop_with(l, &e);
}

static int64_t next_step(const struct live *l)
{
    int64_t next = l->state == LIVE_LEAVING ? l->gone_by : loop_sooner(l->until, next_patience(l));

    return l->pipeline ? loop_sooner(next, node_merge_next(&l->merge)) : next;
}

/* False: no peer is left. */
static bool live_step(struct live *l)
{
    struct err e;

    if (!peers_step(&l->sessions.peers, next_step(l)))
        return false;
    if (!peers_attaching(&l->sessions.peers))
        ctx_let_die(l->ctx, false);
    look_for_records(l);
    look_at_nodes(l);
    if (l->pipeline) {
        took(l, node_merge_step(&l->merge, &e), &e);
        if (l->begun) /* if every node refuses the trace, nothing is shown */
            pipeline_flush(l->pipeline);
    }
    look_for_an_end(l);
    throttle(l);
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
    if (tty_is(STDOUT_FILENO)) /* on a terminal the summary follows the events */
        l->status = ctx_flush(l->ctx, l->status);
    summary(l);
    l->status = assertions_status(&l->assertions, l->ctx, l->status);
}

int live_run(struct ctx *ctx, const struct live_options *given, const char *default_view)
{
    struct what_opts what = *given->what;
    struct live_options own = *given, *o = &own;
    struct live l = {.ctx = ctx, .o = o, .until = -1};
    struct session_set_handlers handlers = {.data = &l,
                                            .ready = live_on_ready,
                                            .batch = live_on_batch,
                                            .chosen = on_chosen,
                                            .armed = live_on_armed,
                                            .refused = live_on_refused,
                                            .failed = live_on_failed,
                                            .time = live_on_time};
    bool later = false;
    struct err e;

    own.what = &what;
    session_set_begin(&l.sessions, ctx, &handlers);
    node_merge_init(&l.merge, ctx, &l.sessions.peers, NULL);
    arena_init(&l.arena);
    exprs_init(&l.exprs);
    l.exprs.find_record = exprs_later;
    l.exprs.find_data = &later;
    l.wheres = assertions_texts(&o->view->wheres, o->asserts);
    bool ok = outputs_makes_sense(o->view, &e) && exprs_texts(ctx, o->what, o->words, &l.arena, &l.texts, &e) &&
              exprs_compile(&l.exprs, o->what, &l.texts, &l.wheres, 0, &e);
    what.needs = l.exprs.needs;
    l.again = what;
    l.again.allow_empty = true;
    record_lookup_init(&l.records);
    ok = ok && outputs_open(&l.outputs, ctx, o->view, default_view, &e) && (later || live_begin(&l, &e));
    ok = ok && attach_all(&l, &e);
    if (!ok)
        stop_with(&l, &e);
    while (live_step(&l) && !(l.state == LIVE_LEAVING && loop_now() >= l.gone_by))
        continue;
    ctx_let_die(ctx, false);
    bool ran = !l.status && !o->what->dry_run;
    if (!l.status && none_came(&l)) {
        err_set(&e, ERR_NODE, "nothing was traced: etrace could not attach to any node");
        live_fail(&l, &e);
    }
    /* A dry run and a trace that failed before it began have no summary, unless a node was lost. */
    if (l.pipeline && (l.begun || has_lost_one(&l) || ran))
        live_finish(&l);
    l.status = outputs_flush(&l.outputs, ctx, l.status);
    session_set_close(&l.sessions);
    for (size_t i = 0; i < PEERS_MAX; i++)
        free(l.nodes[i].banner);
    record_lookup_release(&l.records);
    buf_release(&l.told);
    pipeline_free(l.pipeline);
    outputs_close(&l.outputs);
    buf_release(&l.filter);
    buf_release(&l.found);
    assertions_release(&l.assertions);
    texts_release(&l.wheres);
    exprs_release(&l.exprs);
    free(l.missing);
    texts_release(&l.texts);
    arena_release(&l.arena);
    return l.status;
}

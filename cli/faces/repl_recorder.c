/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the nodes record, and takes snapshots. */
#include "repl_recorder.h"

#include <stdlib.h>
#include <string.h>

#include "../commands/recorder.h"
#include "../ground/mem.h"
#include "../trace/outputs.h"
#include "../trace/snapshot_round.h"

#define TRIGGER "trigger" /* label of the probe for the system event that triggers snapshots */

struct repl_recorder {
    struct repl_base *base;
    struct repl_nodes *nodes;
    struct repl_probes *probes;
    struct snapshot_round round;
    uint64_t ended;            /* number of snapshots that have ended */
    uint32_t asked[PEERS_MAX]; /* id of the request for a snapshot, by peer; 0: none is open */
};

/* ---- settings ---- */

/* The settings of the recorder, before they take effect. */
struct settings {
    struct limit_opts limit;
    struct buf filter;
    unsigned needs; /* what the condition needs of an event */
};

static bool read_condition(const struct repl_recorder *r, const char *when, struct settings *p, struct err *e)
{
    struct texts none = {0}, one = {0};
    struct exprs exprs;

    texts_add(&one, when);
    exprs_init(&exprs);
    bool ok = exprs_compile(&exprs, &r->base->options.what, &none, &one, 0, e) &&
              exprs_trigger(&exprs, exprs.wheres[0], when, &p->filter, e);
    p->needs = exprs.needs;
    exprs_release(&exprs);
    texts_release(&one);
    return ok;
}

static bool require_numbered(const struct texts *outputs, struct err *e)
{
    struct texts plain = {0}, numbered = {0};

    outputs_split(outputs, &plain, &numbered);
    if (numbered.count) {
        err_set(e, ERR_USAGE, "'%s': only etrace trace writes a file for each snapshot", numbered.items[0]);
        err_hint(e, "after a snapshot, :save FILE writes the captured events");
    }
    bool any = numbered.count;
    texts_release(&plain);
    texts_release(&numbered);
    return any;
}

/* Reads the settings into *p. The caller must release p->filter, even after an error. */
static bool read_settings(const struct repl_recorder *r, struct settings *p, struct err *e)
{
    const struct repl_options *o = &r->base->options;

    *p = (struct settings){.limit = o->limit};
    if (!recorder_read(&o->recorder, &p->limit, e) || !session_set_takes(&o->node, &p->limit, e))
        return false;
    const struct ring_opts *ring = &p->limit.ring;
    return !ring->on || (!require_numbered(&o->view.outputs, e) && repl_probes_may_overwrite(r->probes, e) &&
                         (!ring->when || ring->system || read_condition(r, ring->when, p, e)));
}

static void use_settings(struct repl_recorder *r, const struct settings *p)
{
    struct session_set *sessions = repl_nodes_run(r->nodes);
    const size_t len = p->filter.len;

    r->base->options.limit.ring = p->limit.ring;
    sessions->plan = PLAN_ALL;
    sessions->plan.recorder = p->limit.ring.on ? PLAN_NODES_RECORD : PLAN_STREAMS;
    /* Copies the filter into the arena, because requests in preparation borrow it. */
    sessions->plan.filter = (struct str){len ? arena_strndup(&r->base->options.arena, p->filter.data, len) : NULL, len};
}

/* Returns false, with an error, if the OTP release of an attached node lacks the system event. */
static bool nodes_have(const struct repl_recorder *r, const char *event, struct err *e)
{
    const struct peers *peers = repl_nodes_peers(r->nodes);
    struct texts none = {0}, one = {0};
    bool ok = true;

    texts_add(&one, event);
    for (size_t i = 0; ok && i < peers->count; i++) {
        struct exprs exprs;
        if (peers->items[i].state != PEER_UP)
            continue;
        exprs_init(&exprs);
        ok = exprs_compile(&exprs, &r->base->options.what, &one, &none, session_node(peers->items[i].session)->otp, e);
        exprs_release(&exprs);
    }
    texts_release(&one);
    return ok;
}

/* Adds the probe for the system event that triggers snapshots, if --snapshot-when names such an event. */
static bool add_trigger(struct repl_recorder *r, const struct ring_opts *ring, struct err *e)
{
    struct buf line = {0};
    const char *expr;

    if (!ring->system)
        return true;
    if (!nodes_have(r, ring->when, e))
        return false;
    buf_printf(&line, TRIGGER ": %s", ring->when);
    bool ok = repl_probes_add(r->probes, buf_cstr(&line), &expr, e);
    buf_release(&line);
    return ok;
}

static void tell_mode(const struct repl_recorder *r)
{
    const struct ring_opts *ring = &r->base->options.limit.ring;
    struct ctx *ctx = r->base->ctx;

    if (!ring->on)
        ctx_say(ctx, "the nodes do not record any longer: events are shown as they come");
    else if (ring->when)
        ctx_say(ctx, "the nodes record; they send the last events when '%s' %s; :snapshot shows them now", ring->when,
                ring->system ? "comes" : "holds");
    else
        ctx_say(ctx, "the nodes record; :snapshot shows the last events");
}

bool repl_recorder_open(struct repl_recorder *r, struct err *e)
{
    struct settings wanted;
    bool ok = read_settings(r, &wanted, e);

    if (ok) {
        use_settings(r, &wanted);
        repl_probes_collect(r->probes, PROBES_FOR_TRIGGER, wanted.needs);
        scroll_of_recorders(r->base->scroll, wanted.limit.ring.on ? SCROLL_RECORDERS : SCROLL_STREAMS);
    }
    buf_release(&wanted.filter);
    return ok;
}

bool repl_recorder_begin(struct repl_recorder *r, struct err *e)
{
    const struct ring_opts *ring = &r->base->options.limit.ring;

    if (!ring->on)
        return true;
    if (!add_trigger(r, ring, e) || (ring->system && !repl_probes_arm_all(r->probes, -1, e)))
        return false;
    tell_mode(r);
    return true;
}

bool repl_recorder_set(struct repl_recorder *r, struct err *e)
{
    const struct ring_opts before = r->base->options.limit.ring;
    struct settings wanted;
    bool ok = read_settings(r, &wanted, e);
    const bool same = ok && before.system && wanted.limit.ring.system && !strcmp(before.when, wanted.limit.ring.when);

    ok = ok && (same || add_trigger(r, &wanted.limit.ring, e));

    if (ok && (before.on || wanted.limit.ring.on)) {
        if (wanted.limit.ring.on)
            scroll_of_recorders(r->base->scroll, SCROLL_RECORDERS);
        use_settings(r, &wanted);
        repl_nodes_reopen(r->nodes);
        /* The nodes record until repl_nodes_reopen() has detached from them. */
        if (!wanted.limit.ring.on)
            scroll_of_recorders(r->base->scroll, SCROLL_STREAMS);
        repl_probes_collect(r->probes, PROBES_FOR_TRIGGER, wanted.needs);
        if (before.system && !wanted.limit.ring.system)
            repl_probes_drop(r->probes, TRIGGER);
        else if (wanted.limit.ring.system)
            repl_probes_arm(r->probes);
        tell_mode(r);
    }
    buf_release(&wanted.filter);
    return ok;
}

bool repl_recorder_allows(const struct repl_recorder *r, struct err *e)
{
    struct settings wanted;
    bool ok = read_settings(r, &wanted, e);

    buf_release(&wanted.filter);
    return ok;
}

bool repl_recorder_refuses(const char *name, struct err *e)
{
    for (size_t i = 0; i < snapshot_group.count; i++)
        if (!strcmp(snapshot_group.rows[i].name, name)) {
            err_set(e, ERR_USAGE, "--%s is an option of etrace trace only", name);
            return true;
        }
    return false;
}

/* ---- snapshots ---- */

/* Requests a snapshot from each node that has not sent one in this round. */
static void ask_lacking(struct repl_recorder *r)
{
    struct peers *peers = repl_nodes_peers(r->nodes);
    struct err e;

    for (size_t i = 0; i < peers->count; i++) {
        struct peer *p = &peers->items[i];
        if (p->state != PEER_UP || peer_is_leaving(p) || !snapshot_round_lacks(&r->round, p->index))
            continue;
        if (!session_snapshot(p->session, SNAPSHOT_MS, &r->asked[i], &e)) {
            peer_fail(p, &e);
            continue;
        }
        snapshot_round_asked(&r->round, p->index, true);
    }
}

void repl_recorder_tick(struct repl_recorder *r)
{
    struct peers *peers = repl_nodes_peers(r->nodes);
    bool leaving = false;

    for (size_t i = 0; i < peers->count; i++) {
        const struct peer *p = &peers->items[i];
        leaving = leaving || peer_is_leaving(p);
        if (p->state != PEER_UP) {
            r->asked[i] = 0;
            snapshot_round_asked(&r->round, p->index, false);
        }
    }
    /* A node from which etrace detaches sends its last events as a snapshot. The other nodes need not send one then. */
    if (snapshot_round_begins(&r->round) && !leaving && r->base->options.limit.ring.on)
        ask_lacking(r);
    r->ended += snapshot_round_ends(&r->round);
}

bool repl_recorder_on_answer(struct repl_recorder *r, const struct peer *p, const struct session_reply *reply)
{
    if (!r->asked[p->index] || r->asked[p->index] != reply->id)
        return false;
    r->asked[p->index] = 0;
    if (!reply->ok || !etf_is_atom(&reply->term, "true"))
        snapshot_round_asked(&r->round, p->index, false);
    repl_wake(r->base);
    return true;
}

bool repl_recorder_snapshot(struct repl_recorder *r, bool *ret_interrupted, struct err *e)
{
    const uint64_t ended = r->ended;
    struct scroll_snapshots before, now;

    *ret_interrupted = false;
    if (!r->base->options.limit.ring.on) {
        err_set(e, ERR_USAGE, "no snapshot: the nodes do not record");
        err_hint(e, ":ring 30s or :snapshot-when EXPR begins to record");
        return false;
    }
    if (!repl_nodes_attached(r->nodes))
        return err_set(e, ERR_NODE, "no snapshot: no node is attached");
    scroll_snapshots(r->base->scroll, &before);
    const bool began = snapshot_round_update(&r->round);
    ask_lacking(r);
    while (repl_recorder_tick(r), r->ended == ended && !r->base->leaving && repl_nodes_attached(r->nodes)) {
        repl_step(r->base, -1);
        if (repl_interrupted(r->base)) {
            *ret_interrupted = true;
            return true;
        }
    }
    scroll_snapshots(r->base->scroll, &now);
    if (!began && now.begun == before.begun && !r->base->leaving) {
        err_set(e, ERR_RUN, "no snapshot: no node has traced anything yet");
        err_hint(e, "type an expression to trace it");
        return false;
    }
    return true;
}

/* ---- beginning and end ---- */

struct repl_recorder *repl_recorder_new(struct repl_base *base, struct repl_nodes *nodes, struct repl_probes *probes)
{
    struct repl_recorder *r = mem_zalloc(sizeof(*r));

    r->base = base;
    r->nodes = nodes;
    r->probes = probes;
    snapshot_round_init(&r->round, base->scroll);
    return r;
}

void repl_recorder_free(struct repl_recorder *r)
{
    free(r);
}

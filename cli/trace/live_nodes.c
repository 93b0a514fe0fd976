/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a trace: attaches and arms each of them, and knows which of them are traced. */
#include "live_state.h"

#include <stdlib.h>
#include <string.h>

#include "../ground/mem.h"
#include "child.h"

#define SLOW_MS 300   /* if arming takes longer, print which node etrace waits for */
#define STUCK_MS 5000 /* if arming takes longer, warn that this is unusual */

/* ---- states ---- */

struct live_node *live_node_of(struct live *l, const struct peer *p)
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

/* ---- what sessions report ---- */

/*
 * Handles a session that answers. From now on a signal must not end the program at once, because there is something to
 * clean up.
 */
void live_on_ready(void *data, struct peer *p)
{
    struct live *l = data;

    ctx_let_die(l->ctx, false);
    move_node(l, p, NODE_HERE);
}

/* With --reattach, a lost node is only a warning. The node of `-- COMMAND` is expected to exit. */
void live_on_failed(void *data, struct peer *p, const struct err *cause)
{
    struct live *l = data;
    bool was_here = live_node_of(l, p)->state != NODE_AWAITED, was_armed = live_node_of(l, p)->state == NODE_ARMED;
    struct err e;

    move_node(l, p, NODE_AWAITED);
    if (was_here && l->pipeline && !l->o->child)
        live_handle_status(l, node_merge_down(&l->merge, p, cause, &e), &e);
    if (p->state == PEER_AWAY && l->state != LIVE_LEAVING)
        ctx_warn(l->ctx, "%s; waiting for it", cause->text);
    else if (l->state == LIVE_BEGINNING && !(l->o->child && was_armed))
        live_stop_with(l, cause);
    else if (!l->o->child || cause->status == ERR_GUARD)
        live_fail(l, cause);
}

void live_on_refused(void *data, struct peer *p, const struct err *e)
{
    struct live *l = data;
    struct err full = *e;

    peer_prefix_error(p, &full);
    if (l->state == LIVE_LEAVING)
        return;
    if (p->late || peers_may_lack(p->peers, e)) {
        l->empty = *e;
        ctx_warn(l->ctx, "%s: not traced: %s", peer_name(p), e->text);
        move_node(l, p, NODE_WITHOUT);
        peer_detach(p);
    } else {
        live_stop_with(l, &full);
    }
}

/*
 * Says what will be traced. The line of a single node begins here, and live_on_armed() completes it. With several
 * nodes, live_on_armed() prints the line of each node, and live_move() a line for all of them.
 */
void live_on_chosen(void *data, struct peer *p, const struct arm_result *result)
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

void live_on_armed(void *data, struct peer *p, const struct arm_result *result UNUSED)
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
        live_mark_begun(l);
    if (banner)
        ctx_say(l->ctx, "%s%s", banner, l->o->what->dry_run ? " · not traced (--dry-run)" : "");
    else
        ctx_end(l->ctx, end);
    move_node(l, p, NODE_ARMED);
}

/* ---- steps of each node ---- */

static void enter_here(struct live *l, struct peer *p)
{
    struct err e;

    live_record_specs(l, p, l->pipeline);
    if (l->snapshots.keeper)
        live_record_specs(l, p, keeper_judge(l->snapshots.keeper));
    if (p->late)
        live_handle_status(l, node_merge_up(&l->merge, p, &e), &e);
    move_node(l, p, NODE_CLOCK);
    if (!session_pull_allowed(p->session, !l->merge.blocked, &e) || !node_merge_ask(&l->merge, p, &e))
        peer_fail(p, &e);
}

/* Arms a node. After a restart, a node may not have loaded the functions yet, so there they may be missing. */
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

void live_look_at_nodes(struct live *l)
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
        live_stop_with(l, &l->empty);
    else
        live_move(l, l->o->what->dry_run ? LIVE_LEAVING : LIVE_RUNNING);
}

int64_t live_next_patience(const struct live *l)
{
    int64_t next = -1;

    for (size_t i = 0; i < l->sessions.peers.count; i++) {
        const struct live_node *n = &l->nodes[i];
        if (n->state == NODE_ARMING && n->patience < 2)
            next = loop_sooner(next, n->began + (n->patience ? STUCK_MS : SLOW_MS));
    }
    return next;
}

/* ---- all nodes ---- */

bool live_is_traced(struct live *l, const struct peer *p)
{
    return p->state == PEER_UP && live_node_of(l, p)->state == NODE_ARMED && l->state == LIVE_RUNNING;
}

size_t live_count_armed(const struct live *l)
{
    size_t n = 0;

    for (size_t i = 0; i < l->sessions.peers.count; i++)
        n += l->nodes[i].state == NODE_ARMED;
    return n;
}

void live_say_unanswered(const struct live *l)
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

bool live_has_lost_one(const struct live *l)
{
    for (size_t i = 0; i < l->sessions.peers.count; i++)
        if (l->sessions.peers.items[i].came && l->sessions.peers.items[i].session &&
            session_lost(l->sessions.peers.items[i].session))
            return true;
    return false;
}

bool live_none_came(const struct live *l)
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

const char *live_session_end(const struct live *l, const struct totals *t)
{
    if (live_none_came(l))
        return "never started";
    if (peers_gone(&l->sessions.peers) || (l->o->child && t->complete))
        return NULL;
    if (!t->complete)
        return "ended without confirmation: the last events may be missing";
    return any_remains(l) ? "destroyed, but the node has not unloaded the tracer yet" : "ended by the node";
}

bool live_any_fallback(const struct live *l)
{
    for (size_t i = 0; i < l->sessions.peers.count; i++)
        if (l->sessions.peers.items[i].session && session_node(l->sessions.peers.items[i].session)->fallback)
            return true;
    return false;
}

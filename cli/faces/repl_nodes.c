/* SPDX-License-Identifier: Apache-2.0 */
/* Attaches to nodes, detaches from them, and attaches again to nodes that were lost. */
#include "repl_nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ground/mem.h"

#define RETRY_MS 1000

struct repl_node {
    bool met;  /* the node was attached at least once in this session */
    bool lost; /* the connection was lost after the node had been attached */
    enum repl_wish wish;
    unsigned refusals; /* number of retries in a row that the node has refused */
    /* if the node is lost before this loop_now() time, it is attached again even with :reattach off */
    int64_t wanted;
    int64_t retry_at; /* loop_now() time of the next retry; -1: none */
    char name[NODE_NAME_MAX + 1];
    bool detached; /* etrace is detaching from the node, so a failure of its session is not an error */
};

struct repl_nodes {
    struct repl_base *base;
    struct repl_nodes_handlers handlers;
    struct session_set sessions;
    struct node_merge merge;
    struct repl_node nodes[PEERS_MAX]; /* indexed like the peers */
    int current;                       /* index of the current node in `peers`; -1: none */
    bool leaving;                      /* repl_nodes_leave() has begun */
    unsigned epoch;
};

struct session_set *repl_nodes_run(struct repl_nodes *n)
{
    return &n->sessions;
}

struct peers *repl_nodes_peers(struct repl_nodes *n)
{
    return &n->sessions.peers;
}

struct node_merge *repl_nodes_together(struct repl_nodes *n)
{
    return &n->merge;
}

unsigned repl_nodes_epoch(const struct repl_nodes *n)
{
    return n->epoch;
}

static struct peers *peers_of(struct repl_nodes *n)
{
    return &n->sessions.peers;
}

static const char *repl_nodes_name_of(const struct peer *p)
{
    return peer_name(p) ? peer_name(p) : "the node";
}

static bool is_attached(const struct peer *p)
{
    return peer_is_there(p) && !peer_is_leaving(p);
}

/* ---- attaching ---- */

size_t repl_nodes_attached(const struct repl_nodes *n)
{
    size_t count = 0;

    for (size_t i = 0; i < n->sessions.peers.count; i++)
        count += is_attached(&n->sessions.peers.items[i]);
    return count;
}

bool repl_nodes_attaching(const struct repl_nodes *n)
{
    for (size_t i = 0; i < n->sessions.peers.count; i++) {
        const struct peer *p = &n->sessions.peers.items[i];
        if (p->state == PEER_CONNECTING || p->state == PEER_BOOTING)
            return true;
    }
    return false;
}

bool repl_nodes_has_all(const struct repl_nodes *n)
{
    bool all = true;

    for (size_t i = 0; i < n->sessions.peers.count; i++)
        all = all && (is_attached(&n->sessions.peers.items[i]) || n->nodes[i].retry_at >= 0);
    return all;
}

bool repl_nodes_expected(const struct repl_nodes *n)
{
    bool any = repl_nodes_attached(n) || repl_nodes_attaching(n);

    for (size_t i = 0; i < n->sessions.peers.count; i++)
        any = any || (n->nodes[i].lost && n->nodes[i].retry_at >= 0);
    return any;
}

bool repl_nodes_are_leaving(const struct repl_nodes *n)
{
    return n->leaving;
}

bool repl_nodes_several(const struct repl_nodes *n)
{
    size_t met = 0;

    for (size_t i = 0; i < n->sessions.peers.count; i++)
        met += n->nodes[i].met;
    return met > 1;
}

struct peer *repl_nodes_current(struct repl_nodes *n)
{
    struct peer *p = n->current >= 0 ? &peers_of(n)->items[n->current] : NULL;

    return p && is_attached(p) ? p : NULL; /* a CONNECTING peer has no session */
}

const char *repl_nodes_current_name(struct repl_nodes *n)
{
    return n->current >= 0 ? peer_name(&peers_of(n)->items[n->current]) : NULL;
}

void repl_nodes_choose(struct repl_nodes *n, const struct peer *p)
{
    n->current = (int)p->index;
    n->epoch++;
}

/*
 * Keeps the current node if it is attached or CONNECTING. Otherwise chooses the first attached node. If no node is
 * attached, a lost node stays the current one: a :command without a node would ask any other node of this host.
 */
static void choose_current(struct repl_nodes *n)
{
    if (repl_nodes_current(n) || (n->current >= 0 && peers_of(n)->items[n->current].state == PEER_CONNECTING))
        return;
    for (size_t i = peers_of(n)->count; i-- > 0;)
        if (is_attached(&peers_of(n)->items[i]))
            n->current = (int)i;
}

struct peer *repl_nodes_find(struct repl_nodes *n, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < peers_of(n)->count; i++) {
        struct peer *p = &peers_of(n)->items[i];
        if ((is_attached(p) || p->state == PEER_CONNECTING) && !strncmp(repl_nodes_name_of(p), name, len) &&
            (!repl_nodes_name_of(p)[len] || repl_nodes_name_of(p)[len] == '@'))
            return p;
    }
    return NULL;
}

void repl_nodes_list(struct repl_nodes *n, struct buf *to)
{
    for (size_t i = 0; i < peers_of(n)->count; i++) {
        const struct peer *p = &peers_of(n)->items[i];
        if (p->came || p->state == PEER_CONNECTING || peer_is_there(p))
            buf_printf(to, "%s %s%s\n", (int)i == n->current ? "*" : " ", peer_name(p) ? peer_name(p) : "?",
                       p->state == PEER_CONNECTING ? "   (connecting)"
                       : !peer_is_there(p)         ? "   (not attached)"
                                                   : "");
    }
}

bool repl_nodes_attach(struct repl_nodes *n, const char *name, enum repl_wish wish, struct err *e)
{
    struct peer *p = session_set_attach(&n->sessions, &n->base->options.node, name, &n->base->options.limit, e);

    if (!p)
        return false;
    struct repl_node *node = &n->nodes[p->index];
    *node = (struct repl_node){.retry_at = -1,
                               .wish = wish,
                               .met = node->met,
                               .lost = node->lost,
                               .refusals = wish == WISH_AGAIN ? node->refusals : 0};
    snprintf(node->name, sizeof(node->name), "%s", name ? name : "");
    repl_wake(n->base);
    return true;
}

/* Detaches from the node, and waits until its last events have arrived. */
static void leave_node(struct repl_nodes *n, struct peer *p)
{
    n->nodes[p->index].detached = true;
    peer_detach(p);
    while (peer_is_leaving(p) && !n->base->leaving)
        repl_step(n->base, -1);
}

void repl_nodes_detach(struct repl_nodes *n, struct peer *p)
{
    leave_node(n, p);
    ctx_say(n->base->ctx, "%s: detached", repl_nodes_name_of(p));
    if (n->current == (int)p->index)
        n->current = -1;
    choose_current(n);
    n->epoch++;
}

static void try_again(struct repl_nodes *n, struct peer *p)
{
    struct repl_node *node = &n->nodes[p->index];
    char name[NODE_NAME_MAX + 1];
    struct err ignored;

    snprintf(name, sizeof(name), "%s", node->name);
    if (!repl_nodes_attach(n, name, WISH_AGAIN, &ignored))
        node->retry_at = loop_now() + RETRY_MS;
}

void repl_nodes_reopen(struct repl_nodes *n)
{
    struct err e;

    for (size_t i = 0; i < peers_of(n)->count; i++) {
        struct peer *p = &peers_of(n)->items[i];
        char name[NODE_NAME_MAX + 1];
        bool named = peer_name(p);
        if (!is_attached(p) && p->state != PEER_CONNECTING)
            continue;
        snprintf(name, sizeof(name), "%s", repl_nodes_name_of(p));
        enum repl_wish wish = p->state == PEER_CONNECTING ? n->nodes[i].wish : WISH_TYPED;
        leave_node(n, p);
        if (!repl_nodes_attach(n, named ? name : NULL, wish, &e))
            repl_fail(n->base, &e);
    }
    choose_current(n);
}

/* ---- messages of the nodes ---- */

static void repl_nodes_on_batch(void *data, struct peer *p, const void *batch, size_t len)
{
    struct repl_nodes *n = data;
    struct err e;

    if (n->nodes[p->index].lost) /* drops a batch that arrives after the session has failed */
        return;
    if (n->base->options.limit.ring.on) /* the batch may have begun or ended a snapshot */
        repl_wake(n->base);
    if (!scroll_batch(n->base->scroll, p->index, (struct str){batch, len}, &e))
        peer_fail(p, &e);
}

static void repl_nodes_on_ready(void *data, struct peer *p)
{
    struct repl_nodes *n = data;
    const struct session_node *about = session_node(p->session);
    struct repl_node *node = &n->nodes[p->index];
    struct err e;

    ctx_say(n->base->ctx, "%s · OTP %s · %llu process%s · attached", about->name, about->otp_version,
            (unsigned long long)about->processes, PLURAL_ES(about->processes));
    if (about->fallback)
        ctx_warn(n->base->ctx, "%s: tracing without the NIF, at most 1000 events a second: %s", about->name,
                 about->fallback_why);
    choose_current(n);
    bool back = node->lost;
    *node = (struct repl_node){.met = true, .retry_at = -1};
    /* Must precede node_merge_up(): ready() may open a new view, which must show the note of node_merge_up(). */
    n->handlers.ready(n->handlers.data, p);
    if (back)
        node_merge_up(&n->merge, p, &e);
    for (size_t i = 0; i < peers_of(n)->count && repl_nodes_several(n); i++) {
        struct peer *each = &peers_of(n)->items[i];
        if (each->state == PEER_UP && (each == p || !node_merge_known(&n->merge, each)) &&
            !node_merge_ask(&n->merge, each, &e))
            peer_fail(each, &e);
    }
    repl_wake(n->base);
}

static void repl_nodes_on_armed(void *data, struct peer *p, const struct arm_result *result)
{
    struct repl_nodes *n = data;

    n->handlers.armed(n->handlers.data, p, result);
}

static void repl_nodes_on_refused(void *data, struct peer *p, const struct err *e)
{
    struct repl_nodes *n = data;

    n->handlers.refused(n->handlers.data, p, e);
}

static void repl_nodes_on_failed(void *data, struct peer *p, const struct err *e)
{
    struct repl_nodes *n = data;
    struct repl_node *node = &n->nodes[p->index];
    bool paused = loop_now() < node->wanted, again = n->base->options.node.reattach || paused;
    struct err ignored;

    if (node->detached)
        return;

    repl_wake(n->base);
    if (node->wish == WISH_AGAIN) {
        node->refusals = p->session || e->refused ? node->refusals + 1 : 0;
        node->retry_at = node->refusals < PEERS_REFUSALS ? loop_now() + RETRY_MS : -1;
        if (node->retry_at < 0) {
            repl_fail(n->base, e);
            ctx_say(n->base->ctx, "%s: gave up after %d attempts; :attach %s tries again", node->name, PEERS_REFUSALS,
                    node->name);
        }
        return;
    }
    if (node->wish == WISH_DEFAULT && !p->session) {
        ctx_warn(n->base->ctx, "no node is attached: %s; :attach NODE attaches one", e->text);
        return;
    }
    repl_fail(n->base, e);
    choose_current(n);
    if (node->lost && n->base->options.node.reattach)
        node->retry_at = loop_now() + RETRY_MS;
    if (!p->session || !node->met)
        return;
    node_merge_down(&n->merge, p, e, &ignored);
    node->lost = true;
    snprintf(node->name, sizeof(node->name), "%s", repl_nodes_name_of(p));
    node->retry_at = again ? loop_now() + (paused ? 0 : RETRY_MS) : -1;
    node->wanted = 0;
    if (again)
        ctx_say(n->base->ctx, "%s: will be attached again", node->name);
    else
        ctx_say(n->base->ctx,
                "%s is no longer attached; :attach %s attaches it again, :reattach on does so automatically",
                node->name, node->name);
    n->epoch++;
}

static void repl_nodes_on_answer(void *data, struct peer *p, const struct session_reply *reply)
{
    struct repl_nodes *n = data;

    n->handlers.answer(n->handlers.data, p, reply);
}

static void on_clock(void *data, struct peer *p, const struct session_time *time)
{
    node_merge_time(&((struct repl_nodes *)data)->merge, p, time);
}

static void keep_note(void *data, unsigned node, struct str note)
{
    scroll_note(((struct repl_nodes *)data)->base->scroll, node, note);
}

/* ---- time ---- */

int64_t repl_nodes_tick(struct repl_nodes *n)
{
    int64_t next;

    peers_tick(peers_of(n), &next);
    return next;
}

int64_t repl_nodes_retry(struct repl_nodes *n)
{
    int64_t now = loop_now(), next = -1;

    for (size_t i = 0; i < peers_of(n)->count; i++) {
        struct repl_node *node = &n->nodes[i];
        if (node->lost && node->retry_at >= 0 && now >= node->retry_at &&
            peers_of(n)->items[i].state != PEER_CONNECTING)
            try_again(n, &peers_of(n)->items[i]);
        if (node->lost)
            next = loop_sooner(next, node->retry_at);
    }
    return next;
}

void repl_nodes_reattach(struct repl_nodes *n)
{
    const bool on = n->base->options.node.reattach;

    for (size_t i = 0; i < peers_of(n)->count; i++)
        if (n->nodes[i].lost)
            n->nodes[i].retry_at = on ? loop_now() : -1;
    repl_wake(n->base);
}

void repl_nodes_expect(struct repl_nodes *n, int64_t wanted_by)
{
    for (size_t i = 0; i < peers_of(n)->count; i++)
        n->nodes[i].wanted = wanted_by;
}

/* ---- beginning and end ---- */

struct repl_nodes *repl_nodes_new(struct repl_base *base, const struct repl_nodes_handlers *handlers)
{
    struct repl_nodes *n = mem_zalloc(sizeof(*n));
    struct session_set_handlers from_sessions = {.data = n,
                                                 .ready = repl_nodes_on_ready,
                                                 .batch = repl_nodes_on_batch,
                                                 .armed = repl_nodes_on_armed,
                                                 .refused = repl_nodes_on_refused,
                                                 .failed = repl_nodes_on_failed,
                                                 .answer = repl_nodes_on_answer,
                                                 .time = on_clock};

    n->base = base;
    n->handlers = *handlers;
    n->current = -1;
    session_set_begin(&n->sessions, base->ctx, &from_sessions);
    node_merge_init(&n->merge, base->ctx, &n->sessions.peers, NULL);
    n->merge.keep = keep_note;
    n->merge.data = n;
    return n;
}

void repl_nodes_leave(struct repl_nodes *n)
{
    int64_t next;

    n->leaving = true;
    peers_pull(peers_of(n), true);
    peers_stop(peers_of(n));
    n->base->options.node.reattach = false;
    while (peers_tick(peers_of(n), &next))
        repl_step(n->base, next);
}

void repl_nodes_free(struct repl_nodes *n)
{
    if (!n)
        return;
    session_set_close(&n->sessions);
    free(n);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "peers.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../erlang/etf_write.h"
#include "../ground/mem.h"
#include "../ground/utf8.h"
#include "../node/knock.h"
#include "wire_log.h"

#define LIST_MS 10000
#define RETRY_MS 1000 /* interval between two attempts to attach to a node that is AWAY */

/* ---- states ---- */

#define TO(state) (1u << PEER_##state)

static const unsigned moves[] = {
    [PEER_FREE] = TO(CONNECTING),
    [PEER_CONNECTING] = TO(BOOTING) | TO(AWAY) | TO(OVER) | TO(FREE),
    [PEER_BOOTING] = TO(LISTING) | TO(UP) | TO(AWAY) | TO(OVER) | TO(FREE),
    [PEER_LISTING] = TO(UP) | TO(LEAVING) | TO(AWAY) | TO(OVER) | TO(FREE),
    [PEER_UP] = TO(LEAVING) | TO(AWAY) | TO(OVER),
    [PEER_LEAVING] = TO(OVER),
    [PEER_AWAY] = TO(BOOTING) | TO(OVER) | TO(FREE),
    [PEER_OVER] = TO(CONNECTING),
};
static const char *const names[] = {"free", "connecting", "booting", "listing", "up", "leaving", "away", "over"};

static void move_peer(struct peer *p, enum peer_state to)
{
    assert(moves[p->state] & 1u << to);
    ctx_debug(p->peers->ctx, "%s: %s -> %s", peer_name(p) ? peer_name(p) : "the node", names[p->state], names[to]);
    p->state = to;
    if (!peer_is_there(p))
        loop_remove(&p->peers->ctx->loop, &p->fd);
    p->came = p->came || to == PEER_UP;
    p->late = p->late || to == PEER_AWAY;
}

bool peer_is_there(const struct peer *p)
{
    return p->state == PEER_BOOTING || p->state == PEER_LISTING || p->state == PEER_UP || p->state == PEER_LEAVING;
}

bool peer_is_leaving(const struct peer *p)
{
    return p->state == PEER_LEAVING;
}

struct peer *peers_next(const struct peers *ps, const struct peer *p)
{
    for (size_t i = p ? p->index + 1 : 0; i < ps->count; i++)
        if (peer_is_there(&ps->items[i]))
            return &ps->items[i];
    return NULL;
}

bool peers_several(const struct peers *ps)
{
    size_t n = 0;

    for (size_t i = 0; i < ps->count; i++)
        n += ps->items[i].state != PEER_FREE;
    return n > 1;
}

bool peers_need_names(const struct peers *ps)
{
    return peers_several(ps) || ps->node->nodes.count || ps->node->os_pid || ps->node->port;
}

void peers_alone(const struct peers *ps, const struct peer *p, const char *const *name, struct node_opts *ret)
{
    const struct node_opts *given = ps->node;
    const bool only = p->wish == PEER_NAMED && given->nodes.count < 2; /* the options are about this node only */

    *ret = *given;
    ret->cluster = false;
    if (!only) {
        ret->os_pid = NULL;
        ret->port = 0;
    }
    if (!ret->port && (given->cluster || given->nodes.count > 1))
        ret->port = PORT_OF_EPMD;
    if (!only || given->nodes.count)
        ret->nodes = (struct texts){.items = (const char **)(uintptr_t)name, .count = 1};
}

const char *peer_name(const struct peer *p)
{
    return p->session ? session_node(p->session)->name : p->name;
}

bool peers_may_lack(const struct peers *ps, const struct err *e)
{
    return ps->node && ps->node->cluster && e->status == ERR_EMPTY;
}

void peer_prefix_error(const struct peer *p, struct err *e)
{
    const struct err own = *e;
    const char *name = peer_name(p);

    if (!name || !peers_several(p->peers) || strstr(own.text, name))
        return;
    snprintf(e->text, sizeof(e->text), "%.255s: %.250s", name, own.text);
    utf8_make_safe(e->text);
}

bool peer_leave_out(const struct peer *p, struct err *e)
{
    peer_prefix_error(p, e);
    if (!peers_may_lack(p->peers, e))
        return false;
    ctx_warn(p->peers->ctx, "left out: %s", e->text);
    return true;
}

/* ---- what sessions report ---- */

static void peers_on_batch(void *data, const void *batch, size_t len)
{
    struct peer *p = data;
    const struct peers_handlers *h = &p->peers->handlers;

    if (h->batch)
        h->batch(h->data, p, batch, len);
}

static void peers_on_reply(void *data, const struct session_reply *reply)
{
    struct peer *p = data;
    const struct peers_handlers *h = &p->peers->handlers;

    if (!p->into || reply->id != p->asked) {
        if (h->reply)
            h->reply(h->data, p, reply);
        return;
    }
    if (reply->ok)
        buf_add(p->into, reply->term.at, (size_t)(reply->term.end - reply->term.at));
    else
        session_error(reply, &p->refusal);
    p->into = NULL;
}

static void peers_on_time(void *data, const struct session_time *time)
{
    struct peer *p = data;
    const struct peers_handlers *h = &p->peers->handlers;

    if (h->time)
        h->time(h->data, p, time);
}

void peer_progress(struct peer *p, int64_t done, int64_t all)
{
    ctx_progress(p->peers->ctx, "armed %lld of %lld functions", (long long)done, (long long)all);
}

static void on_progress(void *data, int64_t done, int64_t all)
{
    struct peer *p = data;
    const struct peers_handlers *h = &p->peers->handlers;

    if (h->progress)
        h->progress(h->data, p, done, all);
    else
        peer_progress(p, done, all);
}

/* ---- failures ---- */

static void report_failure(struct peer *p, const struct err *e)
{
    const struct peers_handlers *h = &p->peers->handlers;

    if (h->failed && (!p->peers->opening || p->peers->each))
        h->failed(h->data, p, e);
}

static void fail_peer(struct peer *p, const struct err *e)
{
    p->why = *e;
    move_peer(p, PEER_OVER);
    report_failure(p, e);
}

static bool is_of_cluster(const struct peer *p)
{
    return p->wish == PEER_CLUSTER || p->wish == PEER_HIDDEN;
}

/* Returns true if the command can do without the node: one that --cluster has found. */
static bool is_optional(const struct peer *p)
{
    return p->wish == PEER_HIDDEN || (p->wish == PEER_CLUSTER && !p->peers->all_of_cluster);
}

/* Skips an optional node that was never UP. Its failure is only a warning. */
static void skip_peer(struct peer *p, const struct err *e)
{
    ctx_warn(p->peers->ctx, "not traced: %s", e->text);
    move_peer(p, PEER_FREE);
}

/*
 * Moves the peer to AWAY, to be retried later. If the node has refused too often, reports the last reason and gives up.
 */
static void retry_later(struct peer *p, bool refused, const struct err *e)
{
    bool again = !strcmp(p->why.text, e->text);
    struct err last;

    p->refusals = refused ? p->refusals + 1 : 0;
    p->next = loop_now() + RETRY_MS;
    if (p->refusals >= PEERS_REFUSALS) {
        err_set(&last, e->status, "%s; gave up after %d attempts", e->text, PEERS_REFUSALS);
        if (*e->hint)
            err_hint(&last, "%s", e->hint);
        fail_peer(p, &last);
        return;
    }
    p->why = *e;
    if (p->state == PEER_AWAY && again)
        return;
    if (p->state != PEER_AWAY)
        move_peer(p, PEER_AWAY);
    report_failure(p, e);
}

/* Handles a failed attempt to connect. `found`: the port of the node is known. */
static void handle_unreached(struct peer *p, bool found, const struct err *e)
{
    bool waits = p->peers->reattach && p->name && p->wish == PEER_NAMED && e->status == ERR_NODE && !e->refused;

    if (p->state == PEER_AWAY || waits)
        retry_later(p, e->refused, e);
    else if (p->wish == PEER_HIDDEN && !found)
        move_peer(p, PEER_FREE);
    else if (is_optional(p))
        skip_peer(p, e);
    else
        fail_peer(p, e);
}

void peer_fail(struct peer *p, const struct err *e)
{
    bool up = p->state == PEER_UP || p->state == PEER_LEAVING;

    if (!peer_is_there(p))
        return;
    if (p->peers->reattach && p->state != PEER_LEAVING && session_lost(p->session))
        retry_later(p, !up, e);
    else if (!up && !p->late && is_optional(p))
        skip_peer(p, e);
    else
        fail_peer(p, e);
}

/* ---- the nodes of a cluster ---- */

static bool start_peer(struct peers *ps, const struct node_opts *o, const char *name, enum peer_wish wish,
                       struct err *e);

static bool is_known(const struct peers *ps, struct raw name)
{
    for (size_t i = 0; i < ps->count; i++) {
        const char *own = peer_name(&ps->items[i]); /* peer_name() also has the names of skipped nodes */
        if (own && raw_same(name, raw_text(own)))
            return true;
    }
    return false;
}

static bool reject_answer(struct err *e)
{
    return err_set(e, ERR_RUN, "the node's answer about its connections is malformed");
}

static const char *host_of(const char *name)
{
    return name + strcspn(name, "@");
}

/*
 * Returns true if --ssh cannot reach the node, because the node is on another host than its lister. Warns of it unless
 * the node is hidden.
 */
static bool is_elsewhere(const struct peer *lister, const char *name, enum peer_wish wish)
{
    const struct peers *ps = lister->peers;

    if (!ps->node->ssh || !strcmp(host_of(name), host_of(peer_name(lister))))
        return false;
    if (wish == PEER_CLUSTER)
        ctx_warn(ps->ctx, "not traced: %s is on another host than %s, and --ssh reaches only the nodes of its host",
                 name, peer_name(lister));
    return true;
}

static bool take_names(struct peer *lister, struct etf *r, enum peer_wish wish, struct err *e)
{
    struct peers *ps = lister->peers;
    struct node_opts theirs = *ps->node;
    struct raw name;
    size_t n;

    theirs.port = 0;
    theirs.os_pid = NULL;
    if (!etf_get_list(r, &n))
        return reject_answer(e);
    for (size_t i = 0; i < n; i++) {
        if (!etf_get_bin(r, &name))
            return reject_answer(e);
        if (is_known(ps, name))
            continue;
        char *text = mem_strndup(raw_view(name).at, name.len);
        bool ok = is_elsewhere(lister, text, wish) || start_peer(ps, &theirs, text, wish, e);
        free(text);
        if (!ok)
            return false;
    }
    return !n || etf_get_nil(r) || reject_answer(e);
}

static void enter_up(struct peer *p)
{
    const struct peers_handlers *h = &p->peers->handlers;

    move_peer(p, PEER_UP);
    p->refusals = 0;
    p->why = (struct err){0};
    if (h->ready)
        h->ready(h->data, p);
}

static void ask_for_list(struct peer *p)
{
    struct buf request = {0};
    struct err e;

    etf_version(&request);
    etf_atomz(&request, "nodes");
    if (!peer_request(p, buf_view(&request), LIST_MS, &p->listed, &e))
        peer_fail(p, &e);
    buf_release(&request);
}

static void take_list(struct peer *p)
{
    struct peers *ps = p->peers;
    struct etf r;
    struct err e;

    ps->own_cookie = p->own_cookie;
    etf_open(&r, p->listed.data, p->listed.len);
    bool ok = peer_answer(p, &e) && (etf_get_tuple(&r, 2) || reject_answer(&e)) &&
              take_names(p, &r, PEER_CLUSTER, &e) && take_names(p, &r, PEER_HIDDEN, &e);
    if (ok)
        enter_up(p);
    else
        fail_peer(p, &e);
}

/* ---- sessions ---- */

static void handle_ready(struct peer *p)
{
    struct peers *ps = p->peers;
    const char *name = session_node(p->session)->name;

    if (p->wish != PEER_ADDED) {
        /* The node reports its full name. `typed` stays true only if the user has typed the same host. */
        p->target->node.typed &= p->name && !strcmp(host_of(p->name), host_of(name));
        free(p->name);
        p->name = mem_strndup(name, strlen(name));
        p->target->node.name = p->name;
    }
    if (!ps->node || !ps->node->cluster || p->late || p->wish != PEER_NAMED) {
        enter_up(p);
        return;
    }
    move_peer(p, PEER_LISTING);
    ask_for_list(p);
}

static void peers_on_readable(void *owner)
{
    struct peer *p = owner;
    struct err e;

    if (!session_on_readable(p->session, &e))
        peer_fail(p, &e);
    else if (session_state(p->session) == SESSION_GONE)
        move_peer(p, PEER_OVER);
    else if (p->state == PEER_BOOTING && session_state(p->session) == SESSION_READY)
        handle_ready(p);
    else if (p->state == PEER_LISTING && !peer_waits(p))
        take_list(p);
}

static bool is_twice(const struct peer *p, const char *name)
{
    const struct peers *ps = p->peers;

    for (size_t i = 0; i < ps->count; i++) {
        const struct peer *other = &ps->items[i];
        if (other != p && peer_is_there(other) && !strcmp(peer_name(other), name))
            return true;
    }
    return false;
}

static void on_wire(void *data, bool sent, struct str message)
{
    struct peer *p = data;
    struct buf line = {0};

    wire_log_put(&line, sent, message);
    ctx_debug(p->peers->ctx, "%s %.*s", peer_name(p), (int)line.len, line.data);
    buf_release(&line);
}

static void begin_session(struct peer *p, struct node_conn *conn)
{
    struct session_handlers h = {.data = p,
                                 .batch = peers_on_batch,
                                 .reply = peers_on_reply,
                                 .time = peers_on_time,
                                 .progress = on_progress,
                                 .wire = p->peers->ctx->debug_wire ? on_wire : NULL};
    struct err e;

    p->session = session_open(conn, &p->peers->options, &h, &e);
    if (!p->session) {
        handle_unreached(p, true, &e);
        return;
    }
    move_peer(p, PEER_BOOTING);
    p->fd = (struct loop_fd){.fd = session_fd(p->session), .want_read = true, .ready = peers_on_readable, .owner = p};
    loop_add(&p->peers->ctx->loop, &p->fd);
}

/* ---- attaching ---- */

static void end_knock(struct peer *p)
{
    loop_remove(&p->peers->ctx->loop, &p->answer);
    knock_free(p->knock);
    p->knock = NULL;
}

static void warn_of_cookie(struct peers *ps, const struct node_conn *conn)
{
    if (!conn->cookie_open || ps->warned)
        return;
    ctx_warn(ps->ctx, "warning: other users can access the cookie file %s (mode %04o): chmod 400 %s", conn->cookie_from,
             conn->cookie_open, conn->cookie_from);
    ps->warned = true;
}

static void peers_on_answer(void *owner)
{
    struct peer *p = owner;
    struct node_conn conn;
    struct err e;

    bool ok = knock_answer(p->knock, &conn, &e);
    end_knock(p);
    if (!ok) {
        handle_unreached(p, conn.found, &e);
    } else if (!is_twice(p, conn.node)) {
        warn_of_cookie(p->peers, &conn);
        p->own_cookie = conn.own_cookie;
        if (conn.ospid)
            ctx_say(p->peers->ctx, "process %ld is the node, which process %ld started", conn.ospid,
                    p->target->node.ospid);
        begin_session(p, &conn);
    } else {
        err_set(&e, ERR_USAGE, "%s is attached already", conn.node);
        stream_close(&conn.stream);
        if (p->wish == PEER_ADDED)
            fail_peer(p, &e);
        else
            move_peer(p, PEER_FREE);
    }
}

static bool start_knock(struct peer *p, struct err *e)
{
    p->knock = knock_start(&p->target->node);
    if (!p->knock)
        return err_set(e, ERR_RUN, "cannot start a thread to connect to %s", p->name ? p->name : "a node");
    p->answer = (struct loop_fd){.fd = knock_fd(p->knock), .want_read = true, .ready = peers_on_answer, .owner = p};
    loop_add(&p->peers->ctx->loop, &p->answer);
    return true;
}

static void target_free(struct target *t)
{
    if (t)
        target_release(t);
    free(t);
}

static void release_peer(struct peer *p)
{
    loop_remove(&p->peers->ctx->loop, &p->fd);
    end_knock(p);
    session_close(p->session);
    target_free(p->target);
    free(p->name);
    buf_release(&p->listed);
}

static struct peer *new_place(struct peers *ps, struct err *e)
{
    if (ps->count == PEERS_MAX) {
        err_set(e, ERR_USAGE, "one command takes %d nodes at most", PEERS_MAX);
        return NULL;
    }
    return &ps->items[ps->count];
}

/* Starts a peer at a place that is FREE, OVER or new. */
static bool start_at(struct peer *p, struct peers *ps, const struct node_opts *o, const char *name, enum peer_wish wish,
                     struct err *e)
{
    struct target *target = mem_zalloc(sizeof(*target));
    char *own = name ? mem_strndup(name, strlen(name)) : NULL;
    struct peer before = *p;

    if (!target_init(target, o, own, e)) {
        target_free(target);
        free(own);
        return false;
    }
    *p = (struct peer){.peers = ps,
                       .state = before.state,
                       .wish = wish,
                       .index = (unsigned)(p - ps->items),
                       .fd.fd = -1,
                       .came = before.came,
                       .name = own,
                       .target = target};
    /* A node of the cluster gets our own cookie only if the node that has listed it accepted the cookie, too. */
    if (is_of_cluster(p))
        target->node.typed = ps->own_cookie;
    ps->count = MAX(ps->count, p->index + 1u);
    session_close(before.session);
    target_free(before.target);
    free(before.name);
    buf_release(&before.listed);
    if (!start_knock(p, e))
        return false;
    move_peer(p, PEER_CONNECTING);
    return true;
}

static bool start_peer(struct peers *ps, const struct node_opts *o, const char *name, enum peer_wish wish,
                       struct err *e)
{
    struct peer *p = new_place(ps, e);

    return p && start_at(p, ps, o, name, wish, e);
}

static void keep_options(struct peers *ps, const struct session_options *session)
{
    free(ps->redact);
    ps->options = *session;
    ps->redact = mem_alloc((session->nredact + 1) * sizeof(*ps->redact));
    if (session->nredact)
        memcpy(ps->redact, session->redact, session->nredact * sizeof(*ps->redact));
    ps->options.redact = ps->redact;
}

void peers_begin(struct peers *ps, struct ctx *ctx, const struct peers_handlers *handlers)
{
    *ps = (struct peers){.ctx = ctx, .handlers = *handlers};
    ps->items = mem_zalloc(PEERS_MAX * sizeof(*ps->items));
}

bool peers_start(struct peers *ps, const struct node_opts *o, const struct session_options *session, struct err *e)
{
    bool ok = true;

    if (o->port && o->nodes.count > 1)
        return err_set(e, ERR_USAGE, "--port is the port of one node, but %zu nodes are given", o->nodes.count);
    ps->node = o;
    /* Without the handler ready() the command would not learn that a node came back. */
    ps->reattach = o->reattach && ps->handlers.ready;
    keep_options(ps, session);
    if (!o->nodes.count)
        return start_peer(ps, o, target_default(o), PEER_NAMED, e);
    for (size_t i = 0; i < o->nodes.count && ok; i++)
        ok = start_peer(ps, o, o->nodes.items[i], PEER_NAMED, e);
    return ok;
}

bool peers_attaching(const struct peers *ps)
{
    for (size_t i = 0; i < ps->count; i++) {
        const struct peer *p = &ps->items[i];
        if (!p->late && (p->state == PEER_CONNECTING || p->state == PEER_BOOTING || p->state == PEER_LISTING))
            return true;
    }
    return false;
}

static bool none_failed(const struct peers *ps, struct err *e)
{
    for (size_t i = 0; i < ps->count && !ps->each; i++)
        if (ps->items[i].state == PEER_OVER && ps->items[i].why.status) {
            *e = ps->items[i].why;
            return false;
        }
    return true;
}

/* A signal may end the program here, because nothing is traced yet and the nodes clean up by themselves. */
bool peers_open(struct peers *ps, const struct node_opts *o, const struct session_options *session, struct err *e)
{
    ctx_let_die(ps->ctx, true);
    ps->opening = true;
    bool ok = peers_start(ps, o, session, e);
    while (ok && peers_attaching(ps) && (ok = none_failed(ps, e))) {
        peers_step(ps, -1);
        if (ps->ctx->interrupts)
            ok = err_set(e, ERR_RUN, "interrupted before all nodes were attached");
    }
    ctx_let_die(ps->ctx, false);
    ok = ok && none_failed(ps, e);
    ps->opening = !ok;
    return ok;
}

void peers_close(struct peers *ps)
{
    while (ps->count)
        release_peer(&ps->items[--ps->count]);
    free(ps->items);
    free(ps->redact);
    *ps = (struct peers){0};
}

/* Returns true if `name` is the name of this peer, with or without the host. */
static bool is_called(const struct peer *p, const char *name)
{
    const char *own = peer_name(p) ? peer_name(p) : "";
    size_t len = strlen(name);

    return !strcmp(own, name) || (!strchr(name, '@') && !strncmp(own, name, len) && own[len] == '@');
}

/*
 * Returns true if another peer can have this place, because the peer never sent events. A node that was UP keeps its
 * place, because it may come back.
 */
static bool is_unused(const struct peer *p)
{
    return p->state == PEER_FREE || (p->state == PEER_OVER && !p->session && !p->came);
}

static struct peer *peers_place(struct peers *ps, const char *name, struct err *e)
{
    for (size_t i = 0; name && i < ps->count; i++) {
        struct peer *p = &ps->items[i];
        if (p->state == PEER_FREE || !is_called(p, name))
            continue;
        if (p->state == PEER_OVER || p->state == PEER_LEAVING)
            return p;
        err_set(e, ERR_USAGE, p->state == PEER_CONNECTING ? "%s is being attached already" : "%s is attached already",
                name);
        return NULL;
    }
    for (size_t i = 0; i < ps->count; i++)
        if (is_unused(&ps->items[i]))
            return &ps->items[i];
    return new_place(ps, e);
}

struct peer *peers_attach(struct peers *ps, const struct node_opts *o, const char *name,
                          const struct session_options *session, struct err *e)
{
    struct peer *p = peers_place(ps, name, e);

    if (!p)
        return NULL;
    if (p->state == PEER_LEAVING)
        move_peer(p, PEER_OVER);
    keep_options(ps, session);
    return start_at(p, ps, o, name, PEER_ADDED, e) ? p : NULL;
}

/* ---- peers that are AWAY ---- */

/* Tries to connect again if it is time. Returns the time of the next attempt; -1: an attempt is under way. */
static int64_t retry_connect(struct peer *p)
{
    struct err e;

    if (p->session) { /* a session cannot be closed by its handlers, so the failed one is closed here */
        session_close(p->session);
        p->session = NULL;
    }
    if (p->knock)
        return -1;
    if (loop_now() < p->next)
        return p->next;
    p->next = loop_now() + RETRY_MS;
    return start_knock(p, &e) ? -1 : p->next;
}

/* ---- requests ---- */

bool peer_request(struct peer *p, struct str request, int timeout_ms, struct buf *into, struct err *e)
{
    p->into = NULL;
    p->refusal = (struct err){0};
    if (!peer_is_there(p)) {
        *e = p->why;
        return p->why.status ? false : err_set(e, ERR_RUN, "%s is not traced any more", peer_name(p));
    }
    if (!session_request(p->session, request, timeout_ms, &p->asked, e))
        return false;
    p->into = into;
    return true;
}

bool peer_waits(const struct peer *p)
{
    return p->into && (p->state == PEER_LISTING || p->state == PEER_UP);
}

bool peer_answer(const struct peer *p, struct err *e)
{
    if (!p->into && !p->refusal.status)
        return true;
    *e = p->refusal.status ? p->refusal : p->why;
    return e->status ? false : err_set(e, ERR_RUN, "%s is not traced any more", peer_name(p));
}

bool peer_ask(struct peer *p, struct str request, int timeout_ms, struct buf *into, struct err *e)
{
    if (!peer_request(p, request, timeout_ms, into, e))
        return false;
    while (peer_waits(p) && !p->peers->ctx->interrupts)
        peers_step(p->peers, -1);
    if (peer_waits(p))
        err_set(&p->refusal, ERR_RUN, "%s has not answered yet", peer_name(p));
    bool ok = peer_answer(p, e);
    p->into = NULL;
    return ok;
}

/* ---- while sessions run ---- */

/*
 * Closes the session of a peer that was detached while BOOTING. A handler of the session may have detached the peer,
 * and a handler cannot close its own session.
 */
static void close_abandoned(struct peer *p)
{
    if (!p->session || session_fd(p->session) < 0)
        return;
    session_close(p->session);
    p->session = NULL;
}

bool peers_tick(struct peers *ps, int64_t *ret_next)
{
    int64_t each;
    struct err e;
    bool left = false;

    *ret_next = -1;
    for (size_t i = 0; i < ps->count; i++) {
        struct peer *p = &ps->items[i];
        each = -1;
        if (p->state == PEER_AWAY)
            each = retry_connect(p);
        else if (p->state == PEER_OVER)
            close_abandoned(p);
        else if (peer_is_there(p) && !session_tick(p->session, session_now(), &each, &e))
            each = (peer_fail(p, &e), loop_now());
        else if (peer_is_there(p) && session_state(p->session) == SESSION_GONE)
            each = (move_peer(p, PEER_OVER), loop_now());
        p->fd.want_write = p->session && session_wants_write(p->session);
        *ret_next = loop_sooner(*ret_next, each);
        left = left || (p->state != PEER_FREE && p->state != PEER_OVER);
    }
    return left;
}

bool peers_step(struct peers *ps, int64_t until)
{
    int64_t next;
    bool left = peers_tick(ps, &next);

    if (left)
        loop_step(&ps->ctx->loop, loop_sooner(until, next));
    return left;
}

bool peers_gone(const struct peers *ps)
{
    for (size_t i = 0; i < ps->count; i++)
        if (ps->items[i].session &&
            (session_state(ps->items[i].session) != SESSION_GONE || session_remains(ps->items[i].session)))
            return false;
    return true;
}

void peers_pull(struct peers *ps, bool allowed)
{
    struct err e;

    for (size_t i = 0; i < ps->count; i++)
        if (peer_is_there(&ps->items[i]) && !session_pull_allowed(ps->items[i].session, allowed, &e))
            peer_fail(&ps->items[i], &e);
}

/*
 * Moves a peer that is neither UP nor LISTING to OVER at once: it has no events to read, and its node cleans up by
 * itself.
 */
void peer_detach(struct peer *p)
{
    struct err e;

    end_knock(p);
    if (p->state == PEER_FREE || p->state == PEER_OVER || p->state == PEER_LEAVING)
        return;
    if (p->state != PEER_UP && p->state != PEER_LISTING) {
        move_peer(p, PEER_OVER);
        return;
    }
    move_peer(p, PEER_LEAVING);
    if (!session_pull_allowed(p->session, true, &e) || !session_stop(p->session, &e))
        peer_fail(p, &e);
}

void peers_stop(struct peers *ps)
{
    for (size_t i = 0; i < ps->count; i++)
        peer_detach(&ps->items[i]);
}

void peers_leave(struct peers *ps)
{
    peers_stop(ps);
    while (peers_step(ps, -1))
        continue;
}

#include "peers.h"

#include <stdlib.h>

#include "../ground/mem.h"
#include "target.h"

#define READY_MS 10000
#define LEAVE_MS 5000

static void on_batch(void *data, const void *batch, size_t len)
{
    struct peer *p = data;
    const struct peers_handlers *h = &p->peers->handlers;

    if (h->batch)
        h->batch(h->data, p, batch, len);
}

static void on_reply(void *data, const struct session_reply *reply)
{
    struct peer *p = data;
    const struct peers_handlers *h = &p->peers->handlers;

    if (h->reply)
        h->reply(h->data, p, reply);
}

static void over(struct peer *p)
{
    p->over = true;
    loop_remove(&p->peers->ctx->loop, &p->fd);
}

void peer_fail(struct peer *p, const struct err *e)
{
    const struct peers_handlers *h = &p->peers->handlers;

    over(p);
    if (h->failed)
        h->failed(h->data, p, e);
}

static void on_readable(void *owner)
{
    struct peer *p = owner;
    struct err e;

    if (!session_on_readable(p->session, &e))
        peer_fail(p, &e);
    else if (session_state(p->session) == SESSION_GONE)
        over(p);
}

/* ---- attaching ---- */

static bool attach(struct peer *p, const struct node_opts *o, const char *name, const struct session_options *session, struct err *e)
{
    struct session_handlers handlers = {.data = p, .batch = on_batch, .reply = on_reply};
    struct target target;

    if (!target_init(&target, o, name, e))
        return false;
    p->session = session_open(&target.node, session, &handlers, e);
    target_release(&target);
    return p->session && session_wait(p->session, 0, READY_MS, e);
}

bool peers_open(struct peers *ps, struct ctx *ctx, const struct node_opts *o, const struct session_options *session,
                const struct peers_handlers *handlers, struct err *e)
{
    const char *otherwise = o->os_pid ? NULL : getenv("ETRACE_NODE");

    *ps = (struct peers){.ctx = ctx, .handlers = *handlers, .count = MAX(o->nodes.count, 1)};
    ps->items = mem_zalloc(ps->count * sizeof(*ps->items));
    for (size_t i = 0; i < ps->count; i++)
        ps->items[i] = (struct peer){.peers = ps, .index = (unsigned)i, .fd.fd = -1};
    for (size_t i = 0; i < ps->count; i++) {
        const char *name = o->nodes.count ? o->nodes.items[i] : otherwise;
        if (!attach(&ps->items[i], o, name && *name ? name : NULL, session, e))
            return false;
    }
    return true;
}

void peers_close(struct peers *ps)
{
    for (size_t i = 0; i < ps->count; i++) {
        loop_remove(&ps->ctx->loop, &ps->items[i].fd);
        session_close(ps->items[i].session);
    }
    free(ps->items);
    *ps = (struct peers){0};
}

bool peer_ask(struct peer *p, struct str request, int timeout_ms, struct err *e)
{
    uint32_t id;

    return session_request(p->session, request, timeout_ms, &id, e) && session_wait(p->session, id, timeout_ms, e);
}

void peer_listen(struct peer *p)
{
    p->fd = (struct loop_fd){.fd = session_fd(p->session), .want_read = true, .ready = on_readable, .owner = p};
    loop_add(&p->peers->ctx->loop, &p->fd);
}

/* ---- while they run ---- */

bool peers_step(struct peers *ps, int64_t until)
{
    int64_t each;
    struct err e;
    bool left = false;

    for (size_t i = 0; i < ps->count; i++) {
        struct peer *p = &ps->items[i];
        if (p->over)
            continue;
        if (!session_tick(p->session, session_now(), &each, &e))
            peer_fail(p, &e);
        else if (until < 0 || each < until)
            until = each;
        left = left || !p->over;
    }
    if (left)
        loop_step(&ps->ctx->loop, until);
    return left;
}

bool peers_gone(const struct peers *ps)
{
    for (size_t i = 0; i < ps->count; i++)
        if (!ps->items[i].session || session_state(ps->items[i].session) != SESSION_GONE)
            return false;
    return true;
}

void peers_pull(struct peers *ps, bool allowed)
{
    struct err e;

    for (size_t i = 0; i < ps->count; i++)
        if (!ps->items[i].over && !session_pull_allowed(ps->items[i].session, allowed, &e))
            peer_fail(&ps->items[i], &e);
}

void peers_stop(struct peers *ps)
{
    struct err e;

    for (size_t i = 0; i < ps->count; i++) {
        struct peer *p = &ps->items[i];
        if (!p->over && (!session_pull_allowed(p->session, true, &e) || !session_stop(p->session, &e)))
            peer_fail(p, &e);
    }
}

void peers_leave(struct peers *ps)
{
    struct err e;

    for (size_t i = 0; i < ps->count; i++) {
        struct session *s = ps->items[i].session;
        if (s && session_state(s) == SESSION_READY && session_stop(s, &e))
            session_wait(s, 0, LEAVE_MS, &e);
    }
}

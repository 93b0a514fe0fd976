#include "peers.h"

#include <stdlib.h>
#include <string.h>

#include "../ground/mem.h"

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

static void on_ready(void *data, const struct session_node *node UNUSED)
{
    struct peer *p = data;
    const struct peers_handlers *h = &p->peers->handlers;

    if (h->ready)
        h->ready(h->data, p);
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
    struct node_target target = {.name = name, .port = (int)o->port, .cookie_file = o->cookie_file};
    struct session_handlers handlers = {.data = p, .batch = on_batch, .reply = on_reply};

    if (o->os_pid) {
        char *end;
        target.ospid = strtol(o->os_pid, &end, 10);
        if (*end || target.ospid <= 0)
            return err_set(e, ERR_USAGE, "--pid takes the number of an operating system process, not '%s'", o->os_pid);
    }
    p->session = session_open(&target, session, &handlers, e);
    return p->session && session_wait(p->session, 0, READY_MS, e);
}

void peers_begin(struct peers *ps, struct ctx *ctx, const struct peers_handlers *handlers)
{
    *ps = (struct peers){.ctx = ctx, .handlers = *handlers};
    ps->items = mem_zalloc(PEERS_MAX * sizeof(*ps->items));
}

bool peers_open(struct peers *ps, const struct node_opts *o, const struct session_options *session, struct err *e)
{
    const char *otherwise = o->os_pid ? NULL : getenv("ETRACE_NODE");
    size_t count = MAX(o->nodes.count, 1);

    if (count > PEERS_MAX)
        return err_set(e, ERR_USAGE, "at most %d nodes", PEERS_MAX);
    for (size_t i = 0; i < count; i++)
        ps->items[i] = (struct peer){.peers = ps, .index = (unsigned)i, .fd.fd = -1};
    for (; ps->count < count; ps->count++) {
        const char *name = o->nodes.count ? o->nodes.items[ps->count] : otherwise;
        if (!attach(&ps->items[ps->count], o, name && *name ? name : NULL, session, e)) {
            ps->count++;
            return false;
        }
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

/* The name as it was given may lack its host, and a node may call its host otherwise. */
static bool is_called(const struct peer *p, const char *name, const char *full)
{
    const char *own = p->session ? session_node(p->session)->name : "";
    size_t len = strlen(name);

    return !strcmp(own, full) || (!strchr(name, '@') && !strncmp(own, name, len) && own[len] == '@');
}

/* Its old place, or a new one. NULL: it is attached already, or there are too many. */
static struct peer *place(struct peers *ps, const char *name, const char *full, struct err *e)
{
    for (size_t i = 0; i < ps->count; i++) {
        struct peer *p = &ps->items[i];
        if (!is_called(p, name, full))
            continue;
        if (p->over)
            return p;
        err_set(e, ERR_USAGE, "%s is attached already", full);
        return NULL;
    }
    if (ps->count == PEERS_MAX) {
        err_set(e, ERR_USAGE, "at most %d nodes", PEERS_MAX);
        return NULL;
    }
    ps->items[ps->count] = (struct peer){.peers = ps, .index = (unsigned)ps->count, .fd.fd = -1, .over = true};
    return &ps->items[ps->count++];
}

struct peer *peers_attach(struct peers *ps, const struct node_opts *o, const char *name, const struct session_options *session,
                          struct err *e)
{
    char full[NODE_NAME_MAX + 1];
    struct node_target target = {.name = name, .port = (int)o->port, .cookie_file = o->cookie_file};
    int port = target.port;
    struct peer *p;

    if (!node_resolve(&target, full, &port, e) || !(p = place(ps, name ? name : full, full, e)))
        return NULL;
    struct session_handlers handlers = {.data = p, .ready = on_ready, .batch = on_batch, .reply = on_reply};
    struct session *s = session_open(&target, session, &handlers, e);
    if (!s) {
        ps->count -= !p->session;
        return NULL;
    }
    session_close(p->session);
    p->session = s;
    p->over = false;
    peer_listen(p);
    return p;
}

void peer_detach(struct peer *p)
{
    struct err e;

    loop_remove(&p->peers->ctx->loop, &p->fd);
    if (p->over)
        return;
    p->over = true;
    if (session_pull_allowed(p->session, true, &e) && session_stop(p->session, &e))
        session_wait(p->session, 0, LEAVE_MS, &e);
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

bool peers_tick(struct peers *ps, int64_t *ret_next)
{
    int64_t each;
    struct err e;
    bool left = false;

    *ret_next = -1;
    for (size_t i = 0; i < ps->count; i++) {
        struct peer *p = &ps->items[i];
        if (p->over)
            continue;
        if (!session_tick(p->session, session_now(), &each, &e))
            peer_fail(p, &e);
        else if (*ret_next < 0 || each < *ret_next)
            *ret_next = each;
        left = left || !p->over;
    }
    return left;
}

bool peers_step(struct peers *ps, int64_t until)
{
    int64_t next;
    bool left = peers_tick(ps, &next);

    if (left)
        loop_step(&ps->ctx->loop, until < 0 ? next : MIN(until, next));
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
        if (s && session_state(s) == SESSION_READY && session_pull_allowed(s, true, &e) && session_stop(s, &e))
            session_wait(s, 0, LEAVE_MS, &e);
    }
}

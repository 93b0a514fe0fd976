#include "peers.h"

#include <stdlib.h>
#include <string.h>

#include "../erlang/etf_write.h"
#include "../ground/mem.h"
#include "../node/knock.h"

#define READY_MS 10000
#define LEAVE_MS 5000
#define LEAVE_LEAST_MS 100 /* where that was taken by others: what has come is read */
#define RETRY_MS 1000 /* between two tries to attach to a node that is away */

static void on_batch(void *data, const void *batch, size_t len)
{
    struct peer *p = data;
    const struct peers_handlers *h = &p->peers->handlers;

    if (h->batch)
        h->batch(h->data, p, batch, len);
}

static void take_listed(struct listed *l, const struct session_reply *reply);

static void on_reply(void *data, const struct session_reply *reply)
{
    struct peer *p = data;
    const struct peers_handlers *h = &p->peers->handlers;

    if (p->peers->listing)
        take_listed(p->peers->listing, reply);
    else if (h->reply)
        h->reply(h->data, p, reply);
}

static void on_time(void *data, const struct session_time *time)
{
    struct peer *p = data;
    const struct peers_handlers *h = &p->peers->handlers;

    if (h->time)
        h->time(h->data, p, time);
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

const char *peer_name(const struct peer *p)
{
    return p->session ? session_node(p->session)->name : p->name;
}

/* Said with why it is the last time. */
static void given_up(struct peer *p, const struct err *why)
{
    const struct peers_handlers *h = &p->peers->handlers;
    struct err e;

    p->away = false;
    err_set(&e, why->status, "%s; tried %d times, and no more", why->text, PEERS_REFUSALS);
    if (*why->hint)
        err_hint(&e, "%s", why->hint);
    if (h->failed)
        h->failed(h->data, p, &e);
}

void peer_fail(struct peer *p, const struct err *e)
{
    const struct peers_handlers *h = &p->peers->handlers;

    over(p);
    p->away = p->target && h->back && session_lost(p->session);
    p->next = loop_now() + RETRY_MS;
    p->refusals = p->up ? 0 : p->refusals + 1;
    if (p->away && p->refusals >= PEERS_REFUSALS)
        given_up(p, e);
    else if (h->failed)
        h->failed(h->data, p, e);
    p->up = false;
}

bool peer_missed(struct peer *p, const struct err *e)
{
    if (!p->target || !p->peers->handlers.back || !session_lost(p->session))
        return false;
    peer_fail(p, e);
    return p->away;
}

static void on_readable(void *owner)
{
    struct peer *p = owner;
    bool booting = session_state(p->session) == SESSION_BOOTING;
    struct err e;

    if (!session_on_readable(p->session, &e))
        peer_fail(p, &e);
    else if (session_state(p->session) == SESSION_GONE)
        over(p);
    else if (booting && session_state(p->session) == SESSION_READY) {
        p->up = true;
        p->refusals = 0;
        if (p->peers->handlers.back)
            p->peers->handlers.back(p->peers->handlers.data, p);
    }
}

/* ---- attaching ---- */

static struct session_handlers session_handlers(struct peer *p)
{
    return (struct session_handlers){.data = p, .batch = on_batch, .reply = on_reply, .time = on_time};
}

static struct peer *next_place(struct peers *ps, struct err *e)
{
    struct peer *p = &ps->items[ps->count];

    if (ps->count == PEERS_MAX) {
        err_set(e, ERR_USAGE, "one command takes %d nodes at most", PEERS_MAX);
        return NULL;
    }
    *p = (struct peer){.peers = ps, .index = (unsigned)ps->count++, .fd.fd = -1, .over = true};
    return p;
}

static struct peer *add(struct peers *ps, const struct node_opts *o, const char *name, struct err *e)
{
    struct peer *p = next_place(ps, e);

    if (!p)
        return NULL;
    p->name = name ? mem_strndup(name, strlen(name)) : NULL;
    p->target = mem_zalloc(sizeof(*p->target));
    return target_init(p->target, o, p->name, e) ? p : NULL;
}

static void target_free(struct target *t)
{
    if (t)
        target_release(t);
    free(t);
}

static void release(struct peer *p)
{
    loop_remove(&p->peers->ctx->loop, &p->fd);
    loop_remove(&p->peers->ctx->loop, &p->answer);
    session_close(p->session);
    knock_free(p->knock);
    target_free(p->target);
    free(p->name);
}

static void drop_last(struct peers *ps)
{
    release(&ps->items[--ps->count]);
}

static bool known(const struct peers *ps, const char *name)
{
    for (size_t i = 0; i < ps->count; i++)
        if (peer_name(&ps->items[i]) && !strcmp(peer_name(&ps->items[i]), name))
            return true;
    return false;
}

/* p is the last one. */
static bool attach(struct peer *p, const struct session_options *session, struct err *e)
{
    struct peers *ps = p->peers;
    struct session_handlers handlers = session_handlers(p);
    struct session_options held = *session;

    held.hold = true;
    p->session = session_open(&p->target->node, &held, &handlers, e);
    if (!p->session || !session_await(p->session, 0, e))
        return false;
    const char *name = session_node(p->session)->name;
    ps->count--;
    bool twice = known(ps, name);
    ps->count++;
    if (twice) {
        drop_last(ps);
        return true;
    }
    free(p->name);
    p->name = mem_strndup(name, strlen(name));
    p->target->node.name = p->name;
    p->over = false;
    p->up = true;
    return true;
}

static bool wait_for(struct peer *p, const struct err *e)
{
    bool lost = p->session && session_lost(p->session);

    if (!p->name || (!lost && (e->status != ERR_NODE || e->refused)))
        return false;
    p->away = true;
    p->why = *e;
    ctx_warn(p->peers->ctx, "%s; it is waited for", e->text);
    return true;
}

static bool add_named(struct peers *ps, const struct node_opts *o, const char *name, const struct session_options *session, struct err *e)
{
    struct peer *p = add(ps, o, name, e);

    if (!p)
        return false;
    if (attach(p, session, e))
        return true;
    bool waits = o->reattach && ps->handlers.back && wait_for(p, e);
    session_close(p->session);
    p->session = NULL;
    return waits;
}

/* ---- the nodes that a node is connected to ---- */

struct listed {
    char **names;
    size_t count, cap, visible; /* the hidden ones stand behind the others */
};

static bool read_names(struct etf *r, struct listed *l)
{
    struct str name;
    size_t n;

    if (!etf_get_list(r, &n))
        return false;
    for (; n; n--) {
        if (!etf_get_bin(r, &name))
            return false;
        l->names = mem_grow(l->names, &l->cap, l->count + 1, sizeof(*l->names));
        l->names[l->count++] = mem_strndup(name.at, name.len);
    }
    struct etf_head end;
    return !etf_peek(r, &end) || end.type != ETF_NIL || etf_skip(r);
}

static void take_listed(struct listed *l, const struct session_reply *reply)
{
    struct etf r = reply->term;

    if (!reply->ok || !etf_get_tuple(&r, 2) || !read_names(&r, l))
        return;
    l->visible = l->count;
    read_names(&r, l);
}

static bool list_connected(struct peer *p, struct listed *ret, struct err *e)
{
    struct buf request = {0};

    etf_version(&request);
    etf_atomz(&request, "nodes");
    p->peers->listing = ret;
    bool ok = peer_ask(p, buf_view(&request), READY_MS, e);
    p->peers->listing = NULL;
    buf_release(&request);
    return ok;
}

/* A hidden node that no epmd knows is somebody's tool, and passed over in silence. */
static bool concerns_us(const struct peer *p, bool hidden)
{
    char name[NODE_NAME_MAX + 1];
    struct err ignored;
    int port;

    return !hidden || node_resolve(&p->target->node, name, &port, &ignored);
}

static bool add_cluster(struct peers *ps, const struct node_opts *o, const struct session_options *session, struct err *e)
{
    struct node_opts theirs = *o;
    struct listed l = {0};
    struct err why;
    bool ok = true;

    theirs.port = 0;
    theirs.os_pid = NULL;
    for (size_t named = ps->count, i = 0; i < named && ok; i++)
        ok = ps->items[i].over || list_connected(&ps->items[i], &l, e) || peer_missed(&ps->items[i], e);
    for (size_t i = 0; i < l.count && ok && !ps->ctx->interrupts; i++) {
        struct peer *p;
        loop_step(&ps->ctx->loop, 0); /* there may be many that do not answer: Ctrl-C is heard */
        if (known(ps, l.names[i]))
            continue;
        p = add(ps, &theirs, l.names[i], e);
        if (!p) {
            ok = false;
        } else if (!concerns_us(p, i >= l.visible)) {
            drop_last(ps);
        } else if (!attach(p, session, &why)) {
            ctx_warn(ps->ctx, "not traced: %s", why.text);
            drop_last(ps);
        }
    }
    for (size_t i = 0; i < l.count; i++)
        free(l.names[i]);
    free(l.names);
    return ok;
}

static void keep_options(struct peers *ps, const struct session_options *session)
{
    free(ps->redact);
    ps->options = *session;
    ps->redact = mem_alloc((session->nredact + 1) * sizeof(*ps->redact));
    if (session->nredact)
        memcpy(ps->redact, session->redact, session->nredact * sizeof(*ps->redact));
    ps->options.redact = ps->redact;
    ps->options.hold = false;
}

void peers_begin(struct peers *ps, struct ctx *ctx, const struct peers_handlers *handlers)
{
    *ps = (struct peers){.ctx = ctx, .handlers = *handlers};
    ps->items = mem_zalloc(PEERS_MAX * sizeof(*ps->items));
}

static bool open_all(struct peers *ps, const struct node_opts *o, const struct session_options *session, struct err *e)
{
    const char *otherwise = o->os_pid ? NULL : getenv("ETRACE_NODE");
    bool ok;

    if (o->port && o->nodes.count > 1)
        return err_set(e, ERR_USAGE, "--port is the port of one node, and %zu are named", o->nodes.count);
    if (!o->reattach)
        ps->handlers.back = NULL;
    keep_options(ps, session);
    if (!o->nodes.count) {
        ok = add_named(ps, o, otherwise && *otherwise ? otherwise : NULL, session, e);
    } else {
        ok = true;
        for (size_t i = 0; i < o->nodes.count && ok; i++)
            ok = add_named(ps, o, o->nodes.items[i], session, e);
    }
    ok = ok && (!o->cluster || add_cluster(ps, o, session, e));
    /* nothing was to come before all are known */
    for (size_t i = 0; i < ps->count && ok && !session->hold; i++)
        ok = ps->items[i].over || session_pull_allowed(ps->items[i].session, true, e) || peer_missed(&ps->items[i], e);
    return ok;
}

/* Nothing is traced yet, and the nodes clean up by themselves. */
bool peers_open(struct peers *ps, const struct node_opts *o, const struct session_options *session, struct err *e)
{
    ctx_let_die(ps->ctx, true);
    bool ok = open_all(ps, o, session, e);
    ctx_let_die(ps->ctx, false);
    return ok;
}

void peers_close(struct peers *ps)
{
    while (ps->count)
        drop_last(ps);
    free(ps->items);
    free(ps->redact);
    *ps = (struct peers){0};
}

/* The name as it was given may lack its host. */
static bool is_called(const struct peer *p, const char *name)
{
    const char *own = peer_name(p) ? peer_name(p) : "";
    size_t len = strlen(name);

    return !strcmp(own, name) || (!strchr(name, '@') && !strncmp(own, name, len) && own[len] == '@');
}

static bool is_free(const struct peer *p)
{
    return p->over && !p->away && !p->met && !p->knock;
}

/* Its old place, or one that nobody has. NULL: it is attached already, or there are too many. */
static struct peer *place(struct peers *ps, const char *name, struct err *e)
{
    for (size_t i = 0; name && i < ps->count; i++) {
        struct peer *p = &ps->items[i];
        if (!is_called(p, name))
            continue;
        if (p->over && !p->knock)
            return p;
        err_set(e, ERR_USAGE, p->knock ? "%s is being attached to" : "%s is attached already", name);
        return NULL;
    }
    for (size_t i = 0; i < ps->count; i++)
        if (is_free(&ps->items[i]))
            return &ps->items[i];
    return next_place(ps, e);
}

static void on_answer(void *owner);

static void await_answer(struct peer *p)
{
    p->answer = (struct loop_fd){.fd = knock_fd(p->knock), .want_read = true, .ready = on_answer, .owner = p};
    loop_add(&p->peers->ctx->loop, &p->answer);
}

struct peer *peers_attach(struct peers *ps, const struct node_opts *o, const char *name, const struct session_options *session,
                          struct err *e)
{
    struct target *target = mem_zalloc(sizeof(*target));
    char *own = name ? mem_strndup(name, strlen(name)) : NULL;
    struct peer *p = target_init(target, o, own, e) ? place(ps, own, e) : NULL;
    struct knock *knock = p ? knock_start(&target->node) : NULL;

    if (!knock) {
        if (p)
            err_set(e, ERR_RUN, "cannot start a thread to connect to %s", own ? own : "a node");
        target_free(target);
        free(own);
        return NULL;
    }
    keep_options(ps, session);
    session_close(p->session);
    target_free(p->target);
    free(p->name);
    p->session = NULL;
    p->target = target;
    p->name = own;
    p->knock = knock;
    await_answer(p);
    return p;
}

static void give_up(struct peer *p)
{
    p->away = false;
    loop_remove(&p->peers->ctx->loop, &p->answer);
    knock_free(p->knock);
    p->knock = NULL;
}

void peer_detach(struct peer *p)
{
    struct err e;

    loop_remove(&p->peers->ctx->loop, &p->fd);
    if (p->knock)
        give_up(p);
    if (p->over)
        return;
    p->over = true;
    if (session_pull_allowed(p->session, true, &e) && session_stop(p->session, &e))
        session_wait(p->session, 0, LEAVE_MS, &e);
}

bool peer_ask(struct peer *p, struct str request, int timeout_ms, struct err *e)
{
    uint32_t id;

    return session_request(p->session, request, timeout_ms, &id, e) && session_await(p->session, id, e);
}

void peer_listen(struct peer *p)
{
    p->fd = (struct loop_fd){.fd = session_fd(p->session), .want_read = true, .ready = on_readable, .owner = p};
    loop_add(&p->peers->ctx->loop, &p->fd);
}

/* ---- away, and back ---- */

static void stays_away(struct peer *p, const struct err *e)
{
    p->refusals = e->refused ? p->refusals + 1 : 0;
    if (p->refusals >= PEERS_REFUSALS) {
        given_up(p, e);
        return;
    }
    if (strcmp(p->why.text, e->text))
        ctx_warn(p->peers->ctx, "%s; it is waited for", e->text);
    p->why = *e;
}

/* Under another name that it was given. */
static bool is_twice(const struct peer *p, struct err *e)
{
    const struct peers *ps = p->peers;

    for (size_t i = 0; !p->away && i < ps->count; i++) {
        const struct peer *other = &ps->items[i];
        if (other != p && !other->over && !strcmp(peer_name(other), peer_name(p))) {
            err_set(e, ERR_USAGE, "%s is attached already", peer_name(p));
            return true;
        }
    }
    return false;
}

static void on_answer(void *owner)
{
    struct peer *p = owner;
    struct session_handlers handlers = session_handlers(p);
    struct node_conn conn;
    struct err e;

    handlers.ready = p->away ? NULL : on_ready;
    bool ok = knock_answer(p->knock, &conn, &e);
    loop_remove(&p->peers->ctx->loop, &p->answer);
    knock_free(p->knock);
    p->knock = NULL;
    p->session = ok ? session_open_on(&conn, &p->peers->options, &handlers, &e) : NULL;
    if (p->session && is_twice(p, &e)) {
        session_close(p->session);
        p->session = NULL;
    }
    if (!p->session && p->away) {
        stays_away(p, &e);
        return;
    }
    if (!p->session) {
        p->peers->handlers.failed(p->peers->handlers.data, p, &e);
        return;
    }
    *p->why.text = 0;
    p->over = p->away = false;
    p->met = true;
    peer_listen(p);
}

/* Until it is tried again; -1: it is being tried. */
static int64_t seek(struct peer *p)
{
    if (p->session) { /* the one that failed; it could not go while its handlers were at work */
        session_close(p->session);
        p->session = NULL;
    }
    if (p->knock)
        return -1;
    if (loop_now() < p->next)
        return p->next;
    p->next = loop_now() + RETRY_MS;
    p->knock = knock_start(&p->target->node);
    if (!p->knock)
        return p->next;
    await_answer(p);
    return -1;
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
        if (p->away)
            each = seek(p);
        else if (p->over)
            continue;
        else if (!session_tick(p->session, session_now(), &each, &e))
            each = (peer_fail(p, &e), -1);
        *ret_next = loop_sooner(*ret_next, each);
        left = left || !p->over || p->away;
    }
    return left;
}

bool peers_step(struct peers *ps, int64_t until)
{
    int64_t next;
    bool left = peers_tick(ps, &next);

    if (left)
        loop_step(&ps->ctx->loop, until < 0 ? next : next < 0 ? until : MIN(until, next));
    return left;
}

bool peers_gone(const struct peers *ps)
{
    for (size_t i = 0; i < ps->count; i++)
        if (ps->items[i].session && session_state(ps->items[i].session) != SESSION_GONE)
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
        if (p->knock || p->away)
            give_up(p);
        if (!p->over && session_state(p->session) == SESSION_BOOTING)
            over(p); /* it cleans up by itself */
        if (!p->over && (!session_pull_allowed(p->session, true, &e) || !session_stop(p->session, &e)))
            peer_fail(p, &e);
    }
}

void peers_leave(struct peers *ps)
{
    int64_t by = session_now() + LEAVE_MS;
    struct err e;

    for (size_t i = 0; i < ps->count; i++) {
        struct session *s = ps->items[i].session;
        if (s && session_state(s) == SESSION_READY && session_pull_allowed(s, true, &e))
            session_stop(s, &e);
    }
    for (size_t i = 0; i < ps->count; i++) {
        struct session *s = ps->items[i].session;
        if (s && session_state(s) == SESSION_STOPPING)
            session_wait(s, 0, (int)MAX(by - session_now(), LEAVE_LEAST_MS), &e);
    }
}

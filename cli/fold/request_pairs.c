/* SPDX-License-Identifier: Apache-2.0 */
#include "request_pairs.h"

#include <stdlib.h>

#include "../erlang/term_print.h"
#include "../ground/mem.h"

#define LATE_NS 500000000               /* a request in the queue `late` is finished after this time */
#define LOOK 16                         /* a search for a server that is not in use looks at this many servers */
#define LONGEST_NS INT64_C(60000000000) /* a callback counts as ended after this time, if no request is open */

void request_pairs_init(struct request_pairs *p)
{
    *p = (struct request_pairs){.free = REQUEST_NONE, .oldest = REQUEST_NONE, .newest = REQUEST_NONE};
}

void request_pairs_release(struct request_pairs *p)
{
    for (size_t i = 0; i < p->used; i++) {
        free(p->items[i].kept);
        free(p->items[i].replier);
    }
    free(p->items);
    free(p->servers);
    table_release(&p->by_ref);
    table_release(&p->by_caller);
    table_release(&p->by_process);
    request_keys_release(&p->keys);
}

/* ---- times ---- */

static struct request_time time_of(const struct event *e)
{
    return (struct request_time){.mono_ns = e->mono_ns,
                                 .wall_ns = e->wall_ns,
                                 .shift_ns = e->shift_ns,
                                 .node = e->node->index,
                                 .known = true,
                                 .aligned = e->node->aligned};
}

int64_t request_between(const struct request_time *from, const struct request_time *to)
{
    if (!from->known || !to->known || (from->node != to->node && !(from->aligned && to->aligned)))
        return -1;
    int64_t ns = from->node == to->node ? (int64_t)((uint64_t)to->mono_ns - (uint64_t)from->mono_ns)
                                        : (int64_t)((uint64_t)to->wall_ns - (uint64_t)from->wall_ns);
    return MAX(ns, 0); /* may be negative, because the clocks of two processors or nodes differ a little */
}

/* Returns the nanoseconds from one time to a later time of one clock. Returns 0 if `to` is earlier, or on overflow. */
static int64_t elapsed_ns(int64_t from, int64_t to)
{
    int64_t ns;

    return __builtin_sub_overflow(to, from, &ns) || ns < 0 ? 0 : ns;
}

static int64_t add_ns(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/*
 * Prefers the time of the send, because a busy server receives a message late. Uses the time of the arrival if the
 * caller is on another node, whose clock may differ.
 */
const struct request_time *request_start(const struct request *r)
{
    return r->asked.known && (!r->arrived.known || r->arrived.node == r->asked.node) ? &r->asked : &r->arrived;
}

bool request_caller_seen(const struct request *r)
{
    return r->asked.known || r->got.known || r->gave_up.known || r->down;
}

struct request_time request_now(const struct request_pairs *p, const struct event_node *node)
{
    struct request_time latest = p->latest[node->index];

    if (node->passed && !p->over[node->index] && (!latest.known || latest.mono_ns < node->passed_mono_ns))
        return (struct request_time){.mono_ns = node->passed_mono_ns,
                                     .wall_ns = node->passed_wall_ns,
                                     .shift_ns = node->shift_ns,
                                     .node = node->index,
                                     .known = true,
                                     .aligned = node->aligned};
    return latest;
}

/* ---- requests without a reply ---- */

enum request_stage request_stage(const struct request_pairs *p, const struct request *r)
{
    const struct request_server *s = r->server == REQUEST_NONE ? NULL : &p->servers[r->server];

    if (!r->begun.known)
        return REQUEST_WAITS;
    return r->task || (s && s->busy && s->request != REQUEST_NONE && &p->items[s->request] == r) ? REQUEST_RUNS
                                                                                                 : REQUEST_LEFT;
}

int64_t request_age(const struct request_pairs *p, const struct request *r)
{
    const struct request_time now = request_now(p, r->node), *from = request_start(r), *to = &now;

    if (request_between(from, to) < 0)
        from = &r->begun;
    if (r->gave_up.known && request_stage(p, r) == REQUEST_LEFT && request_between(from, &r->gave_up) >= 0)
        to = &r->gave_up;
    return request_between(from, to);
}

bool request_may_have_ended(const struct request_pairs *p, const struct request *r)
{
    return r->seen_loss != p->losses[r->seen_on];
}

/* ---- servers ---- */

static bool server_works(const struct request_server *s)
{
    return s->busy && !s->replied.known;
}

bool request_server_runs(const struct request_pairs *p, const struct request_server *s)
{
    return server_works(s) && s->loss == p->losses[s->node->index];
}

static uint32_t server_find(const struct request_pairs *p, const struct event *e)
{
    uint32_t hash = hash_tracee(e->who->id, e->node->index);

    for (uint32_t step = 0, i; (i = table_next(&p->by_process, hash, &step)) != TABLE_NONE;)
        if (p->servers[i].who.id == e->who->id && p->servers[i].node == e->node && !p->servers[i].gone)
            return i;
    return REQUEST_NONE;
}

static bool busy_same(const struct request_busy *a, const struct request_busy *b)
{
    return a->work == b->work && a->shape == b->shape && a->statem == b->statem;
}

/* Stores the callback that ends now as a span. Extends the last span if that has the same work. */
static void add_server_span(struct request_server *s, int64_t now)
{
    struct request_span *last = &s->spans[(s->at + REQUEST_SPANS - 1) % REQUEST_SPANS];

    s->now.to = now;
    s->now.what.times = 1;
    s->now.what.ns = elapsed_ns(s->now.from, now);
    if (s->nspans && busy_same(&last->what, &s->now.what)) {
        last->what.times++;
        last->what.ns = add_ns(last->what.ns, s->now.what.ns);
        last->to = now;
        last->last = s->now.from;
        return;
    }
    s->spans[s->at] = s->now;
    s->at = (s->at + 1) % REQUEST_SPANS;
    s->nspans = MIN(s->nspans + 1, REQUEST_SPANS);
}

/* Returns the work of a span after the time `from`. Assumes that its callbacks except the last are spread evenly. */
static struct request_busy span_since(const struct request_span *span, int64_t from)
{
    struct request_busy part = span->what;

    if (from >= span->last) {
        part.times = 1;
        part.ns = elapsed_ns(MAX(from, span->from), span->to);
    } else if (span->from < from && span->to > span->from) {
        double share = (double)elapsed_ns(from, span->to) / (double)MAX(elapsed_ns(span->from, span->to), 1);
        if (share >= 1.0)
            return part;
        part.ns = (int64_t)((double)part.ns * share);
        part.times = MAX((uint64_t)((double)part.times * share + 0.5), 1);
    }
    return part;
}

struct request_busy request_busy_since(const struct request_server *s, int64_t from, int64_t to, int64_t *ret_all)
{
    struct request_busy sums[REQUEST_SPANS + 1], most = {0};
    unsigned n = 0;

    *ret_all = 0;
    for (unsigned i = 0; i <= s->nspans; i++) {
        struct request_span span = i ? s->spans[(s->at + REQUEST_SPANS - i) % REQUEST_SPANS] : s->now;
        if (!i) { /* the callback that still runs */
            if (!s->busy)
                continue;
            span.to = s->replied.known ? s->replied.mono_ns : to;
            span.what.times = 1;
            span.what.ns = elapsed_ns(span.from, span.to);
        }
        if (span.to <= from)
            break;
        struct request_busy part = span_since(&span, from);
        unsigned k = 0;
        while (k < n && !busy_same(&sums[k], &part))
            k++;
        if (k == n)
            sums[n++] = (struct request_busy){.work = part.work, .shape = part.shape, .statem = part.statem};
        sums[k].times += part.times;
        sums[k].ns = add_ns(sums[k].ns, part.ns);
        *ret_all = add_ns(*ret_all, part.ns);
        if (sums[k].ns > most.ns)
            most = sums[k];
    }
    return most;
}

/* ---- open requests ---- */

static uint32_t ref_hash(struct str ref)
{
    return hash_text(HASH_BEGIN, ref);
}

static uint32_t request_find(const struct request_pairs *p, const uint8_t *ref)
{
    struct str text = request_ref(ref);

    text.len = MIN(text.len, sizeof(p->items->ref) - 1);
    for (uint32_t step = 0, i; (i = table_next(&p->by_ref, ref_hash(text), &step)) != TABLE_NONE;)
        if (str_is(text, p->items[i].ref))
            return i;
    return REQUEST_NONE;
}

static void request_unlink(struct request_pairs *p, uint32_t i)
{
    struct request *r = &p->items[i];

    *(r->older == REQUEST_NONE ? &p->oldest : &p->items[r->older].newer) = r->newer;
    *(r->newer == REQUEST_NONE ? &p->newest : &p->items[r->newer].older) = r->older;
}

static void late_remove(struct request_pairs *p, uint32_t i)
{
    unsigned k = 0;

    while (p->late[(p->late_first + k) % REQUESTS_LATE] != i)
        k++;
    for (; k; k--)
        p->late[(p->late_first + k) % REQUESTS_LATE] = p->late[(p->late_first + k - 1) % REQUESTS_LATE];
    p->late_first = (p->late_first + 1) % REQUESTS_LATE;
    p->nlate--;
}

/* ---- the requests of a caller ---- */

/* Returns the newest request in the list of a caller. */
static uint32_t waiting_newest(const struct request_pairs *p, uint64_t caller, unsigned node)
{
    for (uint32_t step = 0, i; (i = table_next(&p->by_caller, hash_tracee(caller, node), &step)) != TABLE_NONE;)
        if (p->items[i].caller.id == caller && p->items[i].caller_node == node)
            return i;
    return REQUEST_NONE;
}

/* Adds the request to the list of its caller, if the caller may stop waiting for it. */
static void waiting_add(struct request_pairs *p, uint32_t i)
{
    struct request *r = &p->items[i];

    if (r->waits || !r->caller.id || !(r->asked.known || r->arrived.known) || r->caller_gone || r->infinite ||
        r->got.known || r->gave_up.known)
        return;
    const uint32_t hash = hash_tracee(r->caller.id, r->caller_node);
    const uint32_t newest = waiting_newest(p, r->caller.id, r->caller_node);
    if (newest != REQUEST_NONE) {
        table_remove(&p->by_caller, hash, newest);
        p->items[newest].newer_of_caller = i;
    }
    table_add(&p->by_caller, hash, i);
    r->older_of_caller = newest;
    r->newer_of_caller = REQUEST_NONE;
    r->waits = true;
}

static void waiting_remove(struct request_pairs *p, uint32_t i)
{
    struct request *r = &p->items[i];

    if (!r->waits)
        return;
    const uint32_t hash = hash_tracee(r->caller.id, r->caller_node);
    if (r->older_of_caller != REQUEST_NONE)
        p->items[r->older_of_caller].newer_of_caller = r->newer_of_caller;
    if (r->newer_of_caller != REQUEST_NONE) {
        p->items[r->newer_of_caller].older_of_caller = r->older_of_caller;
    } else {
        table_remove(&p->by_caller, hash, i);
        if (r->older_of_caller != REQUEST_NONE)
            table_add(&p->by_caller, hash, r->older_of_caller);
    }
    r->waits = false;
}

/* ---- the end of a request ---- */

static void request_remove(struct request_pairs *p, uint32_t i)
{
    struct request *r = &p->items[i];

    waiting_remove(p, i);
    table_remove(&p->by_ref, ref_hash((struct str){r->ref, strlen(r->ref)}), i);
    if (r->server != REQUEST_NONE) {
        struct request_server *s = &p->servers[r->server];
        *(r->newer_of_server == REQUEST_NONE ? &s->newest : &p->items[r->newer_of_server].older_of_server) =
            r->older_of_server;
        if (r->older_of_server != REQUEST_NONE)
            p->items[r->older_of_server].newer_of_server = r->newer_of_server;
        s->open -= !r->settled;
        s->request = s->request == i ? REQUEST_NONE : s->request;
        s->answered = s->answered == i ? REQUEST_NONE : s->answered;
    }
    if (r->queued)
        late_remove(p, i);
    request_unlink(p, i);
    free(r->kept);
    free(r->replier);
    *r = (struct request){.newer = p->free};
    p->free = i;
    p->open--;
}

static void request_settle(struct request_pairs *p, struct request *r)
{
    if (r->settled)
        return;
    r->settled = true;
    if (r->server != REQUEST_NONE)
        p->servers[r->server].open--;
    r->got_told = r->got.known; /* settled() reports the received reply, so got() must not */
    if (r->server != REQUEST_NONE && p->servers[r->server].statem && r->begun.known)
        r->torn = r->loss != p->losses[r->begun.node];
    r->late = r->gave_up.known && !r->got.known && (r->direct || r->sent.known);
    if (!r->told_begun)
        r->waited_ns = request_between(request_start(r), &r->begun);
    r->worked_ns = r->torn ? -1 : request_between(&r->begun, r->direct ? &r->ended : &r->sent);
    p->settled(p->ctx, r);
}

/* Reports the wait of a request that has begun, because it may never get a reply. */
static void tell_begun(struct request_pairs *p, struct request *r)
{
    int64_t waited = request_between(request_start(r), &r->begun);

    if (r->settled || r->told_begun || waited < 0)
        return;
    r->waited_ns = waited;
    r->told_begun = true;
    p->begun(p->ctx, r);
}

static void tell_got(struct request_pairs *p, struct request *r)
{
    if (!r->settled || !r->got.known || r->got_told)
        return;
    r->got_told = true;
    p->got(p->ctx, r);
}

static void finish_request(struct request_pairs *p, uint32_t i)
{
    request_settle(p, &p->items[i]);
    tell_got(p, &p->items[i]);
    p->done(p->ctx, &p->items[i]);
    request_remove(p, i);
}

/* Finishes a request if no further event of it can come. */
static void finish_if_over(struct request_pairs *p, uint32_t i)
{
    struct request *r = &p->items[i];
    bool replied = r->sent.known || (r->direct && !p->sees_replies);

    if (replied && (r->got.known || !request_caller_seen(r)))
        finish_request(p, i);
}

/* ---- the servers that are followed ---- */

/*
 * Returns true if the server has an open request or a running callback. A process that is killed in a callback shows no
 * end of the callback, so the callback counts only for LONGEST_NS.
 */
static bool server_in_use(const struct request_pairs *p, const struct request_server *s)
{
    const struct request_time now = request_now(p, s->node);

    return s->open || (!s->gone && request_server_runs(p, s) && elapsed_ns(s->now.from, now.mono_ns) < LONGEST_NS);
}

/*
 * Removes a server that is not in use, and finishes its requests, which all have their replies. Returns its index for
 * reuse. Looks at a few servers only, because each event of a server that is not followed comes here.
 */
static uint32_t server_replace(struct request_pairs *p)
{
    for (unsigned looked = 0; looked < LOOK; looked++) {
        uint32_t i = (uint32_t)p->hand;
        struct request_server *s = &p->servers[i];
        p->hand = (p->hand + 1) % REQUEST_SERVERS;
        if (server_in_use(p, s))
            continue;
        while (s->newest != REQUEST_NONE)
            finish_request(p, s->newest);
        table_remove(&p->by_process, hash_tracee(s->who.id, s->node->index), i);
        return i;
    }
    return REQUEST_NONE;
}

static uint32_t server_of(struct request_pairs *p, const struct event *e)
{
    uint32_t i = server_find(p, e);

    if (i == REQUEST_NONE) {
        if (p->nservers == REQUEST_SERVERS) {
            i = server_replace(p);
        } else {
            p->servers = mem_grow(p->servers, &p->servers_cap, p->nservers + 1, sizeof(*p->servers));
            i = (uint32_t)p->nservers++;
        }
        if (i == REQUEST_NONE)
            return i;
        p->servers[i] = (struct request_server){.node = e->node,
                                                .who = *e->who,
                                                .request = REQUEST_NONE,
                                                .answered = REQUEST_NONE,
                                                .newest = REQUEST_NONE};
        table_add(&p->by_process, hash_tracee(e->who->id, e->node->index), i);
    }
    if (e->who->name_len)
        p->servers[i].who = *e->who;
    return i;
}

/* ---- the begin of a request ---- */

static uint32_t request_add(struct request_pairs *p, const struct event *e, const struct request_from *from)
{
    struct str ref = request_ref(from->ref);
    uint32_t i = p->free;

    if (p->open == REQUESTS_OPEN) {
        p->overflown += !p->items[p->oldest].settled;
        p->items[p->oldest].given_up = true;
        finish_request(p, p->oldest);
        i = p->free;
    }
    if (i != REQUEST_NONE) {
        p->free = p->items[i].newer;
    } else {
        p->items = mem_grow(p->items, &p->cap, p->used + 1, sizeof(*p->items));
        i = (uint32_t)p->used++;
    }
    struct request *r = &p->items[i];
    *r = (struct request){.node = e->node,
                          .server = REQUEST_NONE,
                          .used = true,
                          .infinite = !from->alias,
                          .start_loss = p->losses[e->node->index],
                          .older = p->newest,
                          .newer = REQUEST_NONE,
                          .waited_ns = -1,
                          .worked_ns = -1};
    ref.len = MIN(ref.len, sizeof(r->ref) - 1);
    memcpy(r->ref, ref.at, ref.len);
    table_add(&p->by_ref, ref_hash(ref), i);
    *(p->newest == REQUEST_NONE ? &p->oldest : &p->items[p->newest].newer) = i;
    p->newest = i;
    p->open++;
    return i;
}

/* Sets the caller of a request, if not yet known. Only a caller on the event's node gets an id. */
static void set_caller(struct request_pairs *p, const struct event *e, uint32_t i, const uint8_t *pid)
{
    struct request *r = &p->items[i];
    uint64_t id;

    if (r->caller.id || (r->caller.text_len && !wire_pid(pid, &id)))
        return;
    if (!event_process(e, pid, &r->caller) || !r->caller.id)
        return;
    r->caller_node = e->node->index;
    r->caller_on = e->node;
    waiting_add(p, i);
}

static void set_server(struct request_pairs *p, const struct event *e, uint32_t i)
{
    struct request *r = &p->items[i];

    if (r->server != REQUEST_NONE)
        return;
    r->server = server_of(p, e);
    r->node = e->node;
    if (r->server == REQUEST_NONE) {
        p->unfollowed += !r->unfollowed;
        r->unfollowed = true;
        return;
    }
    struct request_server *s = &p->servers[r->server];
    r->older_of_server = s->newest;
    r->newer_of_server = REQUEST_NONE;
    if (s->newest != REQUEST_NONE)
        p->items[s->newest].newer_of_server = i;
    s->newest = i;
    s->open += !r->settled;
}

static void set_request(struct request_pairs *p, const struct event *e, struct request *r, const uint8_t *request)
{
    if (r->server != REQUEST_NONE)
        r->elixir = p->servers[r->server].elixir;
    if (!request)
        return;
    if (!r->has_shape)
        r->shape = request_key_shape(&p->keys, &e->env, request);
    r->has_shape = true;
    if (p->captured)
        p->captured(p->ctx, r, &e->env, request);
}

static void set_task(struct request_pairs *p, const struct event *e, struct request *r, const uint8_t *mfa)
{
    if (!r->has_shape)
        r->shape = request_key_task(&p->keys, e, mfa);
    r->has_shape = r->elixir = r->task = true;
    if (p->captured)
        p->captured(p->ctx, r, &e->env, mfa);
}

static uint32_t request_of(struct request_pairs *p, const struct event *e, const struct request_from *from)
{
    uint32_t i = request_find(p, from->ref);

    if (i == REQUEST_NONE)
        i = request_add(p, e, from);
    if (from->pid)
        set_caller(p, e, i, from->pid);
    p->items[i].seen_on = e->node->index;
    p->items[i].seen_loss = p->losses[e->node->index];
    return i;
}

/* ---- messages ---- */

static void late_add(struct request_pairs *p, uint32_t i)
{
    if (p->items[i].queued)
        return;
    if (p->nlate == REQUESTS_LATE)
        finish_request(p, p->late[p->late_first]);
    p->late[(p->late_first + p->nlate++) % REQUESTS_LATE] = i;
    p->items[i].queued = true;
}

static void late_finish(struct request_pairs *p, const struct event *e)
{
    while (p->nlate) {
        uint32_t i = p->late[p->late_first];
        const struct request_time *since = p->items[i].sent.known ? &p->items[i].sent : &p->items[i].got;
        if (since->node != e->node->index || elapsed_ns(since->mono_ns, e->mono_ns) < LATE_NS)
            break;
        finish_request(p, i);
    }
}

static void note_reply(struct request_pairs *p, const struct event *e, uint32_t i)
{
    struct request *r = &p->items[i];
    bool known = r->server != REQUEST_NONE;

    p->sees_replies = true;
    if (r->sent.known)
        return;
    r->sent = time_of(e);
    if (known && p->servers[r->server].request == i && p->servers[r->server].who.id == e->who->id)
        p->servers[r->server].replied = r->sent;
    if (known && (p->servers[r->server].who.id != e->who->id || p->servers[r->server].node != e->node)) {
        r->replier = mem_alloc(sizeof(*r->replier));
        *r->replier = *e->who;
    } else if (!known) {
        set_server(p, e, i);
        r->at_server = true;
    }
    request_settle(p, r);
    tell_got(p, r);
    /* A caller that waits in several steps seems to stop waiting after each step, but may still receive the reply. */
    if (r->gave_up.known && !r->got.known)
        late_add(p, i);
    else
        finish_if_over(p, i);
}

static bool names_request(const struct request_message *m)
{
    return m->kind != MESSAGE_OTHER && m->kind != MESSAGE_TIMEOUT;
}

static void note_send(struct request_pairs *p, const struct event *e)
{
    struct request_message m = request_message_read(&e->env, wire_skip(e->terms.at));
    uint32_t i;

    p->parts += names_request(&m);
    if (m.kind == MESSAGE_REQUEST || m.kind == MESSAGE_TASK) {
        i = request_of(p, e, &m.from);
        p->items[i].asked = time_of(e);
        waiting_add(p, i);
        if (p->items[i].caller.id == e->who->id)
            p->items[i].caller = *e->who; /* the sender of the event, whose name is known */
        if (m.kind == MESSAGE_TASK)
            set_task(p, e, &p->items[i], m.request);
        else
            set_request(p, e, &p->items[i], m.request);
    } else if (m.kind == MESSAGE_REPLY && (i = request_find(p, m.from.ref)) != REQUEST_NONE) {
        note_reply(p, e, i);
    }
}

static void note_reply_got(struct request_pairs *p, const struct event *e, uint32_t i)
{
    struct request *r = &p->items[i];

    if (r->got.known)
        return;
    r->got = time_of(e);
    waiting_remove(p, i);
    if (!r->sent.known && (!r->at_server || r->node != e->node))
        late_add(p, i); /* events of another node may still come, because the clocks differ a little */
    else
        finish_request(p, i);
}

static void note_receive(struct request_pairs *p, const struct event *e)
{
    struct request_message m = request_message_read(&e->env, e->terms.at);
    uint32_t i = REQUEST_NONE;

    p->parts += names_request(&m);
    switch (m.kind) {
    case MESSAGE_REQUEST:
        i = request_of(p, e, &m.from);
        p->items[i].arrived = time_of(e);
        p->items[i].at_server = true;
        waiting_add(p, i);
        set_server(p, e, i);
        set_request(p, e, &p->items[i], m.request);
        break;
    case MESSAGE_TASK: /* the process waited only for this message, so the task begins at once */
        i = request_of(p, e, &m.from);
        p->items[i].arrived = p->items[i].begun = time_of(e);
        p->items[i].at_server = true;
        waiting_add(p, i);
        set_server(p, e, i);
        set_task(p, e, &p->items[i], m.request);
        if (p->items[i].server != REQUEST_NONE)
            p->servers[p->items[i].server].label = request_key_name(&p->keys, SAFE("Task"));
        tell_begun(p, &p->items[i]);
        break;
    case MESSAGE_REPLY:
        if ((i = request_find(p, m.from.ref)) != REQUEST_NONE)
            note_reply_got(p, e, i);
        break;
    case MESSAGE_DOWN:
        if ((i = request_find(p, m.from.ref)) == REQUEST_NONE)
            break;
        p->items[i].down = true;
        finish_request(p, i);
        break;
    case MESSAGE_TIMEOUT:
        /* The process stops waiting for its newest request. */
        if ((i = waiting_newest(p, e->who->id, e->node->index)) == REQUEST_NONE)
            break;
        p->items[i].gave_up = time_of(e);
        waiting_remove(p, i);
        if (p->items[i].settled)
            p->gave_up(p->ctx, &p->items[i]);
        finish_if_over(p, i);
        break;
    case MESSAGE_OTHER:
        break;
    }
}

/* ---- callbacks ---- */

/*
 * Finishes the request that the last callback answered by its result, if no event of the caller was seen: then no event
 * will show that the caller receives the reply.
 */
static void server_goes_on(struct request_pairs *p, struct request_server *s)
{
    uint32_t i = s->answered;

    s->answered = REQUEST_NONE;
    if (i != REQUEST_NONE && !request_caller_seen(&p->items[i]))
        finish_request(p, i);
}

static void set_module(struct request_pairs *p, const struct event *e, struct request_server *s,
                       const struct request_callback *c)
{
    struct raw module;

    if (s->label && !c->module)
        return;
    if (c->of_function)
        module = e->fun->module;
    else if (!c->module || !wire_atom(&e->env, c->module, &module))
        return;
    s->label = request_key_module(&p->keys, module);
    s->elixir = e->node->elixir || elixir_is_module(module);
}

/* Returns the wait of a request until the time `to` of the server's node, and what the server did meanwhile. */
static struct request_wait wait_until(const struct request_pairs *p, const struct request *r,
                                      const struct request_server *s, const struct request_time *to)
{
    const struct request_time *from = request_start(r);
    const unsigned on = to->node;
    struct request_wait w = {.ns = request_between(from, to), .postponed = r->postponed};

    if (w.ns < 0 || from->node != to->node)
        return w;
    w.unseen = !s->busy && !s->nspans;
    w.blind = r->start_loss != p->losses[on] || p->shares[on];
    w.behind = request_busy_since(s, from->mono_ns, to->mono_ns, &w.behind_all_ns);
    if (p->shares[on]) /* the node may have left out the requests that this request waited for */
        w.behind_all_ns = 0;
    return w;
}

struct request_wait request_wait_until_now(struct request_pairs *p, const struct request *r)
{
    struct request_server *s = r->server == REQUEST_NONE ? NULL : &p->servers[r->server];
    struct request_time now = request_now(p, r->node);

    if (!s)
        return (struct request_wait){.ns = -1};
    const bool busy = s->busy;
    s->busy &= s->loss == p->losses[s->node->index];
    struct request_wait w = wait_until(p, r, s, &now);
    w.unclear = busy && !request_server_runs(p, s);
    s->busy = busy;
    return w;
}

bool request_wait_explained(const struct request_wait *w)
{
    return w->behind.work && w->ns > 0 && w->behind_all_ns >= w->ns / 2;
}

bool request_behind(struct request_pairs *p, const struct request *r, struct request_busy *ret)
{
    const bool waits = !r->settled && request_stage(p, r) == REQUEST_WAITS;
    struct request_wait w = {.ns = r->waited_ns, .behind = r->behind, .behind_all_ns = r->behind_all_ns};

    if (waits && request_may_have_ended(p, r))
        return false;
    if (waits)
        w = request_wait_until_now(p, r);
    *ret = w.behind;
    return request_wait_explained(&w);
}

static void request_begins(struct request_pairs *p, const struct event *e, uint32_t server,
                           const struct request_callback *c)
{
    uint32_t i = request_of(p, e, &c->from);
    struct request *r = &p->items[i];

    set_server(p, e, i);
    set_request(p, e, r, c->message);
    struct request_server *s = &p->servers[server];
    s->request = r->server == server ? i : REQUEST_NONE;
    /* The reply came before this callback: another process replied for a state machine that postponed the request. */
    if (r->settled)
        return;
    r->at_server = true;
    r->postponed |= r->begun.known && c->statem;
    r->begun = time_of(e);
    r->loss = p->losses[e->node->index];
    s->busy = false;
    struct request_wait wait = wait_until(p, r, s, &r->begun);
    s->busy = true;
    if (wait.ns >= 0) {
        r->blind = wait.blind;
        r->unseen = wait.unseen;
        r->behind = wait.behind;
        r->behind_all_ns = wait.behind_all_ns;
    }
    if (!c->statem)
        tell_begun(p, r);
}

static void callback_begins(struct request_pairs *p, const struct event *e, const struct request_callback *c)
{
    uint32_t server = server_of(p, e);
    unsigned loss = p->losses[e->node->index];

    if (server == REQUEST_NONE)
        return;
    struct request_server *s = &p->servers[server];
    if (s->busy && c->inner && s->loss == loss) { /* the running callback calls another callback, or itself */
        s->depth += s->fun == e->fun && s->arity == e->arity;
        return;
    }
    if (s->busy && s->replied.known && s->loss == loss)
        add_server_span(s, s->replied.mono_ns);
    s->replied.known = false;
    server_goes_on(p, s);
    s->busy = true;
    s->statem = c->statem;
    s->fun = e->fun;
    s->arity = e->arity;
    s->depth = 1;
    s->loss = loss;
    s->request = REQUEST_NONE;
    set_module(p, e, s, c);
    s->now =
        (struct request_span){.from = e->mono_ns, .last = e->mono_ns, .what = {.work = c->work, .statem = c->statem}};
    if (c->message)
        s->now.what.shape = request_key_shape(&p->keys, &e->env, c->message);
    if (c->work != WORK_CALL || !c->from.ref)
        return;
    p->parts++;
    request_begins(p, e, server, c);
}

/*
 * Ends the running callback. If events were lost since it began, the event may show the end of another callback. So no
 * duration and no reply is derived from the event then.
 */
static void callback_ends(struct request_pairs *p, const struct event *e, uint32_t server)
{
    struct request_server *s = &p->servers[server];
    uint32_t i = s->request;

    s->busy = s->replied.known = false;
    s->request = REQUEST_NONE;
    if (s->loss != p->losses[e->node->index] || e->doubtful)
        return;
    add_server_span(s, e->mono_ns);
    if (i == REQUEST_NONE || p->items[i].settled || s->statem || !request_replies(e))
        return;
    p->items[i].ended = time_of(e);
    p->items[i].direct = true;
    s->answered = i;
    request_settle(p, &p->items[i]);
}

static void note_call(struct request_pairs *p, const struct event *e)
{
    struct request_callback c;
    uint32_t server;

    if (!request_callback_read(e, &c))
        return;
    if (c.work != WORK_NONE)
        callback_begins(p, e, &c);
    else if ((server = server_find(p, e)) != REQUEST_NONE && p->servers[server].busy)
        callback_ends(p, e, server);
}

static void note_return(struct request_pairs *p, const struct event *e)
{
    uint32_t server = server_find(p, e);

    if (server == REQUEST_NONE)
        return;
    struct request_server *s = &p->servers[server];
    if (s->busy && s->fun == e->fun && s->arity == e->arity && --s->depth == 0)
        callback_ends(p, e, server);
}

/* ---- events ---- */

/*
 * Counts a loss event. Losses of whole requests (ETW_LOST_REQUEST) only set p->shares, because they do not make other
 * requests uncertain.
 */
static void note_losses(struct request_pairs *p, const struct event *e)
{
    p->shares[e->node->index] |= e->lost[ETW_LOST_REQUEST] != 0;
    for (enum etw_loss l = 0; l < ETW_LOSSES; l++)
        if (l != ETW_LOST_REQUEST && e->lost[l]) {
            p->losses[e->node->index]++;
            break;
        }
}

/* Marks the processes of a lost node as gone. With --reattach, other processes of the node may get the same pids. */
static void node_gone(struct request_pairs *p, const struct event_node *node)
{
    p->gone = true;
    p->losses[node->index]++;
    for (uint32_t i = p->oldest; i != REQUEST_NONE; i = p->items[i].newer)
        if (p->items[i].caller_on == node) {
            p->items[i].caller_gone = true;
            waiting_remove(p, i);
        }
    for (size_t i = 0; i < p->nservers; i++)
        p->servers[i].gone |= p->servers[i].node == node;
}

/*
 * Notes the latest time of a node. The time of a notice about a limit does not count, because the node sends it later
 * than the event that reached the limit. A notice about the guard counts, because it comes at once.
 */
static void note_time(struct request_pairs *p, const struct event *e)
{
    const unsigned node = e->node->index;
    const bool limit = e->kind == ETW_NOTICE && wire_is_atom(&e->env, e->terms.at, "limit");

    if (p->latest[node].known && e->shift_ns != p->latest[node].shift_ns) /* the node has begun a further run */
        node_gone(p, e->node);
    if (e->kind == ETW_HELLO || e->kind == ETW_UP)
        p->over[node] = false;
    if (!p->over[node] && !limit)
        p->latest[node] = time_of(e);
    p->over[node] |= limit || (e->kind == ETW_NOTICE && wire_is_atom(&e->env, e->terms.at, "guard"));
}

void request_pairs_event(struct request_pairs *p, const struct event *e)
{
    note_time(p, e);
    if (p->nlate && event_is_traced(e))
        late_finish(p, e);
    switch (e->kind) {
    case ETW_SEND:
    case ETW_SEND_NOPROC:
        note_send(p, e);
        break;
    case ETW_RECEIVE:
        note_receive(p, e);
        break;
    case ETW_CALL:
        note_call(p, e);
        break;
    case ETW_RETURN_FROM:
    case ETW_EXCEPTION_FROM:
        note_return(p, e);
        break;
    case ETW_LOST:
        note_losses(p, e);
        break;
    case ETW_DOWN:
        node_gone(p, e->node);
        break;
    default:
        break;
    }
}

void request_pairs_end(struct request_pairs *p)
{
    while (p->oldest != REQUEST_NONE) {
        p->done(p->ctx, &p->items[p->oldest]);
        request_remove(p, p->oldest);
    }
}

double request_share(const struct request_pairs *p, uint64_t lost)
{
    return p->parts || lost ? 100.0 * (double)p->parts / ((double)p->parts + (double)lost) : 100.0;
}

struct request *request_first(const struct request_pairs *p)
{
    return p->oldest == REQUEST_NONE ? NULL : &p->items[p->oldest];
}

struct request *request_next(const struct request_pairs *p, const struct request *r)
{
    return r->newer == REQUEST_NONE ? NULL : &p->items[r->newer];
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "session_set.h"

#include <string.h>

#include "../../nif/etrace_wire.h"
/*
 * Milliseconds to wait until a node has disarmed: each pattern waits for every scheduler of a busy node, and there may
 * be thousands of patterns.
 */
#define ANSWER_MS 120000

/*
 * Keys whose values are redacted by default. The node compares words: "token" covers access_token and csrfToken,
 * "api_key" covers apiKey and x-api-key (nif/secret.h). A longer key such as "access_token" is in the list although
 * "token" covers it, because it also covers the spelling as one word (accesstoken).
 */
static const char *const secrets[] = {
    "password",   "passwd",     "passphrase",    "pwd",           "secret",   "token",       "jwt",
    "bearer",     "cookie",     "authorization", "credential",    "api_key",  "private_key", "access_key",
    "secret_key", "session_id", "access_token",  "refresh_token", "id_token", "auth_token",  "client_secret",
};

static bool collect_redact_keys(const struct limit_opts *limit, struct str keys[static ETW_MAX_KEYS], size_t *ret_count,
                                struct err *e)
{
    size_t n = 0;

    for (size_t i = 0; limit->redact_defaults && i < ARRAY_LEN(secrets); i++)
        keys[n++] = (struct str){secrets[i], strlen(secrets[i])};
    for (size_t i = 0; i < limit->redact.count; i++)
        for (const char *at = limit->redact.items[i]; *at;) {
            size_t len = strcspn(at, ",");
            if (len > ETW_MAX_KEY_BYTES)
                return err_set(e, ERR_USAGE, "--redact takes keys of at most %d bytes, not '%.*s'", ETW_MAX_KEY_BYTES,
                               (int)len, at);
            if (len && n == ETW_MAX_KEYS)
                return err_set(e, ERR_USAGE, "--redact takes at most %zu keys beside the default ones",
                               ETW_MAX_KEYS - (limit->redact_defaults ? ARRAY_LEN(secrets) : 0));
            if (len)
                keys[n++] = (struct str){at, len};
            at += len + (at[len] == ',');
        }
    *ret_count = n;
    return true;
}

static bool check_in_range(const char *option, int64_t value, int64_t most, struct err *e)
{
    return (value > 0 && value <= most) ||
           err_set(e, ERR_USAGE, "--%s takes 1 to %lld, not %lld", option, (long long)most, (long long)value);
}

static bool check_at_most(const char *option, int64_t value, int64_t most, struct err *e)
{
    return value <= most ||
           err_set(e, ERR_USAGE, "--%s takes a number up to %lld, not %lld", option, (long long)most, (long long)value);
}

static bool session_options(const struct node_opts *node, const struct limit_opts *limit, const struct plan *plan,
                            struct str keys[static ETW_MAX_KEYS], struct session_options *ret, struct err *e)
{
    static const struct ring_opts none;
    const struct ring_opts *ring = plan->recorder == PLAN_NODES_RECORD ? &limit->ring : &none;
    size_t nkeys = 0;

    if (!check_in_range("size", limit->size, ETW_MAX_SIZE, e) ||
        !check_in_range("depth", limit->depth, ETW_MAX_DEPTH, e) ||
        !check_in_range("items", limit->items, ETW_MAX_ITEMS, e) ||
        !check_at_most("rate", limit->rate, UINT32_MAX, e) || !collect_redact_keys(limit, keys, &nkeys, e))
        return false;
    *ret = (struct session_options){
        .size = (uint32_t)limit->size,
        .depth = (uint32_t)limit->depth,
        .items = (uint32_t)limit->items,
        /* The node cannot count events that the client filters. */
        .limit = plan->sifts ? 0 : (uint64_t)limit->limit,
        .rate = limit->rate >= 0          ? (uint64_t)limit->rate
                : ring->on || plan->folds ? 0
                                          : RATE_DEFAULT,
        .ring_bytes = ring->bytes,
        .overwrites = ring->on,
        .most_ms = ring->most_ms,
        .triggers = ring->when != NULL,
        .system_triggers = ring->system,
        .after_ms = ring->after_ms,
        .interval_ms = ring->interval_ms,
        .memory = memory_option(limit->memory),
        .redact = keys,
        .nredact = nkeys,
        .fallback = node->fallback,
        .hold = plan->defers,
    };
    return true;
}

/* ---- what sessions send ---- */

static void session_set_forget(struct session_set *r, const struct peer *p)
{
    prepare_free(r->arming[p->index]);
    prepare_free(r->next[p->index]);
    r->arming[p->index] = r->next[p->index] = NULL;
}

static void session_set_on_ready(void *data, struct peer *p)
{
    struct session_set *r = data;

    session_set_forget(r, p); /* drops the preparations of its previous session */
    r->handlers.ready(r->handlers.data, p);
}

static void session_set_on_batch(void *data, struct peer *p, const void *batch, size_t len)
{
    struct session_set *r = data;

    r->handlers.batch(r->handlers.data, p, batch, len);
}

/* Reports the step of a preparation to the handlers. A handler may arm again, and so replace the preparation. */
static void look_at_step(struct session_set *r, struct peer *p, bool chosen_before)
{
    const struct session_set_handlers *h = &r->handlers;
    struct prepare *at = r->arming[p->index];
    enum prepare_step step = prepare_step(at);

    if (!chosen_before && prepare_chosen(at) && h->chosen)
        h->chosen(h->data, p, prepare_chosen(at));
    if (step != PREPARE_DONE && step != PREPARE_REFUSED)
        return;
    r->arming[p->index] = NULL;
    if (step == PREPARE_REFUSED)
        h->refused(h->data, p, prepare_why(at));
    else
        h->armed(h->data, p, prepare_armed(at) ? prepare_armed(at) : prepare_chosen(at));
    prepare_free(at);
}

static void begin_next(struct session_set *r, struct peer *p)
{
    prepare_free(r->arming[p->index]);
    r->arming[p->index] = r->next[p->index];
    r->next[p->index] = NULL;
    prepare_begin(r->arming[p->index]);
    look_at_step(r, p, false);
}

static void session_set_on_reply(void *data, struct peer *p, const struct session_reply *reply)
{
    struct session_set *r = data;
    const struct session_set_handlers *h = &r->handlers;
    struct prepare *at = r->arming[p->index];

    if (prepare_awaits(at, reply->id) && r->next[p->index]) {
        begin_next(r, p);
    } else if (prepare_awaits(at, reply->id)) {
        bool chosen = prepare_chosen(at);
        prepare_reply(at, reply);
        look_at_step(r, p, chosen);
    } else if (h->answer) {
        h->answer(h->data, p, reply);
    }
}

static void session_set_on_time(void *data, struct peer *p, const struct session_time *time)
{
    struct session_set *r = data;

    if (r->handlers.time)
        r->handlers.time(r->handlers.data, p, time);
}

static void session_set_on_failed(void *data, struct peer *p, const struct err *e)
{
    struct session_set *r = data;

    session_set_forget(r, p);
    r->handlers.failed(r->handlers.data, p, e);
}

/* ---- attaching ---- */

void session_set_begin(struct session_set *r, struct ctx *ctx, const struct session_set_handlers *handlers)
{
    struct peers_handlers through = {.data = r,
                                     .ready = session_set_on_ready,
                                     .batch = session_set_on_batch,
                                     .reply = session_set_on_reply,
                                     .failed = session_set_on_failed,
                                     .time = session_set_on_time};

    *r = (struct session_set){.ctx = ctx, .handlers = *handlers, .plan = PLAN_ALL};
    peers_begin(&r->peers, ctx, &through);
}

bool session_set_start(struct session_set *r, const struct node_opts *node, const struct limit_opts *limit,
                       struct err *e)
{
    struct session_options options;
    struct str keys[ETW_MAX_KEYS];

    if (!session_options(node, limit, &r->plan, keys, &options, e))
        return false;
    options.variant = r->variant;
    options.leftover = r->leftover;
    return peers_start(&r->peers, node, &options, e);
}

struct peer *session_set_attach(struct session_set *r, const struct node_opts *node, const char *name,
                                const struct limit_opts *limit, struct err *e)
{
    struct session_options options;
    struct str keys[ETW_MAX_KEYS];

    if (!session_options(node, limit, &r->plan, keys, &options, e))
        return NULL;
    options.variant = r->variant;
    return peers_attach(&r->peers, node, name, &options, e);
}

bool session_set_takes(const struct node_opts *node, const struct limit_opts *limit, struct err *e)
{
    struct session_options options;
    struct str keys[ETW_MAX_KEYS];

    return session_options(node, limit, &PLAN_ALL, keys, &options, e);
}

void session_set_close(struct session_set *r)
{
    for (size_t i = 0; i < r->peers.count; i++)
        session_set_forget(r, &r->peers.items[i]);
    peers_close(&r->peers);
}

/* ---- arming ---- */

void session_set_arm_peer(struct session_set *r, struct peer *p, const struct what_opts *what,
                          const struct texts *texts, struct arm_mark mark)
{
    prepare_free(r->next[p->index]);
    r->next[p->index] = prepare_new(r->ctx, p->session, what, texts, (struct exprs_how){.plan = r->plan, .mark = mark});
    if (!prepare_awaits(r->arming[p->index], 0))
        begin_next(r, p);
}

void session_set_arm(struct session_set *r, const struct what_opts *what, const struct texts *texts,
                     struct arm_mark mark)
{
    for (size_t i = 0; i < r->peers.count; i++)
        if (r->peers.items[i].state == PEER_UP)
            session_set_arm_peer(r, &r->peers.items[i], what, texts, mark);
}

void session_set_disarm(struct session_set *r)
{
    struct buf request = {0};
    struct err e;
    uint32_t id;

    arm_disarm(&request);
    for (size_t i = 0; i < r->peers.count; i++) {
        struct peer *p = &r->peers.items[i];
        session_set_forget(r, p);
        if (p->state == PEER_UP && !session_request(p->session, buf_view(&request), ANSWER_MS, &id, &e))
            peer_fail(p, &e);
    }
    buf_release(&request);
}

bool session_set_preparing(const struct session_set *r)
{
    for (size_t i = 0; i < r->peers.count; i++)
        if (r->arming[i] && r->peers.items[i].state == PEER_UP &&
            (r->next[i] || prepare_step(r->arming[i]) < PREPARE_TRACE))
            return true;
    return false;
}

bool session_set_arming(const struct session_set *r)
{
    for (size_t i = 0; i < r->peers.count; i++)
        if (r->arming[i] && r->peers.items[i].state == PEER_UP)
            return true;
    return false;
}

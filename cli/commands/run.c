#include "run.h"

#include <string.h>

#include "../../nif/etrace_wire.h"
#include "prepare.h"

#define ANSWER_MS 120000 /* on a busy node each pattern waits for every scheduler, and there may be thousands */

static const char *const secrets[] = {
    "password", "password_hash", "passwd", "passphrase", "pwd", "secret", "secret_key", "secret_key_base", "client_secret", "token",
    "access_token", "refresh_token", "id_token", "auth_token", "cookie", "authorization", "api_key", "apikey", "private_key",
    "credentials", "otp_secret",
};

static bool redacted(const struct limit_opts *limit, struct str keys[static ETW_MAX_KEYS], size_t *ret_count, struct err *e)
{
    size_t n = 0;

    for (size_t i = 0; limit->redact_defaults && i < ARRAY_LEN(secrets); i++)
        keys[n++] = (struct str){secrets[i], strlen(secrets[i])};
    for (size_t i = 0; i < limit->redact.count; i++)
        for (const char *at = limit->redact.items[i]; *at;) {
            size_t len = strcspn(at, ",");
            if (len > ETW_MAX_KEY_BYTES)
                return err_set(e, ERR_USAGE, "--redact takes keys of at most %d bytes, not '%.*s'", ETW_MAX_KEY_BYTES, (int)len, at);
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

static bool within(const char *option, int64_t value, int64_t most, struct err *e)
{
    return (value > 0 && value <= most) ||
           err_set(e, ERR_USAGE, "--%s takes 1 to %lld, not %lld", option, (long long)most, (long long)value);
}

static bool at_most(const char *option, int64_t value, int64_t most, struct err *e)
{
    return value <= most || err_set(e, ERR_USAGE, "--%s takes a number up to %lld, not %lld", option, (long long)most, (long long)value);
}

static bool session_options(const struct node_opts *node, const struct limit_opts *limit, unsigned how,
                            struct str keys[static ETW_MAX_KEYS], struct session_options *ret, struct err *e)
{
    size_t nkeys = 0;

    if (!within("size", limit->size, ETW_MAX_SIZE, e) || !within("depth", limit->depth, ETW_MAX_DEPTH, e) ||
        !within("items", limit->items, ETW_MAX_ITEMS, e) ||
        !at_most("rate", limit->rate, UINT32_MAX, e) || !redacted(limit, keys, &nkeys, e))
        return false;
    *ret = (struct session_options){
        .size = (uint32_t)limit->size,
        .depth = (uint32_t)limit->depth,
        .items = (uint32_t)limit->items,
        .limit = how & RUN_SIFTS ? 0 : (uint64_t)limit->limit, /* what is filtered here cannot be counted there */
        .rate = (uint64_t)limit->rate,
        .memory = memory_option(limit->memory),
        .redact = keys,
        .nredact = nkeys,
        .fallback = node->fallback,
        .hold = how & RUN_HOLDS,
    };
    return true;
}

/* ---- what sessions bring ---- */

static void on_ready(void *data, struct peer *p)
{
    struct run *r = data;

    if (r->handlers.ready)
        r->handlers.ready(r->handlers.data, p);
}

static void on_batch(void *data, struct peer *p, const void *batch, size_t len)
{
    struct run *r = data;

    r->handlers.batch(r->handlers.data, p, batch, len);
}

static void on_reply(void *data, struct peer *p, const struct session_reply *reply)
{
    struct run *r = data;
    const struct run_handlers *h = &r->handlers;
    struct arm_result result = {0};
    struct err e;

    if (question_reply(&r->question, reply))
        return;
    if (reply->id != r->arming[p->index]) {
        if (h->answer)
            h->answer(h->data, p, reply);
        return;
    }
    r->arming[p->index] = 0;
    if (!reply->ok)
        session_error(reply, &e);
    if (!reply->ok || !arm_result_read(reply->term, &result, &e))
        h->refused(h->data, p, &e);
    else
        h->armed(h->data, p, &result);
    arm_result_release(&result);
}

static void on_time(void *data, struct peer *p, const struct session_time *time)
{
    struct run *r = data;

    if (r->handlers.time)
        r->handlers.time(r->handlers.data, p, time);
}

static void on_back(void *data, struct peer *p)
{
    struct run *r = data;

    r->handlers.back(r->handlers.data, p);
}

static void on_failed(void *data, struct peer *p, const struct err *e)
{
    struct run *r = data;

    r->arming[p->index] = 0;
    r->handlers.failed(r->handlers.data, p, e);
}

/* ---- attaching ---- */

void run_begin(struct run *r, struct ctx *ctx, const struct run_handlers *handlers)
{
    struct peers_handlers through = {.data = r, .ready = on_ready, .batch = on_batch, .reply = on_reply, .failed = on_failed,
                                     .time = on_time, .back = handlers->back ? on_back : NULL};

    *r = (struct run){.ctx = ctx, .handlers = *handlers};
    peers_begin(&r->peers, ctx, &through);
}

bool run_open(struct run *r, struct ctx *ctx, const struct node_opts *node, const struct limit_opts *limit, unsigned how,
              const struct run_handlers *handlers, struct err *e)
{
    struct session_options options;
    struct str keys[ETW_MAX_KEYS];

    run_begin(r, ctx, handlers);
    if (!session_options(node, limit, how, keys, &options, e) || !peers_open(&r->peers, node, &options, e))
        return false;
    for (size_t i = 0; i < r->peers.count; i++)
        if (!r->peers.items[i].over)
            peer_listen(&r->peers.items[i]);
    return true;
}

struct peer *run_attach(struct run *r, const struct node_opts *node, const char *name, const struct limit_opts *limit,
                        struct err *e)
{
    struct session_options options;
    struct str keys[ETW_MAX_KEYS];

    return session_options(node, limit, RUN_SIFTS, keys, &options, e) ? peers_attach(&r->peers, node, name, &options, e) : NULL;
}

bool run_takes(const struct node_opts *node, const struct limit_opts *limit, struct err *e)
{
    struct session_options options;
    struct str keys[ETW_MAX_KEYS];

    return session_options(node, limit, 0, keys, &options, e);
}

void run_close(struct run *r)
{
    peers_close(&r->peers);
}

/* ---- arming ---- */

bool run_arm_peer(struct run *r, struct peer *p, const struct what_opts *what, const struct texts *texts, struct arm_mark mark,
                  struct err *e)
{
    struct asked_how how = {.figures = r->figures, .hold = r->hold, .anonymous = r->anonymous, .filter = r->filter, .mark = mark};
    struct arm_result chosen;
    struct buf asked = {0}, request = {0};
    struct err broken;

    r->question.session = p->session;
    bool ok = prepare(r->ctx, &r->question, what, texts, how, &asked, &chosen, e);
    if (ok) {
        if (r->handlers.chosen)
            r->handlers.chosen(r->handlers.data, p, &chosen);
        arm_result_release(&chosen);
    }
    if (ok && !what->dry_run) {
        arm_request(&request, ARM_TRACE, buf_view(&asked));
        if (!p->over && !session_request(p->session, buf_view(&request), ANSWER_MS, &r->arming[p->index], &broken))
            peer_fail(p, &broken);
    }
    buf_release(&request);
    buf_release(&asked);
    return ok;
}

bool run_arm_or_lose(struct run *r, struct peer *p, const struct what_opts *what, const struct texts *texts, struct arm_mark mark,
                     struct err *e)
{
    return run_arm_peer(r, p, what, texts, mark, e) || session_state(p->session) == SESSION_FAILED;
}

static bool is_ready(const struct peer *p)
{
    return !p->over && session_state(p->session) == SESSION_READY;
}

bool run_arm(struct run *r, const struct what_opts *what, const struct texts *texts, struct arm_mark mark, struct err *e)
{
    for (size_t i = 0; i < r->peers.count; i++) {
        struct peer *p = &r->peers.items[i];
        if (is_ready(p) && !run_arm_or_lose(r, p, what, texts, mark, e))
            return false;
    }
    return true;
}

void run_disarm(struct run *r)
{
    struct buf request = {0};
    struct err e;
    uint32_t id;

    arm_disarm(&request);
    for (size_t i = 0; i < r->peers.count; i++) {
        struct peer *p = &r->peers.items[i];
        r->arming[i] = 0;
        if (!p->over && !session_request(p->session, buf_view(&request), ANSWER_MS, &id, &e))
            peer_fail(p, &e);
    }
    buf_release(&request);
}

bool run_arming(const struct run *r)
{
    for (size_t i = 0; i < r->peers.count; i++)
        if (r->arming[i])
            return true;
    return false;
}

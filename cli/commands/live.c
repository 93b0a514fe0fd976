#include "live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../events/recfile.h"
#include "../ground/mem.h"
#include "../node/arm.h"
#include "together.h"

#define BACKLOG_FULL (8u << 20) /* unwritten output at which no more is asked from the nodes */
#define BACKLOG_LOW (1u << 20)
#define ANSWER_MS 10000
#define LEAVE_MS 5000 /* after a stop; the node's own lease is there for what comes later */
#define REST_MS 1000  /* how long the results of the calls within --limit are waited for */

struct live {
    struct ctx *ctx;
    const struct live_options *o;
    struct asked asked;
    struct show show;
    struct pipeline *pipeline;
    struct peers peers;
    struct together together;
    enum { BACK_NOT, BACK_CLOCK, BACK_ARMING } back[PEERS_MAX]; /* how far one is that came back */
    struct arm_result armed;
    struct err empty;     /* --cluster: on this node nothing matches */
    int64_t until;        /* loop_now() time at which it stops, -1: none */
    int64_t gone_by;      /* once it is stopping */
    bool stopping, blocked, limited;
    int status;
};

/* ---- ends ---- */

static void fail(struct live *l, const struct err *e)
{
    int status = ctx_fail(l->ctx, e);

    if (!l->status)
        l->status = status;
}


static void stop(struct live *l)
{
    if (l->stopping)
        return;
    l->stopping = true;
    l->gone_by = loop_now() + LEAVE_MS;
    peers_stop(&l->peers);
}

static void stop_with(struct live *l, const struct err *e)
{
    fail(l, e);
    stop(l);
}

/* ---- what sessions bring ---- */

static void took(struct live *l, enum pipeline_status status, const struct err *e)
{
    switch (status) {
    case PIPELINE_MORE:
        break;
    case PIPELINE_LIMIT:
        if (!l->limited)
            l->until = loop_now() + REST_MS;
        l->limited = true;
        break;
    case PIPELINE_DONE:
        stop(l);
        break;
    case PIPELINE_FAILED:
        stop_with(l, e);
        break;
    }
}

static void on_batch(void *data, struct peer *p, const void *batch, size_t len)
{
    struct live *l = data;
    struct err e;

    together_batch(&l->together, p);
    took(l, pipeline_batch(l->pipeline, p->index, (struct str){batch, len}, &e), &e);
}

static void on_time(void *data, struct peer *p, const struct session_time *time)
{
    together_time(&((struct live *)data)->together, p, time);
}

/* One that may come back is missed, but nothing has failed. */
static void on_failed(void *data, struct peer *p, const struct err *cause)
{
    struct live *l = data;
    struct err e;

    if (p->away && !l->stopping)
        ctx_warn(l->ctx, "%s; it is waited for", cause->text);
    else
        fail(l, cause);
    l->back[p->index] = BACK_NOT;
    took(l, together_down(&l->together, p, cause, &e), &e);
}

static void on_back(void *data, struct peer *p)
{
    struct live *l = data;
    struct err e;

    l->back[p->index] = BACK_CLOCK;
    took(l, together_up(&l->together, p, &e), &e);
    if (!together_ask(&l->together, p, &e))
        peer_fail(p, &e);
}

static void banner(struct live *l, const struct peer *p);

/* What came back is traced, or left alone. */
static void armed_again(struct live *l, struct peer *p, const struct session_reply *reply)
{
    struct err e;

    l->back[p->index] = BACK_NOT;
    arm_result_release(&l->armed);
    if (reply->ok ? arm_result_read(reply->term, &l->armed, &e) : session_error(reply, &e)) {
        banner(l, p);
        return;
    }
    ctx_warn(l->ctx, "%s: %s", peer_name(p), e.text);
    if (!session_stop(p->session, &e))
        peer_fail(p, &e);
}

static void on_reply(void *data, struct peer *p, const struct session_reply *reply)
{
    struct live *l = data;
    struct err e;

    if (l->back[p->index] == BACK_ARMING) {
        armed_again(l, p, reply);
        return;
    }
    if (!reply->ok)
        session_error(reply, &e);
    else if (arm_result_read(reply->term, &l->armed, &e))
        return;
    if (l->o->node->cluster && e.status == ERR_EMPTY)
        l->empty = e;
    else if (!l->status)
        fail(l, &e);
}

/* ---- talk ---- */

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void on_notice(void *data, const struct event_node *node, struct str tag, struct str text)
{
    struct live *l = data;
    const char *sep = l->peers.count > 1 ? ": " : "";

    ctx_warn(l->ctx, "%.*s%s%.*s%s%.*s", l->peers.count > 1 ? (int)node->name.len : 0, node->name.at, sep, (int)tag.len, tag.at,
             text.len ? " " : "", (int)text.len, text.at);
}

static void banner(struct live *l, const struct peer *p)
{
    const struct session_node *node = session_node(p->session);
    uint64_t functions = 0;
    bool calls = false;

    for (size_t i = 0; i < l->asked.count; i++)
        calls = calls || l->asked.specs[i]->kind == SPEC_CALL;
    for (size_t i = 0; i < l->armed.nprobes; i++)
        functions += l->armed.probes[i].functions;
    if (node->fallback)
        ctx_warn(l->ctx, "%s: tracing without the NIF, at most 1000 events a second: %s", node->name, node->fallback_why);
    for (size_t i = 0; i < l->armed.nwarnings; i++)
        ctx_warn(l->ctx, "%s: warning: %s", node->name, l->armed.warnings[i]);
    char found[64] = "";
    if (calls)
        snprintf(found, sizeof(found), " · %llu function%s", (unsigned long long)functions, plural(functions));
    ctx_say(l->ctx, "%s · OTP %s%s · %llu process%s%s", node->name, node->otp_version, found,
            (unsigned long long)l->armed.processes, l->armed.processes == 1 ? "" : "es",
            l->o->what->dry_run ? " · not traced (--dry-run)" : " · Ctrl-C stops");
}

static void summary(struct live *l)
{
    const struct totals *t = pipeline_totals(l->pipeline);
    char filtered[64] = "", missing[64] = "";
    uint64_t lost = 0;

    for (size_t i = 0; i < t->nnodes; i++)
        together_summary(l->ctx, &t->nodes[i]);
    for (size_t i = 0; i < ETW_LOSSES; i++)
        lost += t->lost[i];
    if (t->filtered)
        snprintf(filtered, sizeof(filtered), " · %llu filtered", (unsigned long long)t->filtered);
    if (t->missing)
        snprintf(missing, sizeof(missing), " · %llu never arrived", (unsigned long long)t->missing);
    ctx_say(l->ctx, "%llu event%s%s · %llu dropped%s · %llu truncated · %llu incomplete · session %s",
            (unsigned long long)t->shown, plural(t->shown), filtered, (unsigned long long)lost, missing,
            (unsigned long long)t->truncated, (unsigned long long)t->incomplete, peers_gone(&l->peers) ? "destroyed" : "ended by the node");
}

/* ---- attaching ---- */

static struct session_options session_options(const struct live *l, struct str *keys, size_t nkeys)
{
    const struct limit_opts *limit = l->o->limit;
    bool sifts = l->show.ngreps || l->asked.nwheres;

    for (size_t i = 0; i < l->asked.count; i++)
        sifts = sifts || l->asked.specs[i]->nwhere;
    return (struct session_options){
        .size = (uint32_t)MIN(limit->size, 256 << 10),
        .depth = (uint32_t)MIN(limit->depth, 64),
        .items = (uint32_t)MIN(limit->items, 1 << 20),
        .limit = sifts ? 0 : (uint64_t)limit->limit, /* what is filtered here cannot be counted there */
        .rate = (uint64_t)limit->rate,
        .redact = keys,
        .nredact = nkeys,
        .fallback = l->o->node->fallback,
    };
}

static const char *const secrets[] = {
    "password", "password_hash", "passwd", "passphrase", "pwd", "secret", "secret_key", "secret_key_base", "client_secret", "token",
    "access_token", "refresh_token", "id_token", "auth_token", "cookie", "authorization", "api_key", "apikey", "private_key",
    "credentials", "otp_secret",
};

#define MAX_KEYS 64     /* as many as the tracer takes, and so long */
#define MAX_KEY_BYTES 31

static bool redacted(const struct limit_opts *limit, struct str keys[static MAX_KEYS], size_t *ret_count, struct err *e)
{
    size_t n = 0;

    for (size_t i = 0; limit->redact_defaults && i < ARRAY_LEN(secrets); i++)
        keys[n++] = (struct str){secrets[i], strlen(secrets[i])};
    for (size_t i = 0; i < limit->redact.count; i++)
        for (const char *at = limit->redact.items[i]; *at;) {
            size_t len = strcspn(at, ",");
            if (len > MAX_KEY_BYTES)
                return err_set(e, ERR_USAGE, "--redact takes keys of at most %d bytes, not '%.*s'", MAX_KEY_BYTES, (int)len, at);
            if (len && n == MAX_KEYS)
                return err_set(e, ERR_USAGE, "--redact takes at most %zu keys beside the default ones",
                               MAX_KEYS - (limit->redact_defaults ? ARRAY_LEN(secrets) : 0));
            if (len)
                keys[n++] = (struct str){at, len};
            at += len + (at[len] == ',');
        }
    *ret_count = n;
    return true;
}

/* Compiles once more for this node's OTP, so that what it does not have is refused before anything is sent. */
static bool arm_request(const struct live *l, const struct peer *p, const struct what_opts *what, struct buf *request, struct err *e)
{
    const struct session_node *node = session_node(p->session);
    const struct live_options *o = l->o;
    struct asked asked;

    asked_init(&asked);
    bool ok = asked_compile(&asked, what, o->words, &o->view->wheres, node->otp, e) &&
              asked_arm(&asked, what, node->otp, (struct str){node->name, strlen(node->name)}, 0, request, e);
    asked_release(&asked);
    return ok;
}

static bool arm(struct live *l, struct peer *p, struct err *e)
{
    struct buf request = {0};

    arm_result_release(&l->armed);
    bool ok = arm_request(l, p, l->o->what, &request, e) && peer_ask(p, buf_view(&request), ANSWER_MS, e);
    buf_release(&request);
    return ok;
}

/* A node that has just started may not have loaded what is asked for; nobody waits for its answer here. */
static void arm_again(struct live *l, struct peer *p)
{
    struct what_opts what = *l->o->what;
    struct buf request = {0};
    struct err e;
    uint32_t id;

    what.allow_empty = true;
    l->back[p->index] = BACK_ARMING;
    if (!arm_request(l, p, &what, &request, &e)) {
        ctx_warn(l->ctx, "%s: %s", peer_name(p), e.text);
        if (!session_stop(p->session, &e))
            peer_fail(p, &e);
    } else if (!session_request(p->session, buf_view(&request), ANSWER_MS, &id, &e)) {
        peer_fail(p, &e);
    }
    buf_release(&request);
}

/* What was asked for stands in a recording, so that a replay reads the events as they were read here. */
static void record_specs(struct live *l)
{
    const struct what_opts *what = l->o->what;
    struct buf text = {0};

    for (size_t i = 0; i < l->asked.count; i++)
        recfile_spec_add(&text, "expr", l->asked.specs[i]->text);
    for (size_t i = 0; i < l->asked.nheaders; i++)
        recfile_spec_add(&text, "hrl", l->asked.headers[i]);
    for (size_t i = 0; i < what->lets.count; i++)
        recfile_spec_add(&text, "let", (struct str){what->lets.items[i], strlen(what->lets.items[i])});
    for (size_t i = 0; i < l->peers.count; i++)
        pipeline_specs(l->pipeline, (unsigned)i, buf_view(&text));
    buf_release(&text);
}

/* A cluster's nodes need not all have what is asked for; one of them must. */
static bool arm_all(struct live *l, struct err *e)
{
    size_t armed = 0;

    for (size_t i = 0; i < l->peers.count; i++) {
        struct peer *p = &l->peers.items[i];
        armed += p->away;
        if (p->over)
            continue;
        peers_keep(&l->peers);
        l->empty.status = ERR_NONE;
        if (!arm(l, p, e))
            return false;
        if (l->status)
            return true;
        peer_listen(p);
        if (l->empty.status) {
            ctx_warn(l->ctx, "%s: not traced: %s", peer_name(p), l->empty.text);
            if (!session_stop(p->session, e))
                return false;
            continue;
        }
        banner(l, p);
        armed++;
    }
    if (!armed)
        *e = l->empty;
    return armed;
}

static bool attach_all(struct live *l, struct err *e)
{
    struct peers_handlers handlers = {.data = l, .batch = on_batch, .reply = on_reply, .failed = on_failed, .time = on_time, .back = on_back};
    struct str keys[MAX_KEYS];
    size_t nkeys = 0;

    if (!redacted(l->o->limit, keys, &nkeys, e))
        return false;
    struct session_options options = session_options(l, keys, nkeys);
    if (!peers_open(&l->peers, l->ctx, l->o->node, &options, &handlers, e))
        return false;
    record_specs(l);
    together_init(&l->together, l->ctx, &l->peers, l->pipeline);
    if (!together_begin(&l->together, e))
        return false;
    return arm_all(l, e);
}

/* ---- streaming ---- */

/* A pager that waits: nothing more is asked for, and the leases are renewed all the same. */
static void throttle(struct live *l)
{
    size_t backlog = show_backlog(&l->show);

    if (l->stopping || (l->blocked ? backlog > BACKLOG_LOW : backlog < BACKLOG_FULL))
        return;
    l->blocked = !l->blocked;
    l->together.blocked = l->blocked;
    peers_pull(&l->peers, !l->blocked);
}

static void look_for_an_end(struct live *l)
{
    struct err e;
    bool closed;

    if (l->ctx->interrupts || (l->until >= 0 && loop_now() >= l->until))
        stop(l);
    if (!l->stopping && show_ended(&l->show, &closed, &e)) {
        if (!closed)
            fail(l, &e);
        stop(l);
    }
    const struct totals *t = pipeline_totals(l->pipeline);
    for (size_t i = 0; !l->stopping && l->o->limit->on_loss == 1 && i < ETW_LOSSES; i++)
        if (t->lost[i]) {
            err_set(&e, ERR_GUARD, "stopped: events were lost (%s)", event_losses[i]);
            stop_with(l, &e);
        }
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < 0 ? b : b < 0 ? a : MIN(a, b);
}

static void together(struct live *l)
{
    struct err e;

    took(l, together_step(&l->together, &e), &e);
    for (size_t i = 0; i < l->peers.count; i++)
        if (l->back[i] == BACK_CLOCK && together_known(&l->together, &l->peers.items[i]))
            arm_again(l, &l->peers.items[i]);
}

static void stream(struct live *l)
{
    while (!(l->stopping && loop_now() >= l->gone_by) && peers_step(&l->peers, sooner(l->stopping ? l->gone_by : l->until, together_next(&l->together)))) {
        together(l);
        pipeline_flush(l->pipeline);
        look_for_an_end(l);
        throttle(l);
    }
}

/* ---- all of it ---- */

static void finish(struct live *l)
{
    struct err e;
    bool closed;

    pipeline_end(l->pipeline);
    if (show_ended(&l->show, &closed, &e) && !closed && !l->status)
        fail(l, &e);
    summary(l);
}

int live_run(struct ctx *ctx, const struct live_options *o, const char *default_view)
{
    struct live l = {.ctx = ctx, .o = o, .until = -1};
    struct err e;

    asked_init(&l.asked);
    bool ok = asked_compile(&l.asked, o->what, o->words, &o->view->wheres, 0, &e) &&
              show_open(&l.show, ctx, o->view, default_view, o->node->nodes.count > 1, &e);
    if (ok) {
        struct pipeline_options options = {
            .views = l.show.views, .nviews = l.show.count,
            .specs = l.asked.specs, .nspecs = l.asked.count,
            .greps = l.show.greps, .ngreps = l.show.ngreps,
            .wheres = l.asked.wheres, .nwheres = l.asked.nwheres,
            .limit = (uint64_t)o->limit->limit,
            .notice = on_notice, .ctx = &l,
        };
        asked_warn(&l.asked, ctx);
        l.pipeline = pipeline_new(&options, &e);
        ok = l.pipeline != NULL;
    }
    ok = ok && attach_all(&l, &e);
    if (!ok)
        fail(&l, &e);
    if (l.status || o->what->dry_run) {
        peers_leave(&l.peers);
    } else {
        l.until = o->limit->for_ns ? loop_now() + o->limit->for_ns / 1000000 : -1;
        stream(&l);
        finish(&l);
        l.status = show_flush(&l.show, ctx, l.status);
    }
    peers_close(&l.peers);
    arm_result_release(&l.armed);
    pipeline_free(l.pipeline);
    show_close(&l.show);
    asked_release(&l.asked);
    return l.status;
}

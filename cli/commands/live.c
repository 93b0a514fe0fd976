#include "live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../events/recfile.h"
#include "../ground/mem.h"
#include "../node/arm.h"
#include "prepare.h"

#define BACKLOG_FULL (8u << 20) /* unwritten output at which no more is asked from the nodes */
#define BACKLOG_LOW (1u << 20)
#define ANSWER_MS 10000
#define LEAVE_MS 5000 /* after a stop; the node's own lease is there for what comes later */
#define REST_MS 1000  /* how long the results of the calls within --limit are waited for */

struct live;

struct live_node {
    struct live *live;
    struct session *session;
    struct loop_fd fd;
    unsigned index;
    bool over; /* gone, or failed */
};

struct live {
    struct ctx *ctx;
    const struct live_options *o;
    struct arena arena;   /* of the texts that were read from files */
    struct texts texts;
    struct asked asked;
    struct show show;
    struct pipeline *pipeline;
    struct ask ask;
    struct live_node *nodes;
    size_t count;
    struct buf found;     /* the records that a node defines, as text */
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

static void node_failed(struct live_node *n, const struct err *e)
{
    n->over = true;
    loop_remove(&n->live->ctx->loop, &n->fd);
    fail(n->live, e);
}

static void stop(struct live *l)
{
    struct err e;

    if (l->stopping)
        return;
    l->stopping = true;
    l->gone_by = loop_now() + LEAVE_MS;
    for (size_t i = 0; i < l->count; i++) {
        struct live_node *n = &l->nodes[i];
        if (!n->over && (!session_pull_allowed(n->session, true, &e) || !session_stop(n->session, &e)))
            node_failed(n, &e);
    }
}

static void stop_with(struct live *l, const struct err *e)
{
    fail(l, e);
    stop(l);
}

/* ---- what sessions bring ---- */

static void on_batch(void *data, const void *batch, size_t len)
{
    struct live_node *n = data;
    struct live *l = n->live;
    struct err e;

    if (!l->pipeline) /* what comes while it ends early */
        return;
    switch (pipeline_batch(l->pipeline, n->index, (struct str){batch, len}, &e)) {
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
        stop_with(l, &e);
        break;
    }
}

static void on_reply(void *data, const struct session_reply *reply)
{
    struct live_node *n = data;

    ask_reply(&n->live->ask, reply);
}

static void on_readable(void *owner)
{
    struct live_node *n = owner;
    struct err e;

    if (!session_on_readable(n->session, &e)) {
        node_failed(n, &e);
    } else if (session_state(n->session) == SESSION_GONE) {
        n->over = true;
        loop_remove(&n->live->ctx->loop, &n->fd);
    }
}

/* ---- talk ---- */

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void on_notice(void *data, const struct event_node *node, struct str tag, struct str text)
{
    struct live *l = data;
    const char *sep = l->count > 1 ? ": " : "";

    ctx_warn(l->ctx, "%.*s%s%.*s%s%.*s", l->count > 1 ? (int)node->name.len : 0, node->name.at, sep, (int)tag.len, tag.at,
             text.len ? " " : "", (int)text.len, text.at);
}

/* What is going to be traced; the line goes on when it is. */
static void announce(struct live *l, const struct live_node *n, const struct arm_result *x)
{
    const struct session_node *node = session_node(n->session);
    uint64_t functions = 0;
    bool calls = false;

    for (size_t i = 0; i < l->asked.count; i++)
        calls = calls || l->asked.specs[i]->kind == SPEC_CALL;
    for (size_t i = 0; i < x->nprobes; i++)
        functions += x->probes[i].functions;
    if (node->fallback)
        ctx_warn(l->ctx, "%s: tracing without the NIF, at most 1000 events a second: %s", node->name, node->fallback_why);
    for (size_t i = 0; i < x->nwarnings; i++)
        ctx_warn(l->ctx, "%s: warning: %s", node->name, x->warnings[i]);
    char found[64] = "";
    if (calls)
        snprintf(found, sizeof(found), " · %llu function%s", (unsigned long long)functions, plural(functions));
    ctx_begin(l->ctx, "%s · OTP %s%s · %llu process%s", node->name, node->otp_version, found,
              (unsigned long long)x->processes, x->processes == 1 ? "" : "es");
}

static void summary(struct live *l)
{
    const struct totals *t = pipeline_totals(l->pipeline);
    char filtered[64] = "", missing[64] = "";
    uint64_t lost = 0;
    bool gone = true;

    for (size_t i = 0; i < ETW_LOSSES; i++)
        lost += t->lost[i];
    for (size_t i = 0; i < l->count; i++)
        gone = gone && l->nodes[i].session && session_state(l->nodes[i].session) == SESSION_GONE;
    if (t->filtered)
        snprintf(filtered, sizeof(filtered), " · %llu filtered", (unsigned long long)t->filtered);
    if (t->missing)
        snprintf(missing, sizeof(missing), " · %llu never arrived", (unsigned long long)t->missing);
    ctx_say(l->ctx, "%llu event%s%s · %llu dropped%s · %llu truncated · %llu incomplete · session %s",
            (unsigned long long)t->shown, plural(t->shown), filtered, (unsigned long long)lost, missing,
            (unsigned long long)t->truncated, (unsigned long long)t->incomplete, gone ? "destroyed" : "ended by the node");
}

/* ---- beginning ---- */

/* What was asked for stands in a recording, so that a replay reads the events as they were read here. */
static void record_specs(struct live *l)
{
    const struct what_opts *what = l->o->what;
    struct buf text = {0};

    for (size_t i = 0; i < l->asked.count; i++)
        recfile_spec_add(&text, "expr", l->asked.specs[i]->text);
    for (size_t i = 0; i < l->asked.nheaders; i++)
        recfile_spec_add(&text, "hrl", l->asked.headers[i]);
    if (l->found.len)
        recfile_spec_add(&text, "hrl", buf_view(&l->found));
    for (size_t i = 0; i < what->lets.count; i++)
        recfile_spec_add(&text, "let", (struct str){what->lets.items[i], strlen(what->lets.items[i])});
    for (size_t i = 0; i < l->count; i++)
        pipeline_specs(l->pipeline, (unsigned)i, buf_view(&text));
    buf_release(&text);
}

/* What events are shown by: made before anything is attached to, or once a node has said what the records are. */
static bool begin(struct live *l, struct err *e)
{
    struct pipeline_options options = {
        .views = l->show.views, .nviews = l->show.count,
        .specs = l->asked.specs, .nspecs = l->asked.count,
        .greps = l->show.greps, .ngreps = l->show.ngreps,
        .wheres = l->asked.wheres, .nwheres = l->asked.nwheres,
        .limit = (uint64_t)l->o->limit->limit,
        .notice = on_notice, .ctx = l,
    };

    asked_warn(&l->asked, l->ctx);
    l->pipeline = pipeline_new(&options, e);
    if (l->pipeline)
        record_specs(l);
    return l->pipeline != NULL;
}

static bool begin_late(struct live *l, struct err *e)
{
    struct records records;

    l->ask.session = l->nodes[0].session;
    records_init(&records, &l->ask);
    asked_release(&l->asked);
    bool ok = prepare_compile(&l->asked, &records, l->o->what, &l->texts, &l->o->view->wheres, e);
    if (ok)
        records_text(&records, &l->found);
    ok = ok && begin(l, e);
    records_release(&records);
    for (size_t i = 0; ok && i < l->count; i++)
        ok = session_pull_allowed(l->nodes[i].session, true, e);
    return ok;
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

static bool attach(struct live *l, struct live_node *n, const char *name, struct err *e)
{
    const struct node_opts *o = l->o->node;
    struct node_target target = {.name = name, .port = (int)o->port, .cookie_file = o->cookie_file};
    struct session_handlers handlers = {.data = n, .batch = on_batch, .reply = on_reply};
    struct str keys[MAX_KEYS];
    size_t nkeys = 0;

    if (!redacted(l->o->limit, keys, &nkeys, e))
        return false;
    struct session_options options = session_options(l, keys, nkeys);
    if (o->os_pid) {
        char *end;
        target.ospid = strtol(o->os_pid, &end, 10);
        if (*end || target.ospid <= 0)
            return err_set(e, ERR_USAGE, "--pid takes the number of an operating system process, not '%s'", o->os_pid);
    }
    n->session = session_open(&target, &options, &handlers, e);
    /* Without a pipeline nothing may come. */
    return n->session && (l->pipeline || session_pull_allowed(n->session, false, e)) && session_wait(n->session, 0, ANSWER_MS, e);
}

/* Says what is going to be traced, and traces it. */
static bool arm(struct live *l, struct live_node *n, struct err *e)
{
    const struct what_opts *what = l->o->what;
    struct arm_result chosen, armed;
    struct buf asked = {0};

    l->ask.session = n->session;
    bool ok = prepare(l->ctx, &l->ask, what, &l->texts, &asked, &chosen, e);
    if (ok) {
        announce(l, n, &chosen);
        arm_result_release(&chosen);
    }
    if (ok && !what->dry_run) {
        ok = prepare_ask(&l->ask, ARM_TRACE, buf_view(&asked), &armed, e);
        if (ok)
            arm_result_release(&armed);
    }
    if (ok)
        ctx_end(l->ctx, what->dry_run ? "not traced (--dry-run)" : "Ctrl-C stops");
    buf_release(&asked);
    return ok;
}

static bool attach_all(struct live *l, struct err *e)
{
    const struct texts *names = &l->o->node->nodes;

    for (size_t i = 0; i < l->count; i++) {
        struct live_node *n = &l->nodes[i];
        const char *name = names->count ? names->items[i] : l->o->node->os_pid ? NULL : getenv("ETRACE_NODE");

        *n = (struct live_node){.live = l, .index = (unsigned)i};
        if (!attach(l, n, name && *name ? name : NULL, e))
            return false;
    }
    if (!l->pipeline && !begin_late(l, e))
        return false;
    for (size_t i = 0; i < l->count; i++) {
        struct live_node *n = &l->nodes[i];
        if (!arm(l, n, e))
            return false;
        if (l->status)
            return true;
        n->fd = (struct loop_fd){.fd = session_fd(n->session), .want_read = true, .ready = on_readable, .owner = n};
        loop_add(&l->ctx->loop, &n->fd);
    }
    return true;
}

/* ---- streaming ---- */

/* A pager that waits: nothing more is asked for, and the leases are renewed all the same. */
static void throttle(struct live *l)
{
    size_t backlog = show_backlog(&l->show);
    struct err e;

    if (l->stopping || (l->blocked ? backlog > BACKLOG_LOW : backlog < BACKLOG_FULL))
        return;
    l->blocked = !l->blocked;
    for (size_t i = 0; i < l->count; i++)
        if (!l->nodes[i].over && !session_pull_allowed(l->nodes[i].session, !l->blocked, &e))
            node_failed(&l->nodes[i], &e);
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

static bool anybody_left(const struct live *l)
{
    for (size_t i = 0; i < l->count; i++)
        if (!l->nodes[i].over)
            return true;
    return false;
}

static int64_t tick_all(struct live *l)
{
    int64_t next = l->until, each;
    struct err e;

    if (l->stopping)
        next = l->gone_by;
    for (size_t i = 0; i < l->count; i++) {
        struct live_node *n = &l->nodes[i];
        if (n->over)
            continue;
        if (!session_tick(n->session, session_now(), &each, &e))
            node_failed(n, &e);
        else if (next < 0 || each < next)
            next = each;
    }
    return next;
}

static void stream(struct live *l)
{
    while (anybody_left(l) && !(l->stopping && loop_now() >= l->gone_by)) {
        loop_step(&l->ctx->loop, tick_all(l));
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

static void leave_early(struct live *l)
{
    struct err e;

    for (size_t i = 0; i < l->count; i++)
        if (l->nodes[i].session && session_state(l->nodes[i].session) == SESSION_READY &&
            session_pull_allowed(l->nodes[i].session, true, &e) && session_stop(l->nodes[i].session, &e))
            session_wait(l->nodes[i].session, 0, LEAVE_MS, &e);
}

int live_run(struct ctx *ctx, const struct live_options *o, const char *default_view)
{
    struct live l = {.ctx = ctx, .o = o, .until = -1};
    bool later = false;
    struct err e;

    l.count = MAX(o->node->nodes.count, 1);
    l.nodes = mem_zalloc(l.count * sizeof(*l.nodes));
    arena_init(&l.arena);
    asked_init(&l.asked);
    l.asked.find_record = asked_later;
    l.asked.find_data = &later;
    bool ok = asked_texts(o->what, o->words, &l.arena, &l.texts, &e) &&
              asked_compile(&l.asked, o->what, &l.texts, &o->view->wheres, 0, &e) &&
              show_open(&l.show, ctx, o->view, default_view, l.count > 1, &e) &&
              (later || begin(&l, &e));
    ok = ok && attach_all(&l, &e);
    if (!ok)
        fail(&l, &e);
    if (l.status || o->what->dry_run) {
        leave_early(&l);
    } else {
        l.until = o->limit->for_ns ? loop_now() + o->limit->for_ns / 1000000 : -1;
        stream(&l);
        finish(&l);
        l.status = show_flush(&l.show, ctx, l.status);
    }
    for (size_t i = 0; i < l.count; i++) {
        loop_remove(&ctx->loop, &l.nodes[i].fd);
        session_close(l.nodes[i].session);
    }
    free(l.nodes);
    pipeline_free(l.pipeline);
    show_close(&l.show);
    buf_release(&l.found);
    asked_release(&l.asked);
    texts_release(&l.texts);
    arena_release(&l.arena);
    return l.status;
}

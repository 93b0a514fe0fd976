#include "live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../events/recfile.h"
#include "../ground/mem.h"
#include "../ground/tty.h"
#include "../ground/utf8.h"
#include "asserted.h"
#include "child.h"
#include "prepare.h"
#include "run.h"
#include "together.h"

#define BACKLOG_FULL (8u << 20) /* unwritten output at which no more is asked from the nodes */
#define BACKLOG_LOW (1u << 20)
#define LEAVE_MS 5000 /* after a stop; the node's own lease is there for what comes later */
#define SLOW_MS 300   /* of arming: then it is said what is waited for */
#define STUCK_MS 5000 /* of arming: then it is said that this is not usual */
#define REST_MS 1000  /* how long the results of the calls within --limit are waited for */

struct live {
    struct ctx *ctx;
    const struct live_options *o;
    struct arena arena;
    struct texts texts; /* what is asked for, as text */
    struct texts wheres; /* those that filter, and behind them those that judge */
    struct asked asked;
    struct asserted asserted;
    struct show show;
    struct pipeline *pipeline;
    struct run run;
    struct together together;
    enum { BACK_NOT, BACK_CLOCK, BACK_ARMING } back[PEERS_MAX]; /* how far one is that came back */
    bool without[PEERS_MAX]; /* --cluster: nothing matches there */
    struct err empty;        /* and what the last of these said */
    struct buf filter; /* of what the nodes count (struct etw_filter_step) */
    struct buf found; /* the records that a node defines, as text */
    int64_t until;        /* loop_now() time at which it stops, -1: none */
    int64_t gone_by;      /* once it is stopping */
    bool stopping, blocked, limited, childless, broken, begun; /* the last: some node traces */
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
    peers_stop(&l->run.peers);
}

static void stop_with(struct live *l, const struct err *e)
{
    fail(l, e);
    stop(l);
}

/* ---- what sessions bring ---- */

static void begun(struct live *l)
{
    l->begun = true;
    show_begin(&l->show);
}

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
    case PIPELINE_FAILED: /* and so it stays; why is said the first time */
        if (l->broken)
            break;
        l->broken = true; /* to stop may fail in its turn, and come here again */
        stop_with(l, e);
        break;
    }
}

static void on_batch(void *data, struct peer *p, const void *batch, size_t len)
{
    struct live *l = data;
    struct err e;

    if (!l->pipeline) /* what comes while it ends early */
        return;
    together_batch(&l->together, p);
    enum pipeline_status status = pipeline_batch(l->pipeline, p->index, (struct str){batch, len}, &e);
    if (!l->begun && pipeline_totals(l->pipeline)->seen)
        begun(l); /* what has a meta probe comes while the others are still being armed */
    took(l, status, &e);
}

static void on_time(void *data, struct peer *p, const struct session_time *time)
{
    together_time(&((struct live *)data)->together, p, time);
}

/* One that may come back is missed, but nothing has failed. A node that was started by a command ends with it. */
static void on_failed(void *data, struct peer *p, const struct err *cause)
{
    struct live *l = data;
    struct err e;

    if (p->away && !l->stopping)
        ctx_warn(l->ctx, "%s; it is waited for", cause->text);
    else if (!l->o->child || cause->status == ERR_GUARD)
        fail(l, cause);
    l->back[p->index] = BACK_NOT;
    if (l->together.pipeline && !l->o->child && p->up)
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

static void leave(struct peer *p)
{
    struct err e;

    if (!session_stop(p->session, &e))
        peer_fail(p, &e);
}

/* A cluster's nodes need not all have what is asked for. */
static bool may_lack(const struct live *l, const struct err *e)
{
    return l->o->node->cluster && e->status == ERR_EMPTY;
}

static void is_without(struct live *l, struct peer *p, const struct err *e)
{
    l->without[p->index] = true;
    l->empty = *e;
    ctx_warn(l->ctx, "%s: not traced: %s", peer_name(p), e->text);
    leave(p);
}

/* Of several, the one that it is about, unless that is said. */
static struct err about(const struct live *l, const struct peer *p, const struct err *e)
{
    struct err full = *e;

    if (l->run.peers.count > 1 && strncmp(e->text, peer_name(p), strlen(peer_name(p))) != 0)
        snprintf(full.text, sizeof(full.text), "%.255s: %.250s", peer_name(p), e->text);
    utf8_make_safe(full.text);
    return full;
}

static void on_refused(void *data, struct peer *p, const struct err *e)
{
    struct live *l = data;
    struct err full = about(l, p, e);

    if (l->back[p->index] == BACK_ARMING) {
        l->back[p->index] = BACK_NOT;
        ctx_warn(l->ctx, "%s: %s", peer_name(p), e->text);
        leave(p);
    } else if (may_lack(l, e)) {
        is_without(l, p, e);
    } else if (!l->status) {
        fail(l, &full);
    }
}

/* ---- talk ---- */

static void on_notice(void *data, const struct event_node *node, struct str tag, struct str text)
{
    struct live *l = data;
    const char *sep = l->run.peers.count > 1 ? ": " : "";

    ctx_warn(l->ctx, "%.*s%s%.*s%s%.*s", l->run.peers.count > 1 ? (int)node->name.len : 0, node->name.at, sep, (int)tag.len, tag.at,
             text.len ? " " : "", (int)text.len, text.at);
}

/* What is going to be traced; the line goes on when it is, unless others come between. */
static void on_chosen(void *data, struct peer *p, const struct arm_result *result)
{
    struct live *l = data;
    const struct session_node *node = session_node(p->session);
    uint64_t functions = 0;
    bool calls = false;

    for (size_t i = 0; i < l->asked.count; i++)
        calls = calls || l->asked.specs[i]->kind == SPEC_CALL;
    for (size_t i = 0; i < result->nprobes; i++)
        functions += result->probes[i].functions;
    if (node->fallback)
        ctx_warn(l->ctx, "%s: tracing without the NIF, at most 1000 events a second: %s", node->name, node->fallback_why);
    for (size_t i = 0; i < result->nwarnings; i++)
        ctx_warn(l->ctx, "%s: warning: %s", node->name, result->warnings[i]);
    char found[64] = "", ports[40] = "";
    if (calls)
        snprintf(found, sizeof(found), " · %llu function%s", (unsigned long long)functions, PLURAL(functions));
    if (result->ports)
        snprintf(ports, sizeof(ports), " · %llu port%s", (unsigned long long)result->ports, PLURAL(result->ports));
    ctx_begin(l->ctx, "%s · OTP %s%s · %llu process%s%s", node->name, node->otp_version, found,
              (unsigned long long)result->processes, PLURAL_ES(result->processes), ports);
    if (l->o->what->dry_run)
        ctx_end(l->ctx, "not traced (--dry-run)");
}

static void on_armed(void *data, struct peer *p, const struct arm_result *result UNUSED)
{
    struct live *l = data;

    l->back[p->index] = BACK_NOT;
    begun(l);
    ctx_end(l->ctx, l->o->child ? "ends with the command" : "Ctrl-C stops");
}

/* While it was attached, whether anything was traced already or not. */
static bool has_lost_one(const struct live *l)
{
    for (size_t i = 0; i < l->run.peers.count; i++)
        if (l->run.peers.items[i].session && session_lost(l->run.peers.items[i].session))
            return true;
    return false;
}

static const char *session_end(const struct live *l, const struct totals *t)
{
    if (peers_gone(&l->run.peers))
        return "destroyed";
    if (!t->complete)
        return "ended by the node: what came last may be missing";
    /* The code server may be held up by something else for as long as it likes. */
    return l->stopping && loop_now() >= l->gone_by ? "destroyed, but the node has yet to unload the tracer" : "ended by the node";
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
            (unsigned long long)t->shown, PLURAL(t->shown), filtered, (unsigned long long)lost, missing,
            (unsigned long long)t->truncated, (unsigned long long)t->incomplete, session_end(l, t));
}

/* ---- attaching ---- */

/* Whether something is decided here about single events; those cannot be counted on the node. */
static bool sifts(const struct live *l)
{
    for (size_t i = 0; i < l->asked.count; i++)
        if (l->asked.specs[i]->nwhere)
            return true;
    return l->show.ngreps || l->o->view->wheres.count;
}

static bool pairs(const struct live *l)
{
    uint64_t besides;

    asked_kinds(&l->asked, &besides);
    return besides;
}

/* Where each event would only be counted, the node counts: nothing may have to look at one but what the node decides, too. */
static bool wants_figures(struct live *l)
{
    size_t filters = l->o->view->wheres.count;

    if (!show_is_figures(&l->show) || l->show.ngreps || l->o->limit->limit || l->wheres.count > filters)
        return false;
    for (size_t i = 0; i < l->asked.count; i++)
        if (l->asked.specs[i]->kind != SPEC_CALL)
            return false;
    if (!asked_filter(&l->asked, l->asked.wheres, filters, &l->filter))
        return false;
    l->run.filter = buf_view(&l->filter);
    return true;
}

/*
 * Where a filter asks how a call ended or how long it took, the node may keep back what that hides: nothing may be shown by which
 * the calls around it could be told. What is decided about the others, is decided here.
 */
static bool wants_hold(struct live *l)
{
    if (!show_is_alone(&l->show) || l->o->what->silent || !asked_hold(&l->asked, l->asked.wheres, l->o->view->wheres.count, &l->filter))
        return false;
    l->run.filter = buf_view(&l->filter);
    return true;
}

/* Who sent a message is a match specification's work, which costs nearly half as much as all else that tracing the message does. */
static bool is_anonymous(const struct live *l)
{
    return !l->show.ngreps && !show_has_senders(&l->show) && !asked_reads_sender(&l->asked);
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
    if (l->found.len)
        recfile_spec_add(&text, "hrl", buf_view(&l->found));
    for (size_t i = 0; i < what->lets.count; i++)
        recfile_spec_add(&text, "let", (struct str){what->lets.items[i], strlen(what->lets.items[i])});
    for (size_t i = 0; i < l->run.peers.count; i++)
        pipeline_specs(l->pipeline, (unsigned)i, buf_view(&text));
    buf_release(&text);
}

/* What events are shown by: made before anything is attached to, or once a node has said what the records are. */
static bool begin(struct live *l, struct err *e)
{
    if (!asserted_init(&l->asserted, l->o->asserts, &l->asked, l->o->view->wheres.count, e))
        return false;
    struct pipeline_options options = {
        .views = l->show.views, .nviews = l->show.count,
        .specs = l->asked.specs, .nspecs = l->asked.count,
        .greps = l->show.greps, .ngreps = l->show.ngreps,
        .wheres = l->asked.wheres, .nwheres = l->o->view->wheres.count,
        .asserts = l->asserted.asserts,
        .limit = (uint64_t)l->o->limit->limit,
        .notice = on_notice, .ctx = l,
    };

    asked_warn(&l->asked, l->ctx);
    asserted_warn(&l->asserted, &l->asked, &l->o->view->wheres, &l->show, l->ctx);
    l->pipeline = pipeline_new(&options, e);
    return l->pipeline != NULL;
}

static bool begin_by(struct live *l, const struct peer *p, struct err *e)
{
    struct records records;

    l->run.question.session = p->session;
    records_init(&records, &l->run.question);
    asked_release(&l->asked);
    bool ok = prepare_compile(&l->asked, &records, l->o->what, &l->texts, &l->wheres, e);
    if (ok)
        records_text(&records, &l->found);
    ok = ok && begin(l, e);
    records_release(&records);
    return ok;
}

static struct peer *first_there(struct peers *ps, size_t from)
{
    while (from < ps->count && ps->items[from].over)
        from++;
    return from < ps->count ? &ps->items[from] : NULL;
}

/* The first node that is there says what the records are, or the next one where that goes down meanwhile; without one nobody knows. */
static bool begin_late(struct live *l, struct err *e)
{
    struct peers *ps = &l->run.peers;
    struct peer *p = first_there(ps, 0);

    if (!p)
        *e = ps->items[0].why;
    while (p && !begin_by(l, p, e)) {
        struct peer *next = first_there(ps, p->index + 1);
        p = next && peer_missed(p, e) ? next : NULL;
    }
    return p;
}

/* One after the other: what one says about itself stands on a line of its own. */
static void wait_armed(struct live *l, const struct peer *p)
{
    int64_t began = loop_now(), due = began + SLOW_MS;

    while (run_arming(&l->run) && !l->status && !l->ctx->interrupts && peers_step(&l->run.peers, due)) {
        pipeline_flush(l->pipeline);
        if (due < 0 || loop_now() < due)
            continue;
        ctx_show(l->ctx);
        if (due == began + STUCK_MS)
            ctx_warn(l->ctx, "%s is still at arming, after %d seconds; Ctrl-C gives it up", peer_name(p), STUCK_MS / 1000);
        due = due < began + STUCK_MS ? began + STUCK_MS : -1;
    }
}

static bool arm_all(struct live *l, struct err *e)
{
    size_t left = 0;

    for (size_t i = 0; i < l->run.peers.count && !l->status && !l->stopping && !l->ctx->interrupts; i++) {
        struct peer *p = &l->run.peers.items[i];
        if (p->over || l->back[i] != BACK_NOT)
            continue;
        if (run_arm_peer(&l->run, p, l->o->what, &l->texts, (struct arm_mark){0}, e))
            wait_armed(l, p);
        else if (l->stopping)
            break; /* why has been said */
        else if (peer_missed(p, e))
            continue;
        else if (may_lack(l, e))
            is_without(l, p, e);
        else
            return *e = about(l, p, e), false;
    }
    for (size_t i = 0; i < l->run.peers.count; i++)
        left += !l->without[i];
    if (!left)
        *e = l->empty;
    return left;
}

/* A node that has just started may not have loaded what is asked for. */
static void arm_again(struct live *l, struct peer *p)
{
    struct what_opts what = *l->o->what;
    struct err e;

    what.allow_empty = true;
    l->back[p->index] = BACK_ARMING;
    if (!run_arm_peer(&l->run, p, &what, &l->texts, (struct arm_mark){0}, &e) && l->back[p->index] == BACK_ARMING && !l->stopping)
        on_refused(l, p, &e);
}

/* Attaches, and waits until every node traces; with a status when one does not. */
static bool attach_all(struct live *l, struct err *e)
{
    const struct live_options *o = l->o;
    struct run_handlers handlers = {.data = l, .batch = on_batch, .chosen = on_chosen, .armed = on_armed, .refused = on_refused,
                                    .failed = on_failed, .time = on_time, .back = on_back};
    unsigned how = (sifts(l) || pairs(l) ? RUN_SIFTS : 0) | (l->pipeline ? 0 : RUN_HOLDS);

    if (!run_open(&l->run, l->ctx, o->node, o->limit, how, &handlers, e) || (!l->pipeline && !begin_late(l, e)))
        return false;
    record_specs(l);
    together_init(&l->together, l->ctx, &l->run.peers, l->pipeline);
    if (!together_begin(&l->together, e))
        return false;
    peers_pull(&l->run.peers, true);
    l->run.figures = wants_figures(l);
    l->run.hold = !l->run.figures && wants_hold(l);
    l->run.anonymous = is_anonymous(l);
    return arm_all(l, e);
}

/* While a node that was attached to did not answer: that is no failure. */
static bool told_to_stop(struct live *l)
{
    if (!l->together.pipeline)
        return false;
    loop_step(&l->ctx->loop, 0);
    return l->ctx->interrupts;
}

/* ---- streaming ---- */

/* A pager that waits: nothing more is asked for, and the leases are renewed all the same. */
static void throttle(struct live *l)
{
    size_t backlog = show_backlog(&l->show, l->blocked ? BACKLOG_LOW : BACKLOG_FULL - 1);

    if (l->stopping || (l->blocked ? backlog > BACKLOG_LOW : backlog < BACKLOG_FULL))
        return;
    l->blocked = !l->blocked;
    l->together.blocked = l->blocked;
    peers_pull(&l->run.peers, !l->blocked);
}

/* --on-loss stop; what was lost last is told when everything ends. */
static bool lost_too_much(const struct live *l, struct err *e)
{
    const struct totals *t = pipeline_totals(l->pipeline);

    for (size_t i = 0; l->o->limit->on_loss == 1 && i < ETW_LOSSES; i++)
        if (t->lost[i])
            return !err_set(e, ERR_GUARD, l->stopping ? "events were lost (%s)" : "stopped: events were lost (%s)", event_losses[i]);
    return false;
}

static void look_for_an_end(struct live *l)
{
    struct err e;
    bool closed;

    if (l->o->child && l->o->child->ended && !l->childless) {
        l->childless = true; /* what its node has sent is still read; one that lives on is left */
        l->until = l->until < 0 ? loop_now() + REST_MS : MIN(l->until, loop_now() + REST_MS);
    }
    if (l->ctx->interrupts || (l->until >= 0 && loop_now() >= l->until))
        stop(l);
    if (!l->stopping && show_ended(&l->show, &closed, &e)) {
        if (!closed)
            fail(l, &e);
        stop(l);
    }
    if (!l->stopping && lost_too_much(l, &e))
        stop_with(l, &e);
}

/* false: nobody is left. */
static bool step(struct live *l)
{
    struct err e;

    if (!peers_step(&l->run.peers, loop_sooner(l->stopping ? l->gone_by : l->until, together_next(&l->together))))
        return false;
    took(l, together_step(&l->together, &e), &e);
    pipeline_flush(l->pipeline);
    look_for_an_end(l);
    throttle(l);
    return true;
}

/* One that came back is asked what there is to be traced; it may be long in answering. */
static void serve(void *data)
{
    step(data);
}

static void stream(struct live *l)
{
    l->run.question.serve = serve;
    l->run.question.data = l;
    while (!(l->stopping && loop_now() >= l->gone_by) && step(l))
        for (size_t i = 0; i < l->run.peers.count; i++)
            if (l->back[i] == BACK_CLOCK && together_known(&l->together, &l->run.peers.items[i]))
                arm_again(l, &l->run.peers.items[i]);
}

/* ---- all of it ---- */

static void finish(struct live *l)
{
    struct err e;
    bool closed;

    pipeline_end(l->pipeline);
    if (!l->status && lost_too_much(l, &e))
        fail(l, &e);
    if (show_ended(&l->show, &closed, &e) && !closed && !l->status)
        fail(l, &e);
    if (tty_is(STDOUT_FILENO)) /* there it stands behind what it sums up */
        l->status = ctx_flush(l->ctx, l->status);
    summary(l);
    l->status = asserted_status(&l->asserted, l->ctx, l->status);
}

int live_run(struct ctx *ctx, const struct live_options *o, const char *default_view)
{
    struct live l = {.ctx = ctx, .o = o, .until = -1};
    bool later = false;
    struct err e;

    arena_init(&l.arena);
    asked_init(&l.asked);
    l.asked.find_record = asked_later;
    l.asked.find_data = &later;
    l.wheres = asserted_texts(&o->view->wheres, o->asserts);
    bool ok = show_makes_sense(o->view, &e) && asked_texts(o->what, o->words, &l.arena, &l.texts, &e) &&
              asked_compile(&l.asked, o->what, &l.texts, &l.wheres, 0, &e) &&
              show_open(&l.show, ctx, o->view, default_view, &e) &&
              (later || begin(&l, &e));
    ok = ok && (attach_all(&l, &e) || told_to_stop(&l));
    if (!ok)
        fail(&l, &e);
    if (l.status || o->what->dry_run) {
        peers_leave(&l.run.peers);
        if (l.begun || (l.pipeline && has_lost_one(&l))) /* what has been seen until then */
            finish(&l);
    } else {
        if (o->child)
            child_go(o->child);
        l.until = o->limit->for_ns ? loop_now() + o->limit->for_ns / 1000000 : -1;
        stream(&l);
        finish(&l);
    }
    l.status = show_flush(&l.show, ctx, l.status);
    run_close(&l.run);
    pipeline_free(l.pipeline);
    show_close(&l.show);
    buf_release(&l.filter);
    buf_release(&l.found);
    asserted_release(&l.asserted);
    texts_release(&l.wheres);
    asked_release(&l.asked);
    texts_release(&l.texts);
    arena_release(&l.arena);
    return l.status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the nodes requests to trace the probes, and handles their answers. */
#include "repl_probes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../trace/prepare.h"
#include "../ground/mem.h"
#include "repl_syntax.h"

#define RECORD_MS 10000
#define PROMPT_MS 1000     /* limit for the time until the prompt returns, if a node does not answer */
#define ON_THEIR_WAY_MS 60 /* time in which the last events of stopped probes arrive */

struct repl_probes {
    struct repl_base *base;
    struct repl_nodes *nodes;
    struct probe_list list;
    uint64_t mark; /* mark of the last request, which its events carry */
    bool armed;    /* the last request has probes */
    bool arming;   /* the message that the nodes trace the probes was not printed yet */
    bool asking;   /* repl_probes_arm_all() waits for answers, and handles a refusal itself */
    struct {
        bool waits; /* a node has refused the last request, and the timer will handle that */
        struct err why;
        uint64_t took; /* mark of the last request that the node had accepted before this one */
    } refusal;
    struct {
        bool due;                /* the node was attached after the last request, so the request must be sent to it */
        bool alone;              /* the request was sent to this node alone, so a refusal drops no probe */
        uint64_t took;           /* mark of the last request that this node has accepted */
    } peers[PEERS_MAX];          /* indexed like the peers */
    unsigned needs[PROBES_FORS]; /* by enum repl_probes_for; set by repl_probes_collect() */
    int64_t until;               /* loop_now() time at which :for stops the probes; -1: never */
    bool renews;                 /* a probe was added or started: the time of :for begins again when it is traced */
    int64_t stopped;             /* loop_now() time to print that the probes have stopped; -1: never */
};

/* ---- arming ---- */

/*
 * Returns true if events of stopped or dropped probes may arrive after the next request. Nodes that record send such
 * events with a later snapshot.
 */
static bool keeps_ended(const struct repl_probes *ps)
{
    return ps->base->options.limit.ring.on;
}

static struct arm_mark tell_scroll(struct repl_probes *ps, const struct exprs *exprs)
{
    struct arm_mark mark = {ps->mark + 1, ps->mark + 1};
    struct buf text = {0};

    mark.last += !keeps_ended(ps) && probe_list_has_ended(&ps->list);
    probe_list_specs(&ps->list, &ps->base->options.what, exprs, true, &text);
    scroll_specs(ps->base->scroll, mark.first, buf_view(&text));
    if (mark.last != mark.first) {
        buf_clear(&text);
        probe_list_specs(&ps->list, &ps->base->options.what, exprs, false, &text);
        scroll_specs(ps->base->scroll, mark.last, buf_view(&text));
    }
    buf_release(&text);
    ps->mark = mark.last;
    return mark;
}

static bool begin_request(struct repl_probes *ps, const struct texts *all, struct err *e)
{
    const struct texts none = {0};
    struct exprs exprs;
    bool later = false;

    exprs_init(&exprs);
    exprs.find_record = exprs_later;
    exprs.find_data = &later;
    bool ok = exprs_compile(&exprs, &ps->base->options.what, all, &none, 0, e);
    if (ok) {
        struct arm_mark mark = tell_scroll(ps, &exprs);
        probe_list_begin(&ps->list, mark.last, keeps_ended(ps));
        session_set_arm(repl_nodes_run(ps->nodes), &ps->base->options.what, all, mark);
    }
    exprs_release(&exprs);
    return ok;
}

/* Sends the request, and does not wait for answers. A refusal calls repl_probes_on_refused(). */
static bool send_request(struct repl_probes *ps, struct err *e)
{
    struct texts all = {0};

    ps->refusal.waits = false;
    /* If the request cannot be sent, go_without() drops the probes that the previous request did not contain. */
    ps->refusal.took = ps->mark;
    for (size_t i = 0; i < PEERS_MAX; i++)
        ps->peers[i].alone = false;
    ps->armed = ps->arming = probe_list_running(&ps->list);
    if (!ps->armed) {
        ps->until = -1;
        session_set_disarm(repl_nodes_run(ps->nodes));
        probe_list_begin(&ps->list, ps->mark, keeps_ended(ps));
        return true;
    }
    probe_list_texts(&ps->list, &all);
    bool ok = begin_request(ps, &all, e);
    texts_release(&all);
    return ok;
}

bool repl_probes_arm_all(struct repl_probes *ps, int64_t patience_ms, struct err *e)
{
    int64_t until = patience_ms < 0 ? -1 : loop_now() + patience_ms;
    bool interrupted = false;

    ps->asking = true;
    bool ok = send_request(ps, e);
    while (ok && session_set_preparing(repl_nodes_run(ps->nodes)) && !ps->refusal.waits && !ps->base->leaving &&
           !interrupted && (until < 0 || loop_now() < until)) {
        repl_step(ps->base, until);
        interrupted = repl_interrupted(ps->base);
    }
    ps->asking = false;
    repl_wake(ps->base); /* nodes that were attached meanwhile need the request */
    if (interrupted)
        return err_set(e, ERR_RUN, "interrupted before all nodes answered");
    if (ok && ps->refusal.waits)
        *e = ps->refusal.why;
    ok = ok && !ps->refusal.waits;
    ps->refusal.waits = false;
    return ok;
}

/*
 * Handles a refused request: drops the probes that the refusing node had not accepted before, and sends a new request.
 * If there are none, drops the probes that any node has not accepted. If there are none either, stops all probes.
 */
static void go_without(struct repl_probes *ps, const struct err *e)
{
    repl_fail(ps->base, e);
    ps->renews = false;
    if (!probe_list_drop_fresh(&ps->list, ps->refusal.took) && !probe_list_drop_fresh(&ps->list, 0))
        probe_list_stop(&ps->list, NULL, true);
    repl_probes_arm(ps);
}

void repl_probes_arm(struct repl_probes *ps)
{
    struct err e;

    if (!send_request(ps, &e))
        go_without(ps, &e);
}

/* Handles a refusal that arrived when repl_probes_arm_all() was not waiting for it. */
static void repl_probes_settle(struct repl_probes *ps)
{
    if (!ps->refusal.waits)
        return;
    ps->refusal.waits = false;
    go_without(ps, &ps->refusal.why);
}

/* ---- probes ---- */

static bool ask_for_record(struct repl_probes *ps, struct peer *p, struct record_lookup *records, struct str request,
                           struct err *e)
{
    struct buf told = {0};
    struct etf answer;

    /* Waits until the request to trace is answered, because a node handles one request at a time. */
    while (session_set_arming(repl_nodes_run(ps->nodes)) && !ps->base->leaving && !ps->base->ctx->interrupts)
        repl_step(ps->base, -1);
    bool ok = peer_request(p, request, RECORD_MS, &told, e);
    while (ok && peer_waits(p) && !ps->base->leaving && !ps->base->ctx->interrupts)
        repl_step(ps->base, -1);
    if (ok && repl_interrupted(ps->base))
        ok = err_set(e, ERR_RUN, "%s has not answered yet", peer_name(p));
    etf_open(&answer, told.data, told.len);
    ok = ok && peer_answer(p, e) && record_lookup_read(records, answer, e);
    p->into = NULL;
    buf_release(&told);
    return ok;
}

/*
 * Asks the current node for the records in the expression, and returns their definitions as the text of a header. For
 * tracing, each node uses its own definitions.
 */
static bool find_records(struct repl_probes *ps, const struct texts *one, struct buf *ret, struct err *e)
{
    struct peer *p = repl_nodes_current(ps->nodes);
    const struct texts none = {0};
    struct record_lookup records;
    struct exprs exprs;
    struct str wanted;
    bool ok;

    if (!p || p->state != PEER_UP)
        return err_set(e, ERR_NODE, "no node is attached, so the record cannot be looked up");
    record_lookup_init(&records);
    exprs_init(&exprs);
    do {
        ok = record_lookup_compile(&records, &exprs, &ps->base->options.what, one, &none, session_node(p->session)->otp,
                                   &wanted, e);
        if (wanted.len)
            ok = ask_for_record(ps, p, &records, wanted, e);
    } while (ok && wanted.len);
    exprs_release(&exprs);
    record_lookup_text(&records, ret);
    record_lookup_release(&records);
    return ok;
}

bool repl_probes_add(struct repl_probes *ps, const char *line, const char **ret_expr, struct err *e)
{
    size_t labelled = repl_label_length((struct str){line, strlen(line)});
    const char *expr = line + labelled;
    struct texts one = {0}, none = {0};
    struct buf records = {0};
    struct exprs exprs;
    bool later = false;

    repl_probes_settle(ps); /* a refusal that was not handled yet is about earlier probes */
    while (*expr == ' ' || *expr == '\t')
        expr++;
    *ret_expr = expr;
    texts_add(&one, expr);
    exprs_init(&exprs);
    exprs.find_record = exprs_later;
    exprs.find_data = &later;
    bool ok = exprs_compile(&exprs, &ps->base->options.what, &one, &none, 0, e);
    if (ok && !repl_nodes_attached(ps->nodes) && !repl_nodes_attaching(ps->nodes)) {
        ok = err_set(e, ERR_NODE, "no node is attached");
        err_hint(e, ":attach NODE attaches one");
    }
    ok = ok && (!ps->base->options.limit.ring.on || exprs_may_overwrite(&exprs, e)) &&
         (!later || find_records(ps, &one, &records, e));
    if (ok) {
        exprs_warn(&exprs, ps->base->ctx);
        probe_list_add(&ps->list, line, labelled, expr, exprs.count, &records);
        ps->renews = true;
    }
    exprs_release(&exprs);
    texts_release(&one);
    buf_release(&records);
    return ok;
}

bool repl_probes_may_overwrite(const struct repl_probes *ps, struct err *e)
{
    struct texts all = {0}, none = {0};
    struct exprs exprs;
    bool later = false;

    exprs_init(&exprs);
    exprs.find_record = exprs_later;
    exprs.find_data = &later;
    probe_list_texts(&ps->list, &all);
    bool ok = exprs_compile(&exprs, &ps->base->options.what, &all, &none, 0, e) && exprs_may_overwrite(&exprs, e);
    texts_release(&all);
    exprs_release(&exprs);
    return ok;
}

void repl_probes_collect(struct repl_probes *ps, enum repl_probes_for who, unsigned needs)
{
    unsigned *all = &ps->base->options.what.needs, before = *all;

    ps->needs[who] = needs;
    *all = 0;
    for (size_t i = 0; i < PROBES_FORS; i++)
        *all |= ps->needs[i];
    if (*all != before && ps->armed)
        repl_probes_arm(ps);
}

bool repl_probes_begin(struct repl_probes *ps)
{
    struct err e;
    bool ok = repl_probes_arm_all(ps, PROMPT_MS, &e);

    if (!ok)
        go_without(ps, &e);
    return ok;
}

bool repl_probes_drop(struct repl_probes *ps, const char *label)
{
    if (!probe_list_drop(&ps->list, label))
        return false;
    repl_probes_arm(ps);
    return true;
}

bool repl_probes_resume(struct repl_probes *ps, const char *label)
{
    const bool found = probe_list_stop(&ps->list, label, false);

    ps->renews |= found;
    return found;
}

bool repl_probes_stop(struct repl_probes *ps, const char *label)
{
    if (!probe_list_stop(&ps->list, label, true))
        return false;
    repl_probes_arm(ps);
    return true;
}

const struct probe_list *repl_probes_list(const struct repl_probes *ps)
{
    return &ps->list;
}

/* ---- handlers of the nodes ---- */

void repl_probes_begin_time(struct repl_probes *ps)
{
    const int64_t ns = ps->base->options.limit.for_ns;

    ps->until = ps->armed && ns ? loop_now() + ns / 1000000 : -1;
    ps->renews = false;
    repl_wake(ps->base);
}

/* Prints that the nodes trace the probes, unless a node still has to answer. */
static void look_at_arming(struct repl_probes *ps, const char *which, const char *counts)
{
    size_t running = probe_list_running(&ps->list);

    if (!ps->arming || session_set_arming(repl_nodes_run(ps->nodes)) || ps->refusal.waits ||
        !repl_nodes_attached(ps->nodes))
        return;
    ps->arming = false;
    ctx_say(ps->base->ctx, "%s%zu probe%s%s · Ctrl-C stops", which, running, PLURAL(running), counts);
    probe_list_accept(&ps->list);
    if (ps->renews || ps->until < 0)
        repl_probes_begin_time(ps);
}

void repl_probes_on_ready(struct repl_probes *ps, const struct peer *peer)
{
    ps->peers[peer->index].due = true;
    ps->peers[peer->index].alone = false;
    ps->peers[peer->index].took = 0;
}

void repl_probes_on_armed(struct repl_probes *ps, const struct peer *peer, const struct arm_result *result)
{
    const uint64_t functions = result->functions;
    char of[NODE_NAME_MAX + 4] = "";
    struct buf counts = {0};

    /* Answers to earlier requests are dropped before this handler, so `result` is about the last request. */
    ps->peers[peer->index].took = ps->mark;
    if (repl_nodes_attached(ps->nodes) > 1)
        snprintf(of, sizeof(of), "%s: ", peer_name(peer) ? peer_name(peer) : "the node");
    for (size_t i = 0; i < result->warnings.n; i++)
        ctx_warn(ps->base->ctx, "%swarning: %s", of, result->warnings.items[i]);
    if (session_set_arming(repl_nodes_run(ps->nodes))) {
        ctx_say(ps->base->ctx, "%s%llu function%s", of, (unsigned long long)functions, PLURAL(functions));
        return;
    }
    ps->arming = true; /* so the message is printed even if only this node was asked */
    buf_printf(&counts, " · %llu function%s · %llu process%s", (unsigned long long)functions, PLURAL(functions),
               (unsigned long long)result->processes, PLURAL_ES(result->processes));
    look_at_arming(ps, of, buf_cstr(&counts));
    buf_release(&counts);
}

void repl_probes_on_refused(struct repl_probes *ps, const struct peer *peer, const struct err *e)
{
    if (ps->peers[peer->index].alone) {
        repl_fail(ps->base, e);
        return;
    }
    ps->refusal.waits = true;
    ps->refusal.why = *e;
    ps->refusal.took = ps->peers[peer->index].took;
    repl_wake(ps->base);
}

bool repl_probes_arming(const struct repl_probes *ps)
{
    bool arming = ps->refusal.waits || session_set_arming(repl_nodes_run(ps->nodes)) || repl_nodes_attaching(ps->nodes);

    for (size_t i = 0; i < PEERS_MAX; i++)
        arming = arming || ps->peers[i].due;
    return arming;
}

/* ---- time ---- */

static void arm_peer(struct repl_probes *ps, struct peer *peer)
{
    struct texts all = {0};

    probe_list_texts(&ps->list, &all);
    ps->peers[peer->index].alone = true;
    if (all.count && ps->armed)
        session_set_arm_peer(repl_nodes_run(ps->nodes), peer, &ps->base->options.what, &all,
                             (struct arm_mark){ps->mark, ps->mark});
    texts_release(&all);
}

void repl_probes_arm_due(struct repl_probes *ps)
{
    struct peers *peers = repl_nodes_peers(ps->nodes);

    if (!ps->asking) {
        repl_probes_settle(ps);
        for (size_t i = 0; i < peers->count; i++) {
            bool due = ps->peers[i].due && peers->items[i].state == PEER_UP;
            ps->peers[i].due = false;
            if (due)
                arm_peer(ps, &peers->items[i]);
        }
    }
    look_at_arming(ps, "", "");
}

int64_t repl_probes_tick(struct repl_probes *ps)
{
    int64_t now = loop_now();

    if (ps->until >= 0 && now >= ps->until) {
        ctx_say(ps->base->ctx, "stopped after the time of :for");
        repl_probes_stop(ps, NULL);
    }
    if (ps->stopped >= 0 && now >= ps->stopped) {
        ps->stopped = -1;
        ctx_say(ps->base->ctx, "stopped; :start resumes, Ctrl-C again or Ctrl-D leaves");
    }
    return loop_sooner(ps->until, ps->stopped);
}

void repl_probes_say_stopped(struct repl_probes *ps)
{
    ps->stopped = loop_now() + ON_THEIR_WAY_MS;
    repl_wake(ps->base);
}

/* ---- beginning and end ---- */

bool repl_probes_armed(const struct repl_probes *ps)
{
    return ps->armed;
}

struct repl_probes *repl_probes_new(struct repl_base *base, struct repl_nodes *nodes)
{
    struct repl_probes *ps = mem_zalloc(sizeof(*ps));

    ps->base = base;
    ps->nodes = nodes;
    ps->until = ps->stopped = -1;
    return ps;
}

void repl_probes_free(struct repl_probes *ps)
{
    if (!ps)
        return;
    probe_list_release(&ps->list);
    free(ps);
}

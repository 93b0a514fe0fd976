/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets a trace up: compiles the expressions, opens the outputs, chooses the plan, makes the pipeline, and asks a node
 * for the records that no header defines.
 */
#include "live_state.h"

#include <stdlib.h>
#include <string.h>

#include "../events/recfile.h"
#include "child.h"

#define RECORD_MS 10000

/* ---- recordings ---- */

void live_record_specs(struct live *l, const struct peer *p, struct pipeline *to)
{
    const struct what_opts *what = l->o->what;
    struct buf text = {0};

    for (size_t i = 0; i < l->exprs.count; i++)
        recfile_spec_add(&text, l->exprs.specs[i]->root ? "root" : "expr", l->exprs.specs[i]->own);
    for (size_t i = 0; i < l->exprs.nheaders; i++)
        recfile_spec_add(&text, "hrl", l->exprs.headers[i]);
    if (l->found.len)
        recfile_spec_add(&text, "hrl", buf_view(&l->found));
    for (size_t i = 0; i < what->lets.count; i++)
        recfile_spec_add(&text, "let", (struct str){what->lets.items[i], strlen(what->lets.items[i])});
    recfile_spec_needs(&text, l->exprs.needs);
    pipeline_specs(to, p->index, buf_view(&text));
    buf_release(&text);
}

static void record_all_specs(void *data, struct pipeline *to)
{
    struct live *l = data;

    for (struct peer *p = NULL; (p = peers_next(&l->sessions.peers, p));)
        if (live_node_of(l, p)->state != NODE_AWAITED)
            live_record_specs(l, p, to);
}

/* ---- the pipeline ---- */

static void on_notice(void *data, const struct event_node *node, struct str text)
{
    struct live *l = data;
    bool several = peers_several(&l->sessions.peers);

    ctx_warn(l->ctx, "%.*s%s%.*s", several ? (int)node->name.len : 0, node->name.at, several ? ": " : "", (int)text.len,
             text.at);
}

static void on_reached(void *data, const struct event_node *node UNUSED, int64_t us)
{
    snapshots_tell_reach(&((struct live *)data)->snapshots, us);
}

static struct plan_from plan_inputs(struct live *l, bool unknown_records)
{
    return (struct plan_from){.exprs = &l->exprs,
                              .nfilters = l->o->view->wheres.count,
                              .what = l->o->what,
                              .limit = l->o->limit,
                              .outputs = &l->outputs,
                              .fallback = l->o->node->fallback,
                              .unknown_records = unknown_records,
                              .arena = &l->arena};
}

/*
 * Creates the pipeline. This comes before etrace attaches, or, if a node must define records for the expressions, after
 * that node has answered.
 */
static bool live_begin(struct live *l, struct err *e)
{
    const struct plan_from from = plan_inputs(l, false);
    const size_t filters = from.nfilters;

    if (!assertions_init(&l->assertions, l->o->asserts, &l->exprs, filters, e) ||
        !assertions_fit(&l->exprs, filters, l->exprs.specs, l->exprs.count, e))
        return false;
    struct pipeline_options options = outputs_pipeline(&l->outputs, &l->exprs, l->o->view->wheres.count);

    options.specs = l->exprs.specs;
    options.nspecs = l->exprs.count;
    options.asserts = l->assertions.asserts;
    options.limit = (uint64_t)l->o->limit->limit;
    options.notice = on_notice;
    options.reached = on_reached;
    options.ctx = l;
    exprs_warn(&l->exprs, l->ctx);
    assertions_warn(&l->assertions, &l->exprs, &l->o->view->wheres, &l->outputs, l->ctx);
    l->pipeline = pipeline_new(&options, e);
    l->merge.pipeline = l->pipeline;
    if (!l->pipeline || !snapshots_begin(&l->snapshots, &from, l->sessions.plan.recorder, l->pipeline, &options,
                                         record_all_specs, l, e))
        return false;
    if (l->snapshots.keeper)
        l->merge.pipeline = keeper_judge(l->snapshots.keeper);
    if (l->snapshots.keeper || l->snapshots.files) {
        l->merge.keep = live_on_note;
        l->merge.data = l;
    }
    plan_choose(&l->sessions.plan, &from);
    return true;
}

/* ---- records ---- */

/* Compiles with the records that are known so far. If a record is missing, asks the node for it. */
static void live_learn(struct live *l)
{
    struct str wanted;
    struct err e;

    bool ok = record_lookup_compile(&l->records, &l->exprs, l->o->what, &l->texts, &l->wheres,
                                    session_node(l->teller->session)->otp, &wanted, &e);
    if (wanted.len) {
        buf_clear(&l->told);
        if (!peer_request(l->teller, wanted, RECORD_MS, &l->told, &e))
            peer_fail(l->teller, &e);
        return;
    }
    l->teller = NULL;
    record_lookup_text(&l->records, &l->found);
    if (!ok || !live_begin(l, &e))
        live_stop_with(l, &e);
}

void live_look_for_records(struct live *l)
{
    struct etf answer;
    struct err e;

    if (l->pipeline || l->state == LIVE_LEAVING)
        return;
    if (!l->teller || l->teller->state != PEER_UP) {
        struct peer *p = NULL;
        while ((p = peers_next(&l->sessions.peers, p)) && p->state != PEER_UP)
            continue;
        if ((l->teller = p))
            live_learn(l);
    } else if (!peer_waits(l->teller)) {
        etf_open(&answer, l->told.data, l->told.len);
        if (peer_answer(l->teller, &e) && record_lookup_read(&l->records, answer, &e))
            live_learn(l);
        else
            live_stop_with(l, &e);
    }
}

/* ---- before the first event ---- */

void live_init(struct live *l, struct ctx *ctx, const struct live_options *given,
               const struct session_set_handlers *handlers)
{
    *l = (struct live){.ctx = ctx,
                       .own = *given,
                       .what = *given->what,
                       .view = *given->view,
                       .until = -1,
                       .begun_at = -1,
                       .nothing_at = -1};
    l->own.what = &l->what;
    l->own.view = &l->view;
    l->o = &l->own;
    snapshots_init(&l->snapshots, ctx, &l->own, &l->view);
    session_set_begin(&l->sessions, ctx, handlers);
    node_merge_init(&l->merge, ctx, &l->sessions.peers, NULL);
    arena_init(&l->arena);
    exprs_init(&l->exprs);
    l->matches.exprs = &l->exprs;
    record_lookup_init(&l->records);
}

/* Compiles the expressions and filters. Sets *ret_later if a node must define records first. */
static bool live_compile(struct live *l, bool *ret_later, struct err *e)
{
    const struct ring_opts *ring = &l->o->limit->ring;

    l->exprs.find_record = exprs_later;
    l->exprs.find_data = ret_later;
    l->exprs.by_text = l->view.by;
    l->wheres = assertions_texts(&l->view.wheres, l->o->asserts);
    if (ring->when && !ring->system)
        texts_add(&l->wheres, ring->when); /* after the filters and assertions, whose indices are fixed */
    if (!exprs_texts(l->ctx, &l->what, l->o->words, &l->arena, &l->texts, e) ||
        !exprs_compile(&l->exprs, &l->what, &l->texts, &l->wheres, 0, e))
        return false;
    l->what.needs = l->exprs.needs;
    l->again = l->what;
    l->again.allow_empty = true;
    return true;
}

/* Returns true if standard output is the only output, and shows a table of counted events. */
static bool prints_a_table(const struct live *l)
{
    return l->o->view->tables && !l->o->what->dry_run && l->outputs.count == 1 &&
           l->outputs.outs[0] == l->outputs.own && l->outputs.views[0].type->flags & SINK_AGAIN;
}

/* Opens the outputs. If the trace counts by keys, the views are tables, unless --snapshot-when tests these counts. */
static bool live_open(struct live *l, const char *default_view, struct err *e)
{
    const struct live_table *t = l->o->table;

    l->view.tables = l->snapshots.numbered.tables =
        exprs_counts(&l->exprs) && !plan_watches_rows(&l->sessions.plan, &l->exprs);
    l->view.live = t && (!t->if_counts || l->view.tables);
    ctx_let_die(l->ctx, true); /* reading a long recording before continuing it may take long */
    const bool ok = outputs_open(&l->outputs, l->ctx, &l->view, default_view, e);
    ctx_let_die(l->ctx, false);
    if (ok && t && t->if_counts && !prints_a_table(l))
        l->own.table = NULL;
    if (ok && l->own.table)
        redraw_begin(&l->redraw, l->ctx, l->own.table, l->view.record ? NULL : &l->outputs.views[0]);
    return ok;
}

static bool attach_all(struct live *l, struct err *e)
{
    l->sessions.variant = l->o->moment ? COMPANION_WHOLE : COMPANION_TRACE; /* a moment asks questions */
    l->sessions.leftover = l->o->child ? l->o->child->rest_path : NULL;
    ctx_let_die(l->ctx, true);
    return session_set_start(&l->sessions, l->o->node, l->o->limit, e);
}

bool live_prepare(struct live *l, const char *default_view, struct err *e)
{
    struct plan *plan = &l->sessions.plan;
    bool later = false;

    if (!live_compile(l, &later, e) || !outputs_fit(&l->view, exprs_counts(&l->exprs), e))
        return false;
    const struct plan_from from = plan_inputs(l, later);
    if (!plan_recorder(plan, &from, e) || !live_open(l, default_view, e))
        return false;
    if (later)
        plan_choose(plan, &from);
    else if (!live_begin(l, e))
        return false;
    if (plan->recorder == PLAN_CLIENT_RECORDS)
        ctx_say(l->ctx, "etrace decides the condition of --snapshot-when, so the nodes send all events, within --rate");
    return attach_all(l, e);
}

void live_release(struct live *l)
{
    session_set_close(&l->sessions);
    for (size_t i = 0; i < PEERS_MAX; i++)
        free(l->nodes[i].banner);
    record_lookup_release(&l->records);
    buf_release(&l->told);
    pipeline_free(l->pipeline);
    snapshots_release(&l->snapshots);
    if (l->o->limit->ring.on)
        texts_release(&l->view.outputs);
    outputs_close(&l->outputs);
    buf_release(&l->found);
    assertions_release(&l->assertions);
    texts_release(&l->wheres);
    exprs_release(&l->exprs);
    matches_release(&l->matches);
    texts_release(&l->texts);
    arena_release(&l->arena);
}

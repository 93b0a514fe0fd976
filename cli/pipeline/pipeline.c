/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline.h"

#include <stdio.h>
#include <stdlib.h>

#include "../events/notice.h"
#include "../events/order.h"
#include "../events/recfile.h"
#include "../fold/pairing.h"
#include "../fold/stats.h"
#include "../ground/mem.h"
#include "../views/line.h"
#include "assert.h"
#include "filter.h"
#include "grouping.h"
#include "probes.h"
#include "recorded_specs.h"

#define FILTER_ERRORS 1000        /* the pipeline fails after a grep has exceeded its limits this often */
#define FLUSH ((size_t)256 << 10) /* bytes of output of a view that are passed on at once */

/*
 * A recording gets a checkpoint after so many bytes or items. A replay reads at most this much before it shows
 * something. Checkpoints take at most 1/APART of a recording.
 */
#define CHECKPOINT_BYTES ((size_t)4 << 20)
#define CHECKPOINT_ITEMS 8192
#define APART 32

struct pipe_view {
    struct view view;
    struct sink *sink;
    struct buf out;
    bool closed;
};

/*
 * The events of a node that were filtered, here and on the node. The node reads the counters of its threads one after
 * the other, so `there` may be negative for a moment.
 */
struct hidden {
    uint64_t here;
    int64_t there;
    bool untold;  /* a budget made the node count calls, and the node has not reported how many of them made no event */
    bool unknown; /* the node does not know that number */
};

struct pipeline {
    struct pipeline_options o;
    struct pipe_view *views;
    size_t nviews;
    struct funs funs;
    struct order *order;
    struct totals_node *nodes; /* `shown` is up to date; pipeline_totals() computes the other counts */
    struct hidden *hidden;
    size_t nnodes, nodes_cap, hidden_cap;
    struct probes *probes;
    struct combos *combos;
    struct pairing *calls;
    struct filter *filter;
    struct grouping *grouping;
    bool windowed, filters, nested, closed, failed, cut, ended;
    struct err why; /* the first error; valid if `failed` */
    /* A new request arrived, and the events before it are being drained; their calls may still return. */
    bool asked_anew;
    uint64_t number;    /* event.number of the last event */
    uint64_t units;     /* shown events, a call and its result counted as one */
    int64_t open_calls; /* open calls among the calls that the node only counts */
    uint64_t awaited;   /* shown calls whose result has not come */
    struct totals totals;
    struct stats only_counted; /* calls that a budget of the node has only counted */
    struct buf text;
    struct recorded_specs *recorded_specs; /* specs of a recording, if the options have no specs */
    bool own_specs, call_args, counted;
    bool run_over;             /* the current run of the recording has ended, so the next specs begin another run */
    bool *answered;            /* answered[i]: an event has answered spec i */
    uint64_t lost[ETW_LOSSES]; /* copy that pipeline_own_event() puts into e->lost */
    enum terms_style style;

    /* Checkpoints of recordings. */
    bool records, saves; /* records: a view writes checkpoints; saves: the nodes are saving their states */
    bool waits;          /* pipeline_waits() */
    /* pipeline_passed() was called, so the order of events depends on more than the recording contains. */
    bool awaited_passes;
    struct buf request; /* the request that a checkpoint repeats for a replay */
    struct buf checkpoint;
    size_t unsaved, unsaved_items, next_save; /* since the last checkpoint; `next_save`: bytes until the next one */
};

static int wants_return(void *ctx, const struct event *e)
{
    return probes_wants_return(((struct pipeline *)ctx)->probes, e);
}

/* Merges the two kinds of rate losses. Only the pairing of calls distinguishes them. */
static void one_rate(uint64_t lost[static ETW_LOSSES])
{
    lost[ETW_LOST_RATE] += lost[ETW_LOST_HALF];
    lost[ETW_LOST_HALF] = 0;
}

static void count_as_hidden(struct pipeline *p, const struct event *e)
{
    p->hidden[e->node->index].here++;
}

static void hide_dropped(void *ctx, const struct event *pipeline_call)
{
    struct pipeline *p = ctx;

    count_as_hidden(p, pipeline_call);
}

static bool open_views(struct pipeline *p, const struct pipeline_options *o, struct err *e)
{
    p->views = mem_zalloc((o->nviews + 1) * sizeof(*p->views));
    for (size_t i = 0; i < o->nviews; i++) {
        struct pipe_view *v = &p->views[p->nviews];
        v->view = o->views[i];
        v->sink = sink_open(v->view.type, &v->view.look, &v->out, e);
        if (!v->sink)
            return false;
        p->nested |= v->view.type->flags & SINK_NESTED;
        p->records |= v->view.type->checkpoint != NULL;
        p->nviews++;
    }
    return true;
}

static bool use_specs(struct pipeline *p, const struct spec *const *specs, size_t n, struct err *e)
{
    const bool replaces = p->own_specs && p->o.by; /* --by replaces the clauses of recorded specs */

    if (!grouping_specs(p->grouping, specs, replaces ? 0 : n, e))
        return false;
    struct filter *filter = filter_new(p->o.greps, p->o.ngreps, p->o.wheres, p->o.nwheres, specs, n, p->style, e);

    if (!filter)
        return false;
    filter_free(p->filter);
    probes_free(p->probes);
    p->filter = filter;
    p->filters = !filter_is_empty(filter);
    p->probes = probes_new(specs, n, p->combos);
    free(p->answered);
    p->answered = mem_zalloc((n + 1) * sizeof(*p->answered));
    p->o.specs = specs;
    p->o.nspecs = n;
    pairing_keep(p->calls, p->call_args || p->filters || p->o.asserts || grouping_pairs(p->grouping));
    bool scoped = false;
    for (size_t i = 0; i < n; i++)
        scoped |= specs[i]->root;
    pairing_scope(p->calls, scoped);
    return true;
}

struct pipeline *pipeline_new(const struct pipeline_options *o, struct err *e)
{
    struct pipeline *p = mem_zalloc(sizeof(*p));
    p->o = *o;
    p->own_specs = !o->nspecs;
    p->windowed = !window_is_open(&o->window);
    p->o.apart = o->apart ? o->apart : CHECKPOINT_BYTES;
    p->next_save = p->o.apart;
    funs_init(&p->funs);
    p->order = order_new(&p->funs);
    p->combos = combos_new();
    p->grouping = grouping_new(o->by);
    for (size_t i = 0; i < o->nviews; i++) {
        p->call_args |= o->views[i].type->flags & SINK_CALL_ARGS || o->views[i].look.fields || o->views[i].look.format;
        if (o->views[i].look.terms != TERMS_JSON)
            p->style = o->views[i].look.terms;
    }
    p->calls = pairing_new(&(struct pairing_options){
        .max = o->max_calls,
        .keep_bytes = o->max_kept,
        .wants_return = wants_return,
        .dropped = hide_dropped,
        .ctx = p,
    });
    if (!open_views(p, o, e) || !use_specs(p, o->specs, o->nspecs, e)) {
        pipeline_free(p);
        return NULL;
    }
    return p;
}

void pipeline_free(struct pipeline *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->nviews; i++) {
        sink_free(p->views[i].sink);
        buf_release(&p->views[i].out);
    }
    free(p->views);
    order_free(p->order);
    free(p->nodes);
    free(p->hidden);
    stats_release(&p->only_counted);
    pairing_free(p->calls);
    probes_free(p->probes);
    combos_free(p->combos);
    filter_free(p->filter);
    grouping_free(p->grouping);
    funs_release(&p->funs);
    buf_release(&p->text);
    buf_release(&p->request);
    buf_release(&p->checkpoint);
    recorded_specs_free(p->recorded_specs);
    free(p->answered);
    free(p);
}

/* ---- output ---- */

static void hand_on(struct pipeline *p, struct pipe_view *v)
{
    if (!v->out.len)
        return;
    if (!v->closed && !v->view.write(v->view.output, &v->out))
        v->closed = p->closed = true;
    v->out.len = 0;
}

static void hand_on_all(struct pipeline *p, size_t from)
{
    for (size_t i = 0; i < p->nviews; i++)
        if (p->views[i].out.len >= from)
            hand_on(p, &p->views[i]);
}

static bool limit_reached(const struct pipeline *p)
{
    return p->o.limit && p->units >= p->o.limit;
}

/* Returns true if a view has shown everything that it should show. */
static bool view_is_done(const struct pipeline *p)
{
    for (size_t i = 0; i < p->nviews; i++)
        if (p->views[i].sink->done)
            return true;
    return false;
}

static enum pipeline_status current_status(const struct pipeline *p, struct err *e)
{
    if (p->failed) {
        *e = p->why;
        return PIPELINE_FAILED;
    }
    if (p->closed || view_is_done(p) || p->o.window.over || (p->o.asserts && asserts_decided(p->o.asserts)))
        return PIPELINE_DONE;
    if (limit_reached(p))
        return p->awaited ? PIPELINE_LIMIT : PIPELINE_DONE;
    return PIPELINE_MORE;
}

static void to_sinks(struct pipeline *p, const struct event *e)
{
    for (size_t i = 0; i < p->nviews; i++) {
        struct pipe_view *v = &p->views[i];
        if (!v->view.type->event || v->closed)
            continue;
        v->view.type->event(v->sink, e);
        if (unlikely(v->out.len >= FLUSH))
            hand_on(p, v);
    }
}

/* ---- events ---- */

static void pipeline_put(struct pipeline *p, const struct event *e)
{
    bool with_its_call = event_is_result(e) && e->call;

    p->totals.shown++;
    p->nodes[e->node->index].shown++;
    if (e->flags & ETW_F_CUT)
        p->totals.truncated++;
    if (!with_its_call)
        p->units++;
    to_sinks(p, e);
}

static void put_around(void *ctx, const struct event *call, enum call_fate was)
{
    struct pipeline *p = ctx;

    p->hidden[call->node->index].here -= was == CALL_FILTERED;
    p->awaited++;
    pipeline_put(p, call);
}

static void group_event(struct pipeline *p, const struct event *e)
{
    const struct grouping_row *rows;
    const size_t n =
        e->kind == ETW_ROW ? grouping_add_row(p->grouping, e, &rows) : grouping_event(p->grouping, e, &rows);

    for (size_t i = 0; p->o.asserts && i < n; i++)
        asserts_row(p->o.asserts, rows[i].table, rows[i].row);
}

/* Shows an event that passes the filters. Before it, shows the open calls that enclose it and that were hidden. */
static void show_event(struct pipeline *p, const struct event *e)
{
    if (p->nested && p->filters)
        pairing_around(p->calls, e, put_around, p);
    pipeline_put(p, e);
    if (!grouping_is_empty(p->grouping))
        group_event(p, e);
    if (p->o.asserts)
        asserts_event(p->o.asserts, e);
}

static void show_call(struct pipeline *p, const struct event *e)
{
    if (e->expects_return) {
        p->awaited++;
        pairing_fate(p->calls, CALL_SHOWN);
    }
    show_event(p, e);
}

/* Adds the counts of events that the node counted instead of sending. */
static void add_counted(struct pipeline *p, const struct event *e)
{
    const struct etw_tally *t = e->tally;

    p->counted = true;
    p->totals.shown += t->seen;
    p->nodes[e->node->index].shown += t->seen;
    p->open_calls += t->open;
    p->hidden[e->node->index].there += t->filtered;
    if (t->counted >= 2)
        stats_event(&p->only_counted, e);
}

/*
 * Records a notice of a budget. A notice with `functions` reports only which functions are counted; the number of calls
 * without an event follows, unless the node ends before.
 */
static void note_budget(struct pipeline *p, const struct event *e, const struct notice_overhead *o)
{
    struct totals_untraced *u = &p->totals.untraced;

    u->any = true;
    p->hidden[e->node->index].untold = o->functions;
    if (o->functions)
        return;
    p->hidden[e->node->index].unknown |= o->untraced < 0;
    u->estimated |= o->estimated;
    u->calls += (uint64_t)MAX(o->untraced, 0);
}

static void counted_calls_wait(struct pipeline *p, const struct event *e, const struct notice_waits *w)
{
    struct totals_open *open = &p->nodes[e->node->index].open;
    const struct fun *fun = funs_get(&p->funs, w->function.module, w->function.function);

    if (!fun)
        return;
    *open = (struct totals_open){.calls = (uint64_t)w->calls, .ns = w->ns, .fun = fun, .arity = (int)w->function.arity};
    event_process(e, w->pid, &open->who);
}

static void pipeline_own_event(struct pipeline *p, struct event *e)
{
    struct notice_overhead overhead;
    struct notice_tokens tokens;
    struct notice_waits waits;
    int64_t asked;
    struct mfa m;
    int64_t from, us;

    if (e->lost) {
        memcpy(p->lost, e->lost, sizeof(p->lost));
        one_rate(p->lost);
        e->lost = p->lost;
    }
    if (e->tally)
        add_counted(p, e);
    if (e->kind == ETW_ROW)
        group_event(p, e);
    if (notice_endless(e, &m))
        pairing_end(p->calls, (int)e->node->index, m.module, m.function, m.arity);
    if (event_is_resumed(e))
        pairing_resume(p->calls, e->node);
    p->totals.snapshots += event_ends_snapshot(e);
    p->totals.reloads += notice_reloads(e);
    if (notice_overhead(e, &overhead))
        note_budget(p, e, &overhead);
    if (e->kind == ETW_NOTICE && wire_is_atom(&e->env, e->terms.at, "asked") &&
        wire_int(wire_skip(e->terms.at), &asked))
        p->totals.asked += (uint64_t)MAX(asked, 0);
    if (notice_waits(e, &waits))
        counted_calls_wait(p, e, &waits);
    if (notice_tokens(e, &tokens))
        p->totals.tokens += (uint64_t)MAX(tokens.held, 0);
    if (e->kind == ETW_HELLO && p->o.attached)
        p->o.attached(p->o.ctx, e->node);
    if (p->o.reached && event_begins_snapshot(e, &from, &us) && from)
        p->o.reached(p->o.ctx, e->node, us);
    if (e->kind == ETW_NOTICE && p->o.notice && !event_is_expected(e)) {
        buf_clear(&p->text);
        line_notice(&p->text, e, p->style);
        p->o.notice(p->o.ctx, e->node, buf_view(&p->text));
    }
    to_sinks(p, e);
}

/* Narrows a combined spec to the parts whose conditions hold. */
static void narrow_spec(struct pipeline *p, struct event *e)
{
    const struct spec *s = e->spec;

    if (!p->filters || !s || !s->nparts)
        return;
    bool *keep = mem_alloc(s->nparts * sizeof(*keep));
    for (size_t i = 0; i < s->nparts; i++) {
        enum filter_verdict v = filter_spec(p->filter, e, s->parts[i]);
        keep[i] = v == FILTER_PASS || v == FILTER_UNKNOWN;
    }
    e->spec = combos_narrow(p->combos, s, keep);
    free(keep);
    if (e->kind == ETW_CALL)
        probes_project(e->spec, e);
}

/* Shows or hides a result like its call. Decides about a held call, too. */
static void take_result(struct pipeline *p, struct event *e)
{
    const struct event_call *c = e->call;

    if (c && c->fate <= CALL_AROUND) {
        p->awaited -= p->awaited > 0;
        narrow_spec(p, e);
        if (c->fate == CALL_SHOWN || filter_event(p->filter, e, e->spec) == FILTER_PASS)
            show_event(p, e);
        else
            pipeline_put(p, e);
        return;
    }
    if ((c && c->fate == CALL_FILTERED) || (!c && pairing_ended(p->calls, e)) || limit_reached(p)) {
        if (c && c->fate == CALL_HELD && c->event)
            count_as_hidden(p, c->event);
        count_as_hidden(p, e);
        return;
    }
    bool pass = !p->filters || filter_event(p->filter, e, e->spec) == FILTER_PASS;
    if (pass)
        narrow_spec(p, e);
    if (c && c->fate == CALL_HELD && c->event) {
        if (e->spec && e->spec->nparts) {
            c->event->spec = e->spec;
            probes_project(e->spec, c->event);
        }
        if (pass)
            show_event(p, c->event);
        else
            count_as_hidden(p, c->event);
    }
    if (pass)
        show_event(p, e);
    else
        count_as_hidden(p, e);
}

static void take_call(struct pipeline *p, struct event *e)
{
    enum filter_verdict v = limit_reached(p) ? FILTER_FAIL
                            : p->filters     ? filter_event(p->filter, e, e->spec)
                                             : FILTER_PASS;

    if (v == FILTER_PASS) {
        narrow_spec(p, e);
        show_call(p, e);
    } else if (v == FILTER_LATER && pairing_kept(p->calls)) {
        pairing_fate(p->calls, CALL_HELD);
    } else {
        pairing_fate(p->calls, v == FILTER_LATER ? CALL_HELD : CALL_FILTERED);
        count_as_hidden(p, e);
    }
}

static bool passes_filters(struct pipeline *p, const struct event *e)
{
    return !limit_reached(p) && (!p->filters || filter_event(p->filter, e, e->spec) == FILTER_PASS);
}

static void mark_answered(struct pipeline *p, const struct spec *s)
{
    for (size_t i = 0; i < s->nparts; i++)
        mark_answered(p, s->parts[i]);
    if (!s->nparts && s->number < p->o.nspecs)
        p->answered[s->number] = true;
}

static void take_traced(struct pipeline *p, struct event *e)
{
    e->spec = p->o.nspecs ? probes_find(p->probes, e) : NULL;
    if (e->spec)
        mark_answered(p, e->spec);
    if (e->ms.at < e->ms.end)
        probes_unpack(p->probes, e->spec, e);
    if (e->kind == ETW_CALL)
        probes_project(e->spec, e);
    if (unlikely(e->waited_ns > 0)) { /* restore the real time of an event that the node has held back */
        e->mono_ns = (int64_t)((uint64_t)e->mono_ns - (uint64_t)e->waited_ns);
        e->wall_ns = (int64_t)((uint64_t)e->wall_ns - (uint64_t)e->waited_ns);
    }
    pairing_event(p->calls, e);
    if (e->call && e->call->spec)
        e->spec = e->call->spec;
    if (e->kind == ETW_CALL)
        take_call(p, e);
    else if (event_is_result(e))
        take_result(p, e);
    else if (!probes_unasked(p->probes, e) && passes_filters(p, e)) {
        narrow_spec(p, e);
        show_event(p, e);
    } else {
        count_as_hidden(p, e);
    }
}

/* Appends the position in the recording to the error. Returns false. */
static bool add_position(const struct pipeline *p, struct err *e)
{
    uint64_t where = order_where(p->order);
    size_t len = strlen(e->text);

    if (where)
        snprintf(e->text + len, sizeof(e->text) - len, " in the recording's block at byte %llu",
                 (unsigned long long)where);
    return false;
}

/* Counts an event outside of the window. */
static void count_outside(struct pipeline *p, const struct event *e)
{
    if (event_is_traced(e))
        count_as_hidden(p, e);
    else if (e->tally)
        p->hidden[e->node->index].here += e->tally->seen;
}

/*
 * Advances the time of the nodes, up to the end of the window. Returns false after the limit, when no more time passes.
 */
static bool pass_time(struct pipeline *p)
{
    if (limit_reached(p))
        return false;
    order_tell_passed(p->order, p->windowed && p->o.window.begun ? p->o.window.last_ns : INT64_MAX);
    return true;
}

/* The data of one_open(), which sums up the open calls of a node. */
struct opened {
    const struct merge *merge;
    struct totals_open calls;
};

static void one_open(void *data, const struct pairing_open *call)
{
    struct opened *x = data;
    const int64_t ns = merge_node(x->merge)->passed_mono_ns - call->mono_ns;
    const struct tracee *who = merge_tracee(x->merge, call->tracee);

    if (ns < TOTALS_OPEN_NS)
        return;
    x->calls.calls++;
    if (ns <= x->calls.ns)
        return;
    x->calls.ns = ns;
    x->calls.fun = call->fun;
    x->calls.arity = call->arity;
    x->calls.who = who ? *who : (struct tracee){0};
}

static void add_open(struct totals_open *all, const struct totals_open *one)
{
    const uint64_t calls = all->calls + one->calls;

    if (one->ns > all->ns)
        *all = *one;
    all->calls = calls;
}

/* Records the open calls of a node for the totals, before they are forgotten. */
static void note_open(struct pipeline *p, unsigned node)
{
    struct opened x = {.merge = order_merge(p->order, node)};

    if (!x.merge || node >= p->nnodes)
        return;
    pass_time(p);
    if (merge_node(x.merge)->passed)
        pairing_each_open(p->calls, node, one_open, &x);
    if (x.calls.calls)
        add_open(&p->nodes[node].open, &x.calls);
}

static void tell_passed(struct pipeline *p)
{
    if (!pass_time(p))
        return;
    p->waits = false;
    for (size_t i = 0; i < p->nviews; i++)
        if (p->views[i].view.type->passed && !p->views[i].closed)
            p->waits |= p->views[i].view.type->passed(p->views[i].sink);
}

bool pipeline_waits(const struct pipeline *p)
{
    return p->waits;
}

static bool pipeline_drain(struct pipeline *p, struct err *e)
{
    struct event *ev;
    unsigned node;

    for (;;) {
        switch (order_next(p->order, &ev, &node, e)) {
        case ORDER_EVENT:
            ev->number = p->number += event_is_traced(ev);
            if (unlikely(p->windowed) && !window_takes(&p->o.window, ev)) {
                count_outside(p, ev);
            } else if (likely(event_is_traced(ev))) {
                take_traced(p, ev);
            } else {
                pairing_event(p->calls, ev);
                pipeline_own_event(p, ev);
            }
            break;
        case ORDER_ANEW:
            note_open(p, node);
            if (!p->asked_anew)
                pairing_forget(p->calls, (int)node);
            break;
        case ORDER_DRY:
            tell_passed(p);
            return true;
        case ORDER_BAD:
            return add_position(p, e);
        }
    }
}

/* Extends the tables for new nodes. Lets the views show node names if there are several nodes. */
static void meet_nodes(struct pipeline *p)
{
    size_t n = order_nodes(p->order);

    if (n == p->nnodes)
        return;
    p->nodes = mem_grow(p->nodes, &p->nodes_cap, n, sizeof(*p->nodes));
    memset(p->nodes + p->nnodes, 0, (n - p->nnodes) * sizeof(*p->nodes));
    p->hidden = mem_grow(p->hidden, &p->hidden_cap, n, sizeof(*p->hidden));
    memset(p->hidden + p->nnodes, 0, (n - p->nnodes) * sizeof(*p->hidden));
    p->nnodes = n;
    for (size_t i = 0; i < p->nviews; i++)
        p->views[i].sink->look.nodes |= n > 1;
}

/* ---- items ---- */

/* Keeps the first error. Nothing can be decoded after it. */
static void pipeline_failed(struct pipeline *p, const struct err *why)
{
    if (!p->failed)
        p->why = *why;
    p->failed = true;
}

static enum pipeline_status drain_fed(struct pipeline *p, bool good, struct err *e)
{
    if (good) {
        meet_nodes(p);
        good = pipeline_drain(p, e);
    }
    if (good && filter_errors(p->filter) > FILTER_ERRORS)
        good = err_set(e, ERR_RUN, "a regular expression of the filters took too long on %d events", FILTER_ERRORS);
    if (!good)
        pipeline_failed(p, e);
    hand_on_all(p, FLUSH);
    return current_status(p, e);
}

static void put_block(struct pipeline *p, enum etw_block_type type, unsigned node, struct str bytes)
{
    for (size_t i = 0; i < p->nviews; i++)
        if (p->views[i].view.type->checkpoint && !p->views[i].closed)
            p->views[i].view.type->checkpoint(p->views[i].sink, type, node, bytes);
}

/* Writes a checkpoint if it is time. With several nodes it takes a few batches until all have saved their states. */
static void pipeline_checkpoint(struct pipeline *p, size_t bytes)
{
    struct str state;
    size_t size;

    p->unsaved += bytes;
    p->unsaved_items++;
    if (!p->saves && p->unsaved < p->next_save && p->unsaved_items < CHECKPOINT_ITEMS)
        return;
    if (!p->saves)
        order_save(p->order);
    p->saves = true;
    if (!order_saved(p->order))
        return;
    p->saves = false;
    p->unsaved = p->unsaved_items = 0;
    buf_clear(&p->checkpoint);
    if (!order_checkpoint(p->order, buf_view(&p->request), &p->checkpoint))
        return;
    size = p->checkpoint.len;
    put_block(p, ETW_BLOCK_CHECKPOINT, 0, buf_view(&p->checkpoint));
    for (unsigned i = 0; i < order_nodes(p->order); i++)
        if (order_state(p->order, i, &state)) {
            put_block(p, ETW_BLOCK_STATE, i, state);
            size += state.len;
        }
    p->next_save = p->o.apart < CHECKPOINT_BYTES ? p->o.apart : MAX(p->o.apart, size * APART);
}

static enum pipeline_status feed_batch(struct pipeline *p, unsigned node, struct str bytes, uint64_t where,
                                       struct err *e)
{
    for (size_t i = 0; i < p->nviews && !p->failed; i++)
        if (p->views[i].view.type->batch && !p->views[i].closed)
            p->views[i].view.type->batch(p->views[i].sink, node, bytes);
    enum pipeline_status status = drain_fed(p, order_batch(p->order, node, bytes, where, e), e);
    if (p->records && !p->failed && !p->awaited_passes)
        pipeline_checkpoint(p, bytes.len);
    return status;
}

enum pipeline_status pipeline_batch(struct pipeline *p, unsigned node, struct str bytes, struct err *e)
{
    return feed_batch(p, node, bytes, 0, e);
}

enum pipeline_status pipeline_note(struct pipeline *p, unsigned node, struct str bytes, struct err *e)
{
    for (size_t i = 0; i < p->nviews && !p->failed; i++)
        if (p->views[i].view.type->note && !p->views[i].closed)
            p->views[i].view.type->note(p->views[i].sink, node, bytes);
    return drain_fed(p, order_note(p->order, node, bytes, e), e);
}

enum pipeline_status pipeline_passed(struct pipeline *p, unsigned node, int64_t mono, int64_t wall, struct err *e)
{
    p->awaited_passes = true;
    order_passed(p->order, node, mono, wall);
    return drain_fed(p, true, e);
}

void pipeline_specs(struct pipeline *p, unsigned node, struct str bytes)
{
    for (size_t i = 0; i < p->nviews; i++)
        if (p->views[i].view.type->specs && !p->views[i].closed)
            p->views[i].view.type->specs(p->views[i].sink, node, bytes);
    if (p->records && (node == 0 || !p->request.len)) {
        buf_clear(&p->request);
        buf_str(&p->request, bytes);
    }
    p->saves = false;
    order_expect(p->order, node);
    meet_nodes(p);
}

/*
 * Returns true if these specs are in use already: each node of a run repeats them, in the order in which the nodes were
 * attached. Other specs, or those of another run, end the events before them.
 */
static bool has_specs(const struct pipeline *p, struct str bytes)
{
    const struct recorded_specs *r = p->recorded_specs;

    return r && !p->run_over && r->text.len == bytes.len && !memcmp(r->text.at, bytes.at, bytes.len);
}

/* Switches to the specs of a recording, which precede the first batch that answers them. */
static bool recorded_specs(struct pipeline *p, struct str bytes, struct err *e)
{
    if (has_specs(p, bytes))
        return true;
    p->run_over = false;
    order_end(p->order);
    p->asked_anew = true;
    bool good = pipeline_drain(p, e);
    p->asked_anew = false;
    if (!good)
        return false;
    p->recorded_specs = recorded_specs_new(bytes, p->recorded_specs);
    return use_specs(p, p->recorded_specs->specs, p->recorded_specs->nspecs, e);
}

static bool restore_checkpoint(struct pipeline *p, const struct source_item *item, struct err *e)
{
    struct str request;

    return order_restore(p->order, item->bytes, &request, e) &&
           ((item->node && p->recorded_specs) || !p->own_specs || recorded_specs(p, request, e));
}

/* Restores a node from a checkpoint. The events before it count as filtered, because they are outside of the window. */
static bool restore_node(struct pipeline *p, const struct source_item *item, struct err *e)
{
    struct merge_counts c;

    if (!order_restore_node(p->order, item->node, item->bytes, e))
        return false;
    meet_nodes(p);
    merge_counts(order_merge(p->order, item->node), &c);
    p->hidden[item->node].here = c.decoded + c.tallied;
    p->number += c.decoded;
    return true;
}

enum pipeline_status pipeline_item(struct pipeline *p, const struct source_item *item, struct err *e)
{
    switch (item->type) {
    case SOURCE_BATCH:
        return feed_batch(p, item->node, item->bytes, item->offset, e);
    case SOURCE_NOTE:
        return pipeline_note(p, item->node, item->bytes, e);
    case SOURCE_SPECS:
        if ((item->node == 0 || !p->recorded_specs) && p->own_specs && !p->failed && !recorded_specs(p, item->bytes, e))
            pipeline_failed(p, e);
        pipeline_specs(p, item->node, item->bytes);
        return current_status(p, e);
    case SOURCE_FOOTER:
        p->run_over = true;
        break;
    case SOURCE_CHECKPOINT:
    case SOURCE_STATE:
        if (!p->failed && !(item->type == SOURCE_STATE ? restore_node : restore_checkpoint)(p, item, e))
            pipeline_failed(p, e);
        break;
    }
    return current_status(p, e);
}

void pipeline_flush(struct pipeline *p)
{
    hand_on_all(p, 1);
}

void pipeline_snapshot(struct pipeline *p)
{
    struct totals t = *pipeline_totals(p);

    t.missing = 0; /* such events only wait for their order, or are on their way */
    for (size_t i = 0; i < p->nviews; i++) {
        struct pipe_view *v = &p->views[i];
        if (v->closed || !(v->view.type->flags & SINK_AGAIN))
            continue;
        v->view.type->end(v->sink, &t);
        hand_on(p, v);
    }
}

void pipeline_clear_groups(struct pipeline *p)
{
    grouping_clear(p->grouping);
}

void pipeline_cut(struct pipeline *p)
{
    p->cut = true;
}

bool pipeline_end(struct pipeline *p)
{
    struct err ignored;

    if (p->ended)
        return !p->closed;
    order_end(p->order);
    if (!p->failed)
        pipeline_drain(p, &ignored);
    for (unsigned i = 0; i < p->nnodes; i++)
        note_open(p, i);
    pairing_forget(p->calls, -1);
    const struct totals *t = pipeline_totals(p);
    if (p->o.asserts)
        asserts_end(p->o.asserts, t->groups, t->ngroups);
    for (size_t i = 0; i < p->nviews; i++) {
        struct pipe_view *v = &p->views[i];
        if (v->view.type->end && !v->closed)
            v->view.type->end(v->sink, t);
        hand_on(p, v);
    }
    p->ended = true;
    return !p->closed;
}

const struct totals *pipeline_totals(struct pipeline *p)
{
    struct totals *t = &p->totals;

    t->seen = t->filtered = 0;
    t->complete = p->nnodes > 0 && !p->failed && !p->cut;
    memset(t->lost, 0, sizeof(t->lost));
    t->untraced.unknown = false;
    t->open = (struct totals_open){0};
    for (size_t i = 0; i < p->nnodes; i++) {
        const struct merge *m = order_merge(p->order, (unsigned)i);
        struct totals_node *n = &p->nodes[i];
        struct merge_counts c = {0};
        n->filtered = p->hidden[i].here + (uint64_t)MAX(p->hidden[i].there, 0);
        t->filtered += n->filtered;
        t->untraced.unknown |= p->hidden[i].untold || p->hidden[i].unknown;
        if (!m)
            continue;
        merge_counts(m, &c);
        one_rate(c.lost);
        uint64_t known_there = n->shown + n->filtered;
        t->seen += c.seen;
        for (size_t l = 0; l < ETW_LOSSES; l++) {
            t->lost[l] += c.lost[l];
            known_there += c.lost[l];
        }
        t->complete &= c.last;
        add_open(&t->open, &n->open);
        n->node = merge_node(m);
        n->seen = c.seen;
        n->missing = n->seen > known_there ? n->seen - known_there : 0;
        n->complete = c.last;
        memcpy(n->lost, c.lost, sizeof(n->lost));
    }
    t->nodes = p->nodes;
    t->nnodes = p->nnodes > 1 ? p->nnodes : 0;
    uint64_t known = t->shown + t->filtered;
    for (size_t l = 0; l < ETW_LOSSES; l++)
        known += t->lost[l];
    t->missing = t->seen > known ? t->seen - known : 0;
    t->incomplete = pairing_incomplete(p->calls) + (uint64_t)MAX(p->open_calls, 0);
    t->endless = pairing_endless(p->calls);
    t->filter_errors = filter_errors(p->filter);
    t->undecided = filter_undecided(p->filter);
    stats_sort(&p->only_counted);
    t->counted = p->only_counted.items;
    t->ncounted = p->only_counted.n;
    t->groups = grouping_tables(p->grouping, &t->ngroups);
    return t;
}

uint64_t pipeline_number(const struct pipeline *p)
{
    return p->number;
}

bool pipeline_answered(const struct pipeline *p, size_t spec)
{
    return p->counted || spec >= p->o.nspecs || p->answered[spec];
}

uint64_t pipeline_waiting(const struct pipeline *p, unsigned node)
{
    return order_waiting(p->order, node);
}

bool pipeline_holds_up(const struct pipeline *p, unsigned node)
{
    return order_holds_up(p->order, node);
}

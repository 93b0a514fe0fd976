/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline.h"

#include <stdio.h>
#include <stdlib.h>

#include "../events/notice.h"
#include "../events/order.h"
#include "../fold/pairing.h"
#include "../ground/mem.h"
#include "../views/group_grid.h"
#include "../views/line.h"
#include "assert.h"
#include "checkpoint.h"
#include "counts.h"
#include "filter.h"
#include "grouping.h"
#include "probes.h"
#include "recorded_specs.h"
#include "rejections.h"

#define FILTER_ERRORS 1000        /* the pipeline fails if regular expressions exceed their limits more often */
#define FLUSH ((size_t)256 << 10) /* a view's output is passed on as soon as it has this many bytes */

struct pipe_view {
    struct view view;
    struct sink *sink;
    struct buf out;
    bool closed;
};

/* The state of the input so far. */
enum pipeline_input {
    INPUT_GOOD,
    INPUT_CUT, /* the source failed, so events are missing at the end */
    INPUT_BAD, /* no further input can be decoded; pipeline.why is the first error */
};

/* The state of the current run of a recording. A recording may have several runs, each with its own request. */
enum pipeline_run {
    RUN_CURRENT,
    RUN_OVER,     /* the footer of the run has come, so the next request begins another run */
    RUN_DRAINING, /* another request has come; the waiting events of the run come out, and open calls may still return
                   */
};

struct pipeline {
    struct pipeline_options o;
    const struct spec *const *specs; /* the specs of the options, or of the current run of a recording */
    size_t nspecs;
    struct window window;
    struct pipe_view *views;
    size_t nviews;
    struct funs funs;
    struct order *order;
    struct probes *probes;
    struct combos *combos;
    struct pairing *calls;
    struct filter *filter; /* NULL: every event passes */
    struct rejections rejections;
    struct notice_times times; /* the durations that all nodes have tested with the filter; least_ns > most_ns: none */
    struct grouping *grouping;
    struct counts counts;
    enum pipeline_input input;
    enum pipeline_run run;
    struct err why;
    uint64_t number;  /* event.number of the last event */
    uint64_t awaited; /* number of shown calls whose result has not come */
    struct buf text;
    struct recorded_specs *recorded_specs; /* the specs of a recording, used if the options have none */
    bool *answered;                        /* answered[i]: an event has matched spec i */
    uint64_t lost[ETW_LOSSES];             /* the counters to which pipeline_own_event() points e->lost */
    enum terms_style style;
    struct checkpoints checkpoints;
    bool waits; /* a view waits for time to pass on the nodes */
    bool ended; /* pipeline_end() was called */
};

/* Returns true if the pipeline compiles its specs from the recording, because the options have none. */
static bool own_specs(const struct pipeline *p)
{
    return !p->o.nspecs;
}

static int wants_return(void *ctx, const struct event *e)
{
    return probes_wants_return(((struct pipeline *)ctx)->probes, e);
}

static void hide_dropped(void *ctx, const struct event *pipeline_call)
{
    counts_hide(&((struct pipeline *)ctx)->counts, pipeline_call);
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
        p->nviews++;
    }
    return true;
}

static bool has_view(const struct pipeline *p, unsigned flag)
{
    for (size_t i = 0; i < p->nviews; i++)
        if (p->views[i].view.type->flags & flag)
            return true;
    return false;
}

/* Returns true if a view may show a call's arguments together with its result. */
static bool shows_calls(const struct pipeline *p)
{
    for (size_t i = 0; i < p->nviews; i++)
        if (p->views[i].view.look.fields || p->views[i].view.look.format)
            return true;
    return has_view(p, SINK_CALL_ARGS);
}

/* Returns false, with an error, if --sort names no column of the tables of `by`. */
static bool tables_sort(const struct pipeline *p, struct err *e)
{
    size_t n;
    struct groups *const *tables = grouping_tables(p->grouping, &n);

    for (size_t i = 0; i < p->nviews; i++) {
        const struct view *v = &p->views[i].view;
        if (v->type->flags & SINK_ROWS && v->look.sort.given && !group_grid_check(tables, n, v->look.sort.given, e))
            return false;
    }
    return true;
}

static bool use_specs(struct pipeline *p, const struct spec *const *specs, size_t n, struct err *e)
{
    const bool replaces = own_specs(p) && p->o.by; /* --by replaces the clauses of recorded specs */

    if (!grouping_specs(p->grouping, specs, replaces ? 0 : n, e) || !tables_sort(p, e))
        return false;
    struct filter *filter =
        filter_new(p->o.greps, p->o.ngreps, p->o.wheres, p->o.nwheres, specs, n, p->style, &p->rejections, e);

    if (!filter)
        return false;
    filter_free(p->filter);
    probes_free(p->probes);
    p->filter = filter;
    if (filter_is_empty(filter)) {
        filter_free(filter);
        p->filter = NULL;
    }
    p->probes = probes_new(specs, n, p->combos);
    free(p->answered);
    p->answered = mem_zalloc((n + 1) * sizeof(*p->answered));
    p->specs = specs;
    p->nspecs = n;
    pairing_keep(p->calls, shows_calls(p) || p->filter || p->o.asserts || grouping_pairs(p->grouping));
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
    p->window = o->window;
    p->times.least_ns = INT64_MAX;
    funs_init(&p->funs);
    p->order = order_new(&p->funs);
    p->combos = combos_new();
    p->grouping = grouping_new(o->by);
    for (size_t i = 0; i < o->nviews; i++)
        if (o->views[i].look.terms != TERMS_JSON)
            p->style = o->views[i].look.terms;
    p->rejections.style = p->style;
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
    checkpoints_init(&p->checkpoints, has_view(p, SINK_RAW), o->apart);
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
    counts_release(&p->counts);
    pairing_free(p->calls);
    probes_free(p->probes);
    combos_free(p->combos);
    filter_free(p->filter);
    rejections_release(&p->rejections);
    grouping_free(p->grouping);
    funs_release(&p->funs);
    buf_release(&p->text);
    checkpoints_release(&p->checkpoints);
    recorded_specs_free(p->recorded_specs);
    free(p->answered);
    free(p);
}

/* ---- output ---- */

static void hand_on(struct pipe_view *v)
{
    if (!v->out.len)
        return;
    if (!v->closed && !v->view.write(v->view.output, &v->out))
        v->closed = true;
    v->out.len = 0;
}

static void hand_on_all(struct pipeline *p, size_t from)
{
    for (size_t i = 0; i < p->nviews; i++)
        if (p->views[i].out.len >= from)
            hand_on(&p->views[i]);
}

static bool limit_reached(const struct pipeline *p)
{
    return p->o.limit && p->counts.units >= p->o.limit;
}

/* Returns true if the output of a view is closed. */
static bool is_closed(const struct pipeline *p)
{
    for (size_t i = 0; i < p->nviews; i++)
        if (p->views[i].closed)
            return true;
    return false;
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
    if (p->input == INPUT_BAD) {
        *e = p->why;
        return PIPELINE_FAILED;
    }
    if (is_closed(p) || view_is_done(p) || p->window.over || (p->o.asserts && asserts_decided(p->o.asserts)))
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
            hand_on(v);
    }
}

/* ---- events ---- */

static void pipeline_put(struct pipeline *p, const struct event *e)
{
    counts_show(&p->counts, e);
    to_sinks(p, e);
}

static void put_around(void *ctx, const struct event *call, enum call_fate fate)
{
    struct pipeline *p = ctx;

    p->counts.hidden[call->node->index].here -= fate == CALL_FILTERED;
    p->awaited++;
    pipeline_put(p, call);
}

/* Adds an event to the tables. `before`: see grouping_event(). */
static void group_event(struct pipeline *p, const struct event *e, const struct spec *before)
{
    const struct grouping_row *rows;
    const size_t n =
        e->kind == ETW_ROW ? grouping_add_row(p->grouping, e, &rows) : grouping_event(p->grouping, e, before, &rows);

    for (size_t i = 0; p->o.asserts && i < n; i++)
        asserts_row(p->o.asserts, rows[i].table, rows[i].row);
}

/* Adds an event that passes the filters to the tables, and tests the assertions. */
static void evaluate_event(struct pipeline *p, const struct event *e)
{
    if (!grouping_is_empty(p->grouping))
        group_event(p, e, NULL);
    if (p->o.asserts)
        asserts_event(p->o.asserts, e);
}

/* Shows an event that passes the filters. Before it, shows the hidden open calls around the event, for nested views. */
static void show_event(struct pipeline *p, const struct event *e)
{
    if (p->filter && has_view(p, SINK_NESTED))
        pairing_around(p->calls, e, put_around, p);
    pipeline_put(p, e);
    evaluate_event(p, e);
}

static void show_call(struct pipeline *p, const struct event *e)
{
    if (e->expects_return) {
        p->awaited++;
        pairing_fate(p->calls, CALL_SHOWN, e->spec);
    }
    show_event(p, e);
}

/* Notes the durations that the nodes have tested, for the conditions of the probes and of the options. */
static void note_times(struct pipeline *p)
{
    if (p->times.least_ns > p->times.most_ns)
        return;
    for (size_t i = 0; i < p->nspecs; i++) {
        const struct spec *s = p->specs[i];
        rejections_add_times(&p->rejections, s->where, s->nwhere, &p->times);
        rejections_add_times(&p->rejections, s->keeps, s->nkeeps, &p->times);
    }
    rejections_add_times(&p->rejections, p->o.wheres, p->o.nwheres, &p->times);
}

/* Applies what a notice says about all later events. */
static void note_lasting(struct pipeline *p, const struct event *e)
{
    struct mfa m;

    if (notice_endless(e, &m))
        pairing_end(p->calls, (int)e->node->index, m.module, m.function, m.arity);
}

static void pipeline_own_event(struct pipeline *p, struct event *e)
{
    struct notice_times times;
    int64_t from, us;

    if (e->lost) {
        memcpy(p->lost, e->lost, sizeof(p->lost));
        counts_one_rate(p->lost);
        e->lost = p->lost;
    }
    counts_own_event(&p->counts, &p->funs, e);
    if (e->kind == ETW_ROW)
        group_event(p, e, NULL);
    if (notice_times(e, &times)) {
        p->times.least_ns = MIN(p->times.least_ns, times.least_ns);
        p->times.most_ns = MAX(p->times.most_ns, times.most_ns);
    }
    note_lasting(p, e);
    if (event_is_resumed(e))
        pairing_resume(p->calls, e->node);
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

/* Returns the verdict of all filters. */
static enum filter_verdict judge_event(struct pipeline *p, const struct event *e)
{
    return p->filter ? filter_event(p->filter, e, e->spec) : FILTER_PASS;
}

/*
 * Narrows the event's combined spec to the parts whose conditions hold or cannot be decided. Returns false, and narrows
 * nothing, if there is no such part.
 */
static bool narrow_spec(struct pipeline *p, struct event *e)
{
    const struct spec *s = e->spec;

    if (!p->filter || !s || !s->nparts)
        return true;
    bool any = false;
    bool *keep = mem_alloc(s->nparts * sizeof(*keep));
    for (size_t i = 0; i < s->nparts; i++) {
        enum filter_verdict v = filter_spec(p->filter, e, s->parts[i]);
        keep[i] = v == FILTER_PASS || v == FILTER_UNKNOWN;
        any |= keep[i];
    }
    e->spec = combos_narrow(p->combos, s, keep);
    free(keep);
    if (e->kind == ETW_CALL)
        probes_project(e->spec, e);
    return any;
}

/*
 * Narrows the spec of a result that is shown to the parts whose conditions hold, and gives this spec to the copy of the
 * call, too. If the conditions of no part hold any more, the result keeps the parts for which its call was shown.
 */
static void narrow_result(struct pipeline *p, struct event *e)
{
    const struct event_call *c = e->call;

    if (!narrow_spec(p, e) && c && c->shown)
        e->spec = c->shown;
    if (!c || !c->event || c->event->spec == e->spec || !e->spec || !e->spec->nparts)
        return;
    c->event->spec = e->spec;
    probes_project(e->spec, c->event);
}

/* Returns true if the result passes, because its call has passed or because the result decides and passes. */
static bool result_passes(struct pipeline *p, const struct event *e)
{
    const struct event_call *c = e->call;

    if (c && c->fate != CALL_HELD)
        return c->fate == CALL_SHOWN;
    if ((!c && pairing_ended(p->calls, e)) || (limit_reached(p) && !(c && c->around)))
        return false;
    return judge_event(p, e) == FILTER_PASS;
}

/* Shows a held call whose result passes. A call that was shown before counts for the parts that the result has decided.
 */
static void settle_call(struct pipeline *p, const struct event_call *c, const struct spec *spec)
{
    if (c->fate == CALL_HELD && !c->around)
        show_event(p, c->event);
    else if (c->fate == CALL_HELD)
        evaluate_event(p, c->event);
    else if (c->shown && c->shown != spec)
        group_event(p, c->event, c->shown);
}

static void take_result(struct pipeline *p, struct event *e)
{
    const struct event_call *c = e->call;
    const bool in_views = c && (c->fate == CALL_SHOWN || c->around), pass = result_passes(p, e);

    p->awaited -= in_views && p->awaited > 0;
    if (pass) {
        narrow_result(p, e);
        if (c && c->event)
            settle_call(p, c, e->spec);
        show_event(p, e);
        return;
    }
    if (in_views) {
        pipeline_put(p, e);
        return;
    }
    if (c && c->fate == CALL_HELD && c->event)
        counts_hide(&p->counts, c->event);
    counts_hide(&p->counts, e);
}

static void take_call(struct pipeline *p, struct event *e)
{
    enum filter_verdict v = limit_reached(p) ? FILTER_FAIL : judge_event(p, e);

    if (v == FILTER_PASS) {
        narrow_spec(p, e);
        show_call(p, e);
    } else if (v == FILTER_LATER && pairing_kept(p->calls)) {
        pairing_fate(p->calls, CALL_HELD, NULL);
    } else {
        pairing_fate(p->calls, v == FILTER_LATER ? CALL_HELD : CALL_FILTERED, NULL);
        counts_hide(&p->counts, e);
    }
}

static bool passes_filters(struct pipeline *p, const struct event *e)
{
    return !limit_reached(p) && judge_event(p, e) == FILTER_PASS;
}

static void mark_answered(struct pipeline *p, const struct spec *s)
{
    for (size_t i = 0; i < s->nparts; i++)
        mark_answered(p, s->parts[i]);
    if (!s->nparts && s->number < p->nspecs)
        p->answered[s->number] = true;
}

static void take_traced(struct pipeline *p, struct event *e)
{
    e->spec = p->nspecs ? probes_find(p->probes, e) : NULL;
    if (e->spec)
        mark_answered(p, e->spec);
    if (e->ms.at < e->ms.end)
        probes_unpack(p->probes, e->spec, e);
    if (e->kind == ETW_CALL)
        probes_project(e->spec, e);
    if (unlikely(e->waited_ns > 0)) { /* the node held the event back: restore the time at which it happened */
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
        counts_hide(&p->counts, e);
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

/*
 * Advances the time that the nodes have passed, at most to the end of the window. Returns false and changes nothing
 * after the limit on shown events.
 */
static bool pass_time(struct pipeline *p)
{
    if (limit_reached(p))
        return false;
    order_tell_passed(p->order, p->window.begun ? p->window.last_ns : INT64_MAX);
    return true;
}

/* Adds the open calls of a node to the counts. Call it before pairing_forget(). */
static void note_open(struct pipeline *p, unsigned node)
{
    const struct merge *merge = order_merge(p->order, node);

    if (!merge)
        return;
    pass_time(p);
    counts_open(&p->counts, merge, p->calls, node);
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
            if (unlikely(!window_is_open(&p->window)) && !window_takes(&p->window, ev)) {
                counts_outside(&p->counts, ev);
                note_lasting(p, ev);
            } else if (likely(event_is_traced(ev))) {
                take_traced(p, ev);
            } else {
                pairing_event(p->calls, ev);
                pipeline_own_event(p, ev);
            }
            break;
        case ORDER_ENDED:
            if (p->run == RUN_DRAINING) /* the run goes on with other specs */
                break;
            note_open(p, node);
            pairing_forget(p->calls, (int)node);
            break;
        case ORDER_ANEW:
            note_open(p, node);
            pairing_begin_run(p->calls, (int)node);
            counts_begin_run(&p->counts, node);
            break;
        case ORDER_DRY:
            tell_passed(p);
            return true;
        case ORDER_BAD:
            return add_position(p, e);
        }
    }
}

/* Extends the counts for new nodes. Makes the views show node names if there are several nodes. */
static void meet_nodes(struct pipeline *p)
{
    const size_t n = order_nodes(p->order);

    if (!counts_meet(&p->counts, n))
        return;
    for (size_t i = 0; i < p->nviews; i++)
        p->views[i].sink->look.nodes |= n > 1;
}

/* ---- items ---- */

/* Keeps the first error. No input is decoded after it. */
static void pipeline_failed(struct pipeline *p, const struct err *why)
{
    if (p->input != INPUT_BAD)
        p->why = *why;
    p->input = INPUT_BAD;
}

static enum pipeline_status drain_fed(struct pipeline *p, bool good, struct err *e)
{
    if (good) {
        meet_nodes(p);
        good = pipeline_drain(p, e);
    }
    if (good && p->filter && filter_errors(p->filter) > FILTER_ERRORS)
        good = err_set(e, ERR_RUN, "a regular expression of the filters took too long on %d events", FILTER_ERRORS);
    if (!good)
        pipeline_failed(p, e);
    hand_on_all(p, FLUSH);
    return current_status(p, e);
}

static void put_block(void *data, enum etw_block_type type, unsigned node, struct str bytes)
{
    struct pipeline *p = data;

    for (size_t i = 0; i < p->nviews; i++)
        if (p->views[i].view.type->checkpoint && !p->views[i].closed)
            p->views[i].view.type->checkpoint(p->views[i].sink, type, node, bytes);
}

static enum pipeline_status feed_batch(struct pipeline *p, unsigned node, struct str bytes, uint64_t where,
                                       struct err *e)
{
    for (size_t i = 0; i < p->nviews && p->input != INPUT_BAD; i++)
        if (p->views[i].view.type->batch && !p->views[i].closed)
            p->views[i].view.type->batch(p->views[i].sink, node, bytes);
    enum pipeline_status status = drain_fed(p, order_batch(p->order, node, bytes, where, e), e);
    if (p->input != INPUT_BAD)
        checkpoints_batch(&p->checkpoints, p->order, bytes.len, put_block, p);
    return status;
}

enum pipeline_status pipeline_batch(struct pipeline *p, unsigned node, struct str bytes, struct err *e)
{
    return feed_batch(p, node, bytes, 0, e);
}

enum pipeline_status pipeline_note(struct pipeline *p, unsigned node, struct str bytes, struct err *e)
{
    for (size_t i = 0; i < p->nviews && p->input != INPUT_BAD; i++)
        if (p->views[i].view.type->note && !p->views[i].closed)
            p->views[i].view.type->note(p->views[i].sink, node, bytes);
    return drain_fed(p, order_note(p->order, node, bytes, e), e);
}

enum pipeline_status pipeline_passed(struct pipeline *p, unsigned node, int64_t mono, int64_t wall, struct err *e)
{
    p->checkpoints.state = CHECKPOINT_NEVER;
    order_passed(p->order, node, mono, wall);
    return drain_fed(p, true, e);
}

void pipeline_specs(struct pipeline *p, unsigned node, struct str bytes)
{
    for (size_t i = 0; i < p->nviews; i++)
        if (p->views[i].view.type->specs && !p->views[i].closed)
            p->views[i].view.type->specs(p->views[i].sink, node, bytes);
    checkpoints_request(&p->checkpoints, node, bytes);
    order_expect(p->order, node);
    meet_nodes(p);
}

/*
 * Returns true if the specs in `bytes` are in use already, because each node of a run repeats the specs. Otherwise the
 * specs begin another run, or follow a change of the request.
 */
static bool has_specs(const struct pipeline *p, struct str bytes)
{
    const struct recorded_specs *r = p->recorded_specs;

    return r && p->run != RUN_OVER && r->text.len == bytes.len && !memcmp(r->text.at, bytes.at, bytes.len);
}

/* Switches to other specs of a recording, after all events that came before these specs. */
static bool recorded_specs(struct pipeline *p, struct str bytes, struct err *e)
{
    if (has_specs(p, bytes))
        return true;
    order_end(p->order);
    p->run = RUN_DRAINING;
    bool good = pipeline_drain(p, e);
    p->run = RUN_CURRENT;
    if (!good)
        return false;
    p->recorded_specs = recorded_specs_new(bytes, p->recorded_specs);
    p->window.held_back |= p->recorded_specs->held_back;
    return use_specs(p, p->recorded_specs->specs, p->recorded_specs->nspecs, e);
}

static bool restore_checkpoint(struct pipeline *p, const struct source_item *item, struct err *e)
{
    struct str request;

    return order_restore(p->order, item->bytes, &request, e) &&
           ((item->node && p->recorded_specs) || !own_specs(p) || recorded_specs(p, request, e));
}

/* Restores a node from a checkpoint. Earlier events count as filtered, because they are outside of the window. */
static bool restore_node(struct pipeline *p, const struct source_item *item, struct err *e)
{
    struct merge_counts c;

    if (!order_restore_node(p->order, item->node, item->bytes, e))
        return false;
    meet_nodes(p);
    merge_counts(order_merge(p->order, item->node), &c);
    p->counts.hidden[item->node].here = c.decoded + c.tallied;
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
        if ((item->node == 0 || !p->recorded_specs) && own_specs(p) && p->input != INPUT_BAD &&
            !recorded_specs(p, item->bytes, e))
            pipeline_failed(p, e);
        pipeline_specs(p, item->node, item->bytes);
        return current_status(p, e);
    case SOURCE_FOOTER:
        p->run = RUN_OVER;
        break;
    case SOURCE_CHECKPOINT:
    case SOURCE_STATE:
        if (p->input != INPUT_BAD && !(item->type == SOURCE_STATE ? restore_node : restore_checkpoint)(p, item, e))
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

    t.missing = 0; /* events that seem to be missing only wait to be ordered, or are on their way */
    for (size_t i = 0; i < p->nviews; i++) {
        struct pipe_view *v = &p->views[i];
        if (v->closed || !(v->view.type->flags & SINK_AGAIN))
            continue;
        v->view.type->end(v->sink, &t);
        hand_on(v);
    }
}

void pipeline_clear_groups(struct pipeline *p)
{
    grouping_clear(p->grouping);
}

void pipeline_cut(struct pipeline *p)
{
    if (p->input == INPUT_GOOD)
        p->input = INPUT_CUT;
}

bool pipeline_end(struct pipeline *p)
{
    struct err ignored;

    if (p->ended)
        return !is_closed(p);
    order_end(p->order);
    if (p->input != INPUT_BAD)
        pipeline_drain(p, &ignored);
    for (unsigned i = 0; i < p->counts.nnodes; i++)
        note_open(p, i);
    pairing_forget(p->calls, -1);
    note_times(p);
    const struct totals *t = pipeline_totals(p);
    if (p->o.asserts)
        asserts_end(p->o.asserts, t->groups, t->ngroups);
    for (size_t i = 0; i < p->nviews; i++) {
        struct pipe_view *v = &p->views[i];
        if (v->view.type->end && !v->closed)
            v->view.type->end(v->sink, t);
        hand_on(v);
    }
    p->ended = true;
    return !is_closed(p);
}

const struct totals *pipeline_totals(struct pipeline *p)
{
    struct totals *t = counts_totals(&p->counts, p->order, p->calls);

    t->complete &= p->input == INPUT_GOOD;
    t->filter_errors = p->filter ? filter_errors(p->filter) : 0;
    t->undecided = p->filter ? filter_undecided(p->filter) : 0;
    t->groups = grouping_tables(p->grouping, &t->ngroups);
    return t;
}

/* Returns true if a node has filtered events, so that the pipeline has not seen them. */
static bool node_filters(const struct pipeline *p)
{
    for (size_t i = 0; i < p->counts.nnodes; i++)
        if (p->counts.hidden[i].there > 0)
            return true;
    return false;
}

bool pipeline_rejection(const struct pipeline *p, size_t index, struct buf *to)
{
    return !p->counts.totals.shown && rejections_put(&p->rejections, index, node_filters(p), to);
}

bool pipeline_is_silent(const struct pipeline *p, size_t spec)
{
    return !pipeline_answered(p, spec) && !node_filters(p);
}

uint64_t pipeline_number(const struct pipeline *p)
{
    return p->number;
}

bool pipeline_answered(const struct pipeline *p, size_t spec)
{
    return p->counts.by_node || spec >= p->nspecs || p->answered[spec];
}

uint64_t pipeline_waiting(const struct pipeline *p, unsigned node)
{
    return order_waiting(p->order, node);
}

bool pipeline_holds_up(const struct pipeline *p, unsigned node)
{
    return order_holds_up(p->order, node);
}

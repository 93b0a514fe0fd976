/* SPDX-License-Identifier: Apache-2.0 */
#include "check_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../erlang/term_print.h"
#include "../events/info.h"
#include "../ground/mem.h"
#include "../views/line.h"

static const struct {
    const char *name, *probe; /* probe: the limits are in ms */
} events[CHECK_EVENTS] = {
    [CHECK_LONG_GC] = {"long_gc", "@long_gc(50)"},   [CHECK_LONG_SCHEDULE] = {"long_schedule", "@long_schedule(50)"},
    [CHECK_LARGE_HEAP] = {"large_heap", NULL}, /* its limit is in words, so it depends on the node */
    [CHECK_BUSY_PORT] = {"busy_port", "@busy_port"}, [CHECK_BUSY_DIST_PORT] = {"busy_dist_port", "@busy_dist_port"},
};

/* ---- from events to counts ---- */

/* An event, as the view passes it on. */
struct check_trace_item {
    enum check_event event;
    struct look_process process;
    char where[140];
    int64_t value; /* ms or words */
};

static void check_trace_copy(char *to, size_t size, struct buf *text)
{
    snprintf(to, size, "%s", buf_cstr(text));
    buf_release(text);
}

static void item_put_process(struct look_process *to, const struct tracee *t)
{
    snprintf(to->pid, sizeof(to->pid), "%.*s", t->text_len, t->text);
    snprintf(to->name, sizeof(to->name), "%.*s", t->name_len, t->name);
}

static int64_t heap_words(const struct event *e, const uint8_t *info)
{
    static const char *const parts[] = {"heap_block_size", "old_heap_block_size", "mbuf_size", "stack_size"};
    int64_t all = 0, n;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (info_number(e, info, parts[i], &n))
            all += n;
    return all;
}

static bool item_of_system(const struct event *e, struct check_trace_item *ret)
{
    const uint8_t *info = wire_skip(e->terms.at), *out = info_value(e, info, "out");
    struct buf where = {0};

    while (ret->event < CHECK_EVENTS && !wire_is_atom(&e->env, e->terms.at, events[ret->event].name))
        ret->event++;
    if (ret->event == CHECK_EVENTS)
        return false;
    if (ret->event == CHECK_LARGE_HEAP)
        ret->value = heap_words(e, info);
    else if (e->dur_ns >= 0)
        ret->value = e->dur_ns / 1000000;
    if (ret->event == CHECK_BUSY_PORT || ret->event == CHECK_BUSY_DIST_PORT)
        printer_erlang.term(&where, &e->env, info);
    else if (out && !wire_is_atom(&e->env, out, "undefined"))
        line_mfa(&where, e, line_printer(e, TERMS_AUTO), out);
    check_trace_copy(ret->where, sizeof(ret->where), &where);
    return true;
}

static void check_trace_event(struct sink *sink, const struct event *e)
{
    struct check_trace_item x = {0};

    if (e->kind != ETW_SYSTEM || !item_of_system(e, &x))
        return;
    item_put_process(&x.process, e->who);
    buf_add(sink->out, &x, sizeof(x));
}

static const struct sink_type check_trace_view = {
    .name = "check",
    .about = "",
    .flags = SINK_LINES | SINK_ALONE,
    .size = sizeof(struct sink),
    .event = check_trace_event,
};

static struct check_event_row *check_trace_row(struct check_trace *t, const struct check_trace_item *x)
{
    for (struct check_event_row *r = t->rows; r < t->rows + t->nrows; r++)
        if (r->event == x->event &&
            (x->process.name[0] ? !strcmp(r->process.name, x->process.name) : !strcmp(r->process.pid, x->process.pid)))
            return r;
    if (t->nrows == CHECK_EVENT_ROWS)
        return NULL;
    t->rows[t->nrows] = (struct check_event_row){.event = x->event, .process = x->process, .most = -1};
    return &t->rows[t->nrows++];
}

static void check_trace_add_event(struct check_trace *t, const struct check_trace_item *x)
{
    struct check_event_row *r = check_trace_row(t, x);

    if (!r)
        return;
    const int64_t value = x->event == CHECK_LARGE_HEAP ? x->value * t->wordsize : x->value;
    r->several |= strcmp(r->process.pid, x->process.pid) != 0;
    r->count++;
    r->sum += value;
    if (value <= r->most)
        return;
    r->most = value;
    r->process = x->process;
    snprintf(r->where, sizeof(r->where), "%s", x->where);
}

static bool check_trace_take(void *output, struct buf *bytes)
{
    struct check_trace *t = output;
    struct check_trace_item x;

    for (size_t at = 0; at + sizeof(x) <= bytes->len; at += sizeof(x)) {
        memcpy(&x, bytes->data + at, sizeof(x));
        check_trace_add_event(t, &x);
    }
    bytes->len = 0;
    return true;
}

void check_trace_batch(struct check_trace *t, const void *batch, size_t len)
{
    struct err e;

    if (!t->pipeline)
        return;
    if (pipeline_batch(t->pipeline, 0, (struct str){batch, len}, &e) == PIPELINE_FAILED)
        t->lossy = true;
    pipeline_flush(t->pipeline);
}

/* ---- the request ---- */

static void check_trace_words(struct check_trace *t)
{
    for (size_t i = 0; i < CHECK_EVENTS; i++)
        texts_add(&t->words, events[i].probe ? events[i].probe : t->heap_probe);
}

struct check_trace *check_trace_new(void)
{
    struct check_trace *t = mem_zalloc(sizeof(*t));
    struct pipeline_options options = {.views = &t->view, .nviews = 1};
    const struct texts none = {0};
    struct err e;

    t->what.builtin = true;
    t->view = (struct view){.type = &check_trace_view, .write = check_trace_take, .output = t};
    exprs_init(&t->exprs);
    snprintf(t->heap_probe, sizeof(t->heap_probe), "@large_heap(%d)", CHECK_HEAP_LEAST / 8);
    check_trace_words(t);
    if (exprs_compile(&t->exprs, &t->what, &t->words, &none, 0, &e)) {
        options.specs = t->exprs.specs;
        options.nspecs = t->exprs.count;
        t->pipeline = pipeline_new(&options, &e);
    }
    return t;
}

void check_trace_free(struct check_trace *t)
{
    if (!t)
        return;
    prepare_free(t->prepare);
    pipeline_free(t->pipeline);
    exprs_release(&t->exprs);
    texts_release(&t->words);
    free(t);
}

/* Returns true when the node traces, or has refused it. */
static bool check_trace_settle(struct check_trace *t)
{
    if (prepare_step(t->prepare) < PREPARE_DONE)
        return false;
    t->on = t->system = prepare_step(t->prepare) == PREPARE_DONE;
    if (!t->on)
        snprintf(t->why, sizeof(t->why), "%s", prepare_why(t->prepare)->text);
    t->from = t->to = loop_now();
    return true;
}

bool check_trace_begin(struct check_trace *t, struct ctx *ctx, struct session *s)
{
    const struct session_node *node = session_node(s);

    if (!t->pipeline || node->otp < 28) {
        snprintf(t->why, sizeof(t->why), "system events need OTP 28, and this node has OTP %d", node->otp);
        return false;
    }
    t->wordsize = node->wordsize;
    snprintf(t->heap_probe, sizeof(t->heap_probe), "@large_heap(%d)", CHECK_HEAP_LEAST / MAX(t->wordsize, 1));
    texts_release(&t->words);
    check_trace_words(t);
    t->prepare = prepare_new(ctx, s, &t->what, &t->words, (struct exprs_how){0});
    prepare_begin(t->prepare);
    return !check_trace_settle(t);
}

bool check_trace_reply(struct check_trace *t, const struct session_reply *reply)
{
    if (prepare_awaits(t->prepare, reply->id))
        prepare_reply(t->prepare, reply);
    return check_trace_settle(t);
}

void check_trace_end(struct check_trace *t)
{
    if (!t->on)
        return;
    pipeline_end(t->pipeline);
    const struct totals *totals = pipeline_totals(t->pipeline);
    for (size_t i = 0; i < ETW_LOSSES; i++)
        t->lossy |= totals->lost[i] > 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "check_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../erlang/term_print.h"
#include "../events/info.h"
#include "../ground/mem.h"
#include "../views/line.h"

#define NAMED_SENDERS 3 /* senders of each queue whose names are asked for */

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
    enum { ITEM_EVENT, ITEM_MESSAGE, ITEM_LOST } is;
    enum check_event event;
    struct look_process process; /* of the event, or the receiver */
    struct look_process sender;
    char where[140];
    int64_t value; /* ms or words; with ITEM_LOST, the number of messages */
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

/*
 * Names the sender of a message. The VM knows no sender of messages that come from timers, ports and other nodes. It
 * then gives the source instead of the sender's node.
 */
static void item_of_message(const struct event *e, struct check_trace_item *ret)
{
    struct buf text = {0};
    struct raw node;
    uint64_t id;

    if (e->sender && wire_pid(e->sender, &id)) {
        printer_erlang.term(&text, &e->env, e->sender);
        check_trace_copy(ret->sender.pid, sizeof(ret->sender.pid), &text);
        return;
    }
    if (!e->sender_node || !wire_atom(&e->env, e->sender_node, &node) ||
        wire_is_atom(&e->env, e->sender_node, "undefined"))
        buf_puts(&text, "ports and the VM");
    else if (wire_is_atom(&e->env, e->sender_node, "clock_service"))
        buf_puts(&text, "timers");
    else
        print_safe(&text, node);
    check_trace_copy(ret->sender.name, sizeof(ret->sender.name), &text);
}

static void check_trace_event(struct sink *sink, const struct event *e)
{
    struct check_trace_item x = {0};

    if (e->kind == ETW_LOST && e->ring != ETW_SYSTEM_RING && e->ring != ETW_META_RING) {
        x.is = ITEM_LOST;
        for (size_t i = 0; i < ETW_LOSSES; i++)
            x.value += (int64_t)e->lost[i];
    } else if (e->kind == ETW_RECEIVE) {
        x.is = ITEM_MESSAGE;
        item_of_message(e, &x);
    } else if (e->kind != ETW_SYSTEM || !item_of_system(e, &x)) {
        return;
    }
    if (x.is != ITEM_LOST)
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

static bool check_trace_is_row(const struct check_event_row *r, const struct look_process *process)
{
    return process->name[0] ? !strcmp(r->process.name, process->name) : !strcmp(r->process.pid, process->pid);
}

static struct check_event_row *check_trace_row(struct check_trace *t, enum check_event event,
                                               const struct look_process *process)
{
    struct check_event_row *least = NULL;
    size_t n = 0;

    for (struct check_event_row *r = t->rows; r < t->rows + t->nrows; r++) {
        if (r->event != event)
            continue;
        if (check_trace_is_row(r, process))
            return r;
        if (!least || r->weight < least->weight)
            least = r;
        n++;
    }
    /*
     * The new row takes over the weight of the old one (the algorithm Space-Saving), so that a process with a large
     * total keeps its row. Its count and sum begin at 0, because findings show them.
     */
    const int64_t weight = n == CHECK_EVENT_ROWS ? least->weight : 0;
    if (n == CHECK_EVENT_ROWS)
        t->crowded = t->lossy = true;
    else
        least = &t->rows[t->nrows++];
    *least = (struct check_event_row){.event = event, .process = *process, .most = -1, .weight = weight};
    return least;
}

void check_trace_count(struct check_trace *t, enum check_event event, const struct look_process *process,
                       const char *where, int64_t value)
{
    struct check_event_row *r = check_trace_row(t, event, process);

    r->several |= strcmp(r->process.pid, process->pid) != 0;
    r->count++;
    r->sum += value;
    r->weight += MAX(value, 1);
    if (value <= r->most)
        return;
    r->most = value;
    r->process = *process;
    snprintf(r->where, sizeof(r->where), "%s", where);
}

static void check_trace_add_event(struct check_trace *t, const struct check_trace_item *x)
{
    const int64_t value = x->event == CHECK_LARGE_HEAP ? x->value * t->wordsize : x->value;

    check_trace_count(t, x->event, &x->process, x->where, value);
}

static struct check_inbox *check_trace_inbox_of(struct check_trace *t, const char *pid)
{
    for (size_t i = 0; i < t->ninboxes; i++)
        if (!strcmp(t->inboxes[i].pid, pid))
            return &t->inboxes[i];
    return NULL;
}

static void check_trace_add_message(struct check_trace *t, const struct check_trace_item *x)
{
    struct check_inbox *b = check_trace_inbox_of(t, x->process.pid);

    if (!b)
        return;
    t->received++;
    b->received++;
    sender_counts_add(&b->by, &x->sender);
}

static bool check_trace_take(void *output, struct buf *bytes)
{
    struct check_trace *t = output;
    struct check_trace_item x;

    for (size_t at = 0; at + sizeof(x) <= bytes->len; at += sizeof(x)) {
        memcpy(&x, bytes->data + at, sizeof(x));
        if (x.is == ITEM_EVENT)
            check_trace_add_event(t, &x);
        else if (x.is == ITEM_MESSAGE)
            check_trace_add_message(t, &x);
        else
            t->unseen += (uint64_t)x.value;
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

/* The pipeline gets all probes, and the node those that it supports, under the same numbers. */
static void check_trace_words(struct check_trace *t, bool system, bool messages)
{
    for (size_t i = 0; i < CHECK_EVENTS; i++)
        texts_add(&t->words, !system ? NULL : events[i].probe ? events[i].probe : t->heap_probe);
    texts_add(&t->words, messages ? SENDERS_PROBE : NULL);
}

struct check_trace *check_trace_new(void)
{
    struct check_trace *t = mem_zalloc(sizeof(*t));
    struct pipeline_options options = {.views = &t->view, .nviews = 1};
    const struct texts none = {0};
    struct err e;

    t->what.builtin = t->counts = true;
    t->view = (struct view){.type = &check_trace_view, .write = check_trace_take, .output = t};
    exprs_init(&t->exprs);
    snprintf(t->heap_probe, sizeof(t->heap_probe), "@large_heap(%d)", CHECK_HEAP_LEAST / 8);
    check_trace_words(t, true, true);
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
    texts_release(&t->what.procs);
    texts_release(&t->words);
    free(t);
}

void check_trace_inbox(struct check_trace *t, const char *pid)
{
    if (t->ninboxes == CHECK_INBOXES || !t->counts)
        return;
    snprintf(t->inboxes[t->ninboxes++].pid, sizeof(t->inboxes->pid), "%s", pid);
    t->late++;
}

static void check_trace_ask(struct check_trace *t)
{
    prepare_free(t->prepare);
    t->prepare = NULL;
    texts_release(&t->words);
    texts_release(&t->what.procs);
    for (size_t i = 0; i < t->ninboxes; i++)
        if (!t->inboxes[i].to)
            texts_add(&t->what.procs, t->inboxes[i].pid);
    check_trace_words(t, t->system, t->what.procs.count > 0);
    if (!t->system && !t->what.procs.count)
        return;
    t->prepare = prepare_new(t->ctx, t->session, &t->what, &t->words, (struct exprs_how){0});
    prepare_begin(t->prepare);
}

/* Ends the counts of these inboxes. Returns true if one of them was traced. */
static bool check_trace_leave(struct check_inbox *b, size_t n)
{
    bool left = false;

    for (size_t i = 0; i < n; i++) {
        left |= !b[i].to;
        b[i].to = b[i].to ? b[i].to : loop_now();
    }
    return left;
}

void check_trace_refuse(struct check_trace *t, const char *why)
{
    for (size_t i = 0; i < t->ninboxes; i++)
        if (strstr(why, t->inboxes[i].pid) && check_trace_leave(&t->inboxes[i], 1))
            return;
    const bool left = check_trace_leave(t->inboxes + t->ninboxes - t->late, t->late);
    t->late = 0;
    if (left)
        return;
    if (t->system)
        snprintf(t->why, sizeof(t->why), "%s", why);
    t->system = check_trace_leave(t->inboxes, t->ninboxes) && t->system;
}

/* Returns true when the node traces, or has refused it. */
static bool check_trace_settle(struct check_trace *t)
{
    while (t->prepare && prepare_step(t->prepare) == PREPARE_REFUSED) {
        check_trace_refuse(t, prepare_why(t->prepare)->text);
        check_trace_ask(t);
    }
    if (t->prepare && prepare_step(t->prepare) < PREPARE_DONE)
        return false;
    if (t->system)
        t->why[0] = 0;
    t->to = loop_now();
    if (!t->on)
        t->from = t->to;
    for (size_t i = 0; i < t->ninboxes; i++)
        t->inboxes[i].from = t->inboxes[i].from ? t->inboxes[i].from : t->to;
    t->on |= t->prepare != NULL;
    t->late = 0;
    return true;
}

bool check_trace_begin(struct check_trace *t, struct ctx *ctx, struct session *s)
{
    const struct session_node *node = session_node(s);

    t->ctx = ctx;
    t->session = s;
    t->wordsize = node->wordsize;
    /* The fallback tracer is a process, and the node would send it every message completely. */
    t->counts = !node->fallback && t->pipeline;
    if (!t->counts)
        t->ninboxes = 0;
    t->late = 0;
    t->system = t->pipeline && node->otp >= 28;
    if (!t->system)
        snprintf(t->why, sizeof(t->why), "system events need OTP 28, and this node has OTP %d", node->otp);
    snprintf(t->heap_probe, sizeof(t->heap_probe), "@large_heap(%d)", CHECK_HEAP_LEAST / MAX(t->wordsize, 1));
    check_trace_ask(t);
    return !check_trace_settle(t);
}

bool check_trace_again(struct check_trace *t)
{
    if (!t->late)
        return false;
    check_trace_ask(t);
    return !check_trace_settle(t);
}

bool check_trace_reply(struct check_trace *t, const struct session_reply *reply)
{
    if (prepare_awaits(t->prepare, reply->id))
        prepare_reply(t->prepare, reply);
    return check_trace_settle(t);
}

/* ---- the names of senders ---- */

static void check_trace_sort(struct check_trace *t)
{
    for (size_t i = 0; i < t->ninboxes; i++)
        sender_counts_sort(&t->inboxes[i].by);
}

size_t check_trace_pids(struct check_trace *t, struct buf *pids)
{
    size_t n = 0;

    check_trace_sort(t);
    for (size_t i = 0; i < t->ninboxes; i++)
        for (size_t k = 0; k < MIN(t->inboxes[i].by.n, NAMED_SENDERS); k++)
            if (t->inboxes[i].by.items[k].process.pid[0]) {
                look_names_add(pids, t->inboxes[i].by.items[k].process.pid);
                n++;
            }
    return n;
}

bool check_trace_names(struct check_trace *t, struct etf names)
{
    struct look_list list = look_list(names);
    struct look_process one;

    while (look_list_next(&list, &one))
        for (size_t i = 0; i < t->ninboxes; i++)
            sender_counts_name(&t->inboxes[i].by, &one);
    return list.ok;
}

void check_trace_end(struct check_trace *t)
{
    uint64_t lost = 0;

    if (!t->on)
        return;
    pipeline_end(t->pipeline);
    const struct totals *totals = pipeline_totals(t->pipeline);
    for (size_t i = 0; i < ETW_LOSSES; i++)
        lost += totals->lost[i];
    t->lossy |= lost > t->unseen;
    check_trace_sort(t);
}

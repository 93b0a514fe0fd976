/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The perfetto view: Chrome trace event JSON, for ui.perfetto.dev and chrome://tracing.
 *
 * Nodes become processes, and Erlang processes become threads. Calls with a result and collections are slices; time
 * slices get a separate thread. A send or a receive is a slice without a length, and a flow arrow links the two if both
 * were seen. All other events are instants.
 */
#include <stdlib.h>

#include "../erlang/term_json.h"
#include "../fold/message_match.h"
#include "../fold/pairing.h"
#include "../ground/mem.h"
#include "key_text.h"
#include "missing.h"
#include "line.h"
#include "page.h"

struct perfetto {
    struct sink sink;
    struct page page;
    struct process_list processes;
    struct message_match messages;
    size_t announced;         /* number of threads whose name record was written */
    unsigned char *scheduled; /* scheduled[i]: the thread for the time slices of thread i has a name record */
    size_t nscheduled;
    bool node_named[EVENT_NODES];
    bool any;
    uint64_t flows; /* number of the last arrow */
    struct buf text;
};

static bool open_perfetto(struct sink *sink, struct err *e)
{
    (void)e;
    json_begin_object(sink->out);
    json_put_text(sink->out, "displayTimeUnit", "ns");
    json_put_array(sink->out, "traceEvents");
    return true;
}

/* Writes a time in microseconds. */
static void put_us(struct perfetto *p, const char *key, int64_t ns)
{
    json_key(p->sink.out, key);
    buf_printf(p->sink.out, "%s%lld.%03lld", ns < 0 ? "-" : "", (long long)llabs(ns / 1000),
               (long long)llabs(ns % 1000));
}

/* Begins a record. `phase` is a letter of the trace event format. */
static void sink_perfetto_begin(struct perfetto *p, const char *phase, const struct event *e, uint64_t thread,
                                int64_t at)
{
    struct buf *to = p->sink.out;

    json_next_line(to, !p->any);
    json_begin_object(to);
    json_put_text(to, "ph", phase);
    json_put_uint(to, "pid", e->node->index + 1);
    json_put_uint(to, "tid", thread);
    put_us(p, "ts", at);
    p->any = true;
}

static void begin_args(struct perfetto *p)
{
    json_put_object(p->sink.out, "args");
}

static void end_args(struct perfetto *p)
{
    json_end_object(p->sink.out);
    json_end_object(p->sink.out);
}

static void sink_perfetto_put_text(struct perfetto *p, const char *key)
{
    json_key(p->sink.out, key), page_string(p->sink.out, raw_of(buf_view(&p->text)));
}

static void name_thread(struct perfetto *p, const struct event *e, uint64_t thread, const char *member,
                        const char *behind)
{
    sink_perfetto_begin(p, "M", e, thread, 0);
    json_put_text(p->sink.out, "name", member);
    buf_puts(&p->text, behind);
    begin_args(p);
    sink_perfetto_put_text(p, "name");
    end_args(p);
}

/*
 * Returns the thread of the event's process. Writes the name record of the thread before its first event. Returns 0,
 * and counts the event as left out, if the process has no thread.
 */
static uint64_t thread_of(struct perfetto *p, const struct event *e)
{
    uint32_t number = process_list_own(&p->processes, e);
    unsigned node = e->node->index;

    if (number == PROCESS_LIST_NONE)
        return 0;
    if (!p->node_named[node]) {
        p->node_named[node] = true;
        buf_clear(&p->text);
        buf_safe(&p->text, e->node->name);
        name_thread(p, e, 0, "process_name", "");
    }
    if (number >= p->announced) {
        p->announced = number + 1u;
        buf_clear(&p->text);
        process_list_label(&p->processes, number, &p->text);
        name_thread(p, e, number * 2u + 2, "thread_name", "");
    }
    return number * UINT64_C(2) + 2;
}

static uint64_t schedule_thread(struct perfetto *p, const struct event *e, uint64_t thread)
{
    size_t number = (size_t)(thread / 2 - 1);

    if (number >= p->nscheduled) {
        size_t n = MAX(p->nscheduled * 2, number + 64);
        p->scheduled = mem_realloc(p->scheduled, n);
        memset(p->scheduled + p->nscheduled, 0, n - p->nscheduled);
        p->nscheduled = n;
    }
    if (!p->scheduled[number]) {
        p->scheduled[number] = 1;
        buf_clear(&p->text);
        process_list_label(&p->processes, (uint32_t)number, &p->text);
        name_thread(p, e, thread + 1, "thread_name", " scheduled");
    }
    return thread + 1;
}

static void put_category(struct perfetto *p, const char *category)
{
    json_put_text(p->sink.out, "cat", category);
}

static void put_line(struct perfetto *p, const struct event *e)
{
    static const struct paint plain = {false};

    begin_args(p);
    buf_clear(&p->text);
    line_event(&p->text, e, p->sink.look.terms, &plain);
    sink_perfetto_put_text(p, "event");
    end_args(p);
}

static void put_mfa(struct perfetto *p, const struct event *e)
{
    buf_clear(&p->text);
    line_fun(&p->text, e, p->sink.look.terms);
    if (e->fun) {
        buf_char(&p->text, '/');
        print_u64(&p->text, e->arity);
    }
    sink_perfetto_put_text(p, "name");
}

/* Writes a call as one slice when its result arrives. */
static void sink_perfetto_put_call(struct perfetto *p, const struct event *e, uint64_t thread, int64_t at)
{
    const struct event *call = e->call->event;
    const struct printer *printer = line_printer(e, p->sink.look.terms);
    struct raw class;
    const uint8_t *reason;

    sink_perfetto_begin(p, "X", e, thread, at - e->dur_ns);
    put_us(p, "dur", e->dur_ns);
    put_mfa(p, e);
    put_category(p, "call");
    begin_args(p);
    json_put_uint(p->sink.out, "depth", e->depth);
    if (call && event_shows_args(call)) {
        buf_clear(&p->text);
        line_args(&p->text, call, printer);
        sink_perfetto_put_text(p, "args");
    }
    buf_clear(&p->text);
    if (e->kind == ETW_RETURN_FROM) {
        printer->term(&p->text, &e->env, e->terms.at);
        sink_perfetto_put_text(p, "value");
    } else if (line_exception(e, &class, &reason)) {
        printer->atom(&p->text, class);
        buf_char(&p->text, ':');
        printer->term(&p->text, &e->env, reason);
        sink_perfetto_put_text(p, "exception");
    }
    end_args(p);
}

static void put_span(struct perfetto *p, const struct event *e, uint64_t thread, int64_t at, const char *name,
                     const char *cat)
{
    sink_perfetto_begin(p, "X", e, thread, at - e->dur_ns);
    put_us(p, "dur", e->dur_ns);
    json_put_text(p->sink.out, "name", name);
    put_category(p, cat);
    json_end_object(p->sink.out);
}

static void put_instant(struct perfetto *p, const struct event *e, uint64_t thread, int64_t at)
{
    sink_perfetto_begin(p, "i", e, thread, at);
    if (e->kind == ETW_CALL)
        put_mfa(p, e);
    else
        json_put_text(p->sink.out, "name", event_kinds[e->kind].json);
    json_put_text(p->sink.out, "s", "t");
    put_category(p, event_kinds[e->kind].json);
    put_line(p, e);
}

/* Writes a send or a receive as a slice of length zero, because a flow arrow can connect only slices. */
static void put_letter(struct perfetto *p, const struct event *e, uint64_t thread, int64_t at)
{
    struct buf *to = p->sink.out;
    uint64_t flow = 0;
    bool sent = e->kind == ETW_SEND;

    sink_perfetto_begin(p, "X", e, thread, at);
    json_put_int(to, "dur", 0);
    json_put_text(to, "name", event_kinds[e->kind].json);
    put_category(p, "message");
    put_line(p, e);
    if (sent)
        message_match_sent(&p->messages, e, flow = ++p->flows);
    else if (!message_match_received(&p->messages, e, &flow))
        return;
    sink_perfetto_begin(p, sent ? "s" : "f", e, thread, at);
    if (!sent)
        json_put_text(to, "bp", "e");
    json_put_uint(to, "id", flow);
    json_put_text(to, "name", "message");
    put_category(p, "message");
    json_end_object(to);
}

/*
 * The kinds of events that begin or end a span. The event that ends a span writes it, and the event that begins it
 * writes nothing.
 */
static const struct {
    bool begins;
    const char *name, *category;
} spans[ETW_KINDS] = {
    [ETW_GC_MINOR_START] = {.begins = true},
    [ETW_GC_MINOR_END] = {.name = "minor gc", .category = "gc"},
    [ETW_GC_MAJOR_START] = {.begins = true},
    [ETW_GC_MAJOR_END] = {.name = "major gc", .category = "gc"},
    [ETW_IN] = {.begins = true},
    [ETW_OUT] = {.name = "running", .category = "schedule"},
};

static void put_event(struct perfetto *p, const struct event *e, uint64_t thread, int64_t at)
{
    if (spans[e->kind].begins)
        return;
    if (!spans[e->kind].name)
        put_instant(p, e, thread, at);
    else if (e->dur_ns >= 0)
        put_span(p, e, e->kind == ETW_OUT ? schedule_thread(p, e, thread) : thread, at, spans[e->kind].name,
                 spans[e->kind].category);
}

static void event_perfetto(struct sink *sink, const struct event *e)
{
    struct perfetto *p = (struct perfetto *)sink;

    if (!event_is_traced(e))
        return;
    int64_t at = page_event(&p->page, e);
    uint64_t thread = thread_of(p, e);
    if (!thread)
        return;
    if (e->kind == ETW_SEND || e->kind == ETW_RECEIVE) {
        put_letter(p, e, thread, at);
    } else if (event_is_result(e)) {
        if (e->call && e->dur_ns >= 0)
            sink_perfetto_put_call(p, e, thread, at);
    } else if (e->kind != ETW_CALL || !e->expects_return) {
        put_event(p, e, thread, at);
    }
}

static void end_perfetto(struct sink *sink, const struct totals *t)
{
    struct perfetto *p = (struct perfetto *)sink;
    struct buf *to = sink->out, missing = {0};

    missing_report(&missing, t, "");
    if (p->messages.missed)
        buf_printf(&missing,
                   "*** %llu received message%s may lack the arrow: more than %u messages were unreceived ***\n",
                   (unsigned long long)p->messages.missed, PLURAL(p->messages.missed), MESSAGE_MATCH_MAX);
    process_list_missing(&p->processes, "event", &missing);
    buf_char(to, '\n');
    json_end_array(to);
    json_put_object(to, "otherData");
    json_put_text(to, "exporter", "etrace");
    page_members(&p->page, to, buf_view(&missing));
    json_end_object(to);
    json_end_record(to);
    buf_release(&missing);
}

static void release_perfetto(struct sink *sink)
{
    struct perfetto *p = (struct perfetto *)sink;

    page_release(&p->page);
    process_list_release(&p->processes);
    message_match_release(&p->messages);
    free(p->scheduled);
    buf_release(&p->text);
}

const struct sink_type sink_perfetto = {
    .name = "perfetto",
    .extensions = ".perfetto.json .json",
    .about = "all events over time, for ui.perfetto.dev and chrome://tracing",
    .without_results = "shows the calls as instants",
    .size = sizeof(struct perfetto),
    .flags = SINK_CALL_ARGS | SINK_BINARY | SINK_WHOLE,
    .open = open_perfetto,
    .event = event_perfetto,
    .end = end_perfetto,
    .release = release_perfetto,
};

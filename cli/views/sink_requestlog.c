/* SPDX-License-Identifier: Apache-2.0 */
/* The requestlog view: prints a line for each request once no further event of this request is expected. */
#include "line.h"
#include "request_each.h"
#include "request_notes.h"
#include "request_text.h"

static void put_part(struct request_view *q, struct buf *to, const char *name, int64_t ns)
{
    buf_printf(to, " %s ", name);
    paint_begin(&q->paint, to, PAINT_DURATION);
    request_put_ns(to, ns);
    paint_end(&q->paint, to);
}

static void put_open(const struct request_view *q, struct buf *to, const struct request *r)
{
    static const char *const stages[] =
        {[REQUEST_WAITS] = "still waiting", [REQUEST_RUNS] = "still running", [REQUEST_LEFT] = "unanswered"};

    if (request_may_have_ended(&q->pairs, r)) {
        buf_puts(to, ", may have ended: events were lost");
        return;
    }
    buf_printf(to, ", %s after ", stages[request_stage(&q->pairs, r)]);
    request_put_ns(to, request_age(&q->pairs, r));
}

static void put_fate(struct request_view *q, struct buf *to, const struct request *r)
{
    struct request_busy behind;

    if (request_behind(&q->pairs, r, &behind)) {
        buf_puts(to, ", behind ");
        request_view_put_busy(q, to, &behind, r->elixir);
    }
    if (r->postponed)
        buf_puts(to, ", postponed");
    if (r->replier) {
        buf_puts(to, ", replied by ");
        request_put_process(to, r->replier);
    }
    if (r->gave_up.known && !r->got.known)
        buf_puts(to, r->late ? ", timed out, late reply" : ", timed out");
    if (r->down)
        buf_puts(to, ", server ended");
    else if (!r->settled)
        put_open(q, to, r);
    if (r->given_up)
        buf_puts(to, ", given up");
}

static void on_done_line(void *ctx, struct request *r)
{
    struct request_view *q = ctx;
    struct buf *to = q->sink.out;
    struct event at = request_moment(r);

    if (!request_is_shown(&q->rows, r))
        return;
    paint_begin(&q->paint, to, PAINT_TIME);
    clock_put(&q->clock, to, &at);
    paint_end(&q->paint, to);
    buf_char(to, ' ');
    if (q->sink.look.nodes) {
        paint_str(&q->paint, to, PAINT_NODE, safe_view(r->node->name));
        buf_char(to, ' ');
    }
    paint_begin(&q->paint, to, PAINT_PID);
    if (r->caller.text_len)
        request_put_process(to, &r->caller);
    else
        buf_char(to, '-');
    if (request_is_far(r))
        buf_puts(to, " on "), buf_safe(to, r->caller_on->name);
    buf_puts(to, " -> ");
    if (r->server == REQUEST_NONE)
        buf_char(to, '-');
    else
        request_put_process(to, &q->pairs.servers[r->server].who);
    paint_end(&q->paint, to);
    buf_char(to, ' ');
    paint_begin(&q->paint, to, PAINT_FUN);
    if (r->kept)
        buf_str(to, request_kept_text(r));
    else
        buf_char(to, '-');
    paint_end(&q->paint, to);
    put_part(q, to, "waited", r->waited_ns);
    put_part(q, to, "worked", r->worked_ns);
    put_part(q, to, "reply", request_between(&r->sent, &r->got));
    put_fate(q, to, r);
    buf_char(to, '\n');
}

static bool open_requestlog(struct sink *sink, struct err *e)
{
    struct request_view *q = (struct request_view *)sink;

    (void)e;
    request_view_init(q);
    clock_init(&q->clock, sink->look.time);
    q->pairs.captured = request_keep_text;
    q->pairs.done = on_done_line;
    return true;
}

static void event_requestlog(struct sink *sink, const struct event *e)
{
    request_view_event(sink, e);
    for (enum etw_loss l = 0; e->kind == ETW_LOST && l < ETW_LOSSES; l++)
        if (e->lost[l])
            line_loss(sink->out, e, l, e->lost[l]), buf_char(sink->out, '\n');
}

static void end_requestlog(struct sink *sink, const struct totals *totals)
{
    struct request_view *q = (struct request_view *)sink;

    request_rows_open(&q->rows);
    request_pairs_end(&q->pairs);
    request_put_elsewhere(q, sink->out);
    request_put_unfollowed(q, sink->out);
    request_put_share(q, sink->out, totals);
}

const struct sink_type sink_requestlog = {
    .name = "requestlog",
    .about = "one line for each request to a server, with its times",
    .item = "request",
    .brief = "text",
    .size = sizeof(struct request_view),
    .flags = SINK_LINES | SINK_ANONYMOUS | SINK_PAIRS,
    .open = open_requestlog,
    .event = event_requestlog,
    .end = end_requestlog,
    .release = request_view_release,
};

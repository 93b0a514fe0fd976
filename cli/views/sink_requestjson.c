/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON view of requests: an object for each request, at the end one for each shape and one for what is missing. */
#include "../ground/json.h"
#include "../ground/number.h"
#include "missing.h"
#include "request_each.h"
#include "request_grid.h"
#include "request_text.h"

/* Writes a time, or nothing if it is unknown. */
static void member_us(struct buf *to, const char *key, int64_t ns)
{
    if (ns < 0)
        return;
    json_key(to, key);
    print_us(to, ns);
}

static void member_flag(struct buf *to, const char *key, bool value)
{
    if (value)
        json_put_bool(to, key, true);
}

static void member_safe(struct buf *to, const char *key, const char *text, size_t len)
{
    if (len)
        json_put_string(to, key, raw_of((struct str){text, len}));
}

static void member_key(struct request_view *q, struct buf *to, const char *name, uint32_t key, bool elixir)
{
    buf_clear(&q->cell);
    if (key)
        request_view_put_key(q, &q->cell, key, elixir);
    member_safe(to, name, q->cell.data, q->cell.len);
}

static void member_behind(struct request_view *q, struct buf *to, const struct request_busy *b, bool elixir)
{
    buf_clear(&q->cell);
    request_view_put_busy(q, &q->cell, b, elixir);
    member_safe(to, "behind", q->cell.data, q->cell.len);
}

static void on_done_json(void *ctx, struct request *r)
{
    struct request_view *q = ctx;
    struct buf *to = q->sink.out;
    struct event at = request_moment(r);
    struct request_busy behind;

    if (!request_is_shown(&q->rows, r))
        return;
    json_begin_record(to, "request");
    json_key(to, "ts"), json_open_string(to);
    clock_put_iso(&q->clock, to, &at);
    json_close_string(to);
    json_put_safe(to, "node", r->node->name);
    if (r->server != REQUEST_NONE) {
        const struct tracee *who = &q->pairs.servers[r->server].who;
        member_safe(to, "pid", who->text, who->text_len);
        member_safe(to, "name", who->name, who->name_len);
    }
    member_key(q, to, "server", request_label(&q->pairs, r), r->elixir);
    member_safe(to, "caller", r->caller.text, r->caller.text_len);
    member_safe(to, "caller_name", r->caller.name, r->caller.name_len);
    if (request_is_far(r))
        json_put_safe(to, "caller_node", r->caller_on->name);
    member_key(q, to, "shape", r->shape ? request_key_now(&q->pairs.keys, r->shape) : 0, r->elixir);
    member_safe(to, "request", request_kept_text(r).at, request_kept_text(r).len);
    member_us(to, "waited_us", r->waited_ns);
    member_us(to, "worked_us", r->worked_ns);
    member_us(to, "reply_us", request_between(&r->sent, &r->got));
    if (request_behind(&q->pairs, r, &behind))
        member_behind(q, to, &behind, r->elixir);
    buf_clear(&q->cell);
    if (r->replier)
        request_put_process(&q->cell, r->replier);
    member_safe(to, "replier", q->cell.data, q->cell.len);
    json_put_bool(to, "answered", r->direct || r->sent.known || r->got.known);
    if (!r->settled && !request_may_have_ended(&q->pairs, r))
        member_us(to, "unanswered_us", request_age(&q->pairs, r));
    member_flag(to, "may_have_ended", !r->settled && request_may_have_ended(&q->pairs, r));
    if (request_caller_seen(r))
        json_put_bool(to, "timed_out", r->gave_up.known && !r->got.known);
    member_flag(to, "late", r->late && !r->got.known);
    member_flag(to, "postponed", r->postponed);
    member_flag(to, "server_ended", r->down);
    member_flag(to, "given_up", r->given_up);
    json_end_record(to);
}

static bool open_requestjson(struct sink *sink, struct err *e)
{
    struct request_view *q = (struct request_view *)sink;

    (void)e;
    request_view_init(q);
    clock_init_iso(&q->clock);
    q->pairs.captured = request_keep_text;
    q->pairs.done = on_done_json;
    return true;
}

static void member_stat(struct buf *to, const char *key, const struct stat *t)
{
    if (!t->timed)
        return;
    json_put_object(to, key);
    json_put_uint(to, "calls", t->timed);
    member_us(to, "p50_us", (int64_t)stat_percentile(t, 50));
    member_us(to, "p99_us", (int64_t)stat_percentile(t, 99));
    member_us(to, "max_us", (int64_t)t->max_ns);
    member_us(to, "total_us", (int64_t)t->total_ns);
    json_end_object(to);
}

static void put_json_row(struct request_view *q, struct buf *to, const struct request_row *r)
{
    const struct request_wait *longest = request_row_longest(r);

    json_begin_record(to, "requests");
    if (r->node)
        json_put_safe(to, "node", r->node->name);
    member_key(q, to, "server", r->label, r->elixir);
    member_key(q, to, "shape", r->shape, r->elixir);
    json_put_uint(to, "calls", r->calls);
    member_stat(to, "waited", &r->waited);
    member_stat(to, "worked", &r->worked);
    member_stat(to, "reply", &r->reply);
    if (r->callers || r->timed_out)
        json_put_uint(to, "timed_out", r->timed_out);
    json_put_uint(to, "late", r->late);
    json_put_uint(to, "unanswered", r->open);
    member_us(to, "oldest_us", r->oldest_ns);
    if (r->uncertain)
        json_put_uint(to, "may_have_ended", r->uncertain);
    json_put_uint(to, "server_ended", r->down);
    if (request_wait_explained(longest))
        member_behind(q, to, &longest->behind, r->elixir);
    json_end_record(to);
}

static void put_json_missing(struct request_view *q, struct buf *to, const struct totals *t)
{
    json_begin_record(to, "requests_missing");
    json_put_uint(to, "elsewhere", q->rows.elsewhere + q->rows.elsewhere_open);
    json_put_uint(to, "given_up", q->pairs.overflown);
    if (q->pairs.unfollowed)
        json_put_uint(to, "not_followed", q->pairs.unfollowed);
    if (t->lost[ETW_LOST_REQUEST]) {
        json_key(to, "shown_percent");
        buf_printf(to, "%.3f", request_share(&q->pairs, t->lost[ETW_LOST_REQUEST]));
    }
    json_put_object(to, "lost");
    for (size_t l = 0; l < ETW_LOSSES; l++)
        if (t->lost[l])
            json_put_uint(to, event_losses[l], t->lost[l]);
    json_end_object(to);
    json_put_uint(to, "missing", t->missing);
    missing_json(to, t);
    json_end_record(to);
}

static void end_requestjson(struct sink *sink, const struct totals *totals)
{
    struct request_view *q = (struct request_view *)sink;
    struct request_grid x;

    request_rows_open(&q->rows);
    request_pairs_end(&q->pairs);
    request_grid_init(&x, q);
    for (size_t i = 0; i < x.grid.nrows; i++)
        put_json_row(q, sink->out, request_grid_row(&x, i));
    grid_release(&x.grid);
    put_json_missing(q, sink->out, totals);
}

const struct sink_type sink_requestjson = {
    .name = "requestjson",
    .extensions = ".json .ndjson",
    .about = "one JSON object for each request, and one for each shape",
    .item = "request",
    .brief = "json",
    .size = sizeof(struct request_view),
    .flags = SINK_LINES | SINK_ANONYMOUS | SINK_PAIRS | SINK_SORTS,
    .table = &request_table,
    .open = open_requestjson,
    .event = request_view_event,
    .end = end_requestjson,
    .release = request_view_release,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "request_view.h"

#include "request_text.h"

static void on_begun(void *ctx, struct request *r)
{
    request_rows_begun(&((struct request_view *)ctx)->rows, r);
}

static void on_settled(void *ctx, struct request *r)
{
    request_rows_settled(&((struct request_view *)ctx)->rows, r);
}

static void on_got(void *ctx, struct request *r)
{
    request_rows_got(&((struct request_view *)ctx)->rows, r);
}

static void on_gave_up(void *ctx, struct request *r)
{
    request_rows_gave_up(&((struct request_view *)ctx)->rows, r);
}

static void on_done_table(void *ctx, struct request *r)
{
    (void)ctx;
    (void)r;
}

void request_view_init(struct request_view *q)
{
    request_pairs_init(&q->pairs);
    q->pairs.ctx = q;
    q->pairs.begun = on_begun;
    q->pairs.settled = on_settled;
    q->pairs.got = on_got;
    q->pairs.gave_up = on_gave_up;
    q->pairs.done = on_done_table;
    q->rows.pairs = &q->pairs;
    q->rows.servers = q->sink.look.servers;
    if (q->rows.servers)
        q->rows.servers->used = true;
    q->paint.on = q->sink.look.colour;
}

bool request_view_open(struct sink *sink, struct err *e)
{
    (void)e;
    request_view_init((struct request_view *)sink);
    return true;
}

void request_view_event(struct sink *sink, const struct event *e)
{
    struct request_view *q = (struct request_view *)sink;

    q->rows.by_node = sink->look.nodes;
    request_pairs_event(&q->pairs, e);
}

void request_view_release(struct sink *sink)
{
    struct request_view *q = (struct request_view *)sink;

    request_rows_release(&q->rows);
    request_pairs_release(&q->pairs);
    buf_release(&q->cell);
}

bool request_view_in_elixir(const struct request_view *q, bool elixir)
{
    return q->sink.look.terms == TERMS_ELIXIR || (q->sink.look.terms != TERMS_ERLANG && elixir);
}

void request_view_put_key(const struct request_view *q, struct buf *to, uint32_t key, bool elixir)
{
    request_put_key(to, &q->pairs.keys, key, request_view_in_elixir(q, elixir));
}

void request_view_put_busy(const struct request_view *q, struct buf *to, const struct request_busy *b, bool elixir)
{
    request_put_busy(to, &q->pairs.keys, b, request_view_in_elixir(q, elixir));
}

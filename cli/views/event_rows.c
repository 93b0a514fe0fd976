/* SPDX-License-Identifier: Apache-2.0 */
#include "event_rows.h"

#include "../fold/message_match.h"
#include "../fold/pairing.h"
#include "clock.h"
#include "grid.h"
#include "line.h"

#define CUT_COLUMNS (EVENT_ROW_TEXT / 4) /* a character has at most four bytes */

struct rows {
    struct sink sink;
    struct paint paint;
    struct message_match messages;
    struct buf own, cut;
};

static bool event_rows_open(struct sink *sink, struct err *e)
{
    (void)e;
    ((struct rows *)sink)->paint.on = sink->look.colour;
    return true;
}

/*
 * Appends the head of a record, still empty. The caller appends the text, and then calls event_rows_end(). Returns the
 * offset of the record.
 */
static size_t event_rows_begin(struct rows *r)
{
    const struct event_row none = {0};
    const size_t at = r->sink.out->len;

    buf_add(r->sink.out, &none, sizeof(none));
    return at;
}

/*
 * Completes a record. Cuts a text that is longer than EVENT_ROW_TEXT. The cut keeps all colour codes, so the text may
 * still be longer, up to UINT16_MAX bytes.
 */
static void event_rows_end(struct rows *r, size_t at, const struct event_row *row)
{
    struct buf *out = r->sink.out;
    const size_t text = at + sizeof(*row);
    struct event_row head = *row;

    if (unlikely(out->len - text > EVENT_ROW_TEXT)) {
        buf_clear(&r->cut);
        grid_cut(&r->cut, (struct str){out->data + text, out->len - text}, CUT_COLUMNS);
        out->len = text;
        buf_add(out, r->cut.data, MIN(r->cut.len, (size_t)UINT16_MAX));
    }
    head.len = (uint16_t)(out->len - text);
    head.tail = (uint16_t)MIN(head.tail, head.len);
    memcpy(out->data + at, &head, sizeof(head));
}

static struct event_row event_rows_head(const struct event *e)
{
    return (struct event_row){
        .number = e->number,
        .cause = e->call ? e->call->number : 0,
        .who = e->who ? e->who->id : 0,
        .wall_ns = e->wall_ns,
        .steady_ns = clock_steady(e),
        .dur_ns = event_is_traced(e) ? e->dur_ns : -1,
        .node = (uint16_t)e->node->index,
        .kind = e->kind,
        .own = !event_is_traced(e),
        .returns = e->kind == ETW_CALL && e->expects_return,
    };
}

/* Writes a record for each line of line_own(). A loss has a line for each of its reasons. */
static void event_rows_own(struct rows *r, const struct event *e)
{
    const struct event_row row = event_rows_head(e);

    buf_clear(&r->own);
    line_own(&r->own, e, &r->sink.look, &r->paint);
    for (const char *at = r->own.data, *end = at + r->own.len, *stop; at < end; at = stop + 1) {
        const size_t record = event_rows_begin(r);
        stop = memchr(at, '\n', (size_t)(end - at));
        buf_add(r->sink.out, at, (size_t)(stop - at));
        event_rows_end(r, record, &row);
    }
}

/* Remembers a sent message. For a received message, returns the number of the event that sent it; 0: unknown. */
static uint64_t event_rows_sent(struct rows *r, const struct event *e)
{
    uint64_t number = 0;

    if (e->kind == ETW_SEND)
        message_match_sent(&r->messages, e, e->number);
    else if (e->kind == ETW_RECEIVE)
        message_match_received(&r->messages, e, &number);
    return number;
}

static void event_rows_event(struct sink *s, const struct event *e)
{
    struct rows *r = (struct rows *)s;

    if (unlikely(!event_is_traced(e))) {
        event_rows_own(r, e);
        return;
    }
    struct event_row row = event_rows_head(e);
    const size_t record = event_rows_begin(r), text = record + sizeof(row);
    line_place(s->out, e, s->look.nodes, &r->paint);
    if (event_is_result(e)) {
        line_result_head(s->out, e, s->look.terms, &r->paint);
        row.tail = (uint16_t)MIN(s->out->len - text, (size_t)UINT16_MAX);
        line_result_tail(s->out, e, s->look.terms, &r->paint);
    } else {
        line_body(s->out, e, s->look.terms, &r->paint);
        row.cause = event_rows_sent(r, e);
    }
    event_rows_end(r, record, &row);
}

static void event_rows_release(struct sink *s)
{
    struct rows *r = (struct rows *)s;

    message_match_release(&r->messages);
    buf_release(&r->own);
    buf_release(&r->cut);
}

bool event_rows_next(struct str *rest, struct event_row *ret, struct str *ret_text)
{
    if (rest->len < sizeof(*ret))
        return false;
    memcpy(ret, rest->at, sizeof(*ret));
    *ret_text = (struct str){rest->at + sizeof(*ret), ret->len};
    const size_t all = sizeof(*ret) + ret->len;
    *rest = (struct str){rest->at + all, rest->len - all};
    return true;
}

const struct sink_type event_rows = {
    .name = "rows",
    .about = "a record for each event, for a list on the terminal",
    .flags = SINK_LINES,
    .size = sizeof(struct rows),
    .open = event_rows_open,
    .event = event_rows_event,
    .release = event_rows_release,
};

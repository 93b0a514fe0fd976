/* SPDX-License-Identifier: Apache-2.0 */
#include "event_page.h"

#include "../fold/pairing.h"
#include "line.h"

/* Limit for the open calls that are shown, the outermost first; deeper calls are only counted. */
#define OPEN_MOST 200
#define OPEN_TEXT 512

struct open {
    uint64_t number;
    size_t end; /* end of the line of the call in `texts` */
};

struct event_page {
    struct sink sink;
    struct paint plain;
    struct open open[OPEN_MOST];
    struct buf texts; /* the lines of the open calls */
    size_t depth;     /* number of open calls; only the first OPEN_MOST are in `open` */
    bool found;
};

/* ---- the open calls ---- */

static void event_page_enter(struct event_page *p, const struct event *e)
{
    if (p->depth < OPEN_MOST) {
        const size_t from = p->texts.len;
        line_event(&p->texts, e, p->sink.look.terms, &p->plain);
        if (p->texts.len - from > OPEN_TEXT) {
            p->texts.len = from + OPEN_TEXT;
            while ((p->texts.data[p->texts.len] & 0xc0) == 0x80)
                p->texts.len--;
            buf_puts(&p->texts, "…");
        }
        buf_char(&p->texts, '\n');
        p->open[p->depth] = (struct open){e->number, p->texts.len};
    }
    p->depth++;
}

/* Removes the call with this number and the calls inside of it, whose results were lost. */
static void event_page_leave(struct event_page *p, uint64_t number)
{
    const size_t known = MIN(p->depth, OPEN_MOST);
    size_t at = known;

    while (at && p->open[at - 1].number != number)
        at--;
    if (at)
        p->depth = at - 1;
    else if (p->depth > OPEN_MOST)
        p->depth--;
    p->texts.len = p->depth && p->depth <= OPEN_MOST ? p->open[p->depth - 1].end : p->depth ? p->texts.len : 0;
}

static void event_page_around(struct event_page *p)
{
    struct buf *to = p->sink.out;

    buf_puts(to, "\n");
    if (!p->depth) {
        buf_puts(to, "No call of this process is known to be open around it.\n");
        return;
    }
    buf_puts(to, "Open around it in this process, outermost first:\n");
    buf_str(to, buf_view(&p->texts));
    if (p->depth > OPEN_MOST)
        buf_printf(to, "… and %zu deeper calls\n", p->depth - OPEN_MOST);
}

/* ---- the event ---- */

static void event_page_line(struct event_page *p, const struct event *e)
{
    line_event(p->sink.out, e, p->sink.look.terms, &p->plain);
    buf_char(p->sink.out, '\n');
}

static void event_page_result(struct event_page *p, const struct event *e)
{
    event_page_line(p, e);
    event_page_around(p);
    p->sink.done = true;
}

static void event_page_begin(struct event_page *p, const struct event *e)
{
    const struct event_call *call = e->call;

    p->found = true;
    line_place(p->sink.out, e, p->sink.look.nodes, &p->plain);
    line_who(p->sink.out, e, &p->plain);
    buf_puts(p->sink.out, "\n\n");
    if (call && call->event)
        event_page_line(p, call->event);
    if (event_is_result(e)) {
        if (call)
            event_page_leave(p, call->number);
        event_page_result(p, e);
        return;
    }
    event_page_line(p, e);
    if (e->kind == ETW_CALL && e->expects_return)
        return;
    event_page_around(p);
    p->sink.done = true;
}

static void event_page_event(struct sink *s, const struct event *e)
{
    struct event_page *p = (struct event_page *)s;
    const struct event_sought *sought = s->look.sought;

    if (s->done || !event_is_traced(e))
        return;
    if (p->found && e->number - sought->number > sought->patience) {
        event_page_around(p);
        s->done = true;
    } else if (e->number == sought->number) {
        event_page_begin(p, e);
    } else if (p->found && e->call && e->call->number == sought->number) {
        event_page_result(p, e);
    } else if (!p->found && e->who->id == sought->who && e->node->index == sought->node) {
        if (e->kind == ETW_CALL && e->expects_return)
            event_page_enter(p, e);
        else if (event_is_result(e) && e->call)
            event_page_leave(p, e->call->number);
    }
}

static void event_page_end(struct sink *s, const struct totals *t)
{
    struct event_page *p = (struct event_page *)s;

    (void)t;
    if (p->found && !s->done)
        event_page_around(p);
}

static void event_page_release(struct sink *s)
{
    buf_release(&((struct event_page *)s)->texts);
}

const struct sink_type event_page = {
    .name = "event",
    .about = "one event with all its terms",
    .flags = SINK_CALL_ARGS,
    .size = sizeof(struct event_page),
    .event = event_page_event,
    .end = event_page_end,
    .release = event_page_release,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* The text view: one readable line for each event. --fields and --format change the line. */
#include "../events/notice.h"
#include "../lang/spec.h"
#include "clock.h"
#include "fields.h"
#include "line.h"
#include "missing.h"

struct text {
    struct sink sink;
    struct clock clock;
    struct paint paint;
    struct fields *fields; /* NULL: the default line */
};

static bool open_text(struct sink *sink, struct err *e)
{
    struct text *t = (struct text *)sink;
    const struct look *look = &sink->look;

    t->paint.on = look->colour;
    clock_init(&t->clock, look->time);
    if (look->format)
        t->fields = fields_format(look->format, e);
    else if (look->fields)
        t->fields = fields_list(look->fields, e);
    return t->fields || (!look->format && !look->fields);
}

/* Prints losses and notices with stars and without a time, so that nobody mistakes them for events. */
static void sink_text_own_event(struct text *t, const struct event *e)
{
    struct buf *to = t->sink.out;
    struct notice_tokens tokens;

    if (e->kind == ETW_LOST) {
        for (enum etw_loss l = 0; l < ETW_LOSSES; l++) {
            if (!e->lost[l])
                continue;
            paint_begin(&t->paint, to, PAINT_LOSS);
            line_loss(to, e, l, e->lost[l]);
            paint_end(&t->paint, to);
            if (t->sink.look.nodes) {
                buf_char(to, ' ');
                buf_safe(to, e->node->name);
            }
            buf_char(to, '\n');
        }
    } else if (e->kind == ETW_NOTICE && !event_is_expected(e) && !notice_tokens(e, &tokens)) {
        /* Trace tokens are reported at the end of the output. */
        paint_begin(&t->paint, to, PAINT_LOSS);
        buf_puts(to, "*** ");
        line_notice(to, e, t->sink.look.terms);
        buf_puts(to, " ***");
        paint_end(&t->paint, to);
        if (t->sink.look.nodes) {
            buf_char(to, ' ');
            buf_safe(to, e->node->name);
        }
        buf_char(to, '\n');
    } else if (e->kind == ETW_DOWN || e->kind == ETW_UP) {
        paint_begin(&t->paint, to, PAINT_LOSS);
        line_node(to, e);
        paint_end(&t->paint, to);
        buf_char(to, '\n');
    }
}

static void event_text(struct sink *s, const struct event *e)
{
    struct text *t = (struct text *)s;
    struct buf *to = s->out;

    if (unlikely(!event_is_traced(e))) {
        sink_text_own_event(t, e);
        return;
    }
    if (unlikely(t->fields)) {
        fields_line(t->fields, to, &t->clock, e, s->look.terms);
        buf_char(to, '\n');
        return;
    }
    buf_room(to, 256);
    paint_begin(&t->paint, to, PAINT_TIME);
    clock_put(&t->clock, to, e);
    paint_end(&t->paint, to);
    buf_char(to, ' ');
    if (s->look.nodes) {
        paint_str(&t->paint, to, PAINT_NODE, safe_view(e->node->name));
        buf_char(to, ' ');
    }
    if (unlikely(e->spec && e->spec->label.len)) {
        paint_begin(&t->paint, to, PAINT_KIND);
        buf_char(to, '[');
        buf_safe(to, e->spec->label);
        buf_puts(to, "] ");
        paint_end(&t->paint, to);
    }
    line_body(to, e, s->look.terms, &t->paint);
    buf_char(to, '\n');
}

static void end_text(struct sink *s, const struct totals *t)
{
    missing_counted(s->out, t, "");
}

static void release_text(struct sink *s)
{
    fields_free(((struct text *)s)->fields);
}

const struct sink_type sink_text = {
    .name = "text",
    .extensions = ".txt .log",
    .about = "one line for each event",
    .size = sizeof(struct text),
    .flags = SINK_LINES | SINK_ALONE | SINK_FIELDS | SINK_FORMAT,
    .open = open_text,
    .event = event_text,
    .end = end_text,
    .release = release_text,
};

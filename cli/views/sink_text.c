/* SPDX-License-Identifier: Apache-2.0 */
/* The text view: one readable line for each event. --fields and --format change the line. */
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

static void event_text(struct sink *s, const struct event *e)
{
    struct text *t = (struct text *)s;
    struct buf *to = s->out;

    if (unlikely(!event_is_traced(e))) {
        line_own(to, e, &s->look, &t->paint);
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
    line_place(to, e, s->look.nodes, &t->paint);
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

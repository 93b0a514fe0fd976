/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The csv view: columns for spreadsheets (RFC 4180); .tsv separates them with tabs. The rows of losses have the type
 * `lost`.
 */
#include "../erlang/term_print.h"
#include "../fold/stats.h"
#include "fields.h"
#include "line.h"

#define COLUMNS "ts,node,pid,name,type,m,f,a,args,value,class,reason,dur_us,to,from,msg,count"

struct csv {
    struct sink sink;
    struct fields *fields;
    struct clock clock;
    bool special[256]; /* bytes that need quotes */
    char between;
};

/* Puts quotes around the cell that begins at `from`, and doubles the quotes in it. */
static void quote_cell(struct buf *to, size_t from)
{
    size_t len = to->len - from, quotes = 0;

    for (const char *at = to->data + from, *end = at + len; (at = memchr(at, '"', (size_t)(end - at))); at++)
        quotes++;
    buf_room(to, quotes + 2);
    to->len += quotes + 2;
    char *cell = to->data + from, *write = to->data + to->len;
    *--write = '"';
    for (size_t i = len; i-- > 0 && quotes;) {
        *--write = cell[i];
        if (cell[i] == '"')
            *--write = '"', quotes--;
    }
    if (write > cell + 1)
        memmove(cell + 1, cell, (size_t)(write - cell - 1));
    *cell = '"';
}

/*
 * Finishes the cell that begins at `from`: removes leading spaces, which only align lines, and adds quotes if needed.
 */
static void end_cell(struct csv *c, size_t from)
{
    struct buf *to = c->sink.out;
    char *at = to->data + from;
    size_t spaces = 0, len = to->len - from;
    unsigned special = 0;

    while (spaces < len && at[spaces] == ' ')
        spaces++;
    if (unlikely(spaces)) {
        memmove(at, at + spaces, len -= spaces);
        to->len -= spaces;
    }
    for (const char *end = at + len; at < end; at++)
        special |= c->special[(unsigned char)*at];
    if (special)
        quote_cell(to, from);
}

static bool open_separated(struct sink *sink, struct err *e, char between)
{
    struct csv *c = (struct csv *)sink;
    const struct look *look = &sink->look;
    struct buf *out = sink->out;
    struct fields *f = fields_list(look->fields ? look->fields : COLUMNS, e);

    if (!f)
        return false;
    c->fields = f;
    c->between = between;
    c->special['"'] = c->special[','] = c->special['\n'] = c->special['\r'] = c->special[(unsigned char)between] = true;
    clock_init(&c->clock, look->time);
    for (size_t i = 0; i < fields_count(f) && !look->append; i++) {
        if (i)
            buf_char(out, between);
        buf_puts(out, fields_name(f, i));
    }
    if (!look->append)
        buf_char(out, '\n');
    return true;
}

static bool open_csv(struct sink *sink, struct err *e)
{
    return open_separated(sink, e, ',');
}

static bool open_tsv(struct sink *sink, struct err *e)
{
    return open_separated(sink, e, '\t');
}

/* Writes a row for a loss. If no column identifies the row as a loss, the first column describes the loss in words. */
static void put_loss(struct csv *c, const struct event *e, enum etw_loss reason)
{
    size_t n = fields_count(c->fields), start = c->sink.out->len;
    bool said = false;

    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_char(c->sink.out, c->between);
        size_t from = c->sink.out->len;
        said |= fields_put_loss(c->fields, i, c->sink.out, e, reason);
        if (c->sink.out->len > from && !fields_is_plain(c->fields, i))
            end_cell(c, from);
    }
    if (!said) {
        c->sink.out->len = start;
        line_loss(c->sink.out, e, reason, e->lost[reason]);
        for (size_t i = 1; i < n; i++)
            buf_char(c->sink.out, c->between);
    }
    buf_char(c->sink.out, '\n');
}

static void event_csv(struct sink *s, const struct event *e)
{
    struct csv *c = (struct csv *)s;
    size_t n = fields_count(c->fields);

    if (e->kind == ETW_LOST) {
        for (enum etw_loss l = 0; l < ETW_LOSSES; l++) {
            if (!e->lost[l])
                continue;
            put_loss(c, e, l);
        }
        return;
    }
    if (!event_is_traced(e))
        return;
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_char(s->out, c->between);
        size_t from = s->out->len;
        fields_put(c->fields, i, s->out, &c->clock, e, s->look.terms);
        if (s->out->len > from && !fields_is_plain(c->fields, i))
            end_cell(c, from);
    }
    buf_char(s->out, '\n');
}

static void put_column(struct csv *c, size_t column, const struct stat *t)
{
    enum property field = fields_property(c->fields, column);
    struct buf *to = c->sink.out;

    if (field == PROPERTY_type)
        buf_puts(to, t->estimated ? "estimated" : "only_counted");
    else if (field == PROPERTY_count)
        print_u64(to, t->only_counted);
    else if (field == PROPERTY_m && t->fun)
        print_safe(to, t->fun->module);
    else if (field == PROPERTY_f && t->fun)
        print_safe(to, t->fun->name);
    else if (field == PROPERTY_a && t->fun)
        print_u64(to, t->arity);
}

/* Writes a row for each function whose calls were only counted, if one of the columns is the type of a row. */
static void end_csv(struct sink *s, const struct totals *totals)
{
    struct csv *c = (struct csv *)s;
    bool typed = false;

    for (size_t i = 0; i < fields_count(c->fields); i++)
        typed |= fields_property(c->fields, i) == PROPERTY_type;
    for (size_t k = 0; typed && k < totals->ncounted; k++) {
        for (size_t i = 0; i < fields_count(c->fields); i++) {
            if (i)
                buf_char(s->out, c->between);
            size_t from = s->out->len;
            put_column(c, i, &totals->counted[k]);
            if (s->out->len > from)
                end_cell(c, from);
        }
        buf_char(s->out, '\n');
    }
}

static void release_csv(struct sink *s)
{
    fields_free(((struct csv *)s)->fields);
}

const struct sink_type sink_csv = {
    .name = "csv",
    .extensions = ".csv",
    .about = "columns of --fields, separated by commas",
    .size = sizeof(struct csv),
    .flags = SINK_LINES | SINK_ALONE | SINK_CALL_ARGS | SINK_FIELDS,
    .open = open_csv,
    .event = event_csv,
    .end = end_csv,
    .release = release_csv,
};

const struct sink_type sink_tsv = {
    .name = "tsv",
    .extensions = ".tsv",
    .about = "columns of --fields, separated by tabs",
    .size = sizeof(struct csv),
    .flags = SINK_LINES | SINK_ALONE | SINK_CALL_ARGS | SINK_FIELDS,
    .open = open_tsv,
    .event = event_csv,
    .end = end_csv,
    .release = release_csv,
};

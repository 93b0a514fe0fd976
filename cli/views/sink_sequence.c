/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sequence view: messages, spawns and exits as a sequence diagram, in Mermaid syntax (.mmd) or as a self-contained
 * page (.html). Keeps at most the first ROWS_MAX rows.
 */
#include <stdlib.h>

#include "../erlang/term_print.h"
#include "../events/info.h"
#include "../fold/message_match.h"
#include "../ground/mem.h"
#include "key_text.h"
#include "missing.h"
#include "line.h"
#include "page.h"
#include "page_parts.h"

#define ROWS_MAX 200000
#define TEXT_MAX ((size_t)64 << 20) /* limit for the bytes of all texts */
#define MESSAGE_TEXT 240            /* limit for the bytes of a message that are shown; a character is never cut */
#define NOBODY PROCESS_LIST_NONE    /* a process without a lane, or an unknown one */

enum row_kind { ROW_MESSAGE, ROW_SPAWN, ROW_EXIT };

struct row {
    int64_t at, arrived; /* when the message was sent and when it arrived, on the axis; -1: not seen */
    uint32_t from, to;   /* process numbers */
    uint32_t text, text_len;
    uint32_t where; /* length of the part of the text that names the receiver; used only if `to` is NOBODY */
    uint8_t kind;
};

struct sequence {
    struct sink sink;
    struct page page;
    struct process_list processes;
    struct message_match messages;
    struct row *rows;
    size_t n, cap;
    uint64_t left_out;
    struct buf texts, line;
};

static struct row *sink_sequence_add(struct sequence *s, struct row row, struct str text)
{
    if (s->n == ROWS_MAX || s->texts.len > TEXT_MAX) {
        s->left_out++;
        return NULL;
    }
    s->rows = mem_grow(s->rows, &s->cap, s->n + 1, sizeof(*s->rows));
    row.text = (uint32_t)s->texts.len;
    row.text_len = (uint32_t)text.len;
    buf_str(&s->texts, text);
    s->rows[s->n] = row;
    return &s->rows[s->n++];
}

/* Cuts the text after `from` to MESSAGE_TEXT bytes, and appends an ellipsis. */
static void shorten_text(struct buf *text, size_t from)
{
    size_t len = from + MESSAGE_TEXT;

    if (text->len <= len)
        return;
    while (len > from && ((unsigned char)text->data[len] & 0xc0) == 0x80)
        len--;
    text->len = len;
    buf_puts(text, "…");
}

/* Appends the message of a send or receive event. */
static void put_message(struct sequence *s, const struct event *e)
{
    const size_t from = s->line.len;
    const uint8_t *message = e->kind == ETW_RECEIVE ? e->terms.at : wire_skip(e->terms.at);

    line_printer(e, s->sink.look.terms)->term(&s->line, &e->env, message);
    shorten_text(&s->line, from);
}

/* Returns the number of the process that a term names; NOBODY: the term is not a process of this node. */
static uint32_t other_process(struct sequence *s, const struct event *e, const uint8_t *at)
{
    uint64_t id;

    return at && wire_pid(at, &id) ? process_list_number(&s->processes, e, id, event_who(e, id)) : NOBODY;
}

static void add_sent(struct sequence *s, const struct event *e, uint32_t self, int64_t at)
{
    struct row row = {.at = at,
                      .arrived = -1,
                      .from = self,
                      .to = other_process(s, e, e->terms.at),
                      .kind = ROW_MESSAGE};
    size_t n = s->n;

    buf_clear(&s->line);
    if (row.to == NOBODY) { /* sent to a name, or to another node */
        buf_puts(&s->line, "to ");
        line_printer(e, s->sink.look.terms)->term(&s->line, &e->env, e->terms.at);
        buf_puts(&s->line, ": ");
    }
    shorten_text(&s->line, 0);
    row.where = (uint32_t)s->line.len;
    put_message(s, e);
    if (sink_sequence_add(s, row, buf_view(&s->line)) && e->kind == ETW_SEND)
        message_match_sent(&s->messages, e, n);
}

static void add_received(struct sequence *s, const struct event *e, uint32_t self, int64_t at)
{
    struct row row = {.at = -1, .arrived = at, .from = other_process(s, e, e->sender), .to = self, .kind = ROW_MESSAGE};
    uint64_t n;

    if (message_match_received(&s->messages, e, &n)) {
        s->rows[n].arrived = at;
        s->rows[n].to = self;
        return;
    }
    buf_clear(&s->line);
    put_message(s, e);
    sink_sequence_add(s, row, buf_view(&s->line));
}

/*
 * Adds a message that carried a trace token. The tuple of the seq_trace event has the receiver and the message in the
 * same order as a send event.
 */
static void add_passed(struct sequence *s, const struct event *e, int64_t at)
{
    struct event message = *e;
    struct seq_info info;

    if (!e->who || !seq_info_read(e, wire_skip(e->terms.at), &info) || info.prints)
        return;
    uint32_t self = process_list_own(&s->processes, e);
    if (self == NOBODY)
        return;
    if (info.receives) {
        message.kind = ETW_RECEIVE;
        message.terms.at = info.msg;
        message.sender = info.from;
        add_received(s, &message, self, at);
    } else {
        message.kind = ETW_SEND;
        message.terms.at = info.to;
        add_sent(s, &message, self, at);
    }
}

static void add_life(struct sequence *s, const struct event *e, uint32_t self, int64_t at)
{
    const struct printer *p = line_printer(e, s->sink.look.terms);
    bool spawns = e->kind == ETW_SPAWN;

    buf_clear(&s->line);
    if (spawns)
        line_mfa(&s->line, e, p, wire_skip(e->terms.at));
    else
        p->term(&s->line, &e->env, e->terms.at);
    shorten_text(&s->line, 0);
    sink_sequence_add(s,
                      (struct row){.at = at,
                                   .arrived = at,
                                   .from = self,
                                   .to = spawns ? other_process(s, e, e->terms.at) : self,
                                   .kind = spawns ? ROW_SPAWN : ROW_EXIT},
                      buf_view(&s->line));
}

/* Adds a row for a message, for an event of sequential tracing, and for the begin and the end of a process. */
static void event_sequence(struct sink *sink, const struct event *e)
{
    struct sequence *s = (struct sequence *)sink;

    if (!event_is_traced(e))
        return;
    int64_t at = page_event(&s->page, e);
    if (e->kind == ETW_SEQ_TRACE) {
        add_passed(s, e, at);
        return;
    }
    bool sends = event_kinds[e->kind].layout == ETW_LAYOUT_EXTRA_TERM;
    if (!sends && e->kind != ETW_RECEIVE && e->kind != ETW_SPAWN && e->kind != ETW_EXIT)
        return;
    uint32_t self = process_list_own(&s->processes, e);
    if (self == NOBODY)
        return;
    if (sends)
        add_sent(s, e, self, at);
    else if (e->kind == ETW_RECEIVE)
        add_received(s, e, self, at);
    else
        add_life(s, e, self, at);
}

static struct str text_of(const struct sequence *s, const struct row *r)
{
    uint32_t skip = r->to == NOBODY ? 0 : r->where;

    return (struct str){s->texts.data + r->text + skip, r->text_len - skip};
}

static void put_missing(struct sequence *s, struct buf *to, const struct totals *t)
{
    missing_report(to, t, "");
    if (s->left_out)
        buf_printf(to, "*** %llu left out: only the first %zu are kept ***\n", (unsigned long long)s->left_out, s->n);
    process_list_missing(&s->processes, "event", to);
}

/* ---- Mermaid ---- */

/* Writes text, with the special characters of Mermaid as entities. */
static void put_mermaid(struct buf *to, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c == '<' || c == '>')
            buf_puts(to, c == '<' ? "#lt;" : "#gt;");
        else if (c == '#' || c == ';' || c == '%')
            buf_printf(to, "#%u;", (unsigned)(unsigned char)c);
        else
            buf_char(to, c == '\n' ? ' ' : c);
    }
}

static void sink_sequence_put_who(struct buf *to, uint32_t number)
{
    if (number == NOBODY)
        buf_puts(to, "other");
    else
        buf_printf(to, "p%u", number + 1);
}

static void sink_sequence_put_text(struct sequence *s, const struct totals *t)
{
    struct buf *to = s->sink.out, missing = {0};
    put_missing(s, &missing, t);
    bool nobody = missing.len && !s->processes.n;
    buf_puts(to, "sequenceDiagram\n");
    for (uint32_t i = 0; i < s->processes.n; i++) {
        buf_clear(&s->line);
        process_list_label(&s->processes, i, &s->line);
        buf_printf(to, "    participant p%u as ", i + 1);
        put_mermaid(to, buf_view(&s->line));
        buf_char(to, '\n');
    }
    for (size_t i = 0; i < s->n; i++)
        nobody |= s->rows[i].from == NOBODY || s->rows[i].to == NOBODY;
    buf_puts(to, nobody ? "    participant other as (elsewhere)\n" : "");
    for (size_t i = 0; i < s->n; i++) {
        const struct row *r = &s->rows[i];
        buf_puts(to, "    ");
        if (r->kind == ROW_EXIT)
            buf_puts(to, "Note over ");
        sink_sequence_put_who(to, r->from);
        if (r->kind != ROW_EXIT) {
            /*
             * A solid arrow head means that the message was seen on both sides, an open head that it was seen on one
             * side.
             */
            buf_puts(to, r->kind == ROW_SPAWN ? "-->>" : r->at >= 0 && r->arrived >= 0 ? "->>" : "-)");
            sink_sequence_put_who(to, r->to);
        }
        buf_puts(to, r->kind == ROW_EXIT ? ": exit " : r->kind == ROW_SPAWN ? ": spawn " : ": ");
        put_mermaid(to, text_of(s, r));
        buf_char(to, '\n');
    }
    if (missing.len) {
        buf_puts(to, s->processes.n ? "    Note over p1: " : "    Note over other: ");
        buf_clear(&s->line);
        page_missing(buf_view(&missing), &s->line, ", ");
        put_mermaid(to, buf_view(&s->line));
        buf_char(to, '\n');
    }
    buf_release(&missing);
}

/* ---- the page ---- */

static void put_page(struct sequence *s, const struct totals *t)
{
    struct buf *to = s->sink.out, missing = {0};

    put_missing(s, &missing, t);
    page_begin(to, PAGE_SEQUENCE, NULL);
    json_begin_object(to);
    page_members(&s->page, to, buf_view(&missing));
    json_next_line(to, false);
    json_put_array(to, "who");
    for (uint32_t i = 0; i < s->processes.n; i++) {
        buf_clear(&s->line);
        process_list_label(&s->processes, i, &s->line);
        json_next_line(to, i == 0);
        page_string(to, raw_of(buf_view(&s->line)));
    }
    json_end_array(to);
    json_next_line(to, false);
    json_put_array(to, "rows");
    for (size_t i = 0; i < s->n; i++) { /* kind, at, arrived, from, to */
        const struct row *r = &s->rows[i];
        json_int(to, r->kind);
        json_int(to, r->at);
        json_int(to, r->arrived);
        json_int(to, r->from == NOBODY ? -1 : (int64_t)r->from);
        json_int(to, r->to == NOBODY ? -1 : (int64_t)r->to);
    }
    json_end_array(to);
    json_next_line(to, false);
    json_put_array(to, "texts");
    for (size_t i = 0; i < s->n; i++) {
        json_next_line(to, i == 0);
        page_string(to, raw_of(text_of(s, &s->rows[i])));
    }
    json_end_array(to);
    json_end_object(to);
    page_end(to, PAGE_SEQUENCE);
    buf_release(&missing);
}

static void end_sequence(struct sink *sink, const struct totals *t)
{
    struct sequence *s = (struct sequence *)sink;

    if (look_is_file(&sink->look, ".html"))
        put_page(s, t);
    else
        sink_sequence_put_text(s, t);
}

static void release_sequence(struct sink *sink)
{
    struct sequence *s = (struct sequence *)sink;

    page_release(&s->page);
    process_list_release(&s->processes);
    message_match_release(&s->messages);
    free(s->rows);
    buf_release(&s->texts);
    buf_release(&s->line);
}

const struct sink_type sink_sequence = {
    .name = "sequence",
    .extensions = ".mmd .html",
    .about = "who sent what to whom: Mermaid's text, or a page",
    .size = sizeof(struct sequence),
    .flags = SINK_WHOLE,
    .event = event_sequence,
    .end = end_sequence,
    .release = release_sequence,
};

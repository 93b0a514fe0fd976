/* SPDX-License-Identifier: Apache-2.0 */
#include "page.h"

#include <stdlib.h>

#include "../erlang/term_json.h"
#include "../ground/mem.h"
#include "../lang/spec.h"
#include "clock.h"

void page_release(struct page *p)
{
    for (unsigned i = 0; i < p->nasked; i++)
        free((void *)p->exprs[i].at);
}

static void add_asked(struct page *p, const struct spec *s)
{
    p->last = s;
    for (size_t i = 0; i < s->nparts; i++)
        add_asked(p, s->parts[i]);
    if (s->nparts) {
        p->last = s;
        return;
    }
    for (unsigned i = 0; i < p->nasked; i++)
        if (p->exprs[i].len == s->text.len && !memcmp(p->exprs[i].at, s->text.at, s->text.len))
            return;
    if (p->nasked == PAGE_ASKED)
        p->asked_more = true;
    else if (s->text.len)
        p->exprs[p->nasked++] = (struct str){mem_strndup(s->text.at, s->text.len), s->text.len};
}

static void add_node(struct page *p, const struct event_node *node)
{
    for (unsigned i = 0; i < p->nnodes; i++)
        if (p->nodes[i] == node)
            return;
    if (p->nnodes < ARRAY_LEN(p->nodes))
        p->nodes[p->nnodes++] = node;
}

int64_t page_event(struct page *p, const struct event *e)
{
    int64_t at = axis_at(&p->axis, e, e->mono_ns);

    if (e->spec && e->spec != p->last)
        add_asked(p, e->spec);
    if (!p->nnodes || p->nodes[p->nnodes - 1] != e->node)
        add_node(p, e->node);
    p->end_ns = MAX(p->end_ns, at);
    return at;
}

void page_string(struct buf *to, struct raw text)
{
    struct buf json = {0};

    json_value(to);
    json_quote(&json, text);
    for (size_t i = 0; i < json.len; i++) {
        char c = json.data[i];
        if (c == '<' || c == '>' || c == '&')
            buf_printf(to, "\\u%04x", (unsigned)c);
        else
            buf_char(to, c);
    }
    buf_release(&json);
}

void page_missing(struct str lines, struct buf *to, const char *between)
{
    for (size_t at = 0, n = 0; at < lines.len; n++) {
        const char *end = memchr(lines.at + at, '\n', lines.len - at);
        size_t len = (size_t)(end - lines.at) - at;
        if (n)
            buf_puts(to, between);
        buf_add(to, lines.at + at + 4, len - 8); /* without the stars: *** … *** */
        at += len + 1;
    }
}

void page_title(const struct page *p, struct buf *to, struct str missing)
{
    for (unsigned i = 0; i < p->nnodes; i++) {
        buf_puts(to, i ? ", " : "");
        buf_safe(to, p->nodes[i]->name);
    }
    for (unsigned i = 0; i < p->nasked; i++) {
        buf_puts(to, to->len ? " · " : "");
        print_safe(to, raw_of(p->exprs[i]));
    }
    buf_puts(to, p->asked_more ? " · …" : "");
    if (missing.len) {
        buf_puts(to, to->len ? " · " : "");
        page_missing(missing, to, " · ");
    }
}

void page_members(const struct page *p, struct buf *to, struct str missing)
{
    const struct event begin = {.wall_ns = p->axis.wall_ns};
    struct buf text = {0};
    struct clock clock;

    page_title(p, &text, (struct str){NULL, 0});
    json_key(to, "title"), page_string(to, raw_of(buf_view(&text)));
    if (p->axis.begun) {
        clock_init_iso(&clock);
        buf_clear(&text);
        clock_put_iso(&clock, &text, &begin);
        json_put_string(to, "start", raw_of(buf_view(&text)));
    }
    json_put_int(to, "end_ns", p->end_ns);
    json_put_array(to, "missing");
    buf_clear(&text);
    page_missing(missing, &text, "\n");
    for (size_t at = 0; at < text.len;) {
        const char *end = memchr(text.data + at, '\n', text.len - at);
        size_t len = end ? (size_t)(end - text.data) - at : text.len - at;
        page_string(to, raw_bytes(text.data + at, len));
        at += len + 1;
    }
    json_end_array(to);
    buf_release(&text);
}

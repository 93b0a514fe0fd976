/* SPDX-License-Identifier: Apache-2.0 */
#include "message_match.h"

#include <stdlib.h>

#include "../erlang/term_print.h"
#include "../ground/mem.h"
#include "../ground/table.h"
#include "line.h"

#define BUCKETS 65536 /* a power of two */

void message_match_release(struct message_match *l)
{
    free(l->items);
    free(l->first);
    free(l->last);
    buf_release(&l->text);
}

static const uint8_t *message_of(const struct event *e)
{
    return e->kind == ETW_RECEIVE ? e->terms.at : wire_skip(e->terms.at);
}

void message_match_shorten(struct buf *text)
{
    size_t len = MESSAGE_MATCH_TEXT;

    if (text->len <= MESSAGE_MATCH_TEXT)
        return;
    while (len && ((unsigned char)text->data[len] & 0xc0) == 0x80)
        len--;
    text->len = len;
    buf_puts(text, "…");
}

struct str message_match_text(struct message_match *l, const struct event *e, enum terms_style style)
{
    buf_clear(&l->text);
    line_printer(e, style)->term(&l->text, &e->env, message_of(e));
    message_match_shorten(&l->text);
    return buf_view(&l->text);
}

/* Hashes only up to a truncation mark, because the sent and the received text may be truncated at different places. */
static uint32_t hash_of(struct message_match *l, const struct event *e)
{
    struct str text = message_match_text(l, e, TERMS_ERLANG);
    uint32_t h = HASH_BEGIN;

    for (size_t i = 0; i < text.len; i++) {
        if (i + 2 < text.len && !memcmp(text.at + i, "…", 3))
            break;
        h = hash_byte(h, (unsigned char)text.at[i]);
    }
    return h;
}

static void set_name(struct letter *t, const struct event *e)
{
    const uint8_t *first, *to = e->terms.at;
    uint32_t arity;
    struct raw raw;

    if (wire_tuple(to, &arity, &first) == 2 && arity == 2) /* {Name, Node} */
        to = first;
    if (wire_atom(&e->env, to, &raw)) {
        struct buf text = {0};
        erlang_print_atom(&text, raw);
        size_t len = MIN(text.len, sizeof(t->name) - 1);
        memcpy(t->name, text.data, len);
        t->name[len] = '\0';
        buf_release(&text);
    }
}

static void message_match_forget(struct message_match *l, uint32_t index)
{
    struct letter *t = &l->items[index];
    uint32_t b = t->hash % BUCKETS, *at = &l->first[b], before = 0;

    while (*at != index + 1) {
        before = *at;
        at = &l->items[*at - 1].next;
    }
    *at = t->next;
    if (l->last[b] == index + 1)
        l->last[b] = before;
    t->open = false;
}

void message_match_sent(struct message_match *l, const struct event *e, uint64_t tag)
{
    struct letter t = {.from = e->who->id, .node = e->node->index, .hash = hash_of(l, e), .tag = tag, .open = true};

    if (!l->first) {
        l->first = mem_zalloc(BUCKETS * sizeof(*l->first));
        l->last = mem_zalloc(BUCKETS * sizeof(*l->last));
    }
    if (!wire_pid(e->terms.at, &t.to))
        set_name(&t, e);
    uint32_t index = (uint32_t)l->at, b = t.hash % BUCKETS;
    l->at = (l->at + 1) % MESSAGE_MATCH_MAX;
    if (index == l->used) {
        l->items = mem_grow(l->items, &l->cap, l->used + 1, sizeof(*l->items));
        l->used++;
    } else if (l->items[index].open) {
        message_match_forget(l, index);
    }
    l->items[index] = t;
    if (l->last[b])
        l->items[l->last[b] - 1].next = index + 1;
    else
        l->first[b] = index + 1;
    l->last[b] = index + 1;
}

static bool fits(const struct letter *t, const struct event *e, uint64_t from)
{
    if (t->node != e->node->index || (from && t->from != from))
        return false;
    if (t->to)
        return t->to == e->who->id;
    if (from) /* sent to a name or an alias; the sender matched above */
        return true;
    return *t->name && strlen(t->name) == e->who->name_len && !memcmp(t->name, e->who->name, e->who->name_len);
}

bool message_match_received(struct message_match *l, const struct event *e, uint64_t *ret_tag)
{
    uint64_t from = 0;

    if (!l->items)
        return false;
    if (e->sender)
        wire_pid(e->sender, &from);
    uint32_t hash = hash_of(l, e);
    unsigned looked = 0;
    for (uint32_t i = l->first[hash % BUCKETS]; i && looked++ < 1000; i = l->items[i - 1].next) {
        if (l->items[i - 1].hash != hash || !fits(&l->items[i - 1], e, from))
            continue;
        *ret_tag = l->items[i - 1].tag;
        message_match_forget(l, i - 1);
        return true;
    }
    return false;
}

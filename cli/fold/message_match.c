/* SPDX-License-Identifier: Apache-2.0 */
#include "message_match.h"

#include <stdlib.h>

#include "../events/names.h"
#include "../ground/mem.h"
#include "../ground/table.h"

#define BUCKETS 65536 /* power of two */

void message_match_release(struct message_match *l)
{
    free(l->items);
    free(l->first);
    free(l->last);
}

static const uint8_t *message_of(const struct event *e)
{
    return e->kind == ETW_RECEIVE ? e->terms.at : wire_skip(e->terms.at);
}

/* The beginning of a message, hashed step by step. */
struct beginning {
    uint32_t steps[MESSAGE_MATCH_BYTES + 1]; /* for each place where a message may be cut: the hash of all before it */
    unsigned nsteps;
    size_t bytes; /* number of bytes hashed */
    uint32_t hash;
    bool cut;
};

static void begin_put(struct beginning *b, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n && b->bytes < MESSAGE_MATCH_BYTES; i++, b->bytes++)
        b->hash = hash_byte(b->hash, ((const unsigned char *)bytes)[i]);
}

static void begin_step(struct beginning *b)
{
    if (b->nsteps < ARRAY_LEN(b->steps))
        b->steps[b->nsteps++] = b->hash;
}

/* Adds a string as a list of its elements, because a string that was cut is encoded as a list. */
static void begin_string(struct beginning *b, const uint8_t *at)
{
    const uint8_t list = ETW_T_LIST, end = ETW_T_END, *bytes = at + 3;

    begin_put(b, &list, 1);
    begin_step(b);
    for (size_t n = wire_u16(at + 1); n && b->bytes < MESSAGE_MATCH_BYTES; n--, bytes++) {
        const uint8_t larger[] = {ETW_T_INT16, *bytes, 0};
        begin_put(b, *bytes < 0x80 ? bytes : larger, *bytes < 0x80 ? 1 : sizeof(larger));
        begin_step(b);
    }
    begin_put(b, &end, 1);
}

/* Adds the size of a binary and its captured bytes. If too few bytes were captured, adds only the size and sets `cut`.
 */
static void begin_binary(struct beginning *b, const uint8_t *at)
{
    const size_t head = *at == ETW_T_BITS ? 10 : 9; /* bytes up to and including the size */
    const uint64_t size = wire_u64(at + head - 8);
    const uint32_t captured = wire_u32(at + head);

    begin_put(b, at, head);
    begin_step(b);
    if (captured < size && b->bytes + captured < MESSAGE_MATCH_BYTES)
        b->cut = true;
    else
        begin_put(b, at + head + 4, captured);
}

static void begin_token(struct beginning *b, const struct term_env *env, const uint8_t *at)
{
    const uint8_t atom = ETW_T_ATOM;
    struct raw name;

    switch (*at) {
    case ETW_T_CUT:
    case ETW_T_ELIDED:
        b->cut = true;
        break;
    case ETW_T_ATOM:
    case ETW_T_ATOMDEF:
    case ETW_T_ATOMTEXT:
        wire_atom_text(env, at, &name);
        begin_put(b, &atom, 1);
        begin_put(b, raw_view(name).at, name.len);
        break;
    case ETW_T_STRING:
        begin_string(b, at);
        break;
    case ETW_T_BIN:
    case ETW_T_BITS:
        begin_binary(b, at);
        break;
    default:
        begin_put(b, at, (size_t)(wire_token(at) - at));
        break;
    }
}

static void read_beginning(const struct event *e, struct beginning *b)
{
    const uint8_t *at = message_of(e), *end = wire_skip(at);

    b->nsteps = 0;
    b->bytes = 0;
    b->hash = HASH_BEGIN;
    b->cut = false;
    begin_step(b);
    for (; at < end && !b->cut && b->bytes < MESSAGE_MATCH_BYTES; at = wire_token(at)) {
        begin_token(b, &e->env, at);
        if (!b->cut)
            begin_step(b);
    }
}

static void set_name(struct letter *t, const struct event *e)
{
    const uint8_t *first, *to = e->terms.at;
    uint32_t arity;
    struct raw name;

    if (wire_tuple(to, &arity, &first) == 2 && arity == 2) /* {Name, Node} */
        to = first;
    if (wire_atom(&e->env, to, &name))
        t->name_len = tracee_registered(t->name, name);
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
    l->cuts -= t->cut;
}

void message_match_sent(struct message_match *l, const struct event *e, uint64_t tag)
{
    struct letter t = {.from = e->who->id, .node = e->node->index, .tag = tag, .open = true};
    struct beginning b;

    read_beginning(e, &b);
    t.hash = b.hash;
    t.cut = b.cut;
    if (!l->first) {
        l->first = mem_zalloc(BUCKETS * sizeof(*l->first));
        l->last = mem_zalloc(BUCKETS * sizeof(*l->last));
    }
    if (!wire_pid(e->terms.at, &t.to))
        set_name(&t, e);
    uint32_t index = (uint32_t)l->at, bucket = t.hash % BUCKETS;
    l->at = (l->at + 1) % MESSAGE_MATCH_MAX;
    if (index == l->used) {
        l->items = mem_grow(l->items, &l->cap, l->used + 1, sizeof(*l->items));
        l->used++;
    } else if (l->items[index].open) {
        message_match_forget(l, index);
    }
    l->items[index] = t;
    l->cuts += t.cut;
    if (l->last[bucket])
        l->items[l->last[bucket] - 1].next = index + 1;
    else
        l->first[bucket] = index + 1;
    l->last[bucket] = index + 1;
}

static bool letter_fits(const struct letter *t, const struct event *e, uint64_t from)
{
    if (t->node != e->node->index || (from && t->from != from))
        return false;
    if (t->to)
        return t->to == e->who->id;
    if (from) /* the message was sent to a name or an alias; its sender matches */
        return true;
    return t->name_len && t->name_len == e->who->name_len && !memcmp(t->name, e->who->name, t->name_len);
}

/*
 * Returns the index of the oldest unreceived message that has this hash and fits the event, or TABLE_NONE. With
 * `only_cut`, looks only at messages that were cut.
 */
static uint32_t message_match_find(const struct message_match *l, const struct event *e, uint64_t from, uint32_t hash,
                                   bool only_cut)
{
    unsigned looked = 0;

    for (uint32_t i = l->first[hash % BUCKETS]; i && looked++ < 1000; i = l->items[i - 1].next) {
        const struct letter *t = &l->items[i - 1];
        if (t->hash == hash && (t->cut || !only_cut) && letter_fits(t, e, from))
            return i - 1;
    }
    return TABLE_NONE;
}

bool message_match_received(struct message_match *l, const struct event *e, uint64_t *ret_tag)
{
    uint32_t found = TABLE_NONE;
    struct beginning b;
    uint64_t from = 0;

    if (!l->items)
        return false;
    if (e->sender)
        wire_pid(e->sender, &from);
    read_beginning(e, &b);
    for (unsigned i = b.nsteps; i-- > 0 && found == TABLE_NONE;) {
        const bool all = i + 1u == b.nsteps;
        if (all || l->cuts)
            found = message_match_find(l, e, from, b.steps[i], !all);
    }
    if (found == TABLE_NONE)
        return false;
    *ret_tag = l->items[found].tag;
    message_match_forget(l, found);
    return true;
}

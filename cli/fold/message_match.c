/* SPDX-License-Identifier: Apache-2.0 */
#include "message_match.h"

#include <stdlib.h>

#include "../events/names.h"
#include "../ground/mem.h"
#include "../ground/table.h"

#define BUCKETS 65536 /* power of two */
#define LOOK 1000     /* a search looks at this many letters of a bucket; only hostile senders fill one with more */

void message_match_release(struct message_match *l)
{
    free(l->items);
    for (unsigned list = 0; list < LETTER_LISTS; list++) {
        free(l->first[list]);
        free(l->last[list]);
    }
}

static const uint8_t *message_of(const struct event *e)
{
    return e->kind == ETW_RECEIVE ? e->terms.at : wire_skip(e->terms.at);
}

/* The beginning of a message, hashed step by step. */
struct beginning {
    uint32_t steps[MESSAGE_MATCH_BYTES + 1]; /* for each place where a message may be cut: hash of the bytes before */
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

/*
 * Adds the size of a binary and its captured bytes. If the node cut the binary within the bytes to compare, adds only
 * the size and sets `cut`.
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

/* ---- the lists of letters ---- */

static uint32_t name_hash(const char *name, uint8_t len)
{
    return hash_text(HASH_BEGIN, (struct str){name, len});
}

/* Returns the bucket of messages with this hash whose receiver is `to`: a process, or the hash of a name. */
static uint32_t bucket_to(uint32_t hash, unsigned node, uint64_t to)
{
    return hash_u64((uint64_t)hash_tracee(to, node) << 32 | hash) % BUCKETS;
}

/*
 * Returns the bucket of messages with this hash from the process `from`. `to` is the receiver; 0: a name or an alias.
 */
static uint32_t bucket_from(uint32_t hash, unsigned node, uint64_t from, uint64_t to)
{
    return hash_u64((uint64_t)(hash_tracee(from, node) * 31u ^ hash_u64(to)) << 32 | hash) % BUCKETS;
}

static void make_buckets(struct message_match *l)
{
    for (unsigned list = 0; list < LETTER_LISTS; list++) {
        l->first[list] = mem_zalloc(BUCKETS * sizeof(**l->first));
        l->last[list] = mem_zalloc(BUCKETS * sizeof(**l->last));
    }
}

static void append_letter(struct message_match *l, uint32_t index, enum letter_list list)
{
    struct letter *t = &l->items[index];
    uint32_t *first = &l->first[list][t->in[list].bucket], *last = &l->last[list][t->in[list].bucket];

    t->in[list].before = *last;
    t->in[list].next = 0;
    *(*last ? &l->items[*last - 1].in[list].next : first) = index + 1;
    *last = index + 1;
}

static void unlink_letter(struct message_match *l, uint32_t index, enum letter_list list)
{
    struct letter *t = &l->items[index];
    const uint32_t before = t->in[list].before, next = t->in[list].next;

    *(before ? &l->items[before - 1].in[list].next : &l->first[list][t->in[list].bucket]) = next;
    *(next ? &l->items[next - 1].in[list].before : &l->last[list][t->in[list].bucket]) = before;
}

static void message_match_forget(struct message_match *l, uint32_t index)
{
    for (unsigned list = 0; list < LETTER_LISTS; list++)
        unlink_letter(l, index, list);
    l->items[index].open = false;
    l->cuts -= l->items[index].cut;
}

/* ---- sent messages ---- */

static void set_name(struct letter *t, const struct event *e)
{
    const uint8_t *first, *to = e->terms.at;
    char name[TRACEE_NAME];
    uint32_t arity;
    struct raw atom;

    if (wire_tuple(to, &arity, &first) == 2 && arity == 2) /* {Name, Node} */
        to = first;
    if (!wire_atom(&e->env, to, &atom))
        return;
    t->name = name_hash(name, tracee_registered(name, atom));
    t->named = true;
}

/* Returns the index for a new letter. Drops the oldest one if there are MESSAGE_MATCH_MAX. */
static uint32_t message_match_place(struct message_match *l)
{
    const uint32_t index = (uint32_t)(l->sent++ % MESSAGE_MATCH_MAX);

    if (index == l->used) {
        l->items = mem_grow(l->items, &l->cap, l->used + 1, sizeof(*l->items));
        l->used++;
    } else if (l->items[index].open) {
        l->dropped++;
        message_match_forget(l, index);
    }
    return index;
}

void message_match_sent(struct message_match *l, const struct event *e, uint64_t tag)
{
    struct letter t = {.from = e->who->id,
                       .node = e->node->index,
                       .shift_ns = e->shift_ns,
                       .tag = tag,
                       .number = l->sent,
                       .open = true};
    struct beginning b;

    read_beginning(e, &b);
    t.hash = b.hash;
    t.cut = b.cut;
    if (!l->sent)
        make_buckets(l);
    if (!wire_pid(e->terms.at, &t.to))
        set_name(&t, e);
    t.in[LETTERS_TO].bucket = bucket_to(t.hash, t.node, t.to ? t.to : t.name);
    t.in[LETTERS_FROM].bucket = bucket_from(t.hash, t.node, t.from, t.to);
    const uint32_t index = message_match_place(l);
    l->items[index] = t;
    l->cuts += t.cut;
    for (unsigned list = 0; list < LETTER_LISTS; list++)
        append_letter(l, index, list);
}

/* ---- received messages ---- */

/* A received message. */
struct receipt {
    const struct event *event;
    uint64_t from; /* the sender; 0: unknown */
    uint32_t name; /* hash of the receiver's name; set if the sender is unknown */
};

static bool letter_fits(const struct letter *t, const struct receipt *r)
{
    if (t->node != r->event->node->index || t->shift_ns != r->event->shift_ns || (r->from && t->from != r->from))
        return false;
    if (t->to)
        return t->to == r->event->who->id;
    if (r->from) /* the message was sent to a name or an alias; its sender matches */
        return true;
    return t->named && r->event->who->name_len && t->name == r->name;
}

/*
 * Returns the index of the oldest letter of a bucket that has this hash and fits, or TABLE_NONE. With `only_cut`, looks
 * only at messages that were cut.
 */
static uint32_t find_letter(const struct message_match *l, const struct receipt *r, enum letter_list list,
                            uint32_t bucket, uint32_t hash, bool only_cut)
{
    unsigned looked = 0;

    for (uint32_t i = l->first[list][bucket]; i && looked++ < LOOK; i = l->items[i - 1].in[list].next) {
        const struct letter *t = &l->items[i - 1];
        if (t->hash == hash && (t->cut || !only_cut) && letter_fits(t, r))
            return i - 1;
    }
    return TABLE_NONE;
}

/* Returns the oldest letter with this hash that fits: to the receiver itself, or to a name or an alias. */
static uint32_t message_match_find(const struct message_match *l, const struct receipt *r, uint32_t hash, bool only_cut)
{
    const enum letter_list list = r->from ? LETTERS_FROM : LETTERS_TO;
    const unsigned node = r->event->node->index;
    const uint64_t to = r->event->who->id;
    const uint32_t buckets[] = {
        r->from ? bucket_from(hash, node, r->from, to) : bucket_to(hash, node, to),
        r->from ? bucket_from(hash, node, r->from, 0) : bucket_to(hash, node, r->name),
    };
    const uint32_t one = find_letter(l, r, list, buckets[0], hash, only_cut);
    const uint32_t two = find_letter(l, r, list, buckets[1], hash, only_cut);

    if (one == TABLE_NONE || two == TABLE_NONE)
        return one == TABLE_NONE ? two : one;
    return l->items[one].number < l->items[two].number ? one : two;
}

bool message_match_received(struct message_match *l, const struct event *e, uint64_t *ret_tag)
{
    struct receipt r = {.event = e};
    uint32_t found = TABLE_NONE;
    struct beginning b;

    if (!l->items)
        return false;
    if (!e->sender || !wire_pid(e->sender, &r.from))
        r.name = name_hash(e->who->name, e->who->name_len);
    read_beginning(e, &b);
    for (unsigned i = b.nsteps; i-- > 0 && found == TABLE_NONE;) {
        const bool all = i + 1u == b.nsteps;
        if (all || l->cuts)
            found = message_match_find(l, &r, b.steps[i], !all);
    }
    if (found == TABLE_NONE) {
        l->missed += l->dropped != 0;
        return false;
    }
    *ret_tag = l->items[found].tag;
    message_match_forget(l, found);
    return true;
}

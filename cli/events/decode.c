/* SPDX-License-Identifier: Apache-2.0 */
#include "decode.h"

#include <stdlib.h>

#define SPELLED_MAX ((size_t)4 << 20)
#define ATOM_MAX (3 * 1020)         /* limit for an atom in bytes: U+FFFD, three bytes, replaces each invalid byte */
#define ATOMS_MAX ((size_t)8 << 20) /* limit for the atom names of one ring */

enum { BY_ARITY = 0xff };

static const struct frame_layout {
    bool known, fun;
    uint8_t terms;
} layouts[ETW_KINDS] = {
#define KIND(name, number, tag, json, layout, first, second)                                                           \
    [number] = {ETW_LAYOUT_##layout != ETW_LAYOUT_NO_FRAME, ETW_HAS_FUNCTION(ETW_LAYOUT_##layout),                     \
                ETW_LAYOUT_##layout == ETW_LAYOUT_CALL ? BY_ARITY : first + second},
#define TERM(name) 1
#define PROCESS(name) 1
#define MFA(name) 1
#define INFO(name) 1
#define LABEL(name) 1
#define NONE 0
#include "event_kinds.def"
};

void decode_ring_init(struct decode_ring *r, uint32_t id)
{
    *r = (struct decode_ring){.id = id};
}

void decode_ring_release(struct decode_ring *r)
{
    free(r->funs);
    wire_atoms_release(&r->atoms);
    buf_release(&r->spelled);
}

static bool decode_wrong(struct decode_error *bad, const uint8_t *at, const char *why)
{
    *bad = (struct decode_error){at, why};
    return false;
}

bool decode_peek(const struct decode_ring *r, const uint8_t *at, const uint8_t *end, struct decode_head *ret,
                 struct decode_error *bad)
{
    size_t left = (size_t)(end - at);

    if (left < 8)
        return decode_wrong(bad, at, "truncated frame header");
    uint32_t head = wire_u32(at);
    ret->bytes = ETW_HEAD_BYTES(head);
    ret->kind = ETW_HEAD_KIND(head);
    ret->flags = (uint8_t)ETW_HEAD_FLAGS(head);
    if (ret->bytes < 8)
        return decode_wrong(bad, at, "a frame shorter than its header");
    if (ret->bytes > left)
        return decode_wrong(bad, at, "a frame longer than its section");
    if (ret->flags & ETW_F_TICK) {
        if (ret->bytes < 16)
            return decode_wrong(bad, at, "a frame shorter than its header");
        ret->tick = wire_u64(at + 8);
    } else {
        ret->tick = r->tick + wire_u32(at + 4);
    }
    return true;
}

/* Reads the function field at *at and advances *at past it. */
static bool take_fun(struct decode_ring *r, struct decode_node *n, const uint8_t **at, const uint8_t *end,
                     struct event *e, struct decode_error *bad)
{
    const uint8_t *p = *at;

    if (end - p < 3)
        return decode_wrong(bad, p, "truncated function in a frame");
    unsigned id = wire_u16(p);
    e->arity = p[2];
    p += 3;
    if (id == ETW_NO_FUNCTION) {
        *at = p;
        return true;
    }
    if ((id & ~ETW_DEF) >= ETW_FUNCTIONS)
        return decode_wrong(bad, *at, "a function's id out of range");
    if (unlikely(!r->funs))
        r->funs = mem_zalloc(ETW_FUNCTIONS * sizeof(*r->funs));
    if (unlikely(id & ETW_DEF)) {
        id &= ~ETW_DEF;
        if (end - p < 4)
            return decode_wrong(bad, p, "truncated function in a frame");
        size_t module = wire_u16(p), name = wire_u16(p + 2);
        if ((size_t)(end - p) - 4 < module + name)
            return decode_wrong(bad, p, "a function's name is longer than its frame");
        if (module > 1020 || name > 1020)
            return decode_wrong(bad, p, "an atom of more than 255 characters");
        r->funs[id] = funs_get(n->funs, raw_bytes(p + 4, module), raw_bytes(p + 4 + module, name));
        if (!r->funs[id])
            return decode_wrong(bad, p, "too many names of functions");
        p += 4 + module + name;
    }
    e->fun = r->funs[id];
    if (unlikely(!e->fun))
        return decode_wrong(bad, *at, "an undefined function");
    *at = p;
    return true;
}

/*
 * Checks the terms and the result of the match specification. If an atom id has two meanings in this frame, spells all
 * atoms out into r->spelled.
 */
static bool take_terms(struct decode_ring *r, const uint8_t *at, const uint8_t *end, struct event *e,
                       struct decode_error *bad)
{
    const uint8_t *ms, *behind;
    const char *why;

    wire_frame(&r->atoms);
    enum wire_found a = wire_check(&r->atoms, at, end, e->nterms, &ms, &why), b = WIRE_OK;
    if (unlikely(a == WIRE_BAD))
        return decode_wrong(bad, ms, why);
    behind = ms;
    if (e->flags & ETW_F_MS)
        b = wire_check(&r->atoms, ms, end, 1, &behind, &why);
    if (unlikely(b == WIRE_BAD))
        return decode_wrong(bad, behind, why);
    if (unlikely(behind != end))
        return decode_wrong(bad, behind, "unused bytes in a frame");

    if (likely(a == WIRE_OK && b == WIRE_OK)) {
        e->terms = (struct wire){at, ms};
        e->ms = (struct wire){ms, end};
        return true;
    }
    if (r->atoms.bytes > ATOMS_MAX)
        return decode_wrong(bad, at, "too many bytes of names");
    if (a != WIRE_CONFLICT && b != WIRE_CONFLICT) {
        wire_define(&r->atoms, at, end);
        e->terms = (struct wire){at, ms};
        e->ms = (struct wire){ms, end};
        return true;
    }
    buf_clear(&r->spelled);
    if (!wire_resolve(&r->spelled, &r->atoms, (struct wire){at, ms}, SPELLED_MAX))
        return decode_wrong(bad, at, "too many bytes of names in a frame");
    size_t terms = r->spelled.len;
    if (!wire_resolve(&r->spelled, &r->atoms, (struct wire){ms, end}, SPELLED_MAX))
        return decode_wrong(bad, at, "too many bytes of names in a frame");
    const uint8_t *spelled = (const uint8_t *)buf_cstr(&r->spelled);
    e->terms = (struct wire){spelled, spelled + terms};
    e->ms = (struct wire){spelled + terms, spelled + r->spelled.len};
    return true;
}

/* Reads figures into e->tally. Returns false if they do not fill the frame exactly, or have a bucket out of range. */
static bool take_tally(struct decode_ring *r, const uint8_t *at, const uint8_t *end, struct event *e,
                       struct decode_error *bad)
{
    const size_t bytes = (size_t)(end - at);
    struct etw_tally *t = &r->tally;
    struct etw_bucket b;

    if (bytes < ETW_TALLY_OLD)
        return decode_wrong(bad, at, "truncated figures in a frame");
    *t = (struct etw_tally){0};
    memcpy(t, at, ETW_TALLY_OLD);
    if (t->buckets > ETW_BUCKETS)
        return decode_wrong(bad, at, "figures with too many buckets");
    const bool old = bytes == ETW_TALLY_OLD + t->buckets * sizeof(b);
    if (!old && bytes != sizeof(*t) + t->buckets * sizeof(b))
        return decode_wrong(bad, at, "figures with the wrong number of buckets");
    memcpy(t, at, old ? ETW_TALLY_OLD : sizeof(*t));
    at += old ? ETW_TALLY_OLD : sizeof(*t);
    e->tally = t;
    e->tally_buckets = at;
    for (uint32_t i = 0; i < t->buckets; i++, at += sizeof(b)) {
        memcpy(&b, at, sizeof(b));
        if (b.bucket >= ETW_BUCKETS)
            return decode_wrong(bad, at, "figures with a bucket that does not exist");
    }
    e->nterms = 0;
    e->terms = e->ms = (struct wire){end, end};
    return true;
}

bool decode_frame(struct decode_ring *r, struct decode_node *n, const uint8_t *at, const struct decode_head *head,
                  struct event *e, struct decode_error *bad)
{
    const uint8_t *end = at + head->bytes, *p = at + 8;
    const struct frame_layout *layout = &layouts[head->kind];

    if (unlikely(!layout->known))
        return decode_wrong(bad, at, "unknown kind of frame");
    if (head->flags & ETW_F_TICK)
        p += 8;
    r->tick = head->tick;
    if (head->flags & ETW_F_TRACEE) {
        if (unlikely(end - p < 8))
            return decode_wrong(bad, p, "truncated frame header");
        r->tracee = wire_u64(p);
        r->who = NULL;
        p += 8;
    }
    if (unlikely(!r->who || r->who_generation != n->tracees.generation)) {
        r->who = tracees_at(&n->tracees, r->tracee);
        r->who_generation = n->tracees.generation;
    }

    e->kind = head->kind;
    e->flags = head->flags;
    e->arity = 0;
    e->ring = r->id;
    e->bytes = head->bytes;
    e->began = 0;
    e->waited_ns = 0;
    e->gap = false;
    e->doubtful = head->kind != ETW_CALL && head->flags & ETW_F_DOUBT;
    const unsigned late = head->kind == ETW_CALL ? ETW_F_BEGAN : ETW_F_KEPT;
    if (unlikely(head->flags & late)) {
        if (end - p < 8)
            return decode_wrong(bad, p, "missing start time");
        e->began = wire_u64(p);
        e->bytes -= 8;
        e->flags &= (uint8_t)~late;
        p += 8;
    }
    e->node = n->node;
    e->shift_ns = n->node->shift_ns;
    e->who = r->who;
    e->fun = NULL;
    e->env = (struct term_env){&r->atoms, n->node->otp27};
    e->tracees = &n->tracees;
    e->lost = NULL;
    e->tally = NULL;
    e->tally_buckets = NULL;
    e->caller = e->stack = e->dump = e->user = e->sender = e->sender_node = NULL;
    e->spec = NULL;
    e->by_arity = false;
    e->args_shown = NULL;
    e->call = NULL;
    e->dur_ns = -1;
    e->depth = 0;
    e->expects_return = false;

    if (unlikely(head->kind == ETW_LOST)) {
        if (end - p != (ptrdiff_t)sizeof(r->lost))
            return decode_wrong(bad, p, "a loss count of the wrong length");
        memcpy(r->lost, p, sizeof(r->lost));
        e->lost = r->lost;
        e->nterms = 0;
        e->terms = e->ms = (struct wire){end, end};
        return true;
    }
    if (layout->fun && !take_fun(r, n, &p, end, e, bad))
        return false;
    if (unlikely(head->kind == ETW_TALLY))
        return take_tally(r, p, end, e, bad);
    e->nterms = layout->terms;
    if (layout->terms == BY_ARITY)
        e->nterms = e->flags & ETW_F_ARITY ? 0 : e->arity;
    return take_terms(r, p, end, e, bad);
}

void decode_ring_save(const struct decode_ring *r, struct buf *to)
{
    size_t funs = 0, atoms = 0;

    for (size_t i = 0; r->funs && i < ETW_FUNCTIONS; i++)
        funs += r->funs[i] != NULL;
    for (size_t i = 0; i < r->atoms.cap; i++)
        atoms += r->atoms.table[i].erl != NULL;
    state_time(to, (int64_t)r->tick);
    state_number(to, r->tracee);
    for (size_t l = 0; l < ETW_LOSSES; l++)
        state_number(to, r->lost[l]);
    state_number(to, funs);
    for (size_t i = 0; r->funs && i < ETW_FUNCTIONS; i++)
        if (r->funs[i]) {
            state_number(to, i);
            state_number(to, r->funs[i]->serial);
        }
    state_number(to, atoms);
    for (size_t i = 0; i < r->atoms.cap; i++)
        if (r->atoms.table[i].erl) {
            state_number(to, i);
            state_text(to, (struct str){r->atoms.table[i].raw, r->atoms.table[i].raw_len});
        }
}

bool decode_ring_load(struct decode_ring *r, const struct fun *const *funs, size_t nfuns, struct state_in *in)
{
    size_t id, fun;

    r->tick = (uint64_t)state_read_time(in);
    r->tracee = state_read_number(in);
    for (size_t l = 0; l < ETW_LOSSES; l++)
        r->lost[l] = state_read_number(in);
    for (size_t n = (size_t)state_read_count(in, ETW_FUNCTIONS); n && !in->bad; n--) {
        if (!r->funs)
            r->funs = mem_zalloc(ETW_FUNCTIONS * sizeof(*r->funs));
        id = (size_t)state_read_count(in, ETW_FUNCTIONS - 1);
        fun = (size_t)state_read_number(in);
        in->bad |= fun >= nfuns;
        r->funs[id] = in->bad ? NULL : funs[fun];
    }
    for (size_t n = (size_t)state_read_count(in, ETW_ATOMS); n && !in->bad; n--) {
        id = (size_t)state_read_count(in, ETW_ATOMS - 1);
        struct str name = state_read_text(in, ATOM_MAX);
        if (!in->bad)
            wire_atoms_define(&r->atoms, (unsigned)id, name.at, name.len);
    }
    return !in->bad;
}

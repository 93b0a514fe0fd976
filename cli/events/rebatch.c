/* SPDX-License-Identifier: Apache-2.0 */
#include "rebatch.h"

#include <stdlib.h>

#include "../ground/mem.h"
#include "names.h"

#define FULL ((size_t)48 << 10)
#define TRACEES 1024 /* limit for the processes that a batch names */
#define FRAME_MAX ((size_t)512 << 10)
#define BIAS (UINT64_C(1) << 63) /* added to monotonic times, which may be negative, to get unsigned ticks */

void rebatch_init(struct rebatch *a)
{
    *a = (struct rebatch){0};
    a->funs = mem_zalloc(ETW_FUNCTIONS * sizeof(*a->funs));
    a->tracees = mem_alloc(TRACEES * sizeof(*a->tracees));
}

void rebatch_release(struct rebatch *a)
{
    buf_release(&a->names);
    buf_release(&a->frames);
    free(a->funs);
    free(a->tracees);
    table_release(&a->by_tracee);
}

bool rebatch_empty(const struct rebatch *a)
{
    return !a->frames.len && !a->names.len;
}

bool rebatch_full(const struct rebatch *a)
{
    return a->frames.len + a->names.len >= FULL || a->nfuns > ETW_FUNCTIONS / 2 || a->ntracees > TRACEES / 2;
}

/* ---- frames ---- */

static void rebatch_put16(struct buf *b, size_t v)
{
    uint16_t n = (uint16_t)v;
    buf_add(b, &n, sizeof(n));
}

static void rebatch_put32(struct buf *b, uint32_t v)
{
    buf_add(b, &v, sizeof(v));
}

static void rebatch_put64(struct buf *b, uint64_t v)
{
    buf_add(b, &v, sizeof(v));
}

static size_t open_owner_frame(struct buf *b, uint64_t tick, uint64_t tracee)
{
    size_t at = b->len;

    rebatch_put32(b, 0);
    rebatch_put32(b, 0);
    rebatch_put64(b, tick);
    rebatch_put64(b, tracee);
    return at;
}

static void close_frame(struct buf *b, size_t at, unsigned kind, unsigned flags)
{
    uint32_t head = ETW_HEAD(b->len - at, kind, flags);

    memcpy(b->data + at, &head, sizeof(head));
}

/* ---- process names ---- */

/*
 * Marks the process as named in this batch. Returns false if it was marked before, or if too many processes are marked.
 */
static bool mark_named(struct rebatch *a, uint64_t id)
{
    for (uint32_t step = 0, i; (i = table_next(&a->by_tracee, hash_u64(id), &step)) != TABLE_NONE;)
        if (a->tracees[i] == id)
            return false;
    if (a->ntracees == TRACEES)
        return false;
    table_add(&a->by_tracee, hash_u64(id), (uint32_t)a->ntracees);
    a->tracees[a->ntracees++] = id;
    return true;
}

static void rebatch_put_name(struct rebatch *a, const struct tracee *t, uint64_t tick)
{
    if (!t || !t->name_len || !mark_named(a, t->id))
        return;
    size_t at = open_owner_frame(&a->names, tick, t->id);
    buf_char(&a->names, (char)ETW_T_BIN);
    rebatch_put64(&a->names, t->name_len);
    rebatch_put32(&a->names, t->name_len);
    buf_add(&a->names, t->name, t->name_len);
    close_frame(&a->names, at, ETW_NAME, ETW_F_TICK | ETW_F_TRACEE);
}

static void put_names_in(struct rebatch *a, const struct event *e, struct wire terms, uint64_t tick)
{
    uint64_t id;

    for (const uint8_t *at = terms.at; at < terms.end; at = wire_token(at))
        if ((*at == ETW_T_PID || *at == ETW_T_PORT) && wire_pid(at, &id))
            rebatch_put_name(a, event_who(e, id), tick);
}

/* ---- one event ---- */

static void rebatch_put_fun(struct rebatch *a, const struct event *e)
{
    struct buf *b = &a->frames;
    size_t id = 0;

    if (!e->fun) {
        rebatch_put16(b, ETW_NO_FUNCTION);
        buf_char(b, (char)e->arity);
        return;
    }
    while (id < a->nfuns && a->funs[id] != e->fun->serial + 1)
        id++;
    bool defined = id < a->nfuns;
    if (!defined && a->nfuns < ETW_FUNCTIONS - 1)
        a->funs[a->nfuns++] = e->fun->serial + 1;
    rebatch_put16(b, defined ? id : id | ETW_DEF);
    buf_char(b, (char)e->arity);
    if (defined)
        return;
    rebatch_put16(b, e->fun->module.len);
    rebatch_put16(b, e->fun->name.len);
    buf_str(b, raw_view(e->fun->module));
    buf_str(b, raw_view(e->fun->name));
}

/*
 * Appends terms with all atoms spelled out. If the terms are too large for a frame, appends `count` markers
 * (ETW_T_ELIDED) instead, and returns false.
 */
static bool put_terms(struct buf *b, const struct event *e, struct wire terms, unsigned count)
{
    size_t before = b->len;

    if (terms.at >= terms.end || wire_copy(b, &e->env, terms, FRAME_MAX))
        return true;
    b->len = before;
    while (count--)
        buf_char(b, (char)ETW_T_ELIDED);
    return false;
}

void rebatch_add(struct rebatch *a, const struct event *e)
{
    struct buf *b = &a->frames;
    if (e->kind == ETW_TALLY) /* has counts of events that the node did not send; batches have only sent events */
        return;
    int64_t mono = a->begun && e->mono_ns < a->mono_ns ? a->mono_ns : e->mono_ns;
    uint64_t tick = (uint64_t)mono + BIAS, tracee = e->who ? e->who->id : 0;
    unsigned flags = e->flags & (ETW_F_MS | ETW_F_CUT | ETW_F_ARITY);
    flags |= e->doubtful && e->kind != ETW_CALL ? ETW_F_DOUBT : 0u;
    const bool kept = e->waited_ns > 0; /* the node sent the event later than it happened */
    const uint64_t began = tick - (uint64_t)MAX(e->waited_ns, 0);
    flags |= !kept ? 0u : e->kind == ETW_CALL ? ETW_F_BEGAN : ETW_F_KEPT;

    a->mono_ns = mono;
    a->wall_ns = e->wall_ns;
    if (e->kind == ETW_HELLO) {
        size_t at = open_owner_frame(&a->names, tick, 0);
        put_terms(&a->names, e, e->terms, 1);
        close_frame(&a->names, at, ETW_HELLO, ETW_F_TICK | ETW_F_TRACEE);
        a->hello = true;
        return;
    }
    if (e->kind == ETW_LOST) {
        for (size_t l = 0; l < ETW_LOSSES; l++)
            a->lost[l] += e->lost[l];
    } else {
        rebatch_put_name(a, e->who, tick);
        put_names_in(a, e, e->terms, tick);
        put_names_in(a, e, e->ms, tick);
        a->events += event_is_traced(e);
    }

    bool whole = !a->begun || tick - a->tick > UINT32_MAX, other = !a->begun || tracee != a->tracee;
    size_t at = b->len;
    rebatch_put32(b, 0);
    rebatch_put32(b, whole ? 0 : (uint32_t)(tick - a->tick));
    if (whole)
        rebatch_put64(b, tick);
    if (other)
        rebatch_put64(b, tracee);
    if (kept)
        rebatch_put64(b, began);
    flags |= (whole ? ETW_F_TICK : 0u) | (other ? ETW_F_TRACEE : 0u);
    a->first_ns = a->begun ? a->first_ns : mono;
    a->begun = true;
    a->tick = tick;
    a->tracee = tracee;
    if (e->kind == ETW_LOST) {
        buf_add(b, a->lost, sizeof(a->lost));
    } else {
        if (ETW_HAS_FUNCTION(event_kinds[e->kind].layout))
            rebatch_put_fun(a, e);
        if (!put_terms(b, e, e->terms, e->nterms))
            flags |= ETW_F_CUT;
        if ((flags & ETW_F_MS) && !put_terms(b, e, e->ms, 1))
            flags |= ETW_F_CUT;
    }
    close_frame(b, at, e->kind, flags);
}

/* ---- batches ---- */

static void put_section(struct buf *to, uint32_t ring, const struct buf *frames, uint64_t seen,
                        const uint64_t lost[ETW_LOSSES])
{
    struct etw_section s = {.ring = ring, .bytes = (uint32_t)frames->len, .seen = seen};

    if (lost)
        memcpy(s.lost, lost, sizeof(s.lost));
    buf_add(to, &s, sizeof(s));
    buf_str(to, buf_view(frames));
}

static void put_batch(struct buf *to, const struct buf *owner, const struct buf *frames, int64_t mono, int64_t wall,
                      uint64_t seen, const uint64_t lost[ETW_LOSSES], uint32_t flags)
{
    uint64_t tick = (uint64_t)mono + BIAS;
    struct etw_batch head = {
        .magic = ETW_BATCH_MAGIC,
        .bytes = (uint32_t)(sizeof(head) + 2 * sizeof(struct etw_section) + owner->len + frames->len),
        .tick = tick,
        .mono_ns = mono,
        .wall_ns = wall,
        .watermark = tick,
        .sections = 2,
        .flags = flags,
    };

    buf_add(to, &head, sizeof(head));
    put_section(to, ETW_META_RING, owner, 0, NULL);
    put_section(to, 0, frames, seen, lost);
}

void rebatch_take(struct rebatch *a, uint64_t seen, bool last, struct buf *to)
{
    put_batch(to, &a->names, &a->frames, a->mono_ns, a->wall_ns, seen, a->lost, last ? ETW_BATCH_LAST : 0);
    buf_clear(&a->names);
    buf_clear(&a->frames);
    table_clear(&a->by_tracee);
    a->nfuns = a->ntracees = a->events = 0;
    a->begun = a->hello = false;
}

void rebatch_own(enum etw_kind kind, struct wire terms, int64_t mono_ns, int64_t wall_ns, uint64_t seen,
                 const uint64_t lost[static ETW_LOSSES], struct buf *to)
{
    struct buf owner = {0}, none = {0};
    size_t at = open_owner_frame(&owner, (uint64_t)mono_ns + BIAS, 0);

    buf_add(&owner, terms.at, (size_t)(terms.end - terms.at));
    close_frame(&owner, at, kind, ETW_F_TICK | ETW_F_TRACEE);
    put_batch(to, &owner, &none, mono_ns, wall_ns, seen, lost, 0);
    buf_release(&owner);
}

void rebatch_rebase(char *batch, size_t len, uint64_t seq, uint64_t seen, const uint64_t lost[static ETW_LOSSES])
{
    struct etw_section s;
    size_t at = sizeof(struct etw_batch);
    bool any = false;

    memcpy(batch + offsetof(struct etw_batch, seq), &seq, sizeof(seq));
    memcpy(&s, batch + at, sizeof(s));
    at += sizeof(s) + s.bytes;
    memcpy(&s, batch + at, sizeof(s));
    s.seen -= seen;
    for (size_t l = 0; l < ETW_LOSSES; l++) {
        any |= lost[l] > 0;
        s.lost[l] -= lost[l];
    }
    memcpy(batch + at, &s, sizeof(s));
    for (at += sizeof(s); any && at < len;) {
        uint64_t counters[ETW_LOSSES];
        uint32_t head = wire_u32((uint8_t *)batch + at);
        if (ETW_HEAD_KIND(head) == ETW_LOST) {
            char *where = batch + at + ETW_HEAD_BYTES(head) - sizeof(counters);
            memcpy(counters, where, sizeof(counters));
            for (size_t l = 0; l < ETW_LOSSES; l++)
                counters[l] -= lost[l];
            memcpy(where, counters, sizeof(counters));
        }
        at += ETW_HEAD_BYTES(head);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saves and restores a merge between two batches: the counts, the clock, and for each ring the names and the frames
 * that are held back. order.c saves the node's hello and name.
 */
#include "merge_state.h"

#include <math.h>

#include "../ground/mem.h"

#define HELD_MAX ((size_t)1 << 20)

/* ---- saving ---- */

static void save_counts(struct buf *to, uint64_t seen, const uint64_t lost[static ETW_LOSSES])
{
    state_number(to, seen);
    for (size_t l = 0; l < ETW_LOSSES; l++)
        state_number(to, lost[l]);
}

static void save_ring(struct buf *to, const struct ring *r)
{
    const struct piece none = {0}, *first = r->npieces ? r->pieces : &none;

    save_counts(to, r->seen, r->lost);
    save_counts(to, 0, r->told);
    state_number(to, r->doubtful);
    state_number(to, first->seq);
    state_number(to, first->offset);
    state_text(to, buf_view(&r->held));
    decode_ring_save(&r->decode, to);
}

static void save_ticks(struct buf *to, const struct ticks *t)
{
    state_number(to, t->count);
    for (unsigned i = 0; i < t->count; i++) {
        const struct ticks_pair *p = &t->pairs[i];
        state_time(to, (int64_t)p->tick);
        state_time(to, p->mono);
        state_time(to, p->wall);
        buf_add(to, &p->mono_slope, sizeof(double));
        buf_add(to, &p->wall_slope, sizeof(double));
    }
}

bool merge_save(const struct merge *m, struct buf *to)
{
    if (m->failed || m->held > HELD_MAX)
        return false;
    state_number(to, m->next_seq);
    state_time(to, (int64_t)m->watermark);
    state_time(to, m->last_mono);
    state_time(to, m->told_ns);
    state_number(to, m->decoded);
    state_number(to, m->tallied);
    state_number(to, m->last);
    state_number(to, m->cut);
    save_counts(to, m->before.seen, m->before.lost);
    state_number(to, m->before.decoded);
    state_number(to, m->before.tallied);
    save_ticks(to, &m->ticks);
    tracees_save(&m->decode.tracees, to);
    decode_ring_save(&m->namer, to);
    save_ring(to, &m->meta);
    state_number(to, m->nrings);
    for (size_t i = 0; i < m->nrings; i++) {
        state_number(to, m->rings[i]->decode.id);
        save_ring(to, m->rings[i]);
    }
    return true;
}

/* ---- restoring ---- */

static uint64_t restore_counts(struct state_in *in, uint64_t lost[static ETW_LOSSES])
{
    uint64_t seen = state_read_number(in);

    for (size_t l = 0; l < ETW_LOSSES; l++)
        lost[l] = state_read_number(in);
    return seen;
}

static bool restore_ring(struct merge *m, struct ring *r, const struct fun *const *funs, size_t nfuns,
                         struct state_in *in)
{
    struct piece first = {0};

    r->seen = restore_counts(in, r->lost);
    restore_counts(in, r->told);
    r->doubtful = state_read_count(in, 1);
    m->doubtful += r->doubtful;
    first.seq = state_read_number(in);
    first.offset = (size_t)state_read_number(in);
    struct str held = state_read_text(in, HELD_MAX);
    if (held.len) {
        buf_str(&r->held, held);
        r->pieces = mem_grow(r->pieces, &r->cap, 1, sizeof(*r->pieces));
        r->pieces[0] = first;
        r->npieces = 1;
        m->held += held.len;
    }
    return decode_ring_load(&r->decode, funs, nfuns, in);
}

static double restore_slope(struct state_in *in)
{
    int64_t bits = state_read_time(in);
    double d;

    memcpy(&d, &bits, sizeof(d));
    in->bad |= !isfinite(d);
    return d;
}

static void restore_ticks(struct state_in *in, struct ticks *t)
{
    t->count = (unsigned)state_read_count(in, TICKS_PAIRS);
    for (unsigned i = 0; i < t->count; i++) {
        struct ticks_pair *p = &t->pairs[i];
        p->tick = (uint64_t)state_read_time(in);
        p->mono = state_read_time(in);
        p->wall = state_read_time(in);
        p->mono_slope = restore_slope(in);
        p->wall_slope = restore_slope(in);
    }
}

bool merge_restore(struct merge *m, const struct fun *const *funs, size_t nfuns, struct state_in *in)
{
    uint64_t lost[ETW_LOSSES];

    if (m->next_seq > 1 || m->failed)
        merge_begin_anew(m);
    m->anew = false; /* this is the first run again */
    m->node.shift_ns = 0;
    m->next_seq = state_read_number(in);
    m->watermark = (uint64_t)state_read_time(in);
    m->last_mono = state_read_time(in);
    m->told_ns = state_read_time(in);
    m->decoded = state_read_number(in);
    m->tallied = state_read_number(in);
    m->last = state_read_count(in, 1);
    m->cut |= state_read_count(in, 1);
    m->before.seen += restore_counts(in, lost);
    for (size_t l = 0; l < ETW_LOSSES; l++)
        m->before.lost[l] += lost[l];
    m->before.decoded += state_read_number(in);
    m->before.tallied += state_read_number(in);
    restore_ticks(in, &m->ticks);
    bool good = tracees_load(&m->decode.tracees, in) && decode_ring_load(&m->namer, funs, nfuns, in) &&
                restore_ring(m, &m->meta, funs, nfuns, in);
    for (uint64_t n = good ? state_read_count(in, MERGE_RINGS) : 0; n && good; n--) {
        const uint32_t id = (uint32_t)state_read_count(in, MERGE_RINGS - 1);
        if (in->bad || m->by_id[id])
            return false;
        good = restore_ring(m, merge_ring(m, id), funs, nfuns, in);
    }
    return good && !in->bad && in->at == in->end && (m->ticks.count || !m->held);
}

bool merge_set_hello(struct merge *m, struct str hello)
{
    const uint8_t *at = (const uint8_t *)hello.at, *end = at + hello.len, *behind;
    struct wire_atoms none = {0};
    const char *why;

    wire_frame(&none);
    const enum wire_found found = wire_check(&none, at, end, 1, &behind, &why);
    const bool good = found == WIRE_OK && behind == end;
    if (good)
        merge_read_hello(m, &(struct event){.env = {.atoms = &none}, .terms = {at, end}});
    wire_atoms_release(&none);
    return good;
}

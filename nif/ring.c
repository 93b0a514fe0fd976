/* SPDX-License-Identifier: Apache-2.0 */
#include "ring.h"

#include <string.h>

#include "tick.h"

void ring_init(struct ring *ring, uint8_t *bytes, uint64_t size, uint64_t most, uint64_t need)
{
    memset(ring, 0, sizeof *ring);
    ring->bytes = bytes;
    ring->first_size = size;
    ring->most = most;
    ring->mask = (uint32_t)size - 1;
    atomic_store_explicit(&ring->grown, UINT64_MAX, memory_order_relaxed);
    ring->odd = RING_FRESH;
    ring->need = need;
    ring->alarmed = UINT64_MAX;
}

void ring_begin(struct ring *ring, uint64_t need, uint64_t tick)
{
    ring->need = need;
    ring->last = ring->segment_end = 0;
    ring->odd = RING_FRESH;
    ring->known = (struct ring_start){ring_own(&ring->head), 0};
    ring->first = ring->count = 0;
    atomic_store_explicit(&ring->overwritten, 0, memory_order_relaxed);
    atomic_store_explicit(&ring->tick, tick, memory_order_release);
    atomic_store_explicit(&ring->seen, 0, memory_order_relaxed);
    for (int i = 0; i < ETW_LOSSES; i++)
        atomic_store_explicit(&ring->lost[i], 0, memory_order_relaxed);
}

/* ---- segments ---------------------------------------------------------------------------------------------------- */

static uint64_t events_written(const struct ring *ring)
{
    uint64_t events = ring_own(&ring->seen);
    for (int i = 0; i < ETW_LOSSES; i++)
        events -= ring_own(&ring->lost[i]);
    return events;
}

static void forget_starts(struct ring *ring, uint64_t tail)
{
    for (; ring->count && ring->starts[ring->first].at <= tail; ring->count--)
        ring->first = (ring->first + 1) % (2 * RING_SEGMENTS);
}

/*
 * Begins a segment at `head`. If events were lost, the first frame of the segment repeats the loss counters, because
 * an earlier frame with the counters may be overwritten.
 */
static void begin_segment(struct ring *ring, uint64_t head, uint64_t tail)
{
    uint64_t events = events_written(ring);
    forget_starts(ring, tail);
    ring->starts[(ring->first + ring->count++) % (2 * RING_SEGMENTS)] = (struct ring_start){head, events};
    ring->segment_end = head + ring->segment;
    ring->odd |= RING_FRESH | (events < ring_own(&ring->seen) ? RING_LOST : 0);
    if (ring->names)
        memset(ring->names, 0, ring->names_bytes);
}

static uint64_t count_events(const struct ring *ring, uint64_t from, uint64_t to)
{
    uint64_t events = 0;
    while (from < to) {
        uint32_t head;
        memcpy(&head, ring_at(ring, from), sizeof head);
        events += ETW_HEAD_KIND(head) != ETW_LOST;
        from += ETW_HEAD_BYTES(head);
    }
    return events;
}

/*
 * Drops the oldest segments until the current segment has room. A quarter of the ring stays free for events after a
 * request for a snapshot. Returns false if the drain has stopped the overwriting.
 *
 * After a snapshot the drain may have left the tail in the middle of a segment. The number of events from there to the
 * end of the segment is not known, so count_events() walks over them once.
 */
static bool overwrite_oldest(struct ring *ring, uint64_t tail)
{
    bool going = true;
    ring_busy(ring); /* the counters are not exact until ring_rest() */
    while (going && ring->segment_end + ring->need > tail + ring_size(ring) / 4 * 3) {
        forget_starts(ring, tail);
        if (!ring->count)
            break;
        struct ring_start next = ring->starts[ring->first];
        uint64_t events = next.events - ring->known.events, word = tail | RING_OVERWRITES;
        if (ring->known.at != tail)
            events = count_events(ring, tail, next.at);
        /* Release: a drain that sees the new tail sees the busy mark, and the frame at the tail. */
        going = atomic_compare_exchange_strong(&ring->tail, &word, next.at | RING_OVERWRITES);
        if (!going)
            break;
        atomic_store_explicit(&ring->overwritten, ring_own(&ring->overwritten) + events, memory_order_release);
        ring->known = next;
        tail = next.at;
    }
    ring_rest(ring);
    return going;
}

void ring_overwrite(struct ring *ring)
{
    if (!ring->segment)
        ring->segment = ring_size(ring) / RING_SEGMENTS;
    /* Release: the drain has read the frames before the tail before the producer overwrites them. */
    atomic_fetch_or_explicit(&ring->tail, RING_OVERWRITES, memory_order_release);
}

uint64_t ring_stop_overwriting(struct ring *ring)
{
    /* Acquire: the frame at the tail is visible, because the producer wrote it before it moved the tail there. */
    uint64_t tail = atomic_fetch_and_explicit(&ring->tail, ~RING_OVERWRITES, memory_order_acq_rel) & ~RING_OVERWRITES,
             tick;
    struct ring_view view = ring_look(ring);
    if (tail == ring->drained)
        return 0;
    if (view.head == tail)
        return view.tick;
    /* A segment begins at the tail, so this frame has its full tick. */
    memcpy(&tick, ring_at(ring, tail) + 8, sizeof tick);
    return tick - 1;
}

/* ---- growth ------------------------------------------------------------------------------------------------------ */

/*
 * Grows the ring to its largest size. Returns false if the ring cannot grow. The frames in the ring stay where they
 * are. The next frame begins behind the first size and its spare bytes, because the spare bytes may have the rest of a
 * frame. ring_publish() stores the next head with release: a drain that sees a position after `grown` also sees the
 * other fields.
 */
static bool grow_ring(struct ring *ring)
{
    uint64_t head = ring_own(&ring->head);
    if (ring_size(ring) == ring->most || ring->segment)
        return false;
    ring->mask = (uint32_t)ring->most - 1;
    ring->shift = (uint32_t)(ring->first_size + ring->need - head) & ring->mask;
    atomic_store_explicit(&ring->grown, head, memory_order_relaxed);
    return true;
}

static uint64_t byte_of(const struct ring *ring, uint64_t position)
{
    /* Relaxed: if the ring grows now, it grows at a position that is not before any position of the caller. */
    if (position < atomic_load_explicit(&ring->grown, memory_order_relaxed))
        return position & (ring->first_size - 1);
    return (uint32_t)(position + ring->shift) & ring->mask;
}

/*
 * Returns the position up to which the producer may write. After the ring has grown, the bytes of the first size stay
 * reserved until the drain has read all frames that were written before.
 */
static uint64_t end_of_room(const struct ring *ring, uint64_t tail)
{
    uint64_t grown = ring_own(&ring->grown);
    return grown == UINT64_MAX || tail >= grown ? tail + ring_size(ring)
                                                : grown + ring_size(ring) - byte_of(ring, grown);
}

bool ring_stays_crowded(struct ring *ring)
{
    ring_look_for_room(ring);
    if (ring->crowded && grow_ring(ring))
        ring_look_for_room(ring);
    return ring->crowded;
}

static int64_t look_for_room(struct ring *ring)
{
    /* Acquire: the drain has copied the bytes before the tail, so the producer may overwrite them. */
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire), head = ring_own(&ring->head);
    bool overwrites = tail & RING_OVERWRITES;
    tail &= ~RING_OVERWRITES;
    if (ring->segment && head > ring->segment_end)
        begin_segment(ring, head, tail);
    /* Relaxed: a producer that sees the flag late only overwrites one more segment. */
    bool still = overwrites && ring->still && atomic_load_explicit(ring->still, memory_order_relaxed);
    if (overwrites && !still && overwrite_oldest(ring, tail)) {
        ring->last = ring->segment_end;
        return (int64_t)ring->need;
    }
    if (overwrites)
        tail = atomic_load_explicit(&ring->tail, memory_order_acquire) & ~RING_OVERWRITES;
    uint64_t full = end_of_room(ring, tail) - ring->need - ring_size(ring) / 8, half = tail + ring_size(ring) / 2;
    if (half > full)
        half = full;
    ring->crowded = head > half;
    ring->last = ring->crowded ? full : half;
    if (ring->segment && ring->last > ring->segment_end)
        ring->last = ring->segment_end;
    if (ring->crowded && ring->alarm && ring->alarmed != tail) {
        ring->alarmed = tail;
        atomic_store_explicit(ring->alarm, true, memory_order_relaxed);
    }
    return (int64_t)(full - head);
}

int64_t ring_look_for_room(struct ring *ring)
{
    int64_t room = look_for_room(ring);
    return room < 0 && grow_ring(ring) ? look_for_room(ring) : room;
}

struct ring_view ring_look(struct ring *ring)
{
    struct ring_view view;
    /*
     * Acquire keeps these loads in order. If `busy` is not set and a frame is not before head, the producer began that
     * frame after the caller read the clock (ring_busy()).
     */
    view.busy = atomic_load_explicit(&ring->busy, memory_order_acquire);
    view.tick = atomic_load_explicit(&ring->tick, memory_order_acquire);
    view.head = atomic_load_explicit(&ring->head, memory_order_acquire);
    view.tail = atomic_load_explicit(&ring->tail, memory_order_relaxed) & ~RING_OVERWRITES;
    view.tail_tick = ring->tail_tick;
    return view;
}

void ring_skip(struct ring *ring)
{
    struct ring_view view = ring_look(ring);
    ring_release(ring, view.head, view.tick);
}

uint64_t ring_latest(struct ring *ring)
{
    /*
     * A busy producer may have stored the head of a frame but not yet its tick. Acquire: if the ring is not busy, the
     * ticks of all frames that the caller has seen are visible.
     */
    if (atomic_load_explicit(&ring->busy, memory_order_acquire))
        return tick_now();
    return atomic_load_explicit(&ring->tick, memory_order_relaxed);
}

const uint8_t *ring_at(const struct ring *ring, uint64_t position)
{
    return ring->bytes + byte_of(ring, position);
}

static uint8_t *copy_part(const struct ring *ring, uint64_t from, uint64_t n, uint64_t size, uint8_t *to)
{
    uint64_t at = byte_of(ring, from), first = size - at;
    if (n <= first) {
        memcpy(to, ring->bytes + at, n);
    } else {
        memcpy(to, ring->bytes + at, first);
        memcpy(to + first, ring->bytes, n - first);
    }
    return to + n;
}

void ring_copy(const struct ring *ring, uint64_t from, uint64_t to, uint8_t *ret_bytes)
{
    /* Relaxed: as in byte_of() */
    uint64_t grown = atomic_load_explicit(&ring->grown, memory_order_relaxed), before = to < grown ? to : grown;
    if (from < before) {
        ret_bytes = copy_part(ring, from, before - from, ring->first_size, ret_bytes);
        from = before;
    }
    if (from < to)
        copy_part(ring, from, to - from, ring_size(ring), ret_bytes);
}

void ring_release(struct ring *ring, uint64_t to, uint64_t tick)
{
    if (ring->tail_tick < tick)
        ring->tail_tick = tick;
    ring->drained = to;
    /* Release: the drain has copied these bytes before the producer sees the new tail. */
    atomic_store_explicit(&ring->tail, to, memory_order_release);
}

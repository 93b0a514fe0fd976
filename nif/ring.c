/* SPDX-License-Identifier: Apache-2.0 */
#include "ring.h"

#include <string.h>

#include "tick.h"

void ring_init(struct ring *ring, uint8_t *bytes, uint64_t size, uint64_t need)
{
    memset(ring, 0, sizeof *ring);
    ring->bytes = bytes;
    ring->size = size;
    ring->odd = RING_FRESH;
    ring->need = need;
    ring->alarmed = UINT64_MAX;
}

void ring_begin(struct ring *ring, uint64_t need, uint64_t tick)
{
    ring->need = need;
    ring->last = 0;
    ring->odd = RING_FRESH;
    atomic_store_explicit(&ring->tick, tick, memory_order_release);
    atomic_store_explicit(&ring->seen, 0, memory_order_relaxed);
    for (int i = 0; i < ETW_LOSSES; i++)
        atomic_store_explicit(&ring->lost[i], 0, memory_order_relaxed);
}

int64_t ring_look_for_room(struct ring *ring)
{
    /* Acquire: the drain has copied the bytes before the tail, so the producer may overwrite them. */
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire), head = ring_own(&ring->head);
    uint64_t full = tail + ring->size - ring->need - ring->size / 8, half = tail + ring->size / 2;
    if (half > full)
        half = full;
    ring->last = head > half ? full : half;
    if (head > half && ring->alarm && ring->alarmed != tail) {
        ring->alarmed = tail;
        atomic_store_explicit(ring->alarm, true, memory_order_relaxed);
    }
    return (int64_t)(full - head);
}

struct ring_view ring_look(struct ring *ring)
{
    struct ring_view view;
    /*
     * Acquire keeps this order: a frame that is neither busy nor before head began after the caller read the clock
     * (ring_busy()).
     */
    view.busy = atomic_load_explicit(&ring->busy, memory_order_acquire);
    view.tick = atomic_load_explicit(&ring->tick, memory_order_acquire);
    view.head = atomic_load_explicit(&ring->head, memory_order_acquire);
    view.tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
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
     * A busy producer may have published a frame and not yet its tick. Acquire: if the ring is not busy, the ticks of
     * all frames that the caller has seen are visible.
     */
    if (atomic_load_explicit(&ring->busy, memory_order_acquire))
        return tick_now();
    return atomic_load_explicit(&ring->tick, memory_order_relaxed);
}

void ring_copy(const struct ring *ring, uint64_t from, uint64_t to, uint8_t *ret_bytes)
{
    uint64_t at = from & (ring->size - 1), n = to - from, first = ring->size - at;
    if (n <= first) {
        memcpy(ret_bytes, ring->bytes + at, n);
    } else {
        memcpy(ret_bytes, ring->bytes + at, first);
        memcpy(ret_bytes + first, ring->bytes, n - first);
    }
}

void ring_release(struct ring *ring, uint64_t to, uint64_t tick)
{
    if (ring->tail_tick < tick)
        ring->tail_tick = tick;
    /* Release: the drain has copied these bytes before the producer sees the new tail. */
    atomic_store_explicit(&ring->tail, to, memory_order_release);
}

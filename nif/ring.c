#include "ring.h"

#include <string.h>

#include "tick.h"

static void set_need(struct ring *ring, uint64_t need)
{
    ring->need = need;
    ring->need_new = need + ring->size / 8;
}

void ring_init(struct ring *ring, uint8_t *bytes, uint64_t size, uint64_t need)
{
    memset(ring, 0, sizeof *ring);
    ring->bytes = bytes;
    ring->size = size;
    ring->fresh = true;
    set_need(ring, need);
}

void ring_begin(struct ring *ring, uint64_t need, uint64_t tick)
{
    set_need(ring, need);
    ring->fresh = true;
    ring->lost_untold = false;
    ring->tick = tick;
    atomic_store_explicit(&ring->pub_tick, tick, memory_order_release);
    atomic_store_explicit(&ring->seen, 0, memory_order_relaxed);
    for (int i = 0; i < ETW_LOSSES; i++)
        atomic_store_explicit(&ring->lost[i], 0, memory_order_relaxed);
}

void ring_skip(struct ring *ring)
{
    ring_release(ring, atomic_load_explicit(&ring->pub_head, memory_order_acquire));
}

struct ring_view ring_look(struct ring *ring)
{
    struct ring_view view;
    /* In this order: a frame that is neither busy nor before head began after our caller's look at the clock. */
    view.busy = atomic_load_explicit(&ring->busy, memory_order_acquire);
    view.tick = atomic_load_explicit(&ring->pub_tick, memory_order_acquire);
    view.head = atomic_load_explicit(&ring->pub_head, memory_order_acquire);
    view.tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    return view;
}

uint64_t ring_latest(struct ring *ring)
{
    /* at work it may have shown a frame without having told its tick */
    if (atomic_load_explicit(&ring->busy, memory_order_acquire))
        return tick_now();
    return atomic_load_explicit(&ring->pub_tick, memory_order_relaxed);
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

void ring_release(struct ring *ring, uint64_t to)
{
    atomic_store_explicit(&ring->tail, to, memory_order_release);
}

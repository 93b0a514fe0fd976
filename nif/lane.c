/* SPDX-License-Identifier: Apache-2.0 */
#include "lane.h"

#include <string.h>

#include "pages.h"
#include "tick.h"

struct lanes lanes;

bool lanes_open(uint32_t count, uint64_t ring_bytes, uint64_t need, struct encode_limits limits)
{
    if (need * 2 > ring_bytes)
        return false;
    if (!lanes.mapping) {
        /*
         * All lanes come first in the mapping, then all rings. The kernel allocates a page at its first use, and a page
         * table for each 2 MiB with a used page, so adjacent lanes need fewer page tables. The spare room after a ring
         * is enough for the `need` of any later session.
         */
        const uint64_t most = lanes.ring_most > ring_bytes ? lanes.ring_most : ring_bytes;
        const size_t stride = whole_pages(sizeof(struct lane)), ring_stride = whole_pages(most + ring_bytes / 2);
        void *mapping = pages_map((stride + ring_stride) * count);
        if (!mapping)
            return false;
        lanes.mapping = mapping;
        lanes.mapped = (stride + ring_stride) * count;
        lanes.stride = stride;
        lanes.count = count;
        for (uint32_t i = 0; i < count; i++) {
            struct lane *lane = lane_at(i);
            lane->slot = i;
            ring_init(&lane->ring, lanes.mapping + stride * count + ring_stride * i, ring_bytes, most, need);
            lane->ring.alarm = lanes.alarm;
            lane->ring.still = &lanes.still;
            lane->ring.names = &lane->encoder.names;
            lane->ring.names_bytes = sizeof lane->encoder.names;
        }
    } else if (need * 2 > lane_at(0)->ring.first_size) {
        return false;
    }
    for (uint32_t i = 0; i < lanes_claimed(); i++) {
        struct lane *lane = lane_at(i);
        ring_skip(&lane->ring);
        atomic_store_explicit(&lane->ring.seen, 0, memory_order_relaxed);
        atomic_store_explicit(&lane->ring.overwritten, 0, memory_order_relaxed);
        for (int j = 0; j < ETW_LOSSES; j++)
            atomic_store_explicit(&lane->ring.lost[j], 0, memory_order_relaxed);
        atomic_store_explicit(&lane->newcomers_tail, atomic_load(&lane->newcomers_head), memory_order_relaxed);
        lane->told_seen = lane->told_overwritten = 0;
        lane->told_amid = false;
    }
    atomic_store(&lanes.no_lane, 0);
    atomic_store(&lanes.unnamed, false);
    lanes.overwrites = false;
    atomic_store(&lanes.watches, false);
    lanes.need = need;
    lanes.limits = limits;
    lanes.epoch++;
    return true;
}

void lanes_overwrite(void)
{
    lanes.overwrites = true;
    atomic_store(&lanes.still, false);
    for (uint32_t i = 0; i < lanes.count; i++)
        ring_overwrite(&lane_at(i)->ring);
}

uint64_t lanes_watch(void)
{
    uint64_t fired = atomic_exchange(&lanes.fired, 0);
    atomic_store(&lanes.watches, true);
    return fired;
}

bool lanes_fire(void)
{
    atomic_fetch_add_explicit(&lanes.fired, 1, memory_order_relaxed);
    if (!atomic_load_explicit(&lanes.watches, memory_order_relaxed) || !atomic_exchange(&lanes.watches, false))
        return false;
    atomic_store(&lanes.still, true);
    return true;
}

/*
 * If lanes_fire() could still have requested a snapshot, this counts like a call of lanes_fire(), because the caller
 * takes the snapshot.
 */
bool lanes_unwatch(void)
{
    const bool watched = atomic_exchange(&lanes.watches, false);
    if (watched)
        atomic_fetch_add_explicit(&lanes.fired, 1, memory_order_relaxed);
    return watched;
}

uint64_t lanes_stop_overwriting(void)
{
    uint64_t from = 0;
    lanes.overwrites = false;
    for (uint32_t i = 0; i < lanes.count; i++) {
        uint64_t tick = ring_stop_overwriting(&lane_at(i)->ring);
        from = tick > from ? tick : from;
    }
    return from;
}

void lanes_unmap(void)
{
    if (lanes.mapping)
        munmap(lanes.mapping, lanes.mapped);
    lanes.mapping = NULL;
}

uint32_t lanes_newcomers(uint32_t first, struct newcomer *ret_newcomers, uint32_t most, bool *ret_more)
{
    uint32_t claimed = lanes_claimed(), count = 0;
    *ret_more = false;
    for (uint32_t i = 0; i < claimed; i++) {
        struct lane *lane = lane_at((first + i) % claimed);
        uint32_t head = atomic_load_explicit(&lane->newcomers_head, memory_order_acquire);
        uint32_t tail = atomic_load_explicit(&lane->newcomers_tail, memory_order_relaxed);
        for (; tail != head && count < most; tail++)
            ret_newcomers[count++] = lane->newcomers[tail % LANE_NEWCOMERS];
        /* Release: the newcomers are read before the producer sees the new tail and overwrites them. */
        atomic_store_explicit(&lane->newcomers_tail, tail, memory_order_release);
        *ret_more |= tail != head;
    }
    return count;
}

/* Lanes never leave their place, and probing is linear, so an empty place means that this thread has no lane yet. */
static struct lane *find_or_claim(uintptr_t thread)
{
    unsigned at = lane_place(thread);
    struct lane *lane;
    for (; (lane = atomic_load_explicit(&lanes.places[at], memory_order_acquire)); at = (at + 1) % LANE_PLACES)
        if (lane->thread == thread)
            return lane;
    if (atomic_load_explicit(&lanes.claimed, memory_order_relaxed) >= lanes.count)
        return NULL;
    uint32_t slot = atomic_fetch_add(&lanes.claimed, 1);
    if (slot >= lanes.count)
        return NULL;
    lane_at(slot)->thread = thread;
    for (lane = NULL; !atomic_compare_exchange_strong(&lanes.places[at], &lane, lane_at(slot)); lane = NULL)
        at = (at + 1) % LANE_PLACES;
    return lane_at(slot);
}

__attribute__((noinline)) struct lane *lane_claim(uintptr_t thread)
{
    struct lane *lane = find_or_claim(thread);
    if (!lane)
        return NULL;
    if (lane->epoch != lanes.epoch) {
        memset(&lane->encoder.names, 0, sizeof lane->encoder.names);
        lane->encoder.limits = lane->held.limits = lanes.limits;
        lane->held.words = lane->words;
        memset(lane->met, 0, sizeof lane->met);
        lane->tracee = 0;
        lane->time_left = 0, lane->time_at = 0;
        ring_begin(&lane->ring, lanes.need, tick_now());
        lane->epoch = lanes.epoch;
    }
    return lane;
}

/* Adds a newcomer to the queue of the lane. Returns false if the queue is full. */
static bool queue_newcomer(struct lane *lane, struct newcomer newcomer)
{
    uint32_t head = atomic_load_explicit(&lane->newcomers_head, memory_order_relaxed);
    /* Acquire: the drain has read the entry that this one overwrites. */
    if (head - atomic_load_explicit(&lane->newcomers_tail, memory_order_acquire) == LANE_NEWCOMERS)
        return false;
    lane->newcomers[head % LANE_NEWCOMERS] = newcomer;
    /* Release: a drain that sees the new head sees the entry. */
    atomic_store_explicit(&lane->newcomers_head, head + 1, memory_order_release);
    return true;
}

void lane_greet_slowly(struct lane *lane, uint64_t word)
{
    if (queue_newcomer(lane, (struct newcomer){word, 0})) /* else retry at the tracee's next event */
        lane->met[(word >> 4) % LANE_MET] = word;
}

void lane_name(struct lane *lane, uint64_t process, uint64_t name)
{
    bool queued = queue_newcomer(lane, (struct newcomer){process, name});
    uint32_t head = atomic_load_explicit(&lane->newcomers_head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(&lane->newcomers_tail, memory_order_relaxed);
    /* Relaxed: if one drain does not see the flag yet, the next drain does. */
    if (!queued)
        atomic_store_explicit(&lanes.unnamed, true, memory_order_relaxed);
    /*
     * Relaxed: this same thread reads the alarm next, when it rings the bell. Each further name before the drain may
     * ring the bell again.
     */
    if (lanes.alarm && head - tail >= LANE_NEWCOMERS / 2)
        atomic_store_explicit(lanes.alarm, true, memory_order_relaxed);
}

/* ---- rounds of figures ------------------------------------------------------------------------------------------- */

void round_clear(struct round *r)
{
    r->begun = false;
    memset(r->told, 0xff, sizeof r->told);
}

void round_begin(struct round *r)
{
    for (uint32_t i = 0; !r->begun && i < lanes_claimed(); i++)
        r->looked[i] = atomic_load_explicit(&lane_at(i)->counted, memory_order_acquire);
    r->begun = true;
}

void round_end(struct round *r)
{
    memcpy(r->told, r->looked, sizeof r->told);
    r->begun = false;
}

bool round_is_told(const struct round *r)
{
    /*
     * Acquire: if the round has read a figure while a thread was counting an event, the loads below see the odd value
     * of `counted` that the thread stored before, or a later value.
     */
    atomic_thread_fence(memory_order_acquire);
    for (uint32_t i = 0; i < lanes_claimed(); i++) {
        uint64_t counted = atomic_load_explicit(&lane_at(i)->counted, memory_order_acquire);
        if (counted & 1 || counted != r->told[i])
            return false;
    }
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes frames from one writing thread (the *producer*) to one reading thread at a time (the *drain*) through a ring
 * of bytes.
 *
 * The caller of ring_init() provides the memory and frees it. A position counts all bytes ever written before it; its
 * remainder by the size of the ring, a power of two, is its index in the ring. `need` spare bytes follow the ring, so
 * the producer always writes a frame in one piece. If the frame crosses the end of the ring, the producer then copies
 * the rest to the front. The ring has no locks and no waiting: if there is no room, the producer counts the event as
 * lost.
 *
 * Only the drain writes tail and tail_tick; only the producer writes the other fields. Any thread may read the atomic
 * fields.
 *
 * A ring may also overwrite its oldest frames, for the flight recorder. The producer then cuts the ring into segments.
 * The drain can begin to read at the start of any segment: the first frame of a segment has its full tick and tracee,
 * and the segment defines its names anew. If there is no room, the producer drops the oldest segment: it moves the tail
 * to the next segment and counts the events before the tail as overwritten. While RING_OVERWRITES is set in the tail,
 * only the producer moves the tail, with a compare-and-exchange, and the drain reads nothing. The drain ends the
 * overwriting by clearing the bit. From then on only the drain moves the tail, and a full ring loses new events.
 */
#ifndef ETRACE_RING_H
#define ETRACE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "etrace_wire.h"

#define RING_LINE 64
#define RING_AHEAD 512
#define RING_OVERWRITES (UINT64_C(1) << 63) /* a bit of `tail` */
#define RING_SEGMENTS 32u                   /* a segment is this part of the ring, up to the end of its last frame */

enum ring_odd {
    RING_FRESH = 1, /* the next frame needs its full tick and tracee */
    RING_LOST = 2,  /* events were lost since the last frame */
};

struct ring {
    /* One cache line with all that the producer needs for most frames. */
    _Alignas(RING_LINE) uint8_t *bytes;
    uint32_t mask, shift;  /* the index of a position in `bytes` is (position + shift) & mask */
    uint64_t last;         /* a frame that begins here or before surely has room; else ring_look_for_room() decides */
    uint64_t tracee;       /* the tracee of the last frame */
    _Atomic uint64_t head; /* the position after the last frame */
    _Atomic uint64_t tick; /* the tick of the last frame; stored after head, so it must be loaded before head */
    _Atomic uint64_t seen; /* events that were counted as seen */
    _Atomic uint32_t busy; /* 1 while the producer writes a frame or counts a loss; set before it reads the clock */
    uint32_t odd;          /* a set of enum ring_odd */

    _Alignas(RING_LINE) _Atomic uint64_t lost[ETW_LOSSES];
    uint64_t need;             /* bytes of the longest frame */
    uint64_t first_size, most; /* size of the ring in bytes, before and after it grows */
    /* The position at which the ring grew: frames before it were written with first_size. UINT64_MAX: not grown. */
    _Atomic uint64_t grown;
    uint64_t alarmed; /* the tail when the producer last set *alarm */
    /* A flag that the producer sets when the ring is more than half full, once until the tail moves. NULL: no flag. */
    _Atomic bool *alarm;
    bool crowded; /* the ring was more than half full at the last look */

    _Alignas(RING_LINE) _Atomic uint64_t tail;
    uint64_t tail_tick; /* a tick not later than that of the last frame before tail */
    uint64_t drained;   /* the position up to which the drain has read; only the drain uses it */

    /* For rings that overwrite. The producer writes these fields. The drain sets `segment` before anything is traced.
     */
    _Alignas(RING_LINE) uint64_t segment; /* bytes after which a segment ends; 0: the ring never overwrites */
    uint64_t segment_end;                 /* a frame that begins after this position begins a segment */
    _Atomic uint64_t overwritten;         /* events in overwritten segments */
    struct ring_start {
        uint64_t at, events; /* a position; how many events were written before it */
        /* known: the last tail that the producer set. starts: the starts of the segments after the tail, in order. */
    } known, starts[2 * RING_SEGMENTS];
    uint32_t first, count; /* the queue in `starts`: the index of its first entry, and its length */
    /* While *still is set, the producer overwrites nothing: the drain is about to read the ring. NULL: no flag. */
    const _Atomic bool *still;
    void *names; /* the names that the ring has defined; zeroed at the start of a segment */
    size_t names_bytes;
};

/* Returns the size in bytes. If the ring may grow, the drain may call this only after seeing a position > grown. */
static inline uint64_t ring_size(const struct ring *ring)
{
    return (uint64_t)ring->mask + 1;
}

/*
 * Initialises a ring. size and most are powers of two and at least twice `need`; `bytes` has most + need bytes. A ring
 * without room for a new frame grows once from `size` to `most`. Until then it touches no bytes beyond size + need. A
 * ring that has ever overwritten frames does not grow.
 */
void ring_init(struct ring *ring, uint8_t *bytes, uint64_t size, uint64_t most, uint64_t need);

/*
 * Resets the counters, and makes the next frame have its full tick and tracee. need: the bytes of the longest frame, at
 * most as many as lane.c leaves behind the ring. The producer calls it.
 */
void ring_begin(struct ring *ring, uint64_t need, uint64_t tick);

/* Drops all frames in the ring. The drain calls it. */
void ring_skip(struct ring *ring);

/* Makes the ring overwrite its oldest frames. The drain calls it. */
void ring_overwrite(struct ring *ring);

/*
 * Stops the overwriting, so that the drain may read the ring. The drain calls it. Returns a tick: all frames after that
 * tick are in the ring. Returns 0 if the drain had read all frames that were overwritten.
 */
uint64_t ring_stop_overwriting(struct ring *ring);

/* ---- producer ---------------------------------------------------------------------------------------------------- */

static inline uint64_t ring_own(const _Atomic uint64_t *field)
{
    return atomic_load_explicit(field, memory_order_relaxed);
}

/*
 * Reads the tail again, and makes room if the ring overwrites its oldest frames. Returns the free bytes minus the
 * longest frame and minus the reserved eighth (ring_has_room_for_new()). If the result is negative, that many bytes of
 * the reserved eighth are used.
 */
int64_t ring_look_for_room(struct ring *ring);

/*
 * Returns true if there is room for a new event. An eighth of the ring is reserved for events that follow from others,
 * so a call is seldom sent without its result.
 */
static inline bool ring_has_room_for_new(struct ring *ring)
{
    return __builtin_expect(ring_own(&ring->head) <= ring->last, 1) || ring_look_for_room(ring) >= 0;
}

/*
 * Returns true if there is room for an event that follows from another event, such as a result. Such an event may also
 * use the reserved eighth.
 */
static inline bool ring_has_room(struct ring *ring)
{
    return __builtin_expect(ring_own(&ring->head) <= ring->last, 1) ||
           ring_look_for_room(ring) >= -(int64_t)(ring_size(ring) / 8);
}

/*
 * Makes the ring grow if it is more than half full. Returns true if the ring is still more than half full after that.
 * The producer calls it.
 */
bool ring_stays_crowded(struct ring *ring);

static inline bool ring_is_crowded(struct ring *ring)
{
    return __builtin_expect(ring_own(&ring->head) > ring->last || ring->crowded, 0) && ring_stays_crowded(ring);
}

/*
 * Counts an event as seen. Release: a drain that sees the count also sees the busy mark, or the event's frame or loss.
 * Otherwise the drain could call a batch exact that counts the event as seen and neither delivers it nor counts it as
 * lost.
 */
static inline void ring_count_seen(struct ring *ring)
{
    atomic_store_explicit(&ring->seen, ring_own(&ring->seen) + 1, memory_order_release);
}

/*
 * Counts as lost an event that ring_count_seen() has counted. Release: a drain that sees the loss sees the event
 * counted as seen.
 */
static inline void ring_lose_seen(struct ring *ring, enum etw_loss why)
{
    atomic_store_explicit(&ring->lost[why], ring_own(&ring->lost[why]) + 1, memory_order_release);
    ring->odd |= RING_LOST;
}

static inline uint8_t *ring_place(struct ring *ring)
{
    uint8_t *at = ring->bytes + ((uint32_t)(ring_own(&ring->head) + ring->shift) & ring->mask);
    /* The drain's processor may own the cache line that the producer writes some frames later: prefetch it. */
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(at[RING_AHEAD]));
#else
    __builtin_prefetch(at + RING_AHEAD, 1);
#endif
    return at;
}

/*
 * Marks the ring as busy: the producer is about to write a frame. The watermark stays before that frame until
 * ring_rest().
 *
 * The producer reads the frame's tick after this store. A processor may read its clock before other processors see the
 * store, on x86-64 too. This function has no fence against that, because a fence is slow. Instead, the drain sets its
 * watermark tick_slack() before its own reading of the clock. A store becomes visible within a fraction of that time,
 * and at once when the thread is interrupted. So the drain has seen the busy mark or the frame of every tick up to the
 * watermark. The signal fence keeps the compiler from moving the reading of the clock before the store.
 */
static inline void ring_busy(struct ring *ring)
{
    atomic_store_explicit(&ring->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

/*
 * Publishes the frame in [at, end); `at` is ring_place(). Release: a drain that sees the new head sees the frame's
 * bytes, and a drain that sees the new tick sees the new head. A drain that loads the tick and then the head gets a
 * tick that is not later than the tick of the last frame before that head.
 */
static inline void ring_publish(struct ring *ring, const uint8_t *at, const uint8_t *end, uint64_t tick)
{
    const uint8_t *behind = ring->bytes + ring_size(ring);
    if (__builtin_expect(end > behind, 0))
        __builtin_memcpy(ring->bytes, behind, (size_t)(end - behind));
    atomic_store_explicit(&ring->head, ring_own(&ring->head) + (uint64_t)(end - at), memory_order_release);
    atomic_store_explicit(&ring->tick, tick, memory_order_release);
}

/* Clears the busy mark. Release: a drain that sees it cleared sees the frame, its tick, and the counters. */
static inline void ring_rest(struct ring *ring)
{
    atomic_store_explicit(&ring->busy, 0, memory_order_release);
}

static inline void ring_lose(struct ring *ring, enum etw_loss why)
{
    ring_busy(ring);
    ring_count_seen(ring);
    ring_lose_seen(ring, why);
    ring_rest(ring);
}

/* ---- drain ------------------------------------------------------------------------------------------------------- */

/* A ring as the drain sees it at one moment. */
struct ring_view {
    uint64_t tail, head;
    uint64_t tail_tick;
    uint64_t tick; /* not later than the tick of the last frame before head */
    bool busy;     /* the producer may be writing a frame, whose tick is not earlier than `tick` */
};

struct ring_view ring_look(struct ring *ring);

/* Returns a tick that is not earlier than the tick of any visible frame. */
uint64_t ring_latest(struct ring *ring);

/* Returns the address of the byte at a position. A frame that begins at this position is in one piece. */
const uint8_t *ring_at(const struct ring *ring, uint64_t position);

void ring_copy(const struct ring *ring, uint64_t from, uint64_t to, uint8_t *ret_bytes);

/*
 * Lets the producer overwrite the bytes before the position `to`. tick: not later than the tick of the last frame
 * before that position.
 */
void ring_release(struct ring *ring, uint64_t to, uint64_t tick);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes frames from one writing thread (the *producer*) to one reading thread at a time (the *drain*) through a ring
 * of bytes.
 *
 * The caller of ring_init() provides the memory and frees it. Positions count all bytes ever written; the index of a
 * position is its remainder by the size, a power of two. `need` spare bytes follow the ring, so the producer always
 * writes a frame in one piece. It then copies the part beyond the end to the front, and the drain sees a plain ring.
 * The ring has no locks and no waiting: if there is no room, the producer counts the event as lost.
 *
 * Only the drain writes tail and tail_tick; only the producer writes the other fields. Any thread may read the atomic
 * fields.
 *
 * A ring may also overwrite its oldest frames, for the flight recorder. The producer then cuts the ring into segments.
 * The drain can begin to read at each of them: the first frame of a segment has its full tick and tracee, and the
 * producer forgets which names the ring has defined. If there is no room, the producer drops the oldest segment: it
 * moves the tail and counts the events before it as overwritten. While RING_OVERWRITES is set in the tail, only the
 * producer moves the tail, with a compare-and-exchange, and the drain reads nothing. The drain stops that by clearing
 * the bit. From then on the tail is the drain's, and the ring loses new events when it is full, as any other ring.
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
#define RING_SEGMENTS 32u                   /* a segment ends with the first frame behind this part of the ring */

enum ring_odd {
    RING_FRESH = 1, /* the next frame needs its full tick and tracee */
    RING_LOST = 2,  /* events were lost since the last frame */
};

struct ring {
    /* One cache line: all that most frames need. The producer writes it. */
    _Alignas(RING_LINE) uint8_t *bytes;
    uint32_t mask, shift;  /* a position is at the byte (position + shift) & mask */
    uint64_t last;         /* up to this position a frame surely has room; beyond it, ring_look_for_room() decides */
    uint64_t tracee;       /* the tracee of the last frame */
    _Atomic uint64_t head; /* the position after the last frame */
    _Atomic uint64_t tick; /* the tick of the last frame; stored after head, so it must be loaded before head */
    _Atomic uint64_t seen;
    _Atomic uint32_t busy; /* the producer writes a frame or counts a loss; set before it reads the clock */
    uint32_t odd;          /* enum ring_odd */

    _Alignas(RING_LINE) _Atomic uint64_t lost[ETW_LOSSES];
    uint64_t need;             /* bytes of the longest frame */
    uint64_t first_size, most; /* in bytes: before it grows, and afterwards */
    /* Positions before this one are bytes of the ring with its first size. UINT64_MAX: the ring has not grown. */
    _Atomic uint64_t grown;
    uint64_t alarmed; /* the tail at the last alarm */
    /* Set by the producer when the ring is more than half full, at most once until the tail moves; NULL: no alarm */
    _Atomic bool *alarm;
    bool crowded; /* the ring was more than half full at the last look */

    _Alignas(RING_LINE) _Atomic uint64_t tail;
    uint64_t tail_tick; /* a tick not later than that of the last frame before tail */
    uint64_t drained;   /* the position up to which the drain has read; only the drain uses it */

    /* For rings that overwrite. The producer writes these fields, the drain `segment`, before anything is traced. */
    _Alignas(RING_LINE) uint64_t segment; /* bytes after which a segment ends; 0: the ring never overwrites */
    uint64_t segment_end;                 /* a frame that begins after this position begins a segment */
    _Atomic uint64_t overwritten;         /* events */
    struct ring_start {
        uint64_t at, events;            /* a position; how many events were written before it */
    } known, starts[2 * RING_SEGMENTS]; /* a tail whose count is known; segments behind the tail, in order */
    uint32_t first, count;              /* of `starts`, a queue */
    /*
     * While this is set, the ring overwrites nothing until the drain has taken the tail over. NULL: there is no such
     * flag
     */
    const _Atomic bool *still;
    void *names; /* the names that the ring has defined; zeroed at the start of a segment */
    size_t names_bytes;
};

/* Returns the size in bytes. The drain may call this once it knows a position after `grown`. */
static inline uint64_t ring_size(const struct ring *ring)
{
    return (uint64_t)ring->mask + 1;
}

/*
 * Initialises a ring. Sizes are powers of two and at least twice need; bytes has most + need bytes. A ring that has no
 * room for a new frame grows once from `size` to `most`, unless it has ever overwritten. Until then it touches no
 * further bytes.
 */
void ring_init(struct ring *ring, uint8_t *bytes, uint64_t size, uint64_t most, uint64_t need);

/*
 * Resets the counters; the next frame has its full tick and tracee. need: at most that of ring_init(). The producer
 * calls it.
 */
void ring_begin(struct ring *ring, uint64_t need, uint64_t tick);

/* Drops all frames in the ring. The drain calls it. */
void ring_skip(struct ring *ring);

/* Makes the ring overwrite its oldest frames. The drain calls it. */
void ring_overwrite(struct ring *ring);

/*
 * Stops the overwriting, so that the drain may read the ring. The drain calls it. Returns a tick: all frames after that
 * tick are in the ring. Returns 0 if nothing was overwritten that the drain had not read.
 */
uint64_t ring_stop_overwriting(struct ring *ring);

/* ---- producer ---------------------------------------------------------------------------------------------------- */

static inline uint64_t ring_own(const _Atomic uint64_t *field)
{
    return atomic_load_explicit(field, memory_order_relaxed);
}

/*
 * Reads the tail again, and overwrites the oldest frames if the ring does that. Returns the free bytes minus the
 * longest frame and the reserved eighth (ring_has_room_for_new()); a negative result says how many bytes of the reserve
 * are used.
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
 * Returns true if there is room, the reserve included, for an event that follows from another event, such as a result.
 */
static inline bool ring_has_room(struct ring *ring)
{
    return __builtin_expect(ring_own(&ring->head) <= ring->last, 1) ||
           ring_look_for_room(ring) >= -(int64_t)(ring_size(ring) / 8);
}

/* Makes the ring grow if it is more than half full. Returns true if it is and cannot grow. The producer calls it. */
bool ring_stays_crowded(struct ring *ring);

static inline bool ring_is_crowded(struct ring *ring)
{
    return __builtin_expect(ring_own(&ring->head) > ring->last || ring->crowded, 0) && ring_stays_crowded(ring);
}

/*
 * Counts an event as seen. Release: a drain that sees the count also sees that the ring is busy, or the event's frame
 * or loss. Without it, the drain could consider a batch exact that counts the event and neither delivers nor loses it.
 */
static inline void ring_count_seen(struct ring *ring)
{
    atomic_store_explicit(&ring->seen, ring_own(&ring->seen) + 1, memory_order_release);
}

/*
 * Counts as lost an event that ring_count_seen() already counted. Release: a drain that sees the loss sees the count.
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
 * store, on x86-64 too, and this function spends no fence to prevent it. The drain allows for the delay by time: its
 * watermark stays tick_slack() behind its own reading of the clock. A store leaves a running processor within a
 * fraction of that time, and an interrupted one at once. If a frame's tick is not later than the watermark, the drain
 * has therefore seen the busy mark or the frame. The signal fence keeps the compiler from moving the reading of the
 * clock before the store.
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

struct ring_view {
    uint64_t tail, head;
    uint64_t tail_tick;
    uint64_t tick; /* a tick not later than that of the last frame before head */
    bool busy;     /* the producer may be writing a frame; its tick is not earlier than `tick` */
};

struct ring_view ring_look(struct ring *ring);

/* Returns a tick that is not earlier than the tick of any visible frame. */
uint64_t ring_latest(struct ring *ring);

/* Returns where the byte of a position is. The rest of a frame that begins there follows in one piece. */
const uint8_t *ring_at(const struct ring *ring, uint64_t position);

void ring_copy(const struct ring *ring, uint64_t from, uint64_t to, uint8_t *ret_bytes);

/* Returns the bytes before this position to the producer. tick: not later than the tick of the last frame before it. */
void ring_release(struct ring *ring, uint64_t to, uint64_t tick);

#endif

/*
 * A ring of bytes with one writing thread (the *producer*) and one reading thread at a time (the *drain*).
 *
 * The ring owns nothing: its memory is given by ring_init() and taken back by whoever gave it. Positions count bytes from
 * the beginning of time; a position's place is its remainder by the size, a power of two. Behind the last byte lie `need`
 * more, so that whatever the producer writes is one piece; what ran over is copied to the front as well, and so the drain
 * sees a plain ring. There are no locks, no atomic read-modify-write, no waiting: without room the event is counted as
 * lost and that is all.
 *
 * Who may touch what: tail is the drain's, all else is written by the producer; anybody may read what is atomic.
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

enum ring_odd {
    RING_FRESH = 1, /* the next frame tells tick and tracee in full */
    RING_LOST = 2,  /* something was lost since the last frame */
};

struct ring {
    /* one line, all that most frames touch: the producer's, with what it shows to anybody */
    _Alignas(RING_LINE) uint8_t *bytes;
    uint64_t size;
    uint64_t last;         /* for a frame that begins behind it there is perhaps no room, or the drain is late */
    uint64_t tracee;       /* of the last frame */
    _Atomic uint64_t head; /* behind the last frame */
    _Atomic uint64_t tick; /* of the last frame; stored behind head, to be read before it */
    _Atomic uint64_t seen;
    _Atomic uint32_t busy; /* a frame is being written, stored before its tick is read; or a loss is counted */
    uint32_t odd;          /* enum ring_odd */

    _Alignas(RING_LINE) _Atomic uint64_t lost[ETW_LOSSES];
    uint64_t need;  /* no frame is longer */
    uint64_t alarmed;    /* where the tail was when the alarm was given */
    _Atomic bool *alarm; /* set when half of the ring waits for the drain, once until that moves; NULL: not */

    _Alignas(RING_LINE) _Atomic uint64_t tail;
    uint64_t tail_tick; /* the drain's: not later than the tick of the frame before tail */
};

/* Size is a power of two and at least twice need; bytes has size + need bytes. */
void ring_init(struct ring *ring, uint8_t *bytes, uint64_t size, uint64_t need);

/* Producer: forgets its counters, begins the next frame in full. Need is at most what ring_init() was given. */
void ring_begin(struct ring *ring, uint64_t need, uint64_t tick);

/* Drain: drops what is in the ring. */
void ring_skip(struct ring *ring);

/* ---- producer ----------------------------------------------------------------------------------------------------- */

static inline uint64_t ring_own(const _Atomic uint64_t *field)
{
    return atomic_load_explicit(field, memory_order_relaxed);
}

/* Looks anew at what the drain has taken: the bytes that are left beside the longest frame and what is kept; negative: so many of these. */
int64_t ring_look_for_room(struct ring *ring);

/* For what is new: an eighth of the ring is left to what follows, so that a call is seldom without its return. */
static inline bool ring_has_room_for_new(struct ring *ring)
{
    return __builtin_expect(ring_own(&ring->head) <= ring->last, 1) || ring_look_for_room(ring) >= 0;
}

/* For what follows from an event that is in the ring: a return. */
static inline bool ring_has_room(struct ring *ring)
{
    return __builtin_expect(ring_own(&ring->head) <= ring->last, 1) || ring_look_for_room(ring) >= -(int64_t)(ring->size / 8);
}

/*
 * Counts an event as seen. Release: a drain that sees the count sees that the ring is busy with the event, or what became of it. Else
 * it could take a batch for exact in which the event is counted, but neither delivered nor lost.
 */
static inline void ring_count_seen(struct ring *ring)
{
    atomic_store_explicit(&ring->seen, ring_own(&ring->seen) + 1, memory_order_release);
}

/* An event that was counted as seen before. Release: a drain that sees the loss sees the count. */
static inline void ring_lose_seen(struct ring *ring, enum etw_loss why)
{
    atomic_store_explicit(&ring->lost[why], ring_own(&ring->lost[why]) + 1, memory_order_release);
    ring->odd |= RING_LOST;
}

static inline uint8_t *ring_place(struct ring *ring)
{
    uint8_t *at = ring->bytes + (ring_own(&ring->head) & (ring->size - 1));
    /* The line that will be written some frames later is at the drain's processor, or nowhere near: it is asked for now. */
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(at[RING_AHEAD]));
#else
    __builtin_prefetch(at + RING_AHEAD, 1);
#endif
    return at;
}

/*
 * A frame is about to be written: from here until ring_rest() the watermark stays before it.
 *
 * The producer reads the frame's tick behind this store. A processor may read its clock before the store is visible to others, on
 * x86-64 as well, and no fence is spent on that. The drain allows for it by time: its watermark stays tick_slack() before its own look
 * at the clock. A store leaves a running processor within a fraction of that, and leaves an interrupted one at once. So if the frame's
 * tick is not later than the watermark, the drain has seen the ring busy or has seen the frame. The fence here keeps the compiler
 * from moving the look at the clock before the store.
 */
static inline void ring_busy(struct ring *ring)
{
    atomic_store_explicit(&ring->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

/*
 * Shows the frame that was written from `at`, its place, to `end`. Release: a drain that sees the head sees the bytes before it. One
 * that sees the tick sees the head, so the tick that it reads is not later than that of the last frame before the head that it reads
 * behind it.
 */
static inline void ring_publish(struct ring *ring, const uint8_t *at, const uint8_t *end, uint64_t tick)
{
    const uint8_t *behind = ring->bytes + ring->size;
    if (__builtin_expect(end > behind, 0))
        __builtin_memcpy(ring->bytes, behind, (size_t)(end - behind));
    atomic_store_explicit(&ring->head, ring_own(&ring->head) + (uint64_t)(end - at), memory_order_release);
    atomic_store_explicit(&ring->tick, tick, memory_order_release);
}

/* No frame is being written. Release: a drain that sees the rest sees the frame, its tick, and the counters. */
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

/* ---- drain -------------------------------------------------------------------------------------------------------- */

struct ring_view {
    uint64_t tail, head;
    uint64_t tail_tick;
    uint64_t tick; /* not later than the last frame's before head */
    bool busy;     /* a frame may be on its way, not earlier than tick */
};

struct ring_view ring_look(struct ring *ring);

/* Not earlier than any frame that is visible now. */
uint64_t ring_latest(struct ring *ring);

/* Copies what lies between two positions. */
void ring_copy(const struct ring *ring, uint64_t from, uint64_t to, uint8_t *ret_bytes);

/* Gives the bytes before this position back to the producer. Tick: not later than that of the last frame before it. */
void ring_release(struct ring *ring, uint64_t to, uint64_t tick);

#endif

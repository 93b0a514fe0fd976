/*
 * A ring of bytes with one writing thread (the *producer*) and one reading thread at a time (the *drain*).
 *
 * The ring owns nothing: its memory is given by ring_init() and taken back by whoever gave it. Positions count bytes from
 * the beginning of time; a position's place is its remainder by the size, a power of two. Behind the last byte lie `need`
 * more, so that whatever the producer writes is one piece; what ran over is copied to the front as well, and so the drain
 * sees a plain ring. There are no locks, no atomic read-modify-write, no waiting: without room the event is counted as
 * lost and that is all.
 *
 * Who may touch what: the first group of fields belongs to the producer, the second is written by the producer and read
 * by anybody, the third is the drain's.
 */
#ifndef ETRACE_RING_H
#define ETRACE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "etrace_wire.h"

#define RING_LINE 64
#define RING_AHEAD 512

struct ring {
    _Alignas(RING_LINE) uint8_t *bytes;
    uint64_t size, head, tail_seen;
    uint64_t need;     /* no frame is longer */
    uint64_t need_new; /* and the room that is kept */
    uint64_t tick;     /* of the last frame */
    uint64_t tracee;   /* of the last frame */
    bool fresh;        /* the next frame tells tick and tracee in full */
    bool lost_untold;  /* something was lost since the last frame */

    _Alignas(RING_LINE) _Atomic uint64_t pub_head;
    _Atomic uint64_t pub_tick; /* of the last frame; stored behind pub_head, to be read before it */
    _Atomic uint32_t busy;     /* a frame is being written; stored before its tick is read */
    _Atomic uint64_t seen, lost[ETW_LOSSES];

    _Alignas(RING_LINE) _Atomic uint64_t tail;
};

/* Size is a power of two and more than need; bytes has size + need bytes. */
void ring_init(struct ring *ring, uint8_t *bytes, uint64_t size, uint64_t need);

/* Producer: forgets its counters, begins the next frame in full. Need is at most what ring_init() was given. */
void ring_begin(struct ring *ring, uint64_t need, uint64_t tick);

/* Drain: drops what is in the ring. */
void ring_skip(struct ring *ring);

/* ---- producer ----------------------------------------------------------------------------------------------------- */

static inline bool ring_has_bytes(struct ring *ring, uint64_t bytes)
{
    if (__builtin_expect(ring->head + bytes - ring->tail_seen <= ring->size, 1))
        return true;
    ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
    return ring->head + bytes - ring->tail_seen <= ring->size;
}

/* For what follows from an event that is in the ring: a return. */
static inline bool ring_has_room(struct ring *ring)
{
    return ring_has_bytes(ring, ring->need);
}

/* For what is new: an eighth of the ring is left to what follows, so that a call is seldom without its return. */
static inline bool ring_has_room_for_new(struct ring *ring)
{
    return ring_has_bytes(ring, ring->need_new);
}

static inline void ring_bump(_Atomic uint64_t *counter)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1, memory_order_relaxed);
}

static inline void ring_lose(struct ring *ring, enum etw_loss why)
{
    /* in this order, so that whoever reads what is lost first never sees more lost than seen */
    uint64_t lost = atomic_load_explicit(&ring->lost[why], memory_order_relaxed) + 1;
    ring_bump(&ring->seen);
    atomic_store_explicit(&ring->lost[why], lost, memory_order_release);
    ring->lost_untold = true;
}

static inline uint8_t *ring_place(struct ring *ring)
{
    uint8_t *at = ring->bytes + (ring->head & (ring->size - 1));
    /* The line that will be written some frames later is at the drain's processor, or nowhere near: it is asked for now. */
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(at[RING_AHEAD]));
#else
    __builtin_prefetch(at + RING_AHEAD, 1);
#endif
    return at;
}

/* Takes in the bytes written at ring_place(); nobody sees them yet. */
static inline void ring_advance(struct ring *ring, uint64_t bytes)
{
    uint64_t at = ring->head & (ring->size - 1);
    if (__builtin_expect(at + bytes > ring->size, 0))
        __builtin_memcpy(ring->bytes, ring->bytes + ring->size, at + bytes - ring->size);
    ring->head += bytes;
}

/* A frame is about to be written: from here until ring_publish() the watermark stays before it. */
static inline void ring_busy(struct ring *ring)
{
    atomic_store_explicit(&ring->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

/* The frame is not to be, after all. */
static inline void ring_idle(struct ring *ring)
{
    atomic_store_explicit(&ring->busy, 0, memory_order_release);
}

static inline void ring_publish(struct ring *ring)
{
    atomic_store_explicit(&ring->pub_head, ring->head, memory_order_release);
    atomic_store_explicit(&ring->pub_tick, ring->tick, memory_order_release);
    atomic_store_explicit(&ring->busy, 0, memory_order_release);
}

/* ---- drain -------------------------------------------------------------------------------------------------------- */

struct ring_view {
    uint64_t tail, head;
    uint64_t tick; /* not later than the last frame's before head */
    bool busy;     /* a frame may be on its way, not earlier than tick */
};

struct ring_view ring_look(struct ring *ring);

/* Not earlier than any frame that is visible now. */
uint64_t ring_latest(struct ring *ring);

/* Copies what lies between two positions. */
void ring_copy(const struct ring *ring, uint64_t from, uint64_t to, uint8_t *ret_bytes);

/* Gives the bytes before this position back to the producer. */
void ring_release(struct ring *ring, uint64_t to);

#endif

/*
 * Frames into a ring, and walking over those that are in one. The layout is etrace_wire.h's.
 *
 * frame_begin() writes what stands before the function and the terms, the caller writes these, frame_end() closes and
 * publishes. Both belong to the producer. The caller has asked ring_has_room() and writes at most the ring's `need`
 * minus FRAME_RESERVE bytes.
 */
#ifndef ETRACE_FRAME_H
#define ETRACE_FRAME_H

#include "ring.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "frames are little-endian, and are written as the processor holds them"
#endif

/* The longest frame of losses and the longest beginning of a frame behind it. */
#define FRAME_RESERVE 128

struct frame {
    uint8_t *at; /* its first byte */
    uint32_t ticks, flags;
};

static inline uint8_t *put8(uint8_t *at, unsigned value)
{
    *at = (uint8_t)value;
    return at + 1;
}

static inline uint8_t *put16(uint8_t *at, uint64_t value)
{
    uint16_t v = (uint16_t)value;
    __builtin_memcpy(at, &v, sizeof v);
    return at + sizeof v;
}

static inline uint8_t *put32(uint8_t *at, uint64_t value)
{
    uint32_t v = (uint32_t)value;
    __builtin_memcpy(at, &v, sizeof v);
    return at + sizeof v;
}

static inline uint8_t *put64(uint8_t *at, uint64_t value)
{
    __builtin_memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

/* Writes the ring's losses as a frame of their own. */
void frame_losses(struct ring *ring, uint64_t tick);

static inline uint8_t *frame_begin(struct ring *ring, struct frame *frame, uint64_t tick, uint64_t tracee)
{
    uint8_t *at;
    if (__builtin_expect(ring->lost_untold, 0))
        frame_losses(ring, tick);
    at = frame->at = ring_place(ring);
    /* a clock that went back, if there is such a thing, stands still */
    uint64_t passed = tick > ring->tick ? tick - ring->tick : 0;
    frame->flags = 0;
    frame->ticks = (uint32_t)passed;
    at += 8;
    if (__builtin_expect(ring->fresh || passed > UINT32_MAX, 0)) {
        frame->flags = ETW_F_TICK;
        frame->ticks = 0;
        at = put64(at, ring->tick + passed);
    }
    ring->tick += passed;
    if (tracee != ring->tracee || __builtin_expect(ring->fresh, 0)) {
        frame->flags |= ETW_F_TRACEE;
        at = put64(at, tracee);
        ring->tracee = tracee;
        ring->fresh = false;
    }
    return at;
}

/* Counts the event as seen and shows the frame to the drain. */
static inline void frame_end(struct ring *ring, struct frame *frame, uint8_t *end, enum etw_kind kind)
{
    uint64_t bytes = (uint64_t)(end - frame->at);
    put64(frame->at, ETW_HEAD(bytes, kind, frame->flags) | (uint64_t)frame->ticks << 32);
    ring_advance(ring, bytes);
    ring_bump(&ring->seen);
    ring_publish(ring);
}

/* ---- drain -------------------------------------------------------------------------------------------------------- */

struct frame_cut {
    uint64_t to;   /* the end of the last whole frame that fits; or of the first, when `least` and none fits */
    uint64_t next; /* a tick not later than that of the frame at `to` */
};

/* Where to cut what lies in a view so that at most so many bytes stand before the cut. */
struct frame_cut frame_cut(const struct ring *ring, const struct ring_view *view, uint64_t bytes, bool least);

#endif

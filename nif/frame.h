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

/* Handed on by value, so that it needs no memory. */
struct frame {
    uint8_t *at, *next; /* its first byte; where to go on */
    uint64_t tick;
    uint32_t flags;
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

/* Where something is to be told first, or in full. */
struct frame frame_begin_slowly(struct ring *ring, uint64_t tick, uint64_t tracee);

static inline struct frame frame_begin(struct ring *ring, uint64_t tick, uint64_t tracee)
{
    uint64_t passed = tick - ring_own(&ring->tick);
    if (__builtin_expect(passed > UINT32_MAX || ring->odd, 0))
        return frame_begin_slowly(ring, tick, tracee);
    uint8_t *at = ring_place(ring);
    struct frame frame = {at, at + 8, tick, 0};
    put32(at + 4, passed);
    if (tracee != ring->tracee) {
        frame.next = put64(at + 8, tracee);
        frame.flags = ETW_F_TRACEE;
        ring->tracee = tracee;
    }
    return frame;
}

/* Shows a whole frame to the drain. */
static inline void frame_close(struct ring *ring, struct frame frame, const uint8_t *end, enum etw_kind kind)
{
    put32(frame.at, ETW_HEAD(end - frame.at, kind, frame.flags));
    ring_publish(ring, frame.at, end, frame.tick);
}

/* The same for an event, which counts as seen. */
static inline void frame_end(struct ring *ring, struct frame frame, const uint8_t *end, enum etw_kind kind)
{
    ring_count_seen(ring);
    frame_close(ring, frame, end, kind);
    ring_rest(ring);
}

/* ---- drain -------------------------------------------------------------------------------------------------------- */

struct frame_cut {
    uint64_t to;   /* the end of the last whole frame that fits; or of the first, when `least` and none fits */
    uint64_t tick; /* not later than that of the frame before `to` */
    uint64_t next; /* not later than that of the frame at `to` */
};

/*
 * Where to cut a view so that at most so many bytes stand before the cut. Walks over these bytes and no others, because the drain calls
 * it for every full ring: it adds up the distances between frames from the tick that the drain knows of the tail.
 */
struct frame_cut frame_cut(const struct ring *ring, const struct ring_view *view, uint64_t bytes, bool least);

#endif

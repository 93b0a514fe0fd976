/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes frames into a ring, and finds the boundaries of frames in a ring. etrace_wire.h describes the layout.
 *
 * The producer calls frame_begin(), which writes the head. Then it writes the function and the terms. Then it calls
 * frame_end(), which completes the head and publishes the frame. The producer must have checked ring_has_room() before
 * that, and may write at most the ring's `need` minus FRAME_RESERVE bytes.
 */
#ifndef ETRACE_FRAME_H
#define ETRACE_FRAME_H

#include "ring.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "frames are little-endian, and are written as the processor holds them"
#endif

/* Enough bytes for an ETW_LOST frame and the longest head of the frame after it. */
#define FRAME_RESERVE 128

/* Passed by value, so that the compiler keeps it in registers. */
struct frame {
    uint8_t *at, *next; /* first byte of the frame; where the caller writes next */
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

/* Begins a frame that needs its full tick or tracee. If events were lost, writes an ETW_LOST frame before it. */
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

/* Completes the head and publishes the frame. The frame does not count as an event. */
static inline void frame_close(struct ring *ring, struct frame frame, const uint8_t *end, enum etw_kind kind)
{
    put32(frame.at, ETW_HEAD(end - frame.at, kind, frame.flags));
    ring_publish(ring, frame.at, end, frame.tick);
}

/* Like frame_close(), for an event: counts it as seen and clears the busy mark. */
static inline void frame_end(struct ring *ring, struct frame frame, const uint8_t *end, enum etw_kind kind)
{
    ring_count_seen(ring);
    frame_close(ring, frame, end, kind);
    ring_rest(ring);
}

/* ---- drain ------------------------------------------------------------------------------------------------------- */

struct frame_cut {
    uint64_t to;   /* the end of the last frame that fits, or of the first frame (see `least`) */
    uint64_t tick; /* not later than the tick of the frame before `to` */
    uint64_t next; /* not later than the tick of the frame at `to` */
};

/*
 * Finds where to cut a view of a ring so that at most `bytes` bytes lie before the cut. least: if not even the first
 * frame fits, cut behind the first frame. Reads only the frames before the cut, because the drain calls it for every
 * full ring.
 */
struct frame_cut frame_cut(const struct ring *ring, const struct ring_view *view, uint64_t bytes, bool least);

#endif

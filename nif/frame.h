/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes frames into a ring, and finds the boundaries of frames that are in one. etrace_wire.h describes the layout.
 *
 * The producer calls frame_begin(), which writes the head; then it writes the function and the terms; then it calls
 * frame_end(), which completes the head and publishes the frame. It must have checked ring_has_room() before, and may
 * write at most the ring's `need` minus FRAME_RESERVE bytes.
 */
#ifndef ETRACE_FRAME_H
#define ETRACE_FRAME_H

#include "ring.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "frames are little-endian, and are written as the processor holds them"
#endif

/* Bytes of an ETW_LOST frame and of the longest frame head after it. */
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

/* Writes an ETW_LOST frame first if events were lost, and a head with its full tick or tracee. */
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
    uint64_t to;   /* the end of the last frame that fits; with `least`, of the first frame if none fits */
    uint64_t tick; /* a tick not later than that of the frame before `to` */
    uint64_t next; /* a tick not later than that of the frame at `to` */
};

/*
 * Finds where to cut a view so that at most `bytes` lie before the cut. It starts from the view's tail_tick and adds up
 * the ticks between frames. It walks only over the bytes before the cut, because the drain calls it for every full
 * ring.
 */
struct frame_cut frame_cut(const struct ring *ring, const struct ring_view *view, uint64_t bytes, bool least);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "frame.h"

/*
 * Writes the loss counters as an ETW_LOST frame. Only the first frame of a ring or a segment must have a tracee; then
 * the tracee of the ETW_LOST frame is 0.
 */
static void tell_losses(struct ring *ring, uint64_t tick)
{
    bool first = ring->odd & RING_FRESH;
    ring->odd &= RING_FRESH;
    struct frame frame = frame_begin(ring, tick, first ? 0 : ring->tracee);
    for (int i = 0; i < ETW_LOSSES; i++)
        frame.next = put64(frame.next, ring_own(&ring->lost[i]));
    frame_close(ring, frame, frame.next, ETW_LOST);
}

__attribute__((noinline)) struct frame frame_begin_slowly(struct ring *ring, uint64_t tick, uint64_t tracee)
{
    if (ring->odd & RING_LOST)
        tell_losses(ring, tick);
    uint64_t before = ring_own(&ring->tick);
    if (tick < before)
        tick = before; /* ticks never decrease in a ring, even if the clock does */
    bool fresh = ring->odd & RING_FRESH, late = tick - before > UINT32_MAX;
    uint8_t *at = ring_place(ring);
    struct frame frame = {at, at + 8, tick, 0};
    put32(at + 4, fresh || late ? 0 : tick - before);
    if (fresh || late) {
        frame.flags = ETW_F_TICK;
        frame.next = put64(frame.next, tick);
    }
    if (fresh || tracee != ring->tracee) {
        frame.flags |= ETW_F_TRACEE;
        frame.next = put64(frame.next, tracee);
        ring->tracee = tracee;
    }
    ring->odd = 0;
    return frame;
}

struct frame_cut frame_cut(const struct ring *ring, const struct ring_view *view, uint64_t bytes, bool least)
{
    struct frame_cut cut = {.to = view->tail, .tick = view->tail_tick, .next = view->tail_tick};
    while (cut.to < view->head) {
        const uint8_t *frame = ring_at(ring, cut.to);
        uint32_t head, ticks;
        __builtin_memcpy(&head, frame, sizeof head);
        __builtin_memcpy(&ticks, frame + 4, sizeof ticks);
        cut.next = cut.tick + ticks;
        if (ETW_HEAD_FLAGS(head) & ETW_F_TICK)
            __builtin_memcpy(&cut.next, frame + 8, sizeof cut.next);
        uint64_t end = cut.to + ETW_HEAD_BYTES(head);
        if (end - view->tail > bytes && !(least && cut.to == view->tail))
            break;
        cut.to = end;
        cut.tick = cut.next;
    }
    return cut;
}

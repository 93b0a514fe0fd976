#include "frame.h"

/*
 * What was lost, as a frame of its own; it has no tracee, so it tells one only when it is the first. And it is the first where the
 * frames before it were only measured (tracer.c).
 */
static void tell_losses(struct ring *ring, uint64_t tick)
{
    bool first = ring_own(&ring->head) == ring->begun;
    ring->odd = first ? RING_FRESH : 0;
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
        tick = before; /* a clock that went back, if there is such a thing, stands still */
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
    /*
     * The ticks of the frames are known as distances from a beginning that is not; the last one's is. So the distances
     * are added up to the end, and from there reckoned back. A frame with its tick in full makes that needless.
     */
    struct frame_cut cut = {.to = view->tail};
    uint64_t sum = 0, sum_at_next = 0, tick = 0;
    bool known = false, known_at_next = false, open = true;

    for (uint64_t at = view->tail; at < view->head;) {
        const uint8_t *frame = ring->bytes + (at & (ring->size - 1));
        uint32_t head, ticks;
        __builtin_memcpy(&head, frame, sizeof head);
        __builtin_memcpy(&ticks, frame + 4, sizeof ticks);
        if (ETW_HEAD_FLAGS(head) & ETW_F_TICK) {
            __builtin_memcpy(&tick, frame + 8, sizeof tick);
            known = true;
        } else if (known) {
            tick += ticks;
        } else {
            sum += ticks;
        }
        uint64_t end = at + ETW_HEAD_BYTES(head);
        if (open && end - view->tail > bytes && !(least && at == view->tail)) {
            open = false;
            cut.to = at;
            if (known) {
                cut.next = tick;
                return cut;
            }
            sum_at_next = sum;
            known_at_next = true;
        }
        if (open)
            cut.to = end;
        if (known && known_at_next)
            return cut; /* a full tick behind the cut does not say how long before it the cut was: next stays 0 */
        at = end;
    }
    uint64_t behind = sum - sum_at_next;
    cut.next = view->tick > behind ? view->tick - behind : 0;
    return cut;
}

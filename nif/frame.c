#include "frame.h"

void frame_losses(struct ring *ring, uint64_t tick)
{
    struct frame frame;
    ring->lost_untold = false;
    /* a frame needs a tracee when it is the first; the lost events have none */
    uint8_t *at = frame_begin(ring, &frame, tick, ring->fresh ? 0 : ring->tracee);
    for (int i = 0; i < ETW_LOSSES; i++)
        at = put64(at, atomic_load_explicit(&ring->lost[i], memory_order_relaxed));
    uint64_t bytes = (uint64_t)(at - frame.at);
    put32(frame.at, ETW_HEAD(bytes, ETW_LOST, frame.flags));
    put32(frame.at + 4, frame.ticks);
    ring_advance(ring, bytes);
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

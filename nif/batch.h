/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the frames of all rings in one batch: decides how many bytes of each ring fit and how far the watermark may
 * advance. It uses no function of the VM.
 *
 * There are two steps, because the caller allocates the batch between them. batch_plan() reads the rings and decides.
 * batch_write() copies the frames and lets the producers overwrite their bytes. The same thread runs both steps, and
 * meanwhile no other thread runs one of them.
 */
#ifndef ETRACE_BATCH_H
#define ETRACE_BATCH_H

#include <stddef.h>

#include "lane.h"

struct batch_clock {
    uint64_t tick;
    int64_t mono_ns;
    int64_t wall_ns;
};

/* State that the owner keeps between batches. */
struct batch_state {
    uint64_t seq, watermark;
    uint64_t latest; /* not earlier than the tick of any sent frame */
    uint64_t told_no_lane;
    uint32_t turn; /* the ring that gets its share first when not everything fits */
};

struct batch_plan {
    struct batch_clock clock;
    size_t bytes; /* size of the whole batch */
    uint64_t watermark, latest, no_lane;
    const uint8_t *own;
    uint32_t own_bytes, lanes, sections, flags;
    /* more: frames are left in the rings. held: some events, sent or in a ring, are later than the watermark. */
    bool more, held;
    bool wanted; /* the batch has news, so the owner should send it */
    struct batch_part {
        struct ring_view view;
        uint64_t to, tick; /* to: where the part ends; tick: not later than the tick of the frame before `to` */
        uint64_t seen, lost[ETW_LOSSES]; /* `seen` includes every frame before the view's head and every loss */
        bool exact; /* the counters match the view exactly: the producer was not processing an event */
        bool told;  /* the batch has a section for this ring: it has frames, its counters changed, or they have become
                       exact */
    } parts[LANES_MAX];
};

/*
 * Plans a batch. clock: the clocks, which the caller has read before. most: the most bytes of the batch; a first frame
 * that is larger is sent anyway, so there is always progress. own: the sections that the owner adds in front. last: no
 * new event will come. This batch is then marked as the last if no frames are left and no thread processes an event.
 */
void batch_plan(const struct batch_state *state, const struct batch_clock *clock, uint64_t slack, size_t most,
                const uint8_t *own, uint32_t own_bytes, bool last, struct batch_plan *ret_plan);

void batch_write(struct batch_state *state, const struct batch_plan *plan, uint8_t *ret_bytes);

#endif

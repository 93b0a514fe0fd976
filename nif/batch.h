/*
 * From rings to one batch: what lies in which ring, how much of it fits, how far the watermark may go. Plain C.
 *
 * Two steps, because the batch's memory is allocated between them: batch_plan() looks and decides, batch_write() copies
 * and gives the bytes back to the producers. One thread at a time, and the same one for both steps.
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

/* What lasts from batch to batch. */
struct batch_state {
    uint64_t seq, watermark;
    uint64_t latest;       /* tick of the latest frame sent */
    uint64_t told_roofless;
    uint32_t turn;         /* the ring that is served first when not everything fits */
};

struct batch_plan {
    struct batch_clock clock;
    size_t bytes; /* of the batch */
    uint64_t watermark, latest, roofless;
    const uint8_t *own;
    uint32_t own_bytes, lanes, sections, flags;
    bool more, held; /* the rings hold more; events sent or waiting are later than the watermark */
    bool wanted;     /* there is something to tell */
    struct batch_part {
        struct ring_view view;
        uint64_t to, tick; /* tick: not later than that of the frame before `to` */
        uint64_t seen, lost[ETW_LOSSES]; /* no fewer seen than lie before the view's head or are lost */
        bool exact; /* the counters are those of what is in view and of nothing else: nobody was at an event */
        bool told;  /* its counters changed, or are exact now, or it has frames */
    } parts[LANES_MAX];
};

/*
 * The clock was read before. Most: bytes of the whole batch; one frame is given in any case. Own: whole sections, which come first.
 * Last: no frame will come, so this batch is the last one, unless there is more, or a thread is still at an event.
 */
void batch_plan(const struct batch_state *state, const struct batch_clock *clock, uint64_t slack, size_t most, const uint8_t *own,
    uint32_t own_bytes, bool last, struct batch_plan *ret_plan);

void batch_write(struct batch_state *state, const struct batch_plan *plan, uint8_t *ret_bytes);

#endif

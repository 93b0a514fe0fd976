/* SPDX-License-Identifier: Apache-2.0 */
#include "batch.h"

#include <string.h>

#include "frame.h"

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/*
 * Moves the watermark before a tick. Every frame up to the watermark must be in this batch or in an earlier one. So the
 * watermark must stay before three groups of frames: frames that a producer was writing when read_lane() read its ring
 * (their ticks are not earlier than the ring's tick), frames that began after the clock was read (the slack allows for
 * a store that was not visible yet), and frames that did not fit.
 */
static void keep_before(uint64_t *watermark, uint64_t tick)
{
    if (tick <= *watermark)
        *watermark = tick ? tick - 1 : 0;
}

static void read_lane(struct lane *lane, struct batch_part *ret_part)
{
    /*
     * The part is exact if the first and the last load of `seen` are equal and the ring was not busy. All loads except
     * the last are acquire loads. If the first load counts an event, this thread then sees the busy mark, the frame or
     * the loss of the event. If this thread sees the frame or the loss of an event, the last load counts the event. The
     * last load needs no order of its own, because no load moves before an acquire load.
     */
    struct batch_part *part = ret_part;
    uint64_t seen = atomic_load_explicit(&lane->ring.seen, memory_order_acquire);
    part->view = ring_look(&lane->ring);
    part->to = part->view.head;
    part->tick = part->view.tick;
    for (int i = 0; i < ETW_LOSSES; i++)
        part->lost[i] = atomic_load_explicit(&lane->ring.lost[i], memory_order_acquire);
    part->lost[ETW_LOST_OVERWRITTEN] = atomic_load_explicit(&lane->ring.overwritten, memory_order_acquire);
    part->seen = read_counter(&lane->ring.seen);
    part->exact = !part->view.busy && part->seen == seen;
}

static uint64_t give_room(struct batch_plan *plan, uint32_t slot, uint64_t most, bool least)
{
    struct batch_part *part = &plan->parts[slot];
    if (part->view.head - part->view.tail > most) {
        struct frame_cut cut = frame_cut(&lane_at(slot)->ring, &part->view, most, least);
        part->to = cut.to;
        part->tick = cut.tick;
        keep_before(&plan->watermark, cut.next);
        plan->more = true;
    }
    return part->to - part->view.tail;
}

/*
 * Shares the room equally among the rings. If a ring needs less than its share, the rings after it get the rest. Each
 * batch starts with another ring.
 */
static void share_room(const struct batch_state *state, uint64_t room, struct batch_plan *plan)
{
    uint32_t left = plan->lanes;
    uint64_t given = 0;
    for (uint32_t i = 0; i < plan->lanes; i++, left--)
        given += give_room(plan, (state->turn + i) % plan->lanes, (room - (given < room ? given : room)) / left, false);
    /*
     * No share was large enough for a frame. Give one ring all the room, and send one frame even if that frame is too
     * large.
     */
    for (uint32_t i = 0; i < plan->lanes && !given && !plan->own_bytes; i++)
        given = give_room(plan, (state->turn + i) % plan->lanes, room, true);
}

void batch_plan(const struct batch_state *state, const struct batch_clock *clock, uint64_t slack, size_t most,
                const uint8_t *own, uint32_t own_bytes, bool last, struct batch_plan *ret_plan)
{
    struct batch_plan *plan = ret_plan;
    uint64_t there = 0;
    plan->clock = *clock;
    plan->watermark = clock->tick - slack;
    plan->latest = own_bytes ? clock->tick : state->latest; /* frames in the owner's sections are not later than now */
    plan->own = own;
    plan->own_bytes = own_bytes;
    plan->more = plan->held = false;
    plan->lanes = lanes_claimed();
    if (lanes.overwrites) {
        plan->lanes = 0; /* the rings belong to their producers, so the watermark cannot move either */
        plan->watermark = state->watermark;
        plan->latest = state->latest;
        last = false;
    }
    for (uint32_t i = 0; i < plan->lanes; i++) {
        struct batch_part *part = &plan->parts[i];
        read_lane(lane_at(i), part);
        last &= part->exact;
        there += part->view.head - part->view.tail;
        if (part->view.busy)
            /*
             * Keep the watermark before this tick: an ETW_LOST frame in the ring may have the same tick as the frame
             * that the producer is writing.
             */
            keep_before(&plan->watermark, part->view.tick);
    }

    size_t fixed = sizeof(struct etw_batch) + (plan->lanes + 1) * sizeof(struct etw_section) + own_bytes;
    size_t room = most > fixed ? most - fixed : 0;
    if (there > room)
        share_room(state, room, plan);

    plan->bytes = sizeof(struct etw_batch);
    plan->sections = 0;
    plan->wanted = last;
    for (uint64_t at = 0; at + sizeof(struct etw_section) <= own_bytes;) {
        struct etw_section section;
        memcpy(&section, own + at, sizeof section);
        at += sizeof section + section.bytes;
        plan->sections++;
        plan->wanted = true;
    }
    plan->bytes += own_bytes;
    for (uint32_t i = 0; i < plan->lanes; i++) {
        struct batch_part *part = &plan->parts[i];
        struct lane *lane = lane_at(i);
        uint64_t taken = part->to - part->view.tail;
        part->told = taken || part->seen != lane->told_seen || (part->exact && lane->told_amid) ||
                     part->lost[ETW_LOST_OVERWRITTEN] != lane->told_overwritten;
        if (!part->told)
            continue;
        plan->bytes += sizeof(struct etw_section) + taken;
        plan->sections++;
        plan->wanted = true;
        if (taken) {
            uint64_t latest = ring_latest(&lane->ring);
            if (latest > plan->latest)
                plan->latest = latest;
        }
    }
    plan->no_lane = read_counter(&lanes.no_lane);
    if (plan->no_lane != state->told_no_lane) {
        plan->bytes += sizeof(struct etw_section);
        plan->sections++;
        plan->wanted = true;
    }

    last = last && !plan->more;
    if (last)
        plan->watermark = clock->tick;
    if (plan->watermark < state->watermark)
        plan->watermark = state->watermark; /* the watermark never goes back */
    /* The client holds frames back until the watermark passes them, so a batch may be needed only for its watermark. */
    if (plan->latest > state->watermark && plan->watermark > state->watermark)
        plan->wanted = true;
    plan->held = plan->latest > plan->watermark && !lanes.overwrites;
    plan->flags = (plan->more ? ETW_BATCH_MORE : 0u) | (last ? ETW_BATCH_LAST : 0u);
}

static uint8_t *copy_bytes(uint8_t *at, const void *bytes, size_t n)
{
    memcpy(at, bytes, n);
    return at + n;
}

void batch_write(struct batch_state *state, const struct batch_plan *plan, uint8_t *ret_bytes)
{
    uint8_t *at = ret_bytes;
    struct etw_batch head = {
        .magic = ETW_BATCH_MAGIC,
        .bytes = (uint32_t)plan->bytes,
        .seq = ++state->seq,
        .tick = plan->clock.tick,
        .mono_ns = plan->clock.mono_ns,
        .wall_ns = plan->clock.wall_ns,
        .watermark = plan->watermark,
        .sections = plan->sections,
        .flags = plan->flags,
    };
    at = copy_bytes(at, &head, sizeof head);
    if (plan->own_bytes)
        at = copy_bytes(at, plan->own, plan->own_bytes);
    for (uint32_t i = 0; i < plan->lanes; i++) {
        const struct batch_part *part = &plan->parts[i];
        struct lane *lane = lane_at(i);
        uint64_t bytes = part->to - part->view.tail;
        if (!part->told)
            continue;
        struct etw_section section = {.ring = i, .bytes = (uint32_t)bytes, .seen = part->seen};
        memcpy(section.lost, part->lost, sizeof section.lost);
        at = copy_bytes(at, &section, sizeof section);
        ring_copy(&lane->ring, part->view.tail, part->to, at);
        at += bytes;
        ring_release(&lane->ring, part->to, part->tick);
        lane->told_seen = section.seen;
        lane->told_overwritten = section.lost[ETW_LOST_OVERWRITTEN];
        lane->told_amid = !part->exact;
    }
    if (plan->no_lane != state->told_no_lane) {
        struct etw_section section = {.ring = lanes.count, .seen = plan->no_lane};
        section.lost[ETW_LOST_NORING] = plan->no_lane;
        copy_bytes(at, &section, sizeof section);
        state->told_no_lane = plan->no_lane;
    }
    state->watermark = plan->watermark;
    state->latest = plan->latest;
    state->turn++;
}

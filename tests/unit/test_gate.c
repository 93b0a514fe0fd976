/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests which requests the gate admits: all events of one or none, with a rate and without. It stands in for the
 * process that drains the rings.
 */
#include "bell.h"
#include "frame.h"
#include "gate.h"
#include "tick.h"

#include "tap.h"

enum { RING = 64 << 10, NEED = 256 + FRAME_RESERVE };

struct bell bell;

void bell_strike(void)
{
}

void bell_wake(void)
{
}

/* Writes frames of a few bytes until half of the ring is used. */
static void crowd(struct ring *ring)
{
    while (!ring_is_crowded(ring)) {
        ring_busy(ring);
        struct frame frame = frame_begin(ring, tick_now(), 42);
        frame_end(ring, frame, put64(frame.next, 0), ETW_EXIT);
    }
}

static void empty(struct ring *ring)
{
    ring_skip(ring);
}

static bool admits(struct lane *lane, uint32_t rules, enum gate_part part, uint64_t key)
{
    return gate_admits_part(lane, rules, part, key);
}

/* Again: GATE_AGAIN if all processes of the node are traced, so the gate knows a request before it arrives. */
static void test_room(enum gate_part again)
{
    struct lane *lane = lane_mine();
    struct ring *ring = &lane->ring;
    const char *who = again == GATE_AGAIN ? "all processes traced" : "some processes traced";

    gate_begin(0, 0, tick_per_ms());
    empty(ring);
    ok(!gate_sorts(lane, 0), "%s: with room, the gate has no request to decide about", who);
    admits(lane, 0, GATE_FIRST, 1);
    crowd(ring);
    ok(gate_sorts(lane, 0), "%s: in a crowded ring it has", who);
    ok(admits(lane, 0, GATE_LATER, 1) && admits(lane, 0, GATE_LATER, 1), "%s: a request that began before goes on",
       who);
    uint64_t lost = ring_own(&ring->lost[ETW_LOST_REQUEST]);
    ok(!admits(lane, 0, GATE_FIRST, 2), "%s: none begins there", who);
    ok(admits(lane, 0, again, 3) == (again == GATE_AGAIN), "%s: what arrives was sent before if everything is traced",
       who);
    ok(admits(lane, 0, GATE_OTHER, 0), "%s: what belongs to no request has room", who);
    empty(ring);
    ok(!admits(lane, 0, again, 2) && !admits(lane, 0, GATE_LATER, 2) && !admits(lane, 0, GATE_LAST, 2),
       "%s: no event of what was left out comes later, although there is room again", who);
    is_number((int64_t)(ring_own(&ring->lost[ETW_LOST_REQUEST]) - lost), again == GATE_AGAIN ? 4 : 5,
              "each of these is counted");
    ok(admits(lane, 0, GATE_FIRST, 4) && admits(lane, 0, GATE_LATER, 4) && admits(lane, 0, GATE_LAST, 4),
       "%s: with room again, requests begin", who);
    ok(admits(lane, 0, GATE_LATER, 1), "%s: one that never was left out still goes on", who);
}

/* A request that waits while 65,536 others are left out is not taken for one of these. */
static void test_many(void)
{
    struct lane *lane = lane_mine();
    unsigned admitted = 0, wrong = 0;

    gate_begin(0, 0, tick_per_ms());
    empty(&lane->ring);
    crowd(&lane->ring);
    for (uint64_t key = 1; key <= 65536; key++)
        admitted += admits(lane, 0, GATE_FIRST, key << 20 | key);
    is_number(admitted, 0, "no request begins in a crowded ring");
    empty(&lane->ring);
    for (uint64_t key = 1; key <= 65536; key++) {
        wrong += admits(lane, 0, GATE_LAST, key << 20 | key);
        wrong += !admits(lane, 0, GATE_LATER, key << 20 | key | UINT64_C(1) << 60);
    }
    is_number(wrong, 0, "65536 requests are left out to their end, and no other one is");
}

static void test_rate(void)
{
    struct lane *lane = lane_mine();
    unsigned whole = 0, cut = 0;

    gate_begin(0, 400, tick_per_ms());
    empty(&lane->ring);
    for (uint64_t key = 1; key <= 10000; key++) {
        uint64_t spread = key * UINT64_C(0x9e3779b97f4a7c15);
        bool first = admits(lane, RULE_RATE, GATE_FIRST, spread), again = admits(lane, RULE_RATE, GATE_AGAIN, spread),
             later = admits(lane, RULE_RATE, GATE_LATER, spread), last = admits(lane, RULE_RATE, GATE_LAST, spread);
        whole += first && again && later && last;
        cut += first != last || first != later || first != again;
    }
    ok(whole >= 25 && whole < 1000, "the rate admits some of many requests: %u", whole);
    is_number(cut, 0, "and all their events");
}

int main(void)
{
    ok(lanes_open(2, RING, NEED, (struct encode_limits){0}), "the lanes open");
    if (!lane_mine())
        return 1;
    test_room(GATE_AGAIN);
    test_room(GATE_FIRST);
    test_many();
    test_rate();
    return tap_end();
}

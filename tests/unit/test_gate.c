/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests which bounds apply on which route, and which requests the gate admits: all events of one or none, with a rate
 * and without. It stands in for the process that drains the rings.
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

/* The bucket is empty, and the counter has gone back. */
static void test_back(void)
{
    gate_begin(0, 1000, tick_per_ms());
    const uint64_t now = tick_now(), back = now - 3600 * 1000 * tick_per_ms();
    while (gate_rate_allows(now))
        atomic_fetch_sub(&session.left, 100);
    ok(!gate_rate_allows(now - tick_per_ms()), "no token comes because two processors' counters differ a little");
    ok(gate_rate_allows(back), "the rate goes on from where the counter is");
}

/* More own processes than several etraces have. */
static void test_excluded(void)
{
    uint64_t words[EXCLUDED_MAX];
    unsigned found = 0;

    for (unsigned i = 0; i < EXCLUDED_MAX; i++)
        words[i] = (i + 1) * UINT64_C(16) + 3;
    gate_exclude(words, EXCLUDED_MAX);
    for (unsigned i = 0; i < EXCLUDED_MAX; i++)
        found += gate_excludes(words[i]);
    ok(found >= 1000 && !gate_excludes((EXCLUDED_MAX + 7) * UINT64_C(16) + 3), "a thousand processes are never traced");
    gate_exclude(words, 0);
}

static bool is_bound(enum gate_route route, uint32_t rules)
{
    gate_change(RULE_ROUTE, route);
    return (gate_rules() & (RULE_RATE | RULE_LIMIT | RULE_EARLY)) == rules;
}

/* A bound that the client asked for is kept while a route ignores it, and applies again on another route. */
static void test_routes(void)
{
    const uint32_t bounds = RULE_RATE | RULE_LIMIT;
    gate_begin(1000, 1000, tick_per_ms());
    ok(is_bound(ROUTE_TREES, bounds), "what waits for a root is bound by rate and limit");
    gate_change(0, RULE_GIVEN(RULE_EARLY));
    ok(is_bound(ROUTE_TREES, bounds), "but no call is rejected early there, also if that was asked for later");
    ok(is_bound(ROUTE_SEND, bounds | RULE_EARLY), "calls that are sent are");
    ok(is_bound(ROUTE_TALLY, RULE_EARLY), "counted calls have no bound");
    ok(is_bound(ROUTE_BY, RULE_RATE), "keys that no row can have are bound by the rate");
    ok(is_bound(ROUTE_HOLD, bounds), "what waits for a result is bound by rate and limit");
    gate_change(0, RULE_REQUESTS);
    ok(is_bound(ROUTE_SEND, bounds), "no call of a request is rejected early");
    gate_change(RULE_REQUESTS | RULE_GIVEN(RULE_EARLY), 0);
    ok(is_bound(ROUTE_SEND, bounds), "nor one that a specification may reject");
    gate_begin(0, 0, tick_per_ms());
    ok(is_bound(ROUTE_SEND, 0), "a client that asks for no bound has none");
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
    test_back();
    test_excluded();
    test_routes();
    return tap_end();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

#include "bell.h"
#include "tick.h"

#define TIME_PART 10      /* with a rate, a thread may spend 1/TIME_PART of its time on events */
#define TIME_SAVED_MS 200 /* the most of such time that a thread saves up for a burst */

#define ONCE inline __attribute__((always_inline)) /* inlined, because a caller runs for every event of a flood */

struct session session;

void gate_begin(uint64_t limit, uint64_t rate, uint64_t ticks_per_ms)
{
    /*
     * Refill the bucket ten times a second, so that the admitted events of a flood spread over the second; once a
     * second if the rate is under 100.
     */
    unsigned window_ms = rate < 100 ? 1000 : 100;
    session.bucket = (int64_t)rate;
    session.quota = session.bucket * window_ms / 1000;
    session.ticks_per_ms = ticks_per_ms;
    session.window_ticks = ticks_per_ms * window_ms;
    session.time_most = (int64_t)ticks_per_ms * TIME_SAVED_MS;
    session.event_most = (int64_t)ticks_per_ms / 4;
    atomic_store(&session.slow, false);
    atomic_store(&session.left, session.bucket);
    atomic_store(&session.window, tick_now());
    atomic_store(&session.limit_left, limit < INT64_MAX ? (int64_t)limit : INT64_MAX);
    atomic_store(&session.rules, (rate ? (uint32_t)RULE_RATE : 0) | (limit ? (uint32_t)RULE_LIMIT : 0));
    gate_exclude(NULL, 0);
    gate_want_labels(NULL, 0);
}

void gate_want(uint64_t kinds)
{
    atomic_store(&session.kinds, kinds);
    if (~kinds)
        atomic_fetch_or(&session.rules, RULE_KINDS);
    else
        atomic_fetch_and(&session.rules, ~(uint32_t)RULE_KINDS);
}

void gate_want_labels(const uint64_t *words, unsigned count)
{
    if (count > LABELS_MAX)
        count = 0;
    for (unsigned i = 0; i < count; i++)
        atomic_store_explicit(&session.labels[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&session.label_count, count, memory_order_release);
}

void gate_exclude(const uint64_t *words, unsigned count)
{
    struct excluded *table = &session.tables[atomic_load(&session.excluded) == &session.tables[0]];
    for (unsigned i = 0; i < EXCLUDED_SLOTS; i++)
        atomic_store_explicit(&table->slots[i], 0, memory_order_relaxed);
    for (unsigned i = 0; i < count && i < EXCLUDED_MAX; i++) {
        unsigned at = (unsigned)(words[i] >> 4);
        while (atomic_load_explicit(&table->slots[at % EXCLUDED_SLOTS], memory_order_relaxed))
            at++;
        atomic_store_explicit(&table->slots[at % EXCLUDED_SLOTS], words[i], memory_order_relaxed);
    }
    atomic_store(&session.excluded, table);
}

bool gate_rate_allows(uint64_t tick)
{
    uint64_t begin = atomic_load_explicit(&session.window, memory_order_relaxed);
    return atomic_load_explicit(&session.left, memory_order_relaxed) > 0 ||
           (int64_t)(tick - begin) >= (int64_t)session.window_ticks;
}

/* A token bucket with the events of one second: it admits a burst of that size completely, and a flood at the rate. */
static ONCE bool take_rate(uint64_t tick)
{
    uint64_t begin = atomic_load_explicit(&session.window, memory_order_relaxed);
    int64_t passed = (int64_t)(tick - begin);
    /*
     * The thread that moves the window refills the bucket. Tokens that other threads take meanwhile may not be counted.
     */
    if (passed >= (int64_t)session.window_ticks && atomic_compare_exchange_strong(&session.window, &begin, tick)) {
        int64_t windows = passed / (int64_t)session.window_ticks, left = atomic_load(&session.left);
        left = (left > 0 ? left : 0) + (windows < 10 ? windows * session.quota : session.bucket);
        atomic_store(&session.left, left < session.bucket ? left : session.bucket);
    }
    if (atomic_load_explicit(&session.left, memory_order_relaxed) <= 0)
        return false;
    return atomic_fetch_sub_explicit(&session.left, 1, memory_order_relaxed) > 0;
}

/*
 * The rate bounds the number of events; this bounds their cost, because a large term costs a thousand times as much as
 * a small one.
 */
static ONCE bool has_time(struct lane *lane, uint64_t tick)
{
    uint64_t passed = tick - lane->time_at;
    if (passed / TIME_PART > (uint64_t)session.time_most)
        lane->time_left = session.time_most;
    else
        lane->time_left += (int64_t)(passed / TIME_PART);
    if (lane->time_left > session.time_most)
        lane->time_left = session.time_most;
    lane->time_at = tick;
    if (__builtin_expect(lane->time_left > 0, 1))
        return true;
    if (!atomic_load_explicit(&session.slow, memory_order_relaxed) && !atomic_exchange(&session.slow, true))
        bell_ring();
    return false;
}

__attribute__((noinline)) void gate_is_full(struct lane *lane)
{
    ring_lose(&lane->ring, ETW_LOST_RING);
    if (!(gate_rules() & RULE_FULL))
        atomic_fetch_or_explicit(&session.rules, RULE_FULL, memory_order_relaxed);
}

__attribute__((noinline)) void gate_is_stuck(void)
{
    if (!(atomic_fetch_or(&session.rules, RULE_STUCK) & RULE_STUCK))
        bell_ring();
}

enum etw_loss gate_admits_waiting(struct lane *lane, uint32_t rules)
{
    if (!gate_has_room_for_new(lane))
        return ETW_LOST_RING;
    if (rules & RULE_CLOSED || (rules & RULE_RATE && !has_time(lane, tick_now()))) {
        ring_lose(&lane->ring, ETW_LOST_GUARD);
        return ETW_LOST_GUARD;
    }
    return ETW_LOSSES;
}

bool gate_admits_waited(uint32_t rules)
{
    return !(rules & RULE_RATE) || take_rate(tick_now());
}

__attribute__((noinline)) bool gate_admits_slowly(struct lane *lane, uint32_t rules, enum etw_loss rated)
{
    if (rules & RULE_CLOSED) {
        ring_lose(&lane->ring, ETW_LOST_GUARD);
        return false;
    }
    if (rules & RULE_RATE) {
        uint64_t tick = tick_now();
        if (!has_time(lane, tick)) {
            ring_lose(&lane->ring, ETW_LOST_GUARD);
            return false;
        }
        if (!take_rate(tick)) {
            ring_lose(&lane->ring, rated);
            return false;
        }
    }
    if (rules & RULE_LIMIT) {
        int64_t left = atomic_fetch_sub(&session.limit_left, 1);
        if (left <= 1) {
            atomic_fetch_or(&session.rules, RULE_OVER);
            bell_ring(); /* wake the owner even if this event is never pushed */
        }
        return left > 0;
    }
    return true;
}

#include "session.h"

#include "bell.h"
#include "tick.h"

struct session session;

void session_begin(uint32_t bytes, uint32_t depth, uint32_t items, uint64_t limit, uint64_t rate, uint64_t ticks_per_ms)
{
    /* A tenth of a second, so that what is admitted is spread; a whole one where a tenth of the rate is too coarse. */
    unsigned window_ms = rate < 100 ? 1000 : 100;
    uint64_t quota = rate * window_ms / 1000;
    session.bytes = bytes;
    session.depth = depth;
    session.items = items;
    session.quota = quota < UINT32_MAX ? (uint32_t)quota : UINT32_MAX;
    session.window_ticks = ticks_per_ms * window_ms;
    atomic_store(&session.used, 0);
    atomic_store(&session.window, tick_now());
    atomic_store(&session.limit_left, limit < INT64_MAX ? (int64_t)limit : INT64_MAX);
    atomic_store(&session.rules, (rate ? (uint32_t)RULE_RATE : 0) | (limit ? (uint32_t)RULE_LIMIT : 0));
    for (unsigned i = 0; i < EXCLUDED_SLOTS; i++)
        atomic_store(&session.excluded[i], 0);
    session.excluded_count = 0;
}

bool session_exclude(uint64_t word)
{
    if (session_excludes(word))
        return true;
    if (session.excluded_count == EXCLUDED_MAX)
        return false;
    unsigned at = (unsigned)(word >> 4);
    while (atomic_load(&session.excluded[at % EXCLUDED_SLOTS]))
        at++;
    atomic_store(&session.excluded[at % EXCLUDED_SLOTS], word);
    session.excluded_count++;
    return true;
}

bool session_rate_allows(uint64_t tick)
{
    uint64_t begin = atomic_load_explicit(&session.window, memory_order_relaxed);
    return atomic_load_explicit(&session.used, memory_order_relaxed) < session.quota
        || (int64_t)(tick - begin) >= (int64_t)session.window_ticks;
}

static bool take_rate(uint64_t tick)
{
    uint64_t begin = atomic_load_explicit(&session.window, memory_order_relaxed);
    /* whoever moves the window empties it; a neighbour in between may be charged to either */
    if ((int64_t)(tick - begin) >= (int64_t)session.window_ticks && atomic_compare_exchange_strong(&session.window, &begin, tick))
        atomic_store(&session.used, 0);
    if (atomic_load_explicit(&session.used, memory_order_relaxed) >= session.quota)
        return false;
    return atomic_fetch_add_explicit(&session.used, 1, memory_order_relaxed) < session.quota;
}

__attribute__((noinline)) void session_is_full(struct lane *lane)
{
    ring_lose(&lane->ring, ETW_LOST_RING);
    if (!(session_rules() & RULE_FULL))
        atomic_fetch_or_explicit(&session.rules, RULE_FULL, memory_order_relaxed);
}

__attribute__((noinline)) void session_is_stuck(void)
{
    if (!(atomic_fetch_or(&session.rules, RULE_STUCK) & RULE_STUCK))
        bell_ring();
}

__attribute__((noinline)) bool session_admits_slowly(struct lane *lane, uint32_t rules)
{
    if (rules & RULE_CLOSED) {
        ring_lose(&lane->ring, ETW_LOST_GUARD);
        return false;
    }
    if (rules & RULE_RATE && !take_rate(tick_now())) {
        ring_lose(&lane->ring, ETW_LOST_RATE);
        return false;
    }
    if (rules & RULE_LIMIT) {
        int64_t left = atomic_fetch_sub(&session.limit_left, 1);
        if (left <= 1) {
            atomic_fetch_or(&session.rules, RULE_OVER);
            bell_ring(); /* the owner should know even when this one comes to nothing */
        }
        return left > 0;
    }
    return true;
}

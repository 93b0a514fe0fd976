/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

#include "bell.h"
#include "tick.h"

#define TIME_PART 10      /* with a rate, a thread may spend 1/TIME_PART of its time on events */
#define TIME_SAVED_MS 200 /* limit of the time that a thread saves up for a burst */

#define WINDOWS_MOST 1000000 /* limit of the windows that one refill adds, against overflow */

#define BUDGET_WINDOW_MS 10
#define BUDGET_WINDOWS 25 /* the bucket holds the calls of a quarter of a second */

#define ONCE inline __attribute__((always_inline)) /* for functions that run for every event of a flood */

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
    atomic_store(&session.share, 0);
    atomic_store(&session.shares, false);
    atomic_store(&session.low, session.bucket * 3 / 8);
    atomic_store(&session.left, session.bucket);
    atomic_store(&session.window, tick_now());
    atomic_store(&session.limit_left, limit < INT64_MAX ? (int64_t)limit : INT64_MAX);
    atomic_store(&session.rules, 0);
    gate_change(0, (rate ? RULE_GIVEN(RULE_RATE) : 0) | (limit ? RULE_GIVEN(RULE_LIMIT) : 0));
    gate_exclude(NULL, 0);
    gate_want_labels(NULL, 0);
}

/*
 * Returns those of RULE_RATE, RULE_LIMIT and RULE_EARLY that the client asked for and that apply on this route. The
 * rate and the limit bound sent events, so they do not apply to counted events. RULE_EARLY does not apply where only
 * trace/5 can decide: whether a row can count a key, whether a call waits for its result, or which request an event
 * belongs to.
 */
static uint32_t given_rules(uint32_t rules)
{
    static const uint32_t apply[ROUTES] = {
        [ROUTE_SEND] = RULE_RATE | RULE_LIMIT | RULE_EARLY,
        [ROUTE_TALLY] = RULE_EARLY,
        [ROUTE_BY] = RULE_RATE,
        [ROUTE_HOLD] = RULE_RATE | RULE_LIMIT,
        [ROUTE_TREES] = RULE_RATE | RULE_LIMIT,
    };
    return rules >> RULE_GIVEN_SHIFT & apply[gate_route(rules)] & (rules & RULE_REQUESTS ? ~(uint32_t)RULE_EARLY : ~0u);
}

void gate_change(uint32_t off, uint32_t on)
{
    uint32_t rules = atomic_load(&session.rules), next;
    do {
        next = (rules & ~(off | RULE_RATE | RULE_LIMIT | RULE_EARLY)) | on;
        next |= given_rules(next);
    } while (!atomic_compare_exchange_weak(&session.rules, &rules, next));
}

void gate_want(uint64_t kinds)
{
    atomic_store(&session.kinds, kinds);
    gate_change(RULE_KINDS, ~kinds ? RULE_KINDS : 0);
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

/*
 * Returns the number of windows from one tick to another. If the counter has gone back by more than a window
 * (tick_watch()), returns 1, so that a trace without tokens goes on.
 */
static int64_t windows_between(uint64_t from, uint64_t to, uint64_t window_ticks)
{
    const int64_t passed = (int64_t)(to - from), window = (int64_t)window_ticks;
    if (__builtin_expect(-window < passed && passed < window, 1))
        return 0; /* without a division */
    return passed < 0 ? 1 : passed / window;
}

bool gate_rate_allows(uint64_t tick)
{
    uint64_t begin = atomic_load_explicit(&session.window, memory_order_relaxed);
    return atomic_load_explicit(&session.left, memory_order_relaxed) > 0 ||
           windows_between(begin, tick, session.window_ticks);
}

/*
 * Doubles the share of admitted requests if less than half of the rate was used since the last refill. left: the tokens
 * before this refill. windows: the windows since the last refill.
 */
static void share_more(int64_t left, int64_t windows)
{
    uint32_t share = atomic_load_explicit(&session.share, memory_order_relaxed);
    if (share && left > session.bucket - session.quota * (windows < 10 ? windows : 10) / 2)
        atomic_compare_exchange_strong(&session.share, &share, share - 1);
    if (left > session.bucket / 2)
        atomic_store_explicit(&session.low, session.bucket * 3 / 8, memory_order_relaxed);
}

/*
 * Refills the token bucket. It holds the events of one second: it admits a burst of that size completely, and a flood
 * at the rate.
 */
static ONCE void refill_rate(uint64_t tick)
{
    uint64_t begin = atomic_load_explicit(&session.window, memory_order_relaxed);
    int64_t windows = windows_between(begin, tick, session.window_ticks);
    /*
     * The thread that sets session.window refills the bucket. Tokens that other threads take during the refill may not
     * be counted.
     */
    if (windows && atomic_compare_exchange_strong(&session.window, &begin, tick)) {
        int64_t left = atomic_load(&session.left);
        share_more(left, windows);
        left += session.quota * (windows < WINDOWS_MOST ? windows : WINDOWS_MOST);
        atomic_store(&session.left, left < session.bucket ? left : session.bucket);
    }
}

/*
 * Takes a token for each of the `events`. Returns false if the bucket is empty. If it has too few tokens but is not
 * empty, all events are admitted and later windows pay for the rest.
 */
static ONCE bool take_rate(uint64_t tick, unsigned events)
{
    refill_rate(tick);
    if (atomic_load_explicit(&session.left, memory_order_relaxed) <= 0)
        return false;
    return atomic_fetch_sub_explicit(&session.left, events, memory_order_relaxed) > 0;
}

/*
 * Adds to the thread's time for events. Returns true if the thread has time left; otherwise wakes the owner once. The
 * rate bounds the number of events, and the time bounds their cost: a large term costs a thousand times as much as a
 * small one.
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

void gate_budget(uint32_t calls, bool changes)
{
    session.budget_quota = calls / (1000 / BUDGET_WINDOW_MS) + 1;
    session.budget_most = session.budget_quota * BUDGET_WINDOWS;
    session.budget_ticks = session.ticks_per_ms * BUDGET_WINDOW_MS;
    if (changes && atomic_load(&session.budget_left) <= session.budget_most)
        return;
    atomic_store(&session.budget_at, tick_now());
    atomic_store(&session.budget_left, session.budget_most);
}

/* Refills the empty bucket. Only the thread that sets budget_at refills it, so each window counts once. */
static bool refill_budget(void)
{
    uint64_t tick = tick_now(), before = atomic_load_explicit(&session.budget_at, memory_order_relaxed);
    int64_t windows = windows_between(before, tick, session.budget_ticks);
    if (!windows || !atomic_compare_exchange_strong(&session.budget_at, &before, tick))
        return false;
    int64_t more = windows < BUDGET_WINDOWS ? windows * session.budget_quota : session.budget_most;
    atomic_store(&session.budget_left, more);
    return true;
}

static ONCE void budget_count(_Atomic uint64_t *counter)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1, memory_order_relaxed);
}

bool gate_affords(struct lane *lane)
{
    if ((atomic_load_explicit(&session.budget_left, memory_order_relaxed) > 0 || refill_budget()) &&
        atomic_fetch_sub_explicit(&session.budget_left, 1, memory_order_relaxed) > 0) {
        budget_count(&lane->admitted);
        return true;
    }
    budget_count(&lane->rejected);
    if (!gate_is_short() && !atomic_exchange(&session.budget_short, true))
        bell_ring();
    return false;
}

struct gate_spent gate_spent(void)
{
    struct gate_spent spent = {0};
    atomic_store(&session.budget_short, false);
    for (uint32_t i = 0; i < lanes_claimed(); i++) {
        spent.admitted += atomic_load_explicit(&lane_at(i)->admitted, memory_order_relaxed);
        spent.rejected += atomic_load_explicit(&lane_at(i)->rejected, memory_order_relaxed);
    }
    return spent;
}

void gate_ask(void)
{
    atomic_store_explicit(&session.asked, 0, memory_order_relaxed); /* the owner sets the rule after this */
    atomic_fetch_or(&session.rules, RULE_ASKED);
}

uint32_t gate_asked(void)
{
    /* Relaxed: a few calls more or fewer make no difference */
    uint32_t asked = atomic_load_explicit(&session.asked, memory_order_relaxed);
    return asked < ETW_ASKED_MOST ? asked : ETW_ASKED_MOST;
}

void gate_count_asked(void)
{
    /* Relaxed: only the number matters */
    if (atomic_fetch_add_explicit(&session.asked, 1, memory_order_relaxed) + 1 >= ETW_ASKED_MOST)
        atomic_fetch_and_explicit(&session.rules, ~(uint32_t)RULE_ASKED, memory_order_relaxed);
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

bool gate_admits_waited(uint32_t rules, unsigned events)
{
    return !(rules & RULE_RATE) || take_rate(tick_now(), events);
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
        if (!take_rate(tick, 1)) {
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

/* ---- requests ---------------------------------------------------------------------------------------------------- */

#define MARKED_SETS 8192u
#define MARKED_WAYS 8u
#define SHARE_MOST 20 /* admit at least one of a million requests */

/* The keys of requests that the rate has admitted. Without a rate: the complements of the keys of left-out requests. */
static _Atomic uint64_t marked[MARKED_SETS * MARKED_WAYS];
static _Atomic uint32_t marked_next;

/* Adds a request's key to marked[]. Replaces another key if the set of this key is full. */
static void mark_request(uint64_t key)
{
    _Atomic uint64_t *set = &marked[key % MARKED_SETS * MARKED_WAYS];
    for (unsigned i = 0; i < MARKED_WAYS; i++) {
        uint64_t none = 0;
        if (atomic_compare_exchange_strong_explicit(&set[i], &none, key, memory_order_relaxed, memory_order_relaxed))
            return;
    }
    unsigned at = atomic_fetch_add_explicit(&marked_next, 1, memory_order_relaxed) % MARKED_WAYS;
    atomic_store_explicit(&set[at], key, memory_order_relaxed);
}

/* Returns true if marked[] has the key. If `ends` is set, removes the key. */
static bool find_mark(uint64_t key, bool ends)
{
    _Atomic uint64_t *set = &marked[key % MARKED_SETS * MARKED_WAYS];
    for (unsigned i = 0; i < MARKED_WAYS; i++) {
        if (atomic_load_explicit(&set[i], memory_order_relaxed) != key)
            continue;
        if (ends)
            atomic_compare_exchange_strong_explicit(&set[i], &key, 0, memory_order_relaxed, memory_order_relaxed);
        return true;
    }
    return false;
}

/*
 * Returns true if the share admits a request. Decides by high bits of the key, because the low bits select its set in
 * marked[].
 */
static bool is_in_share(uint64_t key)
{
    uint32_t share = atomic_load_explicit(&session.share, memory_order_relaxed);
    return !(key >> 40 & ((UINT64_C(1) << share) - 1));
}

/*
 * Admits half as many requests each time that the number of tokens left has halved. So the number of events falls as
 * fast as the tokens, and the bucket does not become empty before few enough events come.
 */
static void share_less(int64_t left)
{
    int64_t low = atomic_load_explicit(&session.low, memory_order_relaxed);
    if (left >= low || !atomic_compare_exchange_strong(&session.low, &low, left > 1 ? left / 2 : INT64_MIN))
        return;
    if (atomic_load(&session.share) < SHARE_MOST)
        atomic_fetch_add(&session.share, 1);
    atomic_store(&session.shares, true);
}

static bool admit_request(uint64_t key, bool may)
{
    if (find_mark(key, false))
        return true;
    if (!may || !is_in_share(key))
        return false;
    mark_request(key);
    return true;
}

static bool continue_request(uint64_t key, bool ends)
{
    return find_mark(key, ends) || !atomic_load_explicit(&session.shares, memory_order_relaxed);
}

/* Applies the rate. Returns the reason for which the event is lost, or ETW_LOSSES if it is admitted. */
static enum etw_loss rate_part(struct lane *lane, enum gate_part part, uint64_t key)
{
    uint64_t tick = tick_now();
    bool has = has_time(lane, tick);
    refill_rate(tick);
    int64_t left = atomic_load_explicit(&session.left, memory_order_relaxed);
    if (part == GATE_OTHER && !has)
        return ETW_LOST_GUARD;
    if (part == GATE_OTHER && left <= session.bucket / 4)
        return ETW_LOST_RATE;
    if ((part == GATE_FIRST || part == GATE_AGAIN) && !admit_request(key, has && left > 0)) {
        atomic_store_explicit(&session.shares, true, memory_order_relaxed);
        return ETW_LOST_REQUEST;
    }
    if ((part == GATE_LATER || part == GATE_LAST) && !continue_request(key, part == GATE_LAST))
        return ETW_LOST_REQUEST;
    share_less(atomic_fetch_sub_explicit(&session.left, 1, memory_order_relaxed) - 1);
    return ETW_LOSSES;
}

/*
 * Leaves out a request that begins while the ring is crowded, for a trace without a rate. Returns the reason for which
 * the event is lost, or ETW_LOSSES if it is admitted.
 */
static enum etw_loss room_part(struct lane *lane, enum gate_part part, uint64_t key)
{
    if (!key)
        return ETW_LOSSES;
    if (find_mark(~key, part == GATE_LAST))
        return ETW_LOST_REQUEST;
    if (part != GATE_FIRST || !ring_is_crowded(&lane->ring))
        return ETW_LOSSES;
    mark_request(~key);
    atomic_store_explicit(&session.shares, true, memory_order_relaxed);
    return ETW_LOST_REQUEST;
}

bool gate_admits_part(struct lane *lane, uint32_t rules, enum gate_part part, uint64_t key)
{
    if (!gate_has_room_for_new(lane))
        return false;
    enum etw_loss why = rules & RULE_CLOSED ? ETW_LOST_GUARD
                        : rules & RULE_RATE ? rate_part(lane, part, key)
                                            : room_part(lane, part, key);
    if (why != ETW_LOSSES) {
        ring_lose(&lane->ring, why);
        return false;
    }
    return !(rules & RULE_LIMIT) || gate_admits_slowly(lane, RULE_LIMIT, ETW_LOST_RATE);
}

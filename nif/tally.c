/* SPDX-License-Identifier: Apache-2.0 */
#include "tally.h"

#include <string.h>

#include "owed.h"

#define ONCE inline __attribute__((always_inline)) /* inlined, because every counted event needs it */
#define CLEAR_BYTES ((size_t)4 << 20)

/* The counts of a function: see struct etw_tally. The one value of its row is the duration in nanoseconds. */
enum { EVENTS, SEEN, ERRORS, OPEN, FILTERED, COUNTS };

/* The key of a function: the words of its atoms, and its arity. */
struct key {
    uint64_t module, name, arity;
};

static void close_ended(const uint8_t *key, struct etw_row *figures);

static struct rows functions = {.counts = COUNTS, .values = 1, .amend = close_ended};
static uint64_t ns_per_tick; /* fixed point: times 2^32 */
/* The stacks must be cleared before the next trace. Only the owner uses these two. */
static bool stacks_due;
static size_t stacks_cleared;

/* ---- life -------------------------------------------------------------------------------------------------------- */

void tally_unmap(void)
{
    rows_unmap(&functions);
    stacks_due = false;
    stacks_unmap();
}

enum rows_opened tally_open(uint32_t count, uint64_t ticks_per_ms, stack_alive_fn *alive)
{
    if (stacks_due && stacks_clear(&stacks_cleared, CLEAR_BYTES))
        return ROWS_CLEARING;
    stacks_due = false;
    if (count > TALLY_FUNCTIONS_MOST)
        count = TALLY_FUNCTIONS_MOST;
    ns_per_tick = (UINT64_C(1000000) << 32) / (ticks_per_ms ? ticks_per_ms : 1);
    /* Reserve room for modules that are loaded later. At least double the capacity, because ROWS_MAPPINGS is small. */
    uint32_t capacity = count + count / 4 + 1024, before = rows_capacity(&functions);
    if (before < capacity && capacity < 2 * before)
        capacity = 2 * before;
    const struct rows_room room = {.rows = capacity,
                                   .key_bytes = capacity * (uint32_t)sizeof(struct key),
                                   .groups = (size_t)capacity * ROWS_GROUPS + 1};
    enum rows_opened how = rows_open(&functions, &room);
    if (how != ROWS_OPEN)
        return how;
    if (!stacks_open(alive))
        return ROWS_NO_MEMORY;
    stacks_due = true;
    stacks_cleared = 0;
    return ROWS_OPEN;
}

/* ---- producers --------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) uint32_t find_row(struct rows_memory *m, const struct stack_function *f)
{
    const struct key key = {f->module, f->name, f->arity};
    return rows_find(m, &(struct rows_key){(const uint8_t *)&key, sizeof key, false});
}

/* Returns the place of a function's figures in a lane: in the row ROWS_OTHER if the function has no row of its own. */
static ONCE struct rows_place row_in(struct lane *lane, const struct stack_function *f)
{
    uint32_t epoch = rows_epoch(&functions);
    struct rows_memory *m = rows_memory(&functions);
    struct rows_recent *recent = rows_recent(m, lane, f, NULL, 0);
    if (__builtin_expect(rows_is_recent(recent, epoch, f, NULL, 0), 1))
        return rows_place(m, lane, recent->row);
    uint32_t row = find_row(m, f);
    if (row != ROWS_OTHER)
        *recent = (struct rows_recent){.epoch = epoch, .row = row, .function = *f};
    return rows_place(m, lane, row);
}

/* Pops a call from its stack. Returns false if the stack does not know the call. */
static bool pop_call(uint64_t process, const struct stack_function *f, struct stack_call *ret_call)
{
    struct stack *s;
    struct stack_call *call = stack_pop(process, f, &s);
    if (call)
        *ret_call = *call;
    if (s)
        stack_rest(s);
    return call;
}

/* Counts a shown call or result. */
static void count_shown_event(const struct rows_place *p, bool is_call)
{
    if (is_call)
        rows_count(p, EVENTS, 1);
    rows_count(p, SEEN, 1);
}

void tally_call(void *env, struct lane *lane, uint64_t process, const struct stack_function *f, uint64_t tick,
                uint64_t bytes, bool returns)
{
    const struct rows_place p = row_in(lane, f);
    struct stack_call call = {.function = *f, .tick = tick, .verdict = (uint8_t)verdict_call(bytes, returns)};
    tally_begin(lane);
    if (returns)
        rows_count(&p, OPEN, 1);
    if (returns && !stack_push(env, process, &call) && verdict_is_set()) {
        ring_lose(&lane->ring, ETW_LOST_GUARD);
    } else {
        if (call.verdict == VERDICT_SHOWS)
            count_shown_event(&p, true);
        else
            rows_count(&p, FILTERED, 1);
        ring_count_seen(&lane->ring);
    }
    tally_end(lane);
}

uint64_t tally_ns(uint64_t from, uint64_t to)
{
    return to > from ? (uint64_t)((unsigned __int128)(to - from) * ns_per_tick >> 32) : 0;
}

void tally_result(struct lane *lane, uint64_t process, const struct stack_function *f, const struct tally_result *r)
{
    const struct rows_place p = row_in(lane, f);
    struct stack_call call = {.verdict = VERDICT_SHOWS};
    bool known = pop_call(process, f, &call) && call.sure;
    if (!known)
        call.verdict = VERDICT_SHOWS;
    uint64_t ns = known ? tally_ns(call.tick, r->tick) : 0;
    tally_begin(lane);
    rows_count(&p, OPEN, -1);
    if (!known && verdict_is_set()) {
        ring_lose(&lane->ring, ETW_LOST_GUARD);
        tally_end(lane);
        return;
    }
    if (call.verdict == VERDICT_WAITS && verdict_result(r->bytes, ns, &r->end)) {
        call.verdict = VERDICT_SHOWS;
        rows_count(&p, FILTERED, -1);
        count_shown_event(&p, true);
    }
    if (call.verdict == VERDICT_SHOWS) {
        count_shown_event(&p, false);
        if (r->failed)
            rows_count(&p, ERRORS, 1);
        if (known)
            rows_value(&p, 0, (int64_t)ns);
    } else {
        rows_count(&p, FILTERED, 1);
    }
    ring_count_seen(&lane->ring);
    tally_end(lane);
}

void tally_drop(struct lane *lane, uint64_t process, const struct stack_function *f)
{
    struct stack *s;
    while (stack_drop(process, f, &s)) {
        stack_rest(s);
        const struct rows_place p = row_in(lane, f);
        tally_begin(lane);
        rows_count(&p, OPEN, -1);
        tally_end(lane);
    }
}

void tally_waiting(struct lane *lane, int filtered, int open)
{
    const struct rows_place p = rows_place(rows_memory(&functions), lane, ROWS_OTHER);
    if (filtered)
        rows_count(&p, FILTERED, filtered);
    if (open)
        rows_count(&p, OPEN, open);
}

void tally_seen(struct lane *lane)
{
    const struct rows_place p = rows_place(rows_memory(&functions), lane, ROWS_OTHER);
    rows_count(&p, SEEN, 1);
    ring_count_seen(&lane->ring);
}

void tally_show(struct lane *lane)
{
    const struct rows_place p = rows_place(rows_memory(&functions), lane, ROWS_OTHER);
    rows_count(&p, SEEN, 1);
    rows_count(&p, FILTERED, -1);
}

bool tally_counts(const struct stack_call *call)
{
    return call->verdict == VERDICT_SHOWS && !owed_ended(&call->function);
}

/* ---- the drain --------------------------------------------------------------------------------------------------- */

static struct stack_function read_key(const uint8_t *bytes)
{
    struct key key = {0};
    if (bytes)
        memcpy(&key, bytes, sizeof key);
    return (struct stack_function){key.module, key.name, (uint32_t)key.arity};
}

static void close_ended(const uint8_t *key, struct etw_row *figures)
{
    const struct stack_function f = read_key(key);
    if (owed_ended(&f))
        figures->counts[OPEN] = 0;
}

enum rows_took tally_take(int64_t *work, struct stack_function *ret_function, struct etw_tally *ret,
                          struct etw_bucket *ret_buckets)
{
    struct rows_growth g;
    enum rows_took took = rows_take(&functions, work, &g, ret_buckets);
    if (took != ROWS_TOOK)
        return took;
    *ret_function = read_key(rows_key_of(rows_memory(&functions), g.row).bytes);
    *ret = (struct etw_tally){
        .events = (uint64_t)g.by.counts[EVENTS],
        .seen = (uint64_t)g.by.counts[SEEN],
        .errors = (uint64_t)g.by.counts[ERRORS],
        .timed = g.by.values[0].count,
        .total_ns = (uint64_t)g.by.values[0].sum,
        .max_ns = (uint64_t)g.by.values[0].most,
        .min_ns = (uint64_t)g.by.values[0].least,
        .open = g.by.counts[OPEN],
        .filtered = g.by.counts[FILTERED],
        .buckets = g.by.buckets[0],
    };
    return took;
}

bool tally_is_told(void)
{
    return rows_are_told(&functions);
}

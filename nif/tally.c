/* SPDX-License-Identifier: Apache-2.0 */
#include "tally.h"

#include <string.h>

#include "owed.h"

#define CLEAR_BYTES ((size_t)4 << 20)

/* The key of a function: its atoms as raw terms, and its arity. A key of by.c does not begin with zeros. */
struct key {
    uint64_t zeros, module, name, arity;
};

static void close_ended(const struct rows_key *key, struct rows_figures *figures);

struct rows tally_rows = {.amend = close_ended};
static uint64_t ns_per_tick; /* fixed point: times 2^32 */
/* Only the owner uses these. stacks_due: the stacks must be cleared before the next trace. */
static bool stacks_due;
static size_t stacks_cleared;
static struct etw_tally totals;

/* ---- life -------------------------------------------------------------------------------------------------------- */

void tally_unmap(void)
{
    rows_unmap(&tally_rows);
    stacks_due = false;
    stacks_unmap();
}

struct rows_room tally_functions(uint32_t count)
{
    if (count > TALLY_FUNCTIONS_MOST)
        count = TALLY_FUNCTIONS_MOST;
    /* Reserve room for modules that are loaded later. */
    const uint32_t rows = count + count / 4 + 1024;
    return (struct rows_room){.counts = TALLY_COUNTS,
                              .values = 1,
                              .rows = rows,
                              .key_bytes = rows * (uint32_t)sizeof(struct key),
                              .groups = (size_t)rows * ROWS_GROUPS + 1};
}

enum rows_opened tally_open(const struct rows_room *room, uint64_t ticks_per_ms, stack_alive_fn *alive)
{
    if (stacks_due && stacks_clear(&stacks_cleared, CLEAR_BYTES))
        return ROWS_CLEARING;
    stacks_due = false;
    ns_per_tick = (UINT64_C(1000000) << 32) / (ticks_per_ms ? ticks_per_ms : 1);
    enum rows_opened how = rows_open(&tally_rows, room);
    if (how != ROWS_OPEN)
        return how;
    if (!stacks_open(alive))
        return ROWS_NO_MEMORY;
    totals = (struct etw_tally){0};
    stacks_due = true;
    stacks_cleared = 0;
    return ROWS_OPEN;
}

/* ---- producers --------------------------------------------------------------------------------------------------- */

__attribute__((noinline)) uint32_t tally_find(struct rows_memory *m, const struct stack_function *f)
{
    const struct key key = {.module = f->module, .name = f->name, .arity = f->arity};
    return rows_find(m, &(struct rows_key){(const uint8_t *)&key, sizeof key, false});
}

void tally_add(struct lane *lane, unsigned which, int by)
{
    const struct rows_place p = tally_place(lane, ROWS_OTHER);
    rows_count(&p, which, by);
}

void tally_waiting(struct lane *lane, int filtered, int open)
{
    tally_add(lane, TALLY_FILTERED, filtered);
    tally_add(lane, TALLY_OPEN, open);
}

void tally_hide(struct lane *lane, int open)
{
    tally_begin(lane);
    tally_add(lane, TALLY_FILTERED, 1);
    if (open)
        tally_add(lane, TALLY_OPEN, open);
    ring_count_seen(&lane->ring);
    tally_end(lane);
}

uint64_t tally_ns(uint64_t from, uint64_t to)
{
    return to > from ? (uint64_t)((unsigned __int128)(to - from) * ns_per_tick >> 32) : 0;
}

void tally_result(struct lane *lane, uint64_t process, const struct stack_function *f, const struct tally_result *r)
{
    const struct rows_place p = tally_place_of(lane, f);
    struct stack *s;
    const struct stack_call *call = stack_pop(process, f, &s);
    const bool known = call && call->sure, lost = !known && verdict_is_set();
    const uint64_t ns = known ? tally_ns(call->tick, r->tick) : 0;
    unsigned verdict = known ? call->verdict : VERDICT_SHOWS;
    if (s)
        stack_rest(s);
    tally_begin(lane);
    rows_count(&p, TALLY_OPEN, -1);
    if (verdict == VERDICT_WAITS && verdict_result(r->bytes, ns, &r->end)) {
        verdict = VERDICT_SHOWS;
        rows_count(&p, TALLY_FILTERED, -1);
        rows_count(&p, TALLY_EVENTS, 1);
    }
    if (lost) {
        ring_lose(&lane->ring, ETW_LOST_GUARD);
    } else if (verdict != VERDICT_SHOWS) {
        rows_count(&p, TALLY_FILTERED, 1);
    } else {
        rows_count(&p, TALLY_BESIDE, 1);
        if (r->failed)
            rows_count(&p, TALLY_ERRORS, 1);
        if (known)
            rows_value(&p, 0, (int64_t)ns);
    }
    if (!lost)
        ring_count_seen(&lane->ring);
    tally_end(lane);
}

void tally_drop(struct lane *lane, uint64_t process, const struct stack_function *f)
{
    struct stack *s;
    while (stack_drop(process, f, &s)) {
        stack_rest(s);
        const struct rows_place p = tally_place_of(lane, f);
        tally_begin(lane);
        rows_count(&p, TALLY_OPEN, -1);
        tally_end(lane);
    }
}

bool tally_counts(const struct stack_call *call)
{
    return (call->verdict == VERDICT_SHOWS || call->verdict == TALLY_WHOLE) && !owed_ended(&call->function);
}

/* ---- the drain --------------------------------------------------------------------------------------------------- */

/* Returns the function of a key, or a function without a module if the key is not that of a function. */
static struct stack_function function_of(const struct rows_key *key)
{
    struct key k = {0};
    if (key->length == sizeof k)
        memcpy(&k, key->bytes, sizeof k);
    return k.zeros ? (struct stack_function){0} : (struct stack_function){k.module, k.name, (uint32_t)k.arity};
}

static void close_ended(const struct rows_key *key, struct rows_figures *figures)
{
    const struct stack_function f = function_of(key);
    if (f.module && owed_ended(&f))
        figures->counts[TALLY_OPEN] = 0;
}

enum rows_took tally_take(int64_t *work, struct rows_growth *ret, struct etw_bucket *ret_buckets)
{
    enum rows_took took = rows_take(&tally_rows, work, ret, ret_buckets);
    if (took == ROWS_TOOK) {
        const struct etw_tally t = tally_of(ret, &(struct stack_function){0});
        totals.seen += t.seen;
        totals.filtered += t.filtered;
    }
    return took;
}

struct etw_tally tally_of(const struct rows_growth *g, struct stack_function *ret_function)
{
    const struct rows_key key = rows_key_of(rows_memory(&tally_rows), g->row);
    const struct etw_row_sum *ns = &g->by.values[0];
    *ret_function = function_of(&key);
    return (struct etw_tally){
        .events = (uint64_t)g->by.counts[TALLY_EVENTS],
        .seen = (uint64_t)(g->by.counts[TALLY_EVENTS] + g->by.counts[TALLY_BESIDE]),
        .errors = (uint64_t)g->by.counts[TALLY_ERRORS],
        .timed = ns->count,
        .total_ns = (uint64_t)ns->sum,
        .max_ns = (uint64_t)ns->most,
        .min_ns = (uint64_t)ns->least,
        .open = g->by.counts[TALLY_OPEN],
        .filtered = g->by.counts[TALLY_FILTERED],
        .buckets = g->by.buckets[0],
    };
}

struct etw_tally tally_totals(void)
{
    const struct etw_tally all = totals;
    totals = (struct etw_tally){0};
    return all;
}

bool tally_is_told(void)
{
    return rows_are_told(&tally_rows);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tally.h"

#include <string.h>

#include "owed.h"
#include "pages.h"

#define ONCE inline __attribute__((always_inline)) /* inlined, because every counted event needs it */
#define GROUPS (ETW_BUCKETS / ETW_STEPS)           /* groups of buckets; each covers a power of two */
#define CLEAR_BYTES ((size_t)4 << 20) /* cleared by one call: a thousand pages, at a tenth of a microsecond each */
#define MAPPINGS 16                   /* each is larger than the one before */

struct figures {
    uint64_t seen, events, errors, timed, total_ns, max_ns;
    int64_t open, filtered;
};

/* The figures of one function in one lane, in one cache line. */
struct entry {
    _Atomic uint64_t seen, events, errors, timed, total_ns, max_ns;
    _Atomic int64_t open, filtered;
};

/* The numbers of an entry's groups of buckets. 0: no call had such a duration, so there is no group. */
struct times {
    _Atomic uint32_t groups[GROUPS];
};

struct group {
    _Atomic uint32_t buckets[ETW_STEPS];
};

/*
 * A function, and the figures that the drain has reported. The thread that first meets it writes `function` before it
 * publishes the number.
 */
struct known {
    struct stack_function function;
    struct figures told;
    uint32_t buckets[ETW_BUCKETS];
};

/* A place of the hash table from functions to numbers. A thread skips a place that another thread is writing. */
struct place {
    _Alignas(32) _Atomic uint32_t number; /* the number plus 1; 0: free */
    uint32_t arity;
    uint64_t module, name;
};
#define IN_THE_MAKING UINT32_MAX

/*
 * The head of a mapping. It has a page of its own, which is never cleared; the other pages take memory only once a
 * thread touches them. Each lane has a part: the number of groups it uses, a bit for each function that it has met,
 * then entries, times and groups by number.
 */
struct memory {
    size_t bytes, places_at, known_at, lanes_at, stride, entries_at, times_at, groups_at;
    uint32_t capacity, mask;                   /* numbers are below capacity; there are mask + 1 places */
    _Alignas(RING_LINE) _Atomic uint32_t used; /* the next number; may exceed capacity */
};

struct part {
    _Alignas(RING_LINE) uint32_t groups; /* only the lane's thread uses it */
    _Alignas(RING_LINE) _Atomic uint64_t met[];
};

/* A producer loads it once for each event, so that all its pointers belong to one mapping. */
static struct memory *_Atomic current;
static struct memory *mappings[MAPPINGS];
static uint64_t ns_per_tick; /* fixed point: times 2^32 */

/* Only the owner uses these: the current round, its next function, and the progress of clearing. */
static struct round look;
static uint32_t look_next;
static struct {
    bool due;
    size_t figures, stacks;
} clear;

/* ---- life -------------------------------------------------------------------------------------------------------- */

static struct memory *make(uint32_t capacity)
{
    uint32_t places = 1024;
    while (places < 2 * capacity)
        places *= 2;
    struct memory m = {.capacity = capacity, .mask = places - 1, .used = 1};
    m.places_at = PAGE;
    m.known_at = m.places_at + whole_pages(places * sizeof(struct place));
    m.lanes_at = m.known_at + whole_pages(capacity * sizeof(struct known));
    m.entries_at = sizeof(struct part) + (capacity + 511) / 512 * RING_LINE;
    m.times_at = m.entries_at + capacity * sizeof(struct entry);
    m.groups_at = m.times_at + capacity * sizeof(struct times);
    m.stride = whole_pages(m.groups_at + ((size_t)capacity * GROUPS + 1) * sizeof(struct group));
    m.bytes = m.lanes_at + m.stride * lanes.count;
    struct memory *at = pages_map(m.bytes);
    if (at)
        memcpy(at, &m, sizeof m);
    return at;
}

/*
 * Makes a larger mapping if the current one is too small. The old one stays mapped, because a late callback may still
 * use it.
 */
static bool have(uint32_t capacity)
{
    struct memory *m = atomic_load(&current);
    if (m && m->capacity >= capacity)
        return true;
    for (unsigned i = 0; i < MAPPINGS; i++) {
        if (mappings[i])
            continue;
        if (!(mappings[i] = make(capacity)))
            return false;
        atomic_store(&current, mappings[i]);
        return true;
    }
    return false;
}

void tally_unmap(void)
{
    atomic_store(&current, NULL);
    for (unsigned i = 0; i < MAPPINGS && mappings[i]; i++) {
        munmap(mappings[i], mappings[i]->bytes);
        mappings[i] = NULL;
    }
    clear.due = false;
    stacks_unmap();
}

/* Clears some memory. False: nothing is left to clear. Parts of unclaimed lanes are clean. */
static bool clear_some(void)
{
    struct memory *m = atomic_load(&current);
    if (!clear.due)
        return false;
    if (pages_clear((uint8_t *)m + PAGE, m->lanes_at - PAGE + m->stride * lanes_claimed(), &clear.figures, CLEAR_BYTES) ||
        stacks_clear(&clear.stacks, CLEAR_BYTES))
        return true;
    atomic_store(&m->used, 1);
    clear.due = false;
    return false;
}

enum tally_opened tally_open(uint32_t functions, uint64_t ticks_per_ms, stack_alive_fn *alive)
{
    if (functions > TALLY_FUNCTIONS_MOST)
        functions = TALLY_FUNCTIONS_MOST;
    if (clear_some())
        return TALLY_CLEARING;
    ns_per_tick = (UINT64_C(1000000) << 32) / (ticks_per_ms ? ticks_per_ms : 1);
    /* Reserve room for modules that are loaded later. At least double the capacity, because MAPPINGS is small. */
    uint32_t capacity = functions + functions / 4 + 1024;
    struct memory *m = atomic_load(&current);
    if (m && m->capacity < capacity && capacity < 2 * m->capacity)
        capacity = 2 * m->capacity;
    if (!have(capacity) || !stacks_open(alive))
        return TALLY_NO_MEMORY;
    look_next = 0;
    round_clear(&look);
    clear.due = true;
    clear.figures = clear.stacks = 0;
    return TALLY_OPEN;
}

/* ---- layout of a mapping ----------------------------------------------------------------------------------------- */

static struct known *known_of(struct memory *m, uint32_t number)
{
    return (struct known *)(void *)((uint8_t *)m + m->known_at) + number;
}

static struct part *part_of(struct memory *m, uint32_t slot)
{
    return (struct part *)(void *)((uint8_t *)m + m->lanes_at + slot * m->stride);
}

static struct entry *entry_at(const struct memory *m, struct part *part, uint32_t number)
{
    return (struct entry *)(void *)((uint8_t *)part + m->entries_at) + number;
}

static struct times *times_at(const struct memory *m, struct part *part, uint32_t number)
{
    return (struct times *)(void *)((uint8_t *)part + m->times_at) + number;
}

static struct group *group_at(const struct memory *m, struct part *part, uint32_t group)
{
    return (struct group *)(void *)((uint8_t *)part + m->groups_at) + group;
}

/* ---- producers --------------------------------------------------------------------------------------------------- */

static unsigned hash(const struct stack_function *f)
{
    return (unsigned)((f->name ^ f->module << 7 ^ f->arity) * UINT64_C(0x9e3779b97f4a7c15) >> 40);
}

/*
 * Two threads may give the same function a number each. The drain then reports it in two parts, and the client adds
 * them up.
 */
static __attribute__((noinline)) uint32_t new_number(struct memory *m, struct place *place, const struct stack_function *f)
{
    uint32_t number = atomic_fetch_add_explicit(&m->used, 1, memory_order_relaxed);
    if (number >= m->capacity)
        number = 0;
    else
        known_of(m, number)->function = *f;
    place->arity = f->arity;
    place->module = f->module;
    place->name = f->name;
    /* Release: a thread that reads the number finds the function in its place, and the drain finds it by the number. */
    atomic_store_explicit(&place->number, number + 1, memory_order_release);
    return number;
}

/* 0: the function has no number of its own. */
static ONCE uint32_t number_of(struct memory *m, const struct stack_function *f)
{
    struct place *places = (struct place *)(void *)((uint8_t *)m + m->places_at);
    for (unsigned at = hash(f), tries = 0; tries <= m->mask; at++, tries++) {
        struct place *place = &places[at & m->mask];
        /* Acquire: see new_number(). */
        uint32_t number = atomic_load_explicit(&place->number, memory_order_acquire);
        if (__builtin_expect(number && number != IN_THE_MAKING && place->name == f->name &&
                                 place->module == f->module && place->arity == f->arity,
                             1))
            return number - 1;
        if (number)
            continue;
        if (atomic_load_explicit(&m->used, memory_order_relaxed) >= m->capacity)
            return 0;
        if (atomic_compare_exchange_strong(&place->number, &number, IN_THE_MAKING))
            return new_number(m, place, f);
    }
    return 0;
}

/* Where the figures of a function in a lane are. */
struct counted {
    struct memory *memory;
    struct part *part;
    struct entry *entry;
    uint32_t number;
};

static ONCE struct counted counted_as(struct memory *m, struct lane *lane, uint32_t number)
{
    struct part *part = part_of(m, lane->slot);
    _Atomic uint64_t *met = &part->met[number / 64];
    uint64_t bits = atomic_load_explicit(met, memory_order_relaxed), bit = UINT64_C(1) << number % 64;
    /* Release: a drain that sees the bit sees the function of that number, even if another thread wrote it. */
    if (__builtin_expect(!(bits & bit), 0))
        atomic_store_explicit(met, bits | bit, memory_order_release);
    return (struct counted){m, part, entry_at(m, part, number), number};
}

/* Acquire: the owner initialises the mapping before it publishes the address. */
static ONCE struct counted counted_of(struct lane *lane, const struct stack_function *f)
{
    struct memory *m = atomic_load_explicit(&current, memory_order_acquire);
    return counted_as(m, lane, number_of(m, f));
}

static void bump(_Atomic uint64_t *counter, uint64_t by)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by, memory_order_relaxed);
}

static void shift(_Atomic int64_t *gauge, int64_t by)
{
    atomic_store_explicit(gauge, atomic_load_explicit(gauge, memory_order_relaxed) + by, memory_order_relaxed);
}

/* Pops a call from its stack. False: the stack does not know the call. */
static bool pop(uint64_t process, const struct stack_function *f, struct stack_call *ret_call)
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
static void count(struct entry *e, bool is_call)
{
    if (is_call)
        bump(&e->events, 1);
    bump(&e->seen, 1);
}

void tally_call(void *env, struct lane *lane, uint64_t process, const struct stack_function *f, uint64_t tick,
                uint64_t bytes, bool returns)
{
    struct entry *e = counted_of(lane, f).entry;
    struct stack_call call = {.function = *f, .tick = tick, .verdict = (uint8_t)verdict_call(bytes, returns)};
    tally_begin(lane);
    if (returns)
        shift(&e->open, 1);
    if (returns && !stack_push(env, process, &call) && verdict_is_set()) {
        ring_lose(&lane->ring, ETW_LOST_GUARD);
    } else {
        if (call.verdict == VERDICT_SHOWS)
            count(e, true);
        else
            shift(&e->filtered, 1);
        ring_count_seen(&lane->ring);
    }
    tally_end(lane);
}

uint64_t tally_ns(uint64_t from, uint64_t to)
{
    return to > from ? (uint64_t)((unsigned __int128)(to - from) * ns_per_tick >> 32) : 0;
}

static void add_time(const struct counted *c, uint64_t ns)
{
    struct entry *e = c->entry;
    unsigned at = etw_bucket_of(ns);
    _Atomic uint32_t *group = &times_at(c->memory, c->part, c->number)->groups[at / ETW_STEPS];
    uint32_t number = atomic_load_explicit(group, memory_order_relaxed);
    if (__builtin_expect(!number, 0)) {
        number = ++c->part->groups;
        atomic_store_explicit(group, number, memory_order_relaxed);
    }
    _Atomic uint32_t *bucket = &group_at(c->memory, c->part, number)->buckets[at % ETW_STEPS];
    atomic_store_explicit(bucket, atomic_load_explicit(bucket, memory_order_relaxed) + 1, memory_order_relaxed);
    /* Release: a drain that sees the call in `timed` also sees it in its bucket. */
    atomic_store_explicit(&e->timed, atomic_load_explicit(&e->timed, memory_order_relaxed) + 1, memory_order_release);
    bump(&e->total_ns, ns);
    if (ns > atomic_load_explicit(&e->max_ns, memory_order_relaxed))
        atomic_store_explicit(&e->max_ns, ns, memory_order_relaxed);
}

void tally_result(struct lane *lane, uint64_t process, const struct stack_function *f, const struct tally_result *r)
{
    struct counted c = counted_of(lane, f);
    struct entry *e = c.entry;
    struct stack_call call = {.verdict = VERDICT_SHOWS};
    bool known = pop(process, f, &call) && call.sure;
    if (!known)
        call.verdict = VERDICT_SHOWS;
    uint64_t ns = known ? tally_ns(call.tick, r->tick) : 0;
    tally_begin(lane);
    shift(&e->open, -1);
    if (!known && verdict_is_set()) {
        ring_lose(&lane->ring, ETW_LOST_GUARD);
        tally_end(lane);
        return;
    }
    if (call.verdict == VERDICT_WAITS && verdict_result(r->bytes, ns, &r->end)) {
        call.verdict = VERDICT_SHOWS;
        shift(&e->filtered, -1);
        count(e, true);
    }
    if (call.verdict == VERDICT_SHOWS) {
        count(e, false);
        if (r->failed)
            bump(&e->errors, 1);
        if (known)
            add_time(&c, ns);
    } else {
        shift(&e->filtered, 1);
    }
    ring_count_seen(&lane->ring);
    tally_end(lane);
}

void tally_drop(struct lane *lane, uint64_t process, const struct stack_function *f)
{
    struct stack_call call;
    while (pop(process, f, &call)) {
        tally_begin(lane);
        shift(&counted_of(lane, f).entry->open, -1);
        tally_end(lane);
    }
}

void tally_waiting(struct lane *lane, int filtered, int open)
{
    struct memory *m = atomic_load_explicit(&current, memory_order_acquire);
    struct entry *e = counted_as(m, lane, 0).entry;
    if (filtered)
        shift(&e->filtered, filtered);
    if (open)
        shift(&e->open, open);
}

void tally_seen(struct lane *lane)
{
    struct memory *m = atomic_load_explicit(&current, memory_order_acquire);
    bump(&counted_as(m, lane, 0).entry->seen, 1);
    ring_count_seen(&lane->ring);
}

/* ---- the drain --------------------------------------------------------------------------------------------------- */

static uint64_t value(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add(struct figures *sum, const struct entry *e)
{
    uint64_t max = value(&e->max_ns);
    sum->seen += value(&e->seen);
    sum->events += value(&e->events);
    sum->errors += value(&e->errors);
    sum->timed += atomic_load_explicit(&e->timed, memory_order_acquire); /* see add_time() */
    sum->total_ns += value(&e->total_ns);
    sum->max_ns = max > sum->max_ns ? max : sum->max_ns;
    sum->open += atomic_load_explicit(&e->open, memory_order_relaxed);
    sum->filtered += atomic_load_explicit(&e->filtered, memory_order_relaxed);
}

/* Adds up an entry's buckets. *groups: bit G is set if some lane has group G. */
static void add_buckets(struct memory *m, struct part *part, uint32_t number, uint32_t *sums, uint64_t *groups,
                        int64_t *work)
{
    const struct times *times = times_at(m, part, number);
    for (unsigned g = 0; g < GROUPS; g++) {
        uint32_t group = atomic_load_explicit(&times->groups[g], memory_order_relaxed);
        if (!group)
            continue;
        const struct group *from = group_at(m, part, group);
        if (!(*groups >> g & 1))
            memset(&sums[g * ETW_STEPS], 0, ETW_STEPS * sizeof *sums);
        *groups |= UINT64_C(1) << g;
        for (unsigned b = 0; b < ETW_STEPS; b++)
            sums[g * ETW_STEPS + b] += atomic_load_explicit(&from->buckets[b], memory_order_relaxed);
        --*work;
    }
}

static uint32_t take_buckets(struct memory *m, uint32_t number, int64_t *work, struct etw_bucket *ret)
{
    uint32_t sums[ETW_BUCKETS], count = 0, *told = known_of(m, number)->buckets;
    uint64_t groups = 0;
    for (uint32_t i = 0; i < lanes_claimed(); i++) {
        struct part *part = part_of(m, i);
        if (value(&part->met[number / 64]) >> number % 64 & 1 && value(&entry_at(m, part, number)->timed))
            add_buckets(m, part, number, sums, &groups, work);
    }
    for (; groups; groups &= groups - 1) {
        unsigned first = (unsigned)__builtin_ctzll(groups) * ETW_STEPS;
        for (unsigned b = first; b < first + ETW_STEPS; b++) {
            if (sums[b] != told[b])
                ret[count++] = (struct etw_bucket){b, sums[b] - told[b]};
            told[b] = sums[b];
        }
    }
    return count;
}

static struct figures sum_of(struct memory *m, uint32_t number, int64_t *work)
{
    struct figures sum = {0};
    uint32_t claimed = lanes_claimed();
    *work -= 1 + claimed / 16; /* testing the bits of sixteen lanes costs as much as one entry */
    for (uint32_t i = 0; i < claimed; i++) {
        struct part *part = part_of(m, i);
        /* Acquire: see counted_as(). */
        if (!(atomic_load_explicit(&part->met[number / 64], memory_order_acquire) >> number % 64 & 1))
            continue;
        add(&sum, entry_at(m, part, number));
        --*work;
    }
    return sum;
}

/* A drain may see only some of an event's changes; the next round reports the others. So this compares all figures. */
static bool is_told(const struct figures *now, const struct figures *told)
{
    return now->seen == told->seen && now->events == told->events && now->errors == told->errors &&
           now->timed == told->timed && now->total_ns == told->total_ns && now->max_ns == told->max_ns &&
           now->open == told->open && now->filtered == told->filtered;
}

enum tally_took tally_take(int64_t *work, struct stack_function *ret_function, struct etw_tally *ret,
                           struct etw_bucket *ret_buckets)
{
    struct memory *m = atomic_load(&current);
    round_begin(&look);
    uint32_t used = atomic_load_explicit(&m->used, memory_order_acquire);
    used = used < m->capacity ? used : m->capacity;
    while (look_next<used && * work> 0) {
        uint32_t number = look_next++;
        struct known *known = known_of(m, number);
        struct figures now = sum_of(m, number, work), *told = &known->told;
        if (owed_ended(&known->function))
            now.open = 0;
        if (is_told(&now, told))
            continue;
        *ret_function = known->function;
        *ret = (struct etw_tally){
            .events = now.events - told->events,
            .seen = now.seen - told->seen,
            .errors = now.errors - told->errors,
            .timed = now.timed - told->timed,
            .total_ns = now.total_ns - told->total_ns,
            .max_ns = now.max_ns,
            .open = now.open - told->open,
            .filtered = now.filtered - told->filtered,
            .buckets = take_buckets(m, number, work, ret_buckets),
        };
        *told = now;
        return TALLY_TOOK;
    }
    if (look_next < used)
        return TALLY_PAUSE;
    look_next = 0;
    round_end(&look);
    return TALLY_END;
}

bool tally_is_told(void)
{
    return round_is_told(&look);
}

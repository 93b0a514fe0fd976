#include "tally.h"

#include <string.h>
#include <sys/mman.h>

#define SLOTS 4096 /* of the hash of a lane's functions */

struct figures {
    uint64_t events, seen, errors, timed, total_ns;
    int64_t open, filtered;
    uint32_t buckets[ETW_BUCKETS];
};

struct entry {
    struct stack_function function;
    _Atomic uint64_t events, seen, errors, timed, total_ns, max_ns;
    _Atomic int64_t open, filtered;
    _Atomic uint32_t buckets[ETW_BUCKETS];
    struct figures told; /* the drain's */
};

struct table {
    _Atomic uint32_t used; /* of entries; the first one is for those that find no place */
    uint16_t slots[SLOTS]; /* hash to index of the entry, 0: free */
    struct entry entries[TALLY_FUNCTIONS + 1];
};

static struct table *tables;
static uint64_t ns_per_tick; /* times 2^32 */

static size_t tables_bytes(void)
{
    return sizeof(struct table) * lanes.count;
}

/* ---- life --------------------------------------------------------------------------------------------------------- */

/* Pages are there when they are touched first. */
static void *map(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void tally_unmap(void)
{
    if (tables)
        munmap(tables, tables_bytes());
    tables = NULL;
    stacks_unmap();
}

/* What was there is given back to the system, and comes back as zeros. */
bool tally_open(uint64_t ticks_per_ms, stack_alive_fn *alive)
{
    ns_per_tick = (UINT64_C(1000000) << 32) / (ticks_per_ms ? ticks_per_ms : 1);
    if (tables ? madvise(tables, tables_bytes(), MADV_DONTNEED) != 0 : !(tables = map(tables_bytes())))
        return false;
    return stacks_open(alive);
}

/* ---- producers ---------------------------------------------------------------------------------------------------- */

static unsigned hash(uint64_t word)
{
    return (unsigned)(word * UINT64_C(0x9e3779b97f4a7c15) >> 52);
}

static struct entry *entry_of(struct lane *lane, const struct stack_function *f)
{
    struct table *table = &tables[lane->slot];
    unsigned at = hash(f->name ^ f->module << 7 ^ f->arity);
    for (; table->slots[at % SLOTS]; at++) {
        struct entry *e = &table->entries[table->slots[at % SLOTS]];
        if (__builtin_expect(stack_same(&e->function, f), 1))
            return e;
    }
    uint32_t used = atomic_load_explicit(&table->used, memory_order_relaxed);
    used = used ? used : 1;
    bool full = used > TALLY_FUNCTIONS;
    if (!full) {
        table->slots[at % SLOTS] = (uint16_t)used;
        table->entries[used].function = *f;
        used++;
    }
    atomic_store_explicit(&table->used, used, memory_order_release);
    return &table->entries[full ? 0 : used - 1];
}

static void bump(_Atomic uint64_t *counter, uint64_t by)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by, memory_order_relaxed);
}

static void shift(_Atomic int64_t *gauge, int64_t by)
{
    atomic_store_explicit(gauge, atomic_load_explicit(gauge, memory_order_relaxed) + by, memory_order_relaxed);
}

/* Takes a call off its stack. False: nothing is known of it. */
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

/* A call that is shown, or its result. */
static void count(struct entry *e, bool is_call)
{
    if (is_call)
        bump(&e->events, 1);
    bump(&e->seen, 1);
}

void tally_call(void *env, struct lane *lane, uint64_t process, const struct stack_function *f, uint64_t tick, uint64_t bytes,
    bool returns)
{
    struct entry *e = entry_of(lane, f);
    struct stack_call call = {.function = *f, .tick = tick, .verdict = filter_call(bytes, returns)};
    tally_begin(lane);
    if (returns)
        shift(&e->open, 1);
    if (returns && !stack_push(env, process, &call) && filter_is_set()) {
        ring_lose(&lane->ring, ETW_LOST_GUARD);
    } else {
        if (call.verdict == FILTER_SHOWS)
            count(e, true);
        else
            shift(&e->filtered, 1);
        ring_bump(&lane->ring.seen);
    }
    tally_end(lane);
}

uint64_t tally_ns(uint64_t from, uint64_t to)
{
    return to > from ? (uint64_t)((unsigned __int128)(to - from) * ns_per_tick >> 32) : 0;
}

static void add_time(struct entry *e, uint64_t ns)
{
    _Atomic uint32_t *bucket = &e->buckets[etw_bucket_of(ns)];
    atomic_store_explicit(bucket, atomic_load_explicit(bucket, memory_order_relaxed) + 1, memory_order_relaxed);
    bump(&e->timed, 1);
    bump(&e->total_ns, ns);
    if (ns > atomic_load_explicit(&e->max_ns, memory_order_relaxed))
        atomic_store_explicit(&e->max_ns, ns, memory_order_relaxed);
}

void tally_result(struct lane *lane, uint64_t process, const struct stack_function *f, const struct tally_result *r)
{
    struct entry *e = entry_of(lane, f);
    struct stack_call call = {.verdict = FILTER_SHOWS};
    bool known = pop(process, f, &call);
    uint64_t ns = known ? tally_ns(call.tick, r->tick) : 0;
    tally_begin(lane);
    shift(&e->open, -1);
    if (!known && filter_is_set()) {
        ring_lose(&lane->ring, ETW_LOST_GUARD);
        tally_end(lane);
        return;
    }
    if (call.verdict == FILTER_WAITS && filter_result(r->bytes, ns, r->failed ? r->class : ETW_CLASSES)) {
        call.verdict = FILTER_SHOWS;
        shift(&e->filtered, -1);
        count(e, true);
    }
    if (call.verdict == FILTER_SHOWS) {
        count(e, false);
        if (r->failed)
            bump(&e->errors, 1);
        if (known)
            add_time(e, ns);
    } else {
        shift(&e->filtered, 1);
    }
    ring_bump(&lane->ring.seen);
    tally_end(lane);
}

void tally_waiting(struct lane *lane, int filtered, int open)
{
    struct table *table = &tables[lane->slot];
    if (filtered)
        shift(&table->entries[0].filtered, filtered);
    if (open)
        shift(&table->entries[0].open, open);
    if (!atomic_load_explicit(&table->used, memory_order_relaxed))
        atomic_store_explicit(&table->used, 1, memory_order_release);
}

/* ---- the drain ---------------------------------------------------------------------------------------------------- */

static uint64_t more(_Atomic uint64_t *now, uint64_t *told)
{
    uint64_t value = atomic_load_explicit(now, memory_order_relaxed), grown = value - *told;
    *told = value;
    return grown;
}

static int64_t moved(_Atomic int64_t *now, int64_t *told)
{
    int64_t value = atomic_load_explicit(now, memory_order_relaxed), by = value - *told;
    *told = value;
    return by;
}

bool tally_take(uint32_t slot, uint32_t *at, struct stack_function *ret_function, struct etw_tally *ret, struct etw_bucket *ret_buckets)
{
    struct table *table = &tables[slot];
    if (!*at)
        lane_at(slot)->told_counted = atomic_load_explicit(&lane_at(slot)->counted, memory_order_acquire);
    uint32_t used = atomic_load_explicit(&table->used, memory_order_acquire);
    for (; *at < used; ++*at) {
        struct entry *e = &table->entries[*at];
        struct figures *told = &e->told;
        if (atomic_load_explicit(&e->seen, memory_order_relaxed) == told->seen
            && atomic_load_explicit(&e->filtered, memory_order_relaxed) == told->filtered
            && atomic_load_explicit(&e->open, memory_order_relaxed) == told->open)
            continue;
        *ret_function = e->function;
        *ret = (struct etw_tally){
            .seen = more(&e->seen, &told->seen),
            .events = more(&e->events, &told->events),
            .errors = more(&e->errors, &told->errors),
            .timed = more(&e->timed, &told->timed),
            .total_ns = more(&e->total_ns, &told->total_ns),
            .max_ns = atomic_load_explicit(&e->max_ns, memory_order_relaxed),
            .open = moved(&e->open, &told->open),
            .filtered = moved(&e->filtered, &told->filtered),
        };
        for (uint32_t b = 0; b < ETW_BUCKETS; b++) {
            uint32_t count = atomic_load_explicit(&e->buckets[b], memory_order_relaxed);
            if (count != told->buckets[b])
                ret_buckets[ret->buckets++] = (struct etw_bucket){b, count - told->buckets[b]};
            told->buckets[b] = count;
        }
        ++*at;
        return true;
    }
    return false;
}

bool tally_is_told(void)
{
    for (uint32_t i = 0; i < lanes_claimed(); i++) {
        const struct lane *lane = lane_at(i);
        uint64_t counted = atomic_load_explicit(&lane->counted, memory_order_acquire);
        if (counted & 1 || counted != lane->told_counted)
            return false;
    }
    return true;
}

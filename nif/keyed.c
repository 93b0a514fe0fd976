/* SPDX-License-Identifier: Apache-2.0 */
#include "keyed.h"

#include <string.h>

#include "frame.h"
#include "pages.h"

#define GROUPS (ETW_BUCKETS / ETW_STEPS) /* groups of buckets; each covers a power of two */
#define GROUPS_MOST 65536u               /* groups of a lane. Values beyond them are in no bucket */
#define PLACES (4 * KEYED_ROWS)
#define CLEAR_BYTES ((size_t)4 << 20)
#define IN_THE_MAKING UINT32_MAX

/* A place of the hash table from keys to rows. A thread skips a place that another thread is writing. */
struct place {
    _Atomic uint32_t row; /* the row plus 1; 0: free */
    uint32_t hash;
};

/*
 * A key, and the figures that the drain has reported. The thread that first meets the key writes the first part before
 * it publishes the row.
 */
struct known {
    uint32_t at, length; /* the key's bytes in the arena */
    bool cut;
    struct etw_row told; /* only the owner uses this and the rest */
    uint32_t in_buckets[KEYED_VALUES][ETW_BUCKETS];
};

/* The figures of one value of one row in one lane. Groups: 0: no value was in the group's range. */
struct values {
    _Atomic uint64_t count;
    _Atomic int64_t sum, least, most;
    _Atomic uint32_t groups[GROUPS];
};

struct figures {
    _Alignas(RING_LINE) _Atomic int64_t counts[KEYED_COUNTS];
    struct values values[KEYED_VALUES];
};

struct group {
    _Atomic uint32_t buckets[ETW_STEPS];
};

/* The figures of one lane. The kernel allocates pages as threads touch them. */
struct part {
    _Alignas(RING_LINE) uint32_t groups_used; /* only the lane's thread uses it */
    _Alignas(RING_LINE) _Atomic uint64_t met[KEYED_ROWS / 64];
    struct figures figures[KEYED_ROWS];
    struct group groups[GROUPS_MOST];
};

struct memory {
    _Alignas(RING_LINE) _Atomic uint32_t used, arena_used; /* the next row and byte; they may exceed the room */
    _Alignas(RING_LINE) struct place places[PLACES];
    struct known known[KEYED_ROWS];
    uint8_t arena[KEYED_ARENA];
};

static struct memory *memory;
static uint8_t *parts; /* the parts of the lanes, one after the other */
static uint32_t part_count;

/* Only the owner uses these. */
static struct round look;
static uint32_t look_next; /* the next row */
static struct {
    bool due;
    size_t memory, parts;
} clear;

#define PART_BYTES whole_pages(sizeof(struct part))

/* ---- life -------------------------------------------------------------------------------------------------------- */

static bool clear_some(void)
{
    if (!clear.due)
        return false;
    if (pages_clear(memory, sizeof *memory, &clear.memory, CLEAR_BYTES) ||
        pages_clear(parts, PART_BYTES * lanes_claimed(), &clear.parts, CLEAR_BYTES))
        return true;
    clear.due = false;
    return false;
}

static bool have_memory(void)
{
    if (memory)
        return true;
    struct memory *m = pages_map(sizeof *m);
    parts = pages_map(PART_BYTES * lanes.count);
    part_count = lanes.count;
    if (!m || !parts) {
        if (m)
            munmap(m, sizeof *m);
        if (parts)
            munmap(parts, PART_BYTES * part_count);
        parts = NULL;
        return false;
    }
    memory = m;
    return true;
}

enum tally_opened keyed_open(void)
{
    if (clear_some())
        return TALLY_CLEARING;
    if (!have_memory())
        return TALLY_NO_MEMORY;
    atomic_store(&memory->used, 1);
    look_next = 0;
    round_clear(&look);
    clear.due = true;
    clear.memory = clear.parts = 0;
    return TALLY_OPEN;
}

void keyed_unmap(void)
{
    if (memory) {
        munmap(memory, sizeof *memory);
        munmap(parts, PART_BYTES * part_count);
    }
    memory = NULL;
    parts = NULL;
    clear.due = false;
}

static struct part *part_of(uint32_t slot)
{
    return (struct part *)(void *)(parts + slot * PART_BYTES);
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static uint32_t hash_key(const struct keyed_key *key)
{
    uint64_t h = key->length * UINT64_C(0x9e3779b97f4a7c15), word;
    const uint8_t *at = key->bytes;
    uint32_t left = key->length;
    for (; left >= 8; at += 8, left -= 8) {
        memcpy(&word, at, 8);
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    word = 0;
    for (uint32_t i = 0; i < left; i++)
        word |= (uint64_t)at[i] << 8 * i;
    h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(h >> 32);
}

/* A row that another thread has just published may be one that an earlier session's late callback refers to. */
static bool is_key(const struct known *k, const struct keyed_key *key)
{
    return k->length == key->length && k->at <= KEYED_ARENA && k->length <= KEYED_ARENA - k->at &&
           memcmp(memory->arena + k->at, key->bytes, key->length) == 0;
}

/* Two threads may give the same key a row each. The drain then reports it in two parts, and the client adds them up. */
static __attribute__((noinline)) uint32_t new_row(struct place *place, const struct keyed_key *key, uint32_t hashed)
{
    struct memory *m = memory;
    uint32_t at = atomic_fetch_add_explicit(&m->arena_used, key->length, memory_order_relaxed), row = KEYED_OTHER;
    if (at <= KEYED_ARENA - key->length)
        row = atomic_fetch_add_explicit(&m->used, 1, memory_order_relaxed);
    else
        atomic_fetch_sub_explicit(&m->arena_used, key->length, memory_order_relaxed);
    if (row >= KEYED_ROWS)
        row = KEYED_OTHER;
    if (row != KEYED_OTHER) {
        memcpy(m->arena + at, key->bytes, key->length);
        m->known[row].at = at;
        m->known[row].length = key->length;
        m->known[row].cut = key->cut;
    }
    place->hash = hashed;
    /* Release: a thread that reads the row finds its key. A place without a row of its own is free again. */
    atomic_store_explicit(&place->row, row == KEYED_OTHER ? 0 : row + 1, memory_order_release);
    return row;
}

uint32_t keyed_row(const struct keyed_key *key)
{
    struct memory *m = memory;
    if (key->length > KEYED_KEY_MOST)
        return KEYED_OTHER;
    uint32_t hashed = hash_key(key);
    for (uint32_t at = hashed, tries = 0; tries < PLACES; at++, tries++) {
        struct place *place = &m->places[at % PLACES];
        /* Acquire: see new_row(). */
        uint32_t row = atomic_load_explicit(&place->row, memory_order_acquire);
        if (__builtin_expect(row && row != IN_THE_MAKING && place->hash == hashed && is_key(&m->known[row - 1], key), 1))
            return row - 1;
        if (row)
            continue;
        if (atomic_load_explicit(&m->used, memory_order_relaxed) >= KEYED_ROWS)
            return KEYED_OTHER;
        if (atomic_compare_exchange_strong(&place->row, &row, IN_THE_MAKING))
            return new_row(place, key, hashed);
    }
    return KEYED_OTHER;
}

struct keyed_key keyed_key_of(uint32_t row)
{
    if (row == KEYED_OTHER || row >= KEYED_ROWS)
        return (struct keyed_key){0};
    const struct known *k = &memory->known[row];
    if (k->at > KEYED_ARENA || k->length > KEYED_ARENA - k->at)
        return (struct keyed_key){0};
    return (struct keyed_key){memory->arena + k->at, k->length, k->cut};
}

/* ---- producers --------------------------------------------------------------------------------------------------- */

static struct figures *figures_of(struct lane *lane, uint32_t row)
{
    struct part *part = part_of(lane->slot);
    _Atomic uint64_t *met = &part->met[row / 64];
    uint64_t bits = atomic_load_explicit(met, memory_order_relaxed), bit = UINT64_C(1) << row % 64;
    /* Release: a drain that sees the bit sees the key of that row, even if another thread wrote it. */
    if (__builtin_expect(!(bits & bit), 0))
        atomic_store_explicit(met, bits | bit, memory_order_release);
    return &part->figures[row];
}

static void bump(_Atomic int64_t *counter, int64_t by)
{
    uint64_t sum = (uint64_t)atomic_load_explicit(counter, memory_order_relaxed) + (uint64_t)by;
    atomic_store_explicit(counter, (int64_t)sum, memory_order_relaxed);
}

void keyed_count(struct lane *lane, uint32_t row, unsigned which, int64_t by)
{
    bump(&figures_of(lane, row)->counts[which], by);
}

static void add_to_bucket(struct part *part, struct values *v, int64_t value)
{
    unsigned at = etw_bucket_of(value > 0 ? (uint64_t)value : 0);
    _Atomic uint32_t *group = &v->groups[at / ETW_STEPS];
    uint32_t number = atomic_load_explicit(group, memory_order_relaxed);
    if (__builtin_expect(!number, 0)) {
        if (part->groups_used + 1 >= GROUPS_MOST)
            return;
        number = ++part->groups_used;
        atomic_store_explicit(group, number, memory_order_relaxed);
    }
    _Atomic uint32_t *bucket = &part->groups[number].buckets[at % ETW_STEPS];
    atomic_store_explicit(bucket, atomic_load_explicit(bucket, memory_order_relaxed) + 1, memory_order_relaxed);
}

void keyed_value(struct lane *lane, uint32_t row, unsigned which, int64_t value)
{
    struct values *v = &figures_of(lane, row)->values[which];
    uint64_t count = atomic_load_explicit(&v->count, memory_order_relaxed);
    add_to_bucket(part_of(lane->slot), v, value);
    if (!count || value < atomic_load_explicit(&v->least, memory_order_relaxed))
        atomic_store_explicit(&v->least, value, memory_order_relaxed);
    if (!count || value > atomic_load_explicit(&v->most, memory_order_relaxed))
        atomic_store_explicit(&v->most, value, memory_order_relaxed);
    bump(&v->sum, value);
    /* Release: a drain that sees the value in `count` also sees it in its bucket and in the extremes. */
    atomic_store_explicit(&v->count, count + 1, memory_order_release);
}

bool keyed_takes(struct lane *lane, uint32_t row, unsigned which, int64_t most)
{
    struct part *part = part_of(lane->slot);
    int64_t sum = atomic_load_explicit(&part->figures[row].values[which].sum, memory_order_relaxed);
    return sum <= most && sum >= -most && part->groups_used + KEYED_VALUES + 1 < GROUPS_MOST;
}

/* ---- the drain --------------------------------------------------------------------------------------------------- */

void keyed_begin_round(void)
{
    round_begin(&look);
}

static void add_values(struct etw_row_sum *sum, const struct values *v)
{
    /* Acquire: see keyed_value(). */
    uint64_t count = atomic_load_explicit(&v->count, memory_order_acquire);
    int64_t least = atomic_load_explicit(&v->least, memory_order_relaxed);
    int64_t most = atomic_load_explicit(&v->most, memory_order_relaxed);
    if (!count)
        return;
    sum->least = !sum->count || least < sum->least ? least : sum->least;
    sum->most = !sum->count || most > sum->most ? most : sum->most;
    sum->sum = (int64_t)((uint64_t)sum->sum + (uint64_t)atomic_load_explicit(&v->sum, memory_order_relaxed));
    sum->count += count;
}

static void add_figures(struct etw_row *sum, const struct figures *f)
{
    for (unsigned i = 0; i < KEYED_COUNTS; i++)
        sum->counts[i] += atomic_load_explicit(&f->counts[i], memory_order_relaxed);
    for (unsigned i = 0; i < KEYED_VALUES; i++)
        add_values(&sum->values[i], &f->values[i]);
}

static bool has_met(const struct part *part, uint32_t row)
{
    /* Acquire: see figures_of(). */
    return atomic_load_explicit(&part->met[row / 64], memory_order_acquire) >> row % 64 & 1;
}

static void sum_of(uint32_t row, int64_t *work, struct etw_row *ret)
{
    uint32_t claimed = lanes_claimed();
    memset(ret, 0, sizeof *ret);
    *work -= 1 + claimed / 16; /* testing the bits of sixteen lanes costs as much as one entry */
    for (uint32_t i = 0; i < claimed && i < part_count; i++) {
        if (!has_met(part_of(i), row))
            continue;
        add_figures(ret, &part_of(i)->figures[row]);
        --*work;
    }
}

/* Adds up the buckets of a value. *groups: bit G is set if some lane has group G. */
static void sum_buckets(const struct part *part, const struct values *v, uint32_t *sums, uint64_t *groups, int64_t *work)
{
    for (unsigned g = 0; g < GROUPS; g++) {
        uint32_t number = atomic_load_explicit(&v->groups[g], memory_order_relaxed);
        if (!number || number >= GROUPS_MOST)
            continue;
        if (!(*groups >> g & 1))
            memset(&sums[g * ETW_STEPS], 0, ETW_STEPS * sizeof *sums);
        *groups |= UINT64_C(1) << g;
        for (unsigned b = 0; b < ETW_STEPS; b++)
            sums[g * ETW_STEPS + b] += atomic_load_explicit(&part->groups[number].buckets[b], memory_order_relaxed);
        --*work;
    }
}

static uint32_t take_buckets(uint32_t row, unsigned which, int64_t *work, struct etw_bucket *ret)
{
    uint32_t sums[ETW_BUCKETS], count = 0, *told = memory->known[row].in_buckets[which];
    uint64_t groups = 0;
    for (uint32_t i = 0; i < lanes_claimed() && i < part_count; i++)
        if (has_met(part_of(i), row))
            sum_buckets(part_of(i), &part_of(i)->figures[row].values[which], sums, &groups, work);
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

static void grow(const struct etw_row *now, const struct etw_row *told, struct etw_row *ret)
{
    *ret = *now;
    for (unsigned i = 0; i < KEYED_COUNTS; i++)
        ret->counts[i] -= told->counts[i];
    for (unsigned i = 0; i < KEYED_VALUES; i++) {
        ret->values[i].count -= told->values[i].count;
        ret->values[i].sum = (int64_t)((uint64_t)now->values[i].sum - (uint64_t)told->values[i].sum);
    }
}

enum tally_took keyed_take(int64_t *work, struct keyed_growth *ret, struct etw_bucket *ret_buckets)
{
    keyed_begin_round();
    uint32_t used = atomic_load_explicit(&memory->used, memory_order_acquire);
    used = used < KEYED_ROWS ? used : KEYED_ROWS;
    while (look_next<used && * work> 0) {
        uint32_t row = look_next++;
        struct etw_row now, *told = &memory->known[row].told;
        sum_of(row, work, &now);
        if (memcmp(&now, told, sizeof now) == 0)
            continue;
        ret->row = row;
        grow(&now, told, &ret->by);
        for (unsigned i = 0; i < KEYED_VALUES; i++) {
            ret->by.buckets[i] = now.values[i].count ? take_buckets(row, i, work, ret_buckets) : 0;
            ret_buckets += ret->by.buckets[i];
        }
        *told = now;
        return TALLY_TOOK;
    }
    if (look_next < used)
        return TALLY_PAUSE;
    look_next = 0;
    round_end(&look);
    return TALLY_END;
}

uint8_t *keyed_put(uint8_t *at, const struct keyed_growth *g, const struct etw_bucket *buckets)
{
    size_t many = 0;
    for (unsigned i = 0; i < KEYED_VALUES; i++)
        many += g->by.buckets[i];
    size_t bytes = sizeof g->by + many * sizeof *buckets;
    at = put32(put64(put8(at, ETW_T_BIN), bytes), (uint32_t)bytes);
    memcpy(at, &g->by, sizeof g->by);
    memcpy(at + sizeof g->by, buckets, many * sizeof *buckets);
    return at + bytes;
}

bool keyed_is_told(void)
{
    return round_is_told(&look);
}

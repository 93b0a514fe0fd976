/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <string.h>

#include "pages.h"

#define CLEAR_BYTES ((size_t)4 << 20) /* bytes that one call clears: 1024 pages, at a tenth of a microsecond each */
#define IN_THE_MAKING UINT32_MAX

/* A place of the index: a hash table from keys to rows. A thread skips a place that another thread is writing. */
struct place {
    _Atomic uint32_t row; /* the row plus 1; 0: free */
    uint32_t hash;
};

/*
 * A key, and the figures that the drain has reported. The thread that first meets the key writes everything but `told`
 * before it publishes the row.
 */
struct known {
    uint32_t at, length; /* the offset of the key among the bytes of all keys, and its length */
    bool cut;
    struct rows_figures told; /* the figures that the client has; only the owner process uses them */
};

/* ---- life -------------------------------------------------------------------------------------------------------- */

static struct rows_memory *make_memory(const struct rows_room *room)
{
    struct rows_memory m = {.counts = room->counts,
                            .values = room->values,
                            .rows = room->rows,
                            .mask = 1023,
                            .key_bytes = room->key_bytes,
                            .groups = room->groups,
                            .used = 1};
    while (m.mask < 2 * room->rows)
        m.mask = 2 * m.mask + 1;
    m.figures_bytes = room->counts * sizeof(int64_t) + room->values * sizeof(struct rows_sum);
    m.places_at = PAGE;
    m.known_at = m.places_at + whole_pages((m.mask + (size_t)1) * sizeof(struct place));
    m.told_at = m.known_at + whole_pages(room->rows * sizeof(struct known));
    m.keys_at = m.told_at + whole_pages((size_t)room->rows * room->values * sizeof(uint32_t[ETW_BUCKETS]));
    m.lanes_at = m.keys_at + whole_pages(room->key_bytes);
    m.figures_at = sizeof(struct rows_part) + (room->rows + 511) / 512 * RING_LINE;
    m.groups_of_at = m.figures_at + room->rows * m.figures_bytes;
    m.groups_at = m.groups_of_at + room->rows * room->values * sizeof(uint32_t[ROWS_GROUPS]);
    m.stride = whole_pages(m.groups_at + room->groups * sizeof(struct rows_group));
    m.bytes = m.lanes_at + m.stride * lanes.count;
    struct rows_memory *at = pages_map(m.bytes);
    if (at)
        memcpy(at, &m, sizeof m);
    return at;
}

/*
 * Returns a mapping with this room, and makes one if necessary. A new mapping has at least twice the rows of each
 * mapping with the same number of values, so that ROWS_MAPPINGS suffice. Returns NULL if there is no memory or no place
 * for another mapping.
 */
static struct rows_memory *find_memory(struct rows *r, const struct rows_room *room)
{
    struct rows_room more = *room;
    unsigned i = 0;
    for (; i < ROWS_MAPPINGS && r->mappings[i]; i++) {
        struct rows_memory *m = r->mappings[i];
        if (m->values == room->values && m->rows >= room->rows)
            return m;
        if (m->values == room->values && more.rows < 2 * m->rows)
            more.rows *= 2, more.key_bytes *= 2, more.groups *= 2;
    }
    return i < ROWS_MAPPINGS ? r->mappings[i] = make_memory(&more) : NULL;
}

/* Clears some memory. Returns false if nothing is left to clear. The memory of unclaimed lanes is clean already. */
static bool clear_some(struct rows *r)
{
    struct rows_memory *m = atomic_load(&r->memory);
    if (!r->due)
        return false;
    if (pages_clear((uint8_t *)m + PAGE, m->lanes_at - PAGE + m->stride * lanes_claimed(), &r->cleared, CLEAR_BYTES))
        return true;
    atomic_store(&m->keys_used, 0);
    atomic_store(&m->used, 1);
    r->due = false;
    return false;
}

enum rows_opened rows_open(struct rows *r, const struct rows_room *room)
{
    if (clear_some(r))
        return ROWS_CLEARING;
    struct rows_memory *m = find_memory(r, room);
    if (!m)
        return ROWS_NO_MEMORY;
    atomic_store(&m->most, room->rows);
    atomic_store(&r->memory, m);
    rows_forget(r);
    r->look_next = 0;
    round_clear(&r->look);
    r->due = true;
    r->cleared = 0;
    return ROWS_OPEN;
}

uint32_t rows_capacity(const struct rows *r)
{
    const struct rows_memory *m = atomic_load(&r->memory);
    return m ? m->rows : 0;
}

void rows_forget(struct rows *r)
{
    (void)atomic_fetch_add_explicit(&r->epoch, 1, memory_order_release);
}

void rows_unmap(struct rows *r)
{
    atomic_store(&r->memory, NULL);
    for (unsigned i = 0; i < ROWS_MAPPINGS && r->mappings[i]; i++) {
        munmap(r->mappings[i], r->mappings[i]->bytes);
        r->mappings[i] = NULL;
    }
    r->due = false;
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static struct known *known_of(const struct rows_memory *m, uint32_t row)
{
    return (struct known *)(uintptr_t)((const uint8_t *)m + m->known_at) + row;
}

/* Returns the buckets of a value as the drain last reported them. Only the owner uses them. */
static uint32_t *told_of(const struct rows_memory *m, uint32_t row, unsigned value)
{
    return (uint32_t *)(uintptr_t)((const uint8_t *)m + m->told_at) + ((size_t)row * m->values + value) * ETW_BUCKETS;
}

/* Returns the most rows of this trace. Relaxed: the owner writes the number before the trace begins. */
static uint32_t most_rows(const struct rows_memory *m)
{
    return atomic_load_explicit(&m->most, memory_order_relaxed);
}

static uint8_t *key_at(const struct rows_memory *m, uint32_t at)
{
    return (uint8_t *)(uintptr_t)((const uint8_t *)m + m->keys_at + at);
}

static uint32_t hash_key(const struct rows_key *key)
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

/*
 * Returns true if offset and length of the key are valid. They may not be if a late callback of an earlier session
 * looks at a row while another thread gives that row to a new key.
 */
static bool lies_in(const struct rows_memory *m, const struct known *k)
{
    return k->at <= m->key_bytes && k->length <= m->key_bytes - k->at;
}

static bool is_key(const struct rows_memory *m, const struct known *k, const struct rows_key *key)
{
    return k->length == key->length && lies_in(m, k) && memcmp(key_at(m, k->at), key->bytes, key->length) == 0;
}

/*
 * Gives a key a new row and publishes it in `place`. Returns ROWS_OTHER if there is no room. Two threads may each give
 * the same key a row. The drain then reports the key in two parts, and the client adds them up.
 */
static __attribute__((noinline)) uint32_t new_row(struct rows_memory *m, struct place *place,
                                                  const struct rows_key *key, uint32_t hashed)
{
    uint32_t at = atomic_fetch_add_explicit(&m->keys_used, key->length, memory_order_relaxed), row = ROWS_OTHER;
    if (at <= m->key_bytes && key->length <= m->key_bytes - at)
        row = atomic_fetch_add_explicit(&m->used, 1, memory_order_relaxed);
    else
        (void)atomic_fetch_sub_explicit(&m->keys_used, key->length, memory_order_relaxed);
    if (row >= most_rows(m))
        row = ROWS_OTHER;
    if (row != ROWS_OTHER) {
        struct known *k = known_of(m, row);
        memcpy(key_at(m, at), key->bytes, key->length);
        k->at = at;
        k->length = key->length;
        k->cut = key->cut;
    }
    place->hash = hashed;
    /* Release: a thread that reads the row finds its key. If the key got no new row, the place becomes free again. */
    atomic_store_explicit(&place->row, row == ROWS_OTHER ? 0 : row + 1, memory_order_release);
    return row;
}

uint32_t rows_find(struct rows_memory *m, const struct rows_key *key)
{
    struct place *places = (struct place *)(void *)((uint8_t *)m + m->places_at);
    if (key->length > ROWS_KEY_MOST)
        return ROWS_OTHER;
    uint32_t hashed = hash_key(key);
    for (uint32_t at = hashed, tries = 0; tries <= m->mask; at++, tries++) {
        struct place *place = &places[at & m->mask];
        /* Acquire: see new_row(). */
        uint32_t row = atomic_load_explicit(&place->row, memory_order_acquire);
        if (__builtin_expect(row && row != IN_THE_MAKING && place->hash == hashed &&
                                 is_key(m, known_of(m, row - 1), key),
                             1))
            return row - 1;
        if (row)
            continue;
        if (atomic_load_explicit(&m->used, memory_order_relaxed) >= most_rows(m))
            return ROWS_OTHER;
        if (atomic_compare_exchange_strong(&place->row, &row, IN_THE_MAKING))
            return new_row(m, place, key, hashed);
    }
    return ROWS_OTHER;
}

struct rows_key rows_key_of(const struct rows_memory *m, uint32_t row)
{
    if (row == ROWS_OTHER || row >= m->rows)
        return (struct rows_key){0};
    const struct known *k = known_of(m, row);
    return lies_in(m, k) ? (struct rows_key){key_at(m, k->at), k->length, k->cut} : (struct rows_key){0};
}

/* ---- the drain --------------------------------------------------------------------------------------------------- */

void rows_begin_round(struct rows *r)
{
    round_begin(&r->look);
}

static void add_sum(struct etw_row_sum *sum, const struct rows_sum *v)
{
    /* Acquire: see rows_value(). */
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

static void add_figures(const struct rows_memory *m, struct rows_part *part, uint32_t row, struct rows_figures *sum)
{
    const _Atomic int64_t *counts = rows_counts(m, part, row);
    for (unsigned i = 0; i < m->counts; i++)
        sum->counts[i] += atomic_load_explicit(&counts[i], memory_order_relaxed);
    for (unsigned i = 0; i < m->values; i++)
        add_sum(&sum->values[i], &rows_sums(m, part, row)[i]);
}

static bool has_met(const struct rows_part *part, uint32_t row)
{
    /* Acquire: see rows_place(). */
    return atomic_load_explicit(&part->met[row / 64], memory_order_acquire) >> row % 64 & 1;
}

/* Adds up the figures of a row. Returns false if no lane has counted in the row: its key may not be written yet. */
static bool sum_of(struct rows_memory *m, uint32_t row, int64_t *work, struct rows_figures *ret)
{
    uint32_t claimed = lanes_claimed();
    bool met = false;
    memset(ret, 0, sizeof *ret);
    *work -= 1 + claimed / 16; /* testing the bits of sixteen lanes costs as much as adding the figures of one lane */
    for (uint32_t i = 0; i < claimed; i++) {
        if (!has_met(rows_part(m, i), row))
            continue;
        add_figures(m, rows_part(m, i), row, ret);
        met = true;
        --*work;
    }
    return met;
}

/* Adds up the buckets of a value in a lane. Sets bit G of *groups if the lane has group G. */
static void sum_buckets(const struct rows_memory *m, struct rows_part *part, const _Atomic uint32_t *numbers,
                        uint32_t *sums, uint64_t *groups, int64_t *work)
{
    for (unsigned g = 0; g < ROWS_GROUPS; g++) {
        uint32_t number = atomic_load_explicit(&numbers[g], memory_order_relaxed);
        if (!number || number >= m->groups)
            continue;
        const struct rows_group *from = rows_group(m, part, number);
        if (!(*groups >> g & 1))
            memset(&sums[g * ETW_STEPS], 0, ETW_STEPS * sizeof *sums);
        *groups |= UINT64_C(1) << g;
        for (unsigned b = 0; b < ETW_STEPS; b++)
            sums[g * ETW_STEPS + b] += atomic_load_explicit(&from->buckets[b], memory_order_relaxed);
        --*work;
    }
}

static uint32_t take_buckets(struct rows_memory *m, uint32_t row, unsigned which, int64_t *work, struct etw_bucket *ret)
{
    uint32_t sums[ETW_BUCKETS], count = 0, *told = told_of(m, row, which);
    uint64_t groups = 0;
    for (uint32_t i = 0; i < lanes_claimed(); i++) {
        struct rows_part *part = rows_part(m, i);
        if (has_met(part, row) && atomic_load_explicit(&rows_sums(m, part, row)[which].count, memory_order_relaxed))
            sum_buckets(m, part, rows_groups_of(m, part, row, which), sums, &groups, work);
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

static void subtract_told(const struct rows_figures *now, const struct rows_figures *told, struct rows_figures *ret)
{
    *ret = *now;
    for (unsigned i = 0; i < ROWS_COUNTS; i++)
        ret->counts[i] -= told->counts[i];
    for (unsigned i = 0; i < ROWS_VALUES; i++) {
        ret->values[i].count -= told->values[i].count;
        ret->values[i].sum = (int64_t)((uint64_t)now->values[i].sum - (uint64_t)told->values[i].sum);
    }
}

/*
 * Returns the growth of the next row that has changed since its last report. Compares all figures: while this runs, an
 * event may have changed only some of its figures. The next round then reports the others.
 */
enum rows_took rows_take(struct rows *r, int64_t *work, struct rows_growth *ret, struct etw_bucket *ret_buckets)
{
    struct rows_memory *m = atomic_load(&r->memory);
    rows_begin_round(r);
    uint32_t used = atomic_load_explicit(&m->used, memory_order_acquire);
    used = used < most_rows(m) ? used : most_rows(m);
    while (*work > 0 && r->look_next < used) {
        uint32_t row = r->look_next++;
        struct rows_figures now, *told = &known_of(m, row)->told;
        if (!sum_of(m, row, work, &now))
            continue;
        const struct rows_key key = rows_key_of(m, row);
        if (r->amend && key.bytes)
            r->amend(&key, &now);
        if (memcmp(&now, told, sizeof now) == 0)
            continue;
        ret->row = row;
        subtract_told(&now, told, &ret->by);
        for (unsigned i = 0; i < m->values; i++) {
            ret->by.buckets[i] = now.values[i].count ? take_buckets(m, row, i, work, ret_buckets) : 0;
            ret_buckets += ret->by.buckets[i];
        }
        *told = now;
        return ROWS_TOOK;
    }
    if (r->look_next < used)
        return ROWS_PAUSE;
    r->look_next = 0;
    round_end(&r->look);
    return ROWS_END;
}

bool rows_are_told(const struct rows *r)
{
    return round_is_told(&r->look);
}

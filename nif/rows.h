/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements a table that counts events instead of sending frames. Each row has a key of some bytes, counts, and values
 * with their sum, extremes and histogram. tally.h says what the rows of a trace count.
 *
 * All lanes share one index that gives each key a number, its row. Two keys are equal if all their bytes are equal.
 * Each lane has its own figures for each row, and only the lane's thread writes them. The drain adds up the lanes and
 * reports how much each row has grown since the last round. A round takes several calls of the owner, and each call
 * does bounded work.
 *
 * rows_open() bounds the memory. Keys that find no room share the row ROWS_OTHER, so no sum loses an event.
 *
 * A producer brackets the changes for one event with tally_begin() and tally_end(). A drain may run after an event has
 * changed figures and before it counts as seen. Therefore the drain checks rows_are_told() before its last batch.
 *
 * The owner calls rows_open(), rows_begin_round(), rows_take() and rows_are_told(). The unloading of the library calls
 * rows_unmap(). Any thread calls the rest, in a callback.
 */
#ifndef ETRACE_ROWS_H
#define ETRACE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "etrace_wire.h"
#include "lane.h"
#include "stack.h"

#define ROWS_OTHER 0u
#define ROWS_NONE UINT32_MAX
#define ROWS_KEY_MOST 4096u /* the most bytes of a key; longer keys count in ROWS_OTHER */
#define ROWS_COUNTS (4 + ROWS_VALUES)
#define ROWS_VALUES ETW_ROW_VALUES
#define ROWS_GROUPS (ETW_BUCKETS / ETW_STEPS) /* groups of buckets of a histogram, one for each power of two */
#define ROWS_MAPPINGS 32 /* the most mappings of a table; each has at least twice the rows of the one before */
#define ROWS_WORDS ETW_BY_KEYS
#define ROWS_RECENT 256

/* The sum and the extremes of one value of a row, in one lane. */
struct rows_sum {
    _Atomic uint64_t count;
    _Atomic int64_t sum, least, most;
};

/* The buckets of a histogram for one power of two. */
struct rows_group {
    _Atomic uint32_t buckets[ETW_STEPS];
};

/*
 * A row that a lane has counted in lately, found by a hash of a function and of further words. If the caller knows that
 * equal words lead to equal keys, it need not build the key again.
 */
struct rows_recent {
    uint32_t epoch, row;
    struct stack_function function;
    uint64_t words[ROWS_WORDS];
};

/*
 * The figures of a lane. Behind this head come the counts and sums of each row, then the numbers of the groups of each
 * value, then all groups.
 */
struct rows_part {
    _Alignas(RING_LINE) size_t groups_used; /* only the lane's thread uses this and the recent rows */
    struct rows_recent recent[ROWS_RECENT];
    _Alignas(RING_LINE) _Atomic uint64_t met[]; /* bit set of the rows that the lane has counted in */
};

/*
 * The head of a mapping. It has a page of its own, which is never cleared; the other pages take memory only once a
 * thread touches them.
 */
struct rows_memory {
    uint32_t counts, values, rows, mask, key_bytes;         /* the index has mask + 1 places */
    size_t bytes, groups;                                   /* bytes of the mapping; groups of buckets in each lane */
    size_t places_at, known_at, told_at, keys_at, lanes_at; /* offsets in the mapping */
    size_t stride, figures_at, groups_of_at, groups_at;     /* size of a struct rows_part; offsets in it */
    size_t figures_bytes;                                   /* bytes of the counts and sums of a row */
    /* The most rows of this trace. The owner sets it before the trace. */
    _Atomic uint32_t most;
    /* The next row, and the next byte for a key. Both may exceed the room. */
    _Alignas(RING_LINE) _Atomic uint32_t used, keys_used;
};

/* The figures of a row, added up for all lanes. `buckets` has only the numbers of buckets. */
struct rows_figures {
    int64_t counts[ROWS_COUNTS];
    struct etw_row_sum values[ROWS_VALUES];
    uint32_t buckets[ROWS_VALUES];
};

struct rows_key {
    const uint8_t *bytes;
    uint32_t length;
    bool cut; /* limits have cut the key, so several keys may share it */
};

struct rows {
    /* Changes the figures of a key before the drain compares them with the reported ones. NULL: no change. */
    void (*amend)(const struct rows_key *key, struct rows_figures *figures);
    /* A producer loads it once for each event, so that all its pointers belong to one mapping. */
    struct rows_memory *_Atomic memory;
    _Atomic uint32_t epoch; /* changes when the rows are cleared, or when their keys change (rows_forget()) */

    /* Only the owner uses these fields. Old mappings stay, because a late callback may still use one of them. */
    struct rows_memory *mappings[ROWS_MAPPINGS];
    struct round look;
    uint32_t look_next; /* the next row of the round */
    bool due;           /* the table was opened, so it must be cleared before it is opened again */
    size_t cleared;     /* bytes that rows_open() has cleared so far */
};

/*
 * The size of a table: the number of rows, the bytes of all keys, and the groups of buckets in each lane. counts,
 * values: how many of them a row has, at most ROWS_COUNTS and ROWS_VALUES. Tables with equal `values` have equal
 * `counts`.
 */
struct rows_room {
    uint32_t counts, values, rows, key_bytes;
    size_t groups;
};

enum rows_opened { ROWS_OPEN, ROWS_CLEARING, ROWS_NO_MEMORY };

/*
 * Clears all rows and makes room. Each call clears a few megabytes; the caller repeats the call while it returns
 * ROWS_CLEARING.
 */
enum rows_opened rows_open(struct rows *r, const struct rows_room *room);
void rows_unmap(struct rows *r);

/* ---- producers --------------------------------------------------------------------------------------------------- */

/* Returns the current mapping. Acquire: the owner initialises the mapping before it publishes the address. */
static inline struct rows_memory *rows_memory(struct rows *r)
{
    return atomic_load_explicit(&r->memory, memory_order_acquire);
}

/* Returns the row of a key. Gives a new key a row. Returns ROWS_OTHER if there is no room for a new row. */
uint32_t rows_find(struct rows_memory *m, const struct rows_key *key);
/*
 * Returns the key of a row that rows_find() has returned. For ROWS_OTHER the key has no bytes. The bytes of the key
 * stay valid until rows_open().
 */
struct rows_key rows_key_of(const struct rows_memory *m, uint32_t row);

static inline struct rows_part *rows_part(struct rows_memory *m, uint32_t lane)
{
    return (struct rows_part *)(void *)((uint8_t *)m + m->lanes_at + lane * m->stride);
}

static inline _Atomic int64_t *rows_counts(const struct rows_memory *m, struct rows_part *part, uint32_t row)
{
    return (_Atomic int64_t *)(void *)((uint8_t *)part + m->figures_at + row * m->figures_bytes);
}

static inline struct rows_sum *rows_sums(const struct rows_memory *m, struct rows_part *part, uint32_t row)
{
    return (struct rows_sum *)(void *)(rows_counts(m, part, row) + m->counts);
}

/*
 * Returns the numbers of the groups of a value, one for each power of two. A number is 0 if no value was in that power
 * of two.
 */
static inline _Atomic uint32_t *rows_groups_of(const struct rows_memory *m, struct rows_part *part, uint32_t row,
                                               unsigned value)
{
    return (_Atomic uint32_t *)(void *)((uint8_t *)part + m->groups_of_at) +
           ((size_t)row * m->values + value) * ROWS_GROUPS;
}

static inline struct rows_group *rows_group(const struct rows_memory *m, struct rows_part *part, uint32_t group)
{
    return (struct rows_group *)(void *)((uint8_t *)part + m->groups_at) + group;
}

/* The figures of one row in one lane. */
struct rows_place {
    struct rows_memory *memory;
    struct rows_part *part;
    _Atomic int64_t *counts;
    struct rows_sum *sums;
    uint32_t row;
};

static inline struct rows_place rows_place(struct rows_memory *m, const struct lane *lane, uint32_t row)
{
    struct rows_part *part = rows_part(m, lane->slot);
    _Atomic uint64_t *met = &part->met[row / 64];
    uint64_t bits = atomic_load_explicit(met, memory_order_relaxed), bit = UINT64_C(1) << row % 64;
    /* Release: a drain that sees the bit sees the key of that row, even if another thread wrote the key. */
    if (__builtin_expect(!(bits & bit), 0))
        atomic_store_explicit(met, bits | bit, memory_order_release);
    return (struct rows_place){m, part, rows_counts(m, part, row), rows_sums(m, part, row), row};
}

static inline void rows_bump(_Atomic int64_t *counter, int64_t by)
{
    uint64_t sum = (uint64_t)atomic_load_explicit(counter, memory_order_relaxed) + (uint64_t)by;
    atomic_store_explicit(counter, (int64_t)sum, memory_order_relaxed);
}

/* Adds `by` to the count number `which` of a row. */
static inline void rows_count(const struct rows_place *p, unsigned which, int64_t by)
{
    rows_bump(&p->counts[which], by);
}

/* Adds a value to the sum, the extremes and the histogram number `which` of a row. */
static inline void rows_value(const struct rows_place *p, unsigned which, int64_t value)
{
    struct rows_sum *v = &p->sums[which];
    unsigned at = etw_bucket_of(value > 0 ? (uint64_t)value : 0);
    _Atomic uint32_t *group = &rows_groups_of(p->memory, p->part, p->row, which)[at / ETW_STEPS];
    uint32_t number = atomic_load_explicit(group, memory_order_relaxed);
    uint64_t count = atomic_load_explicit(&v->count, memory_order_relaxed);
    if (__builtin_expect(!number, 0) && p->part->groups_used + 1 < p->memory->groups) {
        number = (uint32_t)++p->part->groups_used;
        atomic_store_explicit(group, number, memory_order_relaxed);
    }
    if (__builtin_expect(number != 0, 1)) {
        _Atomic uint32_t *bucket = &rows_group(p->memory, p->part, number)->buckets[at % ETW_STEPS];
        atomic_store_explicit(bucket, atomic_load_explicit(bucket, memory_order_relaxed) + 1, memory_order_relaxed);
    }
    if (!count || value < atomic_load_explicit(&v->least, memory_order_relaxed))
        atomic_store_explicit(&v->least, value, memory_order_relaxed);
    if (!count || value > atomic_load_explicit(&v->most, memory_order_relaxed))
        atomic_store_explicit(&v->most, value, memory_order_relaxed);
    rows_bump(&v->sum, value);
    /* Release: a drain that sees the value in `count` also sees it in its bucket and in the extremes. */
    atomic_store_explicit(&v->count, count + 1, memory_order_release);
}

/* Returns true if the row can take another value: its sum is between -most and most, and groups of buckets are left. */
static inline bool rows_takes(const struct rows_place *p, unsigned which, int64_t most)
{
    int64_t sum = atomic_load_explicit(&p->sums[which].sum, memory_order_relaxed);
    return sum <= most && sum >= -most && p->part->groups_used + ROWS_VALUES + 1 < p->memory->groups;
}

/*
 * Returns the epoch. Acquire: the caller reads the epoch before it finds a row. So a late callback stores its row with
 * the old epoch, and nobody takes that row for a recent one.
 */
static inline uint32_t rows_epoch(const struct rows *r)
{
    return atomic_load_explicit(&r->epoch, memory_order_acquire);
}

static inline struct rows_recent *rows_recent(struct rows_memory *m, const struct lane *lane,
                                              const struct stack_function *f, const uint64_t *words, unsigned count)
{
    uint64_t h = f->name ^ f->module << 7 ^ f->arity;
    for (unsigned i = 0; i < count; i++)
        h = (h ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return &rows_part(m, lane->slot)->recent[h * UINT64_C(0x9e3779b97f4a7c15) >> 56];
}

static inline bool rows_is_recent(const struct rows_recent *recent, uint32_t epoch, const struct stack_function *f,
                                  const uint64_t *words, unsigned count)
{
    if (recent->epoch != epoch || !stack_same(&recent->function, f))
        return false;
    for (unsigned i = 0; i < count; i++)
        if (recent->words[i] != words[i])
            return false;
    return true;
}

/* ---- the owner --------------------------------------------------------------------------------------------------- */

uint32_t rows_capacity(const struct rows *r); /* returns the rows of the current mapping; 0: there is no mapping */
void rows_forget(struct rows *r);             /* makes the recent rows of all lanes stale */

/* How much the figures of a row grew since the last report. The extremes are the current extremes. */
struct rows_growth {
    uint32_t row;
    struct rows_figures by;
};

enum rows_took { ROWS_TOOK, ROWS_PAUSE, ROWS_END };

/*
 * Returns ROWS_TOOK and the next row of this round whose figures grew. Subtracts the rows of lanes and the groups of
 * buckets that it looked at from *work. Returns ROWS_PAUSE if *work is used up. Returns ROWS_END at the end of the
 * round; the next call begins another round. ret_buckets has room for ROWS_VALUES times ETW_BUCKETS buckets; the
 * changed buckets of the first value come first, then those of the next value.
 */
enum rows_took rows_take(struct rows *r, int64_t *work, struct rows_growth *ret, struct etw_bucket *ret_buckets);
/*
 * Begins a round, unless a round is under way. A caller that also reads figures from elsewhere calls this before it
 * reads them.
 */
void rows_begin_round(struct rows *r);
bool rows_are_told(const struct rows *r); /* see round_is_told() */

#endif

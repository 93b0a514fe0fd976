/* SPDX-License-Identifier: Apache-2.0 */
#include "group_sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../nif/etrace_wire.h"
#include "../ground/mem.h"

#define BUCKET_COUNT ((UINT64_C(1) << 48) - 1)

void group_sums_release(struct group_sums *s)
{
    free(s->buckets);
    *s = (struct group_sums){0};
}

/* ---- numbers ---- */

int group_number_compare(struct group_number a, struct group_number b)
{
    if (!a.real && !b.real)
        return (a.i > b.i) - (a.i < b.i);
    const long double x = a.real ? (long double)a.d : (long double)a.i,
                      y = b.real ? (long double)b.d : (long double)b.i;
    return (x > y) - (x < y);
}

/* ---- buckets ---- */

/*
 * The numbers of buckets. Bucket 0 has only the value 0. Each power of two, positive or negative, has ETW_STEPS
 * buckets, so the values of one bucket of a node all belong to one bucket here. Each bucket includes its lower bound,
 * also a bucket of negative values.
 */
#define EXPONENT_LEAST (-1073) /* exponent of the least positive float, by frexp() */
#define EXPONENT_MOST 1024     /* exponent of the largest float */
#define BUCKET_BIAS ((EXPONENT_MOST - EXPONENT_LEAST + 2) * ETW_STEPS)

_Static_assert(2 * BUCKET_BIAS < UINT16_MAX, "the number of a bucket has 16 bits");

/* Returns the bucket of a number. A long double keeps all bits of a 64-bit integer. */
static int bucket_of(struct group_number n)
{
    const long double d = n.real ? (long double)n.d : (long double)n.i;
    int exponent;

    if (d == 0)
        return 0;
    const long double steps = frexpl(fabsl(d), &exponent) * 2 * ETW_STEPS;
    const int step = (d < 0 ? (int)ceill(steps) - 1 : (int)steps) - ETW_STEPS; /* -1: the next lower power of two */
    const int bucket = (exponent - EXPONENT_LEAST + 1) * ETW_STEPS + step;
    return d < 0 ? -bucket : bucket;
}

/* Returns the exponent of the power of two above a bucket. */
static int exponent_of(int bucket)
{
    return abs(bucket) / ETW_STEPS + EXPONENT_LEAST - 1;
}

/* Returns the absolute value of a number in the bucket. part 0: the bound nearer to zero; part 1: the other bound. */
static double within_bucket(int bucket, double part)
{
    return ldexp(ETW_STEPS + abs(bucket) % ETW_STEPS + part, exponent_of(bucket) - 4);
}

static void insert_bucket(struct group_sums *s, uint32_t i, uint64_t biased)
{
    size_t cap = s->cap;

    s->buckets = mem_grow(s->buckets, &cap, s->nbuckets + 1, sizeof(*s->buckets));
    s->cap = (uint32_t)cap;
    memmove(s->buckets + i + 1, s->buckets + i, (s->nbuckets - i) * sizeof(*s->buckets));
    s->buckets[i] = biased << 48;
    s->nbuckets++;
}

static void add_bucket(struct group_sums *s, int bucket, uint64_t count)
{
    const uint64_t biased = (uint64_t)(bucket + BUCKET_BIAS);
    uint32_t i = s->nbuckets; /* search from the end, because a node sends its buckets in rising order */

    while (i && s->buckets[i - 1] >> 48 >= biased)
        i--;
    if (s->nbuckets == GROUP_BUCKETS_MOST)
        i = MIN(i, GROUP_BUCKETS_MOST - 1);
    else if (i == s->nbuckets || s->buckets[i] >> 48 != biased)
        insert_bucket(s, i, biased);
    s->buckets[i] += MIN(count, BUCKET_COUNT - (s->buckets[i] & BUCKET_COUNT));
}

void group_sums_bucket(struct group_sums *s, uint32_t bucket, uint64_t count)
{
    add_bucket(s, bucket_of((struct group_number){.i = (int64_t)etw_bucket_floor(bucket)}), count);
}

static int bucket_at(const struct group_sums *s, uint32_t i, uint64_t *ret_count)
{
    *ret_count = s->buckets[i] & BUCKET_COUNT;
    return (int)(s->buckets[i] >> 48) - BUCKET_BIAS;
}

/* ---- sums ---- */

static void add_whole(struct group_sums *s, int64_t n)
{
    if (!__builtin_add_overflow(s->whole, n, &s->whole))
        return;
    s->whole = (int64_t)((uint64_t)s->whole - (uint64_t)n); /* the sum overflowed, so add `n` to `real` instead */
    s->real += n;
    s->reals = true;
}

static void add_extremes(struct group_sums *s, struct group_number min, struct group_number max)
{
    if (!s->n || group_number_compare(min, s->min) < 0)
        s->min = min;
    if (!s->n || group_number_compare(max, s->max) > 0)
        s->max = max;
}

void group_sums_add(struct group_sums *s, struct group_value v, bool buckets)
{
    if (v.is != GROUP_NUMBER) {
        s->skipped += v.is == GROUP_SKIPPED;
        return;
    }
    add_extremes(s, v.number, v.number);
    s->n++;
    if (v.number.real) {
        s->real += v.number.d;
        s->reals = s->floats = true;
    } else {
        add_whole(s, v.number.i);
    }
    if (buckets)
        add_bucket(s, bucket_of(v.number), 1);
}

void group_sums_merge(struct group_sums *s, const struct group_sums *other)
{
    if (other->n)
        add_extremes(s, other->min, other->max);
    s->n += other->n;
    s->skipped += other->skipped;
    s->real += other->real;
    s->reals |= other->reals;
    s->floats |= other->floats;
    add_whole(s, other->whole);
    for (uint32_t i = 0; i < other->nbuckets; i++) {
        uint64_t count;
        const int bucket = bucket_at(other, i, &count);
        add_bucket(s, bucket, count);
    }
}

/* ---- reading ---- */

/* Returns the middle one of the integers that belong to a bucket. */
static int64_t middle_integer(int bucket)
{
    const double low = within_bucket(bucket, 0), high = within_bucket(bucket, 1);

    if (bucket >= 0) {
        const int64_t least = (int64_t)ceil(low);
        return least + ((int64_t)(ceil(high) - 1) - least) / 2;
    }
    const uint64_t least = (uint64_t)floor(low) + 1;
    return (int64_t)(0 - (least + ((uint64_t)floor(high) - least) / 2));
}

/* Returns the middle of a bucket, limited to the range from the smallest to the largest added value. */
static struct group_number middle_of(const struct group_sums *s, int bucket)
{
    const double middle = bucket ? within_bucket(bucket, 0.5) : 0;
    struct group_number of = {.real = true, .d = bucket < 0 ? -middle : middle};

    if (!s->floats)
        of = (struct group_number){.i = bucket ? middle_integer(bucket) : 0};
    return group_number_compare(of, s->min) < 0 ? s->min : group_number_compare(of, s->max) > 0 ? s->max : of;
}

bool group_quantile(const struct group_sums *s, unsigned percent, struct group_number *ret)
{
    const uint64_t want = (s->n * percent + 99) / 100;
    uint64_t seen = 0, count;

    if (!s->n)
        return false;
    *ret = s->max;
    for (uint32_t i = 0; i < s->nbuckets && seen < want && want < s->n; i++) {
        const int bucket = bucket_at(s, i, &count);
        seen += count;
        if (seen >= want)
            *ret = middle_of(s, bucket);
    }
    return true;
}

static struct group_number power_of_two(int power, int sign)
{
    if (power >= 0 && power < 63)
        return (struct group_number){.i = sign * (INT64_C(1) << power)};
    return (struct group_number){.real = true, .d = sign * ldexp(1, power)};
}

struct group_rows group_rows(const struct group_sums *s)
{
    struct group_rows r = {.sums = s, .above = 0, .below = 0};

    for (uint32_t i = 0; i < s->nbuckets; i++) {
        uint64_t count;
        const int bucket = bucket_at(s, i, &count), power = exponent_of(bucket);
        if (bucket > 0)
            r.above = MIN(r.above, power - 1);
        else if (bucket < 0)
            r.below = MIN(r.below, power);
    }
    return r;
}

static int row_of_bucket(const struct group_rows *r, int bucket)
{
    return bucket > 0 ? exponent_of(bucket) - r->above : bucket ? r->below - 1 - exponent_of(bucket) : 0;
}

bool group_row_from(const struct group_rows *r, int row, struct group_number *ret)
{
    *ret = row > 0 ? power_of_two(row - 1 + r->above, 1)
           : row   ? power_of_two(r->below - 1 - row, -1)
                   : (struct group_number){0};
    return !ret->real || isfinite(ret->d);
}

bool group_next_row(struct group_rows *r, struct group_row *ret)
{
    const struct group_sums *s = r->sums;
    uint64_t count;

    if (r->next == s->nbuckets)
        return false;
    *ret = (struct group_row){.number = row_of_bucket(r, bucket_at(s, r->next, &count))};
    for (; r->next < s->nbuckets && row_of_bucket(r, bucket_at(s, r->next, &count)) == ret->number; r->next++)
        ret->count += count;
    return true;
}

struct group_number group_average(const struct group_sums *s, bool duration)
{
    const bool integers = !s->reals && s->n <= INT64_MAX; /* the counts of forged rows may be larger */

    if (integers && (duration || s->whole % (int64_t)s->n == 0))
        return (struct group_number){.i = s->whole / (int64_t)s->n};
    return (struct group_number){.real = true, .d = (double)((s->whole + s->real) / s->n)};
}

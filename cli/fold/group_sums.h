/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of the values of one aggregate: their number, sum, extremes and a histogram. All figures are exact, except for
 * quantiles, which are accurate within a sixteenth for all integers and floats.
 */
#ifndef ETRACE_GROUP_SUMS_H
#define ETRACE_GROUP_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#define GROUP_BUCKETS_MOST 1024u /* of one histogram: 128 powers of two; the last one also counts further values */

/* An integer or a floating-point number. */
struct group_number {
    bool real;
    union {
        int64_t i;
        double d;
    };
};

int group_number_compare(struct group_number a, struct group_number b);

/* A value of an event. */
struct group_value {
    enum { GROUP_NONE, GROUP_SKIPPED, GROUP_NUMBER } is; /* the event has no such value; it is no number; it is one */
    struct group_number number;
};

struct group_sums {
    uint64_t n, skipped; /* values; those that are no number */
    int64_t whole;       /* the sum of the integers, unless it overflows */
    long double real;    /* the sum of all other values; rarely infinite */
    bool reals;          /* some value is no integer, or the sum overflowed */
    bool floats;         /* some value is no integer */
    struct group_number min, max;
    uint64_t *buckets; /* hist, quantiles: the bucket in the upper 16 bits, in order, its values in the lower 48 */
    uint32_t nbuckets, cap;
};

void group_sums_add(struct group_sums *s, struct group_value v, bool buckets);
void group_sums_bucket(struct group_sums *s, uint32_t bucket, uint64_t count); /* values of a node's bucket */
void group_sums_merge(struct group_sums *s, const struct group_sums *other);
void group_sums_release(struct group_sums *s);

/* ---- reading ---- */

/* The average of at least one value; a duration is rounded to nanoseconds. */
struct group_number group_average(const struct group_sums *s, bool duration);
bool group_quantile(const struct group_sums *s, unsigned percent, struct group_number *ret); /* false: no value */

/*
 * A row of a histogram: the values from group_row_from(number) to below group_row_from(number + 1). Each row has a
 * power of two, but row 0 begins at 0, and row -1 ends there. These two are as small as the values need, and 1 wide at
 * most.
 */
struct group_row {
    int number;
    uint64_t count;
};
/* Reads the rows that have values, the lowest first. The sums must outlive it. */
struct group_rows {
    const struct group_sums *sums;
    int above, below; /* row 0 ends at 2^above, and row -1 begins at -2^below */
    uint32_t next;
};
struct group_rows group_rows(const struct group_sums *s);
bool group_next_row(struct group_rows *r, struct group_row *ret); /* false: there are no more */
/* False: the row begins beyond all floats. */
bool group_row_from(const struct group_rows *r, int row, struct group_number *ret);

#endif

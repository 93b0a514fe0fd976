/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums the values of one aggregate: their number, sum, extremes and a histogram. All figures are exact, except for
 * quantiles, which are accurate within a sixteenth for all integers and floats.
 */
#ifndef ETRACE_GROUP_SUMS_H
#define ETRACE_GROUP_SUMS_H

#include <stdbool.h>
#include <stdint.h>

/* Limit for one histogram: 128 powers of two; the last bucket also counts further values. */
#define GROUP_BUCKETS_MOST 1024u

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
    /* The event has no such value; the value is no number; it is a number. */
    enum { GROUP_NONE, GROUP_SKIPPED, GROUP_NUMBER } is;
    struct group_number number;
};

struct group_sums {
    uint64_t n, skipped; /* number of values; number of values that are no numbers */
    int64_t whole;       /* sum of the integers, unless it overflows */
    long double real;    /* sum of all other values; rarely infinite */
    bool reals;          /* a value is no integer, or the sum overflowed */
    bool floats;         /* a value is no integer */
    struct group_number min, max;
    /*
     * hist, quantiles: the number of a bucket in the upper 16 bits, in order; the number of its values in the lower 48.
     */
    uint64_t *buckets;
    uint32_t nbuckets, cap;
};

void group_sums_add(struct group_sums *s, struct group_value v, bool buckets);
void group_sums_bucket(struct group_sums *s, uint32_t bucket, uint64_t count); /* adds the values of a node's bucket */
void group_sums_merge(struct group_sums *s, const struct group_sums *other);
void group_sums_release(struct group_sums *s);

/* ---- reading ---- */

/* Returns the average; there must be at least one value. The average of durations is rounded to nanoseconds. */
struct group_number group_average(const struct group_sums *s, bool duration);
/* Returns false if there is no value. */
bool group_quantile(const struct group_sums *s, unsigned percent, struct group_number *ret);

/*
 * A row of a histogram: the values from group_row_from(number) to below group_row_from(number + 1). Each row covers one
 * power of two. Only row 0, which begins at 0, and row -1, which ends at 0, differ: they are as narrow as the values
 * allow, and at most 1 wide.
 */
struct group_row {
    int number;
    uint64_t count;
};
/* Iterates over the rows that have values, the lowest first. The sums must outlive it. */
struct group_rows {
    const struct group_sums *sums;
    int above, below; /* row 0 ends at 2^above, and row -1 begins at -2^below */
    uint32_t next;
};
struct group_rows group_rows(const struct group_sums *s);
bool group_next_row(struct group_rows *r, struct group_row *ret); /* returns false at the end */
/* Computes the lower bound of a row. Returns false if it lies beyond all floats. */
bool group_row_from(const struct group_rows *r, int row, struct group_number *ret);

#endif

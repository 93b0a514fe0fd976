/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums the values of one aggregate: their number, sum, extremes and a histogram. All figures are exact, except for
 * quantiles, which are accurate within a sixteenth for all integers and floats.
 */
#ifndef ETRACE_GROUP_SUMS_H
#define ETRACE_GROUP_SUMS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Limit for the buckets of one histogram, enough for 128 powers of two. If all are in use, a value that needs another
 * bucket counts in the next larger one, or in the last one.
 */
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
    /* GROUP_NONE: the event has no value. GROUP_SKIPPED: the value is no number. GROUP_NUMBER: `number` is set. */
    enum { GROUP_NONE, GROUP_SKIPPED, GROUP_NUMBER } is;
    struct group_number number;
};

struct group_sums {
    uint64_t n, skipped; /* n: numbers that were added; skipped: values that were no numbers */
    int64_t whole;       /* sum of the integers, except for those that would make it overflow */
    long double real;    /* sum of all other numbers; may become infinite */
    bool reals;          /* `real` is used: some number was no integer, or `whole` would have overflowed */
    bool floats;         /* some number was no integer */
    struct group_number min, max;
    /*
     * For histograms and quantiles: the buckets in rising order. Each element has the number of its bucket in the upper
     * 16 bits, and the count of values in the lower 48 bits.
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
/* Computes a percentile. Returns false if there is no value. */
bool group_quantile(const struct group_sums *s, unsigned percent, struct group_number *ret);

/*
 * A row of a histogram. It counts the values from group_row_from(number) up to but not including group_row_from(number
 * + 1). Each row covers one power of two, except for row 0, which begins at 0, and row -1, which ends at 0. These two
 * are as narrow as the values allow, and at most 1 wide.
 */
struct group_row {
    int number;
    uint64_t count;
};
/* Iterates over the rows that have values, the lowest first. `sums` must outlive the iterator. */
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

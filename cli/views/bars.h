/* SPDX-License-Identifier: Apache-2.0 */
/* Draws histograms: one row for each power of two. On a narrow terminal the bars are shorter. */
#ifndef ETRACE_BARS_H
#define ETRACE_BARS_H

#include "../fold/stats.h"
#include "../ground/buf.h"
#include "paint.h"

struct bars {
    const struct paint *paint;
    unsigned columns; /* width of the terminal; 0: not a terminal */
};

/* Prints the lower bound of a row. */
typedef void bars_floor(struct buf *to, int number, const void *data);

/* A row with values. Consecutive rows of the histogram have consecutive numbers. */
struct bars_row {
    int number;
    uint64_t n;
};

/*
 * Prints a line for each row, in the order of the numbers. Draws a few empty rows between two rows; skips longer runs.
 */
void bars_rows(const struct bars *b, struct buf *to, const struct bars_row *rows, size_t n, bars_floor *put_floor,
               const void *data);
/* Completes a line that has the name: appends the percentiles, then prints the rows. t->timed must not be 0. */
void bars_durations(const struct bars *b, struct buf *to, const struct stat *t);

#endif

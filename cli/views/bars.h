/* SPDX-License-Identifier: Apache-2.0 */
/* Draws histograms: one row for each power of two. On a narrow terminal the bars are shorter. */
#ifndef ETRACE_BARS_H
#define ETRACE_BARS_H

#include "../fold/stats.h"
#include "../ground/buf.h"
#include "paint.h"

struct bars {
    const struct paint *paint;
    unsigned columns; /* of the terminal; 0: not a terminal */
};

/* Prints the lower bound of a row. */
typedef void bars_floor(struct buf *to, int number, const void *data);

/* A row that is not empty. Consecutive rows of the histogram have consecutive numbers. */
struct bars_row {
    int number;
    uint64_t n;
};

/* Puts a line for each row, in the order of the numbers.
 * A few empty rows between two rows are drawn, more are skipped. */
void bars_rows(const struct bars *b, struct buf *to, const struct bars_row *rows, size_t n, bars_floor *put_floor,
               const void *data);
/* The name is already in the line. Completes the line with the percentiles, then puts the rows. t->timed is not 0. */
void bars_durations(const struct bars *b, struct buf *to, const struct stat *t);

#endif

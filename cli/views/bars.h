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

/* Prints the lower bound of the row with this number. */
typedef void bars_floor(struct buf *to, int number, const void *data);

/*
 * A row of the histogram that is not empty. The numbers also count the empty rows, so a gap in the numbers means empty
 * rows.
 */
struct bars_row {
    int number;
    uint64_t n;
};

/*
 * Prints a line for each row; the rows are in the order of their numbers. Draws up to three empty rows between two
 * rows, and one line with an ellipsis for a longer gap.
 */
void bars_rows(const struct bars *b, struct buf *to, const struct bars_row *rows, size_t n, bars_floor *put_floor,
               const void *data);
/*
 * Prints a histogram of durations. The caller has begun the first line, and this function completes it with the
 * percentiles. t->timed must not be 0.
 */
void bars_durations(const struct bars *b, struct buf *to, const struct stat *t);

#endif

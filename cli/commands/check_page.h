/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what `etrace check` has found on one node. */
#ifndef ETRACE_CHECK_PAGE_H
#define ETRACE_CHECK_PAGE_H

#include "../views/grid_order.h"
#include "check_find.h"

extern const struct grid_table check_columns;

struct check_page {
    const struct check_seen *seen;
    const struct check_findings *findings;
    const char *otp;
    const char *sort; /* --sort; NULL: the most harmful findings come first */
    uint64_t uptime_ms;
    int64_t took_ms;
    int64_t slowest_ms; /* the time of the answer that took longest */
    struct paint paint;
    unsigned columns; /* width of the terminal; 0: unlimited */
    bool continued;   /* the page of another node was printed before: CSV and TSV have their titles already */
};

void check_page_text(const struct check_page *p, struct buf *to);
/* Prints JSON, CSV or TSV. CSV and TSV contain only the findings. */
void check_page_data(const struct check_page *p, enum grid_as as, struct buf *to);

#endif

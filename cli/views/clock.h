/* SPDX-License-Identifier: Apache-2.0 */
/* Formats times for all views. Caches the text of the current second. */
#ifndef ETRACE_CLOCK_H
#define ETRACE_CLOCK_H

#include "sink.h"

struct clock {
    enum time_style style;
    int64_t begin; /* first nanosecond of the second in `text` */
    char text[32]; /* "HH:MM:SS.", for ISO 8601 with the date before it */
    size_t len;
    int64_t base; /* origin of relative times */
    bool begun;
};

void clock_init(struct clock *c, enum time_style style);
void clock_init_iso(struct clock *c);
/* Appends 18:26:50.118402 or, depending on the style, the seconds since the first or the previous time. */
void clock_put(struct clock *c, struct buf *to, const struct event *e);
/* Appends 2026-01-31T18:26:50.118402Z. The clock must come from clock_init_iso(). */
void clock_put_iso(struct clock *c, struct buf *to, const struct event *e);

#endif

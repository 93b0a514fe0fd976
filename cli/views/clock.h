/* SPDX-License-Identifier: Apache-2.0 */
/* Formats times for all views. Caches the text of the current second. */
#ifndef ETRACE_CLOCK_H
#define ETRACE_CLOCK_H

#include "sink.h"

struct clock {
    enum time_style style;
    int64_t begin; /* first nanosecond of the second in `text` */
    char text[32]; /* the second as "HH:MM:SS.", for ISO 8601 with the date before it */
    size_t len;
    int64_t base; /* TIME_RELATIVE: time of the first event; TIME_DELTA: of the previous event */
    bool begun;
};

void clock_init(struct clock *c, enum time_style style);
void clock_init_iso(struct clock *c);
/* Appends 18:26:50.118402 or, depending on the style, the seconds since the first or the previous event. */
void clock_put(struct clock *c, struct buf *to, const struct event *e);
/*
 * Like clock_put(), for a caller that has kept only two times of the event: that of the wall clock, and clock_steady().
 */
void clock_put_at(struct clock *c, struct buf *to, int64_t wall_ns, int64_t steady_ns);
int64_t clock_steady(const struct event *e); /* returns the time of the event for computing distances between events */
/* Appends 2026-01-31T18:26:50.118402Z. The clock must come from clock_init_iso(). */
void clock_put_iso(struct clock *c, struct buf *to, const struct event *e);

#endif

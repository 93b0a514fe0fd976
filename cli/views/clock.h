/* The only place that writes a time of day. A second's digits are written once and kept. */
#ifndef ETRACE_CLOCK_H
#define ETRACE_CLOCK_H

#include "sink.h"

struct clock {
    enum time_style style;
    int64_t begin; /* of the second that `text` is of; nanoseconds */
    char text[32]; /* HH:MM:SS. or for ISO 8601 the date before it */
    size_t len;
    int64_t base; /* time that relative times count from */
    bool begun;
};

void clock_init(struct clock *c, enum time_style style);
void clock_init_iso(struct clock *c);
/* 18:26:50.118402, or seconds since the first or since the previous time that was put. */
void clock_put(struct clock *c, struct buf *to, const struct event *e);
/* 2026-01-31T18:26:50.118402Z; for a clock of its own. */
void clock_put_iso(struct clock *c, struct buf *to, const struct event *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the events of a recording between two moments. A moment may be relative to the first event, which is only
 * known later.
 */
#ifndef ETRACE_WINDOW_H
#define ETRACE_WINDOW_H

#include "../events/event.h"

struct moment {
    enum moment_kind {
        MOMENT_NONE,
        MOMENT_AT,     /* since 1970 */
        MOMENT_OF_DAY, /* a time of day on the day of the first event */
        MOMENT_AFTER,  /* `ns` after the first event */
        /* `ns` before the end of the recording; the caller resolves it, because a window does not know the end. */
        MOMENT_BEFORE_END,
    } kind;
    int64_t ns;
};

struct window {
    struct moment from, to;
    bool utc;                  /* times of day are in UTC, not local */
    bool begun, over;          /* begun: the first event has come; over: an event after `to` has come */
    int64_t first_ns, last_ns; /* since 1970, inclusive; valid if begun */
};

static inline bool window_is_open(const struct window *w)
{
    return w->from.kind == MOMENT_NONE && w->to.kind == MOMENT_NONE;
}

/* Computes the window from the time of the first event, for a caller that skips events. */
void window_begin(struct window *w, int64_t first_ns);

/* Returns true if the event is in the window. Takes all events in their order. */
bool window_takes(struct window *w, const struct event *e);

#endif

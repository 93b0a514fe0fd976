/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the events of a recording between two moments. A moment may be relative to the first event, so the window is
 * computed when the first event comes.
 */
#ifndef ETRACE_WINDOW_H
#define ETRACE_WINDOW_H

#include "../events/event.h"

struct moment {
    enum moment_kind {
        MOMENT_NONE,
        MOMENT_AT,     /* `ns` is the time since 1970 */
        MOMENT_OF_DAY, /* `ns` is a time of day, on the day of the first event or on the next day */
        MOMENT_AFTER,  /* `ns` after the first event */
        /* `ns` before the end of the recording; the caller resolves it, because a window does not know the end. */
        MOMENT_BEFORE_END,
    } kind;
    int64_t ns;
};

struct window {
    struct moment from, to;
    bool utc;                  /* times of day are in UTC; otherwise they are local */
    bool begun, over;          /* begun: the first event has come; over: no event of the window comes any more */
    bool held_back;            /* a node may have sent events later than they happened, so the window is never over */
    int64_t first_ns, last_ns; /* the bounds, both inclusive, in ns since 1970; valid if begun */
};

static inline bool window_is_open(const struct window *w)
{
    return w->from.kind == MOMENT_NONE && w->to.kind == MOMENT_NONE;
}

/* Computes the window from the time of the first event. Call it if that event does not go through window_takes(). */
void window_begin(struct window *w, int64_t first_ns);

/*
 * Returns true if the event is in the window. Sets `over` after the first traced event behind the window, because these
 * events come in the order in which nodes send them. Etrace's own events may come before older ones. Call it for all
 * events in their order.
 */
bool window_takes(struct window *w, const struct event *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Defines a time axis that all nodes share: nanoseconds since the first event. Time is monotonic within each node. */
#ifndef ETRACE_AXIS_H
#define ETRACE_AXIS_H

#include "sink.h"

struct axis {
    int64_t shift[EVENT_NODES]; /* what to add to event_steady() to get the time on the axis */
    bool known[EVENT_NODES];
    bool begun;
    int64_t wall_ns; /* wall clock time at the origin of the axis */
};

/*
 * Converts mono_ns to a time on the axis. mono_ns is the monotonic time of this event, or of an earlier event of its
 * node.
 */
static inline int64_t axis_at(struct axis *a, const struct event *e, int64_t mono_ns)
{
    unsigned node = e->node->index;

    if (!a->begun)
        a->wall_ns = e->wall_ns;
    a->begun = true;
    if (!a->known[node])
        a->shift[node] = (int64_t)((uint64_t)e->wall_ns - (uint64_t)event_steady(e) - (uint64_t)a->wall_ns);
    a->known[node] = true;
    return (int64_t)((uint64_t)mono_ns + (uint64_t)e->shift_ns + (uint64_t)a->shift[node]);
}

#endif

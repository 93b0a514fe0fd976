/* One axis of time for all nodes: nanoseconds since the first event, monotonic within each node. */
#ifndef ETRACE_AXIS_H
#define ETRACE_AXIS_H

#include "sink.h"

#define AXIS_NODES 256

struct axis {
    int64_t shift[AXIS_NODES]; /* from a node's monotonic time to the axis */
    bool known[AXIS_NODES];
    bool begun;
    int64_t wall_ns; /* of the axis' beginning */
};

/* Where a time of this event's node stands, the event's own or an earlier one. */
static inline int64_t axis_at(struct axis *a, const struct event *e, int64_t mono_ns)
{
    unsigned node = e->node->index % AXIS_NODES;

    if (!a->begun)
        a->wall_ns = e->wall_ns;
    a->begun = true;
    if (!a->known[node])
        a->shift[node] = (int64_t)((uint64_t)e->wall_ns - (uint64_t)e->mono_ns - (uint64_t)a->wall_ns);
    a->known[node] = true;
    return (int64_t)((uint64_t)mono_ns + (uint64_t)a->shift[node]);
}

#endif

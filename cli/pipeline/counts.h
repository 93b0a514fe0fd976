/* SPDX-License-Identifier: Apache-2.0 */
/* Counts what became of the events of each node: shown, hidden, lost, or only counted by the node. */
#ifndef ETRACE_COUNTS_H
#define ETRACE_COUNTS_H

#include "../events/order.h"
#include "../fold/pairing.h"
#include "../fold/stats.h"
#include "../views/sink.h"

/*
 * The events of a node that were filtered, here and on the node. The node reads the counters of its threads one after
 * the other, so `there` may be negative for a moment.
 */
struct hidden {
    uint64_t here;
    int64_t there;
    bool untold;  /* a budget made the node count calls, and the node has not reported how many of them made no event */
    bool unknown; /* the node does not know that number */
};

struct counts {
    struct totals totals;
    struct totals_node *nodes; /* `shown` is up to date; counts_totals() computes the other counts */
    struct hidden *hidden;
    size_t nnodes, nodes_cap, hidden_cap;
    uint64_t units;            /* shown events, a call and its result counted as one */
    int64_t open_calls;        /* open calls among the calls that the node only counts */
    struct stats only_counted; /* calls that a budget of the node has only counted */
    bool by_node;              /* the node has counted calls instead of sending them */
};

void counts_release(struct counts *c);
/* Extends the tables for new nodes. Returns false if there are no new nodes. */
bool counts_meet(struct counts *c, size_t nodes);

static inline void counts_hide(struct counts *c, const struct event *e)
{
    c->hidden[e->node->index].here++;
}

static inline void counts_show(struct counts *c, const struct event *e)
{
    c->totals.shown++;
    c->nodes[e->node->index].shown++;
    if (e->flags & ETW_F_CUT)
        c->totals.truncated++;
    if (!event_is_result(e) || !e->call)
        c->units++;
}

void counts_outside(struct counts *c, const struct event *e); /* an event outside of the window */
/* Takes the counts and notices of an event that is not traced. */
void counts_own_event(struct counts *c, struct funs *funs, const struct event *e);
/* Takes the open calls of a node, before they are forgotten. */
void counts_open(struct counts *c, const struct merge *merge, const struct pairing *calls, unsigned node);

/* Merges the two kinds of rate losses. Only the pairing of calls distinguishes them. */
void counts_one_rate(uint64_t lost[static ETW_LOSSES]);

/* Computes the totals of all nodes. The caller adds what it knows about filters and groups. */
struct totals *counts_totals(struct counts *c, const struct order *order, const struct pairing *calls);

#endif

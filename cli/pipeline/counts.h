/* SPDX-License-Identifier: Apache-2.0 */
/* Counts for each node how many events were shown, filtered, lost, or only counted by the node. */
#ifndef ETRACE_COUNTS_H
#define ETRACE_COUNTS_H

#include "../events/order.h"
#include "../fold/pairing.h"
#include "../fold/stats.h"
#include "../views/sink.h"

/*
 * The number of events of a node that were filtered: `here` by the pipeline, `there` by the node. The node reads the
 * counters of its threads one after the other, so `there` may be negative for a moment.
 */
struct hidden {
    uint64_t here;
    int64_t there;
    bool untold;  /* because of a budget, the node counts calls; it has not reported how many calls made no event */
    bool unknown; /* the node does not know how many calls made no event */
};

struct counts {
    struct totals totals;
    struct totals_node *nodes; /* `shown` is up to date; counts_totals() computes the other counts */
    struct hidden *hidden;
    size_t nnodes, nodes_cap, hidden_cap;
    uint64_t units;            /* number of shown events; a call and its result count as one */
    int64_t open_calls;        /* number of open calls among the calls that the nodes count instead of sending */
    struct stats only_counted; /* the calls that made no event because of a node's budget */
    bool by_node;              /* a node has counted calls instead of sending them */
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

void counts_begin_run(struct counts *c, unsigned node);       /* the node begins a new run */
void counts_outside(struct counts *c, const struct event *e); /* counts an event outside of the window as filtered */
/* Adds the counts that an event of etrace's own, such as a tally or a notice, reports. */
void counts_own_event(struct counts *c, struct funs *funs, const struct event *e);
/* Adds the open calls of a node to the counts. Call it before pairing_forget(). */
void counts_open(struct counts *c, const struct merge *merge, const struct pairing *calls, unsigned node);

/* Adds ETW_LOST_HALF to ETW_LOST_RATE, because only the pairing of calls distinguishes the two. */
void counts_one_rate(uint64_t lost[static ETW_LOSSES]);

/* Computes the totals of all nodes. The caller adds what it knows about filters and groups. */
struct totals *counts_totals(struct counts *c, const struct order *order, const struct pairing *calls);

#endif

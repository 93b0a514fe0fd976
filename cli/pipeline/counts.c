/* SPDX-License-Identifier: Apache-2.0 */
#include "counts.h"

#include <stdlib.h>

#include "../events/notice.h"
#include "../ground/mem.h"

void counts_release(struct counts *c)
{
    free(c->nodes);
    free(c->hidden);
    stats_release(&c->only_counted);
}

bool counts_meet(struct counts *c, size_t nodes)
{
    if (nodes == c->nnodes)
        return false;
    c->nodes = mem_grow(c->nodes, &c->nodes_cap, nodes, sizeof(*c->nodes));
    memset(c->nodes + c->nnodes, 0, (nodes - c->nnodes) * sizeof(*c->nodes));
    c->hidden = mem_grow(c->hidden, &c->hidden_cap, nodes, sizeof(*c->hidden));
    memset(c->hidden + c->nnodes, 0, (nodes - c->nnodes) * sizeof(*c->hidden));
    c->nnodes = nodes;
    return true;
}

void counts_one_rate(uint64_t lost[static ETW_LOSSES])
{
    lost[ETW_LOST_RATE] += lost[ETW_LOST_HALF];
    lost[ETW_LOST_HALF] = 0;
}

/* ---- single events ---- */

/* Notes that calls of functions have no event from now on. Their number follows in a later notice. */
static void note_untold(struct counts *c, const struct event *e, bool begins)
{
    c->totals.untraced.any = true;
    c->hidden[e->node->index].untold = begins;
}

void counts_begin_run(struct counts *c, unsigned node)
{
    struct hidden *h = node < c->nnodes ? &c->hidden[node] : NULL;

    if (!h)
        return;
    h->unknown |= h->untold; /* the run before ended before it told how many calls had no event */
    h->untold = false;
}

void counts_outside(struct counts *c, const struct event *e)
{
    struct notice_overhead overhead;

    if (notice_overhead(e, &overhead) && overhead.functions) /* the number of the later notice is not about this part */
        note_untold(c, e, true);
    if (event_is_traced(e))
        counts_hide(c, e);
    else if (e->tally)
        c->hidden[e->node->index].here += e->tally->seen;
}

/* ---- what the node counts ---- */

/* Adds a tally: the counts of events that the node counted instead of sending them. */
static void add_counted(struct counts *c, const struct event *e)
{
    const struct etw_tally *t = e->tally;

    c->by_node = true;
    c->totals.shown += t->seen;
    c->nodes[e->node->index].shown += t->seen;
    c->open_calls += t->open;
    c->hidden[e->node->index].there += t->filtered;
    if (t->counted >= 2)
        stats_event(&c->only_counted, e);
}

/*
 * Records a notice about a budget. A notice with `functions` only reports that functions are counted from now on. The
 * number of calls without an event follows in the notice at the end, unless the node is lost before.
 */
static void note_budget(struct counts *c, const struct event *e, const struct notice_overhead *o)
{
    struct totals_untraced *u = &c->totals.untraced;

    note_untold(c, e, o->functions);
    if (o->functions)
        return;
    c->hidden[e->node->index].unknown |= o->untraced < 0;
    u->estimated |= o->estimated;
    u->calls += (uint64_t)MAX(o->untraced, 0);
}

static void counted_calls_wait(struct counts *c, struct funs *funs, const struct event *e, const struct notice_waits *w)
{
    struct totals_open *open = &c->nodes[e->node->index].open;
    const struct fun *fun = funs_get(funs, w->function.module, w->function.function);

    if (!fun)
        return;
    *open = (struct totals_open){.calls = (uint64_t)w->calls, .ns = w->ns, .fun = fun, .arity = (int)w->function.arity};
    event_process(e, w->pid, &open->who);
}

void counts_own_event(struct counts *c, struct funs *funs, const struct event *e)
{
    struct notice_overhead overhead;
    struct notice_tokens tokens;
    struct notice_waits waits;
    int64_t asked;

    if (e->tally)
        add_counted(c, e);
    c->totals.snapshots += event_ends_snapshot(e);
    c->totals.reloads += notice_reloads(e);
    if (notice_overhead(e, &overhead))
        note_budget(c, e, &overhead);
    if (e->kind == ETW_NOTICE && wire_is_atom(&e->env, e->terms.at, "asked") &&
        wire_int(wire_skip(e->terms.at), &asked))
        c->totals.asked += (uint64_t)MAX(asked, 0);
    if (notice_waits(e, &waits))
        counted_calls_wait(c, funs, e, &waits);
    if (notice_tokens(e, &tokens))
        c->totals.tokens += (uint64_t)MAX(tokens.held, 0);
}

/* ---- open calls ---- */

/* The data of one_open(), which sums up the open calls of a node. */
struct opened {
    const struct merge *merge;
    struct totals_open calls;
};

static void one_open(void *data, const struct pairing_open *call)
{
    struct opened *x = data;
    const int64_t ns = merge_node(x->merge)->passed_mono_ns - call->mono_ns;
    const struct tracee *who = merge_tracee(x->merge, call->tracee);

    if (ns < TOTALS_OPEN_NS)
        return;
    x->calls.calls++;
    if (ns <= x->calls.ns)
        return;
    x->calls.ns = ns;
    x->calls.fun = call->fun;
    x->calls.arity = call->arity;
    x->calls.who = who ? *who : (struct tracee){0};
}

static void add_open(struct totals_open *all, const struct totals_open *one)
{
    const uint64_t calls = all->calls + one->calls;

    if (one->ns > all->ns)
        *all = *one;
    all->calls = calls;
}

void counts_open(struct counts *c, const struct merge *merge, const struct pairing *calls, unsigned node)
{
    struct opened x = {.merge = merge};

    if (node >= c->nnodes)
        return;
    if (merge_node(merge)->passed)
        pairing_each_open(calls, node, one_open, &x);
    if (x.calls.calls)
        add_open(&c->nodes[node].open, &x.calls);
}

/* ---- totals ---- */

/* Computes the counts of one node, and adds them to the totals. */
static void total_node(struct counts *c, size_t node, const struct merge *m)
{
    struct totals *t = &c->totals;
    struct totals_node *n = &c->nodes[node];
    const struct hidden *h = &c->hidden[node];
    struct merge_counts now = {0};

    n->filtered = h->here + (uint64_t)MAX(h->there, 0);
    t->filtered += n->filtered;
    t->untraced.unknown |= h->untold || h->unknown;
    if (!m)
        return;
    merge_counts(m, &now);
    counts_one_rate(now.lost);
    uint64_t known = n->shown + n->filtered;
    t->seen += now.seen;
    for (size_t l = 0; l < ETW_LOSSES; l++) {
        t->lost[l] += now.lost[l];
        known += now.lost[l];
    }
    t->complete &= now.last;
    add_open(&t->open, &n->open);
    n->node = merge_node(m);
    n->seen = now.seen;
    n->missing = n->seen > known ? n->seen - known : 0;
    n->complete = now.last;
    memcpy(n->lost, now.lost, sizeof(n->lost));
}

struct totals *counts_totals(struct counts *c, const struct order *order, const struct pairing *calls)
{
    struct totals *t = &c->totals;

    t->seen = t->filtered = 0;
    t->complete = c->nnodes > 0;
    memset(t->lost, 0, sizeof(t->lost));
    t->untraced.unknown = false;
    t->open = (struct totals_open){0};
    for (size_t i = 0; i < c->nnodes; i++)
        total_node(c, i, order_merge(order, (unsigned)i));
    t->nodes = c->nodes;
    t->nnodes = c->nnodes > 1 ? c->nnodes : 0;
    uint64_t known = t->shown + t->filtered;
    for (size_t l = 0; l < ETW_LOSSES; l++)
        known += t->lost[l];
    t->missing = t->seen > known ? t->seen - known : 0;
    t->incomplete = pairing_incomplete(calls) + (uint64_t)MAX(c->open_calls, 0);
    t->endless = pairing_endless(calls);
    stats_sort(&c->only_counted);
    t->counted = c->only_counted.items;
    t->ncounted = c->only_counted.n;
    return t;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#include "../lang/where_steps.h"
#include "../views/fields.h"
#include "exprs.h"
#include "outputs.h"
#include "together.h"

/* ---- the recorder ---- */

/* Returns the condition of --snapshot-when, which is the last one of `wheres`. */
static const struct where *plan_condition(const struct exprs *exprs)
{
    return exprs->wheres[exprs->nwheres - 1];
}

static struct str plan_keep(struct arena *a, struct buf *steps)
{
    const struct str kept = {steps->len ? arena_strndup(a, steps->data, steps->len) : NULL, steps->len};

    buf_release(steps);
    return kept;
}

/* Returns true if the nodes decide when to take a snapshot. They can only test how a call ended. */
static bool node_decides(const struct plan_from *from, struct str *ret_filter)
{
    const struct ring_opts *ring = &from->limit->ring;
    struct buf steps = {0};
    struct err ignored;

    if (!ring->when || ring->system)
        return true;
    const bool decides = !where_is_of_rows(plan_condition(from->exprs)) && !from->fallback &&
                         exprs_trigger(from->exprs, plan_condition(from->exprs), ring->when, &steps, &ignored);
    steps.len = decides ? steps.len : 0;
    *ret_filter = plan_keep(from->arena, &steps);
    return decides;
}

bool plan_watches_rows(const struct plan *p, const struct exprs *exprs)
{
    return p->recorder == PLAN_CLIENT_RECORDS && where_is_of_rows(plan_condition(exprs));
}

bool plan_recorder(struct plan *ret, const struct plan_from *from, struct err *e)
{
    const struct ring_opts *ring = &from->limit->ring;

    *ret = (struct plan){0};
    if (!ring->on)
        return true;
    ret->recorder = node_decides(from, &ret->filter) ? PLAN_NODES_RECORD : PLAN_CLIENT_RECORDS;
    return TOGETHER(e, KNOWN(WITHIN, ring->within_ms), KNOWN(WHEN, ring->when),
                    KNOWN(ROW_WHEN, plan_watches_rows(ret, from->exprs))) &&
           (ret->recorder == PLAN_CLIENT_RECORDS || exprs_may_overwrite(from->exprs, e));
}

/* ---- the route ---- */

/* Facts that may rule out a route. */
enum plan_has {
    HAS_GREP = 1 << 0,
    HAS_LIMIT = 1 << 1,
    HAS_SILENT = 1 << 2,
    HAS_RECORDER = 1 << 3,
    HAS_CONDITION = 1 << 4,       /* an assertion, or --snapshot-when */
    HAS_EVENT_CONDITION = 1 << 5, /* a condition that tests events, not the rows of a table */
    HAS_OTHERS = 1 << 6,          /* an expression about other events than calls */
    HAS_NEIGHBOURS = 1 << 7,      /* a view or a key reads a property that depends on earlier events */
    HAS_UNKNOWN_RECORDS = 1 << 8,
};

static unsigned plan_has(const struct plan *p, const struct plan_from *from)
{
    const struct exprs *exprs = from->exprs;
    unsigned has = (from->outputs->ngreps ? HAS_GREP : 0) | (from->limit->limit ? HAS_LIMIT : 0) |
                   (from->what->silent ? HAS_SILENT : 0) | (p->recorder != PLAN_STREAMS ? HAS_RECORDER : 0) |
                   (exprs->nwheres > from->nfilters ? HAS_CONDITION : 0) |
                   (from->unknown_records ? HAS_UNKNOWN_RECORDS : 0);

    for (size_t i = from->nfilters; i < exprs->nwheres; i++)
        has |= where_is_of_rows(exprs->wheres[i]) ? 0 : HAS_EVENT_CONDITION;
    for (size_t i = 0; i < exprs->count; i++)
        has |= exprs->specs[i]->kind == SPEC_CALL ? 0 : HAS_OTHERS;
    if (exprs_counts_around(exprs) || outputs_properties(from->outputs) & PROPERTY_AROUND)
        has |= HAS_NEIGHBOURS;
    return has;
}

static bool filters_rows(const struct exprs *exprs, const struct where *const *filters, size_t n, struct buf *ret)
{
    struct by_node keys;

    return exprs_by_node(exprs, &keys) && exprs_filter(exprs, filters, n, ret) && !where_steps_measure(buf_view(ret));
}

/*
 * The routes of events on the node. The plan takes the first row that fits: every view has the flag of the row, no fact
 * in `without` holds, and the node can evaluate the filters. If no row fits, the nodes send the events (ARM_SENDS).
 */
static const struct {
    enum arm_route route;
    enum sink_flags views;
    unsigned without; /* enum plan_has */
    bool (*filter)(const struct exprs *exprs, const struct where *const *filters, size_t n, struct buf *ret_filter);
} routes[] = {
    /* The nodes count calls instead of sending them: the views show only figures of calls. */
    {ARM_TALLY, SINK_FIGURES, HAS_GREP | HAS_LIMIT | HAS_RECORDER | HAS_CONDITION | HAS_OTHERS | HAS_UNKNOWN_RECORDS,
     exprs_filter},
    /* The nodes count by keys: only tables, and conditions on their rows, read the events. */
    {ARM_BY, SINK_ROWS, HAS_GREP | HAS_LIMIT | HAS_RECORDER | HAS_SILENT | HAS_EVENT_CONDITION | HAS_UNKNOWN_RECORDS,
     filters_rows},
    /*
     * The nodes hold each call back until its result, and drop both if the filter hides them. They send a call that
     * they cannot decide about, and the client filters it.
     */
    {ARM_HOLD, SINK_ALONE, HAS_RECORDER | HAS_SILENT | HAS_NEIGHBOURS | HAS_UNKNOWN_RECORDS, exprs_hold},
};

static void choose_route(struct plan *p, const struct plan_from *from)
{
    const unsigned has = plan_has(p, from);

    for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
        struct buf steps = {0};
        if (!(has & routes[i].without) && outputs_all(from->outputs, routes[i].views) &&
            routes[i].filter(from->exprs, from->exprs->wheres, from->nfilters, &steps)) {
            p->route = routes[i].route;
            p->filter = plan_keep(from->arena, &steps);
            return;
        }
        buf_release(&steps);
    }
}

/* ---- the rest ---- */

/*
 * Returns true if the client does not show all events: because of filters, or because some events are needed only for
 * pairing.
 */
static bool client_sifts(const struct plan_from *from)
{
    uint64_t besides;

    for (size_t i = 0; i < from->exprs->count; i++)
        if (from->exprs->specs[i]->nwhere)
            return true;
    exprs_kinds(from->exprs, &besides);
    return from->outputs->ngreps || from->nfilters || besides;
}

void plan_choose(struct plan *p, const struct plan_from *from)
{
    p->sifts = client_sifts(from);
    p->folds = from->outputs->count && outputs_all(from->outputs, SINK_FOLDS);
    p->defers = from->unknown_records;
    p->anonymous = !from->outputs->ngreps && !outputs_has_senders(from->outputs) && !exprs_reads_sender(from->exprs);
    choose_route(p, from);
}

void plan_follow_roots(struct plan *p, const struct exprs *exprs, struct arena *arena)
{
    const struct spec *root = exprs_deciding_root(exprs);
    struct buf steps = {0};

    if (!root)
        return;
    exprs_root_steps(root, &steps); /* cannot fail: exprs_compile() has checked it */
    p->route = ARM_TREES;
    p->filter = plan_keep(arena, &steps);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses what a trace asks of its nodes. Only this file makes the choice, from the expressions, the filters, the views
 * and the options. The session (session_set.h) and the request to trace (exprs_arm()) carry the plan to the node, and
 * live.c reads it.
 *
 * plan_recorder() comes first, because the views depend on who records. plan_choose() comes when the views are known.
 * If an expression uses records that no header defines, plan_choose() is called before sessions begin, for their
 * settings, and again when a node has defined the records. Expressions may also change during a session (the
 * interactive mode): plan_follow_roots() adds what depends on the expressions of one request.
 */
#ifndef ETRACE_PLAN_H
#define ETRACE_PLAN_H

#include "../ground/mem.h"
#include "../node/arm.h"
#include "settings.h"

struct exprs;
struct outputs;

/* The place of the flight recorder (struct ring_opts). */
enum plan_recorder {
    PLAN_STREAMS,        /* no recorder: the nodes send events as they come */
    PLAN_NODES_RECORD,   /* the nodes overwrite their oldest events, and send the kept events for a snapshot */
    PLAN_CLIENT_RECORDS, /* the nodes send all events, because they cannot decide --snapshot-when (keeper.h) */
};

/*
 * The nodes may leave work out only if no view shows its result. Recordings and the scrollback of the interactive mode
 * need every event that the user asked for, because other views and filters may read the events later.
 */
struct plan {
    enum plan_recorder recorder;
    enum arm_route route; /* the way of the events on the node */
    /* the test of the route, or of the trigger of a recorder on the node (where_steps.h); borrowed */
    struct str filter;
    bool anonymous; /* no view, filter or key reads the senders of received messages, so they are not fetched */
    bool sifts;     /* the client filters events, so the nodes cannot count the shown events for --limit */
    bool folds;     /* no view shows a single event, so the default rate does not apply */
    bool defers;    /* the route is not chosen yet, so the node sends no batch until peers_pull() */
};

/* The plan of a session whose expressions, views and filters may change or are not known yet. */
#define PLAN_ALL ((struct plan){.sifts = true})

/* The input of a plan. All pointers are borrowed. */
struct plan_from {
    const struct exprs *exprs;
    /* number of filters: the first of exprs->wheres, before those of assertions and of --snapshot-when */
    size_t nfilters;
    const struct what_opts *what;
    const struct limit_opts *limit;
    const struct outputs *outputs; /* unused by plan_recorder() */
    bool fallback;                 /* the nodes have no NIF */
    bool unknown_records;          /* the expressions use records that a node must define */
    struct arena *arena;           /* owns the filter of the plan */
};

/* Decides who records. Returns false, with an error, if the options or the expressions do not go with a recorder. */
bool plan_recorder(struct plan *ret, const struct plan_from *from, struct err *e);

/* Chooses everything else. */
void plan_choose(struct plan *p, const struct plan_from *from);

/* Changes the route to ARM_TREES if a root of the expressions has a condition on its result. */
void plan_follow_roots(struct plan *p, const struct exprs *exprs, struct arena *arena);

/* Returns true if the client evaluates --snapshot-when, and the condition tests figures of keys (count > 100). */
bool plan_watches_rows(const struct plan *p, const struct exprs *exprs);

#endif

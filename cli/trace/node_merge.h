/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges the events of several nodes into one stream. Measures the nodes' clocks against this host's, limits how long
 * events wait for silent nodes, and records where a node was lost or came back. Passes all this to the pipeline as
 * notes (etrace_wire.h) and asks the nodes through their sessions. For a single node it only records when the node was
 * lost or came back.
 *
 * An event waits until every other node has reported a later time, but at most a quarter of a second. Idle nodes are
 * asked for their time.
 */
#ifndef ETRACE_NODE_MERGE_H
#define ETRACE_NODE_MERGE_H

#include "../pipeline/pipeline.h"
#include "peers.h"

#define NODE_MERGE_SLOTS 4

struct node_merge_node {
    /*
     * Counts of batches. handed: given to the pipeline. freed: batches up to this one need not wait for other nodes.
     * past: the values of `handed` when each of the last slots (periods of 50 ms) ended.
     */
    uint64_t handed, freed, past[NODE_MERGE_SLOTS];
    int64_t offset, error;           /* the clock offset in use and its error, in ns; error -1: no offset yet */
    int64_t best_offset, best_error; /* the best measurement since the time `since`: offset and error in ns */
    int64_t skew;                    /* skew of the node's wall clock in the best measurement, in ns */
    unsigned measured;
    /*
     * loop_now() times: when the measurement began; when the node was last asked for its time (-1: no question is
     * open); when it may be asked again
     */
    int64_t since, asked, next_ask;
};

struct node_merge {
    struct ctx *ctx;
    struct peers *peers;
    struct pipeline *pipeline;
    /*
     * May be set after node_merge_init(). keep() then gets the notes on clocks, lost nodes and nodes that came back,
     * instead of the pipeline, and must pass the notes on later.
     */
    void (*keep)(void *data, unsigned node, struct str note);
    void *data;
    struct node_merge_node nodes[PEERS_MAX];
    int64_t wall; /* ns: at the beginning, the wall clock of this host minus its monotonic clock */
    int64_t slot; /* loop_now() time at which the current slot ends */
    bool blocked; /* set by the caller: the nodes must not send events */
};

void node_merge_init(struct node_merge *t, struct ctx *ctx, struct peers *ps, struct pipeline *p);

/* Switches to another pipeline, which must not have a batch yet. */
void node_merge_show(struct node_merge *t, struct pipeline *p);

/*
 * Begins to measure the clock of a node that has just come up. node_merge_time() takes the answers; node_merge_known()
 * returns true when the clock is known.
 */
bool node_merge_ask(struct node_merge *t, struct peer *p, struct err *e);
bool node_merge_known(const struct node_merge *t, const struct peer *p);

/* Counts a batch of `p` that the caller has given to the pipeline. */
void node_merge_batch(struct node_merge *t, const struct peer *p);
void node_merge_time(struct node_merge *t, struct peer *p, const struct session_time *time);
enum pipeline_status node_merge_down(struct node_merge *t, const struct peer *p, const struct err *why, struct err *e);
enum pipeline_status node_merge_up(struct node_merge *t, const struct peer *p, struct err *e);

/* Asks all nodes for their time, so that even a node without events sends a batch with its time. */
void node_merge_ask_all(struct node_merge *t);

/* Call it after every event of the loop. */
enum pipeline_status node_merge_step(struct node_merge *t, struct err *e);

/* Returns the time of the next node_merge_step(); -1: after the next event. */
int64_t node_merge_next(const struct node_merge *t);

#endif

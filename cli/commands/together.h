/*
 * What makes one stream of several nodes: their clocks against ours, the end of waiting for those that say nothing, and
 * their going down and coming back. It tells the pipeline in notes (etrace_wire.h) and asks the nodes through their sessions.
 * Where there is one node it does nothing, except for that one's going and coming.
 *
 * An event waits until every other node has passed its time, which an idle node is asked about; never longer than a
 * quarter of a second.
 */
#ifndef ETRACE_TOGETHER_H
#define ETRACE_TOGETHER_H

#include "../views/pipeline.h"
#include "peers.h"

#define TOGETHER_SLOTS 4

struct together_node {
    uint64_t handed, freed, past[TOGETHER_SLOTS]; /* batches: until now, need not wait, and until some time ago */
    int64_t offset, error;           /* in use; error -1: none yet */
    int64_t best_offset, best_error; /* of the measurements since `since` */
    int64_t skew;                    /* of its wall clock, with the best */
    unsigned measured;
    int64_t since, asked, next_ask; /* loop_now() times; asked -1: nothing is */
};

struct together {
    struct ctx *ctx;
    struct peers *peers;
    struct pipeline *pipeline;
    /* May be set after together_init(): takes the notes on clocks, goings and comings instead of the pipeline, which gets them so. */
    void (*keep)(void *data, unsigned node, struct str note);
    void *data;
    struct together_node nodes[PEERS_MAX];
    int64_t wall; /* ns: this host's wall clock is its monotonic one and this, as it was at the beginning */
    int64_t slot; /* loop_now() time of the next */
    bool blocked; /* the nodes are not to send */
};

void together_init(struct together *t, struct ctx *ctx, struct peers *ps, struct pipeline *p);

void together_show(struct together *t, struct pipeline *p); /* another pipeline, to which nothing was handed yet */

/* Begins to measure the clock of one that is there now; together_known() once that is done, by together_time(). */
bool together_ask(struct together *t, struct peer *p, struct err *e);
bool together_known(const struct together *t, const struct peer *p);

void together_batch(struct together *t, const struct peer *p); /* one was handed to the pipeline */
void together_time(struct together *t, struct peer *p, const struct session_time *time);
enum pipeline_status together_down(struct together *t, const struct peer *p, const struct err *why, struct err *e);
enum pipeline_status together_up(struct together *t, const struct peer *p, struct err *e);

/* To be called after everything that happens. */
enum pipeline_status together_step(struct together *t, struct err *e);

/* When together_step() has something to do; -1: when something happens. */
int64_t together_next(const struct together *t);

#endif

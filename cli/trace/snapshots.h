/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the snapshots of a trace, and passes events on to the pipeline and to the files of the snapshots. The recorder
 * is on the nodes or in this program (plan.h). Without a recorder, all events go to the pipeline.
 */
#ifndef ETRACE_SNAPSHOTS_H
#define ETRACE_SNAPSHOTS_H

#include "keeper.h"
#include "peers.h"
#include "plan.h"
#include "snapshot_files.h"

struct live_options;

struct snapshots {
    struct ctx *ctx;
    const struct live_options *o;
    struct view_opts numbered; /* a copy of the options of views; its outputs are those with %n in their name */
    struct pipeline *pipeline; /* gets the events; NULL before snapshots_begin() */
    struct keeper *keeper;     /* the recorder in this program; NULL: none */
    /* writes files of snapshots (-o %n), and knows the snapshots of several nodes; NULL: not needed */
    struct snapshot_files *files;
    enum pipeline_status status; /* the worst status of the pipeline since snapshots_keep() was last called */
    unsigned by_hand;            /* snapshots that the user has requested so far (ctx->snapshots) */
    uint32_t asked[PEERS_MAX];   /* id of the open request to a node for a snapshot; 0: none */
    bool told_reach;             /* snapshots_tell_reach() has printed its message */
};

/* Moves the outputs with %n in their name from *view to the snapshots, if there is a recorder. */
void snapshots_init(struct snapshots *s, struct ctx *ctx, const struct live_options *o, struct view_opts *view);
void snapshots_release(struct snapshots *s);

/*
 * Makes the keeper and the files, if the plan needs them. `shown` are the options of `pipeline`. record_specs() gets
 * the pipeline of each new file, and writes the expressions of the trace into it.
 */
bool snapshots_begin(struct snapshots *s, const struct plan_from *from, enum plan_recorder recorder,
                     struct pipeline *pipeline, const struct pipeline_options *shown,
                     void (*record_specs)(void *data, struct pipeline *to), void *data, struct err *e);

/* Takes a batch or a note of a node. */
enum pipeline_status snapshots_batch(struct snapshots *s, unsigned node, struct str bytes, struct err *e);
enum pipeline_status snapshots_note(struct snapshots *s, unsigned node, struct str bytes, struct err *e);

/* Writes to the files. `last`: the trace is ending. On failure, closes the files and returns false, with an error. */
bool snapshots_step(struct snapshots *s, bool last, struct err *e);

/*
 * Lets the keeper, if there is one, take its next step; call it after each event of the loop. `fires`: the user may
 * request a snapshot.
 */
enum pipeline_status snapshots_keep(struct snapshots *s, bool fires, bool may_send, struct err *e);

/* Returns true if the caller must ask the nodes for a snapshot. *ret_begins: a snapshot begins on a node. */
bool snapshots_due(struct snapshots *s, bool *ret_begins);
/* Asks a node for a snapshot, unless it has begun one or was asked. */
void snapshots_ask(struct snapshots *s, struct peer *p);
/*
 * Starts the trace of --then when a snapshot begins. Returns true if the caller must ask the nodes the questions of
 * struct live_moment.
 */
bool snapshots_then(struct snapshots *s);
void snapshots_answer(struct snapshots *s, const struct peer *p, const struct session_reply *reply);
/* Forgets the request to a node whose state has changed. `armed`: the node is traced from now on. */
void snapshots_node_moved(struct snapshots *s, const struct peer *p, bool armed);

uint64_t snapshots_count(const struct snapshots *s); /* returns the number of snapshots that have ended */
/* With --ring TIME, says once if the buffers hold less than half of that time, and what a larger size would hold. */
void snapshots_tell_reach(struct snapshots *s, int64_t us);

/* Passes on what is left after the trace. Returns false, with an error, if that fails. */
bool snapshots_end(struct snapshots *s, struct err *e);

#endif

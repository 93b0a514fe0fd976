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
    struct view_opts numbered;    /* the options of views, with the outputs that have %n in their name */
    struct pipeline *pipeline;    /* gets the events; NULL before snapshots_begin() */
    struct keeper *keeper;        /* the recorder in this program; NULL: none */
    struct snapshot_files *files; /* writes the snapshots of several nodes, and those of -o %n; NULL: neither */
    enum pipeline_status status;  /* of the pipeline, since the keeper was last asked */
    unsigned by_hand;             /* snapshots that the user has requested so far (ctx->snapshots) */
    uint32_t asked[PEERS_MAX];    /* id of the open request to a node for a snapshot; 0: none */
    bool told_reach;              /* the user knows how little the buffers hold */
};

/* Moves the outputs with %n in their name from *view to the snapshots, if there is a recorder. */
void snapshots_init(struct snapshots *s, struct ctx *ctx, const struct live_options *o, struct view_opts *view);
void snapshots_release(struct snapshots *s);

/*
 * Makes the keeper and the files. `shown` are the options of the pipeline. record_specs() adds the request to the
 * pipeline of a file.
 */
bool snapshots_begin(struct snapshots *s, const struct plan_from *from, enum plan_recorder recorder,
                     struct pipeline *pipeline, const struct pipeline_options *shown,
                     void (*record_specs)(void *data, struct pipeline *to), void *data, struct err *e);

/* Takes a batch or a note of a node. */
enum pipeline_status snapshots_batch(struct snapshots *s, unsigned node, struct str bytes, struct err *e);
enum pipeline_status snapshots_note(struct snapshots *s, unsigned node, struct str bytes, struct err *e);

/* Writes to the files. `last`: the trace is leaving. Returns false, with an error, and gives the files up. */
bool snapshots_step(struct snapshots *s, bool last, struct err *e);

/* Lets the keeper work after each event of the loop, if there is one. `fires`: the user may request a snapshot. */
enum pipeline_status snapshots_keep(struct snapshots *s, bool fires, bool may_send, struct err *e);

/* Returns true if the nodes are to be asked for a snapshot. *ret_begins: a snapshot begins on a node. */
bool snapshots_due(struct snapshots *s, bool *ret_begins);
void snapshots_ask(struct snapshots *s, struct peer *p); /* asks a node, unless it has sent its part */
/* Does what --then asks for when a snapshot begins. Returns true if the nodes are to be asked (struct live_moment). */
bool snapshots_then(struct snapshots *s);
void snapshots_answer(struct snapshots *s, const struct peer *p, const struct session_reply *reply);
/* Forgets the request to a node. `armed`: it is traced from now on. */
void snapshots_node_moved(struct snapshots *s, const struct peer *p, bool armed);

uint64_t snapshots_count(const struct snapshots *s); /* returns the number of snapshots that have ended */
/* Says once, with --ring TIME, that the buffers hold less than half of that time, and what a larger size would hold. */
void snapshots_tell_reach(struct snapshots *s, int64_t us);

/* Passes on what is left after the trace. Returns false, with an error, if that fails. */
bool snapshots_end(struct snapshots *s, struct err *e);

#endif

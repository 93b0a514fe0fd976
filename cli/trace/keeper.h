/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder in this program: keeps the last events of all nodes in memory, evaluates the condition of
 * --snapshot-when for each event, and passes a snapshot on when the condition holds. It is for conditions that the
 * nodes cannot decide, so the nodes send all events.
 *
 * Its batches look like those of a node that is a recorder (scroll.h): they contain the notices of a snapshot, and
 * count the overwritten events. So views, files and totals do not depend on which side records.
 *
 *   KEEPS   overwrites the oldest events; a snapshot begins when the condition holds
 *   SENDS   a snapshot: passes on all events until its time is over
 *   RESTS   overwrites like KEEPS, but only counts how often the condition holds, until the next snapshot may begin
 *
 * Only keeper_step(), keeper_fire() and keeper_end() change the state.
 */
#ifndef ETRACE_KEEPER_H
#define ETRACE_KEEPER_H

#include "../pipeline/pipeline.h"
#include "settings.h"

struct keeper;

struct keeper_options {
    /*
     * The options of the pipeline that evaluates the condition: it sees all events that would be shown. Its views are
     * ignored.
     */
    struct pipeline_options judge;
    const struct where *when;
    const struct ring_opts *ring;
    /* Gets the batches and notes of snapshots. If it returns false, it has filled e. */
    bool (*take)(void *data, const struct source_item *item, struct err *e);
    /* called with the number of times that the condition held too soon after a snapshot */
    void (*skipped)(void *data, uint64_t times);
    void *data;
};

/* Makes a keeper, which borrows everything that the options point to. Returns NULL, with an error, on failure. */
struct keeper *keeper_new(const struct keeper_options *o, struct err *e);
void keeper_free(struct keeper *k); /* accepts NULL */

/*
 * Returns the pipeline that evaluates the condition. The events of all nodes pass through it, so it knows how to merge
 * them, and all losses.
 */
struct pipeline *keeper_judge(struct keeper *k);

/* Takes a batch or a note of a node. Returns false, with the place in e, if the events are malformed. */
bool keeper_batch(struct keeper *k, unsigned node, struct str bytes, struct err *e);
bool keeper_note(struct keeper *k, unsigned node, struct str bytes, struct err *e);

/* Begins a snapshot unless one is going on. This function and those below return false if take() has failed. */
bool keeper_fire(struct keeper *k, struct err *e);

/*
 * Changes the state, and passes events on if `may_send`. Call it after every event of the loop, and at the time of
 * keeper_next().
 */
bool keeper_step(struct keeper *k, bool may_send, struct err *e);
/* Returns the time of the next keeper_step(); -1: after the next event. */
int64_t keeper_next(const struct keeper *k, bool may_send);

/*
 * Ends the recorder after the trace. During a snapshot, passes on a part of its events; *ret_more: some are left, and
 * the caller must call again. Without a snapshot, counts the kept events as overwritten.
 */
bool keeper_end(struct keeper *k, bool *ret_more, struct err *e);

#endif

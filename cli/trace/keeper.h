/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder in this program: keeps the last events of all nodes in memory, evaluates the condition of
 * --snapshot-when for each event, and passes a snapshot on when it holds. It is for conditions that the nodes cannot
 * decide, so the nodes send all events.
 *
 * Its batches read like those of a node that is a recorder (scroll.h): they have the notices of a snapshot, and count
 * the events that were overwritten. So views, files and totals need not know who decides.
 *
 *   KEEPS   the oldest events are overwritten; the condition begins a snapshot
 *   SENDS   a snapshot: all events are passed on, until its time is over
 *   RESTS   as KEEPS, but the condition is only counted, until the next snapshot may begin
 *
 * Only keeper_step(), keeper_fire() and keeper_end() change the state.
 */
#ifndef ETRACE_KEEPER_H
#define ETRACE_KEEPER_H

#include "../pipeline/pipeline.h"
#include "settings.h"

struct keeper;

struct keeper_options {
    struct pipeline_options judge; /* which events the condition sees: all that would be shown. Views are ignored */
    const struct where *when;
    const struct ring_opts *ring;
    /* Takes a batch or a note. False: e is filled. */
    bool (*take)(void *data, const struct source_item *item, struct err *e);
    void (*skipped)(void *data, uint64_t times); /* how often the condition held too soon after a snapshot */
    void *data;
};

/* Borrows what the options point to. NULL: e is filled. */
struct keeper *keeper_new(const struct keeper_options *o, struct err *e);
void keeper_free(struct keeper *k); /* accepts NULL */

/* The pipeline that evaluates the condition: it has the order of the nodes, and all losses. */
struct pipeline *keeper_judge(struct keeper *k);

/* False: the events are malformed, and e says where. */
bool keeper_batch(struct keeper *k, unsigned node, struct str bytes, struct err *e);
bool keeper_note(struct keeper *k, unsigned node, struct str bytes, struct err *e);

/* Begins a snapshot unless there is one. This function and those below return false if take() has failed. */
bool keeper_fire(struct keeper *k, struct err *e);

/* Call it after every event of the loop, and at the time of keeper_next(). It passes events on only if it may send. */
bool keeper_step(struct keeper *k, bool may_send, struct err *e);
int64_t keeper_next(const struct keeper *k, bool may_send); /* -1: after the next event */

/*
 * Ends the recorder after the trace. During a snapshot, passes on a part of its events and sets *ret_more if there are
 * others; the caller repeats the call then. Without a snapshot, counts the kept events as overwritten.
 */
bool keeper_end(struct keeper *k, bool *ret_more, struct err *e);

#endif

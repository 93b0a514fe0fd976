/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges the rings of one node into one stream of events in time order.
 *
 * Each thread of a node has a ring, and each batch has a section for every ring with news. Frames of one ring are in
 * order. Frames of different rings are merged by tick: a frame that is newer than the batch's watermark is held back
 * until a later batch has a watermark that reaches the frame. Memory for held frames is bounded. Beyond the bound,
 * frames come out early, possibly out of order, but never get lost.
 *
 *     merge_batch(m, bytes) ; while (merge_next(m, &event) == MERGE_EVENT) ...     for each batch
 *     merge_end(m) ;          while (merge_next(m, &event) == MERGE_EVENT) ...     once
 *
 * The batch is borrowed until merge_next() returns MERGE_DRY. After MERGE_BAD the stream is over until a batch with seq
 * 1 begins a new run of the node. If merge_begins_anew() returns true for a batch, call merge_end() and read its events
 * before you pass the batch to merge_batch(). merge_end() has no effect after a failure.
 */
#ifndef ETRACE_MERGE_H
#define ETRACE_MERGE_H

#include "../ground/err.h"
#include "decode.h"

struct merge;

/* Creates the merge of a node. All nodes share `funs`, which must outlive the merge. */
struct merge *merge_new(unsigned index, struct funs *funs);
void merge_free(struct merge *m);

bool merge_begins_anew(const struct merge *m, struct str bytes);
bool merge_failed(const struct merge *m);
bool merge_ended(const struct merge *m); /* returns true after the last batch of a run, until a new run begins */

/*
 * Takes a batch. Returns false if the batch is found to be malformed; *e names the byte. Most malformed frames are
 * found later, by merge_next().
 */
bool merge_batch(struct merge *m, struct str bytes, struct err *e);
void merge_end(struct merge *m);

enum merge_got { MERGE_EVENT, MERGE_DRY, MERGE_BAD };
enum merge_got merge_next(struct merge *m, struct event *ret, struct err *e);

struct merge_counts {
    uint64_t seen;             /* events that the VM produced, in all runs of this node */
    uint64_t lost[ETW_LOSSES]; /* part of `seen` */
    uint64_t decoded;          /* traced events returned by merge_next() */
    uint64_t tallied;          /* traced events that the node only counted */
    bool last;                 /* every run of the node ended with its last batch */
};

void merge_counts(const struct merge *m, struct merge_counts *ret);
const struct event_node *merge_node(const struct merge *m);
const struct tracee *merge_tracee(const struct merge *m, uint64_t id); /* returns NULL if unknown */

/* Only order.c calls the following functions; scroll.c calls merge_passed(), too. */
struct event_node *merge_own_node(struct merge *m);
/*
 * Sets a lower bound for the times of all events that come out later. Call it after MERGE_DRY. Returns false if no
 * event follows, or if there was no batch yet.
 */
bool merge_passed(const struct merge *m, int64_t *ret_mono, int64_t *ret_wall);
/*
 * Sets the time up to which the batches so far contain every event. Call it after MERGE_DRY. Returns false if there was
 * no batch yet.
 */
bool merge_reached(const struct merge *m, int64_t *ret_mono, int64_t *ret_wall);
/* Makes an event without a process, at the time of the last batch. */
void merge_own_event(struct merge *m, enum etw_kind kind, struct event *ret);

/*
 * Saves everything that later batches need, for a checkpoint. Call it after MERGE_DRY and before the next
 * merge_batch(). Returns false if the state cannot be saved: an error ended the stream, or too many bytes are held
 * back.
 */
bool merge_save(const struct merge *m, struct buf *to);
/*
 * Restores a saved state. funs[N] is the function that had the serial number N at merge_save(). Keeps the counts of
 * earlier runs.
 */
bool merge_restore(struct merge *m, const struct fun *const *funs, size_t nfuns, struct state_in *in);
/* Sets the node's name and versions from the bytes of a hello. */
bool merge_set_hello(struct merge *m, struct str hello);

#endif

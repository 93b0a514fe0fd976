/*
 * The batches of one node as one stream of events in the order of time.
 *
 * Every thread of a node has its own ring and every batch has a section for each ring that had something. Within a ring
 * frames are in order; across rings they are put in order by their ticks, so what is newer than the batch's watermark is
 * held back until a later batch has passed it. What is held back is bounded: over the bound it comes out early, in the
 * best order there is, and nothing is dropped.
 *
 *     merge_batch(m, bytes) ; while (merge_next(m, &event) == MERGE_EVENT) …     for each batch
 *     merge_end(m) ;          while (merge_next(m, &event) == MERGE_EVENT) …     once
 *
 * The batch is borrowed until merge_next() has said MERGE_DRY. After MERGE_BAD the stream is over, until a batch with seq 1
 * begins the node anew: where merge_begins_anew() says so, merge_end() comes before it, which changes nothing for a merge_failed().
 */
#ifndef ETRACE_MERGE_H
#define ETRACE_MERGE_H

#include "../ground/err.h"
#include "decode.h"

struct merge;

/* funs is shared by all nodes and must outlive it. */
struct merge *merge_new(unsigned index, struct funs *funs);
void merge_free(struct merge *m);

bool merge_begins_anew(const struct merge *m, struct str bytes);
bool merge_failed(const struct merge *m);
bool merge_ended(const struct merge *m); /* with its last batch; a node that is traced again begins anew */

/* False when the batch is malformed in its frame; e names the byte. */
bool merge_batch(struct merge *m, struct str bytes, struct err *e);
void merge_end(struct merge *m);

enum merge_got { MERGE_EVENT, MERGE_DRY, MERGE_BAD };
enum merge_got merge_next(struct merge *m, struct event *ret, struct err *e);

struct merge_counts {
    uint64_t seen;             /* offered by the VM, of all runs of this node */
    uint64_t lost[ETW_LOSSES]; /* of these */
    uint64_t decoded;          /* traced events given out */
    bool last;                 /* the last batch came, of every run */
};

void merge_counts(const struct merge *m, struct merge_counts *ret);
const struct event_node *merge_node(const struct merge *m);

/* For order.c: */
struct event_node *merge_own_node(struct merge *m);
/* After MERGE_DRY: whatever comes is not older than this. False: nothing comes. */
bool merge_passed(const struct merge *m, int64_t *ret_mono, int64_t *ret_wall);
void merge_own_event(struct merge *m, enum etw_kind kind, struct event *ret); /* of no process, at the time of the last batch */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides when a recording gets a checkpoint, and makes the checkpoint. A replay from the middle of a recording then
 * decodes at most the items between two checkpoints before the first event that it shows.
 */
#ifndef ETRACE_CHECKPOINT_H
#define ETRACE_CHECKPOINT_H

#include "../events/order.h"
#include "../events/recfile.h"
#include "../ground/buf.h"

enum checkpoint_state {
    CHECKPOINT_NEVER,  /* nothing is recorded, or the order of events depends on more than the recording contains */
    CHECKPOINT_WAITS,  /* not enough items have come since the last checkpoint */
    CHECKPOINT_SAVING, /* order.c saves the states of the nodes, which takes a few batches if there are several nodes */
};

struct checkpoints {
    enum checkpoint_state state;
    size_t apart;        /* least number of bytes between two checkpoints */
    size_t next;         /* number of bytes from the last checkpoint to the next one */
    size_t bytes, items; /* number of bytes and of batches since the last checkpoint */
    struct buf request;  /* the request that a checkpoint repeats for a replay */
    struct buf text;
};

/* Writes a block of a checkpoint. */
typedef void checkpoint_put_fn(void *data, enum etw_block_type type, unsigned node, struct str bytes);

void checkpoints_init(struct checkpoints *c, bool records, size_t apart); /* apart 0: the default, 4 MiB */
void checkpoints_release(struct checkpoints *c);
/* Keeps the request for the next checkpoints; nodes repeat it, so keeps that of node 0. Stops a begun checkpoint. */
void checkpoints_request(struct checkpoints *c, unsigned node, struct str request);
/* Counts a batch. Writes a checkpoint if enough bytes or batches have come since the last one. */
void checkpoints_batch(struct checkpoints *c, struct order *order, size_t bytes, checkpoint_put_fn *put, void *data);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides when a recording gets a checkpoint, and makes it. A replay reads at most the bytes or items between two
 * checkpoints before it shows something.
 */
#ifndef ETRACE_CHECKPOINT_H
#define ETRACE_CHECKPOINT_H

#include "../events/order.h"
#include "../events/recfile.h"
#include "../ground/buf.h"

enum checkpoint_state {
    CHECKPOINT_NEVER,  /* nothing is recorded, or the order of events depends on more than the recording contains */
    CHECKPOINT_WAITS,  /* until enough has come since the last one */
    CHECKPOINT_SAVING, /* the nodes save their states, which takes a few batches if there are several */
};

struct checkpoints {
    enum checkpoint_state state;
    size_t apart;        /* bytes between two checkpoints, as asked for */
    size_t next;         /* bytes until the next one */
    size_t bytes, items; /* since the last one */
    struct buf request;  /* the request that a checkpoint repeats for a replay */
    struct buf text;
};

/* Writes a block of a checkpoint. */
typedef void checkpoint_put_fn(void *data, enum etw_block_type type, unsigned node, struct str bytes);

void checkpoints_init(struct checkpoints *c, bool records, size_t apart); /* apart == 0: 4 MiB */
void checkpoints_release(struct checkpoints *c);
/* Keeps the request of the first node, and makes a checkpoint that has begun wait. */
void checkpoints_request(struct checkpoints *c, unsigned node, struct str request);
/* Counts a batch. Writes a checkpoint if it is time. */
void checkpoints_batch(struct checkpoints *c, struct order *order, size_t bytes, checkpoint_put_fn *put, void *data);

#endif

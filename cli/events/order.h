/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges the batches of several nodes into one stream of events in time order. Pipelines use it for a single node too.
 *
 * An event comes out once every other node has passed the event's time. Each batch says up to which time it has all
 * events of its node. An idle or distant node would delay the other nodes, so the caller adds a mark: a note
 * (ETW_NOTE_MARK) that releases the batches that have waited long enough. Notes also report clock offsets, and nodes
 * that go down or come up. Recordings contain the notes. So the order depends only on the input, never on a local
 * clock, and a replay gives the same order. Events of one node always keep their order.
 *
 *     order_batch(o, node, bytes, ...) ; while (order_next(o, &event, ...) is not ORDER_DRY or ORDER_BAD) ...
 *     order_end(o) ;                     then the same loop again
 *
 * Times are on this host's clock if a note gave the offset of the node's clock (event_node.aligned), otherwise on the
 * node's own wall clock. A batch is borrowed until ORDER_DRY; order.c copies a batch that must wait longer. After
 * ORDER_BAD the stream is over.
 */
#ifndef ETRACE_ORDER_H
#define ETRACE_ORDER_H

#include "merge.h"

struct order;

struct order *order_new(struct funs *funs);
void order_free(struct order *o);

/* Announces a node, so that the events of other nodes wait for it. Returns false if its number is out of range. */
bool order_expect(struct order *o, unsigned node);
/* Adds a batch. If the batch is malformed, order_where() returns `where`. */
bool order_batch(struct order *o, unsigned node, struct str bytes, uint64_t where, struct err *e);
bool order_note(struct order *o, unsigned node, struct str bytes, struct err *e);
/*
 * Promises that no later event of the node is older than this time. INT64_MAX promises that the node sends nothing
 * more. Call it if you know more than the batches say.
 */
void order_passed(struct order *o, unsigned node, int64_t mono, int64_t wall);
void order_end(struct order *o); /* the input ends here; a later batch restarts its node */

/*
 * Sets the time that each node has passed (event_node.passed), at most `until` on the common clock. Call it after
 * ORDER_DRY.
 */
void order_tell_passed(struct order *o, int64_t until);

enum order_got {
    ORDER_EVENT,
    ORDER_ENDED, /* no event of node *ret_node comes before a new run of the node; or the input ends (order_end()) */
    ORDER_ANEW,  /* node *ret_node begins a new run */
    ORDER_DRY,
    ORDER_BAD,
};
/* Gives the next event, which is valid until the next call. The caller may change the event. */
enum order_got order_next(struct order *o, struct event **ret, unsigned *ret_node, struct err *e);

uint64_t order_where(const struct order *o); /* returns `where` of the malformed batch after ORDER_BAD */

/* Returns the number (from 1) of the node's batch that waits for other nodes; 0 if none waits. */
uint64_t order_waiting(const struct order *o, unsigned node);
bool order_holds_up(const struct order *o, unsigned node); /* returns true if other nodes wait for this node */

size_t order_nodes(const struct order *o);                             /* returns the highest node number plus one */
const struct merge *order_merge(const struct order *o, unsigned node); /* returns NULL if the node is unknown */

/* ---- checkpoints ---- */

/*
 * order_save() begins a checkpoint. The state of each node is saved as soon as the node is between two batches; a node
 * with no waiting event is there already. When order_saved() returns true, order_checkpoint() appends the checkpoint
 * except for the states of the nodes, and order_state() sets *ret to the state of a node. order_checkpoint() returns
 * false if the state of a node cannot be saved now; try again later.
 */
void order_save(struct order *o);
bool order_saved(struct order *o);
bool order_checkpoint(const struct order *o, struct str request, struct buf *to);
bool order_state(const struct order *o, unsigned node, struct str *ret);

/*
 * Restore a checkpoint before the first batch: call order_restore() once, then order_restore_node() for each node.
 * *ret_request is valid as long as the bytes of the checkpoint. `node` is the node's number in this order, which may
 * differ from the number in the file. The hellos of the nodes come out again as events.
 */
bool order_restore(struct order *o, struct str checkpoint, struct str *ret_request, struct err *e);
bool order_restore_node(struct order *o, unsigned node, struct str state, struct err *e);

#endif

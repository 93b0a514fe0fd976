/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges the batches of several nodes into one stream of events in time order. Pipelines use it for a single node too.
 *
 * An event comes out once every other node has passed its time; each batch says up to which time it is complete. An
 * idle or distant node would delay the others: the caller adds a note (ETW_NOTE_MARK), which releases the batches that
 * have waited long enough. Such marks, clock offsets, and nodes that go and come are notes, and recordings contain
 * them. The order therefore depends only on the input, never on a local clock, so a replay gives the same order. Events
 * of one node always keep their order.
 *
 *     order_batch(o, node, bytes, ...) ; while (order_next(o, &event, ...) is not ORDER_DRY or ORDER_BAD) ...
 *     order_end(o) ;                     then the same loop again
 *
 * Times are on this host's clock if a note gave the offset of the node's clock (event_node.aligned), otherwise on the
 * node's own wall clock. A batch is borrowed until ORDER_DRY; order.c copies what must wait longer. After ORDER_BAD the
 * stream is over.
 */
#ifndef ETRACE_ORDER_H
#define ETRACE_ORDER_H

#include "merge.h"

#define ORDER_NODES 256

struct order;

struct order *order_new(struct funs *funs);
void order_free(struct order *o);

/* Announces a node, so that the others wait for it. Returns false if its number is out of range. */
bool order_expect(struct order *o, unsigned node);
/* Adds a batch. If the batch is malformed, order_where() returns `where`. */
bool order_batch(struct order *o, unsigned node, struct str bytes, uint64_t where, struct err *e);
bool order_note(struct order *o, unsigned node, struct str bytes, struct err *e);
/*
 * Promises that no later event of the node is older than this time; INT64_MAX: the node sends nothing more. For a
 * caller that stores the node's batches and so knows more than the batches say.
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
    ORDER_ANEW, /* node *ret_node ended or restarts, so its open calls will never get a result */
    ORDER_DRY,
    ORDER_BAD,
};
/* Gives the next event, which is valid until the next call. The caller may change the event. */
enum order_got order_next(struct order *o, struct event **ret, unsigned *ret_node, struct err *e);

uint64_t order_where(const struct order *o); /* the `where` of the malformed batch */

/* Returns the number (from 1) of the node's batch that waits for other nodes; 0 if none waits. */
uint64_t order_waiting(const struct order *o, unsigned node);
bool order_holds_up(const struct order *o, unsigned node); /* returns true if other nodes wait for this node */

size_t order_nodes(const struct order *o);                             /* the highest node number plus one */
const struct merge *order_merge(const struct order *o, unsigned node); /* returns NULL if the node is unknown */

/* ---- checkpoints ---- */

/*
 * order_save() begins a checkpoint. Each node saves its state as soon as it is between two batches; a single node does
 * so at once. When order_saved() returns true, order_checkpoint() appends the header and all that belongs to it, and
 * order_state() sets *ret to the state of a node. order_checkpoint() returns false if the state cannot be saved now;
 * try again later.
 */
void order_save(struct order *o);
bool order_saved(struct order *o);
bool order_checkpoint(const struct order *o, struct str request, struct buf *to);
bool order_state(const struct order *o, unsigned node, struct str *ret);

/*
 * Restores a checkpoint: first its header, and then the state of each node, before the first batch. *ret_request is
 * valid as long as the bytes of the checkpoint. `node` is the node's number here, which may differ from the number in
 * the file. The greetings of the nodes come out again as events.
 */
bool order_restore(struct order *o, struct str checkpoint, struct str *ret_request, struct err *e);
bool order_restore_node(struct order *o, unsigned node, struct str state, struct err *e);

#endif

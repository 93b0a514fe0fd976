/*
 * The batches of several nodes as one stream in the order of time: what pipelines read, also where there is one node.
 *
 * An event of a node comes out once every other node has passed its time: each batch says up to when its node has told
 * everything. A node that is idle or far away would hold up the others, so whoever hands in the batches says from time
 * to time that some have waited long enough (ETW_NOTE_MARK). That, the clocks, and nodes that go and come are notes and
 * stand in recordings: the order depends on what was handed in alone (order_passed() excepted, for who keeps batches itself),
 * never on a clock here. The events of one node keep their order whatever happens.
 *
 *     order_batch(o, node, bytes, …) ; while (order_next(o, &event, …) is not ORDER_DRY or ORDER_BAD) …
 *     order_end(o) ;                   the same
 *
 * Times are those of this host where a note gave the node's clock (event_node.aligned), else the node's own wall clock.
 * A batch is borrowed until ORDER_DRY; what must wait longer is copied. After ORDER_BAD the stream is over.
 */
#ifndef ETRACE_ORDER_H
#define ETRACE_ORDER_H

#include "merge.h"

#define ORDER_NODES 256

struct order;

struct order *order_new(struct funs *funs);
void order_free(struct order *o);

/* Says that this node is to come, so that the others wait for it. False: its number is out of range. */
bool order_expect(struct order *o, unsigned node);
/* `where` is kept for order_where(). */
bool order_batch(struct order *o, unsigned node, struct str bytes, uint64_t where, struct err *e);
bool order_note(struct order *o, unsigned node, struct str bytes, struct err *e);
/* Whatever still comes of the node is not older than this, as who has its batches knows besides; INT64_MAX: nothing comes. */
void order_passed(struct order *o, unsigned node, int64_t mono, int64_t wall);
void order_end(struct order *o); /* nothing follows; a later batch begins its node anew */

enum order_got {
    ORDER_EVENT,
    ORDER_ANEW, /* the node (ret_node) has ended, or begins anew: what was open on it stays open */
    ORDER_DRY,
    ORDER_BAD,
};
/* The event is good until the next call, and may be written to. */
enum order_got order_next(struct order *o, struct event **ret, unsigned *ret_node, struct err *e);

uint64_t order_where(const struct order *o); /* of the batch that was bad */

/* Of a node, by number: how far it is with what was handed in. The number of the batch that waits, from 1; 0: none. */
uint64_t order_waiting(const struct order *o, unsigned node);
bool order_holds_up(const struct order *o, unsigned node); /* others wait for a word from it */

size_t order_nodes(const struct order *o);                                     /* the largest number and one */
const struct merge *order_merge(const struct order *o, unsigned node);         /* NULL: nothing came from it */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attaches to the nodes of the interactive mode, detaches from them, and attaches to lost nodes again. One of the nodes
 * is current: :commands ask this node. Batches and notes of the nodes go into the scrollback, and every other message
 * of a node goes to the handlers.
 */
#ifndef ETRACE_REPL_NODES_H
#define ETRACE_REPL_NODES_H

#include "../trace/session_set.h"
#include "../trace/node_merge.h"
#include "repl_base.h"

struct repl_nodes;

/* Handlers, which must all be set. A handler must not wait, because the loop calls it. */
struct repl_nodes_handlers {
    void *data;
    void (*ready)(void *data, struct peer *p); /* the node is attached; its clock is measured after this call */
    void (*armed)(void *data, struct peer *p, const struct arm_result *result);
    /* The node has refused the request for the probes. */
    void (*refused)(void *data, struct peer *p, const struct err *e);
    /* The node has answered a request that another file sent. */
    void (*answer)(void *data, const struct peer *p, const struct session_reply *reply);
};

enum repl_wish {
    WISH_TYPED,   /* the user has named the node */
    WISH_DEFAULT, /* the user has named no node */
    WISH_AGAIN,   /* a retry */
};

struct repl_nodes *repl_nodes_new(struct repl_base *base, const struct repl_nodes_handlers *handlers);
void repl_nodes_free(struct repl_nodes *n); /* closes all sessions without waiting; accepts NULL */

/*
 * Begins to attach to a node; `name` NULL: to the default node. Returns false, with an error, if attaching cannot
 * begin.
 */
bool repl_nodes_attach(struct repl_nodes *n, const char *name, enum repl_wish wish, struct err *e);
void repl_nodes_detach(struct repl_nodes *n, struct peer *p); /* waits until the last events of the node have arrived */
/* Detaches from all nodes, and attaches to them again with the current options. */
void repl_nodes_reopen(struct repl_nodes *n);
/* Detaches from all nodes, and waits until their last events have arrived. */
void repl_nodes_leave(struct repl_nodes *n);
bool repl_nodes_are_leaving(const struct repl_nodes *n); /* true after repl_nodes_leave() has begun */

/* Finds an attached or CONNECTING node by its full name or by the part before the @. Returns NULL if there is none. */
struct peer *repl_nodes_find(struct repl_nodes *n, const char *name);
/* Returns the node that :commands ask, or NULL if that node is not attached. */
struct peer *repl_nodes_current(struct repl_nodes *n);
/*
 * Returns the name of the node that :commands ask, also while the node is not attached, or NULL if there is no such
 * node.
 */
const char *repl_nodes_current_name(struct repl_nodes *n);
void repl_nodes_choose(struct repl_nodes *n, const struct peer *p);
/*
 * Returns a number that changes when another node becomes current, or a node is detached or lost. Cached answers of a
 * node are then outdated.
 */
unsigned repl_nodes_epoch(const struct repl_nodes *n);

size_t repl_nodes_attached(const struct repl_nodes *n);
bool repl_nodes_attaching(const struct repl_nodes *n); /* true while etrace is attaching to a node */
bool repl_nodes_has_all(const struct repl_nodes *n);   /* true if each node is attached, or will be attached again */
/* True if several nodes have been attached, so that events must name their node. */
bool repl_nodes_several(const struct repl_nodes *n);
void repl_nodes_list(struct repl_nodes *n, struct buf *to);

void repl_nodes_reattach(struct repl_nodes *n, bool on); /* sets the option, also for nodes that are already lost */
/* Attaches again to a node that is lost before the loop_now() time `wanted_by`. */
void repl_nodes_expect(struct repl_nodes *n, int64_t wanted_by);

/* The timer calls these in this order. Both return the loop_now() time of the next call; -1: none is needed. */
int64_t repl_nodes_tick(struct repl_nodes *n);  /* renews leases */
int64_t repl_nodes_retry(struct repl_nodes *n); /* attaches to lost nodes */

/* Return the layers below, for the parts that send requests to the nodes and show the nodes' events in order. */
struct session_set *repl_nodes_run(struct repl_nodes *n);
struct peers *repl_nodes_peers(struct repl_nodes *n);
struct node_merge *repl_nodes_together(struct repl_nodes *n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attaches to the nodes of the interactive mode, detaches from them, and attaches to lost nodes again. One of the nodes
 * is the current one, to which :commands send their requests. Batches and notes of the nodes go into the scrollback.
 * All other messages of nodes go to handlers.
 */
#ifndef ETRACE_REPL_NODES_H
#define ETRACE_REPL_NODES_H

#include "../trace/session_set.h"
#include "../trace/node_merge.h"
#include "repl_base.h"

struct repl_nodes;

/* Handlers for messages of nodes. All must be set. They must not wait, because the loop calls them. */
struct repl_nodes_handlers {
    void *data;
    void (*ready)(void *data, struct peer *p); /* the node is attached; etrace measures its clock after this call */
    void (*armed)(void *data, struct peer *p, const struct arm_result *result);
    /* The node has refused the request to trace the probes. */
    void (*refused)(void *data, struct peer *p, const struct err *e);
    /* The node has answered a request of another part. */
    void (*answer)(void *data, const struct peer *p, const struct session_reply *reply);
};

enum repl_wish {
    WISH_TYPED,   /* the user has named the node */
    WISH_DEFAULT, /* no node was named, so it is the default one */
    WISH_AGAIN,   /* etrace retries after the node was lost */
};

struct repl_nodes *repl_nodes_new(struct repl_base *base, const struct repl_nodes_handlers *handlers);
void repl_nodes_free(struct repl_nodes *n); /* closes all sessions without waiting; accepts NULL */

/* Begins to attach to a node. `name` NULL means the default node. Returns false, with an error, if it cannot begin. */
bool repl_nodes_attach(struct repl_nodes *n, const char *name, enum repl_wish wish, struct err *e);
void repl_nodes_detach(struct repl_nodes *n,
                       struct peer *p); /* returns when the last events of the node have arrived */
/* Detaches from all nodes, and attaches to them again with the current options. */
void repl_nodes_reopen(struct repl_nodes *n);
/* Detaches from all nodes, and waits until their last events have arrived. */
void repl_nodes_leave(struct repl_nodes *n);
bool repl_nodes_are_leaving(const struct repl_nodes *n); /* returns true after repl_nodes_leave() was called */

/*
 * Finds a node that is attached or CONNECTING, by its full name or by the part before the @. Returns NULL if there is
 * none.
 */
struct peer *repl_nodes_find(struct repl_nodes *n, const char *name);
/* Returns the current node, or NULL if it is not attached. */
struct peer *repl_nodes_current(struct repl_nodes *n);
/* Returns the name of the current node, even if it is not attached, or NULL if there is no current node. */
const char *repl_nodes_current_name(struct repl_nodes *n);
void repl_nodes_choose(struct repl_nodes *n, const struct peer *p);
/*
 * Returns a number that changes whenever another node becomes current, or a node is lost or detached. Cached answers
 * are outdated when it changes.
 */
unsigned repl_nodes_epoch(const struct repl_nodes *n);

size_t repl_nodes_attached(const struct repl_nodes *n);
bool repl_nodes_attaching(const struct repl_nodes *n); /* returns true while etrace is attaching to a node */
bool repl_nodes_expected(const struct repl_nodes *n);  /* returns true if a node is attached or will be attached */
/* Returns true if each node is attached or will be attached again. */
bool repl_nodes_has_all(const struct repl_nodes *n);
/* Returns true if more than one node has been attached, so that each event must be shown with its node. */
bool repl_nodes_several(const struct repl_nodes *n);
void repl_nodes_list(struct repl_nodes *n, struct buf *to);

/* Applies a change of :reattach to the nodes that are lost already. */
void repl_nodes_reattach(struct repl_nodes *n);
/* Attaches again to nodes that are lost before the loop_now() time `wanted_by`, even with :reattach off. */
void repl_nodes_expect(struct repl_nodes *n, int64_t wanted_by);

/*
 * The timer calls repl_nodes_tick(), then repl_nodes_retry(). Both return the loop_now() time of the next call; -1:
 * none is needed.
 */
int64_t repl_nodes_tick(struct repl_nodes *n);  /* renews the leases of the nodes */
int64_t repl_nodes_retry(struct repl_nodes *n); /* attaches to lost nodes */

/*
 * Return the parts of the floors below, for callers that send requests to the nodes or show events of several nodes in
 * order.
 */
struct session_set *repl_nodes_run(struct repl_nodes *n);
struct peers *repl_nodes_peers(struct repl_nodes *n);
struct node_merge *repl_nodes_together(struct repl_nodes *n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of the interactive mode: attaching to them, leaving them, attaching again, and which one :commands ask.
 * Their batches and notes go into the scrollback. Every other message of a node goes to the handlers.
 */
#ifndef ETRACE_REPL_NODES_H
#define ETRACE_REPL_NODES_H

#include "../trace/session_set.h"
#include "../trace/node_merge.h"
#include "repl_base.h"

struct repl_nodes;

/* The loop calls these handlers, so they never wait. All must be set. */
struct repl_nodes_handlers {
    void *data;
    void (*ready)(void *data, struct peer *p); /* the node is attached; its clock is measured after this call */
    void (*armed)(void *data, struct peer *p, const struct arm_result *result);
    void (*refused)(void *data, struct peer *p, const struct err *e); /* the node refused the request */
    /* the node answered a request of another file */
    void (*answer)(void *data, const struct peer *p, const struct session_reply *reply);
};

enum repl_wish {
    WISH_TYPED,   /* the user named the node */
    WISH_DEFAULT, /* the user named no node */
    WISH_AGAIN,   /* a retry */
};

struct repl_nodes *repl_nodes_new(struct repl_base *base, const struct repl_nodes_handlers *handlers);
void repl_nodes_free(struct repl_nodes *n); /* leaves all nodes at once; accepts NULL */

/* Begins to attach; NULL as the name: the default node. false: this is not possible, e says why. */
bool repl_nodes_attach(struct repl_nodes *n, const char *name, enum repl_wish wish, struct err *e);
void repl_nodes_detach(struct repl_nodes *n, struct peer *p); /* waits until the last events are here */
/* Leaves all and attaches again with the current options. */
void repl_nodes_reopen(struct repl_nodes *n);
void repl_nodes_leave(struct repl_nodes *n); /* leaves all nodes, and waits until their last events are here */
bool repl_nodes_are_leaving(const struct repl_nodes *n); /* repl_nodes_leave() has begun */

/* A node that is attached or will be, by its full name or the part before the @. NULL: there is none. */
struct peer *repl_nodes_find(struct repl_nodes *n, const char *name);
/* The node that :commands ask. current() is NULL while that node is not attached. */
struct peer *repl_nodes_current(struct repl_nodes *n);
/* The name of that node even while it is not attached; NULL: there is none. */
const char *repl_nodes_current_name(struct repl_nodes *n);
void repl_nodes_choose(struct repl_nodes *n, const struct peer *p);
/* Changes when another node becomes current, and when a node is detached or lost: cached answers are outdated. */
unsigned repl_nodes_epoch(const struct repl_nodes *n);

size_t repl_nodes_attached(const struct repl_nodes *n);
bool repl_nodes_attaching(const struct repl_nodes *n); /* attaching to some node has not ended yet */
bool repl_nodes_has_all(const struct repl_nodes *n);   /* each node is attached or will be again */
bool repl_nodes_several(const struct repl_nodes *n); /* several nodes were attached so far, so events name their node */
void repl_nodes_list(struct repl_nodes *n, struct buf *to);

void repl_nodes_reattach(struct repl_nodes *n, bool on);         /* sets the option, also for nodes that are lost */
void repl_nodes_expect(struct repl_nodes *n, int64_t wanted_by); /* reattaches a node that is lost before `wanted_by` */

/* The timer calls these in this order. Both return when to call again; -1: no need. */
int64_t repl_nodes_tick(struct repl_nodes *n);  /* leases */
int64_t repl_nodes_retry(struct repl_nodes *n); /* lost nodes */

/* The layers below, for the parts that arm the nodes and show their events in order. */
struct session_set *repl_nodes_run(struct repl_nodes *n);
struct peers *repl_nodes_peers(struct repl_nodes *n);
struct node_merge *repl_nodes_together(struct repl_nodes *n);

#endif

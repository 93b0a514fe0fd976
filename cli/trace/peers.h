/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the nodes of a command by its options, attaches to them, and drives one session for each on the ctx's loop. The
 * command gives the handlers, which must not wait.
 *
 * The nodes are independent: each is found, connected to and attached to while the others go on.
 *
 *   FREE        unused
 *   CONNECTING  a thread looks for the node and shakes hands with it (knock.h)
 *   BOOTING     the companion is being loaded into the node
 *   LISTING     --cluster: the node is asked for the nodes that it is connected to
 *   UP          the session answers
 *   LEAVING     the session is ending; the remaining events still arrive
 *   AWAY        --reattach: the node is not there; etrace tries again every second
 *   OVER        the session has ended, the peer failed (`why`), or the command left it before it was UP
 *
 * Only move_peer() in peers.c changes the state, on the loop's thread.
 */
#ifndef ETRACE_PEERS_H
#define ETRACE_PEERS_H

#include "../events/event.h"
#include "../ground/buf.h"
#include "../node/session.h"
#include "ctx.h"
#include "settings.h"
#include "target.h"

enum peer_state { PEER_FREE, PEER_CONNECTING, PEER_BOOTING, PEER_LISTING, PEER_UP, PEER_LEAVING, PEER_AWAY, PEER_OVER };

/* The reason why the peer exists. It decides what a failure to attach means. */
enum peer_wish {
    PEER_NAMED,   /* named by the options; two names of the same node are one peer */
    PEER_ADDED,   /* added by peers_attach() */
    PEER_CLUSTER, /* found by --cluster; its failure is only a warning, unless `all_of_cluster` is set */
    /* a hidden node that --cluster found; if no epmd knows the node, it is probably a tool, and is skipped silently */
    PEER_HIDDEN,
};

struct peer {
    struct peers *peers;
    enum peer_state state;
    enum peer_wish wish;
    struct session *session; /* set from BOOTING on; an AWAY or OVER peer has its failed session, or NULL */
    struct loop_fd fd;
    unsigned index;
    bool came;         /* the peer was UP at some time */
    bool late;         /* the peer was AWAY at some time */
    bool own_cookie;   /* the node accepted our own cookie */
    unsigned refusals; /* consecutive refusals since the peer was last UP */
    char *name;        /* the name as the user wrote it; once attached, the full name */
    struct target *target;
    /* the thread that connects, while the peer is CONNECTING or retries while AWAY; NULL: none runs */
    struct knock *knock;
    struct loop_fd answer;
    int64_t next;     /* AWAY: loop_now() time of the next attempt to attach */
    struct err why;   /* OVER, AWAY: why the peer failed; status 0: it did not fail */
    struct buf *into; /* gets the answer to the request of peer_request(); NULL: no answer is expected */
    uint32_t asked;
    struct err refusal; /* the node's refusal of the request of peer_request(); status 0: none */
    struct buf listed;  /* LISTING: the answer with the nodes that this node is connected to */
};

/*
 * Consecutive refusals after which etrace gives up on a node: each attempt costs the node memory and a line in its log.
 */
#define PEERS_REFUSALS 5
#define PEERS_MAX EVENT_NODES /* limit for the nodes of one command: as many as a pipeline takes */

/* Each handler may be NULL. */
struct peers_handlers {
    void *data;
    void (*ready)(void *data, struct peer *p); /* the peer is UP */
    void (*batch)(void *data, struct peer *p, const void *batch, size_t len);
    void (*reply)(void *data, struct peer *p, const struct session_reply *reply);
    void (*failed)(void *data, struct peer *p, const struct err *e); /* the peer is OVER, or AWAY and will be retried */
    void (*time)(void *data, struct peer *p, const struct session_time *time);
    void (*progress)(void *data, struct peer *p, int64_t done, int64_t all); /* if NULL, peer_progress() is called */
};

struct peers {
    struct ctx *ctx;
    struct peers_handlers handlers;
    struct peer *items; /* an array of PEERS_MAX that never moves */
    size_t count;
    const struct node_opts *node; /* the options, for nodes that --cluster finds */
    bool opening;                 /* peers_open() runs or has failed, so failed() is not called unless `each` is set */
    bool reattach;
    /*
     * A command sets these two after peers_begin(). `each`: a node that cannot be attached fails alone: failed()
     * reports it, and peers_open() succeeds. `all_of_cluster`: a node that --cluster finds fails like a named one.
     */
    bool each, all_of_cluster;
    bool warned;                    /* a warning about the mode of the cookie file was printed */
    bool own_cookie;                /* the member own_cookie of the peer that has listed its cluster last */
    struct session_options options; /* options for peers that are added later */
    struct str *redact;
};

void peers_begin(struct peers *ps, struct ctx *ctx, const struct peers_handlers *handlers); /* begins with no peer */

/*
 * Begins to attach to every node that the options name. If they name none, begins to attach to target_default(), or
 * else to the only local node. With --cluster, also attaches to the nodes that these nodes are connected to. Borrows
 * the options until peers_close(). Returns false if the options are invalid, or a thread cannot be started.
 */
bool peers_start(struct peers *ps, const struct node_opts *o, const struct session_options *session, struct err *e);
/* Returns true while a node that was never AWAY is CONNECTING, BOOTING or LISTING. */
bool peers_attaching(const struct peers *ps);

/*
 * Calls peers_start(), and peers_step() until each node is UP or AWAY. Returns false if a node has failed, with its
 * error, which no handler reports; with `each`, only if peers_start() has failed or a signal has come. Never call it in
 * a handler.
 */
bool peers_open(struct peers *ps, const struct node_opts *o, const struct session_options *session, struct err *e);
/* Closes all sessions at once; accepts a struct that failed to open or never began. */
void peers_close(struct peers *ps);

/*
 * Adds a node while other nodes are attached; ready() or failed() reports the result. A node that was attached before
 * keeps its index. Returns NULL, with an error, if the node is attached already or there are too many nodes.
 */
struct peer *peers_attach(struct peers *ps, const struct node_opts *o, const char *name,
                          const struct session_options *session, struct err *e);
/* Begins to leave the node; peer_is_leaving() is true until the node has confirmed the end. */
void peer_detach(struct peer *p);

/* Returns true if the peer has a session that has not failed: BOOTING to LEAVING. */
bool peer_is_there(const struct peer *p);
bool peer_is_leaving(const struct peer *p);
/* Returns the next peer after `p` (NULL: the first one) for which peer_is_there(); NULL: no further peer. */
struct peer *peers_next(const struct peers *ps, const struct peer *p);
bool peers_several(const struct peers *ps); /* returns true if more than one peer is not FREE */
/*
 * Returns true if a command about one of the nodes must name it. A command without a name is about the only node of
 * this host, or about $ETRACE_NODE.
 */
bool peers_need_names(const struct peers *ps);
/*
 * Fills in options that lead to the node of the peer alone. `name` is the peer's name; *ret borrows the pointer to it,
 * and what the options of the command refer to.
 */
void peers_alone(const struct peers *ps, const struct peer *p, const char *const *name, struct node_opts *ret);
const char *peer_name(const struct peer *p); /* NULL: not known yet */

/*
 * Sends a request: one encoded term with its version byte 131. The loop appends the answer to *into. Returns false if
 * the connection is lost.
 */
bool peer_request(struct peer *p, struct str request, int timeout_ms, struct buf *into, struct err *e);
bool peer_waits(const struct peer *p); /* returns true while the answer to peer_request() may still come */
/* Returns true if the answer has come. After false, e says why there is no answer. */
bool peer_answer(const struct peer *p, struct err *e);

/* Calls peer_request(), then peers_step() until the answer has come, then peer_answer(). Never call it in a handler. */
bool peer_ask(struct peer *p, struct str request, int timeout_ms, struct buf *into, struct err *e);

/*
 * Returns true if the error of a node only says that nothing on it matches, and --cluster is given: not every node of a
 * cluster needs what the command asks for.
 */
bool peers_may_lack(const struct peers *ps, const struct err *e);
/* With several nodes, prefixes an error of the node with its name, unless the error has the name already. */
void peer_prefix_error(const struct peer *p, struct err *e);
/* Does that. If peers_may_lack(), also warns that the node is left out, and returns true. */
bool peer_leave_out(const struct peer *p, struct err *e);

void peer_progress(struct peer *p, int64_t done, int64_t all); /* shows how many functions are armed */
/*
 * Treats the peer as failed, for a caller that could not send a request to it. A no-op if the peer has failed already.
 */
void peer_fail(struct peer *p, const struct err *e);

/*
 * Renews leases, gives up on silent nodes and retries those that are AWAY. *ret_next is the time of the next call; -1:
 * after the next event. Returns false if no peer is left.
 */
bool peers_tick(struct peers *ps, int64_t *ret_next);

/*
 * Calls peers_tick(), and serves the loop of the ctx once, at most until `until` (-1: no limit). Returns false if no
 * peer is left.
 */
bool peers_step(struct peers *ps, int64_t until);
/* Returns true if every node has confirmed that nothing of etrace is left on it. */
bool peers_gone(const struct peers *ps);
void peers_pull(struct peers *ps, bool allowed);
void peers_stop(struct peers *ps); /* begins to leave all nodes; the remaining events still arrive */
/* Calls peers_stop(), then peers_step() until each node has confirmed the end or does not answer. */
void peers_leave(struct peers *ps);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes that a command is attached to, with one session each. Finds them by the options, attaches to them and
 * drives their sessions on the ctx's loop. The command gives the handlers, which must not wait.
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
 *   OVER        the node has confirmed the end, or the peer failed: `why`
 *
 * Only move_peer() in peers.c changes the state, on the loop's thread.
 */
#ifndef ETRACE_PEERS_H
#define ETRACE_PEERS_H

#include "../ground/buf.h"
#include "../node/session.h"
#include "ctx.h"
#include "settings.h"
#include "target.h"

enum peer_state { PEER_FREE, PEER_CONNECTING, PEER_BOOTING, PEER_LISTING, PEER_UP, PEER_LEAVING, PEER_AWAY, PEER_OVER };

/* Why the peer exists. It decides how a failure to attach is handled. */
enum peer_wish {
    PEER_NAMED,   /* named by the options; two names of the same node are one peer */
    PEER_ADDED,   /* added by peers_attach() */
    PEER_CLUSTER, /* found by --cluster; its failure is only a warning */
    /* a hidden node that --cluster found; if no epmd knows the node, it is probably a tool, and is skipped silently */
    PEER_HIDDEN,
};

struct peer {
    struct peers *peers;
    enum peer_state state;
    enum peer_wish wish;
    struct session *session; /* from BOOTING on; an AWAY or OVER peer keeps its failed session, or has NULL */
    struct loop_fd fd;
    unsigned index;
    bool came;         /* the peer was UP at some time */
    bool late;         /* the peer was AWAY at some time */
    bool own_cookie;   /* the node accepted our own cookie */
    unsigned refusals; /* consecutive refusals since the peer was last UP */
    char *name;        /* the name that the user gave; the full name once attached */
    struct target *target;
    struct knock *knock; /* connects while the peer is CONNECTING, and during each retry while it is AWAY */
    struct loop_fd answer;
    int64_t next;     /* AWAY: loop_now() time of the next attempt */
    struct err why;   /* OVER, AWAY: the failure; status 0: none */
    struct buf *into; /* peer_request(): where the answer goes; NULL: no answer is expected */
    uint32_t asked;
    struct err refusal; /* the node's refusal of that request; status 0: none */
    struct buf listed;  /* LISTING: the answer */
};

/*
 * Consecutive refusals after which etrace gives up on a node: each attempt costs the node memory and a line in its log.
 */
#define PEERS_REFUSALS 5
#define PEERS_MAX 256 /* nodes of one command: as many as a pipeline takes */

/* Each handler may be NULL. */
struct peers_handlers {
    void *data;
    void (*ready)(void *data, struct peer *p); /* the peer is UP */
    void (*batch)(void *data, struct peer *p, const void *batch, size_t len);
    void (*reply)(void *data, struct peer *p, const struct session_reply *reply);
    void (*failed)(void *data, struct peer *p, const struct err *e); /* the peer is OVER, or AWAY and will be retried */
    void (*time)(void *data, struct peer *p, const struct session_time *time);
    void (*progress)(void *data, struct peer *p, int64_t done, int64_t all); /* NULL: peer_progress() */
};

struct peers {
    struct ctx *ctx;
    struct peers_handlers handlers;
    struct peer *items; /* an array of PEERS_MAX that never moves */
    size_t count;
    const struct node_opts *node; /* the options, for nodes that --cluster finds */
    bool opening;                 /* peers_open() runs, or has returned an error: failed() is not called */
    bool reattach;
    bool warned;                    /* a warning about the mode of the cookie file was printed */
    bool own_cookie;                /* own_cookie of the last peer that listed its cluster */
    struct session_options options; /* options for peers that are added later */
    struct str *redact;
};

void peers_begin(struct peers *ps, struct ctx *ctx, const struct peers_handlers *handlers); /* begins with no peer */

/*
 * Begins to attach to every node that the options name; without a name to target_default(), else to the only local
 * node. With --cluster also attaches to the nodes that these nodes are connected to. Borrows the options until
 * peers_close(). Returns false if the options are invalid, or a thread cannot be started.
 */
bool peers_start(struct peers *ps, const struct node_opts *o, const struct session_options *session, struct err *e);
/* Returns true while a node that was never AWAY is CONNECTING, BOOTING or LISTING. */
bool peers_attaching(const struct peers *ps);

/*
 * Calls peers_start() and steps until each node is UP or AWAY. Returns false with the error of a node that failed,
 * which no handler reports. Never call it in a handler.
 */
bool peers_open(struct peers *ps, const struct node_opts *o, const struct session_options *session, struct err *e);
/* Closes all sessions at once; accepts a struct that failed to open or never began. */
void peers_close(struct peers *ps);

/*
 * Adds a node while the others run; ready() or failed() reports the result. A node that was there before gets its old
 * place again. Returns NULL if the node is attached already, or there are too many nodes.
 */
struct peer *peers_attach(struct peers *ps, const struct node_opts *o, const char *name,
                          const struct session_options *session, struct err *e);
void peer_detach(struct peer *p); /* begins to leave the node; peer_is_leaving() until that is done */

/* Returns true if the peer has a session that has not failed: BOOTING to LEAVING. */
bool peer_is_there(const struct peer *p);
bool peer_is_leaving(const struct peer *p);
/* Returns the next peer after `p` (NULL: the first one) for which peer_is_there(); NULL: no further peer. */
struct peer *peers_next(const struct peers *ps, const struct peer *p);
bool peers_several(const struct peers *ps);  /* returns true if more than one peer is not FREE */
const char *peer_name(const struct peer *p); /* NULL: not known yet */

/*
 * Sends a request: one term with its byte 131. The answer is appended to *into by the loop. Returns false if the
 * connection is lost.
 */
bool peer_request(struct peer *p, struct str request, int timeout_ms, struct buf *into, struct err *e);
bool peer_waits(const struct peer *p); /* returns true if the answer has not come, but still may */
/* Returns true if the answer is in *into. After false, e says why there is no answer. */
bool peer_answer(const struct peer *p, struct err *e);

/* Calls peer_request(), steps until the answer is there, and calls peer_answer(). Never call it in a handler. */
bool peer_ask(struct peer *p, struct str request, int timeout_ms, struct buf *into, struct err *e);

void peer_progress(struct peer *p, int64_t done, int64_t all); /* shows how many functions are armed */
/* Fails the peer of a caller that could not send a request. A no-op if the peer has failed already. */
void peer_fail(struct peer *p, const struct err *e);

/*
 * Renews leases, gives up on silent nodes and retries those that are AWAY. *ret_next is the time of the next call; -1:
 * after the next event. Returns false if no peer is left.
 */
bool peers_tick(struct peers *ps, int64_t *ret_next);

/*
 * Calls peers_tick() and serves the ctx's loop once, until `until` at most (-1: no limit). Returns false if no peer is
 * left.
 */
bool peers_step(struct peers *ps, int64_t until);
/* Returns true if every node has confirmed that nothing of etrace is left on it. */
bool peers_gone(const struct peers *ps);
void peers_pull(struct peers *ps, bool allowed);
void peers_stop(struct peers *ps);  /* begins to leave all; the remaining events still arrive */
void peers_leave(struct peers *ps); /* peers_stop(), then steps until all peers have left or do not answer */

#endif

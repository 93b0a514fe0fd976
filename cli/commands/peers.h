/*
 * The nodes that a command is attached to: one session each, found by the options that every such command takes, driven by
 * the ctx's loop. The command gives the handlers, which never wait.
 *
 * The nodes are independent of each other: each is found, connected to and attached to by itself while the others go on.
 *
 *   FREE        nobody has this place
 *   CONNECTING  a thread looks for the node and shakes hands with it (knock.h)
 *   BOOTING     the companion is on its way to the node
 *   LISTING     --cluster: the node is asked for the nodes that it is connected to
 *   UP          the session answers
 *   LEAVING     the session is to end; events that are left still come
 *   AWAY        --reattach: the node is not there; it is tried again every second
 *   OVER        the node has confirmed the end, or the peer failed: `why`
 *
 * Only peers.c moves a peer, by one function, on the loop's thread.
 */
#ifndef ETRACE_PEERS_H
#define ETRACE_PEERS_H

#include "../ground/buf.h"
#include "../node/session.h"
#include "ctx.h"
#include "groups.h"
#include "target.h"

enum peer_state { PEER_FREE, PEER_CONNECTING, PEER_BOOTING, PEER_LISTING, PEER_UP, PEER_LEAVING, PEER_AWAY, PEER_OVER };

/* Why there is this peer, which decides what a failure to attach means. */
enum peer_wish {
    PEER_NAMED,   /* the options name it; two names of one node are one peer */
    PEER_ADDED,   /* peers_attach() */
    PEER_CLUSTER, /* --cluster: its failure is a warning */
    PEER_HIDDEN,  /* the same; a hidden node that no epmd knows is somebody's tool, and passed over in silence */
};

struct peer {
    struct peers *peers;
    enum peer_state state;
    enum peer_wish wish;
    struct session *session; /* from BOOTING on; of an AWAY or OVER peer the one that failed, or NULL */
    struct loop_fd fd;
    unsigned index;
    bool came; /* it was UP at some time */
    bool late; /* it was AWAY before */
    unsigned refusals; /* one after the other since it was up */
    char *name; /* as it was given, in full once it was attached to */
    struct target *target;
    struct knock *knock; /* at work while it is CONNECTING, and now and then while it is AWAY */
    struct loop_fd answer;
    int64_t next; /* AWAY: when to try */
    struct err why; /* OVER, AWAY: status 0: it has not failed */
    struct buf *into; /* peer_request(): where the answer goes; NULL: none is waited for */
    uint32_t asked;
    struct err refusal; /* of that request; status 0: none */
    struct buf listed;  /* LISTING: the answer */
};

#define PEERS_REFUSALS 5 /* by a node that is there, then it is not tried any more: each costs it a line in its log, and memory */
#define PEERS_MAX 256 /* of one command: as many nodes as a pipeline takes */

/* Any may be NULL. */
struct peers_handlers {
    void *data;
    void (*ready)(void *data, struct peer *p); /* it is UP */
    void (*batch)(void *data, struct peer *p, const void *batch, size_t len);
    void (*reply)(void *data, struct peer *p, const struct session_reply *reply);
    void (*failed)(void *data, struct peer *p, const struct err *e); /* it is OVER; or AWAY: it will be tried again */
    void (*time)(void *data, struct peer *p, const struct session_time *time);
    void (*progress)(void *data, struct peer *p, int64_t done, int64_t all); /* NULL: peer_progress() */
};

struct peers {
    struct ctx *ctx;
    struct peers_handlers handlers;
    struct peer *items; /* room for PEERS_MAX; they stay where they are */
    size_t count;
    const struct node_opts *node; /* of --cluster, for those that are found later */
    bool reattach;
    struct session_options options; /* for those who come later */
    struct str *redact;
};

void peers_begin(struct peers *ps, struct ctx *ctx, const struct peers_handlers *handlers); /* nobody yet */

/*
 * Begins to attach to every node that the options name, else to $ETRACE_NODE, else to the only local node; with --cluster also
 * to those that these are connected to. The options are borrowed until peers_close(). false: they make no sense.
 */
bool peers_start(struct peers *ps, const struct node_opts *o, const struct session_options *session, struct err *e);
bool peers_attaching(const struct peers *ps); /* a node that was wanted from the beginning is neither UP nor AWAY nor OVER yet */

/* The same, and steps until each is UP or AWAY. false: one failed. For commands, never in a handler. */
bool peers_open(struct peers *ps, const struct node_opts *o, const struct session_options *session, struct err *e);
void peers_close(struct peers *ps); /* at once; accepts what failed to open, and what never began */

/*
 * One more node while the others run, until ready() or failed(). A node that was there before gets its old place. NULL: it is
 * attached already, or there are too many.
 */
struct peer *peers_attach(struct peers *ps, const struct node_opts *o, const char *name, const struct session_options *session,
                          struct err *e);
void peer_detach(struct peer *p); /* begins to leave the node; peer_is_leaving() as long as that goes on */

bool peer_is_there(const struct peer *p); /* there is a session that has not failed: BOOTING to LEAVING */
bool peer_is_leaving(const struct peer *p);
struct peer *peers_next(const struct peers *ps, const struct peer *p); /* the first that is there behind p, of all where p is NULL; NULL: none */
bool peers_several(const struct peers *ps); /* there is more than one that is not FREE */
const char *peer_name(const struct peer *p); /* NULL: not known yet */

/* Sends a request, one term with its 131, whose answer is appended to *into by the loop. false: the connection is lost. */
bool peer_request(struct peer *p, struct str request, int timeout_ms, struct buf *into, struct err *e);
bool peer_waits(const struct peer *p); /* no answer has come, and one may */
bool peer_answer(const struct peer *p, struct err *e); /* true: it is in *into; false: why not */

/* The three, and steps until the answer has come. For commands, never in a handler. */
bool peer_ask(struct peer *p, struct str request, int timeout_ms, struct buf *into, struct err *e);

void peer_progress(struct peer *p, int64_t done, int64_t all); /* shows how many functions are armed */
void peer_fail(struct peer *p, const struct err *e); /* what was sent to it has failed; harmless when that is known */

/*
 * Renews leases, gives up on silent nodes and tries those that are AWAY; *ret_next is when to call again, -1: when something
 * happens. false: nobody is left.
 */
bool peers_tick(struct peers *ps, int64_t *ret_next);

/* The same, and serves the ctx's loop once, until `until` (-1: none) at most. false: nobody is left. */
bool peers_step(struct peers *ps, int64_t until);
bool peers_gone(const struct peers *ps); /* every node has confirmed that nothing is left on it */
void peers_pull(struct peers *ps, bool allowed);
void peers_stop(struct peers *ps);  /* begins to leave all; what is left still comes */
void peers_leave(struct peers *ps); /* the same, and steps until all have, for a moment at most */

#endif

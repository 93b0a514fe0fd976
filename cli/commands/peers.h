/*
 * The nodes that a command is attached to: one session each, found by the options that every such command takes, driven by
 * the ctx's loop. What is done there is the command's affair: it gives the handlers.
 *
 * peers_open() waits until every node is ready; peer_ask() waits for one answer; everything else goes by the loop: peer_listen()
 * once, then peers_step() again and again. A peer that failed has been reported through the handler and is over, unless
 * --reattach was given and the command takes nodes up again (handlers.back): then it is away until it answers again.
 */
#ifndef ETRACE_PEERS_H
#define ETRACE_PEERS_H

#include "../node/session.h"
#include "ctx.h"
#include "groups.h"
#include "target.h"

struct peer {
    struct peers *peers;
    struct session *session;
    struct loop_fd fd;
    unsigned index;
    bool over; /* gone, or failed */
    bool up;   /* its session was ready; until failed() has returned */
    bool away; /* --reattach: not there, but may come */
    unsigned refusals; /* one after the other since it was up */
    bool met;  /* peers_attach() has brought a session of it: the place stays its own, for it may come back */
    char *name; /* as it was given, in full once it was attached to */
    struct target *target;
    struct knock *knock;   /* at work while it is away, or being attached to */
    struct loop_fd answer;
    int64_t next; /* try */
    struct err why; /* it could not be attached to, the last time */
};

#define PEERS_REFUSALS 5 /* by a node that is there, then it is not tried any more: each costs it a line in its log, and memory */
#define PEERS_MAX 256 /* of one command: as many nodes as a pipeline takes */

/* Any may be NULL. */
struct peers_handlers {
    void *data;
    void (*ready)(void *data, struct peer *p); /* of peers_attach() */
    void (*batch)(void *data, struct peer *p, const void *batch, size_t len);
    void (*reply)(void *data, struct peer *p, const struct session_reply *reply);
    void (*failed)(void *data, struct peer *p, const struct err *e); /* p->away: it will be tried again */
    void (*time)(void *data, struct peer *p, const struct session_time *time);
    void (*back)(void *data, struct peer *p); /* it was away, and its session is ready and listened to */
};

struct peers {
    struct ctx *ctx;
    struct peers_handlers handlers;
    struct peer *items; /* room for PEERS_MAX; they stay where they are */
    size_t count;
    struct session_options options; /* for those who come later */
    struct str *redact;
    struct listed *listing; /* where an answer goes, while a node is asked whom it is connected to */
};

void peers_begin(struct peers *ps, struct ctx *ctx, const struct peers_handlers *handlers); /* nobody yet */

/*
 * Attaches to every node that the options name, else to $ETRACE_NODE, else to the only local node; with --cluster also to
 * those that the first one is connected to, and what cannot be attached of these is warned of. A node named twice is one.
 * false: nobody is listened to.
 */
bool peers_open(struct peers *ps, const struct node_opts *o, const struct session_options *session, struct err *e);
void peers_close(struct peers *ps); /* at once; accepts what failed to open, and what never began */

/*
 * One more node while the others run: all of it goes by the loop, until ready() or failed(), which has no session where there
 * was no connection. A node that was there before gets its old place. NULL: it is attached already, or there are too many.
 */
struct peer *peers_attach(struct peers *ps, const struct node_opts *o, const char *name, const struct session_options *session,
                          struct err *e);
void peer_detach(struct peer *p); /* stops, and waits a moment until nothing is left there; what is left still comes */

/* A request (one term with its 131), and the wait for its answer, which goes through the handler. */
bool peer_ask(struct peer *p, struct str request, int timeout_ms, struct err *e);

void peer_listen(struct peer *p);
const char *peer_name(const struct peer *p);
void peer_fail(struct peer *p, const struct err *e);

/* What was asked of it has failed with `e`: true when its connection is lost, and it is away from now on, which has been said. */
bool peer_missed(struct peer *p, const struct err *e);

/*
 * Renews leases, gives up on silent nodes and tries those that are away; *ret_next is when to call again, -1: when something
 * happens. false: nobody is left.
 */
bool peers_tick(struct peers *ps, int64_t *ret_next);

/* The same, and serves the ctx's loop once, until `until` (-1: none) at most. false: nobody is left. */
bool peers_step(struct peers *ps, int64_t until);
bool peers_gone(const struct peers *ps); /* every node has confirmed that nothing is left on it */
void peers_pull(struct peers *ps, bool allowed);
void peers_stop(struct peers *ps);  /* by the loop: what is left still comes */
void peers_leave(struct peers *ps); /* at once, waiting for all, but for none longer than a moment */

#endif

/*
 * Arms and re-arms the nodes of a command: one session on each, which stays while the expressions change. The caller
 * drives the nodes through `peers` (peers_step, peers_stop, …), and the handlers report the results. Nothing here
 * waits, and no node waits for another.
 */
#ifndef ETRACE_RUN_H
#define ETRACE_RUN_H

#include "../node/arm.h"
#include "groups.h"
#include "peers.h"
#include "prepare.h"

/* The arguments are borrowed until the handler returns. */
struct run_handlers {
    void *data;
    void (*batch)(void *data, struct peer *p, const void *batch, size_t len);
    void (*ready)(void *data, struct peer *p); /* the session answers */
    void (*chosen)(void *data, struct peer *p, const struct arm_result *result); /* what will be traced; may be NULL */
    /* The result of TRACE; in a dry run that of SELECT. */
    void (*armed)(void *data, struct peer *p, const struct arm_result *result);
    void (*refused)(void *data, struct peer *p, const struct err *e); /* this node refused the request of run_arm() */
    void (*failed)(void *data, struct peer *p, const struct err *e);  /* the peer is OVER or AWAY */
    void (*time)(void *data, struct peer *p, const struct session_time *time); /* may be NULL */
    void (*answer)(void *data, struct peer *p, const struct session_reply *reply); /* any other reply; may be NULL */
};

struct run {
    struct ctx *ctx;
    struct run_handlers handlers;
    struct peers peers;
    /* Set before arming: only figures of calls are shown, so the node may count instead of sending events. */
    bool figures;
    bool hold;    /* set before arming: the node may drop what `filter` hides */
    bool anonymous; /* set before arming: nobody reads the senders of received messages */
    struct str filter; /* of figures and hold: from asked_filter() or asked_hold(); borrowed */
    /* The preparation under way, by the peer's index; NULL: done or refused. A node prepares one thing at a time. */
    struct prepare *arming[PEERS_MAX];
    struct prepare *next[PEERS_MAX]; /* the latest request since then, which begins after the next answer; NULL: none */
};

enum run_how {
    RUN_SIFTS = 1, /* the client filters events, so the node cannot count the limit */
    RUN_HOLDS = 2, /* the node sends no batch until peers_pull() */
};

void run_begin(struct run *r, struct ctx *ctx, const struct run_handlers *handlers); /* without any node */
/* Begins to attach to every node that the options name: peers_start(). */
bool run_start(struct run *r, const struct node_opts *node, const struct limit_opts *limit, unsigned how, struct err *e);
/* Adds one node, like peers_attach(). */
struct peer *run_attach(struct run *r, const struct node_opts *node, const char *name, const struct limit_opts *limit,
                        struct err *e);
/* Whether these options are valid for a session. */
bool run_takes(const struct node_opts *node, const struct limit_opts *limit, struct err *e);
void run_close(struct run *r); /* at once; accepts a struct that failed to open */

/*
 * Prepares every node that is UP (prepare.h), and then traces these expressions and nothing else; a dry run only
 * prepares. Each node ends in armed() or refused(), unless it fails or a later call replaces the request. With a mark
 * (arm.h), probes that are traced already and stay are not touched, even if calls follow each other quickly. Borrows
 * `what` until then and copies the texts.
 */
void run_arm(struct run *r, const struct what_opts *what, const struct texts *texts, struct arm_mark mark);
void run_arm_peer(struct run *r, struct peer *p, const struct what_opts *what, const struct texts *texts, struct arm_mark mark);
void run_disarm(struct run *r);

bool run_arming(const struct run *r); /* some node has not finished arming */
bool run_preparing(const struct run *r); /* some node was not yet asked to trace */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arms and re-arms the nodes of a command: each node has one session, which stays while the expressions change. The
 * caller drives the nodes through `peers` (peers_step, peers_stop, …), and the handlers report the results. Nothing
 * here waits, and no node waits for another.
 */
#ifndef ETRACE_SESSION_SET_H
#define ETRACE_SESSION_SET_H

#include "../node/arm.h"
#include "settings.h"
#include "peers.h"
#include "prepare.h"

/* The arguments are borrowed until the handler returns. */
struct session_set_handlers {
    void *data;
    void (*batch)(void *data, struct peer *p, const void *batch, size_t len);
    void (*ready)(void *data, struct peer *p); /* the session answers */
    /* what will be traced; the handler may be NULL */
    void (*chosen)(void *data, struct peer *p, const struct arm_result *result);
    /* The result of TRACE, or of SELECT in a dry run. */
    void (*armed)(void *data, struct peer *p, const struct arm_result *result);
    /* The node refused the request of session_set_arm(). */
    void (*refused)(void *data, struct peer *p, const struct err *e);
    void (*failed)(void *data, struct peer *p, const struct err *e);           /* the peer is OVER or AWAY */
    void (*time)(void *data, struct peer *p, const struct session_time *time); /* may be NULL */
    /* any other reply; the handler may be NULL */
    void (*answer)(void *data, struct peer *p, const struct session_reply *reply);
};

struct session_set {
    struct ctx *ctx;
    struct session_set_handlers handlers;
    struct peers peers;
    struct plan plan; /* set before starting */
    /* Set before starting; see struct session_options. `leftover` is borrowed; NULL: none. */
    enum companion_variant variant;
    const char *leftover;
    /*
     * The preparation that runs on each peer, by the index of the peer; NULL: none. A node prepares one request at a
     * time.
     */
    struct prepare *arming[PEERS_MAX];
    /* The request that replaces the running preparation of the peer after its next answer; NULL: none. */
    struct prepare *next[PEERS_MAX];
};

void session_set_begin(struct session_set *r, struct ctx *ctx,
                       const struct session_set_handlers *handlers); /* begins with no node */
/* Begins to attach to every node that the options name (peers_start()). */
bool session_set_start(struct session_set *r, const struct node_opts *node, const struct limit_opts *limit,
                       struct err *e);
/* Adds one node (peers_attach()). */
struct peer *session_set_attach(struct session_set *r, const struct node_opts *node, const char *name,
                                const struct limit_opts *limit, struct err *e);
/* Checks that a session accepts these options. */
bool session_set_takes(const struct node_opts *node, const struct limit_opts *limit, struct err *e);
void session_set_close(struct session_set *r); /* closes all sessions at once; accepts a struct that failed to open */

/*
 * Prepares every node that is UP (prepare.h), and then traces these expressions and nothing else; a dry run only
 * prepares. Each node ends in armed() or refused(), unless it fails or a later call replaces the request. With a mark
 * (arm.h), a probe that is traced already and is part of the new request is not changed, even if calls follow each
 * other quickly. Borrows `what` until the preparation ends, and copies the texts.
 */
void session_set_arm(struct session_set *r, const struct what_opts *what, const struct texts *texts,
                     struct arm_mark mark);
void session_set_arm_peer(struct session_set *r, struct peer *p, const struct what_opts *what,
                          const struct texts *texts, struct arm_mark mark);
void session_set_disarm(struct session_set *r);

bool session_set_arming(const struct session_set *r); /* returns true while a node that is UP is being armed */
/* Returns true while a node that is UP is being armed and has not been sent the request TRACE. */
bool session_set_preparing(const struct session_set *r);

#endif

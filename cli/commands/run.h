/*
 * What is traced now, on the nodes that are attached: a session on each, armed with expressions, and armed with others again
 * while it stays. The nodes are driven through `peers` (peers_step, peers_stop, …); what comes of it is told to the handlers.
 * Nothing here waits, and no node waits for another.
 */
#ifndef ETRACE_RUN_H
#define ETRACE_RUN_H

#include "../node/arm.h"
#include "groups.h"
#include "peers.h"
#include "prepare.h"

/* What they are given is borrowed until they return. */
struct run_handlers {
    void *data;
    void (*batch)(void *data, struct peer *p, const void *batch, size_t len);
    void (*ready)(void *data, struct peer *p); /* its session answers */
    void (*chosen)(void *data, struct peer *p, const struct arm_result *result); /* what is going to be traced; may be NULL */
    void (*armed)(void *data, struct peer *p, const struct arm_result *result); /* of a dry run what would be traced */
    void (*refused)(void *data, struct peer *p, const struct err *e); /* this node does not take what run_arm() asked for */
    void (*failed)(void *data, struct peer *p, const struct err *e);  /* the peer is over, or away */
    void (*time)(void *data, struct peer *p, const struct session_time *time); /* may be NULL */
    void (*answer)(void *data, struct peer *p, const struct session_reply *reply); /* to any other request; may be NULL */
};

struct run {
    struct ctx *ctx;
    struct run_handlers handlers;
    struct peers peers;
    bool figures; /* set before arming: nothing but figures of calls is shown, so the node may count instead of sending */
    bool hold;    /* set before arming: what a filter that the node has, too, hides need not come here */
    bool anonymous; /* set before arming: nobody sees who sent a message that is received */
    struct str filter; /* of what it counts or sends: asked_filter(), asked_hold(); borrowed */
    /* By the peer's index: on its way to what was asked for; NULL: it is there, or has refused. A node is asked one thing at a time: */
    struct prepare *arming[PEERS_MAX];
    struct prepare *next[PEERS_MAX]; /* what was asked for since, which begins with the next answer; NULL: nothing */
};

enum run_how {
    RUN_SIFTS = 1, /* events are filtered here, so the node cannot count the limit */
    RUN_HOLDS = 2, /* no batch is to come until peers_pull() */
};

void run_begin(struct run *r, struct ctx *ctx, const struct run_handlers *handlers); /* without a node */
/* Begins to attach to every node that the options name: peers_start(). */
bool run_start(struct run *r, const struct node_opts *node, const struct limit_opts *limit, unsigned how, struct err *e);
/* One more node: as peers_attach(). */
struct peer *run_attach(struct run *r, const struct node_opts *node, const char *name, const struct limit_opts *limit,
                        struct err *e);
bool run_takes(const struct node_opts *node, const struct limit_opts *limit, struct err *e); /* whether sessions can be made so */
void run_close(struct run *r); /* at once; accepts what failed to open */

/*
 * Begins to prepare (prepare.h) every node that is UP, and then to trace that and nothing else; a dry run ends there. Ends in
 * armed() or refused() for each, unless it fails, or something else is asked for meanwhile. With a mark (arm.h) what is traced
 * already, and goes on, is not touched, however soon it is called again. `what` is borrowed until then, the texts are copied.
 */
void run_arm(struct run *r, const struct what_opts *what, const struct texts *texts, struct arm_mark mark);
void run_arm_peer(struct run *r, struct peer *p, const struct what_opts *what, const struct texts *texts, struct arm_mark mark);
void run_disarm(struct run *r);

bool run_arming(const struct run *r); /* some node has not answered yet */
bool run_preparing(const struct run *r); /* and was not asked to trace yet */

#endif

/*
 * What is traced now, on the nodes that are attached: a session on each, armed with expressions, and armed with others again
 * while it stays. The nodes are driven through `peers` (peers_step, peers_stop, …); what comes of it is told to the handlers.
 * Nothing here waits but run_open(), and run_arm() for what the nodes say about what was asked for.
 */
#ifndef ETRACE_RUN_H
#define ETRACE_RUN_H

#include "../node/arm.h"
#include "groups.h"
#include "peers.h"
#include "question.h"

/* What they are given is borrowed until they return. */
struct run_handlers {
    void *data;
    void (*batch)(void *data, struct peer *p, const void *batch, size_t len);
    void (*ready)(void *data, struct peer *p); /* of run_attach(); may be NULL */
    void (*chosen)(void *data, struct peer *p, const struct arm_result *result); /* what is going to be traced; may be NULL */
    void (*armed)(void *data, struct peer *p, const struct arm_result *result);
    void (*refused)(void *data, struct peer *p, const struct err *e); /* this node does not take what run_arm() asked for */
    void (*failed)(void *data, struct peer *p, const struct err *e);  /* the peer is over, or away */
    void (*time)(void *data, struct peer *p, const struct session_time *time); /* may be NULL */
    void (*back)(void *data, struct peer *p); /* one that was away; NULL: nobody is taken up again */
    void (*answer)(void *data, struct peer *p, const struct session_reply *reply); /* to any other request; may be NULL */
};

struct run {
    struct ctx *ctx;
    struct run_handlers handlers;
    struct peers peers;
    struct question question;
    bool figures; /* set before arming: nothing but figures of calls is shown, so the node may count instead of sending */
    bool hold;    /* set before arming: what a filter that the node has, too, hides need not come here */
    bool anonymous; /* set before arming: nobody sees who sent a message that is received */
    struct str filter; /* of what it counts or sends: asked_filter(), asked_hold(); borrowed */
    uint32_t arming[PEERS_MAX]; /* by the peer's index: the request that is not answered yet, 0: none */
};

enum run_how {
    RUN_SIFTS = 1, /* events are filtered here, so the node cannot count the limit */
    RUN_HOLDS = 2, /* no batch is to come until peers_pull() */
};

/* Attaches to every node that the options name. */
bool run_open(struct run *r, struct ctx *ctx, const struct node_opts *node, const struct limit_opts *limit, unsigned how,
              const struct run_handlers *handlers, struct err *e);
/* The same without any node, for run_attach(). */
void run_begin(struct run *r, struct ctx *ctx, const struct run_handlers *handlers);
/* One more node: as peers_attach(). */
struct peer *run_attach(struct run *r, const struct node_opts *node, const char *name, const struct limit_opts *limit,
                        struct err *e);
bool run_takes(const struct node_opts *node, const struct limit_opts *limit, struct err *e); /* whether sessions can be made so */
void run_close(struct run *r); /* at once; accepts what failed to open */

/*
 * Prepares (prepare.h), waiting for each node, and asks the nodes to trace that and nothing else; a dry run ends there. With a
 * mark (arm.h) what is traced already, and goes on, is not touched, however soon it is called again. false: nothing was sent
 * to this node and those behind it.
 */
bool run_arm(struct run *r, const struct what_opts *what, const struct texts *texts, struct arm_mark mark, struct err *e);
bool run_arm_peer(struct run *r, struct peer *p, const struct what_opts *what, const struct texts *texts, struct arm_mark mark,
                  struct err *e);
/* The same, but that a node is lost is no refusal: whoever serves it next is told. */
bool run_arm_or_lose(struct run *r, struct peer *p, const struct what_opts *what, const struct texts *texts, struct arm_mark mark,
                     struct err *e);
void run_disarm(struct run *r);

bool run_arming(const struct run *r); /* some node has not answered yet */

#endif

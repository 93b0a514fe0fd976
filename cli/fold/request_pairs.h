/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs the requests of gen_server, gen_statem and similar processes with their replies.
 *
 * The reference in a request's From identifies it. These events name it: the caller sends the request, the request
 * arrives at the server, a callback begins and ends, a process sends the reply, the caller receives the reply. Each of
 * them may be missing, because it was lost or is not traced. A part of a request's time is known only if both its ends
 * were seen.
 *
 * The callbacks of a process also tell what it was busy with while a request waited.
 *
 * Bounded: at most REQUESTS_OPEN requests are open. The oldest one is given up for a new one.
 */
#ifndef ETRACE_REQUEST_PAIRS_H
#define ETRACE_REQUEST_PAIRS_H

#include "request_key.h"
#include "request_message.h"

#define REQUESTS_OPEN 262144
#define REQUEST_SERVERS 16384
#define REQUEST_SPANS 64
#define REQUEST_NONE UINT32_MAX
#define REQUESTS_LATE 256

struct request_busy {
    enum request_work work;
    uint32_t shape; /* a key */
    bool statem;    /* print call(…) instead of handle_call(…) */
    uint64_t times; /* callbacks */
    int64_t ns;
};

/* A time on a node. */
struct request_time {
    int64_t mono_ns, wall_ns;
    unsigned node;
    bool known, aligned;
};

struct request {
    char ref[64]; /* the digits of the reference without those of its node, which differ between nodes */
    const struct event_node *node; /* of the server if that is known, else of the caller */
    uint32_t server;               /* REQUEST_NONE: not seen */
    uint32_t shape;                /* a key; 0: not seen */
    struct tracee caller;
    const struct event_node *caller_on; /* NULL: a process of a node that is not traced, or unknown */
    bool has_shape, at_server;          /* at_server: the server's side was seen */
    struct request_time asked, arrived, begun, ended, sent, got, gave_up;
    struct request_busy behind; /* what the server did most while the request waited */
    int64_t behind_all_ns;      /* the part of the wait that callbacks explain */
    void *kept;                 /* made by captured(); request_pairs.c frees it with free() */
    struct tracee *replier;     /* the process that replied; NULL: the server, or unknown */
    bool infinite;              /* the caller waits without a timeout */
    bool elixir;                /* the node runs Elixir, or the server's module is one of Elixir */
    bool settled, direct;       /* direct: the callback's result is the reply */
    bool late;                  /* the reply came after the caller had given up */
    bool postponed;             /* a state machine began it again later */
    bool down;                  /* the caller received a 'DOWN' of the server */
    bool given_up;              /* too many requests were open */
    bool blind;                 /* events were lost while it waited, so the server may have had other callbacks */
    bool unseen;     /* no callback of the server was seen before it began, so one may have run all the time */
    bool torn;       /* events were lost that may be a later begin */
    bool task;       /* it is run by a process of its own, without a callback */
    bool told_begun; /* p->begun() was called */
    /* filled when it is settled, and waited_ns when it begins, unless a state machine may postpone it; -1: unknown */
    int64_t waited_ns, worked_ns;
    /* Private to request_pairs.c: */
    uint32_t older, newer;
    unsigned caller_node;
    unsigned start_loss, loss;   /* losses[] of the event's node at the first event, and at the begin of the callback */
    unsigned seen_on, seen_loss; /* the node of the latest event, and losses[] of it then */
    bool used, queued, got_told;
    bool caller_gone; /* the caller's node is lost: a process there with that pid may be another one */
};

/* How far a request without a reply has come. */
enum request_stage {
    REQUEST_WAITS, /* its callback has not begun */
    REQUEST_RUNS,  /* its callback or its task runs */
    REQUEST_LEFT,  /* its callback has ended without a reply, which may come later */
};

/* A wait, and what the server did meanwhile. */
struct request_wait {
    int64_t ns; /* -1: unknown */
    struct request_busy behind;
    int64_t behind_all_ns;
    bool postponed, blind, unseen;
    /* It is not known whether the last callback still runs: its end may be lost, or it has replied, as most do at their
     * end. */
    bool unclear;
};

struct request_span {
    struct request_busy what;
    int64_t from, to, last; /* the server's monotonic time; last: when the last callback of the span began */
};

struct request_server {
    const struct event_node *node;
    struct tracee who;
    uint32_t label; /* a key; 0: the callback module is not known yet */
    bool elixir, busy, statem;
    bool gone;             /* its node is lost: a process there with that pid may be another one */
    const struct fun *fun; /* of the callback that runs */
    uint8_t arity;
    unsigned depth; /* nested calls of `fun` */
    unsigned loss;  /* losses[] of its node when the callback began */
    /* When the callback that runs sent its reply, unless that is not known. It ends then, if no other end is seen. */
    struct request_time replied;
    uint32_t request, answered; /* of the callback that runs, or that has just returned a reply; may be REQUEST_NONE */
    struct request_span now, spans[REQUEST_SPANS];
    unsigned nspans, at; /* a ring; at: the next place */
    uint32_t open;       /* requests that refer to this server */
};

struct request_pairs {
    struct request_keys keys;
    struct request *items;
    size_t used, cap, open;
    uint32_t free, oldest, newest;
    struct table by_ref, by_caller, by_process;
    struct request_server *servers;
    size_t nservers, servers_cap, hand;
    unsigned losses[256];
    bool shares[256];                /* that node leaves out requests (ETW_LOST_REQUEST) */
    struct request_time latest[256]; /* the latest event of each node */
    bool gone;                       /* a node was lost */
    bool over[256]; /* that node has stopped tracing, because of a limit or its guard, so nothing later is known */
    uint64_t parts; /* events that name a request; ETW_LOST_REQUEST counts those that were left out */
    /* A queue of requests that may still get an event: a late reply, or the server's events on another node. */
    uint32_t late[REQUESTS_LATE];
    unsigned late_first, nlate;
    uint64_t overflown; /* requests that were given up because too many were open */
    bool sees_replies;
    /*
     * Called for each event that has the term of its request; for a task this is {Module, Function, Arguments}. The
     * term is valid until the callback returns. NULL: nobody needs it.
     */
    void (*captured)(void *ctx, struct request *r, const struct term_env *env, const uint8_t *request);
    void (*begun)(void *ctx, struct request *r);   /* the waited time is final; not called for state machines */
    void (*settled)(void *ctx, struct request *r); /* the waited and the worked time are final */
    void (*got)(void *ctx, struct request *r);     /* later: the caller received the reply */
    void (*gave_up)(void *ctx, struct request *r); /* later: the caller's time was up */
    void (*done)(void *ctx, struct request *r);    /* nothing more is expected, or the trace ends */
    void *ctx;
};

void request_pairs_init(struct request_pairs *p);
void request_pairs_release(struct request_pairs *p);
void request_pairs_event(struct request_pairs *p, const struct event *e);
void request_pairs_end(struct request_pairs *p); /* calls done() for each open request */

/* Nanoseconds between two times; -1: unknown. */
int64_t request_between(const struct request_time *from, const struct request_time *to);
/*
 * For a request without a reply. Its age is the time until now, the latest time of its server's node that is known. If
 * nothing works on it and its caller has given up, the age is the time until then. -1: unknown.
 */
enum request_stage request_stage(const struct request_pairs *p, const struct request *r);
int64_t request_age(const struct request_pairs *p, const struct request *r);
/* Whether events were lost since the latest one of the request. One of them may be its reply. */
bool request_may_have_ended(const struct request_pairs *p, const struct request *r);
/* The wait until now, in the stage REQUEST_WAITS. */
struct request_wait request_wait_until_now(struct request_pairs *p, const struct request *r);
/* Callbacks that explain less than half of a wait explain nothing. */
bool request_wait_explained(const struct request_wait *w);
/* Finds what a request waited behind, or still waits behind at the end. False: that is not known. */
bool request_behind(struct request_pairs *p, const struct request *r, struct request_busy *ret);
/* The latest time of a node that is known. */
struct request_time request_now(const struct request_pairs *p, const struct event_node *node);
/* Whether a callback runs that has not replied. False if events were lost that may be its end. */
bool request_server_runs(const struct request_pairs *p, const struct request_server *s);
/* The begin of the wait: when it was sent, or arrived. */
const struct request_time *request_start(const struct request *r);
bool request_caller_seen(const struct request *r);
/* The request that a server is or was busy with longest since `from`. */
struct request_busy request_busy_since(const struct request_server *s, int64_t from, int64_t to, int64_t *ret_all);
/* The percentage of requests that the nodes have admitted. Lost: the events that they left out (ETW_LOST_REQUEST). */
double request_share(const struct request_pairs *p, uint64_t lost);
/* The table of open requests, oldest first. */
struct request *request_first(const struct request_pairs *p);
struct request *request_next(const struct request_pairs *p, const struct request *r);

#endif

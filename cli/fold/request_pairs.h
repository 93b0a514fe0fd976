/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs the requests of gen_server, gen_statem and similar processes with their replies.
 *
 * The reference in the From of a request identifies it. Six events of a request contain this reference: the caller
 * sends the request, the request arrives at the server, a callback begins and ends, a process sends the reply, the
 * caller receives the reply. Each event may be missing, because it was lost or is not traced. A part of a request's
 * time is known only if both its ends were seen.
 *
 * The callbacks of a process also show what it was busy with while a request waited.
 *
 * Bounded: at most REQUESTS_OPEN requests are open. For a new request, the oldest one is given up.
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
    bool statem;    /* printed as call(…) instead of handle_call(…) */
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
    char ref[64];                  /* digits of the reference without those of its node, which differ between nodes */
    const struct event_node *node; /* node of the server if that is known, else of the caller */
    uint32_t server;               /* REQUEST_NONE: not seen */
    uint32_t shape;                /* a key; 0: not seen */
    struct tracee caller;
    const struct event_node *caller_on; /* NULL: the caller's node is not traced, or unknown */
    bool has_shape, at_server;          /* at_server: an event of the server was seen */
    struct request_time asked, arrived, begun, ended, sent, got, gave_up;
    struct request_busy behind; /* the work that took most of the server's time while the request waited */
    int64_t behind_all_ns;      /* the part of the wait in which callbacks ran */
    void *kept;                 /* made by captured(); request_pairs.c frees it with free() */
    struct tracee *replier;     /* the process that replied; NULL: the server, or unknown */
    bool infinite;              /* the caller waits without a timeout */
    bool elixir;                /* the node runs Elixir, or the server's module is one of Elixir */
    bool settled, direct;       /* settled(): both times are final; direct: the result of the callback is the reply */
    bool late;                  /* the reply came after the caller had given up */
    bool postponed;             /* a state machine postponed the request, and began it again */
    bool down;                  /* the caller received a 'DOWN' of the server */
    bool given_up;              /* the request was removed because too many were open */
    bool blind;      /* events were lost while the request waited, so the server may have run other callbacks */
    bool unseen;     /* no callback of the server was seen before the request began, so one may have run all the time */
    bool torn;       /* events were lost that may contain a later begin */
    bool task;       /* a process of its own runs the request, without a callback */
    bool told_begun; /* p->begun() was called */
    /*
     * Set when the request is settled; waited_ns already when it begins, unless a state machine may postpone it. -1:
     * unknown.
     */
    int64_t waited_ns, worked_ns;
    /* Private to request_pairs.c: */
    uint32_t older, newer;
    unsigned caller_node;
    unsigned start_loss, loss;   /* losses[] of the node at the first event; at the begin of the callback */
    unsigned seen_on, seen_loss; /* node of the latest event, and losses[] of that node at the event */
    bool used, queued, got_told;
    bool caller_gone; /* the caller's node is lost, so a process there with the same pid may be another one */
};

/* How far a request without a reply has come. */
enum request_stage {
    REQUEST_WAITS, /* the callback has not begun */
    REQUEST_RUNS,  /* the callback or the task runs */
    REQUEST_LEFT,  /* the callback has ended without a reply, which may come later */
};

/* A wait, and what the server did meanwhile. */
struct request_wait {
    int64_t ns; /* -1: unknown */
    struct request_busy behind;
    int64_t behind_all_ns;
    bool postponed, blind, unseen;
    /*
     * The last callback may have ended: its end may be lost, or it has replied, which most callbacks do at their end.
     */
    bool unclear;
};

struct request_span {
    struct request_busy what;
    int64_t from, to, last; /* monotonic times of the server's node; last: begin of the last callback of the span */
};

struct request_server {
    const struct event_node *node;
    struct tracee who;
    uint32_t label; /* key of the callback module; 0: not known yet */
    bool elixir, busy, statem;
    bool gone;             /* the node is lost, so a process there with the same pid may be another one */
    const struct fun *fun; /* the function of the running callback */
    uint8_t arity;
    unsigned depth; /* nested calls of `fun` */
    unsigned loss;  /* losses[] of its node when the callback began */
    /*
     * When the running callback sent its reply, if that is known. The callback ends then, unless another end is seen.
     */
    struct request_time replied;
    /*
     * The request of the running callback; the request that the last callback answered by its result; or REQUEST_NONE.
     */
    uint32_t request, answered;
    struct request_span now, spans[REQUEST_SPANS];
    unsigned nspans, at; /* `spans` is a ring; at: index of the next span */
    uint32_t open;       /* number of requests that refer to this server */
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
    bool shares[256];                /* for each node: it leaves out requests (ETW_LOST_REQUEST) */
    struct request_time latest[256]; /* the time of the latest event of each node */
    bool gone;                       /* a node was lost */
    /* For each node: it has stopped tracing, because of a limit or its guard, so its later time is unknown. */
    bool over[256];
    uint64_t parts; /* number of events that name a request; ETW_LOST_REQUEST counts those that were left out */
    /* A queue of requests that may still get an event: a late reply, or events of the server's node. */
    uint32_t late[REQUESTS_LATE];
    unsigned late_first, nlate;
    uint64_t overflown; /* number of requests that were given up because too many were open */
    bool sees_replies;
    /*
     * Gets the term of a request, for each event that contains it; for a task this is {Module, Function, Arguments}.
     * The term is valid until the callback returns. NULL: not needed.
     */
    void (*captured)(void *ctx, struct request *r, const struct term_env *env, const uint8_t *request);
    void (*begun)(void *ctx, struct request *r);   /* waited_ns is final; not called for state machines */
    void (*settled)(void *ctx, struct request *r); /* waited_ns and worked_ns are final */
    void (*got)(void *ctx, struct request *r);     /* after settled(): the caller has received the reply */
    void (*gave_up)(void *ctx, struct request *r); /* after settled(): the caller's time was up */
    void (*done)(void *ctx, struct request *r);    /* no further event is expected, or the trace ends */
    void *ctx;
};

void request_pairs_init(struct request_pairs *p);
void request_pairs_release(struct request_pairs *p);
void request_pairs_event(struct request_pairs *p, const struct event *e);
void request_pairs_end(struct request_pairs *p); /* calls done() for each open request */

/* Returns the nanoseconds between two times; -1: unknown. */
int64_t request_between(const struct request_time *from, const struct request_time *to);
/*
 * Return the stage and the age of a request without a reply. The age is the time until now, which is the latest known
 * time of the server's node. If nothing works on the request and its caller has given up, the age ends there. -1:
 * unknown.
 */
enum request_stage request_stage(const struct request_pairs *p, const struct request *r);
int64_t request_age(const struct request_pairs *p, const struct request *r);
/* Returns true if events were lost since the latest event of the request, so that its reply may be among them. */
bool request_may_have_ended(const struct request_pairs *p, const struct request *r);
/* Returns the wait until now of a request in the stage REQUEST_WAITS. */
struct request_wait request_wait_until_now(struct request_pairs *p, const struct request *r);
/* Returns true if callbacks explain at least half of the wait. Otherwise they explain nothing. */
bool request_wait_explained(const struct request_wait *w);
/* Finds what a request waited behind, or still waits behind. Returns false if that is not known. */
bool request_behind(struct request_pairs *p, const struct request *r, struct request_busy *ret);
/* Returns the latest known time of a node. */
struct request_time request_now(const struct request_pairs *p, const struct event_node *node);
/* Returns true if a callback runs that has not replied. Returns false if its end may be lost. */
bool request_server_runs(const struct request_pairs *p, const struct request_server *s);
/* Returns the begin of the wait: when the request was sent, or arrived. */
const struct request_time *request_start(const struct request *r);
bool request_caller_seen(const struct request *r);
/* Returns the work that took most of the server's time since `from`. *ret_all is the time of all its work. */
struct request_busy request_busy_since(const struct request_server *s, int64_t from, int64_t to, int64_t *ret_all);
/*
 * Returns the percentage of requests that the nodes have admitted. `lost`: events that they left out
 * (ETW_LOST_REQUEST).
 */
double request_share(const struct request_pairs *p, uint64_t lost);
/* Iterate over the open requests, the oldest first. */
struct request *request_first(const struct request_pairs *p);
struct request *request_next(const struct request_pairs *p, const struct request *r);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs the requests of gen_server, gen_statem and similar processes with their replies.
 *
 * The reference in the From of a request identifies the request. A request has six events: the caller sends the
 * request, the request arrives at the server, a callback begins, the callback ends, a process sends the reply, the
 * caller receives the reply. Each event may be missing, because it was lost or is not traced. The duration from one
 * event to another is known only if both events were seen.
 *
 * The callbacks of a server also show what the server was busy with while a request waited.
 *
 * Bounded: at most REQUESTS_OPEN requests are open. If a new request comes then, the oldest request is removed. At most
 * REQUEST_SERVERS servers are followed. If all of them are in use, the requests to a further server have no server, and
 * `unfollowed` counts them.
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

/* Callbacks of one kind and shape, which kept a server busy. */
struct request_busy {
    enum request_work work;
    uint32_t shape; /* key of the message's shape */
    bool statem;    /* the server is a gen_statem: print call(…) instead of handle_call(…) */
    uint64_t times; /* number of callbacks */
    int64_t ns;     /* their total duration */
};

/* A time on a node. */
struct request_time {
    int64_t mono_ns, wall_ns, shift_ns; /* of the event */
    unsigned node;
    bool known, aligned;
};

struct request {
    char ref[64];                  /* the digits of the reference (request_ref()) */
    const struct event_node *node; /* node of the server; while the server is unknown, node of the first event */
    uint32_t server;               /* index of the server; REQUEST_NONE: unknown */
    uint32_t shape;                /* key of the request's shape; 0: unknown */
    struct tracee caller;
    const struct event_node *caller_on; /* NULL: the caller's node is not traced, or unknown */
    bool has_shape, at_server;          /* at_server: an event of the server was seen */
    /*
     * When the caller sent the request, it arrived at the server, the callback began and ended, the reply was sent, the
     * caller received the reply, the caller stopped waiting.
     */
    struct request_time asked, arrived, begun, ended, sent, got, gave_up;
    struct request_busy behind; /* the work that took most of the server's time while the request waited */
    int64_t behind_all_ns;      /* the part of the wait in which callbacks ran */
    void *kept;                 /* made by captured(); request_pairs.c frees it with free() */
    struct tracee *replier;     /* the process that replied; NULL: the server, or unknown */
    bool infinite;              /* the caller waits without a timeout */
    bool elixir;                /* the node runs Elixir, or the server's module is one of Elixir */
    bool settled, direct;       /* settled: settled() was called; direct: the result of the callback is the reply */
    bool late;                  /* the reply came after the caller had stopped waiting */
    bool postponed;             /* a state machine postponed the request and then began it again */
    bool down;                  /* the caller received a 'DOWN' of the server */
    bool given_up;              /* the request was removed, because too many requests were open */
    bool blind;      /* events were lost or left out while the request waited, so other callbacks may have run */
    bool unseen;     /* no callback of the server was seen before this one; one may have run unseen until then */
    bool torn;       /* events were lost, so a state machine may have begun the request again unseen */
    bool task;       /* a process of its own runs the request, without a callback */
    bool told_begun; /* p->begun() was called */
    /*
     * The time from the start of the wait until the callback began, and from then until the reply. Set when the request
     * is settled. waited_ns is set already when the callback begins, except for state machines, which may postpone the
     * request. -1: unknown.
     */
    int64_t waited_ns, worked_ns;
    /* Private to request_pairs.c: */
    uint32_t older, newer;
    uint32_t older_of_caller, newer_of_caller; /* valid if `waits` */
    uint32_t older_of_server, newer_of_server; /* valid if there is a server */
    unsigned caller_node;
    unsigned start_loss, loss;   /* losses[] of the node at the request's first event; when the callback began */
    unsigned seen_on, seen_loss; /* the node of the request's latest event; losses[] of that node at the event */
    bool used, queued, got_told;
    bool waits;       /* the request is in the list of its caller */
    bool caller_gone; /* the caller's node was lost, so the same pid may now belong to another process */
    bool unfollowed;  /* the request is part of request_pairs.unfollowed */
};

/* How far a request without a reply has come. */
enum request_stage {
    REQUEST_WAITS, /* its callback has not begun */
    REQUEST_RUNS,  /* its callback or task runs */
    REQUEST_LEFT,  /* its callback has ended without a reply; the reply may come later */
};

/* The wait of a request, and what the server did meanwhile. The members mean the same as those of struct request. */
struct request_wait {
    int64_t ns; /* duration of the wait; -1: unknown */
    struct request_busy behind;
    int64_t behind_all_ns;
    bool postponed, blind, unseen;
    /* The running callback may have ended: its end may be lost, or it has replied, as most callbacks do at their end.
     */
    bool unclear;
};

/* Successive callbacks of a server with the same work. */
struct request_span {
    struct request_busy what;
    int64_t from, to, last; /* begin, end, and begin of the last callback; monotonic times of the server's node */
};

struct request_server {
    const struct event_node *node;
    struct tracee who;
    uint32_t label; /* key of the callback module; 0: unknown */
    bool elixir, busy, statem;
    bool gone;             /* the node was lost, so the same pid may now belong to another process */
    const struct fun *fun; /* the function of the running callback */
    uint8_t arity;
    unsigned depth; /* nested calls of `fun` */
    unsigned loss;  /* losses[] of the node when the callback began */
    /* When the running callback sent its reply, if known. Counts as the end of the callback if no end is seen. */
    struct request_time replied;
    /*
     * request: the request of the running callback. answered: the request that the last callback answered by its
     * result. REQUEST_NONE: none.
     */
    uint32_t request, answered;
    struct request_span now, spans[REQUEST_SPANS]; /* the running callback; the earlier callbacks */
    unsigned nspans, at;                           /* `spans` is a ring; at: index of the next span */
    uint32_t newest; /* the newest request that refers to this server; the others follow in older_of_server */
    uint32_t open;   /* number of these requests that are not settled */
};

struct request_pairs {
    struct request_keys keys;
    struct request *items;
    size_t used, cap, open;
    uint32_t free, oldest, newest;
    struct table by_ref, by_process;
    /*
     * For each caller, the newest request that it may still stop waiting for. The others follow in older_of_caller, so
     * a caller with very many requests takes one slot of the table.
     */
    struct table by_caller;
    struct request_server *servers;
    size_t nservers, servers_cap, hand;
    unsigned losses[EVENT_NODES]; /* for each node: number of loss events, except for those of whole requests */
    bool shares[EVENT_NODES];     /* for each node: the node leaves out some requests (ETW_LOST_REQUEST) */
    struct request_time latest[EVENT_NODES]; /* the time of the latest event of each node */
    bool gone;                               /* a node was lost */
    /* For each node: the node has stopped tracing, because of a limit or its guard, so its time now is unknown. */
    bool over[EVENT_NODES];
    uint64_t parts; /* number of events that name a request; ETW_LOST_REQUEST counts the events that were left out */
    /* A queue of requests that are nearly over, but may still get an event of the caller or of another node. */
    uint32_t late[REQUESTS_LATE];
    unsigned late_first, nlate;
    uint64_t overflown;  /* number of requests that were removed because too many were open */
    uint64_t unfollowed; /* number of requests to servers that were not followed, because too many were in use */
    bool sees_replies;   /* sends of replies are traced */
    /*
     * Gets the term of a request from each event that contains the term; for a task, {Module, Function, Arguments}. The
     * term is valid until captured() returns. May be NULL.
     */
    void (*captured)(void *ctx, struct request *r, const struct term_env *env, const uint8_t *request);
    void (*begun)(void *ctx, struct request *r);   /* waited_ns is final; not called for state machines */
    void (*settled)(void *ctx, struct request *r); /* waited_ns and worked_ns are final */
    void (*got)(void *ctx, struct request *r);     /* after settled(): the caller has received the reply */
    void (*gave_up)(void *ctx, struct request *r); /* after settled(): the caller has stopped waiting */
    void (*done)(void *ctx, struct request *r); /* no further event is expected, or the trace ends; `r` is freed next */
    void *ctx;
};

void request_pairs_init(struct request_pairs *p);
void request_pairs_release(struct request_pairs *p);
void request_pairs_event(struct request_pairs *p, const struct event *e);
void request_pairs_end(struct request_pairs *p); /* calls done() for each open request */

/* Returns the nanoseconds between two times; -1: unknown. */
int64_t request_between(const struct request_time *from, const struct request_time *to);
/*
 * Return the stage and the age of a request without a reply. The age is the duration from the start of the request
 * until the latest known time of the server's node. If the callback has ended and the caller has stopped waiting, the
 * age is the duration until the caller stopped. -1: unknown.
 */
enum request_stage request_stage(const struct request_pairs *p, const struct request *r);
int64_t request_age(const struct request_pairs *p, const struct request *r);
/* Returns true if events were lost since the latest event of the request. Its reply may be among the lost events. */
bool request_may_have_ended(const struct request_pairs *p, const struct request *r);
/* Returns the wait until now of a request whose callback has not begun (REQUEST_WAITS). */
struct request_wait request_wait_until_now(struct request_pairs *p, const struct request *r);
/* Returns true if callbacks ran during at least half of the wait, so that they count as its reason. */
bool request_wait_explained(const struct request_wait *w);
/* Finds the work of the server that a request waited for, or still waits for. Returns false if it is unknown. */
bool request_behind(struct request_pairs *p, const struct request *r, struct request_busy *ret);
/* Returns the latest known time of a node. */
struct request_time request_now(const struct request_pairs *p, const struct event_node *node);
/* Returns true if the server runs a callback that has not replied. Returns false if the callback's end may be lost. */
bool request_server_runs(const struct request_pairs *p, const struct request_server *s);
/* Returns the time at which the wait of a request began: when the request was sent or, if unknown, when it arrived. */
const struct request_time *request_start(const struct request *r);
bool request_caller_seen(const struct request *r);
/*
 * Returns the work that took most of the server's time between `from` and `to`. *ret_all is the duration of all work of
 * the server in this time.
 */
struct request_busy request_busy_since(const struct request_server *s, int64_t from, int64_t to, int64_t *ret_all);
/*
 * Returns the percentage of requests that the nodes have sent. The nodes left out the events of the other requests;
 * `lost` is the number of these events (ETW_LOST_REQUEST).
 */
double request_share(const struct request_pairs *p, uint64_t lost);
/* Iterate over the open requests, the oldest first. */
struct request *request_first(const struct request_pairs *p);
struct request *request_next(const struct request_pairs *p, const struct request *r);

#endif

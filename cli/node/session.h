/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session traces on one node, from the first message until the node confirms that nothing of the companion is left.
 *
 * The caller polls session_fd() for input and then calls session_on_readable(). It calls session_tick() no later than
 * at the time that the previous call returned. Nothing here waits.
 *
 *   BOOTING    the boot message is sent; the owner has not answered
 *   READY      the node answers requests, and sends batches as pulls allow
 *   STOPPING   stop is sent; the remaining batches follow, the last one marked ETW_BATCH_LAST
 *   GONE       the node has confirmed that session, module, processes and files are gone, or is late to do so:
 *              session_remains()
 *   FAILED     the connection is closed; the node cleans up by itself within its lease
 *
 * BOOTING -> READY | FAILED; READY -> STOPPING | FAILED; STOPPING -> GONE | FAILED. Only these functions change the
 * state, and they run on the caller's thread. A function that returns false has set the state to FAILED and filled err.
 * session_close() may be called in any state, but not from a handler.
 */
#ifndef ETRACE_SESSION_H
#define ETRACE_SESSION_H

#include "../erlang/etf.h"
#include "../ground/buf.h"
#include "connect.h"

#define SESSION_QUICK_MS 5000 /* patience_ms of commands that only ask questions */

enum session_state { SESSION_BOOTING, SESSION_READY, SESSION_STOPPING, SESSION_GONE, SESSION_FAILED };

/* Options of the tracer on the node, fixed for the life of the session. A value of 0 means the default. */
struct session_options {
    uint32_t size;         /* bytes captured of a term; default 1024 */
    uint32_t depth, items; /* nesting levels captured, and elements of one container; default 16, 128 */
    uint64_t limit;        /* events; default no limit */
    uint64_t rate;         /* events a second; default no limit */
    /* bytes of a thread's ring, a power of two (default: the node decides); number of rings (default 64) */
    uint32_t ring_bytes, rings;
    bool overwrites;      /* the rings overwrite their oldest events, and the node sends them after session_stop() */
    uint32_t most_ms;     /* with `overwrites`: the age of the oldest event to send; 0: any */
    bool triggers;        /* with `overwrites`: a result that passes the filter of the request takes a snapshot */
    bool system_triggers; /* with `triggers`: system events take snapshots, too */
    uint32_t after_ms;    /* with `overwrites`: a snapshot also has the events of this time after its cause */
    uint32_t interval_ms; /* with `triggers`: the least time from the end of a snapshot to the next one */
    const struct str *redact; /* keys whose values stay on the node */
    size_t nredact;
    uint64_t memory;      /* bytes by which the node may grow; default: tracer_memory.hrl; UINT64_MAX: no limit */
    bool hold;            /* pull no batches before session_pull_allowed() allows it */
    int patience_ms;      /* a node without a sign of life for this long is lost; default 20 s */
    const char *leftover; /* a socket to which the node writes events that it has not sent when it ends; NULL: none */
    bool fallback;        /* use the fallback tracer even if the NIF would load (for tests) */
};

/* The owner's first answer. All texts are safe to print. */
struct session_node {
    char name[NODE_NAME_MAX + 1]; /* name from the handshake */
    int otp;                      /* 27 */
    char otp_version[32];         /* "27.3.4.1", or "29" if the node does not know more */
    char erts[32];                /* "15.2.7.1" */
    char arch[64];
    uint32_t creation; /* distinguishes incarnations of a node name; every pid, port and reference contains it */
    int schedulers, wordsize;
    uint64_t processes;
    uint64_t uptime_ms;
    int64_t ospid;
    bool fallback; /* the NIF is not loaded; the tracer is the Erlang process with hard limits */
    char fallback_why[400];
    uint64_t boot_ns; /* time from the boot message to the owner's answer, by our clock */
};

struct session_reply {
    uint32_t id;
    bool ok;          /* true: {ok, Term}; false: {error, Term} */
    struct etf term;  /* borrowed until the handler returns */
    const char *node; /* name of the node, for messages; may be NULL */
};

/* A reading of the node's clocks. All times are in nanoseconds. */
struct session_time {
    int64_t mono, wall;  /* on the node */
    int64_t sent, heard; /* our CLOCK_MONOTONIC when the request was sent and when the answer came */
};

/* Called by session_on_readable(). The arguments are borrowed until the handler returns. */
struct session_handlers {
    void *data;
    void (*ready)(void *data, const struct session_node *node); /* may be NULL */
    void (*batch)(void *data, const void *batch, size_t len);   /* struct etw_batch and its sections; not verified */
    void (*reply)(void *data, const struct session_reply *reply);
    void (*time)(void *data, const struct session_time *time); /* may be NULL */
    /* May be NULL. done: number of functions armed so far; all: their total number. */
    void (*progress)(void *data, int64_t done, int64_t all);
    void (*wire)(void *data, bool sent, struct str message); /* may be NULL; gets each message to and from the owner */
};

struct session;

/*
 * Takes ownership of the connection, sends the boot message and copies the handlers. On failure returns NULL and fills
 * err.
 */
struct session *session_open(struct node_conn *conn, const struct session_options *options,
                             const struct session_handlers *handlers, struct err *e);
/*
 * Closes the connection and frees the session; accepts NULL. Without an earlier session_stop() the node notices that
 * the connection is closed, and ends the session by itself.
 */
void session_close(struct session *s);

int session_fd(const struct session *s); /* returns -1 in the states GONE and FAILED */
/* Returns true if session_on_readable() is also due when session_fd() is writable. */
bool session_wants_write(const struct session *s);
enum session_state session_state(const struct session *s);
/* Returns true if the state is GONE, but the node has not confirmed that nothing is left on it. */
bool session_remains(const struct session *s);
/* Returns true if the state is FAILED because the node stopped answering or closed the connection. */
bool session_lost(const struct session *s);
const struct session_node *session_node(const struct session *s); /* complete from READY on; before, only the name */

/*
 * Sends pending bytes, reads available messages and calls the handlers. Returns false if the state is FAILED, and true
 * also in the state GONE.
 */
bool session_on_readable(struct session *s, struct err *e);

/*
 * Renews the lease, pings a silent owner, and fails the session of a silent node. `now_ms` is session_now(). *ret_next
 * is the time by which session_tick() must be called again. A sign of life is a batch, an answer, progress, or a large
 * part of a message. Time in which messages of the node waited here unread, or in which this process was stopped, does
 * not count as silence.
 */
bool session_tick(struct session *s, int64_t now_ms, int64_t *ret_next, struct err *e);
int64_t session_now(void); /* milliseconds of the monotonic clock */

/*
 * Allows or forbids to pull batches, which is forbidden while the output is blocked. Batches that were already pulled,
 * at most 2 MiB, still come. Initially allowed, unless session_options.hold is set.
 */
bool session_pull_allowed(struct session *s, bool allowed, struct err *e);

/*
 * Sends a request, one term with the version byte 131. The answer carries *ret_id. session_tick() fails if there is no
 * answer within timeout_ms; progress of the node restarts this time.
 */
bool session_request(struct session *s, struct str term, int timeout_ms, uint32_t *ret_id, struct err *e);

/*
 * Asks for the node's time, and for a batch, which may be empty except for its watermark. The `time` handler gets the
 * answer.
 */
bool session_ask_time(struct session *s, int timeout_ms, uint32_t *ret_id, struct err *e);

/*
 * Asks for a snapshot now; needs `overwrites`. The answer is a reply with *ret_id: true if a snapshot begins or is
 * being sent.
 */
bool session_snapshot(struct session *s, int timeout_ms, uint32_t *ret_id, struct err *e);

/*
 * Ends tracing on the node. The remaining batches follow, and then the state becomes GONE. It becomes GONE also if no
 * batch comes for ten seconds, batches come for twenty seconds, or the node does not confirm the end within five
 * seconds. Does nothing unless the state is READY.
 */
bool session_stop(struct session *s, struct err *e);

/* Sets *e from an {error, Term} of the owner: a sentence, the status, and sometimes a hint. Returns false. */
bool session_error(const struct session_reply *reply, struct err *e);

#endif

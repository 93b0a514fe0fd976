/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session traces on one node. It begins with the first message, and ends when the node has confirmed that nothing of
 * the companion is left. The owner is the tracer's process on the node.
 *
 * The caller polls session_fd() for input and then calls session_on_readable(). It calls session_tick() at the latest
 * at the time that the previous session_tick() returned. Nothing here waits.
 *
 *   BOOTING    the boot message is sent; the owner has not answered
 *   READY      the node answers requests, and sends batches of events when the client pulls them
 *   STOPPING   session_stop() was called; the remaining batches follow, the last one marked ETW_BATCH_LAST
 *   GONE       the node has confirmed that trace session, module, processes and files are gone, or has not
 *              confirmed it in time: session_remains()
 *   FAILED     the connection is closed; the node cleans up by itself within its lease of ten seconds
 *
 * BOOTING -> READY | FAILED; READY -> STOPPING | FAILED; STOPPING -> GONE | FAILED. Only the functions of this header
 * change the state, on the caller's thread. A function that returns false has set the state to FAILED and filled err.
 * session_close() may be called in any state, but not from a handler.
 */
#ifndef ETRACE_SESSION_H
#define ETRACE_SESSION_H

#include "../erlang/etf.h"
#include "../ground/buf.h"
#include "companion.h"
#include "connect.h"

#define SESSION_QUICK_MS 5000 /* patience_ms for commands that answer at once */
/* The options of a command that only asks questions. Its sessions send no batches. */
#define SESSION_QUESTIONS ((struct session_options){.variant = COMPANION_QUESTIONS, .patience_ms = SESSION_QUICK_MS})

enum session_state { SESSION_BOOTING, SESSION_READY, SESSION_STOPPING, SESSION_GONE, SESSION_FAILED };

/* Options of the tracer on the node, which never change during a session. A value of 0 means the default. */
struct session_options {
    enum companion_variant variant; /* must have what the session asks of the node; default: the whole companion */
    uint32_t size;                  /* most bytes that the node captures of a term; default 1024 */
    /* Most nesting levels, and most elements of one container, that the node captures; default 16, 128. */
    uint32_t depth, items;
    uint64_t limit; /* most events in all; default no limit */
    uint64_t rate;  /* most events a second; default no limit */
    /* Bytes of each thread's ring, a power of two (default: the node decides), and the number of rings (default: one
     * for each scheduler of any kind and eight more, at least 64). */
    uint32_t ring_bytes, rings;
    /*
     * Flight recorder: the rings keep the last events and overwrite older ones. The node sends events only for a
     * snapshot, and after session_stop().
     */
    bool overwrites;
    uint32_t most_ms;     /* with `overwrites`: age of the oldest event that the node sends; 0: any age */
    bool triggers;        /* with `overwrites`: a result that passes the request's filter begins a snapshot */
    bool system_triggers; /* with `triggers`: system events begin snapshots, too */
    uint32_t after_ms;    /* with `overwrites`: time after its cause for which a snapshot still takes events */
    uint32_t interval_ms; /* with `triggers`: least time from the end of one snapshot to the beginning of the next */
    const struct str *redact; /* keys whose values the node does not send */
    size_t nredact;
    /* Bytes by which the node's memory may grow; default: see tracer_memory.hrl; UINT64_MAX: no limit. */
    uint64_t memory;
    bool hold;       /* pull no batches until session_pull_allowed() allows it */
    int patience_ms; /* how long the node may be silent until it counts as lost; default 20 s */
    /* Path of a socket to which an ending node writes the events that it has not sent; NULL: none. */
    const char *leftover;
    bool fallback; /* use the tracer without the NIF even if the NIF would load (for tests) */
};

/* The description of the node in the owner's first answer. All texts are safe to print. */
struct session_node {
    char name[NODE_NAME_MAX + 1]; /* the node's name from the handshake */
    int otp;                      /* OTP release, such as 27 */
    char otp_version[32];         /* such as "27.3.4.1"; only "29" if the node does not know more */
    char erts[32];                /* version of erts, such as "15.2.7.1" */
    char arch[64];
    /* Distinguishes restarts of a node with the same name; each pid, port and reference contains it. */
    uint32_t creation;
    int schedulers, wordsize;
    uint64_t processes;
    uint64_t uptime_ms;
    int64_t ospid;
    bool elixir;   /* the node runs Elixir: it has loaded the module elixir, or is about to */
    bool fallback; /* the NIF is not loaded, so an Erlang process with hard limits traces instead */
    char fallback_why[400];
    uint64_t boot_ns; /* time from the boot message to the owner's answer, by our clock */
};

struct session_reply {
    uint32_t id;
    bool ok;          /* true if the owner answered {ok, Term}, false if {error, Term} */
    struct etf term;  /* the answer; valid until the handler returns */
    const char *node; /* name of the node, for messages; may be NULL */
};

/* A reading of the node's clocks, in nanoseconds. */
struct session_time {
    int64_t mono, wall;  /* the node's monotonic and wall clock */
    int64_t sent, heard; /* when we sent the request and got the answer, by our CLOCK_MONOTONIC */
};

/* session_on_readable() calls these handlers. Their arguments are valid until the handler returns. */
struct session_handlers {
    void *data;
    void (*ready)(void *data, const struct session_node *node); /* may be NULL */
    /* Gets a struct etw_batch with its sections, not verified. */
    void (*batch)(void *data, const void *batch, size_t len);
    void (*reply)(void *data, const struct session_reply *reply);
    void (*time)(void *data, const struct session_time *time); /* may be NULL */
    /* May be NULL. Gets the number of functions armed so far, and their total number. */
    void (*progress)(void *data, int64_t done, int64_t all);
    void (*wire)(void *data, bool sent, struct str message); /* may be NULL; gets each message to and from the owner */
};

struct session;

/*
 * Takes ownership of the connection, copies the handlers and sends the boot message. On failure returns NULL and fills
 * err.
 */
struct session *session_open(struct node_conn *conn, const struct session_options *options,
                             const struct session_handlers *handlers, struct err *e);
/*
 * Closes the connection and frees the session; accepts NULL. If session_stop() was not called before, the node ends the
 * session when it notices the closed connection.
 */
void session_close(struct session *s);

int session_fd(const struct session *s); /* returns -1 in the states GONE and FAILED */
/* Returns true if unsent bytes wait. Then the caller also calls session_on_readable() when session_fd() is writable. */
bool session_wants_write(const struct session *s);
enum session_state session_state(const struct session *s);
/* Returns true if the state is GONE, but the node has not confirmed in time that nothing is left on it. */
bool session_remains(const struct session *s);
/* Returns true if the state is FAILED because the node stopped answering or closed the connection. */
bool session_lost(const struct session *s);
/* Complete from READY on; before, it has only the name. */
const struct session_node *session_node(const struct session *s);

/*
 * Sends pending bytes, reads available messages and calls the handlers. Returns false if the state is FAILED, else
 * true.
 */
bool session_on_readable(struct session *s, struct err *e);

/*
 * Renews the lease, pings an owner that is silent, and fails the session if the node stays silent. `now_ms` is
 * session_now(). *ret_next is the time by which session_tick() must be called again. Signs of life, which end a
 * silence, are a batch, an answer, progress, and a large part of a message. Time does not count as silence if messages
 * of the node waited here unread, or if this process was stopped.
 */
bool session_tick(struct session *s, int64_t now_ms, int64_t *ret_next, struct err *e);
int64_t session_now(void); /* milliseconds of the monotonic clock */

/*
 * Allows or forbids pulling batches; callers forbid it while their output is blocked. Batches that the client has
 * already pulled, at most 2 MiB, still come. Pulling is allowed at first, unless session_options.hold is set.
 */
bool session_pull_allowed(struct session *s, bool allowed, struct err *e);

/*
 * Sends a request, one term with the version byte 131. The answer has the id *ret_id. session_tick() fails if there is
 * no answer within timeout_ms. If the node reports progress, this time starts again.
 */
bool session_request(struct session *s, struct str term, int timeout_ms, uint32_t *ret_id, struct err *e);

/*
 * Asks for the node's time, which the `time` handler gets. The node also sends a batch, which may have no events but
 * has a watermark.
 */
bool session_ask_time(struct session *s, int timeout_ms, uint32_t *ret_id, struct err *e);

/*
 * Asks for a snapshot now; needs `overwrites`. The reply has the id *ret_id and is `true` if a snapshot begins or is
 * already being sent.
 */
bool session_snapshot(struct session *s, int timeout_ms, uint32_t *ret_id, struct err *e);

/*
 * Ends tracing on the node. The node sends the remaining batches and confirms that nothing is left on it. Then the
 * state becomes GONE. The state becomes GONE, too, after ten seconds without a batch, after twenty seconds of batches
 * (with `overwrites`: ten minutes), or if the node does not confirm the end within five seconds. Does nothing unless
 * the state is READY.
 */
bool session_stop(struct session *s, struct err *e);

/* Sets *e from an {error, Term} of the owner: a sentence, the status, and sometimes a hint. Returns false. */
bool session_error(const struct session_reply *reply, struct err *e);

#endif

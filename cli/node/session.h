/*
 * A session: tracing on one node, from the first message to the proof that nothing is left.
 *
 * Poll-driven: the caller polls session_fd() for input, calls session_on_readable() when there is some, and
 * session_tick() at least when the time that the previous call returned has come. Nothing here waits.
 *
 *   BOOTING    the boot message is sent; waits for the owner's answer
 *   READY      requests are answered, batches come as pulls allow
 *   STOPPING   stop was sent: the batches that are left still come, the last one is marked ETW_BATCH_LAST
 *   GONE       the node has confirmed that session, module, processes and files are gone
 *   FAILED     the connection is closed; the node cleans up by itself within its lease
 *
 * BOOTING -> READY | FAILED; READY -> STOPPING | FAILED; STOPPING -> GONE | FAILED. Only the functions here move it, on the
 * caller's thread; there are no others. A function that returns false has set the session to FAILED and filled err.
 * session_close() may be called in any state and from no handler.
 */
#ifndef ETRACE_SESSION_H
#define ETRACE_SESSION_H

#include "../erlang/etf.h"
#include "../ground/buf.h"
#include "connect.h"

#define SESSION_QUICK_MS 5000 /* patience_ms of commands that only ask */

enum session_state { SESSION_BOOTING, SESSION_READY, SESSION_STOPPING, SESSION_GONE, SESSION_FAILED };

/* What the tracer on the node is given once, for the life of the session. 0: the default that is stated. */
struct session_options {
    uint32_t size;           /* bytes of a term that are captured: 1024 */
    uint32_t depth, items;   /* levels, and elements of one container: 16, 128 */
    uint64_t limit;          /* events: none */
    uint64_t rate;           /* events a second: none */
    uint32_t ring_bytes, rings; /* for each thread, and how many of them: 2 MiB, 64 */
    const struct str *redact; /* keys whose values stay on the node */
    size_t nredact;
    uint64_t memory;         /* bytes by which the node may grow: what suits it, see tracer_memory.hrl; UINT64_MAX is no limit */
    bool hold;               /* batches are asked for only after session_pull_allowed() */
    int patience_ms;         /* without a sign of life from the node, then it is lost: 20 s */
    bool fallback;           /* use the fallback tracer although a NIF would load (for tests) */
};

/* The hello of the owner. All texts are safe to print. */
struct session_node {
    char name[NODE_NAME_MAX + 1]; /* of the handshake */
    int otp;            /* 27 */
    char otp_version[32]; /* "29", "27.3.4.1" where the node knows it */
    char erts[32];      /* "15.2.7.1" */
    char arch[64];
    uint32_t creation;  /* which of the nodes of that name: it is part of every pid, port and reference */
    int schedulers, wordsize;
    uint64_t processes;
    uint64_t uptime_ms;
    int64_t ospid;
    bool latin1;        /* io:printable_range() of the node is latin1, else unicode */
    bool fallback;      /* no NIF: the pure-Erlang tracer with its hard caps */
    char fallback_why[400];
    uint64_t boot_ns;   /* from the boot message to the owner's answer, as measured here */
};

struct session_reply {
    uint32_t id;
    bool ok;         /* {ok, Term}, else {error, Term} */
    struct etf term; /* ready to be read; borrowed until the handler returns */
};

/* What time it was on the node, between two times here (CLOCK_MONOTONIC). Nanoseconds. */
struct session_time {
    int64_t mono, wall;
    int64_t sent, heard;
};

/* Called from session_on_readable(); what they are given is borrowed until they return. */
struct session_handlers {
    void *data;
    void (*ready)(void *data, const struct session_node *node); /* may be NULL */
    void (*batch)(void *data, const void *batch, size_t len);   /* a whole struct etw_batch with its sections; unverified */
    void (*reply)(void *data, const struct session_reply *reply);
    void (*time)(void *data, const struct session_time *time);  /* may be NULL */
    void (*progress)(void *data, int64_t done, int64_t all);    /* may be NULL; functions that the node has armed, of all it is to arm */
};

struct session;

/* Takes the connection over and sends the boot message. NULL with err. The handlers are copied. */
struct session *session_open(struct node_conn *conn, const struct session_options *options, const struct session_handlers *handlers,
                             struct err *e);
void session_close(struct session *s); /* NULL is fine; without a session_stop() before, the node notices within milliseconds */

int session_fd(const struct session *s); /* -1 when GONE or FAILED */
bool session_wants_write(const struct session *s); /* then session_on_readable() is due when there is room, too */
enum session_state session_state(const struct session *s);
bool session_lost(const struct session *s); /* FAILED, since the node does not answer any more or has closed the connection */
const struct session_node *session_node(const struct session *s); /* what is known; all of it from READY on */

/* Sends what waits, reads what is there and calls the handlers. false: failed. Reaching GONE is success. */
bool session_on_readable(struct session *s, struct err *e);

/*
 * Timers: renews the lease, asks a silent owner for a sign of life, gives up on a silent node. `now_ms` is session_now().
 * *ret_next is the time by which it must be called again. A sign of life is a batch or an answer; whatever else a node sends
 * does not delay the end. Time in which nobody read what the node sent does not count.
 */
bool session_tick(struct session *s, int64_t now_ms, int64_t *ret_next, struct err *e);
int64_t session_now(void); /* milliseconds of the monotonic clock */

/* false: no more credit is given (the output is blocked); what is on its way, at most 2 MiB, still comes. Begins as true. */
bool session_pull_allowed(struct session *s, bool allowed, struct err *e);

/* Sends a request, one term with its 131. *ret_id names the answer. It must come within timeout_ms, else session_tick() fails. */
bool session_request(struct session *s, struct str term, int timeout_ms, uint32_t *ret_id, struct err *e);

/* Asks for the node's time, and for a batch, even if it has nothing but its watermark. The answer goes to the time handler. */
bool session_ask_time(struct session *s, int timeout_ms, uint32_t *ret_id, struct err *e);

/* Ends tracing on the node. Batches go on until the last; then GONE. Called again, or before READY, it is harmless. */
bool session_stop(struct session *s, struct err *e);

/* What the owner said when it said {error, Term}: one sentence, a hint where there is one, and the status. Returns false. */
bool session_error(const struct session_reply *reply, struct err *e);

#endif

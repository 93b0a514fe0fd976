/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../erlang/etf_write.h"
#include "../ground/mem.h"
#include "answer.h"
#include "dist.h"
#include "inject.h"
#include "net.h"

#define REX_MS 5000   /* timeout for rex to answer; restarts while the first message makes progress */
#define BOOT_MS 10000 /* timeout for each later step of booting */
#define BOOT_MOST_MS 60000
#define ARRIVES_MS 500 /* interval between two checks of how much of the first message has arrived */
#define FULL_MS 500    /* interval between two attempts to send while the connection is full */
#define LEASE_MS 10000 /* lease: the owner ends if the client is silent for this time */
#define RENEW_MS 3000  /* silence of the client after which it renews the lease */
#define ASK_MS 5000    /* silence of the node after which we ping it; half of options.patience_ms if that is less */
#define SILENT_MS (2 * LEASE_MS)
#define STOP_MS 10000 /* timeout for each batch after session_stop() */
/*
 * Limit for all batches after session_stop(). A flight recorder sends its events only then, so its limit is
 * WORK_MOST_MS.
 */
#define STOP_MOST_MS 20000
/* Timeout for ETW_MSG_GONE after the last batch. The node's code server may be busy for a long time. */
#define UNLOAD_MS 5000
#define WORK_MOST_MS 600000 /* limit for a request, even if the node reports progress */
#define DOWN_MS 6000        /* timeout for ETW_MSG_GONE after the owner's end; the node may need five seconds */
#define CREDIT_LEAST (128u << 10)
#define PART_LEAST 4096 /* new bytes of an incomplete message that are a sign of life */
#define PING_ID UINT32_MAX
#define STOPPED_MS 1000 /* delay of session_tick() from which on we assume that this process was stopped */

struct pending {
    uint32_t id;
    int timeout_ms;
    int64_t deadline, last; /* progress of the node extends `deadline`, but not beyond `last` */
    int64_t asked_ns;       /* for a request for the node's time: when it was sent; 0: another request */
};

/*
 * The steps of booting. In each step the session waits for one thing: for an answer of rex, for the arrival of the
 * whole companion, for the code server, for the tracer. When the node begins a later step, it sends ETW_MSG_WAITS with
 * the step's name in `steps`.
 */
enum step { STEP_REX, STEP_COMPANION, STEP_CODE_SERVER, STEP_TRACER };
static const char *const steps[] = {"rex", "companion", "code_server", "tracer"};

struct session {
    enum session_state state;
    struct session_handlers handlers;
    struct session_node node;
    struct dist dist;
    struct node_pid owner;
    enum step step; /* while BOOTING: the step that the session waits for */
    unsigned char nonce[NONCE_BYTES];
    size_t under_way;   /* while BOOTING: bytes of the first message that were not acknowledged at the last check */
    uint64_t boot_sent; /* the value of dist.sent after the first message */
    bool down;          /* the owner has ended, for a reason other than `normal` */
    struct err why;     /* why the owner has ended, if `down` */
    bool lost;          /* the state is FAILED because the node fell silent or the connection failed */
    bool overwrites;    /* session_options.overwrites */
    bool drained;       /* the latest batch had the mark ETW_BATCH_LAST */
    bool remains;       /* the state is GONE, but ETW_MSG_GONE did not come */
    bool reading;       /* dist_read() runs and uses the buffers of `dist`: only session_on_readable() may free them */
    struct err error;   /* why the state is FAILED */

    uint64_t seq;           /* number of the latest batch */
    uint32_t unacked;       /* bytes of batches received since the last pull */
    uint32_t credit, least; /* bytes of batches that each pull allows the node to send; lower limit of `credit` */
    int64_t pulled;         /* when the last batch came, if the node had more to send then; else 0 */
    bool allowed;           /* argument of the last session_pull_allowed() */

    struct pending *pending;
    size_t npending, pending_cap;
    uint32_t next_id;

    /*
     * booted_ns: when booting began, in nanoseconds; all other times are in milliseconds. said: when we last sent a
     * message to the owner. pinged: when we last sent a ping; 0: not since `heard`. give_up: when the session fails, or
     * becomes GONE while STOPPING; 0: never. stop_by: latest value of give_up while STOPPING.
     */
    int64_t booted_ns, said, pinged, give_up, stop_by;
    int64_t heard;    /* when the node last gave a sign of life (session_tick()) */
    int64_t patience; /* how long the node may be silent before the session becomes FAILED */
    int64_t ticked;   /* time of the last session_tick() */
    int64_t due;      /* when session_tick() asked to be called next */
    bool read;        /* session_on_readable() ran since `ticked` */
    size_t part;      /* bytes of the incomplete message that already counted */
    uint64_t beyond;  /* bytes of batches that came while pulling was forbidden */
    unsigned pings;   /* pings without an answer */
    int64_t lapsed;   /* when we last sent a message after we had been silent for longer than the lease; 0: never */
    struct buf out;
};

int64_t session_now(void)
{
    return net_now();
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- ends ---- */

/*
 * Sets the state to FAILED and keeps the first error. Closes the connection, so the node learns of the end. While
 * dist_read() uses the connection, leaves closing it to session_on_readable().
 */
static bool session_fail(struct session *s, const struct err *cause, struct err *e)
{
    if (s->state != SESSION_FAILED) {
        if (s->state == SESSION_BOOTING && s->lost)
            inject_forget(s->nonce);
        s->state = SESSION_FAILED;
        s->error = *cause;
        if (!s->reading)
            dist_release(&s->dist);
    }
    *e = s->error;
    return false;
}

/*
 * Returns true if we were silent for longer than the lease, and recently enough to explain a lost connection. After an
 * earlier silence of that kind, the node would have closed the connection earlier.
 */
static bool has_missed_lease(const struct session *s)
{
    int64_t now = net_now();

    return now - s->said >= LEASE_MS || (s->lapsed && now - s->lapsed < LEASE_MS);
}

/*
 * Fails the session after a failure of the connection. If we missed the lease, the error says so. Otherwise it is
 * `cause` after the node's name.
 */
static bool fail_connection(struct session *s, const struct err *cause, struct err *e)
{
    struct err whole;

    if (s->state == SESSION_FAILED)
        return session_fail(s, cause, e);
    s->lost = cause->status == ERR_RUN;
    if (has_missed_lease(s))
        err_set(&whole, ERR_GUARD, "%s ended the tracing: it received nothing from this etrace for %d seconds",
                s->node.name, LEASE_MS / 1000);
    else
        err_set(&whole, cause->status, "%s: %s", s->node.name, cause->text);
    if (*cause->hint && !has_missed_lease(s))
        err_hint(&whole, "%s", cause->hint);
    return session_fail(s, &whole, e);
}

void session_close(struct session *s)
{
    if (!s)
        return;
    if (s->down && session_fd(s) >= 0)
        /* Again: during the first sweep, an ending process may still have held the name of the module. */
        inject_sweep(&s->dist);
    dist_release(&s->dist);
    buf_release(&s->out);
    free(s->pending);
    free(s);
}

/* ---- sending ---- */

static bool send_out(struct session *s, struct err *e)
{
    struct err cause;
    int64_t now = net_now();

    if (s->state == SESSION_FAILED)
        return session_fail(s, &s->error, e);
    if (s->state == SESSION_GONE)
        return true;
    if (now - s->said >= LEASE_MS)
        s->lapsed = now;
    s->said = now;
    if (s->handlers.wire)
        s->handlers.wire(s->handlers.data, true, buf_view(&s->out));
    return dist_send(&s->dist, &s->owner, buf_view(&s->out), &cause) || fail_connection(s, &cause, e);
}

static bool send_pull(struct session *s, struct err *e)
{
    buf_clear(&s->out);
    etf_version(&s->out);
    etf_tuple(&s->out, 3);
    etf_atomz(&s->out, "pull");
    etf_int(&s->out, (int64_t)s->seq);
    etf_int(&s->out, s->allowed ? (int64_t)s->credit : 0);
    s->unacked = 0;
    return send_out(s, e);
}

static bool send_request(struct session *s, uint32_t id, struct str term, struct err *e)
{
    buf_clear(&s->out);
    etf_version(&s->out);
    etf_tuple(&s->out, 3);
    etf_atomz(&s->out, "request");
    etf_int(&s->out, id);
    etf_bin(&s->out, term.at, term.len);
    return send_out(s, e);
}

static bool send_ping(struct session *s, struct err *e)
{
    struct buf b = {0};
    bool ok;

    etf_version(&b);
    etf_atomz(&b, "ping");
    ok = send_request(s, PING_ID, buf_view(&b), e);
    buf_release(&b);
    s->pings++;
    return ok;
}

/* ---- messages of the node ---- */

static void note_sign_of_life(struct session *s)
{
    s->heard = net_now();
    s->pinged = 0;
}

/* Counts an unexpected message. Such a message is no sign of life of the node. */
static bool count_stray(struct session *s, struct err *e)
{
    struct err cause;

    return dist_stray(&s->dist, &cause) || fail_connection(s, &cause, e);
}

static bool take_hello(struct session *s, const struct session_reply *reply, struct err *e)
{
    struct err cause;

    if (!reply->ok) {
        session_error(reply, &cause);
        return fail_connection(s, &cause, e);
    }
    if (!inject_hello(reply->term, &s->node, &s->owner)) {
        err_set(&cause, ERR_RUN, "the first answer of the companion is malformed");
        return fail_connection(s, &cause, e);
    }
    s->node.boot_ns = (uint64_t)(now_ns() - s->booted_ns);
    s->state = SESSION_READY;
    s->give_up = 0;
    note_sign_of_life(s);
    if (!dist_link(&s->dist, &s->owner, &cause))
        return fail_connection(s, &cause, e);
    if (!send_pull(s, e))
        return false;
    if (s->handlers.ready)
        s->handlers.ready(s->handlers.data, &s->node);
    return true;
}

static void take_time(struct session *s, const struct session_reply *reply, int64_t asked)
{
    struct session_time t = {.sent = asked, .heard = now_ns()};
    struct etf r = reply->term;

    if (reply->ok && etf_get_tuple(&r, 2) && etf_get_int(&r, &t.mono) && etf_get_int(&r, &t.wall) && s->handlers.time)
        s->handlers.time(s->handlers.data, &t);
}

static bool take_reply(struct session *s, struct str m, struct err *e)
{
    const unsigned char *u = (const unsigned char *)m.at;
    struct session_reply reply = {.node = s->node.name};
    struct err cause;
    struct raw word;

    if (m.len < 5)
        goto bad;
    reply.id = (uint32_t)u[1] | (uint32_t)u[2] << 8 | (uint32_t)u[3] << 16 | (uint32_t)u[4] << 24;
    if (!etf_open_version(&reply.term, m.at + 5, m.len - 5) || !etf_get_tuple(&reply.term, 2) ||
        !etf_get_atom(&reply.term, &word))
        goto bad;
    reply.ok = raw_is(word, "ok");
    if (reply.id == 0)
        return s->state == SESSION_BOOTING ? take_hello(s, &reply, e) : count_stray(s, e);
    if (reply.id == PING_ID && s->pings) {
        s->pings--;
        note_sign_of_life(s);
        return true;
    }
    for (size_t i = 0; i < s->npending; i++) {
        if (s->pending[i].id != reply.id)
            continue;
        int64_t asked = s->pending[i].asked_ns;
        s->pending[i] = s->pending[--s->npending];
        note_sign_of_life(s);
        if (asked)
            take_time(s, &reply, asked);
        else if (s->handlers.reply)
            s->handlers.reply(s->handlers.data, &reply);
        return true;
    }
    /* session_stop() has dropped the pending requests, so late answers are expected. */
    return s->state == SESSION_STOPPING || count_stray(s, e);
bad:
    err_set(&cause, ERR_RUN, "malformed answer");
    return fail_connection(s, &cause, e);
}

/*
 * Sets the credit to the bytes that arrive in one second. A larger credit would make stopping slower, because all
 * batches on the way arrive before the last one.
 */
static void measure_line(struct session *s, bool more)
{
    int64_t now = net_now();
    uint64_t second;

    if (more && s->pulled) {
        second = (uint64_t)s->unacked * 1000 / (uint64_t)MAX(now - s->pulled, 1);
        s->credit = (uint32_t)MIN(MAX(second, s->least), ETW_MAX_CREDIT);
    }
    s->pulled = more ? now : 0;
}

static void wait_for_end(struct session *s)
{
    s->give_up = MIN(net_now() + (s->drained ? UNLOAD_MS : STOP_MS), s->stop_by);
}

static bool take_batch(struct session *s, struct str m, struct err *e)
{
    struct etw_batch head;
    struct err cause;
    bool full, last, ok = true;

    if (m.len - 1 < sizeof head || s->state == SESSION_BOOTING)
        goto bad;
    memcpy(&head, m.at + 1, sizeof head);
    if (head.magic != ETW_BATCH_MAGIC || head.bytes != m.len - 1)
        goto bad;
    if (head.seq != s->seq + 1) {
        err_set(&cause, ERR_RUN, "received batch %" PRIu64 ", expected %" PRIu64, head.seq, s->seq + 1);
        return fail_connection(s, &cause, e);
    }
    s->beyond = s->allowed ? 0 : s->beyond + head.bytes;
    if (s->beyond > ETW_MAX_CREDIT + ETW_MAX_BATCH) {
        err_set(&cause, ERR_RUN, "the node violates the protocol: it sends batches that etrace did not ask for");
        return fail_connection(s, &cause, e);
    }
    note_sign_of_life(s);
    s->seq = head.seq;
    s->unacked += head.bytes;
    full = head.flags & ETW_BATCH_MORE;
    last = head.flags & ETW_BATCH_LAST;
    measure_line(s, full);
    /*
     * Pull before the handler runs, so that the next batch is on its way meanwhile. A pull also acknowledges batches:
     * acknowledge the last one only after the handler.
     */
    if (!last && s->allowed && (full || s->unacked >= s->credit / 8))
        ok = send_pull(s, e);
    if (s->handlers.batch)
        s->handlers.batch(s->handlers.data, m.at + 1, m.len - 1);
    if (s->state == SESSION_FAILED)
        return session_fail(s, &s->error, e);
    s->drained = last;
    if (s->state == SESSION_STOPPING)
        wait_for_end(s);
    return last ? send_pull(s, e) : ok;
bad:
    err_set(&cause, ERR_RUN, "malformed batch: bad magic or length");
    return fail_connection(s, &cause, e);
}

static bool take_gone(struct session *s, struct str m, struct err *e)
{
    struct err cause;
    struct etf reason;

    if (!etf_open_version(&reason, m.at + 1, m.len - 1))
        etf_open(&reason, "", 0);
    if (s->state == SESSION_STOPPING && etf_is_atom(&reason, "normal")) {
        s->state = SESSION_GONE;
        return false; /* this stops dist_read(); session_on_readable() sees GONE and returns true */
    }
    if (s->down)
        return session_fail(s, &s->why, e); /* the owner's exit reason says more than the janitor's message */
    answer_gone(reason, s->node.name, &cause);
    return session_fail(s, &cause, e);
}

/*
 * Starts the timeout of the step that the node reports. Only a later step than the present one counts; another report
 * is a stray.
 */
static bool take_waits(struct session *s, struct str m, struct err *e)
{
    struct etf name;
    bool known = false;

    for (enum step i = s->step + 1; i < ARRAY_LEN(steps) && s->state == SESSION_BOOTING; i++) {
        if (!etf_open_version(&name, m.at + 1, m.len - 1) || !etf_is_atom(&name, steps[i]))
            continue;
        known = true;
        s->step = i;
        s->give_up = i == STEP_COMPANION ? s->booted_ns / 1000000 + BOOT_MOST_MS : net_now() + BOOT_MS;
    }
    return known || count_stray(s, e);
}

/* Extends the deadlines of all pending requests, because the node works on one request at a time. */
static bool take_progress(struct session *s, struct str m, struct err *e)
{
    int64_t done, total, now = net_now();
    struct etf r;

    if (!s->npending || !etf_open_version(&r, m.at + 1, m.len - 1) || !etf_get_tuple(&r, 2) ||
        !etf_get_int(&r, &done) || !etf_get_int(&r, &total))
        return count_stray(s, e);
    note_sign_of_life(s);
    for (size_t i = 0; i < s->npending; i++)
        s->pending[i].deadline = MIN(now + s->pending[i].timeout_ms, s->pending[i].last);
    if (s->handlers.progress && 0 < done && done < total)
        s->handlers.progress(s->handlers.data, done, total);
    return true;
}

static bool on_message(void *data, struct etf message, struct err *e)
{
    struct session *s = data;
    struct etf_head h;
    struct raw bytes;

    if (!etf_peek(&message, &h) || h.type != ETF_BIN || !etf_get_bin(&message, &bytes) || !bytes.len)
        return count_stray(s, e);
    struct str m = raw_view(bytes);
    if (s->handlers.wire)
        s->handlers.wire(s->handlers.data, false, m);
    switch ((enum etw_message)m.at[0]) {
    case ETW_MSG_BATCH:
        return take_batch(s, m, e);
    case ETW_MSG_REPLY:
        return take_reply(s, m, e);
    case ETW_MSG_GONE:
        return take_gone(s, m, e);
    case ETW_MSG_WAITS:
        return take_waits(s, m, e);
    case ETW_MSG_PROGRESS:
        return take_progress(s, m, e);
    }
    return count_stray(s, e);
}

/*
 * Handles the end of the owner, to which we are linked. Usually the janitor, which loaded the tracer, then cleans up
 * and sends ETW_MSG_GONE. If the janitor was killed too, or is late on a busy node, the session fails after DOWN_MS
 * with the error s->why.
 */
static bool on_down(void *data, struct etf reason, struct err *e)
{
    struct session *s = data;

    if (s->down || (s->state == SESSION_READY && etf_is_atom(&reason, "normal")))
        return count_stray(s, e);
    if (etf_is_atom(&reason, "normal"))
        return true;
    s->down = true;
    answer_gone(reason, s->node.name, &s->why);
    s->give_up = net_now() + DOWN_MS;
    inject_sweep(&s->dist);
    return true;
}

/* Takes a part of a large message as a sign of life, for slow lines, if it has at least PART_LEAST new bytes. */
static void look_at_part(struct session *s)
{
    if (s->state != SESSION_BOOTING && s->dist.len >= s->part + PART_LEAST)
        note_sign_of_life(s);
    else if (s->dist.len >= s->part)
        return;
    s->part = s->dist.len;
}

bool session_on_readable(struct session *s, struct err *e)
{
    struct dist_handler h = {.data = s, .message = on_message, .down = on_down};
    struct err cause = {0};
    bool ok;

    if (s->state == SESSION_FAILED)
        return session_fail(s, &s->error, e);
    if (s->state == SESSION_GONE)
        return true;
    s->reading = true;
    s->read = true;
    ok = dist_flush(&s->dist, &cause) && dist_read(&s->dist, &h, &cause);
    s->reading = false;
    if (s->state == SESSION_GONE) {
        dist_release(&s->dist);
        return true;
    }
    if (!ok)
        fail_connection(s, &cause, e);
    if (s->state != SESSION_FAILED) {
        look_at_part(s);
        return true;
    }
    dist_release(&s->dist);
    *e = s->error;
    return false;
}

/* ---- time ---- */

static bool something_came(const struct session *s)
{
    struct pollfd p = {.fd = s->dist.stream.fd, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

/*
 * Extends all deadlines by the time in which we could not hear the node. Either this process was stopped, so that this
 * call comes late, or it worked on other sessions while messages of this node waited unread. If session_on_readable()
 * ran since the last call, unread messages extend no deadline, because they may be strays.
 */
static void extend_deadlines(struct session *s, int64_t now)
{
    int64_t unread = !s->read && something_came(s) ? now - s->ticked : 0,
            late = now > s->due + STOPPED_MS ? now - s->due : 0, missed = MAX(unread, late);

    s->ticked = now;
    s->read = false;
    s->heard += missed;
    s->give_up += s->give_up ? missed : 0;
    s->stop_by += missed;
    for (size_t i = 0; i < s->npending; i++)
        s->pending[i].deadline += missed;
}

static bool fail_silent(struct session *s, const char *what, int seconds, struct err *e)
{
    struct err cause;

    s->lost = true;
    err_set(&cause, s->state == SESSION_BOOTING ? ERR_NODE : ERR_RUN, "%s %s for %d seconds", s->node.name, what,
            seconds);
    return session_fail(s, &cause, e);
}

/*
 * Extends the deadline while the first message is still arriving over a slow line. Bytes sent after that message, such
 * as ticks, do not count.
 */
static void extend_boot_deadline(struct session *s, int64_t now)
{
    uint64_t left = dist_under_way(&s->dist), later = s->dist.sent - s->boot_sent;

    left -= MIN(left, later);

    if (left < s->under_way && now - s->booted_ns / 1000000 < BOOT_MOST_MS)
        s->give_up = MAX(s->give_up, now + REX_MS);
    s->under_way = MIN(s->under_way, (size_t)left);
}

static bool give_up(struct session *s, struct err *e)
{
    if (s->state == SESSION_BOOTING) {
        char what[100];
        if (s->under_way || s->step == STEP_COMPANION)
            return fail_silent(s, "accepts the connection, but has not read what etrace sent",
                               (int)((net_now() - s->booted_ns / 1000000) / 1000), e);
        snprintf(what, sizeof what, "accepts the connection, but its %s process does not answer", steps[s->step]);
        return fail_silent(s, what, (s->step == STEP_REX ? REX_MS : BOOT_MS) / 1000, e);
    }
    if (!s->down) {
        s->remains = true;
        s->state = SESSION_GONE;
        dist_release(&s->dist);
        return true;
    }
    inject_sweep(&s->dist); /* again: the janitor may have been killed since the first sweep */
    return session_fail(s, &s->why, e);
}

bool session_tick(struct session *s, int64_t now, int64_t *ret_next, struct err *e)
{
    int64_t next = now + RENEW_MS, ask = MIN(ASK_MS, s->patience / 2);
    struct err cause;

    if (s->state == SESSION_FAILED)
        return session_fail(s, &s->error, e);
    *ret_next = now + 60000;
    if (s->state == SESSION_GONE)
        return true;
    extend_deadlines(s, now);
    if (dist_wants_write(&s->dist)) {
        if (!dist_flush(&s->dist, &cause))
            return fail_connection(s, &cause, e);
        next = now + FULL_MS;
    }
    if (s->state == SESSION_BOOTING && s->under_way) {
        extend_boot_deadline(s, now);
        next = MIN(next, now + ARRIVES_MS);
    }
    if (s->give_up) {
        if (now >= s->give_up && !give_up(s, e))
            return false;
        if (s->state == SESSION_GONE)
            return true;
        next = MIN(next, MAX(s->give_up, now + 100));
    }
    if (s->state != SESSION_BOOTING) {
        if (now - s->heard >= s->patience)
            return fail_silent(s, "is silent: etrace received nothing from it", (int)(s->patience / 1000), e);
        for (size_t i = 0; i < s->npending; i++) {
            if (now >= s->pending[i].deadline)
                return fail_silent(s, "has not answered a request", s->pending[i].timeout_ms / 1000, e);
            next = MIN(next, s->pending[i].deadline);
        }
        if (now - s->heard >= ask && now - s->pinged >= ask) {
            s->pinged = now;
            if (!send_ping(s, e))
                return false;
        }
        next = MIN(next, s->heard + s->patience);
        next = MIN(next, MAX(s->heard, s->pinged) + ask);
        if (now - s->said >= RENEW_MS && !send_pull(s, e))
            return false;
        next = MIN(next, s->said + RENEW_MS);
    }
    *ret_next = s->due = next;
    return true;
}

/* ---- functions for the caller ---- */

struct session *session_open(struct node_conn *conn, const struct session_options *options,
                             const struct session_handlers *handlers, struct err *e)
{
    struct session *s;
    struct err cause;
    int64_t now;

    s = mem_zalloc(sizeof *s);
    s->handlers = *handlers;
    s->allowed = !options->hold;
    s->overwrites = options->overwrites;
    s->least = CREDIT_LEAST + 2 * options->size; /* a pull always allows an event of the largest size */
    s->credit = 2 * s->least;
    memcpy(s->node.name, conn->node, sizeof s->node.name);
    dist_init(&s->dist, conn);
    s->patience = options->patience_ms ? options->patience_ms : SILENT_MS;
    now = net_now();
    s->said = s->heard = s->ticked = s->due = now;
    s->give_up = now + REX_MS;
    s->booted_ns = now_ns();
    if (inject_boot(&s->dist, options, s->nonce, &cause)) {
        s->under_way = dist_under_way(&s->dist);
        s->boot_sent = s->dist.sent;
        return s;
    }
    fail_connection(s, &cause, e);
    session_close(s);
    return NULL;
}

int session_fd(const struct session *s)
{
    return s->state == SESSION_FAILED || s->state == SESSION_GONE ? -1 : s->dist.stream.fd;
}

bool session_wants_write(const struct session *s)
{
    return session_fd(s) >= 0 && dist_wants_write(&s->dist);
}

enum session_state session_state(const struct session *s)
{
    return s->state;
}

const struct session_node *session_node(const struct session *s)
{
    return &s->node;
}

bool session_pull_allowed(struct session *s, bool allowed, struct err *e)
{
    if (s->allowed == allowed)
        return true;
    s->allowed = allowed;
    s->beyond = 0;
    return s->state == SESSION_BOOTING || send_pull(s, e);
}

bool session_request(struct session *s, struct str term, int timeout_ms, uint32_t *ret_id, struct err *e)
{
    struct pending p = {.id = ++s->next_id,
                        .timeout_ms = timeout_ms,
                        .deadline = net_now() + timeout_ms,
                        .last = net_now() + WORK_MOST_MS};

    if (!send_request(s, p.id, term, e))
        return false;
    s->pending = mem_grow(s->pending, &s->pending_cap, s->npending + 1, sizeof p);
    s->pending[s->npending++] = p;
    *ret_id = p.id;
    return true;
}

bool session_ask_time(struct session *s, int timeout_ms, uint32_t *ret_id, struct err *e)
{
    struct buf b = {0};

    etf_version(&b);
    etf_atomz(&b, "time");
    int64_t asked = now_ns();
    bool ok = session_request(s, buf_view(&b), timeout_ms, ret_id, e);
    if (ok)
        s->pending[s->npending - 1].asked_ns = asked;
    buf_release(&b);
    return ok;
}

bool session_snapshot(struct session *s, int timeout_ms, uint32_t *ret_id, struct err *e)
{
    struct buf b = {0};

    etf_version(&b);
    etf_atomz(&b, "snapshot");
    bool ok = session_request(s, buf_view(&b), timeout_ms, ret_id, e);
    buf_release(&b);
    return ok;
}

bool session_remains(const struct session *s)
{
    return s->remains;
}

bool session_lost(const struct session *s)
{
    return s->state == SESSION_FAILED && s->lost;
}

bool session_stop(struct session *s, struct err *e)
{
    if (s->state != SESSION_READY)
        return true;
    s->state = SESSION_STOPPING;
    s->npending = 0;
    s->stop_by = net_now() + (s->overwrites ? WORK_MOST_MS : STOP_MOST_MS);
    wait_for_end(s);
    buf_clear(&s->out);
    etf_version(&s->out);
    etf_tuple(&s->out, 1);
    etf_atomz(&s->out, "stop");
    return send_out(s, e);
}

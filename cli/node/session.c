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

#define BOOT_MS 10000       /* without a byte more of the first message having arrived, or an answer behind it */
#define BOOT_MOST_MS 60000
#define ARRIVES_MS 500 /* between two looks at what has */
#define LEASE_MS 10000  /* the owner's */
#define RENEW_MS 3000   /* without a word from us */
#define ASK_MS 5000     /* without a word from the owner */
#define SILENT_MS (2 * LEASE_MS)
#define STOP_MS 10000
#define DOWN_MS 6000 /* from the owner's end to the word that everything is gone; its helpers may wait five seconds */
#define CREDIT_LEAST (128u << 10)
#define PING_ID UINT32_MAX

struct pending {
    uint32_t id;
    int timeout_ms;
    int64_t deadline;
    int64_t asked_ns; /* of the node's time; 0: another request */
};

/* Whom the node waits for, until there is an owner, in the order in which it does: for us, if rex answers before all of the companion is there. */
enum step { STEP_REX, STEP_COMPANION, STEP_CODE_SERVER, STEP_TRACER };
static const char *const steps[] = {"rex", "companion", "code_server", "tracer"};

struct session {
    enum session_state state;
    struct session_handlers handlers;
    struct session_node node;
    struct dist dist;
    struct node_pid owner;
    enum step step;   /* BOOTING */
    unsigned char nonce[NONCE_BYTES];
    size_t under_way; /* BOOTING: how much of the first message had not arrived when that was last looked at */
    bool down;        /* the owner has ended, but not because it was told to */
    struct err why;   /* what it said, with down */
    bool lost;        /* FAILED because of the connection */
    bool reading;     /* inside dist_read(): the buffers are in use */
    struct err error; /* with FAILED */

    uint64_t seq;           /* of the latest batch */
    uint32_t unacked;       /* bytes of batches that the node does not know to have arrived */
    uint32_t credit, least; /* how many there may be; how many at least */
    int64_t pulled;         /* when the next ones were asked for while there were more; 0: all had come */
    bool allowed;

    struct pending *pending;
    size_t npending, pending_cap;
    uint32_t next_id;

    int64_t booted_ns, said, heard, pinged, give_up; /* milliseconds, but for booted_ns */
    struct session *next; /* of those of this thread */
    int64_t lapsed; /* when we ourselves had been silent for longer than the lease allows; 0: never */
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

/* Sets FAILED; what was said first stays said. The descriptor is closed at once: it is how the node learns of it. */
static bool fail(struct session *s, const struct err *cause, struct err *e)
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

/* Not so long ago that the node would have ended before: it may have slept as long as we did. */
static bool slept(const struct session *s)
{
    int64_t now = net_now();

    return now - s->said >= LEASE_MS || (s->lapsed && now - s->lapsed < LEASE_MS);
}

/* What went wrong on the wire, said with the node's name. When we have slept too long ourselves, that explains it. */
static bool broken(struct session *s, const struct err *cause, struct err *e)
{
    struct err whole;

    if (s->state == SESSION_FAILED)
        return fail(s, cause, e);
    s->lost = cause->status == ERR_RUN;
    if (slept(s))
        err_set(&whole, ERR_GUARD, "%s ended the tracing: it had heard nothing from here for %d seconds", s->node.name, LEASE_MS / 1000);
    else
        err_set(&whole, cause->status, "%s: %s", s->node.name, cause->text);
    return fail(s, &whole, e);
}

static _Thread_local struct session *all;

/* While this thread waits for something else, one of them for instance: the leases are renewed. */
static void see_to_all(void)
{
    int64_t next;
    struct err ignored; /* whoever serves the session next is told */

    for (struct session *s = all; s; s = s->next)
        if (!s->dist.writing)
            session_tick(s, net_now(), &next, &ignored);
}

void session_close(struct session *s)
{
    if (!s)
        return;
    struct session **at = &all;
    while (*at && *at != s)
        at = &(*at)->next;
    if (*at)
        *at = s->next;
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
        return fail(s, &s->error, e);
    if (s->state == SESSION_GONE)
        return true;
    if (now - s->said >= LEASE_MS)
        s->lapsed = now;
    s->said = now;
    return dist_send(&s->dist, &s->owner, buf_view(&s->out), &cause) || broken(s, &cause, e);
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
    return ok;
}

/* ---- what the node says ---- */

static bool take_hello(struct session *s, const struct session_reply *reply, struct err *e)
{
    struct err cause;

    if (!reply->ok) {
        session_error(reply, &cause);
        return broken(s, &cause, e);
    }
    if (!inject_hello(reply->term, &s->node, &s->owner)) {
        err_set(&cause, ERR_RUN, "the companion's first answer cannot be read");
        return broken(s, &cause, e);
    }
    s->node.boot_ns = (uint64_t)(now_ns() - s->booted_ns);
    s->state = SESSION_READY;
    s->give_up = 0;
    if (!dist_link(&s->dist, &s->owner, &cause))
        return broken(s, &cause, e);
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
    struct session_reply reply = {0};
    struct err cause;
    struct str word;

    if (m.len < 5)
        goto bad;
    reply.id = (uint32_t)u[1] | (uint32_t)u[2] << 8 | (uint32_t)u[3] << 16 | (uint32_t)u[4] << 24;
    if (!etf_open_version(&reply.term, m.at + 5, m.len - 5) || !etf_get_tuple(&reply.term, 2) || !etf_get_atom(&reply.term, &word))
        goto bad;
    reply.ok = word.len == 2 && !memcmp(word.at, "ok", 2);
    if (reply.id == 0)
        return s->state == SESSION_BOOTING ? take_hello(s, &reply, e) : true;
    for (size_t i = 0; i < s->npending; i++) {
        if (s->pending[i].id != reply.id)
            continue;
        int64_t asked = s->pending[i].asked_ns;
        s->pending[i] = s->pending[--s->npending];
        if (asked)
            take_time(s, &reply, asked);
        else if (s->handlers.reply)
            s->handlers.reply(s->handlers.data, &reply);
        break;
    }
    return true;
bad:
    err_set(&cause, ERR_RUN, "an answer that cannot be read");
    return broken(s, &cause, e);
}

/* As much as the line carries, or we take, in a second: what is on its way when the tracing ends has to come first. */
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
        err_set(&cause, ERR_RUN, "batch %" PRIu64 " where %" PRIu64 " was due", head.seq, s->seq + 1);
        return broken(s, &cause, e);
    }
    s->seq = head.seq;
    s->unacked += head.bytes;
    full = head.flags & ETW_BATCH_MORE;
    last = head.flags & ETW_BATCH_LAST;
    measure_line(s, full);
    /* said before the events are shown, so that the next ones come meanwhile; of the last batch once they have been */
    if (!last && s->allowed && (full || s->unacked >= s->credit / 8))
        ok = send_pull(s, e);
    if (s->handlers.batch)
        s->handlers.batch(s->handlers.data, m.at + 1, m.len - 1);
    if (s->state == SESSION_FAILED)
        return fail(s, &s->error, e);
    return last ? send_pull(s, e) : ok;
bad:
    err_set(&cause, ERR_RUN, "a batch that is none");
    return broken(s, &cause, e);
}

static bool take_gone(struct session *s, struct str m, struct err *e)
{
    struct err cause;
    struct etf reason;

    if (!etf_open_version(&reason, m.at + 1, m.len - 1))
        etf_open(&reason, "", 0);
    if (s->state == SESSION_STOPPING && etf_is_atom(&reason, "normal")) {
        s->state = SESSION_GONE;
        return false; /* stops the reading; session_on_readable() knows better than that it failed */
    }
    if (s->down)
        return fail(s, &s->why, e); /* the owner itself knew best */
    answer_gone(reason, s->node.name, &cause);
    return fail(s, &cause, e);
}

/* Each step is given its time once, however often it is named. */
static void take_waits(struct session *s, struct str m)
{
    struct etf name;

    for (enum step i = s->step + 1; i < ARRAY_LEN(steps) && s->state == SESSION_BOOTING; i++) {
        if (!etf_open_version(&name, m.at + 1, m.len - 1) || !etf_is_atom(&name, steps[i]))
            continue;
        s->step = i;
        s->give_up = i == STEP_COMPANION ? s->booted_ns / 1000000 + BOOT_MOST_MS : net_now() + BOOT_MS;
    }
}

static bool on_message(void *data, struct etf message, struct err *e)
{
    struct session *s = data;
    struct etf_head h;
    struct str m;

    s->heard = net_now();
    s->pinged = 0;
    if (etf_peek(&message, &h) && h.type == ETF_BIN) {
        if (!etf_get_bin(&message, &m) || !m.len)
            return true;
        switch (m.at[0]) {
        case ETW_MSG_BATCH:
            return take_batch(s, m, e);
        case ETW_MSG_REPLY:
            return take_reply(s, m, e);
        case ETW_MSG_GONE:
            return take_gone(s, m, e);
        case ETW_MSG_WAITS:
            take_waits(s, m);
            return true;
        default:
            return true;
        }
    }
    return true; /* a stray: nobody else knows our pid */
}

/*
 * The last word comes from whoever cleans up behind the owner, unless that one was killed as well, or has not come to it on a
 * node that is busy: then this is what is known.
 */
static bool on_down(void *data, struct etf reason, struct err *e UNUSED)
{
    struct session *s = data;

    if (etf_is_atom(&reason, "normal"))
        return true;
    s->down = true;
    answer_gone(reason, s->node.name, &s->why);
    s->give_up = net_now() + DOWN_MS;
    inject_sweep(&s->dist);
    return true;
}

bool session_on_readable(struct session *s, struct err *e)
{
    struct dist_handler h = {.data = s, .message = on_message, .down = on_down};
    struct err cause = {0};
    bool ok;

    if (s->state == SESSION_FAILED)
        return fail(s, &s->error, e);
    if (s->state == SESSION_GONE)
        return true;
    s->reading = true;
    ok = dist_read(&s->dist, &h, &cause);
    s->reading = false;
    if (s->state == SESSION_GONE) {
        dist_release(&s->dist);
        return true;
    }
    if (!ok)
        broken(s, &cause, e);
    if (s->state != SESSION_FAILED)
        return true;
    dist_release(&s->dist);
    *e = s->error;
    return false;
}

/* ---- time ---- */

/* We may have slept ourselves: what waits in the socket is heard first. */
static bool something_came(const struct session *s)
{
    struct pollfd p = {.fd = s->dist.stream.fd, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

static bool silent(struct session *s, const char *what, int seconds, struct err *e)
{
    struct err cause;

    if (something_came(s))
        return true;
    s->lost = true;
    err_set(&cause, s->state == SESSION_BOOTING ? ERR_NODE : ERR_RUN, "%s %s for %d seconds", s->node.name, what, seconds);
    return fail(s, &cause, e);
}

/* A slow line is given more time as long as it carries. */
static void arrives(struct session *s, int64_t now)
{
    size_t left = net_under_way(s->dist.stream.fd);

    if (left < s->under_way && now - s->booted_ns / 1000000 < BOOT_MOST_MS)
        s->give_up = MAX(s->give_up, now + BOOT_MS);
    s->under_way = left;
}

static bool give_up(struct session *s, struct err *e)
{
    if (s->state == SESSION_BOOTING) {
        char what[100];
        if (s->under_way || s->step == STEP_COMPANION)
            return silent(s, "accepts the connection, but what it is sent has been on its way", (int)((net_now() - s->booted_ns / 1000000) / 1000), e);
        snprintf(what, sizeof what, "accepts the connection, but its %s process does not answer", steps[s->step]);
        return silent(s, what, BOOT_MS / 1000, e);
    }
    if (!s->down)
        return silent(s, "has not confirmed that the tracing is gone", STOP_MS / 1000, e);
    if (something_came(s))
        return true;
    inject_sweep(&s->dist); /* whoever would have cleaned up may have been killed meanwhile */
    return fail(s, &s->why, e);
}

bool session_tick(struct session *s, int64_t now, int64_t *ret_next, struct err *e)
{
    int64_t next = now + RENEW_MS;

    if (s->state == SESSION_FAILED)
        return fail(s, &s->error, e);
    *ret_next = now + 60000;
    if (s->state == SESSION_GONE)
        return true;
    if (s->state == SESSION_BOOTING && s->under_way) {
        arrives(s, now);
        next = now + ARRIVES_MS;
    }
    if (s->give_up) {
        if (now >= s->give_up && !give_up(s, e))
            return false;
        next = MIN(next, MAX(s->give_up, now + 100));
    }
    if (s->state != SESSION_BOOTING) {
        if (now - s->heard >= SILENT_MS && !silent(s, "is silent: nothing was heard from it", SILENT_MS / 1000, e))
            return false;
        for (size_t i = 0; i < s->npending; i++) {
            if (now >= s->pending[i].deadline && !silent(s, "has not answered a request", s->pending[i].timeout_ms / 1000, e))
                return false;
            next = MIN(next, MAX(s->pending[i].deadline, now + 100));
        }
        if (now - s->heard >= ASK_MS && now - s->pinged >= ASK_MS) {
            s->pinged = now;
            if (!send_ping(s, e))
                return false;
        }
        if (now - s->said >= RENEW_MS && !send_pull(s, e))
            return false;
        next = MIN(next, s->said + RENEW_MS);
    }
    *ret_next = next;
    return true;
}

/* ---- what the caller asks for ---- */

struct session *session_open(const struct node_target *target, const struct session_options *options, const struct session_handlers *handlers,
                             struct err *e)
{
    struct node_conn conn;

    return node_connect(target, &conn, e) ? session_open_on(&conn, options, handlers, e) : NULL;
}

struct session *session_open_on(struct node_conn *conn, const struct session_options *options,
                                const struct session_handlers *handlers, struct err *e)
{
    struct session *s;
    struct err cause;
    int64_t now;

    s = mem_zalloc(sizeof *s);
    s->handlers = *handlers;
    s->allowed = !options->hold;
    s->least = CREDIT_LEAST + 2 * options->size; /* there is always room for an event */
    s->credit = 2 * s->least;
    memcpy(s->node.name, conn->node, sizeof s->node.name);
    dist_init(&s->dist, conn);
    now = net_now();
    s->said = s->heard = now;
    s->give_up = now + BOOT_MS;
    s->booted_ns = now_ns();
    if (inject_boot(&s->dist, options, s->nonce, &cause)) {
        s->under_way = net_under_way(s->dist.stream.fd);
        s->next = all;
        all = s;
        net_meanwhile(see_to_all);
        return s;
    }
    broken(s, &cause, e);
    session_close(s);
    return NULL;
}

int session_fd(const struct session *s)
{
    return s->state == SESSION_FAILED || s->state == SESSION_GONE ? -1 : s->dist.stream.fd;
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
    return s->state == SESSION_BOOTING || send_pull(s, e);
}

bool session_request(struct session *s, struct str term, int timeout_ms, uint32_t *ret_id, struct err *e)
{
    struct pending p = {.id = ++s->next_id, .timeout_ms = timeout_ms, .deadline = net_now() + timeout_ms};

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
    s->give_up = net_now() + STOP_MS;
    buf_clear(&s->out);
    etf_version(&s->out);
    etf_tuple(&s->out, 1);
    etf_atomz(&s->out, "stop");
    return send_out(s, e);
}

/* ---- for commands without an event loop ---- */

static bool waits_for(const struct session *s, uint32_t id)
{
    if (!id)
        return s->state == SESSION_BOOTING || s->state == SESSION_STOPPING;
    for (size_t i = 0; i < s->npending; i++)
        if (s->pending[i].id == id)
            return true;
    return false;
}

bool session_wait(struct session *s, uint32_t reply_id, int timeout_ms, struct err *e)
{
    int64_t deadline = net_now() + timeout_ms, next;

    while (waits_for(s, reply_id)) {
        int64_t now = net_now();
        if (!session_tick(s, now, &next, e))
            return false;
        if (now >= deadline)
            return err_set(e, ERR_RUN, "%s has not answered within %d seconds", s->node.name, timeout_ms / 1000);
        if (net_wait(session_fd(s), POLLIN, MIN(deadline, next)) == NET_OK && !session_on_readable(s, e))
            return false;
        if (net_interrupted())
            return err_set(e, ERR_RUN, "%s has not answered yet", s->node.name);
    }
    return true;
}

bool session_await(struct session *s, uint32_t reply_id, struct err *e)
{
    net_hear(true);
    bool ok = session_wait(s, reply_id, INT32_MAX, e);
    net_hear(false);
    return ok;
}

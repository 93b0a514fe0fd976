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

#define REX_MS 5000   /* until rex answers, without a byte more of the first message having arrived */
#define BOOT_MS 10000 /* for each step behind it */
#define BOOT_MOST_MS 60000
#define ARRIVES_MS 500 /* between two looks at what has */
#define FULL_MS 500    /* between two looks at a connection that is full */
#define LEASE_MS 10000  /* the owner's */
#define RENEW_MS 3000   /* without a word from us */
#define ASK_MS 5000     /* without a sign of life from the owner; half of options.patience_ms where that is less */
#define SILENT_MS (2 * LEASE_MS)
#define STOP_MS 10000
#define WORK_MOST_MS 600000 /* that a node may work on a request */
#define DOWN_MS 6000 /* from the owner's end to the word that everything is gone; its helpers may wait five seconds */
#define CREDIT_LEAST (128u << 10)
#define PART_LEAST 4096 /* bytes more of a message that is on its way: a sign of life */
#define PING_ID UINT32_MAX

struct pending {
    uint32_t id;
    int timeout_ms;
    int64_t deadline, last; /* however much progress the node reports */
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
    uint64_t boot_sent; /* what the dist had sent when that message had been written */
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

    int64_t booted_ns, said, pinged, give_up; /* milliseconds, but for booted_ns */
    int64_t heard;    /* the last sign of life: a batch, or an answer to something that we asked */
    int64_t patience; /* how long there may be none */
    int64_t ticked;   /* the last session_tick() */
    bool read;        /* since then */
    size_t part;      /* of the message that is on its way: how much there was at the last sign of life */
    uint64_t beyond;  /* bytes of batches that came while none were allowed */
    unsigned pings;   /* without an answer yet */
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

void session_close(struct session *s)
{
    if (!s)
        return;
    if (s->down && session_fd(s) >= 0)
        inject_sweep(&s->dist); /* the first one may have found a process that was about to end */
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
    s->pings++;
    return ok;
}

/* ---- what the node says ---- */

static void lives(struct session *s)
{
    s->heard = net_now();
    s->pinged = 0;
}

/* A message that is no answer to anything: it does not show that the owner lives. */
static bool stray(struct session *s, struct err *e)
{
    struct err cause;

    return dist_stray(&s->dist, &cause) || broken(s, &cause, e);
}

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
    lives(s);
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
    struct raw word;

    if (m.len < 5)
        goto bad;
    reply.id = (uint32_t)u[1] | (uint32_t)u[2] << 8 | (uint32_t)u[3] << 16 | (uint32_t)u[4] << 24;
    if (!etf_open_version(&reply.term, m.at + 5, m.len - 5) || !etf_get_tuple(&reply.term, 2) || !etf_get_atom(&reply.term, &word))
        goto bad;
    reply.ok = raw_is(word, "ok");
    if (reply.id == 0)
        return s->state == SESSION_BOOTING ? take_hello(s, &reply, e) : stray(s, e);
    if (reply.id == PING_ID && s->pings) {
        s->pings--;
        lives(s);
        return true;
    }
    for (size_t i = 0; i < s->npending; i++) {
        if (s->pending[i].id != reply.id)
            continue;
        int64_t asked = s->pending[i].asked_ns;
        s->pending[i] = s->pending[--s->npending];
        lives(s);
        if (asked)
            take_time(s, &reply, asked);
        else if (s->handlers.reply)
            s->handlers.reply(s->handlers.data, &reply);
        return true;
    }
    return s->state == SESSION_STOPPING || stray(s, e); /* session_stop() has forgotten what was asked */
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
    s->beyond = s->allowed ? 0 : s->beyond + head.bytes;
    if (s->beyond > ETW_MAX_CREDIT + ETW_MAX_BATCH) {
        err_set(&cause, ERR_RUN, "the node does not keep to the protocol: it sends batches that were not asked for");
        return broken(s, &cause, e);
    }
    lives(s);
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
    err_set(&cause, ERR_RUN, "malformed batch: bad magic or length");
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
    return known || stray(s, e);
}

/* The node works on one request after the other, so progress on one of them renews the time of all. */
static bool take_progress(struct session *s, struct str m, struct err *e)
{
    int64_t done, total, now = net_now();
    struct etf r;

    if (!s->npending || !etf_open_version(&r, m.at + 1, m.len - 1) || !etf_get_tuple(&r, 2) || !etf_get_int(&r, &done)
        || !etf_get_int(&r, &total))
        return stray(s, e);
    lives(s);
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
        return stray(s, e);
    struct str m = raw_view(bytes);
    switch (m.at[0]) {
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
    default:
        return stray(s, e);
    }
}

/*
 * The last word comes from whoever cleans up behind the owner, unless that one was killed as well, or has not come to it on a
 * node that is busy: then this is what is known.
 */
static bool on_down(void *data, struct etf reason, struct err *e)
{
    struct session *s = data;

    if (s->down || (s->state == SESSION_READY && etf_is_atom(&reason, "normal")))
        return stray(s, e);
    if (etf_is_atom(&reason, "normal"))
        return true;
    s->down = true;
    answer_gone(reason, s->node.name, &s->why);
    s->give_up = net_now() + DOWN_MS;
    inject_sweep(&s->dist);
    return true;
}

/* A slow line carries a large message in pieces. One that is let in byte by byte shows nothing. */
static void look_at_part(struct session *s)
{
    if (s->state != SESSION_BOOTING && s->dist.len >= s->part + PART_LEAST)
        lives(s);
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
        return fail(s, &s->error, e);
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
        broken(s, &cause, e);
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
 * The node is not to blame for time in which its words waited to be read: this process was stopped, or served another session.
 * Its words may be worth nothing; so time counts again as soon as they are read.
 */
static void forgive(struct session *s, int64_t now)
{
    int64_t unread = !s->read && something_came(s) ? now - s->ticked : 0;

    s->ticked = now;
    s->read = false;
    s->heard += unread;
    s->give_up += s->give_up ? unread : 0;
    for (size_t i = 0; i < s->npending; i++)
        s->pending[i].deadline += unread;
}

static bool silent(struct session *s, const char *what, int seconds, struct err *e)
{
    struct err cause;

    s->lost = true;
    err_set(&cause, s->state == SESSION_BOOTING ? ERR_NODE : ERR_RUN, "%s %s for %d seconds", s->node.name, what, seconds);
    return fail(s, &cause, e);
}

/* A slow line gets more time as long as it carries the first message. Answers to ticks, sent after it, do not count. */
static void arrives(struct session *s, int64_t now)
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
            return silent(s, "accepts the connection, but what it is sent has been on its way", (int)((net_now() - s->booted_ns / 1000000) / 1000), e);
        snprintf(what, sizeof what, "accepts the connection, but its %s process does not answer", steps[s->step]);
        return silent(s, what, (s->step == STEP_REX ? REX_MS : BOOT_MS) / 1000, e);
    }
    if (!s->down)
        return silent(s, "has not confirmed that the tracing is gone", STOP_MS / 1000, e);
    inject_sweep(&s->dist); /* whoever would have cleaned up may have been killed meanwhile */
    return fail(s, &s->why, e);
}

bool session_tick(struct session *s, int64_t now, int64_t *ret_next, struct err *e)
{
    int64_t next = now + RENEW_MS, ask = MIN(ASK_MS, s->patience / 2);
    struct err cause;

    if (s->state == SESSION_FAILED)
        return fail(s, &s->error, e);
    *ret_next = now + 60000;
    if (s->state == SESSION_GONE)
        return true;
    forgive(s, now);
    if (dist_wants_write(&s->dist)) {
        if (!dist_flush(&s->dist, &cause))
            return broken(s, &cause, e);
        next = now + FULL_MS;
    }
    if (s->state == SESSION_BOOTING && s->under_way) {
        arrives(s, now);
        next = MIN(next, now + ARRIVES_MS);
    }
    if (s->give_up) {
        if (now >= s->give_up && !give_up(s, e))
            return false;
        next = MIN(next, MAX(s->give_up, now + 100));
    }
    if (s->state != SESSION_BOOTING) {
        if (now - s->heard >= s->patience)
            return silent(s, "is silent: nothing was heard from it", (int)(s->patience / 1000), e);
        for (size_t i = 0; i < s->npending; i++) {
            if (now >= s->pending[i].deadline)
                return silent(s, "has not answered a request", s->pending[i].timeout_ms / 1000, e);
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
    *ret_next = next;
    return true;
}

/* ---- what the caller asks for ---- */

struct session *session_open(struct node_conn *conn, const struct session_options *options, const struct session_handlers *handlers,
                             struct err *e)
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
    s->patience = options->patience_ms ? options->patience_ms : SILENT_MS;
    now = net_now();
    s->said = s->heard = s->ticked = now;
    s->give_up = now + REX_MS;
    s->booted_ns = now_ns();
    if (inject_boot(&s->dist, options, s->nonce, &cause)) {
        s->under_way = dist_under_way(&s->dist);
        s->boot_sent = s->dist.sent;
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
    struct pending p = {.id = ++s->next_id, .timeout_ms = timeout_ms, .deadline = net_now() + timeout_ms, .last = net_now() + WORK_MOST_MS};

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

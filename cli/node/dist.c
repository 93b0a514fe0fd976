/* SPDX-License-Identifier: Apache-2.0 */
#include "dist.h"

#include <stdlib.h>
#include <string.h>

#include "../erlang/etf_write.h"
#include "../ground/mem.h"

#define READ_MIN (64u << 10)
#define READ_KEPT (256u << 10) /* the read buffer shrinks to this size after a larger frame */
#define TLS_MOST 64            /* upper bound of the bytes that TLS adds to one small write */
#define RECORDS_MAX 64         /* TLS records that one dist_read() reads; then other descriptors get their turn */
#define STRAYS_MAX 100
#define STRAY_MS 1000  /* time after which one stray no longer counts */
#define TICKS_MAX 1000 /* most ticks without a message; a node with a short tick time sends sixteen a second */

/* Control messages of the distribution protocol that we send or handle. */
enum {
    CTL_LINK = 1,
    CTL_SEND = 2,
    CTL_EXIT = 3,
    CTL_REG_SEND = 6,
    CTL_SEND_TT = 12,
    CTL_EXIT_TT = 13,
    CTL_SEND_SENDER = 22
};

void dist_init(struct dist *d, const struct node_conn *conn)
{
    *d = (struct dist){.stream = conn->stream, .self = conn->self};
}

void dist_release(struct dist *d)
{
    stream_close(&d->stream);
    free(d->data);
    buf_release(&d->out);
    buf_release(&d->waiting);
    *d = (struct dist){.stream.fd = -1};
}

/* ---- reading ---- */

static bool protocol_error(struct err *e, const char *what)
{
    return err_set(e, ERR_RUN, "the node violates the protocol: %s", what);
}

bool dist_stray(struct dist *d, struct err *e)
{
    int64_t now = net_now(), forgotten = (now - d->strayed) / STRAY_MS;

    if (forgotten) {
        d->strays -= (unsigned)MIN((int64_t)d->strays, forgotten);
        d->strayed = now;
    }
    return ++d->strays <= STRAYS_MAX || protocol_error(e, "too many unexpected messages");
}

/*
 * Returns true if the next term is the pid `p`, with the same creation: the node gives our name to other clients before
 * and after us, and a late message for one of them has another creation.
 */
static bool is_pid(struct etf *control, const struct node_pid *p)
{
    struct etf_head found;

    return etf_get_pid(control, &found) && found.id == p->id && found.serial == p->serial &&
           found.creation == p->creation;
}

/* Returns true if a message is for us. Skips the element before the destination, which is the sender or unused. */
static bool is_ours(const struct dist *d, struct etf *control)
{
    return etf_skip(control) && is_pid(control, &d->self);
}

/* Returns true if the linked process has ended. *control is then at the exit reason. */
static bool is_end(const struct dist *d, struct etf *control, bool has_token)
{
    return d->linked.node[0] && is_pid(control, &d->linked) && is_pid(control, &d->self) &&
           (!has_token || etf_skip(control));
}

/* Handles a frame: 'p', 131, the control message, and for some control messages 131 and a message. */
static bool handle_frame(struct dist *d, const char *at, size_t len, const struct dist_handler *h, struct err *e)
{
    struct etf r, control;
    struct etf_head head;
    int64_t op;

    if (at[0] != 'p')
        return protocol_error(e, "unknown kind of frame");
    if (!etf_open_version(&r, at + 1, len - 1) || !etf_take(&r, &control) || !etf_next(&control, &head) ||
        head.type != ETF_TUPLE || !head.count || !etf_get_int(&control, &op))
        return protocol_error(e, "malformed control message");
    switch (op) {
    case CTL_SEND:
    case CTL_SEND_TT:
    case CTL_SEND_SENDER:
        if (r.at == r.end || *r.at != 131)
            return protocol_error(e, "missing message");
        if (!is_ours(d, &control))
            return dist_stray(d, e);
        etf_open(&r, r.at + 1, (size_t)(r.end - r.at) - 1);
        d->ticks = 0;
        return h->message(h->data, r, e);
    case CTL_EXIT:
    case CTL_EXIT_TT:
        return is_end(d, &control, op == CTL_EXIT_TT) ? h->down(h->data, control, e) : dist_stray(d, e);
    default:
        return dist_stray(d, e);
    }
}

bool dist_wants_write(const struct dist *d)
{
    return d->waiting.len;
}

size_t dist_under_way(const struct dist *d)
{
    return net_under_way(d->stream.fd) + d->waiting.len;
}

bool dist_flush(struct dist *d, struct err *e)
{
    struct buf *w = &d->waiting;
    size_t sent = 1, done = 0;
    bool ok = true;

    if (!w->len)
        return true;
    while (ok && sent && done < w->len) {
        ok = stream_send(&d->stream, w->data + done, w->len - done, &sent) == NET_OK;
        done += ok ? sent : 0;
    }
    if (done)
        d->stuck = net_now();
    w->len -= done;
    memmove(w->data, w->data + done, w->len);
    ok = ok && (!w->len || net_now() - d->stuck < DIST_SEND_MS);
    return ok || err_set(e, ERR_RUN, "the node has stopped reading messages");
}

static bool send_bytes(struct dist *d, const void *bytes, size_t len, struct err *e)
{
    if (!d->waiting.len)
        d->stuck = net_now();
    buf_add(&d->waiting, bytes, len);
    d->sent += len + (d->stream.tls ? TLS_MOST : 0);
    return dist_flush(d, e);
}

static bool count_tick(struct dist *d, struct err *e)
{
    return ++d->ticks <= TICKS_MAX || protocol_error(e, "it sends only ticks");
}

static bool answer_tick(struct dist *d, struct err *e)
{
    static const char zeros[4];

    return send_bytes(d, zeros, sizeof zeros, e);
}

static size_t frame_length(const char *at)
{
    const unsigned char *u = (const unsigned char *)at;

    return (size_t)u[0] << 24 | (size_t)u[1] << 16 | (size_t)u[2] << 8 | u[3];
}

/* Handles all complete frames, and sets *ret_used to the number of their bytes. Answers several ticks once. */
static bool handle_frames(struct dist *d, const struct dist_handler *h, size_t *ret_used, struct err *e)
{
    bool ticked = false;
    size_t at = 0;

    while (d->len - at >= 4) {
        size_t len = frame_length(d->data + at);
        if (len > DIST_FRAME_MAX)
            return protocol_error(e, "frame too large");
        if (d->len - at - 4 < len)
            break;
        if (!(len ? handle_frame(d, d->data + at + 4, len, h, e) : count_tick(d, e)))
            return false;
        ticked = ticked || !len;
        at += 4 + len;
    }
    *ret_used = at;
    return !ticked || answer_tick(d, e);
}

/* Reads once, and handles the complete frames. Sets *ret_none if there was nothing to read. */
static bool read_once(struct dist *d, const struct dist_handler *h, bool *ret_none, struct err *e)
{
    size_t want = d->len >= 4 ? frame_length(d->data) + 4 : READ_MIN, used = 0, n;

    if (d->cap - d->len < READ_MIN / 2 || d->cap < want) {
        d->cap = MAX(MAX(want, d->len + READ_MIN), MIN(2 * d->cap, READ_KEPT));
        d->data = mem_realloc(d->data, d->cap);
    }
    enum net_status s = stream_read(&d->stream, d->data + d->len, d->cap - d->len, 0, &n);
    *ret_none = s == NET_TIMEOUT;
    if (s == NET_TIMEOUT)
        return true;
    if (s != NET_OK)
        return stream_closed(&d->stream, e);
    d->len += n;
    if (!handle_frames(d, h, &used, e))
        return false;
    memmove(d->data, d->data + used, d->len - used);
    d->len -= used;
    if (d->cap > READ_KEPT && !d->len && used < READ_KEPT) {
        d->cap = READ_KEPT;
        d->data = mem_realloc(d->data, d->cap);
    }
    return true;
}

/*
 * Reads once with plain TCP; poll() then reports what is left. With TLS, each read returns only one small record.
 * Therefore reads up to RECORDS_MAX times, and longer while TLS holds bytes that poll() does not report.
 */
bool dist_read(struct dist *d, const struct dist_handler *h, struct err *e)
{
    bool none = false;

    for (size_t i = 0; i < RECORDS_MAX || stream_pending(&d->stream); i++)
        if (!read_once(d, h, &none, e))
            return false;
        else if (none || !d->stream.tls)
            break;
    return true;
}

/* ---- sending ---- */

static void dist_put_pid(struct buf *b, const struct node_pid *p)
{
    etf_pid(b, (struct str){p->node, strlen(p->node)}, p->id, p->serial, p->creation);
}

static void dist_begin(struct dist *d)
{
    buf_clear(&d->out);
    buf_add(&d->out, "\0\0\0\0p", 5);
    etf_version(&d->out);
}

static bool dist_finish(struct dist *d, struct str message, struct err *e)
{
    size_t len;

    buf_str(&d->out, message);
    len = d->out.len - 4;
    for (unsigned i = 0; i < 4; i++)
        d->out.data[i] = (char)(len >> (24 - 8 * i));
    return send_bytes(d, d->out.data, d->out.len, e);
}

bool dist_send(struct dist *d, const struct node_pid *to, struct str message, struct err *e)
{
    dist_begin(d);
    etf_tuple(&d->out, 3);
    etf_int(&d->out, CTL_SEND);
    etf_atomz(&d->out, "");
    dist_put_pid(&d->out, to);
    return dist_finish(d, message, e);
}

/*
 * Links to the process instead of monitoring it: a node reports the end of a monitored process only to peers with
 * capability flags that libei does not announce.
 */
bool dist_link(struct dist *d, const struct node_pid *to, struct err *e)
{
    dist_begin(d);
    etf_tuple(&d->out, 3);
    etf_int(&d->out, CTL_LINK);
    dist_put_pid(&d->out, &d->self);
    dist_put_pid(&d->out, to);
    d->linked = *to;
    return dist_finish(d, (struct str){NULL, 0}, e);
}

bool dist_send_named(struct dist *d, const char *name, struct str message, struct err *e)
{
    dist_begin(d);
    etf_tuple(&d->out, 4);
    etf_int(&d->out, CTL_REG_SEND);
    dist_put_pid(&d->out, &d->self);
    etf_atomz(&d->out, "");
    etf_atomz(&d->out, name);
    return dist_finish(d, message, e);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "handshake.h"

#include <ei.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../ground/utf8.h"
#include "tls.h"

#define HEARD_MAX 2048
#define RESET_MS 250     /* most time to wait for a reset of the connection: enough for a round trip */
#define RESET_LOOK_MS 10 /* interval between two checks whether the node's system has acknowledged our bytes */

/*
 * A handshake that libei does on our socket. libei gets only complete and well-formed packets, because a malformed
 * packet makes it free memory that it did not allocate.
 */
struct talk {
    struct stream *stream;
    int64_t deadline;
    unsigned char heard[HEARD_MAX];
    size_t nheard, good, given; /* bytes received >= bytes in well-formed packets >= bytes given to libei */
    enum net_status ended;      /* why the last read failed */
    const struct cookie *cookie;
    const struct trust_end *end;
    enum handshake_result withheld; /* why we do not answer the challenge; HANDSHAKE_OK: we answer it */
    struct trust_refusal *why;
};

static bool next_packet(const struct talk *t, size_t *at, struct str *ret);
static bool begins_with(struct str p, const char *word);

/* ---- callbacks by which libei uses our socket ---- */

static int error_of(enum net_status s)
{
    return s == NET_OK ? 0 : s == NET_TIMEOUT ? ETIMEDOUT : EIO;
}

static int cb_socket(void **ctx, void *setup)
{
    *ctx = setup;
    return 0;
}

static int cb_close(void *ctx UNUSED)
{
    return 0; /* libei does not own the socket */
}

static int cb_listen(void *ctx UNUSED, void *addr UNUSED, int *len UNUSED, int backlog UNUSED)
{
    return EOPNOTSUPP;
}

static int cb_accept(void **ctx UNUSED, void *addr UNUSED, int *len UNUSED, unsigned tmo UNUSED)
{
    return EOPNOTSUPP;
}

static int cb_connect(void *ctx UNUSED, void *addr UNUSED, int len UNUSED, unsigned tmo UNUSED)
{
    return 0;
}

static int cb_write(void *ctx, const char *buf, ssize_t *len, unsigned tmo UNUSED)
{
    struct talk *t = ctx;

    return error_of(stream_write(t->stream, buf, (size_t)*len, t->deadline));
}

static int cb_writev(void *ctx, const void *iov, int count, ssize_t *len, unsigned tmo UNUSED)
{
    struct talk *t = ctx;
    const struct iovec *v = iov;
    enum net_status s = NET_OK;

    *len = 0;
    for (int i = 0; i < count && s == NET_OK; i++) {
        s = stream_write(t->stream, v[i].iov_base, v[i].iov_len, t->deadline);
        *len += (ssize_t)v[i].iov_len;
    }
    return error_of(s);
}

static bool hear_up_to(struct talk *t, size_t want)
{
    size_t got;

    while (t->nheard < want) {
        if (want > HEARD_MAX) {
            t->ended = NET_OK;
            return false;
        }
        t->ended = stream_read(t->stream, t->heard + t->nheard, want - t->nheard, t->deadline, &got);
        if (t->ended != NET_OK)
            return false;
        t->nheard += got;
    }
    return true;
}

static size_t read_be16(const char *at)
{
    return (size_t)(unsigned char)at[0] << 8 | (unsigned char)at[1];
}

/*
 * Checks the lengths in a packet: a status ('s'), a challenge ('N' or 'n'), or the node's answer to our challenge
 * ('a').
 */
static bool is_good(struct str p)
{
    switch (p.len ? p.at[0] : 0) {
    case 's':
        return !begins_with(p, "snamed:") ||
               (p.len >= 9 && read_be16(p.at + 7) < MAXNODELEN && p.len == 9 + read_be16(p.at + 7) + 4);
    case 'N':
        return p.len >= 19 && read_be16(p.at + 17) < MAXNODELEN && p.len >= 19 + read_be16(p.at + 17);
    case 'n':
        return p.len >= 11 && p.len - 11 < MAXNODELEN;
    case 'a':
        return p.len == 17;
    default:
        return false;
    }
}

/* Returns the size of the length field of a packet during the handshake. */
static size_t header_size(const struct talk *t)
{
    return t->stream->tls ? 4 : 2;
}

static size_t packet_size(const struct talk *t, size_t at)
{
    size_t len = 0;

    for (size_t i = 0; i < header_size(t); i++)
        len = len << 8 | t->heard[at + i];
    return len;
}

static bool hear_packet(struct talk *t)
{
    size_t at = t->good, header = header_size(t);
    struct str p;

    if (!hear_up_to(t, at + header) || !hear_up_to(t, at + header + packet_size(t, at)) || !next_packet(t, &at, &p))
        return false;
    if (!is_good(p))
        return false;
    if ((p.at[0] == 'N' || p.at[0] == 'n') && !trust_allows(t->stream->fd, t->end, t->cookie, t->why)) {
        /*
         * If the node has closed its socket, the kernel no longer knows the socket's owner, and the cookie is not the
         * cause.
         */
        t->withheld = net_wait(t->stream->fd, POLLRDHUP, 0) == NET_OK ? HANDSHAKE_LEFT : HANDSHAKE_KEPT;
        return false;
    }
    t->good = at;
    return true;
}

static int cb_read(void *ctx, char *buf, ssize_t *len, unsigned tmo UNUSED)
{
    struct talk *t = ctx;
    size_t n;

    if (t->given == t->good && !hear_packet(t)) {
        if (t->ended != NET_CLOSED)
            return t->ended == NET_OK ? EIO : error_of(t->ended);
        *len = 0;
        return 0;
    }
    n = MIN((size_t)*len, t->good - t->given);
    memcpy(buf, t->heard + t->given, n);
    t->given += n;
    *len = (ssize_t)n;
    return 0;
}

static int cb_header_size(void *ctx, int *size)
{
    *size = (int)header_size(ctx);
    return 0;
}

static int cb_connected(void *ctx UNUSED)
{
    return 0;
}

static int cb_accepted(void *ctx UNUSED)
{
    return EOPNOTSUPP;
}

static int cb_fd(void *ctx, int *fd)
{
    *fd = ((struct talk *)ctx)->stream->fd;
    return 0;
}

static ei_socket_callbacks callbacks = {
    .flags = EI_SCLBK_FLG_FULL_IMPL,
    .socket = cb_socket,
    .close = cb_close,
    .listen = cb_listen,
    .accept = cb_accept,
    .connect = cb_connect,
    .writev = cb_writev,
    .write = cb_write,
    .read = cb_read,
    .handshake_packet_header_size = cb_header_size,
    .connect_handshake_complete = cb_connected,
    .accept_handshake_complete = cb_accepted,
    .get_fd = cb_fd,
};

/* ---- the cause of a failure ---- */

/* Sets *ret to the packet at *at and moves *at past the packet. Returns false if the packet is not complete. */
static bool next_packet(const struct talk *t, size_t *at, struct str *ret)
{
    size_t header = header_size(t), len;

    if (t->nheard - *at < header)
        return false;
    len = packet_size(t, *at);
    if (t->nheard - *at - header < len)
        return false;
    *ret = (struct str){(const char *)t->heard + *at + header, len};
    *at += header + len;
    return true;
}

/*
 * Reads the node's name in a challenge. The name follows after 'N', flags (8 bytes), challenge (4), creation (4) and
 * length (2), or after 'n', version (2), flags (4) and challenge (4).
 */
static void read_name(struct str p, char ret[NODE_NAME_MAX + 1])
{
    size_t skip = p.len && p.at[0] == 'N' ? 19 : 11;

    if (p.len <= skip || p.len - skip > NODE_NAME_MAX)
        return;
    memcpy(ret, p.at + skip, p.len - skip);
    ret[p.len - skip] = 0;
    utf8_make_safe(ret);
}

static bool begins_with(struct str p, const char *word)
{
    return p.len >= strlen(word) && !memcmp(p.at, word, strlen(word));
}

static bool packet_is(struct str p, const char *word)
{
    return p.len == strlen(word) && !memcmp(p.at, word, p.len);
}

/* Returns why the next packet is missing although all packets before it were in order. */
static enum handshake_result missing_packet_cause(const struct talk *t)
{
    return t->ended == NET_TIMEOUT ? HANDSHAKE_SILENT : t->ended == NET_CLOSED ? HANDSHAKE_LEFT : HANDSHAKE_BROKEN;
}

/*
 * Returns true if the node read our answer to its challenge before it closed the connection, which means that it
 * rejected the answer. If a node ends before it reads the answer, its system resets the connection when the answer
 * arrives. Therefore this function waits until the node's system has acknowledged the answer, at most RESET_MS, and
 * then looks for a reset. ssh does not pass a reset on, so with ssh the function always returns true.
 */
static bool was_read(const struct talk *t)
{
    int64_t until = MIN(t->deadline, net_now() + RESET_MS);
    bool arrived;

    if (t->end->ssh)
        return true;
    net_wait(t->stream->fd, POLLRDHUP, until); /* waits for the end of TCP, which follows the end of TLS */
    do {
        arrived = !net_under_way(t->stream->fd);
        if (net_wait(t->stream->fd, 0, arrived ? 0 : MIN(until, net_now() + RESET_LOOK_MS)) == NET_OK)
            return false;
    } while (!arrived && net_now() < until);
    return arrived;
}

static enum handshake_result classify_talk(const struct talk *t, char ret_name[NODE_NAME_MAX + 1])
{
    struct str status, challenge, last;
    size_t at = 0, header = header_size(t);

    if (t->ended == NET_TLS)
        return HANDSHAKE_INSECURE;
    if (!t->nheard)
        return t->ended == NET_TIMEOUT ? HANDSHAKE_SILENT : HANDSHAKE_CLOSED;
    if (header == 2 && t->nheard >= 2 && t->heard[0] == 0x15 && t->heard[1] == 0x03)
        return HANDSHAKE_TLS; /* a TLS alert */
    if (t->heard[0] != 0 || (t->nheard > header && t->heard[header] != 's'))
        return HANDSHAKE_FOREIGN;
    if (!next_packet(t, &at, &status))
        return missing_packet_cause(t);
    if (packet_is(status, "snot_allowed"))
        return HANDSHAKE_NOT_ALLOWED;
    if (packet_is(status, "salive"))
        return HANDSHAKE_NAME_IN_USE;
    if (packet_is(status, "snok"))
        return HANDSHAKE_NOK;
    if (!next_packet(t, &at, &challenge))
        return missing_packet_cause(t);
    if (challenge.len && (challenge.at[0] == 'N' || challenge.at[0] == 'n'))
        read_name(challenge, ret_name);
    if (t->withheld != HANDSHAKE_OK)
        return t->withheld;
    if (!next_packet(t, &at, &last) && t->ended == NET_CLOSED && was_read(t))
        return HANDSHAKE_COOKIE;
    return missing_packet_cause(t);
}

/* ---- the handshake ---- */

/*
 * Replaces gethostid() of the C library, which libei calls to make its challenge. The original looks up the name of
 * this host without a timeout, and crashes when memory is short. This one returns a random number, because a challenge
 * must be unpredictable.
 */
long gethostid(void)
{
    int id = 0;

    if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id)
        id = (int)net_now();
    return id;
}

/*
 * For each socket libei keeps a copy of ei_cnode, which contains the cookie. Every libei exports this function, but no
 * header declares it.
 */
extern ei_cnode *ei_fd_to_cnode(int fd) __attribute__((weak));

static void wipe_cookies(ei_cnode *ec, int fd)
{
    ei_cnode *copy = ei_fd_to_cnode ? ei_fd_to_cnode(fd) : NULL;

    explicit_bzero(ec->ei_connect_cookie, sizeof ec->ei_connect_cookie);
    if (copy)
        explicit_bzero(copy->ei_connect_cookie, sizeof copy->ei_connect_cookie);
}

/* EI_TRACELEVEL and ERL_DEBUG_DIST make libei print the handshake, which contains digests of the cookie. */
void handshake_prepare(void)
{
    static bool done;

    if (done)
        return;
    done = true;
    tls_begin();
    unsetenv("EI_TRACELEVEL");
    unsetenv("ERL_DEBUG_DIST");
    ei_init();
    ei_set_tracelevel(0);
}

enum handshake_result handshake_run(struct stream *stream, const struct cookie *cookie, const struct trust_end *end,
                                    int64_t deadline, struct node_conn *ret_conn, struct trust_refusal *ret_why)
{
    ei_cnode ec;
    struct talk t = {.stream = stream, .deadline = deadline, .cookie = cookie, .end = end, .why = ret_why};
    struct in_addr nowhere = {0};
    char host[256] = "";
    enum handshake_result result;
    const erlang_pid *self;

    handshake_prepare();
    memset(&ec, 0, sizeof ec);
    if (gethostname(host, sizeof host - 1) || !*host)
        memcpy(host, "localhost", sizeof "localhost");
    host[strcspn(host, ".")] = 0;
    /*
     * We ask for no node name, so the node assigns one from a pool that it reuses. Therefore connecting leaves no new
     * atom on the node.
     */
    if (ei_connect_xinit_ussi(&ec, host, NULL, NULL, &nowhere, cookie->text, 0, &callbacks, sizeof callbacks, &t) < 0)
        return HANDSHAKE_BROKEN;
    int got = ei_xconnect_host_port_tmo(&ec, &nowhere, 1, EI_SCLBK_INF_TMO);
    wipe_cookies(&ec, stream->fd);
    result = got < 0 ? classify_talk(&t, ret_conn->node) : HANDSHAKE_OK;
    if (result != HANDSHAKE_OK)
        return result;
    classify_talk(&t, ret_conn->node);
    self = ei_self(&ec);
    memset(&ret_conn->self, 0, sizeof ret_conn->self);
    memcpy(ret_conn->self.node, self->node, strnlen(self->node, NODE_NAME_MAX));
    ret_conn->self.id = self->num;
    ret_conn->self.serial = self->serial;
    ret_conn->self.creation = self->creation;
    ei_close_connection(stream->fd); /* makes libei forget the socket; cb_close() leaves it open */
    return HANDSHAKE_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the handshake of the distribution protocol with libei, on a socket that is connected already. For connect.c;
 * blocks.
 *
 * libei reports every failure as EIO. Therefore handshake_run() keeps the bytes that the node sent, and finds the cause
 * in them.
 */
#ifndef ETRACE_HANDSHAKE_H
#define ETRACE_HANDSHAKE_H

#include "connect.h"
#include "cookie.h"
#include "stream.h"
#include "trust.h"

enum handshake_result {
    HANDSHAKE_OK,
    HANDSHAKE_COOKIE,      /* the node rejected our answer to its challenge */
    HANDSHAKE_KEPT,        /* the cookie must not go to this other end: we gave no answer to its challenge */
    HANDSHAKE_NOT_ALLOWED, /* net_kernel:allow/1 excludes us */
    HANDSHAKE_NAME_IN_USE, /* a node with our name is connected already */
    HANDSHAKE_NOK,         /* a handshake with our name is in progress */
    HANDSHAKE_TLS,         /* the node expects TLS */
    HANDSHAKE_INSECURE,    /* TLS failed; stream_why() says why */
    HANDSHAKE_SILENT,      /* the node did not answer in time */
    HANDSHAKE_CLOSED,      /* the node closed the connection without sending a byte */
    HANDSHAKE_LEFT,        /* the node closed the connection half-way, for a reason other than our answer */
    HANDSHAKE_FOREIGN,     /* the answer is not from an Erlang node */
    HANDSHAKE_BROKEN,      /* malformed handshake, or a failure in libei */
};

/*
 * Changes the environment and initializes libei. Call it on the main thread before the first handshake on another
 * thread.
 */
void handshake_prepare(void);

/*
 * Fills ret_conn except for the stream, which the caller keeps. Some failures also set ret_conn->node. `end` is
 * the other end. HANDSHAKE_KEPT sets *ret_why.
 */
enum handshake_result handshake_run(struct stream *s, const struct cookie *cookie, const struct trust_end *end,
                                    int64_t deadline, struct node_conn *ret_conn, struct trust_refusal *ret_why);

#endif

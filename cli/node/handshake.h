/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the handshake of the distribution protocol with libei, on a connected socket. Blocks; connect.c calls it.
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
    HANDSHAKE_COOKIE, /* the node rejected our answer to its challenge */
    /* trust.h forbids this cookie for the other end, so we did not answer the node's challenge. */
    HANDSHAKE_KEPT,
    HANDSHAKE_NOT_ALLOWED, /* net_kernel:allow/1 excludes us */
    HANDSHAKE_NAME_IN_USE, /* a node with our name is connected already */
    HANDSHAKE_NOK,         /* a handshake with our name is in progress */
    HANDSHAKE_TLS,         /* the node expects TLS */
    HANDSHAKE_INSECURE,    /* TLS failed; stream_why() says why */
    HANDSHAKE_SILENT,      /* the node did not answer in time */
    HANDSHAKE_CLOSED,      /* the node closed the connection without sending a byte */
    HANDSHAKE_LEFT,        /* the node closed the connection during the handshake, but not because of our answer */
    HANDSHAKE_FOREIGN,     /* the answer is not from an Erlang node */
    HANDSHAKE_BROKEN,      /* the handshake is malformed, or libei failed */
};

/*
 * Initializes libei, and removes the environment variables that make it print. Call it on the main thread before
 * another thread does the first handshake.
 */
void handshake_prepare(void);

/*
 * Fills ret_conn except for its stream, which stays with the caller. On some failures sets only ret_conn->node. `end`
 * is the other end of the connection. If the result is HANDSHAKE_KEPT, *ret_why says why.
 */
enum handshake_result handshake_run(struct stream *s, const struct cookie *cookie, const struct trust_end *end,
                                    int64_t deadline, struct node_conn *ret_conn, struct trust_refusal *ret_why);

#endif

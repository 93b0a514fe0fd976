/*
 * The handshake of the distribution protocol, by libei on a socket that is already connected. Used by connect.c alone.
 *
 * libei answers every failure with EIO, so what the node sent is kept and read again: it tells the causes apart.
 */
#ifndef ETRACE_HANDSHAKE_H
#define ETRACE_HANDSHAKE_H

#include "connect.h"
#include "stream.h"

enum handshake_result {
    HANDSHAKE_OK,
    HANDSHAKE_COOKIE,      /* our answer to the challenge was refused */
    HANDSHAKE_NOT_ALLOWED, /* net_kernel:allow/1 */
    HANDSHAKE_NAME_IN_USE, /* a node of our name is connected already */
    HANDSHAKE_NOK,         /* a handshake of the same name is under way */
    HANDSHAKE_TLS,         /* it speaks TLS */
    HANDSHAKE_INSECURE,    /* the TLS on the stream says why */
    HANDSHAKE_SILENT,      /* it took our words and did not answer in time */
    HANDSHAKE_CLOSED,      /* it closed the connection without a word */
    HANDSHAKE_LEFT,        /* it closed the connection half-way, and not because of our answer */
    HANDSHAKE_FOREIGN,     /* it answered, but not as an Erlang node */
    HANDSHAKE_BROKEN,      /* what it said is no handshake, or libei refused */
};

void handshake_prepare(void); /* once, before a handshake on another thread than the first */

/* Fills ret_conn except for the stream, which stays the caller's. The name is known even for some failures. */
enum handshake_result handshake(struct stream *s, const char *cookie, int64_t deadline, struct node_conn *ret_conn);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to a node: a socket, with or without TLS. After stream_secure(), all other functions use TLS, without a
 * difference for their callers. No function blocks beyond its deadline (net_now() time).
 */
#ifndef ETRACE_STREAM_H
#define ETRACE_STREAM_H

#include "net.h"
#include "tls.h"

struct stream {
    int fd;          /* the socket, to poll for input; -1: closed */
    struct tls *tls; /* the TLS of the connection; NULL: no TLS */
    struct ssh *ssh; /* the ssh through which the connection runs; NULL: none */
};

/* Switches to TLS. After a failure, the caller can only close the stream. */
enum net_status stream_secure(struct stream *s, const struct tls_config *c, const char *host, int64_t deadline,
                              struct err *e);
void stream_close(struct stream *s);

/* Reads at least one byte. Returns NET_TIMEOUT if nothing came before the deadline; a deadline of 0 does not wait. */
enum net_status stream_read(struct stream *s, void *bytes, size_t most, int64_t deadline, size_t *ret_len);
/*
 * Returns true if TLS has read bytes from the socket that stream_read() has not returned. poll() does not report such
 * bytes.
 */
bool stream_pending(const struct stream *s);
enum net_status stream_send(struct stream *s, const void *bytes, size_t len, size_t *ret_sent);  /* like net_send() */
enum net_status stream_write(struct stream *s, const void *bytes, size_t len, int64_t deadline); /* writes all bytes */

/*
 * Sets *e to an error that says who closed the stream, ssh or the node, and returns false. Call it after the other end
 * has closed the stream.
 */
bool stream_closed(const struct stream *s, struct err *e);

/*
 * Returns the error of the read or write that returned NET_TLS: the end of a sentence, and a hint. Returns NULL if none
 * did.
 */
const struct err *stream_why(const struct stream *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to a node: a socket, with or without TLS. stream_secure() switches to TLS; all other callers are
 * independent of it. No function blocks beyond its deadline (net_now() time).
 */
#ifndef ETRACE_STREAM_H
#define ETRACE_STREAM_H

#include "net.h"
#include "tls.h"

struct stream {
    int fd;          /* poll it for input; -1: closed */
    struct tls *tls; /* NULL: no TLS */
    struct ssh *ssh; /* the ssh that carries the connection; NULL: none */
};

/* Switches to TLS. On failure the stream can only be closed. */
enum net_status stream_secure(struct stream *s, const struct tls_config *c, const char *host, int64_t deadline,
                              struct err *e);
void stream_close(struct stream *s);

/* Reads at least one byte. Returns NET_TIMEOUT if nothing came before the deadline; a deadline of 0 does not wait. */
enum net_status stream_read(struct stream *s, void *bytes, size_t most, int64_t deadline, size_t *ret_len);
/* Returns true if TLS holds bytes that it has already read from the socket: poll() does not report them. */
bool stream_pending(const struct stream *s);
enum net_status stream_send(struct stream *s, const void *bytes, size_t len, size_t *ret_sent);  /* like net_send() */
enum net_status stream_write(struct stream *s, const void *bytes, size_t len, int64_t deadline); /* all bytes */

/* Call it after the other end has closed the stream. Sets *e to who closed it, ssh or the node. Returns false. */
bool stream_closed(const struct stream *s, struct err *e);

/*
 * Returns the cause of a NET_TLS from a read or a write, as the end of a sentence and a hint; NULL if there was no
 * NET_TLS.
 */
const struct err *stream_why(const struct stream *s);

#endif

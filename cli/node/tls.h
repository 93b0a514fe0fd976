/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS for nodes that were started with -proto_dist inet_tls. tls.c is the only file that uses OpenSSL for TLS.
 *
 * Unless the options say otherwise, the node's certificate must be signed by a trusted CA, be valid today, and be for
 * the host in the node's name. OpenSSL never asks for a password on the terminal. No message contains a key or a
 * password. connect.c makes the configuration, and stream.c uses the connections.
 */
#ifndef ETRACE_TLS_H
#define ETRACE_TLS_H

#include "../ground/err.h"
#include "net.h"

/* The options of the user. The files are in PEM. */
struct tls_options {
    const char *ca;       /* file of the trusted certificates; NULL: those of the system */
    const char *cert;     /* file of our certificate with its chain; NULL: none */
    const char *key;      /* file of our private key; NULL: the key is in the file `cert` */
    const char *password; /* password of our key; NULL: none */
    const char *host;     /* host that the node's certificate must be for; NULL: the host in the node's name */
    bool no_verify, any_host;
};

struct tls_config; /* the contents of the files, and what to verify */
struct tls;        /* the TLS of one connection; does not own the socket */

/*
 * Keeps OpenSSL from freeing its memory at exit, because threads that still connect may use it. Call this function
 * before any other use of OpenSSL.
 */
void tls_begin(void);
/*
 * Frees what OpenSSL keeps for the calling thread. Call it only on a thread that has used OpenSSL: otherwise it would
 * initialize OpenSSL, which hangs if memory is short.
 */
void tls_end_thread(void);

/* Loads the files. On failure returns NULL and sets *e to a whole sentence. */
struct tls_config *tls_config_new(const struct tls_options *o, struct err *e);
void tls_config_free(struct tls_config *c);

/*
 * Does the TLS handshake on the connected socket `fd`. If it returns NET_TLS, *e says why as the end of a sentence,
 * such as "its certificate has expired".
 */
enum net_status tls_connect(const struct tls_config *c, int fd, const char *host, int64_t deadline, struct tls **ret,
                            struct err *e);
void tls_free(struct tls *t);

/* Reads at least one byte and at most `most` bytes. */
enum net_status tls_read(struct tls *t, void *bytes, size_t most, int64_t deadline, size_t *ret_len);
bool tls_pending(const struct tls *t);
/* Like net_send(). The next call must begin with the first byte that this call has not sent. */
enum net_status tls_send(struct tls *t, const void *bytes, size_t len, size_t *ret_sent);
enum net_status tls_write(struct tls *t, const void *bytes, size_t len, int64_t deadline); /* writes all bytes */
const struct err *tls_why(const struct tls *t);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS for nodes that were started with -proto_dist inet_tls. tls.c is the only file that uses OpenSSL.
 *
 * The node's certificate is verified unless the options say otherwise: a trusted CA signed it, it is valid today, and
 * it is for the host in the node's name. OpenSSL never asks for a password on the terminal. No message contains a key
 * or a password. stream.c uses the connections; connect.c makes the configuration.
 */
#ifndef ETRACE_TLS_H
#define ETRACE_TLS_H

#include "../ground/err.h"
#include "net.h"

/* Files in PEM. */
struct tls_options {
    const char *ca;       /* trusted certificates; NULL: those of the system */
    const char *cert;     /* our certificate with its chain; NULL: none */
    const char *key;      /* NULL: the key is in the file `cert` */
    const char *password; /* password of the key; NULL: none */
    const char *host;     /* host that the node's certificate must name; NULL: the host in the node's name */
    bool no_verify, any_host;
};

struct tls_config; /* the contents of the files */
struct tls;        /* one connection; it does not own the socket */

/* On failure returns NULL and sets *e to a whole sentence. */
struct tls_config *tls_config_new(const struct tls_options *o, struct err *e);
void tls_config_free(struct tls_config *c);

/* Connects with TLS. After NET_TLS, *e is the end of a sentence that names the fault of the peer or its certificate. */
enum net_status tls_connect(const struct tls_config *c, int fd, const char *host, int64_t deadline, struct tls **ret,
                            struct err *e);
void tls_free(struct tls *t);

/* Reads at least one byte. */
enum net_status tls_read(struct tls *t, void *bytes, size_t most, int64_t deadline, size_t *ret_len);
bool tls_pending(const struct tls *t);
/* Like net_send(). The next call must begin with the first byte that this call did not send. */
enum net_status tls_send(struct tls *t, const void *bytes, size_t len, size_t *ret_sent);
enum net_status tls_write(struct tls *t, const void *bytes, size_t len, int64_t deadline); /* all bytes */
const struct err *tls_why(const struct tls *t);

#endif

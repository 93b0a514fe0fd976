/*
 * TLS for the distribution of nodes that were started with -proto_dist inet_tls. The only file with OpenSSL in it.
 *
 * A node's certificate is verified unless the options say otherwise: that somebody who is trusted has signed it, that it
 * is valid today, and that it is for the host in the node's name. Nothing is ever asked on a terminal, no key and no
 * password stands in a message. Used by stream.c; connect.c makes the configuration.
 */
#ifndef ETRACE_TLS_H
#define ETRACE_TLS_H

#include "../ground/err.h"
#include "net.h"

/* Files in PEM. */
struct tls_options {
    const char *ca;       /* whom to trust; NULL: the system's list */
    const char *cert;     /* our own certificate with its chain; NULL: none */
    const char *key;      /* NULL: in the file of the certificate */
    const char *password; /* of the key; NULL: none */
    const char *host;     /* whom the certificate must be for; NULL: the host in the node's name */
    bool no_verify, any_host;
};

struct tls_config; /* the files, read */
struct tls;        /* one connection; it does not own the socket */

struct tls_config *tls_config_new(const struct tls_options *o, struct err *e); /* NULL: e is a whole sentence */
void tls_config_free(struct tls_config *c);

/* NET_TLS: e is the end of a sentence: what the other side or its certificate lacks. */
enum net_status tls_connect(const struct tls_config *c, int fd, const char *host, int64_t deadline, struct tls **ret, struct err *e);
void tls_free(struct tls *t);

enum net_status tls_read(struct tls *t, void *bytes, size_t most, int64_t deadline, size_t *ret_len); /* at least one byte */
bool tls_pending(const struct tls *t);
/* As net_send(). The next call must begin with the bytes that this one did not take. */
enum net_status tls_send(struct tls *t, const void *bytes, size_t len, size_t *ret_sent);
enum net_status tls_write(struct tls *t, const void *bytes, size_t len, int64_t deadline); /* all of it */
const struct err *tls_why(const struct tls *t);

#endif

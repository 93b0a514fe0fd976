/* SPDX-License-Identifier: Apache-2.0 */
#include "tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ground/mem.h"
#include "../ground/small_file.h"

struct tls_config {
    SSL_CTX *ctx;
    char *host;
    bool verify, any_host;
};

struct tls {
    SSL *ssl;
    int fd;
    bool failed;
    char names[200]; /* the hosts for which a rejected certificate of the node is */
    struct err why;
};

/* ---- the files ---- */

static int no_question(char *to, int size, int writing UNUSED, void *password)
{
    size_t len = password ? strlen(password) : 0;

    if (!len || len > (size_t)size)
        return 0;
    memcpy(to, password, len);
    return (int)len;
}

static bool check_readable(const char *what, const char *file, struct err *e)
{
    char shown[PATH_MAX + 64];

    snprintf(shown, sizeof shown, "the %s in %s", what, file);
    const int fd = small_file_open(file, shown, ERR_NODE, e);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool load_own(SSL_CTX *ctx, const struct tls_options *o, struct err *e)
{
    const char *key = o->key ? o->key : o->cert;

    if (!check_readable("certificate", o->cert, e) || !check_readable("private key", key, e))
        return false;
    if (SSL_CTX_use_certificate_chain_file(ctx, o->cert) != 1)
        return err_set(e, ERR_NODE, "%s holds no usable certificate (in PEM)", o->cert);
    if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) == 1)
        return true;
    if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH)
        return err_set(e, ERR_NODE, "the private key in %s does not belong to the certificate in %s", key, o->cert);
    err_set(e, ERR_NODE, "%s holds no usable private key (in PEM)", key);
    err_hint(e, "if it has a password, put the password into the client section of --tls-optfile");
    return false;
}

static bool tls_load(SSL_CTX *ctx, const struct tls_options *o, struct err *e)
{
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_mode(ctx, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY); /* then SSL_read() also returns after a record without data */
    SSL_CTX_set_default_passwd_cb(ctx, no_question);
    SSL_CTX_set_default_passwd_cb_userdata(ctx, (void *)(uintptr_t)o->password);
    if (o->ca && !o->no_verify) {
        if (!check_readable("CA certificates", o->ca, e))
            return false;
        if (SSL_CTX_load_verify_file(ctx, o->ca) != 1)
            return err_set(e, ERR_NODE, "%s holds no usable certificate (in PEM)", o->ca);
    } else if (!o->no_verify) {
        SSL_CTX_set_default_verify_paths(ctx);
    }
    return !o->cert || load_own(ctx, o, e);
}

void tls_begin(void)
{
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

void tls_end_thread(void)
{
    OPENSSL_thread_stop();
}

struct tls_config *tls_config_new(const struct tls_options *o, struct err *e)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    struct tls_config *c;

    ERR_clear_error();
    if (!ctx) {
        err_set(e, ERR_RUN, "the TLS library of this system cannot be used");
        return NULL;
    }
    if (!tls_load(ctx, o, e)) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    c = mem_zalloc(sizeof *c);
    c->ctx = ctx;
    c->host = o->host ? mem_strndup(o->host, strlen(o->host)) : NULL;
    c->verify = !o->no_verify;
    c->any_host = o->any_host;
    return c;
}

void tls_config_free(struct tls_config *c)
{
    if (!c)
        return;
    SSL_CTX_free(c->ctx);
    free(c->host);
    free(c);
}

/* ---- error messages ---- */

static void certificate_names(const X509 *cert, char *to, size_t size)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    size_t len = 0;

    *to = 0;
    for (int i = 0; i < sk_GENERAL_NAME_num(names) && len < size / 2; i++) {
        const GENERAL_NAME *n = sk_GENERAL_NAME_value(names, i);
        char text[INET6_ADDRSTRLEN] = "";
        if (n->type == GEN_DNS) {
            len += (size_t)snprintf(to + len, size - len, "%s%.60s", len ? ", " : "",
                                    (const char *)ASN1_STRING_get0_data(n->d.dNSName));
        } else if (n->type == GEN_IPADD) {
            int family = ASN1_STRING_length(n->d.iPAddress) == 4 ? AF_INET : AF_INET6;
            if (inet_ntop(family, ASN1_STRING_get0_data(n->d.iPAddress), text, sizeof text))
                len += (size_t)snprintf(to + len, size - len, "%s%s", len ? ", " : "", text);
        }
    }
    GENERAL_NAMES_free(names);
    if (!*to)
        X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, to, (int)size);
    for (char *c = to; *c; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > 126)
            *c = '?';
}

/*
 * Keeps the hosts of a rejected certificate for the message, because OpenSSL drops the certificate. OpenSSL calls this
 * function while it verifies the certificate.
 */
static int keep_peer_names(int ok, X509_STORE_CTX *store)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls *t = SSL_get_app_data(ssl);
    const X509 *cert = X509_STORE_CTX_get0_cert(store);

    if (!ok && cert && !*t->names)
        certificate_names(cert, t->names, sizeof t->names);
    return ok;
}

static void wrong_host(const struct tls *t, const char *host, struct err *e)
{
    err_set(e, ERR_NODE, "its certificate is for %s, not for %s", *t->names ? t->names : "no host at all", host);
    err_hint(e, "the host in the node's name must match the certificate: try -n NAME@HOST with the full host name");
}

static void explain_unverified(const struct tls *t, long result, const char *host, struct err *e)
{
    switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        err_set(e, ERR_NODE, "its certificate, or one that signed it, has expired");
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        err_set(e, ERR_NODE, "its certificate, or one that signed it, is not valid yet");
        break;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        wrong_host(t, host, e);
        break;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        err_set(e, ERR_NODE, "etrace does not trust the issuer of its certificate");
        err_hint(e, "--tls-ca FILE gives the certificates to trust, --tls-optfile FILE the node's own option file");
        break;
    default:
        err_set(e, ERR_NODE, "its certificate is not accepted: %s", X509_verify_cert_error_string(result));
        break;
    }
}

#define ALERT(n) (SSL_AD_REASON_OFFSET + (n))

/*
 * Sets *e from an alert that the node sent before it closed the connection. Returns false if `reason` is not an alert
 * listed here.
 */
static bool explain_alert(int reason, struct err *e)
{
    switch (reason) {
    case ALERT(SSL3_AD_HANDSHAKE_FAILURE):
        err_set(e, ERR_NODE, "it refuses the TLS connection: it requires a client certificate, or other ciphers");
        break;
    case ALERT(TLS13_AD_CERTIFICATE_REQUIRED):
        err_set(e, ERR_NODE, "it requires a client certificate");
        break;
    case ALERT(TLS1_AD_UNKNOWN_CA):
        err_set(e, ERR_NODE, "it does not trust the issuer of the client certificate");
        return true;
    case ALERT(SSL3_AD_BAD_CERTIFICATE):
    case ALERT(SSL3_AD_UNSUPPORTED_CERTIFICATE):
    case ALERT(SSL3_AD_CERTIFICATE_UNKNOWN):
    case ALERT(TLS1_AD_ACCESS_DENIED):
        err_set(e, ERR_NODE, "it does not accept the client certificate");
        return true;
    case ALERT(SSL3_AD_CERTIFICATE_EXPIRED):
    case ALERT(SSL3_AD_CERTIFICATE_REVOKED):
        err_set(e, ERR_NODE, "it says that the client certificate has expired or was revoked");
        return true;
    case ALERT(TLS1_AD_PROTOCOL_VERSION):
        err_set(e, ERR_NODE, "it supports neither TLS 1.2 nor TLS 1.3");
        return true;
    default:
        return false;
    }
    err_hint(e, "use --tls-cert FILE and --tls-key FILE, or --tls-optfile FILE with the option file of this cluster");
    return true;
}

static enum net_status tls_failed(struct tls *t, const char *host, struct err *e)
{
    unsigned long code = ERR_peek_error();
    long result = SSL_get_verify_result(t->ssl);
    int reason = ERR_GET_REASON(code);

    t->failed = true;
    if (host && result != X509_V_OK && SSL_get_verify_mode(t->ssl) != SSL_VERIFY_NONE) {
        explain_unverified(t, result, host, e);
    } else if (!code || reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
        return NET_CLOSED;
    } else if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST) {
        err_set(e, ERR_NODE, "the port answers, but not with TLS");
    } else if (!explain_alert(reason, e)) {
        const char *text = ERR_reason_error_string(code);
        err_set(e, ERR_NODE, "the TLS connection failed: %s", text ? text : "unknown reason");
    }
    return NET_TLS;
}

/* ---- a connection ---- */

/*
 * Waits until the caller can repeat an OpenSSL call that returned `n`, and returns NET_OK if the caller must repeat it.
 */
static enum net_status wait_for_retry(struct tls *t, int n, int64_t deadline, const char *host, struct err *e)
{
    switch (SSL_get_error(t->ssl, n)) {
    case SSL_ERROR_WANT_READ:
        return net_wait(t->fd, POLLIN, deadline);
    case SSL_ERROR_WANT_WRITE:
        return net_wait(t->fd, POLLOUT, deadline);
    case SSL_ERROR_ZERO_RETURN:
        t->failed = true;
        return NET_CLOSED;
    default:
        return tls_failed(t, host, e);
    }
}

static bool expect_host(struct tls *t, const struct tls_config *c, const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];
    bool ip = inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;

    if (!ip && SSL_set_tlsext_host_name(t->ssl, host) != 1)
        return false;
    if (!c->verify)
        return true;
    SSL_set_app_data(t->ssl, t);
    SSL_set_verify(t->ssl, SSL_VERIFY_PEER, keep_peer_names);
    if (c->any_host)
        return true;
    return ip ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(t->ssl), host) == 1 : SSL_set1_host(t->ssl, host) == 1;
}

enum net_status tls_connect(const struct tls_config *c, int fd, const char *host, int64_t deadline, struct tls **ret,
                            struct err *e)
{
    struct tls *t = mem_zalloc(sizeof *t);
    enum net_status s = NET_OK;
    int n = 0;

    host = c->host ? c->host : host;
    t->fd = fd;
    t->ssl = SSL_new(c->ctx);
    ERR_clear_error();
    if (!t->ssl || SSL_set_fd(t->ssl, fd) != 1 || !expect_host(t, c, host)) {
        err_set(e, ERR_NODE, "cannot make a TLS connection to the host %s", host);
        tls_free(t);
        return NET_TLS;
    }
    SSL_set_mode(t->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    while (s == NET_OK && (n = SSL_connect(t->ssl)) != 1)
        s = net_now() > deadline ? NET_TIMEOUT : wait_for_retry(t, n, deadline, host, e);
    if (s != NET_OK) {
        t->failed = true;
        tls_free(t);
        return s;
    }
    *ret = t;
    return NET_OK;
}

void tls_free(struct tls *t)
{
    if (!t)
        return;
    if (t->ssl && !t->failed)
        SSL_shutdown(t->ssl); /* sends close_notify, but does not wait for the node's */
    ERR_clear_error();
    SSL_free(t->ssl);
    free(t);
}

enum net_status tls_read(struct tls *t, void *bytes, size_t most, int64_t deadline, size_t *ret_len)
{
    enum net_status s = NET_OK;
    int n = 0;

    ERR_clear_error();
    do {
        n = SSL_read(t->ssl, bytes, (int)MIN(most, (size_t)INT_MAX));
        s = n > 0 ? NET_OK : wait_for_retry(t, n, deadline, NULL, &t->why);
    } while (s == NET_OK && n <= 0 && net_now() <= deadline); /* repeats, for example, after a record without data */
    if (s == NET_OK && n <= 0)
        s = NET_TIMEOUT;
    if (s == NET_OK)
        *ret_len = (size_t)n;
    return s;
}

bool tls_pending(const struct tls *t)
{
    return SSL_pending(t->ssl) > 0;
}

enum net_status tls_send(struct tls *t, const void *bytes, size_t len, size_t *ret_sent)
{
    ERR_clear_error();
    int n = SSL_write(t->ssl, bytes, (int)MIN(len, (size_t)INT_MAX)), error = n > 0 ? 0 : SSL_get_error(t->ssl, n);

    *ret_sent = n > 0 ? (size_t)n : 0;
    if (n > 0 || error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ)
        return NET_OK;
    t->failed = true;
    return error == SSL_ERROR_ZERO_RETURN ? NET_CLOSED : tls_failed(t, NULL, &t->why);
}

enum net_status tls_write(struct tls *t, const void *bytes, size_t len, int64_t deadline)
{
    enum net_status s = NET_OK;
    int n;

    ERR_clear_error();
    for (const char *at = bytes; len && s == NET_OK;) {
        n = SSL_write(t->ssl, at, (int)MIN(len, (size_t)INT_MAX));
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        } else {
            s = wait_for_retry(t, n, deadline, NULL, &t->why);
        }
    }
    if (s != NET_OK)
        t->failed = true;
    return s;
}

const struct err *tls_why(const struct tls *t)
{
    return *t->why.text ? &t->why : NULL;
}

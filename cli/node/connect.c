/* SPDX-License-Identifier: Apache-2.0 */
#include "connect.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../ground/command_line.h"
#include "cookies.h"
#include "find.h"
#include "handshake.h"
#include "vms.h"
#include "way.h"

#define PROBE_MS 1000 /* time limit for each port of a process that listens on several ports */

/*
 * The result of an attempt to connect. The failures are in ascending order of how much they say about the cause: if
 * several addresses and ports fail, etrace reports the failure with the highest value.
 */
enum outcome {
    OUT_NONE,
    OUT_UNREACHABLE,
    OUT_REFUSED,
    OUT_TIMEOUT,
    OUT_NO_PORT,
    OUT_FAILED,
    OUT_TLS_SILENT,
    OUT_HANDSHAKE,
    OUT_OTHER,
    OUT_DENIED,
    OUT_TLS
};

struct attempt {
    const struct way *way;
    const struct place *place;
    struct cookies cookies;
    const struct cookie *cookie;  /* the cookie to try; NULL: no cookie is left */
    const struct tls_config *tls; /* the TLS options; NULL: no TLS */
    int64_t deadline;
    enum outcome outcome;
    enum handshake_result result;  /* the result of the handshake, for OUT_HANDSHAKE */
    struct trust_refusal kept;     /* why trust.h withholds the cookie, for HANDSHAKE_KEPT */
    int port;                      /* the port on which `outcome` happened */
    struct err why;                /* the error, for OUT_TLS and OUT_DENIED */
    char other[NODE_NAME_MAX + 1]; /* for OUT_OTHER: the name of the node that answered */
};

static bool explain_refusal(const struct attempt *a, struct err *e)
{
    char tried[400];

    cookies_tried(&a->cookies, tried, sizeof tried);
    err_set(e, ERR_NODE,
            cookies_sent(&a->cookies) == 1 ? "cannot connect to %.300s: the cookie does not match (read from %s)"
                                           : "cannot connect to %.300s: no cookie matches (tried: %s)",
            a->place->name, tried);
    if (cookies_sent(&a->cookies) < a->cookies.count && a->kept.is_known) {
        err_hint(e, "port %d belongs to uid %u, so your own cookie was not tried; --cookie-file FILE uses it", a->port,
                 a->kept.uid);
    } else if (a->cookies.file && a->place->ospid && !cookies_hidden(a->place->ospid)) {
        err_hint(e, "without --cookie-file, etrace takes the cookie of process %ld", a->place->ospid);
    } else if (a->cookies.file || !a->place->ospid) {
        err_hint(e, "--cookie-file or $RELEASE_COOKIE gives another one; a release has its own in releases/COOKIE");
    } else if (cookies_hidden(a->place->ospid)) {
        err_hint(e, "process %ld belongs to another user: run etrace as that user or as root, or use --cookie-file",
                 a->place->ospid);
    } else {
        err_hint(e, "erlang:get_cookie() in the node's own shell shows it; put it into a file for --cookie-file");
    }
    return false;
}

/* Explains that the node sent its challenge, but trust.h lets none of our cookies go there. Returns false. */
static bool explain_withheld(const struct attempt *a, struct err *e)
{
    const char *name = a->place->name;

    if (a->kept.is_remote) {
        err_set(e, ERR_NODE, "cannot connect to %s: it answers, but you did not name its host, so it gets no cookie",
                name);
        err_hint(e, "-n NAME@HOST names it, and --cookie-file FILE uses that cookie everywhere");
        return false;
    }
    if (a->kept.is_known)
        err_set(e, ERR_NODE,
                "cannot connect to %s: port %d belongs to another user (uid %u), who does not get your cookie", name,
                a->port, a->kept.uid);
    else
        err_set(e, ERR_NODE, "cannot connect to %s: it is unknown whose port %d is, so it does not get your cookie",
                name, a->port);
    err_hint(e, "--cookie-file FILE uses that cookie everywhere%s",
             a->way->ssh ? "; --ssh as the user of the node, or as root, finds its own"
             : geteuid() ? "; sudo etrace uses the cookie of the node's process"
                         : "");
    return false;
}

/* Hints at --tls-optfile. Names the option file on the command line of the node's process if we can read that file. */
static void hint_tls(const struct attempt *a, struct err *e)
{
    struct arguments args;

    if (a->place->ospid && find_arguments(a->place->ospid, &args) && *args.optfile == '/' &&
        !access(args.optfile, R_OK))
        command_line_hint(e, "--tls-optfile", args.optfile, " is the file of the node");
    else
        err_hint(e, "--tls-optfile FILE with the node's own ssl_dist_optfile, or --tls-ca, --tls-cert and --tls-key");
}

static bool explain_outcome(const struct attempt *a, struct err *e)
{
    const char *name = a->place->name, *host = a->place->host;

    switch (a->outcome) {
    case OUT_REFUSED:
        if (a->place->by_epmd)
            return err_set(e, ERR_NODE,
                           "cannot connect to %s: nothing listens on port %d of %s, the port that epmd reports", name,
                           a->port, host);
        err_set(e, ERR_NODE, "cannot connect to %s: nothing listens on port %d of %s", name, a->port, host);
        if (a->place->ospid && cookies_hidden(a->place->ospid))
            err_hint(e, "process %ld may be in a container, which only its user and root see: %s", a->place->ospid,
                     geteuid() ? "run etrace with sudo" : "run etrace with the capability SYS_PTRACE");
        return false;
    case OUT_TIMEOUT:
        return err_set(e, ERR_NODE, "cannot connect to %s: port %d of %s does not answer", name, a->port, host);
    case OUT_UNREACHABLE:
        return err_set(e, ERR_NODE, "cannot connect to %s: the host %s cannot be reached", name, host);
    case OUT_NO_PORT:
        return net_no_port(name, e);
    case OUT_TLS_SILENT:
        err_set(e, ERR_NODE, "cannot connect to %s: port %d of %s does not answer the TLS handshake", name, a->port,
                host);
        err_hint(e, "is it a node without TLS, or is it suspended?");
        return false;
    case OUT_DENIED:
    case OUT_TLS:
        err_set(e, a->why.status, "cannot connect to %s: %s", name, a->why.text);
        if (*a->why.hint)
            err_hint(e, "%s", a->why.hint);
        return false;
    case OUT_OTHER:
        err_set(e, ERR_NODE, "cannot connect to %s: port %d of %s%s belongs to %.255s", name, a->port, host,
                a->place->by_epmd ? ", the one that epmd reports," : "", a->other);
        if (!a->place->by_epmd) {
            char alive[sizeof a->other];
            snprintf(alive, sizeof alive, "%.*s", (int)strcspn(a->other, "@"), a->other);
            command_line_hint(e, "-n", alive, " is the node that listens there");
        }
        return false;
    case OUT_HANDSHAKE:
        break;
    case OUT_NONE:
    case OUT_FAILED:
        return err_set(e, ERR_NODE, "cannot connect to %s: cannot open a socket to port %d of %s", name, a->port, host);
    }
    switch (a->result) {
    case HANDSHAKE_COOKIE:
        return explain_refusal(a, e);
    case HANDSHAKE_KEPT:
        return explain_withheld(a, e);
    case HANDSHAKE_NOT_ALLOWED:
        err_set(e, ERR_NODE, "cannot connect to %s: it does not allow connections from this node", name);
        err_hint(e, "net_kernel:allow/1 restricts which nodes may connect to it");
        return false;
    case HANDSHAKE_NAME_IN_USE:
        return err_set(e, ERR_NODE,
                       "cannot connect to %s: it is already connected to a node with the same name as this etrace",
                       name);
    case HANDSHAKE_NOK:
        return err_set(e, ERR_NODE,
                       "cannot connect to %s: another node with the same name as this etrace is connecting to it",
                       name);
    case HANDSHAKE_TLS:
        err_set(e, ERR_NODE, "cannot connect to %s: it accepts only TLS connections", name);
        hint_tls(a, e);
        return false;
    case HANDSHAKE_SILENT:
        err_set(e, ERR_NODE, "cannot connect to %s: it accepts the connection but sends nothing", name);
        err_hint(e, "is the node suspended or overloaded?");
        return false;
    case HANDSHAKE_FOREIGN:
        return err_set(e, ERR_NODE, "cannot connect to %s: port %d of %s answers, but not as an Erlang node", name,
                       a->port, host);
    case HANDSHAKE_CLOSED:
        err_set(e, ERR_NODE, "cannot connect to %s: port %d of %s closes the connection without an answer", name,
                a->port, host);
        err_hint(e, "it may not be an Erlang node, accept only TLS connections (--tls), or be shutting down");
        return false;
    case HANDSHAKE_LEFT:
        err_set(e, ERR_NODE, "cannot connect to %s: it closed the connection in the middle of the handshake", name);
        err_hint(e, "is it shutting down, or has it just started?");
        return false;
    case HANDSHAKE_OK:
    case HANDSHAKE_INSECURE:
    case HANDSHAKE_BROKEN:
        break;
    }
    return err_set(e, ERR_NODE, "cannot connect to %s: the handshake failed", name);
}

/*
 * Returns true for a failure that a retry cannot cure. HANDSHAKE_CLOSED is not one of these: a port forwarder closes
 * connections until the node behind it is up.
 */
static bool is_refusal(enum handshake_result r)
{
    return r == HANDSHAKE_COOKIE || r == HANDSHAKE_KEPT || r == HANDSHAKE_NOT_ALLOWED || r == HANDSHAKE_TLS ||
           r == HANDSHAKE_INSECURE || r == HANDSHAKE_FOREIGN;
}

static bool connect_fail(const struct attempt *a, struct err *e)
{
    if (a->place->nameless && a->result != HANDSHAKE_COOKIE && a->result != HANDSHAKE_KEPT) {
        struct arguments arguments;
        find_arguments(a->place->ospid, &arguments);
        err_set(e, ERR_NODE, "process %ld has no distribution: it was started without -sname and -name",
                a->place->ospid);
        hint_of_no_port(&arguments, e);
        return false;
    }
    explain_outcome(a, e);
    e->refused = a->outcome == OUT_TLS || (a->outcome == OUT_HANDSHAKE && is_refusal(a->result));
    return false;
}

static void connect_keep(struct attempt *a, enum outcome outcome, enum handshake_result result, int port)
{
    if (outcome < a->outcome || (outcome == a->outcome && a->port))
        return;
    a->outcome = outcome;
    a->result = result;
    a->port = port;
}

static enum outcome outcome_of(enum net_status s)
{
    switch (s) {
    case NET_REFUSED:
        return OUT_REFUSED;
    case NET_UNREACHABLE:
        return OUT_UNREACHABLE;
    case NET_TIMEOUT:
        return OUT_TIMEOUT;
    case NET_NO_PORT:
        return OUT_NO_PORT;
    case NET_OK:
    case NET_CLOSED:
    case NET_UNKNOWN:
    case NET_TLS:
    case NET_FAILED:
        break;
    }
    return OUT_FAILED;
}

/* Returns true if the node refused for a reason that also holds for its other addresses. */
static bool is_definite(enum handshake_result r)
{
    return r == HANDSHAKE_COOKIE || r == HANDSHAKE_KEPT || r == HANDSHAKE_NOT_ALLOWED || r == HANDSHAKE_NAME_IN_USE ||
           r == HANDSHAKE_NOK || r == HANDSHAKE_TLS;
}

/*
 * Returns true if the node that answered has another name before the @. Does not compare hosts, because a host can have
 * several names.
 */
static bool is_another(const struct place *p, const char *node)
{
    size_t len = strcspn(node, "@");

    return p->named && len && (strcspn(p->name, "@") != len || memcmp(p->name, node, len));
}

static bool start_tls(struct attempt *a, struct stream *stream, int port, int64_t deadline)
{
    struct err why;
    enum net_status s = stream_secure(stream, a->tls, a->place->host, deadline, &why);

    if (s == NET_OK)
        return true;
    if (s == NET_TLS)
        a->why = why;
    connect_keep(a, s == NET_TLS ? OUT_TLS : s == NET_TIMEOUT ? OUT_TLS_SILENT : OUT_HANDSHAKE, HANDSHAKE_CLOSED, port);
    return false;
}

static bool try_port(struct attempt *a, int port, int64_t deadline, struct node_conn *ret)
{
    const struct addrs *addrs = &a->place->addrs;

    for (size_t i = 0; i < addrs->count; i++) {
        struct node_conn conn = {0};
        struct trust_end end;
        enum handshake_result r;
        enum net_status s = way_connect(a->way, a->place, &addrs->items[i], port, net_share(deadline, addrs->count - i),
                                        &conn.stream.fd, &end);
        if (s != NET_OK) {
            connect_keep(a, outcome_of(s), HANDSHAKE_OK, port);
            continue;
        }
        if (a->tls && !start_tls(a, &conn.stream, port, deadline)) {
            stream_close(&conn.stream);
            continue;
        }
        r = handshake_run(&conn.stream, a->cookie, &end, deadline, &conn, &a->kept);
        if (is_another(a->place, conn.node)) { /* report the other node even if its cookie does not match */
            memcpy(a->other, conn.node, sizeof a->other);
            stream_close(&conn.stream);
            connect_keep(a, OUT_OTHER, r, port);
            continue;
        }
        if (r == HANDSHAKE_OK) {
            conn.stream.ssh = a->way->ssh;
            *ret = conn;
            return true;
        }
        if (r == HANDSHAKE_INSECURE)
            a->why = *stream_why(&conn.stream);
        bool denied = r == HANDSHAKE_CLOSED && way_denied(a->way, port, &a->why);
        stream_close(&conn.stream);
        connect_keep(a, r == HANDSHAKE_INSECURE ? OUT_TLS : denied ? OUT_DENIED : OUT_HANDSHAKE, r, port);
        if (is_definite(r))
            return false;
    }
    return false;
}

static bool try_all(struct attempt *a, struct node_conn *ret)
{
    const struct place *p = a->place;

    for (size_t i = 0; i < p->nports; i++) {
        int64_t deadline = p->nports > 1 ? MIN(a->deadline, net_now() + PROBE_MS) : a->deadline;
        if (try_port(a, p->ports[i], deadline, ret))
            return true;
        if (a->outcome == OUT_HANDSHAKE && is_definite(a->result) && a->result != HANDSHAKE_TLS)
            break;
    }
    return false;
}

/*
 * Tries one cookie after the other, until the node accepts one or the connection fails for a reason other than the
 * cookie. If trust.h withholds a cookie, the next one is tried, too.
 */
static bool try_cookies(struct attempt *a, struct node_conn *ret, struct err *e)
{
    bool ok = false;

    while (!ok && (a->cookie = cookies_next(&a->cookies))) {
        a->outcome = OUT_NONE;
        a->port = 0;
        ok = try_all(a, ret);
        if (ok) {
            snprintf(ret->cookie_from, sizeof ret->cookie_from, "%s", a->cookie->from);
            ret->cookie_open = a->cookie->open;
            ret->own_cookie = cookies_is_own(&a->cookies, a->cookie);
        } else if (a->outcome == OUT_HANDSHAKE && a->result == HANDSHAKE_KEPT) {
            cookies_keep(&a->cookies);
        } else if (a->outcome != OUT_HANDSHAKE || a->result != HANDSHAKE_COOKIE) {
            break;
        }
    }
    if (a->outcome == OUT_HANDSHAKE && a->result == HANDSHAKE_KEPT && cookies_sent(&a->cookies))
        a->result = HANDSHAKE_COOKIE; /* etrace sent at least one cookie, and the node refused it */
    cookies_end(&a->cookies);
    if (!ok && !a->cookies.count)
        return cookies_none(&a->cookies, e);
    return ok || connect_fail(a, e);
}

bool node_connect(const struct node_target *t, struct node_conn *ret_conn, struct err *e)
{
    struct tls_config *tls = NULL;
    struct way way;
    struct place place;
    struct node_conn conn;

    ret_conn->found = false;
    if (t->tls && !(tls = tls_config_new(t->tls, e)))
        return false;
    cookie_await(t->cookie_file);
    bool found = way_begin(&way, t, e);
    int64_t deadline = net_now() + way_ms(&way);
    struct attempt a = {.way = &way, .place = &place, .tls = tls, .deadline = deadline};
    bool ok = false;
    found = found && way_find(&way, deadline, &place, e);
    if (found) {
        cookies_begin(&a.cookies, t->cookie_file, way.ssh, way.ssh ? place.there : place.ospid);
        ok = try_cookies(&a, &conn, e);
    }
    way_end(&way);
    tls_config_free(tls);
    ret_conn->found = found;
    if (!ok)
        return false;
    conn.found = true;
    conn.ospid = way.target.ospid == t->ospid ? 0 : way.target.ospid;
    if (!conn.node[0])
        memcpy(conn.node, place.name, sizeof conn.node);
    *ret_conn = conn;
    return true;
}

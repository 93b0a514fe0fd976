/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens a distribution connection to the node that the user named.
 *
 * node_connect() and node_resolve() block for at most 5 seconds. node_connect() runs on a thread of its own (knock.h).
 * Each failure has its own message and the status ERR_NODE, or ERR_USAGE for a malformed node name. libei does the
 * handshake only. Afterwards the caller owns the socket, which is non-blocking and close-on-exec. libei prints nothing,
 * whatever the environment says.
 */
#ifndef ETRACE_CONNECT_H
#define ETRACE_CONNECT_H

#include "stream.h"

#define NODE_CONNECT_MS 4500 /* for all steps together: the user waits less than five seconds */
#define NODE_NAME_MAX 511    /* bytes; atoms have at most 255 characters */

struct node_target {
    const char *name;        /* "shop", "shop@h1"; NULL: use ospid, or else the only local node */
    long ospid;              /* 0: unset */
    int port;                /* 0: ask epmd */
    struct addr first;       /* address of the host to try first, because its epmd answered there; len 0: unknown */
    const char *cookie_file; /* NULL: the default files of OTP */
    const struct tls_options *tls; /* NULL: no TLS */
};

struct node_pid {
    char node[NODE_NAME_MAX + 1];
    uint32_t id, serial, creation;
};

struct node_conn {
    struct stream stream;         /* the caller closes it */
    bool found;                   /* host and port are known; valid even if connecting failed */
    char node[NODE_NAME_MAX + 1]; /* the name by which the node calls itself */
    struct node_pid self;         /* our pid, the destination of messages to us; the node chose our node name */
};

/* false: only ret_conn->found is set. */
bool node_connect(const struct node_target *target, struct node_conn *ret_conn, struct err *e);

/*
 * Finds the full name ("shop@h1") of the target without connecting. It adds the name of this host, finds the only local
 * node, or finds the node of an operating system process. In the last case *ret_port may be a port that epmd does not
 * know.
 */
bool node_resolve(const struct node_target *target, char ret_name[NODE_NAME_MAX + 1], int *ret_port, struct err *e);

/*
 * Finds the full name of the local node that epmd lists as `alive` at `port`. false: this user cannot see its process.
 */
bool node_full_name(const char *alive, int port, char ret_name[NODE_NAME_MAX + 1]);

#endif

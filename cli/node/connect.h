/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens a distribution connection to the node that the user named.
 *
 * node_connect() and node_resolve() block for at most 5 seconds, or longer for a cookie from standard input, and for
 * ssh: for its login, and then for 15 seconds. node_connect() runs on a thread of its own (knock.h). Each failure has
 * its own message and the status ERR_NODE, or ERR_USAGE for a malformed node name. libei does the handshake only.
 * Afterwards the caller owns the socket, which is non-blocking and close-on-exec. libei prints nothing, whatever the
 * environment says.
 */
#ifndef ETRACE_CONNECT_H
#define ETRACE_CONNECT_H

#include "stream.h"

#define NODE_CONNECT_MS 4500 /* limit for all steps together: the user waits less than five seconds */
#define NODE_NAME_MAX 511    /* bytes; atoms have at most 255 characters */

struct node_target {
    const char *name;        /* "shop", "shop@h1"; NULL: use ospid, else port, else the only local node */
    long ospid;              /* 0: unset */
    int port;                /* 0: ask epmd */
    bool typed;              /* the user gave `name` with a host: our own cookie may go there */
    const char *ssh;         /* reach it through ssh to this host, which has it; NULL: directly */
    struct addr first;       /* address of the host to try first, because its epmd answered there; len 0: unknown */
    const char *cookie_file; /* NULL: see cookies.h */
    const struct tls_options *tls; /* NULL: no TLS */
};

struct node_pid {
    char node[NODE_NAME_MAX + 1];
    uint32_t id, serial, creation;
};

struct node_conn {
    struct stream stream;         /* the caller closes the stream */
    bool found;                   /* host and port are known; valid even if connecting failed */
    char node[NODE_NAME_MAX + 1]; /* the name by which the node calls itself */
    char cookie_from[512];        /* the source of the cookie that the node accepted */
    bool own_cookie;              /* that source is ours */
    unsigned cookie_open;         /* the mode of that file if other users can access it, else 0 */
    long ospid;                   /* the node's process, if -p named one that only started it; else 0 */
    struct node_pid self;         /* our pid, the destination of messages to us; the node chose our node name */
};

/* Connects to the node. On failure only ret_conn->found is set. */
bool node_connect(const struct node_target *target, struct node_conn *ret_conn, struct err *e);

/*
 * Finds the full name ("shop@h1") of the target without connecting. It adds the name of this host, finds the only local
 * node, or finds the node of an operating system process. In the last case *ret_port may be a port that epmd does not
 * know. *ret_ospid is the node's process on this host, or on the host of ssh; 0: unknown.
 */
bool node_resolve(const struct node_target *target, char ret_name[NODE_NAME_MAX + 1], int *ret_port, long *ret_ospid,
                  struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens a distribution connection to the node that the user named.
 *
 * node_connect() and node_resolve() block for at most 5 seconds. With ssh they block until ssh has logged in, without a
 * limit, and then for at most 15 seconds. They also wait for a cookie from standard input. node_connect() runs on a
 * thread of its own (knock.h). Each failure has its own message and the status ERR_NODE, or ERR_USAGE for a malformed
 * node name.
 *
 * libei only does the handshake, and prints nothing, whatever the environment says. After the handshake the caller owns
 * the socket, which is non-blocking and close-on-exec.
 */
#ifndef ETRACE_CONNECT_H
#define ETRACE_CONNECT_H

#include "stream.h"

#define NODE_CONNECT_MS 4500 /* limit for all steps together, so that the user waits less than five seconds */
#define NODE_NAME_MAX 511    /* bytes; atoms have at most 255 characters */

struct node_target {
    const char *name;              /* "shop", "shop@h1"; NULL: use ospid, else port, else the only local node */
    long ospid;                    /* process of the node, or a process that started the node; 0: unset */
    int port;                      /* TCP port of the node; 0: ask epmd */
    bool typed;                    /* the user typed `name` with a host, so our own cookie may go to that host */
    const char *ssh;               /* the host to log in to with ssh, on which the node runs; NULL: no ssh */
    struct addr first;             /* address to try first, because an epmd answered there; len 0: none */
    const char *cookie_file;       /* the only cookie to try; NULL: cookies.h says which ones are tried */
    const struct tls_options *tls; /* NULL: no TLS */
};

struct node_pid {
    char node[NODE_NAME_MAX + 1];
    uint32_t id, serial, creation;
};

struct node_conn {
    struct stream stream;         /* the caller closes the stream */
    bool found;                   /* host and port of the node are known; valid even if connecting failed */
    char node[NODE_NAME_MAX + 1]; /* the node's name, as the node itself gives it */
    char cookie_from[512];        /* the source of the cookie that the node accepted */
    bool own_cookie;              /* the accepted cookie is our own (cookies_is_own) */
    unsigned cookie_open;         /* the mode of the cookie's file if other users can access it, else 0 */
    long ospid;                   /* the node's process if -p named a process that only started the node; else 0 */
    struct node_pid self;         /* our pid, to which the node sends messages; the node chose our node name in it */
};

/* Connects to the node. On failure only ret_conn->found is set. */
bool node_connect(const struct node_target *target, struct node_conn *ret_conn, struct err *e);

/*
 * Finds the full name ("shop@h1") of the target without connecting. A name without a host gets the name of this host. A
 * target without a name is the node of the process `ospid`, or else the only node of this host. *ret_port may be a port
 * that epmd does not know if the target is a process. *ret_ospid is the node's process on this host, or on the host of
 * ssh; 0: unknown.
 */
bool node_resolve(const struct node_target *target, char ret_name[NODE_NAME_MAX + 1], int *ret_port, long *ret_ospid,
                  struct err *e);

#endif

/*
 * From what the user said to an open distribution connection.
 *
 * node_connect() blocks, 5 seconds at most, and is the only thing of this floor that blocks on the network. Every way
 * in which it can fail has its own sentence and the status ERR_NODE (ERR_USAGE for a name that no node can have).
 * libei does the handshake and nothing else; afterwards the socket belongs to the caller, non-blocking and close-on-exec.
 * Nothing is printed, whatever the environment says to libei.
 */
#ifndef ETRACE_CONNECT_H
#define ETRACE_CONNECT_H

#include "stream.h"

#define NODE_CONNECT_MS 4500 /* in all: what the user waits for stays under five seconds */
#define NODE_NAME_MAX 511 /* bytes; atoms have at most 255 characters */

struct node_target {
    const char *name;        /* "shop", "shop@h1"; NULL: by ospid, else the only local node */
    long ospid;              /* 0: not said */
    int port;                /* 0: ask epmd */
    struct addr first;       /* of its host's addresses, where its epmd has answered; len 0: not known */
    const char *cookie_file; /* NULL: the places where OTP looks */
    const struct tls_options *tls; /* NULL: none */
};

struct node_pid {
    char node[NODE_NAME_MAX + 1];
    uint32_t id, serial, creation;
};

struct node_conn {
    struct stream stream;         /* the caller closes it */
    bool found;                   /* host and port are known; set also where the connection failed */
    char node[NODE_NAME_MAX + 1]; /* what the node calls itself */
    struct node_pid self;         /* the pid that messages to us carry; its node part was given by the target */
};

bool node_connect(const struct node_target *target, struct node_conn *ret_conn, struct err *e); /* false: only ret_conn->found is set */

/*
 * The full name ("shop@h1") that a target means, without connecting: adds this host, finds the only local node, or the
 * node of an operating system process (then *ret_port may be set although epmd does not know it). At most 5 seconds.
 */
bool node_resolve(const struct node_target *target, char ret_name[NODE_NAME_MAX + 1], int *ret_port, struct err *e);

/* The full name of the local node that epmd knows as `alive` at that port. false: this user cannot see its process. */
bool node_full_name(const char *alive, int port, char ret_name[NODE_NAME_MAX + 1]);

#endif

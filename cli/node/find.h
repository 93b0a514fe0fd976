/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the node that the user named: its full name, its addresses and its port. Connects to epmd only. For connect.c.
 */
#ifndef ETRACE_FIND_H
#define ETRACE_FIND_H

#include "connect.h"
#include "net.h"

struct place {
    char name[NODE_NAME_MAX + 1]; /* with @host; "PID 123@h1" for a process that epmd does not know */
    char host[NODE_NAME_MAX + 1];
    struct addrs addrs; /* the address whose epmd answered comes first */
    int ports[16];      /* to try in this order; several only for a process that epmd does not know */
    size_t nports;
    bool by_epmd; /* the port comes from epmd */
    bool named;   /* the node that answers must have this name */
};

/* Asks the resolver and epmd. On failure *ret is unchanged. */
bool find_node(const struct node_target *t, int64_t deadline, struct place *ret, struct err *e);

/* The distribution options on the command line of a virtual machine. */
struct arguments {
    char name[NODE_NAME_MAX + 1]; /* "": there is none; without @host if the command line has none */
    bool deaf;                    /* -dist_listen false: the node accepts no connections */
};

bool find_arguments(long ospid, struct arguments *ret); /* false: /proc does not show the command line */

/* Finds the TCP ports on which a process of this host listens. false: there are none, or /proc does not show them. */
bool find_listening(long ospid, int *ret_ports, size_t most, size_t *ret_count, struct err *e);

#endif

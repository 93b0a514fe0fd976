/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the node that the user named: its full name, its addresses and its port. Connects to epmd only. connect.c uses
 * it.
 */
#ifndef ETRACE_FIND_H
#define ETRACE_FIND_H

#include "connect.h"
#include "net.h"

struct place {
    char name[NODE_NAME_MAX + 1]; /* the node's full name; "process 123" or "port 123" while the name is unknown */
    char host[NODE_NAME_MAX + 1];
    struct addrs addrs; /* the addresses of the host; the one whose epmd answered comes first */
    int ports[16];      /* ports to try, in this order; more than one only for a process that epmd does not know */
    size_t nports;
    bool by_epmd;  /* epmd gave the port */
    bool named;    /* the node that answers must have the name in `name` */
    bool nameless; /* the process was started without a name, and epmd knows none of its ports */
    long ospid;    /* the node's process on this host; 0: unknown */
    long there;    /* the node's process on the host of ssh; 0: unknown */
};

/* Finds the node of the target. Asks the resolver and epmd. On failure *ret is unchanged. */
bool find_node(const struct node_target *t, int64_t deadline, struct place *ret, struct err *e);

bool node_name_check(const char *name, struct err *e);

/* Returns true if `host` is a name of this host, or one of its addresses in digits. Asks no name server. */
bool find_is_this_host(const char *host);

/*
 * Returns true if the first label of `host` is the name of this host, as in app1.example.com on the host app1. Only the
 * resolver could tell whether it is this host.
 */
bool find_may_be_this_host(const char *host);

#endif

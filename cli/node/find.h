/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the node that the user named: its full name, its addresses and its port. Connects to epmd only. For connect.c.
 */
#ifndef ETRACE_FIND_H
#define ETRACE_FIND_H

#include "connect.h"
#include "net.h"

struct place {
    char name[NODE_NAME_MAX + 1]; /* the full name; "process 123" for one that epmd does not know */
    char host[NODE_NAME_MAX + 1];
    struct addrs addrs; /* the address whose epmd answered comes first */
    int ports[16];      /* ports to try, in order; several only for a process that epmd does not know */
    size_t nports;
    bool by_epmd;  /* the port comes from epmd */
    bool named;    /* the node that answers must have this name */
    bool nameless; /* the process was started without a name, and epmd knows none of its ports */
    long ospid;    /* its process on this host; 0: unknown */
    long there;    /* its process on the host of ssh; 0: unknown */
};

/* Asks the resolver and epmd. On failure *ret is unchanged. */
bool find_node(const struct node_target *t, int64_t deadline, struct place *ret, struct err *e);

bool node_name_check(const char *name, struct err *e);

/* Returns true if this host has the name, or the address in digits. Asks no name server. */
bool find_is_this_host(const char *host);

#endif

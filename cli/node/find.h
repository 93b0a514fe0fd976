/*
 * Which node is meant, and where it listens. Used by connect.c alone.
 */
#ifndef ETRACE_FIND_H
#define ETRACE_FIND_H

#include "connect.h"
#include "net.h"

struct place {
    char name[NODE_NAME_MAX + 1]; /* with @host; for a process that epmd does not know "PID 123@h1" */
    char host[NODE_NAME_MAX + 1];
    struct addrs addrs;           /* the one where epmd answered alone, when it was asked */
    int ports[16];                /* to be tried in turn; more than one only for a process that epmd does not know */
    size_t nports;
    bool by_epmd; /* the port is what epmd said */
    bool named;   /* whoever answers there is to have that name */
};

/* Fills everything, asking resolver and epmd. */
bool find_node(const struct node_target *t, int64_t deadline, struct place *ret, struct err *e);

/* The arguments of a virtual machine that concern its distribution. */
struct arguments {
    char name[NODE_NAME_MAX + 1]; /* "" where there is none; without @host where that was left to the node */
    bool deaf;                    /* -dist_listen false: nobody can connect to it */
};

bool find_arguments(long ospid, struct arguments *ret); /* false: not to be seen */

/* The ports on which a process of this host listens for TCP connections; false with err when it cannot be known. */
bool find_listening(long ospid, int *ret_ports, size_t most, size_t *ret_count, struct err *e);

#endif

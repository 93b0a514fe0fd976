/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks an epmd for nodes and their ports, at the port of ERL_EPMD_PORT, or else 4369. Each function blocks until its
 * deadline at most.
 */
#ifndef ETRACE_EPMD_H
#define ETRACE_EPMD_H

#include "net.h"

/*
 * The answer of an epmd, in ascending order of how much it says about the node. If the addresses of a host give
 * different answers, etrace reports the highest value. A failure up to EPMD_NO_PORT says nothing about other addresses
 * of the host, which may have an epmd.
 */
enum epmd_answer {
    EPMD_OK,
    EPMD_UNREACHABLE, /* no route, or the connection timed out */
    EPMD_NO_DAEMON,   /* connection refused */
    EPMD_NO_PORT,     /* this host has no free local port */
    EPMD_TIMEOUT,     /* epmd accepted the connection and did not answer */
    EPMD_GARBAGE,     /* malformed answer: not an epmd */
    EPMD_NO_NODE,     /* epmd does not know the name */
};

struct epmd_name {
    char name[256]; /* the node's name without @host */
    int port;
};

struct epmd_names {
    struct epmd_name *items; /* the caller frees them with epmd_names_release() */
    size_t count;
};

int epmd_port(void);
/*
 * Lists the nodes of the epmd at one address of a host. `left` is the number of addresses that the caller has yet to
 * try, with this one: the question may take an equal share of the remaining time.
 */
enum epmd_answer epmd_list(const struct addr *host, size_t left, int64_t deadline, struct epmd_names *ret);
/* Asks on a connected socket, and closes it. */
enum epmd_answer epmd_list_on(int fd, int64_t deadline, struct epmd_names *ret);
/*
 * Both ask the epmd at each address of `host`, because some of them may be unreachable or silent, until one answers.
 * They move its address to the front of `host`. Otherwise they return the failure with the highest enum epmd_answer;
 * *ret_asked is the address where it happened.
 */
enum epmd_answer epmd_list_any(struct addrs *host, int64_t deadline, struct epmd_names *ret);
enum epmd_answer epmd_lookup_any(struct addrs *host, const char *alive, int64_t deadline, int *ret_port,
                                 struct addr *ret_asked);
/* Returns the port of the node whose name is these `len` bytes, without @host; 0: epmd knows no such node. */
int epmd_names_port(const struct epmd_names *n, const char *name, size_t len);
void epmd_names_release(struct epmd_names *n);

#endif

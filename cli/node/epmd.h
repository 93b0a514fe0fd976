/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks an epmd for nodes and their ports. Each function blocks until its deadline at most. ERL_EPMD_PORT is honoured.
 */
#ifndef ETRACE_EPMD_H
#define ETRACE_EPMD_H

#include "net.h"

/*
 * In ascending order of how much an answer says. If a host has several addresses with different answers, the highest
 * value is reported. After EPMD_NO_PORT or a lower failure, another address of the host may still have an epmd.
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
    char name[256]; /* the name without @host */
    int port;
};

struct epmd_names {
    struct epmd_name *items; /* the caller frees them with epmd_names_release() */
    size_t count;
};

int epmd_port(void);
/*
 * Ask the epmd of a host. `left` is the number of addresses that are still to be tried, this one included: connecting
 * may take an equal share of the remaining time. After the connection is open, the answer may take until the deadline.
 */
enum epmd_answer epmd_lookup(const struct addr *host, size_t left, const char *alive, int64_t deadline, int *ret_port);
enum epmd_answer epmd_list(const struct addr *host, size_t left, int64_t deadline, struct epmd_names *ret);
enum epmd_answer epmd_list_on(int fd, int64_t deadline, struct epmd_names *ret); /* asks on a connection; closes it */
/* Lists the nodes of the first address that has an epmd, and moves this address to the front of `host`. */
enum epmd_answer epmd_list_any(struct addrs *host, int64_t deadline, struct epmd_names *ret);
void epmd_names_release(struct epmd_names *n);

#endif

/*
 * Asking an epmd, with own sockets and a deadline. ERL_EPMD_PORT is honoured.
 */
#ifndef ETRACE_EPMD_H
#define ETRACE_EPMD_H

#include "net.h"

/* Of a host's several addresses the later in this list tells more; up to EPMD_NO_PORT another address may have an epmd. */
enum epmd_answer {
    EPMD_OK,
    EPMD_UNREACHABLE, /* no route, or no answer to the connection in time */
    EPMD_NO_DAEMON,   /* nothing listens there */
    EPMD_NO_PORT,     /* this host has none left for its own end */
    EPMD_TIMEOUT,     /* it accepted and did not answer */
    EPMD_GARBAGE,     /* what answers is not epmd */
    EPMD_NO_NODE,     /* it does not know the name */
};

struct epmd_name {
    char name[256]; /* without @host */
    int port;
};

struct epmd_names {
    struct epmd_name *items; /* epmd_names_release() */
    size_t count;
};

int epmd_port(void);
/* So many addresses are left, with this one: each has its share of the time to accept a connection, and who has accepted has all of it. */
enum epmd_answer epmd_lookup(const struct addr *host, size_t left, const char *alive, int64_t deadline, int *ret_port);
enum epmd_answer epmd_list(const struct addr *host, size_t left, int64_t deadline, struct epmd_names *ret);
/* Of the first address that has one, which stands in front then. */
enum epmd_answer epmd_list_any(struct addrs *host, int64_t deadline, struct epmd_names *ret);
void epmd_names_release(struct epmd_names *n);

#endif

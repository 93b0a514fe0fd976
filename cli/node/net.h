/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP sockets and name lookup. Deadlines are in milliseconds of CLOCK_MONOTONIC (net_now()). All returned descriptors
 * are non-blocking and close-on-exec. Functions with a deadline block; connect.h says who may call them.
 */
#ifndef ETRACE_NET_H
#define ETRACE_NET_H

#include <sys/socket.h>

#include "../ground/err.h"

enum net_status {
    NET_OK,
    NET_REFUSED,     /* nothing listens on the port */
    NET_UNREACHABLE, /* no route, or a network error */
    NET_NO_PORT,     /* this host has no free local port */
    NET_TIMEOUT,
    NET_CLOSED,  /* the peer closed the connection */
    NET_UNKNOWN, /* net_resolve(): no such host */
    NET_TLS,     /* a TLS error; stream_why() says which */
    NET_FAILED,  /* any other error, such as no free descriptors */
};

struct addr {
    struct sockaddr_storage sa; /* the address, with port 0 */
    socklen_t len;
};

#define NET_ADDRS 8

struct addrs {
    struct addr items[NET_ADDRS];
    size_t count;
};

int64_t net_now(void);
/* Returns the deadline of the next of `left` attempts that share the time equally. */
int64_t net_share(int64_t deadline, size_t left);

/*
 * Asks the resolver (hosts.h) on another thread. If the deadline passes, that thread goes on by itself, and its answer
 * is lost.
 */
enum net_status net_resolve(const char *host, int64_t deadline, struct addrs *ret);
void net_loopback(struct addrs *a);                         /* appends 127.0.0.1 and ::1 if `a` lacks them */
void net_prefer(struct addrs *a, const struct addr *first); /* moves `first` to the front if `a` contains it */

bool net_is_here(const struct addr *a); /* returns true if `a` is an address of this host */

enum net_status net_connect(const struct addr *to, int port, int64_t deadline, int *ret_fd);
bool net_no_port(const char *to, struct err *e); /* sets the message for NET_NO_PORT; returns false */
/* Tries to enlarge the send buffer, so that a write of `bytes` does not wait. */
void net_make_room(int fd, size_t bytes);
/* Returns the bytes written that the peer's system has not acknowledged yet. */
size_t net_under_way(int fd);
enum net_status net_wait(int fd, short events, int64_t deadline);

/* Sends as many bytes as possible without waiting. Sets *ret_sent to 0 if the send buffer is full. */
enum net_status net_send(int fd, const void *bytes, size_t len, size_t *ret_sent);
enum net_status net_write(int fd, const void *bytes, size_t len, int64_t deadline); /* writes all bytes */
/* Reads at least one byte and at most `most` bytes. */
enum net_status net_read(int fd, void *bytes, size_t most, int64_t deadline, size_t *ret_len);

#endif

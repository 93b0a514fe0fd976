/*
 * Sockets with deadlines: CLOCK_MONOTONIC, milliseconds. Everything returned is non-blocking and close-on-exec.
 */
#ifndef ETRACE_NET_H
#define ETRACE_NET_H

#include <sys/socket.h>

#include "../ground/err.h"

enum net_status {
    NET_OK,
    NET_REFUSED,     /* nothing listens there */
    NET_UNREACHABLE, /* no route, or the network says so */
    NET_NO_PORT,     /* this host has none left for its own end */
    NET_TIMEOUT,
    NET_CLOSED,      /* by the other side */
    NET_UNKNOWN,     /* net_resolve: there is no such host */
    NET_TLS,         /* stream_why() says it */
    NET_FAILED,      /* anything else, e.g. no descriptors are left */
};

struct addr {
    struct sockaddr_storage sa; /* without a port */
    socklen_t len;
};

#define NET_ADDRS 8

struct addrs {
    struct addr items[NET_ADDRS];
    size_t count;
};

int64_t net_now(void);
int64_t net_share(int64_t deadline, size_t left); /* until when the first of so many that are left may be tried */

/* Asks the system's resolver in a thread of its own, which is left behind when the deadline comes first. */
enum net_status net_resolve(const char *host, int64_t deadline, struct addrs *ret);
void net_loopback(struct addrs *a); /* appends 127.0.0.1 and ::1 where they are not in it yet */
void net_prefer(struct addrs *a, const struct addr *first); /* is the first of them, where it is one */

enum net_status net_connect(const struct addr *to, int port, int64_t deadline, int *ret_fd);
bool net_no_port(const char *to, struct err *e); /* says it of NET_NO_PORT; false */
void net_make_room(int fd, size_t bytes); /* for so much that is written at once, as far as the system gives it: it does not wait for us then */
size_t net_under_way(int fd);             /* bytes that were written and that the other side's system does not have yet */
enum net_status net_wait(int fd, short events, int64_t deadline); /* for code that may block: see connect.h */

enum net_status net_send(int fd, const void *bytes, size_t len, size_t *ret_sent); /* without waiting; 0: the system takes no more now */
enum net_status net_write(int fd, const void *bytes, size_t len, int64_t deadline); /* all of it */
enum net_status net_read(int fd, void *bytes, size_t most, int64_t deadline, size_t *ret_len); /* at least one byte */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "net.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "../ground/mem.h"
#include "../ground/thread.h"
#include "hosts.h"

int64_t net_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t net_share(int64_t deadline, size_t left)
{
    int64_t now = net_now();

    return now + (deadline - now) / (int64_t)left;
}

/* ---- waiting, reading, writing ---- */

enum net_status net_wait(int fd, short events, int64_t deadline)
{
    struct pollfd p = {.fd = fd, .events = events};

    for (;;) {
        int64_t now = net_now(), left = deadline - now;
        int n = poll(&p, 1, left < 0 ? 0 : (int)MIN(left, INT_MAX));
        if (n > 0)
            return NET_OK;
        if (n < 0 && errno != EINTR)
            return NET_FAILED;
        if (now >= deadline)
            return NET_TIMEOUT;
    }
}

static enum net_status from_errno(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return NET_REFUSED;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
    case EACCES:
    case EPERM:
        return NET_UNREACHABLE;
    case ETIMEDOUT:
        return NET_TIMEOUT;
    case ECONNRESET:
    case EPIPE:
        return NET_CLOSED;
    default:
        return NET_FAILED;
    }
}

enum net_status net_send(int fd, const void *bytes, size_t len, size_t *ret_sent)
{
    ssize_t n;

    do
        n = send(fd, bytes, len, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN)
        return from_errno(errno);
    *ret_sent = n < 0 ? 0 : (size_t)n;
    return NET_OK;
}

enum net_status net_write(int fd, const void *bytes, size_t len, int64_t deadline)
{
    enum net_status s = NET_OK;
    size_t sent;

    for (const char *at = bytes; len && s == NET_OK; at += sent, len -= sent) {
        s = net_send(fd, at, len, &sent);
        if (s != NET_OK)
            break;
        if (!sent)
            s = net_wait(fd, POLLOUT, deadline);
    }
    return s;
}

enum net_status net_read(int fd, void *bytes, size_t most, int64_t deadline, size_t *ret_len)
{
    for (;;) {
        ssize_t n = recv(fd, bytes, most, 0);
        if (n > 0) {
            *ret_len = (size_t)n;
            return NET_OK;
        }
        if (n == 0)
            return NET_CLOSED;
        if (errno == EAGAIN) {
            enum net_status s = net_wait(fd, POLLIN, deadline);
            if (s != NET_OK)
                return s;
        } else if (errno != EINTR) {
            return from_errno(errno);
        }
    }
}

/*
 * Tells the two causes of EADDRNOTAVAIL apart. Returns NET_NO_PORT if no local port is free, and NET_UNREACHABLE if
 * this host has no source address for the destination. UDP has its own ports, so connect() of a UDP socket fails only
 * for the second cause.
 */
static enum net_status not_available(const struct addr *a)
{
    int fd = socket(a->sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool from_here = fd >= 0 && !connect(fd, (const struct sockaddr *)&a->sa, a->len);

    if (fd >= 0)
        close(fd);
    return from_here ? NET_NO_PORT : NET_UNREACHABLE;
}

enum net_status net_connect(const struct addr *to, int port, int64_t deadline, int *ret_fd)
{
    struct addr a = *to;
    enum net_status status = NET_OK;
    int one = 1, error = 0;
    socklen_t len = sizeof error;
    int fd = socket(a.sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return errno == EAFNOSUPPORT ? NET_UNREACHABLE : NET_FAILED;
    if (a.sa.ss_family == AF_INET)
        ((struct sockaddr_in *)(void *)&a.sa)->sin_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in6 *)(void *)&a.sa)->sin6_port = htons((uint16_t)port);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    if (connect(fd, (struct sockaddr *)&a.sa, a.len)) {
        status = errno == EINPROGRESS     ? net_wait(fd, POLLOUT, deadline)
                 : errno == EADDRNOTAVAIL ? not_available(&a)
                                          : from_errno(errno);
        if (status == NET_OK && !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) && error)
            status = from_errno(error);
    }
    if (status != NET_OK) {
        close(fd);
        return status;
    }
    *ret_fd = fd;
    return NET_OK;
}

bool net_no_port(const char *to, struct err *e)
{
    err_set(e, ERR_NODE, "cannot connect to %s: all local ports of this host are in use", to);
    err_hint(e, "net.ipv4.ip_local_port_range sets their range; ss -t shows who uses them");
    return false;
}

void net_make_room(int fd, size_t bytes)
{
    int room = (int)MIN(bytes, (size_t)INT_MAX), has = 0;
    socklen_t len = sizeof has;

    /* Linux doubles the value that a program sets, and getsockopt() returns the doubled value. */
    if (!getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &has, &len) && has / 2 < room)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
}

size_t net_under_way(int fd)
{
    int bytes = 0;

    return ioctl(fd, SIOCOUTQ, &bytes) || bytes < 0 ? 0 : (size_t)bytes;
}

/* ---- names of hosts ---- */

/*
 * A host name to resolve, shared by the caller's thread and the resolving thread. The thread that calls net_let_go()
 * last frees it.
 */
struct question {
    char *host;
    int ready[2];
    enum net_status result;
    struct addrs found;
    atomic_int users;
};

static void net_let_go(struct question *q)
{
    if (atomic_fetch_sub(&q->users, 1) != 1)
        return;
    close(q->ready[0]);
    close(q->ready[1]);
    free(q->host);
    free(q);
}

static void *resolve_host(void *data)
{
    struct question *q = data;

    q->result = hosts_find(q->host, &q->found);
    while (write(q->ready[1], "", 1) < 0 && errno == EINTR)
        ;
    net_let_go(q);
    return NULL;
}

enum net_status net_resolve(const char *host, int64_t deadline, struct addrs *ret)
{
    enum net_status status;

    if (hosts_parse(host, ret))
        return NET_OK;
    struct question *q = mem_zalloc(sizeof *q);
    atomic_init(&q->users, 2);
    if (pipe2(q->ready, O_CLOEXEC)) {
        free(q);
        return NET_FAILED;
    }
    q->host = mem_strndup(host, strlen(host));
    if (!thread_start(NULL, resolve_host, q)) {
        net_let_go(q);
        net_let_go(q);
        return NET_FAILED;
    }
    status = net_wait(q->ready[0], POLLIN, deadline);
    if (status == NET_OK) {
        status = q->result;
        if (status == NET_OK)
            *ret = q->found;
    }
    net_let_go(q);
    return status;
}

static size_t net_place(const struct addrs *a, const struct addr *x)
{
    size_t i = 0;

    while (i < a->count && (a->items[i].len != x->len || memcmp(&a->items[i].sa, &x->sa, x->len)))
        i++;
    return i;
}

void net_prefer(struct addrs *a, const struct addr *first)
{
    size_t i = net_place(a, first);

    if (i == a->count)
        return;
    a->items[i] = a->items[0];
    a->items[0] = *first;
}

void net_loopback(struct addrs *a)
{
    struct addr four = {.len = sizeof(struct sockaddr_in)}, six = {.len = sizeof(struct sockaddr_in6)};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};

    memcpy(&four.sa, &in, sizeof in);
    memcpy(&six.sa, &in6, sizeof in6);
    if (a->count < NET_ADDRS && net_place(a, &four) == a->count)
        a->items[a->count++] = four;
    if (a->count < NET_ADDRS && net_place(a, &six) == a->count)
        a->items[a->count++] = six;
}

/* Tries to bind a socket to the address, because the system binds sockets only to addresses of this host. */
bool net_is_here(const struct addr *a)
{
    int fd = socket(a->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool here = fd >= 0 && !bind(fd, (const struct sockaddr *)&a->sa, a->len);

    if (fd >= 0)
        close(fd);
    return here;
}

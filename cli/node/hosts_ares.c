/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds hosts with c-ares, which reads /etc/hosts, /etc/resolv.conf and the order in /etc/nsswitch.conf. c-ares does
 * not know the other sources of nsswitch.conf, such as mDNS or LDAP.
 */
#include "hosts.h"

#include <ares.h>
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "../ground/mem.h"

/*
 * FIRST_MS is the time that c-ares waits for one server before it asks the next. The time doubles with each of the
 * TRIES rounds. With the default of five seconds, one silent server would use up the time of a whole attempt to
 * connect.
 */
#define FIRST_MS 1500
#define TRIES 3

struct answer {
    int status;
    struct addrs found;
};

/* ---- addresses in digits ---- */

/* Sets *ret_scope to the number of the interface in an address such as fe80::1%eth0, or to 0. */
static bool parse_v6(const char *text, struct in6_addr *ret, uint32_t *ret_scope)
{
    char digits[INET6_ADDRSTRLEN];
    const char *scope = strchr(text, '%');
    size_t len = scope ? (size_t)(scope - text) : strlen(text);

    if (len >= sizeof digits)
        return false;
    memcpy(digits, text, len);
    digits[len] = '\0';
    *ret_scope = scope ? if_nametoindex(scope + 1) : 0;
    return inet_pton(AF_INET6, digits, ret) == 1 && (!scope || *ret_scope);
}

static void add_v4(struct addrs *a, struct in_addr address)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = address};
    struct addr *x = &a->items[a->count++];

    memcpy(&x->sa, &in, sizeof in);
    x->len = sizeof in;
}

static void add_v6(struct addrs *a, struct in6_addr address, uint32_t scope)
{
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = address, .sin6_scope_id = scope};
    struct addr *x = &a->items[a->count++];

    memcpy(&x->sa, &in6, sizeof in6);
    x->len = sizeof in6;
}

bool hosts_parse(const char *text, struct addrs *ret)
{
    struct in_addr v4;
    struct in6_addr v6;
    uint32_t scope;

    ret->count = 0;
    if (inet_aton(text, &v4))
        add_v4(ret, v4);
    else if (parse_v6(text, &v6, &scope))
        add_v6(ret, v6, scope);
    return ret->count > 0;
}

/* ---- names ---- */

static void library_init(void)
{
    ares_library_init(ARES_LIB_INIT_ALL);
}

static void keep_addresses(void *data, int status, int timeouts UNUSED, struct ares_addrinfo *all)
{
    struct answer *a = data;

    a->status = status;
    for (struct ares_addrinfo_node *i = all ? all->nodes : NULL; i && a->found.count < NET_ADDRS; i = i->ai_next)
        if (i->ai_family == AF_INET)
            add_v4(&a->found, ((const struct sockaddr_in *)(const void *)i->ai_addr)->sin_addr);
        else if (i->ai_family == AF_INET6)
            add_v6(&a->found, ((const struct sockaddr_in6 *)(const void *)i->ai_addr)->sin6_addr, 0);
    if (all)
        ares_freeaddrinfo(all);
}

/*
 * Waits for the sockets of the channel, or for its next timeout, and lets c-ares handle them. Returns false if nothing
 * is left to wait for.
 */
static bool channel_step(ares_channel channel)
{
    ares_socket_t sockets[ARES_GETSOCK_MAXNUM];
    struct pollfd waits[ARES_GETSOCK_MAXNUM];
    struct timeval left, longest = {.tv_sec = 60};
    int bits = ares_getsock(channel, sockets, ARES_GETSOCK_MAXNUM);
    nfds_t n = 0;

    for (; n < ARES_GETSOCK_MAXNUM; n++) {
        waits[n] = (struct pollfd){.fd = sockets[n]};
        if (ARES_GETSOCK_READABLE(bits, n))
            waits[n].events |= POLLIN;
        if (ARES_GETSOCK_WRITABLE(bits, n))
            waits[n].events |= POLLOUT;
        if (!waits[n].events)
            break;
    }
    if (!n)
        return false;
    ares_timeout(channel, &longest, &left);
    if (poll(waits, n, (int)(left.tv_sec * 1000 + left.tv_usec / 1000 + 1)) < 0 && errno != EINTR)
        return false;
    ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD); /* handles timeouts */
    for (nfds_t i = 0; i < n; i++)
        if (waits[i].revents)
            ares_process_fd(channel, waits[i].events & POLLIN ? waits[i].fd : ARES_SOCKET_BAD,
                            waits[i].events & POLLOUT ? waits[i].fd : ARES_SOCKET_BAD);
    return true;
}

static enum net_status from_status(int status)
{
    switch (status) {
    case ARES_SUCCESS:
        return NET_OK;
    case ARES_ENOTFOUND:
    case ARES_ENODATA:
    case ARES_EBADNAME:
        return NET_UNKNOWN;
    case ARES_ETIMEOUT:
    case ARES_ECONNREFUSED:
    case ARES_ESERVFAIL:
    case ARES_EREFUSED:
        return NET_TIMEOUT;
    default:
        return NET_FAILED;
    }
}

enum net_status hosts_find(const char *host, struct addrs *ret)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct ares_addrinfo_hints hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct answer a = {.status = ARES_EDESTRUCTION};
    struct ares_options options = {.timeout = FIRST_MS, .tries = TRIES};
    ares_channel channel;

    pthread_once(&once, library_init);
    if (ares_init_options(&channel, &options, ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES) != ARES_SUCCESS)
        return NET_FAILED;
    ares_getaddrinfo(channel, host, NULL, &hints, keep_addresses, &a);
    while (channel_step(channel))
        ;
    ares_destroy(channel); /* calls keep_addresses() if there is no answer yet */
    if (a.status == ARES_SUCCESS)
        *ret = a.found;
    return from_status(a.status);
}

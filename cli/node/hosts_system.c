/* SPDX-License-Identifier: Apache-2.0 */
/* Finds hosts with the resolver of the C library. */
#include "hosts.h"

#include <netdb.h>
#include <string.h>

static int look_up(const char *host, int flags, struct addrs *ret)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags}, *all = NULL;
    struct addrs found = {0};
    int result = getaddrinfo(host, NULL, &hints, &all);

    if (result)
        return result;
    for (struct addrinfo *i = all; i && found.count < NET_ADDRS; i = i->ai_next) {
        if (i->ai_family != AF_INET && i->ai_family != AF_INET6)
            continue;
        struct addr *a = &found.items[found.count++];
        memcpy(&a->sa, i->ai_addr, i->ai_addrlen);
        a->len = i->ai_addrlen;
    }
    freeaddrinfo(all);
    *ret = found;
    return 0;
}

bool hosts_parse(const char *text, struct addrs *ret)
{
    return !look_up(text, AI_NUMERICHOST, ret);
}

enum net_status hosts_find(const char *host, struct addrs *ret)
{
    switch (look_up(host, 0, ret)) {
    case 0:
        return NET_OK;
    case EAI_NONAME:
    case EAI_NODATA:
        return NET_UNKNOWN;
    case EAI_AGAIN:
        return NET_TIMEOUT;
    default:
        return NET_FAILED;
    }
}

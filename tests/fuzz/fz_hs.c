/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes what a peer sends before it is authenticated: the answers of an epmd, and the other side of the handshake.
 * The data comes from memory: this file replaces the functions of net.h. The first byte selects the peer and the
 * number of bytes per read.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ground/utf8.h"
#include "node/epmd.h"
#include "node/handshake.h"
#include "no_net.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Suppresses a leak of libei after a failed handshake. It can occur once per process. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:read_hs_package\n";
}

static const uint8_t *from, *end;
static size_t piece;

void net_loopback(struct addrs *a UNUSED)
{
}
enum net_status net_wait(int fd UNUSED, short events, int64_t d UNUSED)
{
    return events || piece & 2 ? NET_OK : NET_TIMEOUT;
}
size_t net_under_way(int fd UNUSED)
{
    return piece & 4;
}
enum net_status net_send(int fd UNUSED, const void *b UNUSED, size_t n, size_t *sent)
{
    return *sent = n, NET_OK;
}
enum net_status net_write(int fd UNUSED, const void *b UNUSED, size_t n UNUSED, int64_t d UNUSED)
{
    return NET_OK;
}

enum net_status net_connect(const struct addr *to UNUSED, int port UNUSED, int64_t d UNUSED, int *ret_fd)
{
    *ret_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    return *ret_fd < 0 ? NET_FAILED : NET_OK;
}

enum net_status net_read(int fd UNUSED, void *bytes, size_t most, int64_t d UNUSED, size_t *ret_len)
{
    size_t n = MIN(MIN(most, piece), (size_t)(end - from));

    if (!n)
        return piece & 1 ? NET_CLOSED : NET_TIMEOUT;
    memcpy(bytes, from, n);
    from += n;
    *ret_len = n;
    return NET_OK;
}

static void names(const struct addr *host)
{
    struct epmd_names n;

    if (epmd_list(host, 1, 0, &n) != EPMD_OK)
        return;
    for (size_t i = 0; i < n.count; i++)
        if (strlen(n.items[i].name) > 255 || n.items[i].port <= 0 || n.items[i].port > 65535)
            abort();
    epmd_names_release(&n);
}

static void shake(void)
{
    struct stream s = {.fd = open("/dev/null", O_RDWR | O_CLOEXEC)};
    struct node_conn conn = {0};
    struct cookie cookie = {.text = "a cookie", .owner = COOKIE_GIVEN};
    struct trust_refusal why;
    char shown[sizeof conn.node];

    handshake_run(&s, &cookie, &(struct trust_end){.typed = true}, 0, &conn, &why);
    memcpy(shown, conn.node, sizeof shown);
    utf8_make_safe(shown);
    if (strcmp(shown, conn.node)) /* messages contain the name unchanged */
        abort();
    if (strnlen(conn.node, sizeof conn.node) > NODE_NAME_MAX ||
        strnlen(conn.self.node, sizeof conn.self.node) > NODE_NAME_MAX)
        abort();
    close(s.fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct addr host = {.len = 1};
    struct addrs hosts = {.items = {host}, .count = 1};
    struct addr asked;
    int port = 1;

    if (!size)
        return 0;
    from = data + 1;
    end = data + size;
    piece = (size_t)1 << (data[0] >> 4) | (data[0] >> 3 & 1);
    switch (data[0] & 3) {
    case 0:
        names(&host);
        break;
    case 1:
        if (epmd_lookup_any(&hosts, "shop", 0, &port, &asked) == EPMD_OK && (port < 0 || port > 65535))
            abort();
        break;
    default:
        shake();
        break;
    }
    return 0;
}

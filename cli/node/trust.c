/* SPDX-License-Identifier: Apache-2.0 */
#include "trust.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net.h"
#include "vms.h"

#define ESTABLISHED 1 /* the kernel's value of TCP_ESTABLISHED */

/* The two ends of a connection. */
struct ends {
    struct addr ours, theirs;
};

/* A socket of this host. Its inode is 0 until a process accepts its connection. */
struct trust_socket {
    unsigned uid;
    unsigned long inode;
};

static bool trust_ends(int fd, struct ends *ret)
{
    *ret = (struct ends){0};
    ret->ours.len = sizeof ret->ours.sa;
    ret->theirs.len = sizeof ret->theirs.sa;
    return !getsockname(fd, (struct sockaddr *)&ret->ours.sa, &ret->ours.len) &&
           !getpeername(fd, (struct sockaddr *)&ret->theirs.sa, &ret->theirs.len);
}

/* ---- what the kernel knows of a socket ---- */

/* Writes an address in the form of sock_diag. Returns its port in network byte order. */
static uint16_t trust_put_end(const struct addr *a, uint32_t ret[4])
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a->sa;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&a->sa;

    if (a->sa.ss_family == AF_INET) {
        memcpy(ret, &v4->sin_addr, sizeof v4->sin_addr);
        return v4->sin_port;
    }
    memcpy(ret, &v6->sin6_addr, sizeof v6->sin6_addr);
    return v6->sin6_port;
}

/*
 * Asks the kernel for the socket of the other end, whose own address is `theirs`. Needs no /proc and no search through
 * all sockets.
 */
static bool trust_ask_kernel(const struct ends *e, struct trust_socket *ret)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 request;
    } ask = {.head = {.nlmsg_len = sizeof ask, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
             .request = {.sdiag_family = (uint8_t)e->theirs.sa.ss_family,
                         .sdiag_protocol = IPPROTO_TCP,
                         .idiag_states = UINT32_MAX,
                         .id.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}};
    union {
        struct nlmsghdr head;
        char bytes[4096];
    } answer;
    const struct inet_diag_msg *socket_found = NLMSG_DATA(&answer.head);
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&e->theirs.sa;

    ask.request.id.idiag_sport = trust_put_end(&e->theirs, ask.request.id.idiag_src);
    ask.request.id.idiag_dport = trust_put_end(&e->ours, ask.request.id.idiag_dst);
    if (e->theirs.sa.ss_family == AF_INET6)
        ask.request.id.idiag_if = v6->sin6_scope_id;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    ssize_t got = fd >= 0 && send(fd, &ask, sizeof ask, 0) == sizeof ask ? recv(fd, &answer, sizeof answer, 0) : -1;
    if (fd >= 0)
        close(fd);
    if (got < (ssize_t)NLMSG_LENGTH(sizeof *socket_found) || answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        socket_found->idiag_state != ESTABLISHED || socket_found->id.idiag_sport != ask.request.id.idiag_sport ||
        socket_found->id.idiag_dport != ask.request.id.idiag_dport)
        return false;
    *ret = (struct trust_socket){.uid = socket_found->idiag_uid, .inode = socket_found->idiag_inode};
    return true;
}

/* Writes an address and its port in the form of /proc/net/tcp or tcp6. In tcp6, an IPv4 address is mapped to IPv6. */
static void trust_spell_end(const struct addr *a, bool in_tcp6, char ret[48])
{
    uint32_t words[4] = {0}, mapped[4] = {0, 0, htonl(0xffff), 0};
    unsigned port = ntohs(trust_put_end(a, words));

    if (a->sa.ss_family == AF_INET && in_tcp6) {
        mapped[3] = words[0];
        memcpy(words, mapped, sizeof words);
    }
    if (in_tcp6)
        snprintf(ret, 48, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2], words[3], port);
    else
        snprintf(ret, 48, "%08X:%04X", words[0], port);
}

static bool trust_read_table(const struct ends *e, bool in_tcp6, struct trust_socket *ret)
{
    char path[64], line[512], theirs[48], ours[48], local[48], remote[48];
    bool found = false;

    trust_spell_end(&e->theirs, in_tcp6, theirs);
    trust_spell_end(&e->ours, in_tcp6, ours);
    snprintf(path, sizeof path, "/proc/thread-self/net/%s", in_tcp6 ? "tcp6" : "tcp");
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f))
        found =
            sscanf(line, " %*d: %47s %47s %*x %*s %*s %*s %u %*d %lu", local, remote, &ret->uid, &ret->inode) == 4 &&
            !strcmp(local, theirs) && !strcmp(remote, ours);
    if (f)
        fclose(f);
    return found;
}

/*
 * Finds the socket of the other end. Reads /proc/net if the kernel has no sock_diag, as in some containers. Returns
 * false if there is no such socket, or no process has accepted the connection yet.
 */
static bool trust_find(const struct ends *e, struct trust_socket *ret)
{
    bool found = trust_ask_kernel(e, ret) || trust_read_table(e, true, ret) ||
                 (e->theirs.sa.ss_family == AF_INET && trust_read_table(e, false, ret));

    return found && ret->inode;
}

/* ---- the rule ---- */

static bool trust_is_here(const struct addr *end)
{
    struct addr a = *end;

    if (a.sa.ss_family == AF_INET)
        ((struct sockaddr_in *)&a.sa)->sin_port = 0;
    else
        ((struct sockaddr_in6 *)&a.sa)->sin6_port = 0;
    return net_is_here(&a);
}

/*
 * Returns true if the process has the socket. If /proc hides the process's descriptors, returns true if the user of the
 * process made the socket.
 */
static bool trust_is_of_process(const struct trust_socket *s, long ospid)
{
    char path[64];
    struct stat st;
    bool hidden;

    if (process_has_socket(ospid, s->inode, &hidden))
        return true;
    snprintf(path, sizeof path, "/proc/%ld", ospid);
    return hidden && !stat(path, &st) && st.st_uid == s->uid;
}

/* ---- the host of ssh ---- */

/* Returns true if the socket that etrace found before it connected still listens. Asks the other host. */
static bool trust_still_listens(const struct trust_end *end)
{
    struct ssh_look now = {0};
    struct err ignored;
    bool found = false;

    if (!end->listener || !ssh_look_sockets(end->ssh, &now, &ignored))
        return false;
    for (size_t i = 0; i < now.count && !found; i++)
        found = now.listeners[i].inode == end->listener->inode && now.listeners[i].port == end->listener->port;
    ssh_look_release(&now);
    return found;
}

/*
 * Returns true if the process has the socket. If /proc of the other host hides the process's descriptors, returns true
 * if the user of the process made the socket.
 */
static bool trust_is_of_process_there(const struct trust_end *end, long ospid)
{
    if (end->listener->ospid)
        return end->listener->ospid == ospid;
    for (size_t i = 0; i < end->vms->count; i++)
        if (end->vms->items[i].ospid == ospid)
            return !end->vms->items[i].visible && end->vms->items[i].uid == end->listener->uid;
    return false;
}

static bool trust_allows_there(const struct trust_end *end, const struct cookie *c, struct trust_refusal *ret_why)
{
    ret_why->is_known = trust_still_listens(end);
    if (!ret_why->is_known)
        return false;
    ret_why->uid = end->listener->uid;
    return c->owner == COOKIE_OWN ? ret_why->uid == 0 || ret_why->uid == end->user
                                  : trust_is_of_process_there(end, c->ospid);
}

bool trust_allows(int fd, const struct trust_end *end, const struct cookie *c, struct trust_refusal *ret_why)
{
    struct trust_socket s;
    struct ends e;

    *ret_why = (struct trust_refusal){0};
    if (c->owner == COOKIE_GIVEN)
        return true;
    if (end->ssh)
        return trust_allows_there(end, c, ret_why);
    if (!trust_ends(fd, &e))
        return false;
    ret_why->is_remote = !trust_is_here(&e.theirs);
    if (ret_why->is_remote)
        return c->owner == COOKIE_OWN && end->typed;
    ret_why->is_known = trust_find(&e, &s);
    if (!ret_why->is_known)
        return false;
    ret_why->uid = s.uid;
    return c->owner == COOKIE_OWN ? s.uid == 0 || s.uid == geteuid() : trust_is_of_process(&s, c->ospid);
}

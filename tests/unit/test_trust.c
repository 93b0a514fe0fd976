/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests where a cookie may go, with real connections of this process to itself: with the answer of sock_diag, and with
 * the tables of /proc alone. cli/225 has the other ends that belong to other users and hosts. Then with the sockets
 * that another host shows, which cli/260 reaches with ssh.
 */
#include "node/trust.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tap.h"

static bool has_diag = true;

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);

int __wrap_socket(int domain, int type, int protocol)
{
    if (domain == AF_NETLINK && !has_diag) {
        errno = EPROTONOSUPPORT;
        return -1;
    }
    return __real_socket(domain, type, protocol);
}

struct pair {
    int listener, ours, theirs; /* theirs: -1 until it is accepted */
};

/* Connects to a listener on the loopback. `wide`: it listens with IPv6 for both versions. */
static bool begin_pair(struct pair *p, int family, bool wide)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = wide ? in6addr_any : in6addr_loopback};
    const bool is_v6 = wide || family == AF_INET6;
    struct sockaddr_storage bound;
    socklen_t len = sizeof bound;

    *p = (struct pair){socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0), socket(family, SOCK_STREAM, 0), -1};
    if (bind(p->listener, is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4, is_v6 ? sizeof v6 : sizeof v4) ||
        listen(p->listener, 1) || getsockname(p->listener, (struct sockaddr *)&bound, &len))
        return false;
    v4.sin_port = v6.sin6_port =
        is_v6 ? ((struct sockaddr_in6 *)&bound)->sin6_port : ((struct sockaddr_in *)&bound)->sin_port;
    v6.sin6_addr = in6addr_loopback;
    return !connect(p->ours, family == AF_INET6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4,
                    family == AF_INET6 ? sizeof v6 : sizeof v4);
}

static void accept_pair(struct pair *p)
{
    p->theirs = accept(p->listener, NULL, NULL);
}

static void end_pair(struct pair *p)
{
    close(p->listener);
    close(p->ours);
    if (p->theirs >= 0)
        close(p->theirs);
}

static bool allows(const struct pair *p, enum cookie_owner owner, long ospid, struct trust_refusal *why)
{
    const struct cookie c = {.owner = owner, .ospid = ospid};

    return trust_allows(p->ours, &(struct trust_end){0}, &c, why);
}

static void test_pair(const char *name, int family, bool wide)
{
    struct trust_refusal why;
    struct pair p;

    if (!begin_pair(&p, family, wide)) {
        ok(errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL, "%s: cannot connect: %s", name, strerror(errno));
        return;
    }
    ok(!allows(&p, COOKIE_OWN, 0, &why) && !why.is_known && !why.is_remote, "%s: nobody has accepted the connection",
       name);
    ok(allows(&p, COOKIE_GIVEN, 0, &why), "%s: a given cookie goes there all the same", name);
    accept_pair(&p);
    ok(allows(&p, COOKIE_OWN, 0, &why), "%s: our own cookie goes to our own socket", name);
    ok(allows(&p, COOKIE_PROCESS, getpid(), &why), "%s: a cookie of this process goes to its socket", name);
    ok(!allows(&p, COOKIE_PROCESS, getppid(), &why) && why.is_known && why.uid == geteuid(),
       "%s: a cookie of another process does not", name);
    close(p.theirs);
    p.theirs = -1;
    ok(!allows(&p, COOKIE_OWN, 0, &why) && !why.is_known, "%s: nor to a socket that is closed", name);
    end_pair(&p);
}

/* ---- the host of ssh ---- */

static struct ssh_listener now_listens; /* inode 0: none */

bool __wrap_ssh_look_sockets(struct ssh *s, struct ssh_look *ret, struct err *e);

bool __wrap_ssh_look_sockets(struct ssh *s, struct ssh_look *ret, struct err *e)
{
    (void)s, (void)e;
    *ret = (struct ssh_look){.count = now_listens.inode != 0};
    ret->listeners = malloc(sizeof *ret->listeners);
    *ret->listeners = now_listens;
    return true;
}

/* The user of ssh has the uid 1000. Process 42 of user 1001 shows its sockets, and process 43 of user 1002 does not. */
static bool allows_there(const struct ssh_listener *l, enum cookie_owner owner, long ospid, struct trust_refusal *why)
{
    struct vm items[] = {{.ospid = 42, .uid = 1001, .visible = true}, {.ospid = 43, .uid = 1002}};
    const struct vms vms = {.items = items, .count = 2};
    const struct trust_end end = {.ssh = (struct ssh *)items, .listener = l, .vms = &vms, .user = 1000, .typed = true};
    const struct cookie c = {.owner = owner, .ospid = ospid};

    return trust_allows(-1, &end, &c, why);
}

static void test_there(void)
{
    const struct ssh_listener own = {.port = 5, .uid = 1000, .inode = 7}, root = {.port = 5, .inode = 7},
                              shown = {.port = 5, .uid = 1001, .inode = 7, .ospid = 42},
                              hidden = {.port = 5, .uid = 1002, .inode = 7};
    struct trust_refusal why;

    now_listens = own;
    ok(allows_there(&own, COOKIE_OWN, 0, &why), "our own cookie goes to the user of ssh");
    ok(allows_there(&root, COOKIE_OWN, 0, &why), "and to root");
    ok(!allows_there(&shown, COOKIE_OWN, 0, &why) && why.is_known && why.uid == 1001, "but to no other user");
    ok(allows_there(&shown, COOKIE_GIVEN, 0, &why), "a given cookie goes there");
    ok(allows_there(&shown, COOKIE_PROCESS, 42, &why), "a cookie of a process goes to its socket");
    ok(!allows_there(&shown, COOKIE_PROCESS, 43, &why), "and not to that of another process");
    ok(!allows_there(&own, COOKIE_PROCESS, 42, &why), "nor to one whose process is unknown");
    ok(allows_there(&hidden, COOKIE_PROCESS, 43, &why),
       "a process that hides its sockets must have the user of the socket");
    ok(!allows_there(&own, COOKIE_PROCESS, 43, &why), "which another user's socket does not have");
    ok(!allows_there(NULL, COOKIE_OWN, 0, &why) && !why.is_known, "no cookie goes to a socket that is not shown");
    now_listens.inode = 8;
    ok(!allows_there(&own, COOKIE_OWN, 0, &why) && !why.is_known, "nor to a port where another socket listens by now");
    now_listens.inode = 0;
    ok(!allows_there(&own, COOKIE_OWN, 0, &why) && !why.is_known, "nor to one where none does");
}

int main(void)
{
    for (int i = 0; i < 2; i++, has_diag = false) {
        const char *how = has_diag ? "sock_diag" : "/proc";
        printf("# with %s\n", how);
        test_pair("IPv4", AF_INET, false);
        test_pair("IPv6", AF_INET6, false);
        test_pair("IPv4 to a listener for both", AF_INET, true);
    }
    test_there();
    return tap_end();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether the other end of a connection may get the digest of a cookie. A process that gets the digest can
 * guess a weak cookie. It can also log in to a node: it passes the node's challenge to etrace as its own challenge, and
 * sends etrace's digest to the node as its own answer. Names prove nothing: any user can register a name with epmd, run
 * an epmd, and start a process with any arguments.
 *
 * The handshake calls trust_allows() after the other end has sent its challenge, and nothing else has a rule about
 * cookies. The kernel says which socket of this host is the other end, and which user made it:
 *
 *   a cookie of --cookie-file     may go everywhere
 *   a cookie of a node's process  may go to a socket of that process
 *   our own cookie                may go to a socket of our user or of root, and to another host that the user named
 *
 * With ssh, /proc of the other host shows the socket and its user. "Our user" is then the user of ssh on that host,
 * whose cookie also counts as "our own cookie". etrace found the listening socket before it connected, and the socket
 * must still listen after the challenge. Then it has listened all the time, and no other socket got the connection.
 */
#ifndef ETRACE_TRUST_H
#define ETRACE_TRUST_H

#include <stdbool.h>

#include "cookie.h"
#include "ssh.h"

/* Why trust_allows() withholds a cookie. */
struct trust_refusal {
    bool is_remote; /* the other end is not a socket of this host */
    bool is_known;  /* the kernel shows the socket, whose user is `uid` */
    unsigned uid;
};

/* The other end of a connection, as way_connect() describes it. */
struct trust_end {
    bool typed; /* the user named the host of the other end */
    /*
     * The ssh to the other host. The other end is then a listening socket of that host. NULL: no ssh, so the descriptor
     * is connected to the other end.
     */
    struct ssh *ssh;
    const struct ssh_listener *listener; /* the listening socket; NULL: /proc of that host does not show it */
    const struct vms *vms;               /* the virtual machines of that host */
    unsigned user;                       /* the user of ssh on that host */
};

/*
 * Returns true if the other end of the connected descriptor may get the digest of the cookie. Otherwise sets *ret_why.
 */
bool trust_allows(int fd, const struct trust_end *end, const struct cookie *c, struct trust_refusal *ret_why);

#endif

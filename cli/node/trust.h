/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether the other end of a connection may get the digest of a cookie. A process with that digest can guess a
 * weak cookie. It can also forward the digest to the node whose challenge it forwarded to us, and take over the
 * connection. Names prove nothing: any user can register a name with epmd, run an epmd, and start a process with any
 * arguments.
 *
 * This is the only place with that rule, and the handshake asks it after the other end has sent its challenge. The
 * kernel says which socket of this host is the other end, and who made it:
 *
 *   a cookie of --cookie-file     may go everywhere
 *   a cookie of a node's process  may go to a socket of that process
 *   our own cookie                may go to a socket of our user or of root, and to another host that the user named
 *
 * Through ssh, the kernel of the other host says it, in its /proc, and "our user" is the user of ssh there. Both our
 * own cookie and the one of that user are "our own". The socket that listened before etrace connected must still listen
 * after the challenge: then it listened all the time, and no other one got the connection.
 */
#ifndef ETRACE_TRUST_H
#define ETRACE_TRUST_H

#include <stdbool.h>

#include "cookie.h"
#include "ssh.h"

/* Why a cookie must stay here. */
struct trust_refusal {
    bool is_remote; /* the other end is no socket of this host */
    bool is_known;  /* the kernel shows the socket; its owner is `uid` */
    unsigned uid;
};

/* The other end of a connection, as the way to the node describes it. */
struct trust_end {
    bool typed; /* the user named its host */
    /*
     * Through ssh, the other end is a listening socket of the other host, and not what the descriptor is connected to.
     */
    struct ssh *ssh;                     /* NULL: no ssh; the descriptor is connected to the other end */
    const struct ssh_listener *listener; /* NULL: /proc of that host does not show it */
    const struct vms *vms;               /* of that host */
    unsigned user;                       /* the user of ssh there */
};

/* Returns true if the cookie may be used at the other end of the connected descriptor; else sets *ret_why. */
bool trust_allows(int fd, const struct trust_end *end, const struct cookie *c, struct trust_refusal *ret_why);

#endif

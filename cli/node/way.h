/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways in which etrace reaches a node: through the network of this host or of a container on it, or through ssh. A
 * way finds the node, opens connections to it, and describes the other end for trust.h. connect.c uses it.
 */
#ifndef ETRACE_WAY_H
#define ETRACE_WAY_H

#include "find.h"
#include "ssh.h"
#include "trust.h"

struct way_kind;

struct way {
    const struct way_kind *kind;
    /*
     * The user's target. If the user named a process that only started the node, `ospid` is changed to the node's
     * process.
     */
    struct node_target target;
    int back;             /* descriptor of the network namespace that this thread left; -1: it left none */
    struct ssh *ssh;      /* the ssh to the host of the node; NULL: the node is on this host or reached directly */
    struct ssh_look look; /* with `ssh`: what the shell of the other host lists */
};

/*
 * Enters the network of the target, or logs in through ssh, which may wait without limit. Call way_end() even if
 * way_begin() failed.
 */
bool way_begin(struct way *w, const struct node_target *t, struct err *e);
int64_t way_ms(const struct way *w); /* returns the time limit for all later steps together, in milliseconds */
bool way_find(struct way *w, int64_t deadline, struct place *ret, struct err *e);
enum net_status way_connect(const struct way *w, const struct place *p, const struct addr *to, int port,
                            int64_t deadline, int *ret_fd, struct trust_end *ret_end);
/*
 * Returns true and sets *e if the connection has not reached the port. Call it after the connection closed without a
 * byte.
 */
bool way_denied(const struct way *w, int port, struct err *e);
void way_end(struct way *w);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways to a node: through the network of this host, or of a container on it, and through ssh. A way finds the node,
 * opens connections to it, and knows whose the other end is (trust.h). For connect.c.
 */
#ifndef ETRACE_WAY_H
#define ETRACE_WAY_H

#include "find.h"
#include "ssh.h"
#include "trust.h"

struct way_kind;

struct way {
    const struct way_kind *kind;
    /* The user's target. If the user named a process that only started the node, `ospid` is that of the node. */
    struct node_target target;
    int back;             /* descriptor of this thread's earlier network namespace; -1: not changed */
    struct ssh *ssh;      /* NULL: this host */
    struct ssh_look look; /* what the shell of the other host lists */
};

/* Enters the network of the target. Waits without limit for a login. Call way_end() even if way_begin() failed. */
bool way_begin(struct way *w, const struct node_target *t, struct err *e);
int64_t way_ms(const struct way *w); /* the time limit for all later steps together */
bool way_find(struct way *w, int64_t deadline, struct place *ret, struct err *e);
enum net_status way_connect(const struct way *w, const struct place *p, const struct addr *to, int port,
                            int64_t deadline, int *ret_fd, struct trust_end *ret_end);
/* Call it after a connection closed without a byte. Returns true and sets *e if the way did not reach the port. */
bool way_denied(const struct way *w, int port, struct err *e);
void way_end(struct way *w);

#endif

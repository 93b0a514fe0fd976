/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the node that the user named on the host behind ssh. find.h does this without ssh. */
#ifndef ETRACE_SSH_FIND_H
#define ETRACE_SSH_FIND_H

#include "epmd.h"
#include "find.h"
#include "ssh.h"

/* The processes of the host behind ssh, and a function that asks its epmd. */
struct ssh_places {
    const char *host; /* the host as the user typed it */
    const struct ssh_look *look;
    /* Asks the epmd of the host. ssh_find() calls it at most once, and only if the processes do not show the port. */
    enum epmd_answer (*ask)(void *data, struct epmd_names *ret, struct err *e);
    void *data;
};

bool ssh_find(const struct ssh_places *s, const struct node_target *t, struct place *ret, struct err *e);

/* The `data` for ssh_ask_epmd(), which is a function for `ask` in struct ssh_places. */
struct ssh_epmd {
    struct ssh *ssh;
    const struct ssh_look *look;
    int64_t deadline;
};
enum epmd_answer ssh_ask_epmd(void *data, struct epmd_names *ret, struct err *e);

#endif

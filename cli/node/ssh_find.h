/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the node that the user named on the host of ssh, as find.h does on the others. */
#ifndef ETRACE_SSH_FIND_H
#define ETRACE_SSH_FIND_H

#include "epmd.h"
#include "find.h"
#include "ssh.h"

/* The processes of that host, and a way to ask its epmd. */
struct ssh_places {
    const char *host; /* as the user gave it */
    const struct ssh_look *look;
    /* Asks its epmd; called at most once, and only if the processes do not tell. */
    enum epmd_answer (*ask)(void *data, struct epmd_names *ret, struct err *e);
    void *data;
};

bool ssh_find(const struct ssh_places *s, const struct node_target *t, struct place *ret, struct err *e);

/* The ask() of a host: its data is a struct ssh_epmd. */
struct ssh_epmd {
    struct ssh *ssh;
    const struct ssh_look *look;
    int64_t deadline;
};
enum epmd_answer ssh_ask_epmd(void *data, struct epmd_names *ret, struct err *e);

#endif

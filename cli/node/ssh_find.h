/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the node that the user named, on the host behind ssh; find.h does the same on other hosts. */
#ifndef ETRACE_SSH_FIND_H
#define ETRACE_SSH_FIND_H

#include "epmd.h"
#include "find.h"
#include "ssh.h"

/* The processes of that host, and a function that asks its epmd. */
struct ssh_places {
    const char *host; /* as the user gave it */
    const struct ssh_look *look;
    /* Asks the epmd of that host; called at most once, and only if the processes do not show the port. */
    enum epmd_answer (*ask)(void *data, struct epmd_names *ret, struct err *e);
    void *data;
};

bool ssh_find(const struct ssh_places *s, const struct node_target *t, struct place *ret, struct err *e);

/* The data of ssh_ask_epmd(), which is an ask() for struct ssh_places. */
struct ssh_epmd {
    struct ssh *ssh;
    const struct ssh_look *look;
    int64_t deadline;
};
enum epmd_answer ssh_ask_epmd(void *data, struct epmd_names *ret, struct err *e);

#endif

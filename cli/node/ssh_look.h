/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the virtual machines and the listening sockets of the host at the other end of ssh. A shell there prints lines,
 * and this file reads them. The lines are the other host's word: they are checked, bounded and safe to print.
 */
#ifndef ETRACE_SSH_LOOK_H
#define ETRACE_SSH_LOOK_H

#include "vms.h"

/* Scripts for the shell of the other host. They need grep, id, ls, readlink, sed and tr, and change no file. */
extern const char ssh_look_script[];
extern const char ssh_look_sockets_script[]; /* only the sockets */

#define SSH_LOOK_MOST (4u << 20) /* bytes of an answer */

struct ssh_listener {
    char address[64]; /* address at which ssh reaches the socket, such as "127.0.0.1" or "[::1]" */
    int port;
    unsigned uid; /* user who made the socket */
    unsigned long inode;
    long ospid; /* the virtual machine that has the socket, if /proc shows that; else 0 */
};

/* The owner calls ssh_look_release(). */
struct ssh_look {
    unsigned uid;   /* of the user of ssh there */
    char host[256]; /* what that host calls itself */
    struct vms vms; /* with the ports that /proc shows to this user */
    struct ssh_listener *listeners;
    size_t count;
};

/* Appends a text so that any shell there takes it as one word. */
void ssh_quote(struct buf *b, const char *text);

/*
 * Reads the output of a script. Returns false if the text is something else. `text` must end in a NUL and is changed.
 */
bool ssh_look_read(char *text, size_t len, struct ssh_look *ret);
void ssh_look_release(struct ssh_look *l);

/* Returns the socket that listens on this port, or NULL. Prefers a socket of process `ospid`, then one on 127.0.0.1. */
const struct ssh_listener *ssh_look_at(const struct ssh_look *l, int port, long ospid);

#endif

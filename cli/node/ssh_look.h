/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the virtual machines and the listening sockets of the host at the other end of ssh. A shell on that host prints
 * lines, and this file reads them. The other host could print anything, so this file checks each line and bounds what
 * it keeps.
 */
#ifndef ETRACE_SSH_LOOK_H
#define ETRACE_SSH_LOOK_H

#include "vms.h"

/*
 * Scripts for the shell of the other host. They need the programs grep, id, ls, readlink, sed and tr, and change no
 * file.
 */
extern const char ssh_look_script[];
extern const char ssh_look_sockets_script[]; /* lists only the sockets */

#define SSH_LOOK_MOST (4u << 20) /* most bytes that a script may print */

struct ssh_listener {
    char address[64]; /* the address at which ssh reaches the socket, such as "127.0.0.1" or "[::1]" */
    int port;
    unsigned uid; /* the user who made the socket */
    unsigned long inode;
    long ospid; /* the virtual machine that has the socket, if /proc shows it; else 0 */
};

/* The lists that ssh_look_read() finds in the output of a script. Free it with ssh_look_release(). */
struct ssh_look {
    unsigned uid;   /* the user of ssh on the other host */
    char host[256]; /* the host name that the other host has set */
    struct vms vms; /* the virtual machines, with the ports that /proc shows to the user of ssh */
    struct ssh_listener *listeners;
    size_t count;
};

/* Appends a text, quoted so that any shell takes it as one word. */
void ssh_quote(struct buf *b, const char *text);

/*
 * Reads the output of a script. Returns false if the text is not such an output. `text` must end in a NUL; its content
 * is changed.
 */
bool ssh_look_read(char *text, size_t len, struct ssh_look *ret);
void ssh_look_release(struct ssh_look *l);

/*
 * Returns a socket that listens on this port, or NULL. Prefers a socket of process `ospid`, then a socket on 127.0.0.1.
 */
const struct ssh_listener *ssh_look_at(const struct ssh_look *l, int port, long ospid);

#endif

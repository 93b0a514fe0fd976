/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another host, through the system's program ssh.
 *
 * One ssh logs in and starts a shell there, so the user authenticates once. Each connection to a port of that host is
 * another ssh, which asks the first one for it through a socket that only this user can open (ControlPath, -W): it
 * needs no authentication. All of them end when this program does: the shell's input ends, and with it the first ssh.
 *
 * ssh_open() waits for as long as ssh does, and ssh may ask for a password on the terminal. Afterwards the functions
 * wait until a deadline, or ten seconds for the shell. All of them are for threads that may wait (connect.h).
 */
#ifndef ETRACE_SSH_H
#define ETRACE_SSH_H

#include "../ground/buf.h"
#include "net.h"
#include "ssh_look.h"

struct ssh;

bool ssh_check(const char *host, struct err *e); /* it can be an argument of ssh */

/* Logs in, unless this program has a running ssh to this host. It lives until ssh_end(). NULL: e says why not. */
struct ssh *ssh_open(const char *host, struct err *e);
const char *ssh_host(const struct ssh *s); /* as the user gave it */

/* Runs commands in the shell and returns what they print, at most `most` bytes.
 * *ret ends in a NUL beyond its length. */
bool ssh_ask(struct ssh *s, const char *commands, size_t most, struct buf *ret, struct err *e);
bool ssh_look(struct ssh *s, struct ssh_look *ret, struct err *e);
bool ssh_look_sockets(struct ssh *s, struct ssh_look *ret, struct err *e); /* without the virtual machines; quicker */

/* Connects to an address there. If nothing listens at it, *ret_fd only closes: see ssh_denied(). */
enum net_status ssh_connect(struct ssh *s, const char *address, int port, int *ret_fd);
/* After a connection closed without a byte: returns why the other host did not open it. false: it did. */
bool ssh_denied(struct ssh *s, char *ret, size_t size);
void ssh_denied_error(const struct ssh *s, int port, const char *why, struct err *e);

/* After a connection ended: reports whether ssh itself has ended, and says so. Waits for a moment at most. */
bool ssh_has_ended(struct ssh *s, struct err *e);

/* Ends all programs that ssh_open() and ssh_connect() started. Call it on the main thread. */
void ssh_end(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reaches another host through the system's program ssh.
 *
 * The first ssh logs in and starts a shell on the other host, so the user authenticates once. Each connection to a port
 * of that host is another ssh, which needs no authentication: it asks the first ssh through a socket that only this
 * user can open (ControlPath, -W). When this program ends, the shell's input ends. Then the first ssh and all
 * connections end, too.
 *
 * ssh_open() waits for as long as ssh does, and ssh may ask for a password on the terminal. The functions that use the
 * shell wait for at most ten seconds. ssh_check(), ssh_host(), ssh_report_end() and ssh_end() may be called on the main
 * thread. All other functions are for threads that may wait (connect.h).
 */
#ifndef ETRACE_SSH_H
#define ETRACE_SSH_H

#include "../ground/buf.h"
#include "net.h"
#include "ssh_look.h"

struct ssh;

/* Returns false and sets *e if `host` cannot be an argument of ssh. */
bool ssh_check(const char *host, struct err *e);

/*
 * Logs in, unless this program has a running ssh to this host. The result is valid until ssh_end(). Returns NULL and
 * sets *e on failure.
 */
struct ssh *ssh_open(const char *host, struct err *e);
const char *ssh_host(const struct ssh *s); /* returns the host as the user typed it */

/*
 * Runs commands in the shell of the other host, and sets *ret to their output, with a NUL after its last byte. Fails if
 * the output has more than `most` bytes.
 */
bool ssh_ask(struct ssh *s, const char *commands, size_t most, struct buf *ret, struct err *e);
bool ssh_look(struct ssh *s, struct ssh_look *ret, struct err *e);
/* Lists only the sockets, which is quicker than ssh_look(). */
bool ssh_look_sockets(struct ssh *s, struct ssh_look *ret, struct err *e);

/*
 * Connects to an address of the other host. If nothing listens at the address, *ret_fd is valid, but closes without a
 * byte: see ssh_denied().
 */
enum net_status ssh_connect(struct ssh *s, const char *address, int port, int *ret_fd);
/*
 * Returns true, and sets `ret` to the reason, if ssh could not connect to the address at all. Call it after a
 * descriptor of ssh_connect() closed without a byte.
 */
bool ssh_denied(struct ssh *s, char *ret, size_t size);
void ssh_denied_error(const struct ssh *s, int port, const char *why, struct err *e);

/*
 * Returns true and sets *e if ssh itself has ended. Returns false if it runs, or if another thread is using the shell.
 * Call it after a connection ended.
 *
 * ssh ends a moment after its connections, so this waits for up to 50 ms, even in a callback of the loop. It waits once
 * a second at most: if the connections of many nodes end together, the leases of the others do not expire.
 */
bool ssh_report_end(struct ssh *s, struct err *e);

/* Ends all programs that ssh_open() and ssh_connect() started. Call it on the main thread. */
void ssh_end(void);

#endif

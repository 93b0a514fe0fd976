/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the companion on a node, reads its first answer, and cleans up after it. session.c calls these functions.
 */
#ifndef ETRACE_INJECT_H
#define ETRACE_INJECT_H

#include "companion.h"
#include "dist.h"
#include "session.h"

#define NONCE_BYTES 16 /* size of the random number that identifies one session */

/*
 * Sends the companion to `rex` on the node. Sets ret_nonce to the nonce, from which the companion derives the names of
 * its files.
 */
bool inject_boot(struct dist *d, const struct session_options *o, unsigned char ret_nonce[static NONCE_BYTES],
                 struct err *e);

/*
 * Removes the NIF's file that a node leaves behind if it ends while it loads the NIF. This needs a node that runs on
 * this host as our user; for another node it does nothing. The file also stays if its directory is below an
 * XDG_RUNTIME_DIR or HOME that differs from ours, or if the node creates the file after the connection has closed.
 */
void inject_forget(const unsigned char nonce[static NONCE_BYTES]);

/*
 * Asks the node to unload companions of this build that have no process left. If it unloads one, the node sends
 * ETW_MSG_GONE. Errors are ignored.
 */
void inject_sweep(struct dist *d);

/*
 * Reads the first answer of the owner, the tracer's process: a map about the node and the owner. Returns false and
 * leaves *ret unchanged if the map is malformed.
 */
bool inject_hello(struct etf term, struct session_node *ret, struct node_pid *ret_owner);

#endif

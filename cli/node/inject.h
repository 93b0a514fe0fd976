/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the companion on a node, reads its first answer, and cleans up after it. session.c calls these functions.
 */
#ifndef ETRACE_INJECT_H
#define ETRACE_INJECT_H

#include "companion.h"
#include "dist.h"
#include "session.h"

#define NONCE_BYTES 16 /* random, for one session only */

/* Sends the companion to `rex` on the node. The companion derives the names of its files from the nonce. */
bool inject_boot(struct dist *d, const struct session_options *o, unsigned char ret_nonce[static NONCE_BYTES],
                 struct err *e);

/*
 * Removes the NIF's file that a node leaves behind if it ends while it loads the library. This works if the node runs
 * on this host as our user. Otherwise no file here has such a name, and nothing is removed. The file stays if it is on
 * another host, if it is in an XDG_RUNTIME_DIR or below a HOME that differs from ours, or if the node creates it after
 * the connection has closed.
 */
void inject_forget(const unsigned char nonce[static NONCE_BYTES]);

/*
 * Asks the node to unload companions of this build that have no process left, and then to send ETW_MSG_GONE. Errors are
 * ignored.
 */
void inject_sweep(struct dist *d);

/*
 * Reads the owner's first answer, a map about the node and the owner. If it is malformed, returns false and leaves *ret
 * unchanged.
 */
bool inject_hello(struct etf term, struct session_node *ret, struct node_pid *ret_owner);

#endif

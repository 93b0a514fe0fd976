/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the messages between the client and a node's companion, one line each, for ETRACE_DEBUG=wire. The handshake
 * is not a message, so the log never has a cookie.
 */
#ifndef ETRACE_WIRE_LOG_H
#define ETRACE_WIRE_LOG_H

#include "../ground/buf.h"

/*
 * Appends the message as text that is safe to print. `sent`: the client has sent it to the node. Long terms end in an
 * ellipsis.
 */
void wire_log_put(struct buf *to, bool sent, struct str message);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the message that makes `rex` on a node evaluate expressions. It does not send the message.
 *
 * The message is a cast: a node would try to connect to a client that has died, if it had to send an answer to it.
 * `packed` is one of the expressions in companion.h, a term {Variable, Expressions} that nif/pack.escript wrote.
 */
#ifndef ETRACE_REX_H
#define ETRACE_REX_H

#include "../ground/buf.h"
#include "../ground/err.h"
#include "connect.h"

/*
 * Begins a message, with the version byte 131. The variable gets a tuple of `arity` elements as its value. rex_begin()
 * writes the first element, the pid of the client. The caller appends the others and then calls rex_end().
 */
bool rex_begin(struct buf *b, const unsigned char *packed, size_t len, const struct node_pid *client, size_t arity,
               struct err *e);
void rex_end(struct buf *b);

#endif

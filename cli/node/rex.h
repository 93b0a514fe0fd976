/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the message that makes `rex` on a node evaluate expressions. Does not send it.
 *
 * The message is a cast, because `rex` would have to answer a call. If the client had died meanwhile, the node would
 * try to connect to it to send the answer. `packed` is one of the expressions in companion.h, a term {Variable,
 * Expressions} that nif/pack.escript wrote.
 */
#ifndef ETRACE_REX_H
#define ETRACE_REX_H

#include "../ground/buf.h"
#include "../ground/err.h"
#include "connect.h"

/*
 * Begins a message with the version byte 131. The value of the variable is a tuple of `arity` elements. rex_begin()
 * writes the first element of the tuple, the pid of the client. The caller appends the other elements and then calls
 * rex_end().
 */
bool rex_begin(struct buf *b, const unsigned char *packed, size_t len, const struct node_pid *client, size_t arity,
               struct err *e);
void rex_end(struct buf *b);

#endif

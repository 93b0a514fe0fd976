/*
 * What every conversation with a node begins with: one message to its `rex`, a cast, so that no answer is sent to a client that has
 * died meanwhile (the node would try to connect to it). It has expressions evaluated that nif/pack.escript has turned into terms:
 * {Variable, Expressions}, one of companion.h.
 */
#ifndef ETRACE_REX_H
#define ETRACE_REX_H

#include "../ground/buf.h"
#include "../ground/err.h"
#include "connect.h"

/*
 * The message with its 131. The variable's value is a tuple of `arity`, which begins with the client; the caller appends what
 * follows; then rex_end().
 */
bool rex_begin(struct buf *b, const unsigned char *packed, size_t len, const struct node_pid *client, size_t arity, struct err *e);
void rex_end(struct buf *b);

#endif

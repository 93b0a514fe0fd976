/*
 * The first messages of a session: what makes the node start the companion, and what its owner says then.
 */
#ifndef ETRACE_INJECT_H
#define ETRACE_INJECT_H

#include "companion.h"
#include "dist.h"
#include "session.h"

/* Sends the companion to `rex` on the node. */
bool inject_boot(struct dist *d, const struct session_options *o, struct err *e);

/* Asks the node to take away what nobody there answers for any more, and to say $G then. Not being able to is no error. */
void inject_sweep(struct dist *d);

/* The owner's map about itself and its node; false: it is not as it must be. */
bool inject_hello(struct etf term, struct session_node *ret, struct node_pid *ret_owner);

#endif

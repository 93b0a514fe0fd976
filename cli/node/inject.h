/*
 * The first messages of a session: what makes the node start the companion, and what its owner says then.
 */
#ifndef ETRACE_INJECT_H
#define ETRACE_INJECT_H

#include "companion.h"
#include "dist.h"
#include "session.h"

#define NONCE_BYTES 16 /* of no session but this one, and random */

/* Sends the companion to `rex` on the node, and gives the nonce that its files are named by. */
bool inject_boot(struct dist *d, const struct session_options *o, unsigned char ret_nonce[static NONCE_BYTES], struct err *e);

/*
 * Of a node that ended while it loaded the library nobody is left who could take the file away, but for us, where its host and its
 * user are ours. Elsewhere nothing has such a name. Left is what lies in the node's XDG_RUNTIME_DIR or below its HOME where these
 * are not ours, or written otherwise; on another host; and what a node that stops makes behind the end of the connection.
 */
void inject_forget(const unsigned char nonce[static NONCE_BYTES]);

/* Asks the node to take away what nobody there answers for any more, and to say $G then. Not being able to is no error. */
void inject_sweep(struct dist *d);

/* The owner's map about itself and its node; false: it is not as it must be. */
bool inject_hello(struct etf term, struct session_node *ret, struct node_pid *ret_owner);

#endif

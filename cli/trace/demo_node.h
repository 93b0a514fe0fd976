/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the demo node: a small shop, whose sources etrace contains and the node compiles. The node ends with etrace,
 * however etrace ends.
 */
#ifndef ETRACE_DEMO_NODE_H
#define ETRACE_DEMO_NODE_H

#include "child.h"

/*
 * Starts the node and holds it with its modules loaded; the shop opens after child_go(). The caller releases the child,
 * also after false. After false, *ret_status is the exit status: 0 if a signal has ended the start, which is no error.
 */
bool demo_node_hold(struct child *c, struct ctx *ctx, int *ret_status);
void demo_node_end(struct child *c); /* kills the node and releases the child */

/*
 * If the options name only the node `demo`, and no local node has this name, starts a demo node and waits until its
 * shop is open. Replaces the name in the options by the name of this node. Returns false, and reports the error, if the
 * node does not start; *ret_status is then the exit status.
 */
bool demo_node_named(struct ctx *ctx, struct node_opts *o, int *ret_status);
void demo_node_close(void); /* ends the node of demo_node_named(), if there is one */

#endif

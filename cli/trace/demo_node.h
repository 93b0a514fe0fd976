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
 * also after false. *ret_status: 0 if a signal has ended the start, which is no error.
 */
bool demo_node_hold(struct child *c, struct ctx *ctx, int *ret_status);
void demo_node_end(struct child *c); /* kills the node and releases the child */

/*
 * Replaces the name `demo`, if it is the only node of the options and no local node has it, by the name of a demo node
 * whose shop is open. Returns false, and reports the error, if the node does not start.
 */
bool demo_node_named(struct ctx *ctx, struct node_opts *o, int *ret_status);
void demo_node_close(void); /* ends the node of demo_node_named(), if there is one */

#endif

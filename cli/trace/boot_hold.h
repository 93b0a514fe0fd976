/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds a node while it boots, for commands that start a release or iex.
 *
 * A release starts its applications from its boot script, and iex starts its shell, before the node evaluates anything
 * from the command line. ERL_AFLAGS therefore makes the kernel wait for a node that does not exist
 * (sync_nodes_optional), as a release may wait for its peers. The kernel waits after distribution is up and before the
 * first application starts. The kernel goes on by itself after BOOT_HOLD_MS.
 *
 * The environment of the node's process contains our mark, and its command line has the node's name and cookie. A node
 * without a name cannot be reached at this time; child.c holds it after its boot script, like any other node.
 */
#ifndef ETRACE_BOOT_HOLD_H
#define ETRACE_BOOT_HOLD_H

#include "../node/rpc.h"

#define BOOT_HOLD_MS 10000

/* Arguments for ERL_AFLAGS that make the application kernel of a booting VM wait. */
extern const char boot_hold_flags[];

struct boot_hold {
    long vm;                      /* process id of the VM; 0: not found yet */
    char name[NODE_NAME_MAX + 1]; /* the name of the node, once it is held */
    struct rpc rpc;               /* open while `held` */
    struct buf waits;             /* the kernel process that waits, as an encoded pid */
    bool held;
};

/*
 * Returns true if the command is iex or the script of a release. Sets *ret_unnamed if the command is iex and gives its
 * node no name.
 */
bool boot_hold_fits(char **argv, bool *ret_unnamed);

/*
 * Looks for the VM that the process `command` has started: a VM with a node name, and with `mark` in its environment.
 * Sets `vm`. Returns true once the VM is found.
 */
bool boot_hold_find(struct boot_hold *h, const char *mark, long command);

/*
 * Connects to the process that boot_hold_find() has found. If its kernel waits, keeps the connection, sets `name` and
 * `held`, and returns true. `like` has the options of the connection, but names no node.
 */
bool boot_hold_try(struct boot_hold *h, const struct node_target *like);
void boot_hold_go(struct boot_hold *h); /* lets the node go on; a no-op if the node is not held */

#endif

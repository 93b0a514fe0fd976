/*
 * Holding a node while it boots. The applications of a release start from its boot script, and the shell of iex beside it,
 * before anything on the command line is evaluated. So their kernel is made to wait for a node that does not exist (sync_nodes_optional), as a release may wait for its peers; that is
 * after the distribution and before the first application. It goes on by itself in BOOT_HOLD_MS.
 *
 * The node is found by its process, whose environment names us, and its name and cookie by its command line. One without a name
 * cannot be reached then; it is held as every other, behind its boot script.
 */
#ifndef ETRACE_BOOT_HOLD_H
#define ETRACE_BOOT_HOLD_H

#include "../node/rpc.h"

#define BOOT_HOLD_MS 10000

/* What makes a kernel wait, for ERL_AFLAGS. */
extern const char boot_hold_flags[];

struct boot_hold {
    long vm; /* the process; 0: not found yet */
    char name[NODE_NAME_MAX + 1];
    char cookie[512]; /* empty: the user's own */
    struct rpc rpc;   /* open while `held` */
    struct buf waits; /* the process that waits, encoded */
    bool held;
};

/* Whether a command is a release's script, or iex; *ret_unnamed: and its node will have no name of its own. */
bool boot_hold_fits(char **argv, bool *ret_unnamed);

/* Looks for the process with `mark` in its environment that has a name; true once it is known. */
bool boot_hold_find(struct boot_hold *h, const char *mark);

/* Whether the node waits by now. `like` says all but its name. */
bool boot_hold_try(struct boot_hold *h, const struct node_target *like);
void boot_hold_go(struct boot_hold *h); /* lets it go on; harmless when it is not held */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot of all nodes. It begins when one node begins, and ends when every node that has begun or was asked has
 * ended. The caller asks the nodes; this file reads from a scrollback (scroll.h) what the nodes have done.
 */
#ifndef ETRACE_SNAPSHOT_ROUND_H
#define ETRACE_SNAPSHOT_ROUND_H

#include "../events/scroll.h"
#include "peers.h"

#define SNAPSHOT_MS 20000 /* how long a node may take to answer a request for a snapshot, in ms */

struct snapshot_round {
    const struct scroll *scroll;
    bool going, begins;
    bool asked[PEERS_MAX];
    uint64_t before[PEERS_MAX]; /* for each node, the number of snapshots that it had begun before this round */
    uint64_t begun;             /* number of snapshots that all nodes together have begun so far */
};

void snapshot_round_init(struct snapshot_round *r, const struct scroll *scroll);
/* Records that the node was asked for a snapshot, or with `begins` false that it takes none. */
void snapshot_round_asked(struct snapshot_round *r, unsigned node, bool begins);
/* Returns true once for each round that has begun. The caller then asks the nodes of snapshot_round_lacks(). */
bool snapshot_round_begins(struct snapshot_round *r);
bool snapshot_round_lacks(const struct snapshot_round *r, unsigned node);
/* Returns true once for each round that has ended. */
bool snapshot_round_ends(struct snapshot_round *r);
bool snapshot_round_update(struct snapshot_round *r);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot of all nodes: it begins when one node begins, and ends when every node that has begun or was asked has
 * ended. The caller asks the nodes; this file reads from a scrollback (scroll.h) what they have done.
 */
#ifndef ETRACE_SNAPSHOT_ROUND_H
#define ETRACE_SNAPSHOT_ROUND_H

#include "../events/scroll.h"
#include "peers.h"

#define SNAPSHOT_MS 20000 /* how long a node may take to answer a request for a snapshot */

struct snapshot_round {
    const struct scroll *scroll;
    bool going, begins;
    bool asked[PEERS_MAX];
    uint64_t before[PEERS_MAX]; /* how many snapshots the node had begun before this one */
    uint64_t begun;             /* snapshots of all nodes */
};

void snapshot_round_init(struct snapshot_round *r, const struct scroll *scroll);
/* The node was asked for a snapshot. False: it takes none. */
void snapshot_round_asked(struct snapshot_round *r, unsigned node, bool begins);
/* True, once for each snapshot: it has begun, and the nodes that snapshot_round_lacks() should be asked for theirs. */
bool snapshot_round_begins(struct snapshot_round *r);
bool snapshot_round_lacks(const struct snapshot_round *r, unsigned node);
/* True, once for each snapshot: it has ended. */
bool snapshot_round_ends(struct snapshot_round *r);
bool snapshot_round_is_going(struct snapshot_round *r);

#endif

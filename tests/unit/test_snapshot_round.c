/* SPDX-License-Identifier: Apache-2.0 */
/* Tests when a snapshot of all nodes begins and ends. */
#include "framewriter.h"
#include "tap.h"
#include "trace/snapshot_round.h"

static struct scroll *scroll;
static struct fw nodes[2];

static void sends(unsigned node, const char *name)
{
    static uint64_t tick = 1000;
    struct fw *w = &nodes[node];
    struct err e;

    fw_ring(w, ETW_META_RING);
    fw_frame(w, ETW_NOTICE, tick, 0);
    fw_atom_text(w, name);
    fw_tuple(w, 2);
    fw_int(w, 0);
    fw_int(w, 0);
    fw_frame_end(w);
    scroll_batch(scroll, node, fw_batch(w, tick, (int64_t)tick, tick, 0), &e);
    tick += 1000;
}

int main(void)
{
    struct snapshot_round r;

    scroll = scroll_new((size_t)1 << 20);
    scroll_of_recorders(scroll, SCROLL_RECORDERS);
    for (unsigned i = 0; i < 2; i++) {
        fw_begin(&nodes[i]);
        fw_hello(&nodes[i], 10, i ? "b@h" : "a@h");
    }
    snapshot_round_init(&r, scroll);
    ok(!snapshot_round_begins(&r) && !snapshot_round_update(&r) && !snapshot_round_ends(&r),
       "no snapshot is going at first");

    sends(0, "snapshot");
    ok(snapshot_round_begins(&r) && !snapshot_round_begins(&r), "a snapshot of one node begins once");
    ok(!snapshot_round_lacks(&r, 0) && snapshot_round_lacks(&r, 1), "only the other node lacks a snapshot");
    snapshot_round_asked(&r, 1, true);
    ok(!snapshot_round_lacks(&r, 1), "a node that was asked lacks none");
    sends(0, "snapshot_end");
    ok(!snapshot_round_ends(&r), "the snapshot goes on while a node that was asked has not begun");
    sends(1, "snapshot");
    ok(!snapshot_round_begins(&r), "the answer of the other node belongs to the same snapshot");
    ok(!snapshot_round_ends(&r), "the snapshot goes on until the other node has ended");
    sends(1, "snapshot_end");
    ok(snapshot_round_ends(&r) && !snapshot_round_ends(&r), "the snapshot ends once");

    snapshot_round_asked(&r, 0, true);
    ok(snapshot_round_update(&r) && !snapshot_round_ends(&r), "a request begins a snapshot");
    snapshot_round_asked(&r, 0, false);
    ok(snapshot_round_ends(&r), "the snapshot ends when the node that was asked takes none");
    ok(snapshot_round_lacks(&r, 0) && snapshot_round_lacks(&r, 1), "both nodes may take the next snapshot");
    for (unsigned i = 0; i < 2; i++)
        fw_release(&nodes[i]);
    scroll_free(scroll);
    return tap_end();
}

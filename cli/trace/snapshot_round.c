/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot_round.h"

void snapshot_round_init(struct snapshot_round *r, const struct scroll *scroll)
{
    *r = (struct snapshot_round){.scroll = scroll};
}

static bool is_awaited(const struct snapshot_round *r)
{
    for (unsigned i = 0; i < PEERS_MAX; i++)
        if (r->asked[i] && scroll_begun(r->scroll, i) == r->before[i])
            return true;
    return false;
}

bool snapshot_round_update(struct snapshot_round *r)
{
    struct scroll_snapshots now;

    scroll_snapshots(r->scroll, &now);
    if (!r->going && (now.begun > r->begun || is_awaited(r)))
        r->going = r->begins = true;
    r->begun = now.begun;
    return r->going;
}

bool snapshot_round_begins(struct snapshot_round *r)
{
    snapshot_round_update(r);
    const bool begins = r->begins;
    r->begins = false;
    return begins;
}

bool snapshot_round_ends(struct snapshot_round *r)
{
    struct scroll_snapshots now;

    scroll_snapshots(r->scroll, &now);
    if (!snapshot_round_update(r) || now.going || is_awaited(r))
        return false;
    r->going = r->begins = false; /* all nodes have ended, so none is left to ask */
    for (unsigned i = 0; i < PEERS_MAX; i++) {
        r->asked[i] = false;
        r->before[i] = scroll_begun(r->scroll, i);
    }
    return true;
}

void snapshot_round_asked(struct snapshot_round *r, unsigned node, bool begins)
{
    if (node < PEERS_MAX)
        r->asked[node] = begins;
}

bool snapshot_round_lacks(const struct snapshot_round *r, unsigned node)
{
    return !r->asked[node] && scroll_begun(r->scroll, node) == r->before[node];
}

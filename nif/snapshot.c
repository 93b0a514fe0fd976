/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot.h"

#include "gate.h"
#include "tick.h"

static uint64_t opened_at, complete_at; /* ticks */
static bool shows_at_end;
static unsigned shown_ms;

/* The notice that the owner has queued and that no batch has yet. */
static enum leftover_notice untold;
static struct snapshot_reach untold_reach;

void snapshot_open(void)
{
    opened_at = tick_now();
    complete_at = 0;
    shows_at_end = false;
    shown_ms = 0;
    untold = LEFTOVER_NONE;
}

void snapshot_show(bool at_end, unsigned most_ms)
{
    shows_at_end = at_end;
    shown_ms = most_ms;
}

static struct snapshot_reach stop_overwriting(unsigned most_ms, unsigned after_ms)
{
    uint64_t from = lanes_stop_overwriting(), now = tick_now(), most = most_ms * session.ticks_per_ms;
    gate_may_have_room();
    complete_at = now + after_ms * session.ticks_per_ms;
    if (most_ms && most < now - opened_at && from < now - most)
        from = now - most;
    return (struct snapshot_reach){from, from && from < now ? (now - from) * 1000 / session.ticks_per_ms : 0};
}

struct snapshot_reach snapshot_begin(unsigned most_ms, unsigned after_ms)
{
    const struct snapshot_reach reach = stop_overwriting(most_ms, after_ms);
    const bool shows = after_ms || shows_at_end;

    untold = shows ? LEFTOVER_SNAPSHOT : LEFTOVER_NO_SNAPSHOT;
    untold_reach = shows ? reach : (struct snapshot_reach){tick_now(), 0};
    return reach;
}

bool snapshot_is_complete(uint64_t watermark)
{
    return complete_at && !lanes.overwrites && watermark >= complete_at;
}

void snapshot_told(void)
{
    untold = LEFTOVER_NONE;
}

enum leftover_notice snapshot_end(struct snapshot_reach *ret)
{
    if (lanes.overwrites)
        snapshot_begin(shown_ms, shows_at_end || atomic_load(&lanes.still));
    *ret = untold_reach;
    return untold;
}

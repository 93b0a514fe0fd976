/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a node's ticks to nanoseconds. Each batch has a pair of tick and time. Times between two pairs are
 * interpolated, so they are continuous and never go back, whatever the speed of the counter.
 */
#ifndef ETRACE_TICKS_H
#define ETRACE_TICKS_H

#include <stdbool.h>

#include "../ground/macros.h"

#define TICKS_PAIRS 16 /* limit for the kept pairs; ticks before the oldest pair are extrapolated from it */

struct ticks {
    struct ticks_pair {
        uint64_t tick;
        int64_t mono, wall;
        double mono_slope, wall_slope; /* slope up to the next pair; the last pair has that of the pair before */
    } pairs[TICKS_PAIRS];
    unsigned count;
    bool pinned; /* keep the oldest pair, because the next ticks are older than the latest pairs */
};

void ticks_add(struct ticks *t, uint64_t tick, int64_t mono_ns, int64_t wall_ns);
void ticks_convert(const struct ticks *t, uint64_t tick, int64_t *ret_mono, int64_t *ret_wall);

#endif

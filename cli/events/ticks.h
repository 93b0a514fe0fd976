/*
 * From a node's ticks to nanoseconds. Every batch brings a pair of both; between two pairs time is interpolated, so it
 * is continuous and never goes back, whatever the speed of the counter.
 */
#ifndef ETRACE_TICKS_H
#define ETRACE_TICKS_H

#include "../ground/macros.h"

#define TICKS_PAIRS 16 /* remembered; older ticks use the oldest */

struct ticks {
    struct ticks_pair {
        uint64_t tick;
        int64_t mono, wall;
        double mono_slope, wall_slope; /* until the next pair; the last one's are those of the stretch before it */
    } pairs[TICKS_PAIRS];
    unsigned count;
};

void ticks_add(struct ticks *t, uint64_t tick, int64_t mono_ns, int64_t wall_ns);
void ticks_convert(const struct ticks *t, uint64_t tick, int64_t *ret_mono, int64_t *ret_wall);

#endif

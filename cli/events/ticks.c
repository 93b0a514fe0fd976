/* SPDX-License-Identifier: Apache-2.0 */
#include "ticks.h"

#include <string.h>

#define STEP_NS 20000000 /* a larger difference between the two clocks means that the wall clock was set */

static int64_t clamp_to_int64(double d)
{
    return d > 9e18 ? INT64_MAX : d < -9e18 ? INT64_MIN : (int64_t)d;
}

/* Adds with wrap-around. The clock values of a hostile node are arbitrary, and signed overflow would be undefined. */
static int64_t add_wrapping(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t subtract_wrapping(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

void ticks_add(struct ticks *t, uint64_t tick, int64_t mono_ns, int64_t wall_ns)
{
    if (t->count) {
        struct ticks_pair *last = &t->pairs[t->count - 1];
        if (tick <= last->tick)
            return;
        double passed = (double)(tick - last->tick);
        double mono = (double)subtract_wrapping(mono_ns, last->mono),
               wall = (double)subtract_wrapping(wall_ns, last->wall);
        if (mono < 0)
            return;
        if (wall < mono - STEP_NS || wall > mono + STEP_NS) {
            last->wall = subtract_wrapping(wall_ns, clamp_to_int64(mono));
            wall = mono;
        }
        last->mono_slope = mono / passed;
        last->wall_slope = wall / passed;
    }
    if (t->count == TICKS_PAIRS) {
        struct ticks_pair *oldest = t->pairs + t->pinned;
        memmove(oldest, oldest + 1, sizeof(t->pairs[0]) * (TICKS_PAIRS - 1 - t->pinned));
        t->count--;
    }
    struct ticks_pair *p = &t->pairs[t->count++];
    *p = (struct ticks_pair){tick, mono_ns, wall_ns, 1, 1};
    if (t->count > 1) {
        p->mono_slope = p[-1].mono_slope;
        p->wall_slope = p[-1].wall_slope;
    }
}

void ticks_convert(const struct ticks *t, uint64_t tick, int64_t *ret_mono, int64_t *ret_wall)
{
    const struct ticks_pair *p = &t->pairs[t->count - 1];

    while (p > t->pairs && tick < p->tick)
        p--;
    double passed = tick >= p->tick ? (double)(tick - p->tick) : -(double)(p->tick - tick);
    if (unlikely(passed > 1e18 || passed < -1e18))
        passed = 0; /* implausibly far from the pair, so the tick is garbage */
    *ret_mono = add_wrapping(p->mono, clamp_to_int64(passed * p->mono_slope));
    *ret_wall = add_wrapping(p->wall, clamp_to_int64(passed * p->wall_slope));
}

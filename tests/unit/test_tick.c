/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the pairs of the tick and another clock on a host that takes the processor away between two readings. */
#include "tick.h"

#include <time.h>

#include "tap.h"

enum { STALL_MS = 100 };

static unsigned reading, calm; /* the number of the reading, and of the one that has no delay */
static uint64_t calm_at;

static uint64_t number_of_reading(void)
{
    const struct timespec stall = {.tv_nsec = STALL_MS * 1000000};

    if (++reading == calm)
        calm_at = tick_now();
    else
        nanosleep(&stall, NULL);
    return reading;
}

int main(void)
{
    tick_start();
    const uint64_t near = STALL_MS / 2 * tick_per_ms();
    for (calm = 1; calm <= 3; calm++) {
        reading = 0;
        const struct tick_moment m = tick_moment(number_of_reading);
        ok(m.ns == calm, "the reading without delay is taken");
        ok(m.tick + near >= calm_at && m.tick <= calm_at + near, "its tick is that of the reading");
    }
    return tap_end();
}

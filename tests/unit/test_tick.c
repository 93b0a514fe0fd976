/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the pairs of the tick and another clock on a host that takes the processor away between two readings, and a
 * counter that goes back.
 */
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

/* Before, the counter was an hour ahead. Two seconds pass by the other clock. */
static void goes_back(void)
{
    const uint64_t per_ms = tick_per_ms(), hour = 3600 * 1000 * per_ms;
    struct tick_moment m = {.tick = tick_now() + hour, .ns = 5000000000};
    const uint64_t before = m.tick;

    tick_watch(&m);
    m = (struct tick_moment){.tick = tick_now(), .ns = 7000000000};
    tick_watch(&m);
    ok(m.tick == before + 2000 * per_ms, "the moment continues where the ticks were");
    const uint64_t now = tick_now();
    ok(now >= m.tick && now - m.tick < hour, "so do all later ticks");
    m = (struct tick_moment){.tick = tick_now(), .ns = 8000000000};
    const uint64_t tick = m.tick;
    tick_watch(&m);
    ok(m.tick == tick && tick_now() - tick < hour, "nothing is added while the counter goes on");
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
    if (tick_counter)
        goes_back();
    return tap_end();
}

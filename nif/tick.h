/*
 * The clock of the frames: the processor's counter where it is trustworthy, else CLOCK_MONOTONIC in nanoseconds.
 *
 * Ticks mean nothing by themselves; each batch carries a pair (tick, monotonic time), and the client interpolates.
 * tick_start() runs once, before any other thread looks; everything else may be called on any thread at any time.
 */
#ifndef ETRACE_TICK_H
#define ETRACE_TICK_H

#include <stdbool.h>
#include <stdint.h>

#include "hidden.h"

extern HIDDEN bool tick_counter; /* the processor's counter is used */

uint64_t tick_ns(void);

static inline uint64_t tick_now(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(tick_counter, 1)) {
        uint32_t low, high;
        __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
        return (uint64_t)high << 32 | low;
    }
#elif defined(__aarch64__)
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#endif
    return tick_ns();
}

/* Decides which clock it is and begins to measure its speed. */
void tick_start(void);

/* Ticks in a millisecond; waits until a millisecond has passed since tick_start(). */
uint64_t tick_per_ms(void);

/* About ten microseconds: longer than a store or a read of the clock can be late on a thread that runs. */
uint64_t tick_slack(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the clock of the frames: the processor's counter if it is reliable, else CLOCK_MONOTONIC in nanoseconds.
 *
 * A tick has no unit. Each batch carries a pair (tick, monotonic time), and the client interpolates. tick_start() runs
 * once, at load. After that any thread may call the other functions at any time.
 */
#ifndef ETRACE_TICK_H
#define ETRACE_TICK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hidden.h"

extern HIDDEN bool tick_counter;           /* the processor's counter is used */
extern HIDDEN _Atomic uint64_t tick_ahead; /* ticks that tick_watch() has added to the counter */

uint64_t tick_ns(void);

static inline uint64_t tick_now(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(tick_counter, 1)) {
        uint32_t low, high;
        __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
        return ((uint64_t)high << 32 | low) + atomic_load_explicit(&tick_ahead, memory_order_relaxed);
    }
#elif defined(__aarch64__)
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count + atomic_load_explicit(&tick_ahead, memory_order_relaxed);
#endif
    return tick_ns();
}

/*
 * A moment by two clocks: a tick, and the nanoseconds of another clock. tick_moment() reads both clocks three times and
 * takes the pair that was read in the shortest time, because the thread may be interrupted between two readings.
 */
struct tick_moment {
    uint64_t tick, ns;
};

struct tick_moment tick_moment(uint64_t (*clock)(void));

/*
 * Takes moments of one clock, one after another. The counter goes back if a virtual machine moves to another host, or
 * if a laptop wakes up. Then all ticks from now on continue after those of the last moment, and *m is corrected. Only
 * one thread at a time may call this function.
 */
void tick_watch(struct tick_moment *m);

/* Selects the clock and starts to measure its speed. */
void tick_start(void);

/* Returns the ticks per millisecond. Waits until a millisecond has passed since tick_start(). */
uint64_t tick_per_ms(void);

/* Returns the processor time that the calling thread has used. */
uint64_t tick_worked_ns(void);

/*
 * Returns about ten microseconds, in ticks: an upper bound for the delay of a store or a clock read on a running
 * thread.
 */
uint64_t tick_slack(void);

#endif

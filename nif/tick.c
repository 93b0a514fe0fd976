/* SPDX-License-Identifier: Apache-2.0 */
#include "tick.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool tick_counter;
_Atomic uint64_t tick_ahead;

static struct tick_moment start;
static uint64_t per_ms = 1000000; /* the latest answer of tick_per_ms() */

uint64_t tick_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct tick_moment tick_moment(uint64_t (*clock)(void))
{
    struct tick_moment best = {0};
    uint64_t narrowest = UINT64_MAX;
    for (int i = 0; i < 3; i++) {
        uint64_t before = tick_now(), ns = clock(), width = tick_now() - before;
        if (width < narrowest) {
            narrowest = width;
            best = (struct tick_moment){.tick = before + width / 2, .ns = ns};
        }
    }
    return best;
}

void tick_watch(struct tick_moment *m)
{
    static struct tick_moment last;
    const uint64_t passed = m->ns > last.ns ? (m->ns - last.ns) / 1000000 * per_ms : 0, expected = last.tick + passed;
    if (m->tick < last.tick) {
        atomic_fetch_add_explicit(&tick_ahead, expected - m->tick, memory_order_relaxed);
        m->tick = expected;
    } else if (last.tick && m->tick - last.tick > passed + passed / 4 + 1000 * per_ms) {
        start.tick += m->tick - expected; /* it went ahead, which only disturbs its speed */
    }
    last = *m;
}

uint64_t tick_worked_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

#if defined(__x86_64__)

static bool counter_is_invariant(void)
{
    uint32_t a = 0x80000000u, b, c = 0, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    if (a < 0x80000007u)
        return false;
    a = 0x80000007u, c = 0;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return d >> 8 & 1;
}

/*
 * Returns true if the kernel uses the counter for its own clock. It switches to another clock if the counters of the
 * processors disagree. Then this library must not use the counter either.
 */
static bool kernel_trusts_counter(void)
{
    static const struct {
        char name[32];
        size_t bytes;
    } trusted[] = {{"tsc\n", 4}, {"kvm-clock\n", 10}, {"hyperv_clocksource_tsc_page\n", 28}};
    char name[64];
    int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return true;
    ssize_t n = read(fd, name, sizeof name);
    close(fd);
    if (n <= 0)
        return true;
    for (size_t i = 0; i < sizeof trusted / sizeof *trusted; i++)
        if ((size_t)n == trusted[i].bytes && memcmp(name, trusted[i].name, trusted[i].bytes) == 0)
            return true;
    return false;
}

#endif

void tick_start(void)
{
#if defined(__x86_64__)
    tick_counter = counter_is_invariant() && kernel_trusts_counter();
#elif defined(__aarch64__)
    tick_counter = true;
#endif
    start = tick_moment(tick_ns);
}

uint64_t tick_per_ms(void)
{
    struct tick_moment now;
    if (!tick_counter)
        return per_ms;
    do
        now = tick_moment(tick_ns);
    while (now.ns - start.ns < 1000000);
    if (now.tick <= start.tick) /* the counter has gone back since the last tick_watch() */
        return per_ms;
    /* Long after the load the product would overflow. After 1,000 seconds the lower precision is sufficient. */
    uint64_t us = (now.ns - start.ns) / 1000, ticks = now.tick - start.tick;
    per_ms = us < 1000000000u ? ticks * 1000 / us : ticks / (us / 1000);
    return per_ms;
}

uint64_t tick_slack(void)
{
#if defined(__x86_64__)
    return tick_counter ? 32768 : 10000;
#elif defined(__aarch64__)
    uint64_t hertz;
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hertz));
    return hertz / 100000 + 1;
#else
    return 10000;
#endif
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests figures with real threads: producers count calls and results, and one drain reads the figures and then the
 * rings, as if each read were the last. Whenever a read may be the last one, the figures include everything counted as
 * seen, and each result with its time. With hundreds of functions most are idle, so no later call hides a figure that
 * the drain missed.
 */
#include "batch.h"
#include "tally.h"
#include "tick.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "tap.h"

enum { PRODUCERS = 3, FUNCTIONS = 300, NEED = 1024, RING = 16384 };

static uint64_t calls_each = 60000;
static _Atomic int running = PRODUCERS;

static bool alive(void *env, uint64_t process)
{
    (void)env, (void)process;
    return true;
}

static void *produce(void *arg)
{
    uint64_t process = 16 + 16 * (uintptr_t)arg;
    for (uint64_t i = 0; i < calls_each; i++) {
        struct lane *lane = lane_mine();
        struct stack_function f = {.module = 1, .name = 2 + i % FUNCTIONS, .arity = 1};
        struct tally_result result = {.tick = tick_now()};
        tally_call(NULL, lane, process, &f, tick_now(), 0, true);
        tally_result(lane, process, &f, &result);
        if (i % 16 == 0)
            nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static uint64_t seen_by_rings(const struct batch_plan *plan)
{
    uint64_t seen = 0;
    for (uint32_t i = 0; i < plan->lanes; i++)
        seen += plan->parts[i].seen;
    return seen;
}

int main(void)
{
    static struct batch_plan plan;
    struct batch_state state = {0};
    const struct rows_room room = tally_functions(FUNCTIONS);
    struct etw_bucket buckets[ETW_BUCKETS];
    pthread_t threads[PRODUCERS];
    uint64_t figures = 0, seen = 0, timed = 0, in_buckets = 0;
    int64_t open = 0;
    unsigned ends = 0, wrong = 0, untimed = 0, unsure = 0;

    if (getenv("EVENTS"))
        calls_each = strtoull(getenv("EVENTS"), NULL, 10);
    tick_start();
    ok(lanes_open(PRODUCERS, RING, NEED, (struct encode_limits){0}) && tally_open(&room, 1000, alive) == ROWS_OPEN,
       "the lanes and the figures open");
    for (uintptr_t i = 0; i < PRODUCERS; i++)
        pthread_create(&threads[i], NULL, produce, (void *)i);
    for (bool done = false; !done;) {
        bool last = atomic_load(&running) == 0;
        struct stack_function f;
        struct rows_growth g;
        int64_t work = INT64_MAX;
        while (tally_take(&work, &g, buckets) == ROWS_TOOK) {
            const struct etw_tally t = tally_of(&g, &f);
            figures += t.seen + (uint64_t)t.filtered;
            timed += t.timed;
            open += t.open;
            for (uint32_t i = 0; i < t.buckets; i++)
                in_buckets += buckets[i].count;
        }
        struct batch_clock clock = {.tick = tick_now()};
        batch_plan(&state, &clock, tick_slack(), 65536, NULL, 0, true, &plan);
        if (!(plan.flags & ETW_BATCH_LAST) || !tally_is_told()) {
            unsure++;
            continue;
        }
        seen = seen_by_rings(&plan);
        wrong += seen != figures;
        untimed += 2 * timed != seen - (uint64_t)open || in_buckets != timed;
        ends++;
        done = last;
    }
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(threads[i], NULL);
    printf("# %u times all was told, %u times perhaps not\n", ends, unsure);
    is_number(wrong, 0, "figures that are said to be complete cover every seen event");
    is_number(untimed, 0, "every result has its time");
    is_number((int64_t)seen, 2 * PRODUCERS * (int64_t)calls_each, "every event is counted");
    tally_unmap();
    lanes_unmap();
    return tap_end();
}

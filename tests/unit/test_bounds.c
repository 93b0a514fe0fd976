/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests that one library call of the owner does bounded work while 64 threads have filled everything: rings, queues of
 * newcomers, tables of figures. The test counts the work and measures no time. It revokes access (PROT_NONE) to the
 * memory that the call must not touch.
 */
#include "batch.h"
#include "frame.h"
#include "pages.h"
#include "tally.h"
#include "tick.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "tap.h"

enum { LANES = 64, RING = 2 << 20, NEED = 1024 + FRAME_RESERVE, BATCH = 256 << 10, NEWCOMERS = 1024 };

static struct lane *claimed[LANES];
static uint64_t base; /* tick of the first frame in each ring */

static void touched(int signal)
{
    static const char text[] = "not ok - a call touches memory that it must not touch\n";
    (void)signal;
    (void)!write(STDOUT_FILENO, text, sizeof text - 1);
    _exit(1);
}

static void guard(void *at, size_t bytes, int how)
{
    if (mprotect(at, bytes, how) != 0)
        abort();
}

/* Sets the protection `how` of each ring's memory after the first `bytes`. */
static void guard_rings(size_t bytes, int how)
{
    for (unsigned i = 0; i < LANES; i++)
        guard(claimed[i]->ring.bytes + bytes, RING - bytes, how);
}

static unsigned fill(struct ring *ring)
{
    unsigned frames = 0;
    for (; ring_has_room(ring); frames++) {
        ring_busy(ring);
        struct frame frame = frame_begin(ring, base + frames, 42);
        frame_end(ring, frame, put64(put64(frame.next, frames), 0), ETW_EXIT);
    }
    return frames;
}

/* Returns the tick of the frame at a ring's tail. The first frame has 40 bytes, the others have 24. */
static uint64_t tick_at_tail(const struct ring *ring)
{
    return base + (ring->tail - 40) / 24 + 1;
}

static void test_drain(void)
{
    static struct batch_plan plan;
    static uint8_t bytes[2 * BATCH];
    struct batch_state state = {0};
    struct batch_clock clock = {.tick = UINT64_MAX};
    unsigned frames = 0, batches = 0;
    uint64_t taken = 0, early = 0;

    for (unsigned i = 0; i < LANES; i++)
        frames += fill(&claimed[i]->ring);
    guard_rings(2 * PAGE, PROT_NONE); /* each of the 64 rings gets one page of the batch */
    batch_plan(&state, &clock, 0, BATCH, NULL, 0, false, &plan);
    batch_write(&state, &plan, bytes);
    guard_rings(2 * PAGE, PROT_READ | PROT_WRITE);
    ok(plan.more && plan.bytes <= BATCH, "a drain of %d full rings with %u frames reads only the bytes that it takes",
       LANES, frames);
    is_number((int64_t)(state.watermark - base), (int64_t)(tick_at_tail(&claimed[0]->ring) - base) - 1,
              "the watermark is the tick before the first frame that the drain leaves");

    for (bool more = true; more; more = plan.more, batches++) {
        batch_plan(&state, &clock, 0, BATCH, NULL, 0, false, &plan);
        batch_write(&state, &plan, bytes);
        taken += plan.bytes > BATCH;
        for (unsigned i = 0; i < LANES; i++)
            early += plan.more && claimed[i]->ring.tail < claimed[i]->ring.head &&
                     tick_at_tail(&claimed[i]->ring) <= state.watermark;
    }
    ok(!taken && !early && batches > 400,
       "%u more batches take the rest, and none is too large or has an early watermark", batches);
}

static void test_newcomers(void)
{
    static struct newcomer newcomers[NEWCOMERS];
    static bool told[LANES * LANE_NEWCOMERS + 1];
    unsigned calls = 0, wrong = 0, all = 0;

    for (unsigned i = 0; i < LANES * LANE_NEWCOMERS; i++)
        lane_greet(claimed[i % LANES], (uint64_t)(i + 1) << 4);
    for (bool more = true; more; calls++) {
        uint32_t n = lanes_newcomers(calls, newcomers, NEWCOMERS, &more);
        for (uint32_t i = 0; i < n; i++, all++) {
            uint64_t number = newcomers[i].tracee >> 4;
            wrong += number == 0 || number > LANES * LANE_NEWCOMERS || told[number];
            told[number % (LANES * LANE_NEWCOMERS + 1)] = true;
        }
    }
    ok(calls == LANES * LANE_NEWCOMERS / NEWCOMERS && all == LANES * LANE_NEWCOMERS && !wrong,
       "%u newcomers come in %u calls, each of them once", all, calls);
    for (unsigned i = 0; i < LANE_NEWCOMERS; i++)
        lane_name(claimed[0], 1 << 4, 2);
    ok(!lanes.unnamed, "a queue has room for %u names", LANE_NEWCOMERS);
    lane_name(claimed[0], 1 << 4, 2);
    ok(lanes.unnamed, "a name without room is noticed");
}

static bool alive(void *env, uint64_t process)
{
    (void)env, (void)process;
    return true;
}

/* Each lane has figures for each function: one call with one duration. */
static void test_figures(void)
{
    enum { FUNCTIONS = 3000, WORK = 4096 };
    static struct etw_bucket buckets[ETW_BUCKETS];
    const struct rows_room room = tally_functions(FUNCTIONS);
    unsigned calls = 0, most = 0, all = 0, wrong = 0, clearing = 0;

    ok(tally_open(&room, 1000, alive) == ROWS_OPEN, "the first opening of the figures clears nothing");
    for (unsigned i = 0; i < LANES * FUNCTIONS; i++) {
        struct stack_function f = {.module = 1, .name = 1 + i % FUNCTIONS, .arity = 1};
        tally_call(NULL, claimed[i / FUNCTIONS], 19, &f, 1, 0, true);
        tally_result(claimed[i / FUNCTIONS], 19, &f, &(struct tally_result){.tick = 1});
    }
    for (enum rows_took took = ROWS_PAUSE; took != ROWS_END; calls++) {
        struct stack_function f;
        struct rows_growth g;
        int64_t work = WORK;
        unsigned taken = 0;
        for (; (took = tally_take(&work, &g, buckets)) == ROWS_TOOK; taken++) {
            const struct etw_tally t = tally_of(&g, &f);
            wrong += f.module != 1 || t.events != LANES || t.timed != LANES || t.open || t.buckets != 1 ||
                     buckets[0].count != LANES;
        }
        all += taken;
        most = taken > most ? taken : most;
    }
    ok(all == FUNCTIONS && !wrong, "each of %d functions has its own figures, which add up all lanes", FUNCTIONS);
    ok(most <= WORK / LANES && calls >= FUNCTIONS / most,
       "one call takes the figures of at most %u functions of %d lanes", most, LANES);
    ok(tally_is_told(), "all figures are reported after the round");
    while (tally_open(&room, 1000, alive) == ROWS_CLEARING)
        clearing++;
    ok(clearing > LANES / 2, "%u calls release the memory of the figures", clearing);
    tally_unmap();
}

int main(void)
{
    signal(SIGSEGV, touched);
    ok(lanes_open(LANES, RING, NEED, (struct encode_limits){0}), "the lanes open");
    for (uintptr_t i = 0; i < LANES; i++)
        claimed[i] = lane_claim(64 * (i + 1));
    base = tick_now();
    test_drain();
    test_newcomers();
    test_figures();
    lanes_unmap();
    return tap_end();
}

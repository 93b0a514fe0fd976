/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests rings, lanes and batches with real threads: producers write numbered frames at full speed into small rings,
 * and one drain makes batches of varying sizes, with pauses. No frame may be torn, duplicated, out of order, or lost
 * without being counted. No frame may arrive after a watermark that covers its tick. The test also runs under the
 * thread sanitizer (tests/unit/tsan).
 */
#include "batch.h"
#include "frame.h"
#include "tick.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "tap.h"

enum { PRODUCERS = 8, LANES = 7, NEED = 1024 + FRAME_RESERVE, RING = 16384 };

static uint64_t events_each = 200000;
static _Atomic int running = PRODUCERS;

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static void pause_ns(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* Writes frames that hold their number and bytes derived from it. */
static void *produce(void *arg)
{
    uint32_t random = 2463534242u + (uint32_t)(uintptr_t)arg * 977u;
    for (uint64_t number = 0; number < events_each; number++) {
        struct lane *lane = lane_mine();
        if (!lane) {
            atomic_fetch_add(&lanes.no_lane, 1);
            continue;
        }
        if (!ring_has_room(&lane->ring)) {
            ring_lose(&lane->ring, ETW_LOST_RING);
            if (next_random(&random) % 64 == 0)
                pause_ns(1000);
            continue;
        }
        ring_busy(&lane->ring);
        struct frame frame = frame_begin(&lane->ring, tick_now(), 7 + number / 1000);
        uint8_t *at = put64(frame.next, number);
        unsigned more = (unsigned)(number % (next_random(&random) % 8 ? 40 : 1000));
        for (unsigned i = 0; i < more; i++)
            at = put8(at, (unsigned)(number + i));
        frame_end(&lane->ring, frame, at, ETW_RECEIVE);
        if (next_random(&random) % 4096 == 0)
            pause_ns(20000);
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

/* The reader's state of each ring. */
static struct reader {
    uint64_t tick, tracee, frames, next, seen, lost, lost_told;
} readers[LANES + 1];

static unsigned torn, disordered, late, uncounted;

static void read_frames(struct reader *r, const uint8_t *at, const uint8_t *end, uint64_t watermark_before)
{
    while (at < end) {
        uint32_t head, ticks;
        uint64_t number, tracee = r->tracee;
        memcpy(&head, at, 4);
        memcpy(&ticks, at + 4, 4);
        const uint8_t *next = at + ETW_HEAD_BYTES(head);
        at += 8;
        if (ETW_HEAD_FLAGS(head) & ETW_F_TICK) {
            memcpy(&r->tick, at, 8);
            at += 8;
        }
        r->tick += ticks;
        if (ETW_HEAD_FLAGS(head) & ETW_F_TRACEE) {
            memcpy(&tracee, at, 8);
            at += 8;
        }
        r->tracee = tracee;
        late += r->tick <= watermark_before;
        if (next > end || next < at) {
            torn++;
            return;
        }
        memcpy(&number, at, 8);
        at += 8;
        if (ETW_HEAD_KIND(head) == ETW_LOST) {
            uncounted += number <= r->lost_told || next - at != 8 * (ETW_LOSSES - 1);
            r->lost_told = number;
        } else {
            disordered += number < r->next || tracee != 7 + number / 1000;
            r->next = number + 1;
            r->frames++;
            for (uint64_t i = 0; at + i < next; i++)
                torn += at[i] != (uint8_t)(number + i);
        }
        at = next;
    }
}

static void read_batch(const uint8_t *bytes, uint64_t watermark_before)
{
    struct etw_batch batch;
    memcpy(&batch, bytes, sizeof batch);
    const uint8_t *at = bytes + sizeof batch;
    for (uint32_t i = 0; i < batch.sections; i++) {
        struct etw_section section;
        memcpy(&section, at, sizeof section);
        at += sizeof section;
        struct reader *r = &readers[section.ring];
        uint64_t lost = 0;
        for (int j = 0; j < ETW_LOSSES; j++)
            lost += section.lost[j];
        uncounted += section.seen < r->seen || lost < r->lost;
        r->seen = section.seen;
        r->lost = lost;
        read_frames(r, at, at + section.bytes, watermark_before);
        at += section.bytes;
    }
    torn += at != bytes + batch.bytes;
}

/* Counts the rings whose last section does not agree with the frames and losses that came out. */
static unsigned inexact(void)
{
    unsigned n = 0;
    for (int i = 0; i < LANES; i++)
        n += readers[i].seen != readers[i].frames + readers[i].lost;
    return n;
}

/*
 * A thread is inside an event while a batch is made, and then loses the event. The next batch reports the loss,
 * although no more frames follow.
 */
static void amid(struct batch_state *state)
{
    static struct batch_plan plan;
    static uint8_t bytes[ETW_MAX_BATCH];
    struct ring *ring = &lane_at(0)->ring;

    ring_busy(ring);
    ring_count_seen(ring);
    for (int i = 0; i < 2; i++) {
        struct batch_clock clock = {.tick = tick_now()};
        batch_plan(state, &clock, tick_slack(), sizeof bytes, NULL, 0, false, &plan);
        ok(plan.parts[0].told && plan.parts[0].exact == i,
           i ? "the next batch reports the loss exactly" : "a batch reports an event that a producer still writes");
        batch_write(state, &plan, bytes);
        ring_lose_seen(ring, ETW_LOST_RATE);
        ring_rest(ring);
    }
}

int main(void)
{
    static struct batch_plan plan;
    static uint8_t bytes[ETW_MAX_BATCH];
    struct batch_state state = {0};
    pthread_t threads[PRODUCERS];
    uint32_t random = 88172645;
    unsigned backwards = 0, too_large = 0, batches = 0, ends = 0, wrong_ends = 0;

    if (getenv("EVENTS"))
        events_each = strtoull(getenv("EVENTS"), NULL, 10);
    tick_start();
    ok(!lanes_open(LANES, RING, RING, (struct encode_limits){0}),
       "lanes_open() refuses a frame of more than half a ring");
    lanes.ring_most = 4 * RING;
    ok(lanes_open(LANES, RING, NEED, (struct encode_limits){0}), "the lanes open");
    for (uint32_t i = 0; i < LANES; i += 2)
        lane_at(i)->ring.most = RING; /* every second ring does not grow */
    for (uintptr_t i = 0; i < PRODUCERS; i++)
        pthread_create(&threads[i], NULL, produce, (void *)i);
    for (bool done = false; !done;) {
        bool last = atomic_load(&running) == 0, early = !last && next_random(&random) % 4 == 0;
        size_t most = next_random(&random) % 4 ? sizeof bytes : 2000 + next_random(&random) % 30000;
        uint64_t before = state.watermark;
        struct batch_clock clock = {.tick = tick_now()};
        batch_plan(&state, &clock, tick_slack(), most, NULL, 0, last || early, &plan);
        done = last && (plan.flags & ETW_BATCH_LAST);
        if (!plan.wanted)
            continue;
        too_large += plan.bytes > most + NEED + sizeof(struct etw_section) * LANES;
        batch_write(&state, &plan, bytes);
        backwards += state.watermark < before;
        read_batch(bytes, before);
        batches++;
        if (early && (plan.flags & ETW_BATCH_LAST)) {
            ends++;
            wrong_ends += inexact();
            state.watermark = before; /* other producers still run */
        }
        if (next_random(&random) % 16 == 0)
            pause_ns(200000);
    }
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(threads[i], NULL);

    uint64_t frames = 0, seen = 0, lost = 0;
    unsigned wrong = 0;
    for (int i = 0; i <= LANES; i++) {
        frames += readers[i].frames;
        seen += readers[i].seen;
        lost += readers[i].lost;
        wrong += readers[i].seen != readers[i].frames + readers[i].lost;
    }
    printf("# %u batches, %u as if they were the last, %" PRIu64 " frames, %" PRIu64 " lost\n", batches, ends, frames,
           lost);
    is_number(torn, 0, "no frame is torn");
    is_number(disordered, 0, "frames of a ring keep their order and tracee");
    is_number(late, 0, "no frame comes after its watermark");
    is_number(backwards, 0, "the watermark never goes back");
    is_number(uncounted, 0, "counters never decrease, and losses are reported in order");
    is_number(too_large, 0, "no batch exceeds its size");
    is_number(wrong, 0, "for each ring: seen = frames + lost");
    is_number(wrong_ends, 0, "a last batch is exact while other producers write");
    is_number((int64_t)seen, PRODUCERS * (int64_t)events_each, "every event is counted");
    ok(readers[LANES].lost == events_each, "all events of the thread without a lane are lost and counted");
    ok(lost > events_each, "some other events are lost");
    unsigned grown = 0;
    for (uint32_t i = 0; i < LANES; i++)
        grown += ring_size(&lane_at(i)->ring) == 4 * RING;
    is_number(grown, LANES / 2, "every second ring has grown");
    amid(&state);
    lanes_unmap();
    return tap_end();
}

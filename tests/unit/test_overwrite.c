/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests rings that overwrite their oldest frames: producers write numbered frames at full speed, and the drain takes
 * snapshots. A snapshot must begin where a ring can be read from, hold every event after the tick that it reports, and
 * end with the latest. Each event is in a snapshot, lost, or overwritten. The test also runs under the thread sanitizer
 * (tests/unit/tsan).
 */
#include "batch.h"
#include "frame.h"
#include "tick.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "tap.h"

enum { PRODUCERS = 3, LANES = 4, NEED = 256 + FRAME_RESERVE, RING = 65536, NAMES = 16 };

static uint64_t events_each = 400000;
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

/* A frame has its number, the name that it uses, whether it defines that name,
 * and bytes that follow from the number. */
static void write_event(struct lane *lane, uint64_t number)
{
    if (!ring_has_room_for_new(&lane->ring)) {
        ring_lose(&lane->ring, ETW_LOST_RING);
        return;
    }
    ring_busy(&lane->ring);
    struct frame frame = frame_begin(&lane->ring, tick_now(), 7 + number / 1000);
    uint64_t *name = &lane->encoder.names.atoms[number % NAMES];
    uint8_t *at = put8(put64(frame.next, number), *name == 0);
    *name = 1;
    for (unsigned i = 0; i < number % 40; i++)
        at = put8(at, (unsigned)(number + i));
    frame_end(&lane->ring, frame, at, ETW_RECEIVE);
}

static void *produce(void *arg)
{
    uint32_t random = 2463534242u + (uint32_t)(uintptr_t)arg * 977u;
    for (uint64_t number = 1; number <= events_each; number++) {
        write_event(lane_mine(), number);
        /* The first thread is seldom active, so that its ring reaches further back. */
        if (next_random(&random) % (arg ? 8192 : 64) == 0)
            pause_ns(20000);
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

/* The reader's state of each ring. */
static struct reader {
    /* before: overwritten at the last snapshot */
    uint64_t tick, tracee, frames, next, seen, lost, overwritten, before, gap;
    bool defined[NAMES], first;
} readers[LANES + 1];

static unsigned torn, disordered, undefined, blind, beyond;
static uint64_t from; /* the tick that the snapshot reports */

/* After a gap a frame must have its full tick and tracee, and define its name anew. */
static void read_frame(struct reader *r, const uint8_t *at, const uint8_t *next, bool whole)
{
    uint64_t number;
    memcpy(&number, at, 8);
    at += 8;
    disordered += number < r->next || r->tracee != 7 + number / 1000;
    if (r->first && r->overwritten > r->before) {
        blind += !whole;
        memset(r->defined, 0, sizeof r->defined);
        beyond += r->tick > from + 1;
    }
    r->gap += number - r->next;
    r->next = number + 1;
    r->frames++;
    undefined += !*at && !r->defined[number % NAMES];
    r->defined[number % NAMES] = true;
    for (uint64_t i = 0; ++at < next; i++)
        torn += *at != (uint8_t)(number + i);
}

static void read_frames(struct reader *r, const uint8_t *at, const uint8_t *end)
{
    bool whole = false; /* a loss before it may have the full tick of the first frame */
    while (at < end && !torn) {
        uint32_t head, ticks;
        memcpy(&head, at, 4);
        memcpy(&ticks, at + 4, 4);
        const uint8_t *next = at + ETW_HEAD_BYTES(head);
        at += 8;
        r->tick += ticks;
        if (ETW_HEAD_FLAGS(head) & ETW_F_TICK) {
            memcpy(&r->tick, at, 8);
            at += 8;
            whole = true;
        }
        if (ETW_HEAD_FLAGS(head) & ETW_F_TRACEE) {
            memcpy(&r->tracee, at, 8);
            at += 8;
        }
        if (next > end || next < at)
            torn++;
        else if (ETW_HEAD_KIND(head) != ETW_LOST) {
            read_frame(r, at, next, whole);
            r->first = whole = false;
        }
        at = next;
    }
}

static void read_batch(const uint8_t *bytes)
{
    struct etw_batch batch;
    memcpy(&batch, bytes, sizeof batch);
    const uint8_t *at = bytes + sizeof batch;
    for (uint32_t i = 0; i < batch.sections; i++) {
        struct etw_section section;
        memcpy(&section, at, sizeof section);
        at += sizeof section;
        struct reader *r = &readers[section.ring];
        disordered += section.seen < r->seen || section.lost[ETW_LOST_OVERWRITTEN] < r->overwritten;
        r->seen = section.seen;
        r->overwritten = section.lost[ETW_LOST_OVERWRITTEN];
        r->lost = section.lost[ETW_LOST_RING];
        read_frames(r, at, at + section.bytes);
        at += section.bytes;
    }
    torn += at != bytes + batch.bytes;
}

static struct batch_state state;

/* True: this was the last batch. */
static bool read_next(size_t most, bool last)
{
    static struct batch_plan plan;
    static uint8_t bytes[ETW_MAX_BATCH];
    struct batch_clock clock = {.tick = tick_now()};
    batch_plan(&state, &clock, tick_slack(), most, NULL, 0, last, &plan);
    if (plan.wanted) {
        batch_write(&state, &plan, bytes);
        read_batch(bytes);
    }
    return plan.flags & ETW_BATCH_LAST;
}

static void begin_snapshot(void)
{
    for (int i = 0; i < LANES; i++) {
        readers[i].first = true;
        readers[i].before = readers[i].overwritten;
    }
    from = lanes_stop_overwriting();
}

/* One thread, so every figure is known. */
static void test_alone(void)
{
    struct lane *lane = lane_mine();
    uint64_t number = 1;
    struct reader *r = &readers[0];
    r->next = 1;
    lanes_overwrite();
    for (; number <= 20; number++)
        write_event(lane, number);
    ok(!read_next(ETW_MAX_BATCH, true) && r->frames == 0, "no batch takes frames from a ring that overwrites");
    begin_snapshot();
    is_number((int64_t)from, 0, "nothing was overwritten yet");
    read_next(ETW_MAX_BATCH, false);
    is_number((int64_t)r->frames, 20, "all events come");
    lanes_overwrite();
    for (; number <= 10000; number++)
        write_event(lane, number);
    begin_snapshot();
    while (r->next < number)
        read_next(5000, false);
    ok(from > 0 && r->overwritten > 0, "the oldest frames are overwritten");
    ok(r->frames > 20 + RING / 2 / 50, "the ring holds a history of half its size at least");
    is_number((int64_t)(r->frames + r->overwritten), 10000, "each event is sent or overwritten");
    is_number((int64_t)r->seen, 10000, "and counted");
    is_number((int64_t)r->gap, (int64_t)r->overwritten, "the events that did not come are the overwritten ones");
    lanes_overwrite();
    for (; number <= 10050; number++)
        write_event(lane, number);
    begin_snapshot();
    read_next(ETW_MAX_BATCH, false);
    is_number((int64_t)from, 0, "a snapshot soon after another begins where that ended");
    is_number((int64_t)(r->frames + r->overwritten), 10050, "and has the events since then");
    for (uint64_t lost = number + 3000; number < lost; number++)
        write_event(lane, number);
    lanes_overwrite();
    for (uint64_t more = number + 3000; number < more; number++)
        write_event(lane, number);
    begin_snapshot();
    while (r->next < number)
        read_next(ETW_MAX_BATCH, false);
    ok(r->lost > 0, "a ring that does not overwrite loses events when it is full");
    is_number((int64_t)(r->frames + r->overwritten + r->lost), (int64_t)number - 1,
              "each event is sent, overwritten or lost");
}

int main(void)
{
    pthread_t threads[PRODUCERS];
    uint32_t random = 88172645;
    unsigned snapshots = 0;

    if (getenv("EVENTS"))
        events_each = strtoull(getenv("EVENTS"), NULL, 10);
    tick_start();
    ok(lanes_open(LANES, RING, NEED, (struct encode_limits){0}), "the lanes open");
    test_alone();
    memset(readers, 0, sizeof readers);
    memset(&state, 0, sizeof state);
    ok(lanes_open(LANES, RING, NEED, (struct encode_limits){0}), "the lanes open again");
    lanes_overwrite();
    for (int i = 0; i < LANES; i++)
        readers[i].next = 1;
    for (uintptr_t i = 0; i < PRODUCERS; i++)
        pthread_create(&threads[i], NULL, produce, (void *)i);
    while (atomic_load(&running)) {
        pause_ns(next_random(&random) % 4000000);
        begin_snapshot();
        snapshots++;
        for (unsigned batches = next_random(&random) % 16; batches--;)
            read_next(next_random(&random) % 4 ? ETW_MAX_BATCH : 20000, false);
        lanes_overwrite();
    }
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(threads[i], NULL);
    begin_snapshot();
    while (!read_next(ETW_MAX_BATCH, true))
        continue;

    uint64_t frames = 0, seen = 0, overwritten = 0;
    unsigned wrong = 0;
    for (int i = 0; i < LANES; i++) {
        struct reader *r = &readers[i];
        frames += r->frames;
        seen += r->seen;
        overwritten += r->overwritten;
        wrong += r->seen != r->frames + r->lost + r->overwritten;
        wrong += r->seen && r->gap + events_each + 1 - r->next != r->lost + r->overwritten;
    }
    printf("# %u snapshots, %" PRIu64 " frames, %" PRIu64 " overwritten\n", snapshots, frames, overwritten);
    is_number(torn, 0, "no frame is torn");
    is_number(disordered, 0, "frames of a ring keep their order and tracee, and counters never decrease");
    is_number(blind, 0, "after overwritten frames a frame has its full tick");
    is_number(undefined, 0, "after overwritten frames names are defined again");
    is_number(beyond, 0, "a snapshot holds every event after the tick that it reports");
    is_number(wrong, 0, "for each ring: seen = frames + lost + overwritten");
    is_number((int64_t)seen, PRODUCERS * (int64_t)events_each, "every event is counted");
    ok(overwritten > 0, "some events are overwritten");
    lanes_unmap();
    return tap_end();
}

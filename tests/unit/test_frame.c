/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests frames in one thread: layout, wraparound, full ticks and tick deltas, losses in order, cuts at a frame
 * boundary.
 */
#include "frame.h"

#include "tap.h"

enum { SIZE = 4096, MOST = 4 * SIZE, NEED = 512 };

static uint8_t memory[MOST + NEED], copy[MOST + NEED];
static struct ring ring;

static void push(uint64_t tick, uint64_t tracee, unsigned bytes)
{
    ring_busy(&ring);
    struct frame frame = frame_begin(&ring, tick, tracee);
    uint8_t *at = frame.next;
    for (unsigned i = 0; i < bytes; i++)
        at = put8(at, i);
    frame_end(&ring, frame, at, ETW_EXIT);
}

static uint32_t u32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint64_t u64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static void begin(void)
{
    ring_init(&ring, memory, SIZE, SIZE, NEED);
    ring_begin(&ring, NEED, 100);
}

static void layout(void)
{
    begin();
    push(1000, 42, 3);
    push(1010, 42, 1);
    push(1010 + (UINT64_C(1) << 32), 43, 0);
    push(5, 43, 0);
    struct ring_view view = ring_look(&ring);
    ring_copy(&ring, view.tail, view.head, copy);
    const uint8_t *at = copy;
    is_number(u32(at), ETW_HEAD(27, ETW_EXIT, ETW_F_TICK | ETW_F_TRACEE), "the first frame has a tick and a tracee");
    ok(u32(at + 4) == 0 && u64(at + 8) == 1000 && u64(at + 16) == 42 && at[26] == 2,
       "the first frame has its tick and tracee in full");
    at += 27;
    is_number(u32(at), ETW_HEAD(9, ETW_EXIT, 0), "the next frame has neither tick nor tracee");
    is_number(u32(at + 4), 10, "the next frame has the distance of its tick");
    at += 9;
    is_number(u32(at), ETW_HEAD(24, ETW_EXIT, ETW_F_TICK | ETW_F_TRACEE),
              "a frame with too long a distance has its tick in full");
    ok(u64(at + 8) == 1010 + (UINT64_C(1) << 32) && u64(at + 16) == 43,
       "a frame of another tracee has the new tracee in full");
    at += 24;
    ok(u32(at) == ETW_HEAD(8, ETW_EXIT, 0) && u32(at + 4) == 0, "a tick that goes back is stored as the previous tick");
    is_number((int64_t)(at + 8 - copy), (int64_t)(view.head - view.tail), "the ring has no bytes besides these frames");
    is_number((int64_t)atomic_load(&ring.seen), 4, "the ring counts four seen events");
    ok(!view.busy && view.tick == 1010 + (UINT64_C(1) << 32), "the view has the last tick of the ring");
}

static void losses(void)
{
    begin();
    push(1000, 42, 0);
    ring_lose(&ring, ETW_LOST_RATE);
    ring_lose(&ring, ETW_LOST_RING);
    ring_lose(&ring, ETW_LOST_RATE);
    push(1005, 42, 0);
    push(1006, 42, 0);
    struct ring_view view = ring_look(&ring);
    ring_copy(&ring, view.tail, view.head, copy);
    const uint8_t *at = copy + 24;
    is_number(u32(at), ETW_HEAD(8 + 8 * ETW_LOSSES, ETW_LOST, 0), "a frame of losses precedes the next frame");
    ok(u64(at + 8) == 1 && u64(at + 16) == 2 && u64(at + 24) == 0, "losses are counted by reason");
    at += ETW_HEAD_BYTES(u32(at));
    ok(u32(at) == ETW_HEAD(8, ETW_EXIT, 0) && u32(at + 4) == 0, "the frame after the losses has the same tick");
    at += 8;
    ok(u32(at) == ETW_HEAD(8, ETW_EXIT, 0) && u32(at + 4) == 1, "losses are reported only once");
    is_number((int64_t)atomic_load(&ring.seen), 6, "the ring counts lost events as seen");
    begin();
    ring_lose(&ring, ETW_LOST_RING);
    push(1000, 42, 0);
    view = ring_look(&ring);
    ring_copy(&ring, view.tail, view.head, copy);
    is_number(ETW_HEAD_FLAGS(u32(copy)), ETW_F_TICK | ETW_F_TRACEE, "a first frame of losses has a tick and a tracee");
    at = copy + ETW_HEAD_BYTES(u32(copy));
    ok(u32(at) == ETW_HEAD(16, ETW_EXIT, ETW_F_TRACEE) && u64(at + 8) == 42,
       "the frame after first losses has its own tracee");
}

static void wrap(void)
{
    uint64_t written = 0, read = 0;
    unsigned wrong = 0, rounds = 0, full = 0;
    begin();
    push(1000, 42, 0);
    ring_skip(&ring);
    for (unsigned round = 0; round < 5000; round++) {
        unsigned bytes = round * 37 % 400;
        if (ring_has_room(&ring)) {
            push(1000 + round, 42, bytes);
            written++;
        } else {
            full++;
        }
        if (round % 7 == 0 || ring.head - atomic_load(&ring.tail) > SIZE - 2 * NEED) {
            struct ring_view view = ring_look(&ring);
            ring_copy(&ring, view.tail, view.head, copy);
            for (uint8_t *at = copy; at < copy + (view.head - view.tail); at += ETW_HEAD_BYTES(u32(at)), read++)
                for (unsigned i = 8; i < ETW_HEAD_BYTES(u32(at)); i++)
                    wrong += at[i] != (uint8_t)(i - 8);
            ring_release(&ring, view.head, view.tick);
            rounds++;
        }
    }
    struct ring_view view = ring_look(&ring);
    ring_copy(&ring, view.tail, view.head, copy);
    for (uint8_t *at = copy; at < copy + (view.head - view.tail); at += ETW_HEAD_BYTES(u32(at)))
        read++;
    is_number(wrong, 0, "frames across the end of the ring are complete");
    is_number((int64_t)read, (int64_t)written, "every written frame is read");
    begin();
    for (full = 0; ring_has_room(&ring) && full < 10000; full++)
        push(2000, 42, 100);
    ok(full < 10000 && SIZE - ring.head < NEED, "only a full ring has no room");
    ring_skip(&ring);
    ok(ring_has_room(&ring), "an emptied ring has room again");
}

/* Reads frames until `most` bytes are read, and checks that their bytes count up. Returns how many. */
static uint64_t take(uint64_t most, unsigned *wrong)
{
    struct ring_view view = ring_look(&ring);
    uint64_t frames = 0;
    uint8_t *at = copy;
    ring_copy(&ring, view.tail, view.head, copy);
    for (; at < copy + (view.head - view.tail) && (uint64_t)(at - copy) < most; at += ETW_HEAD_BYTES(u32(at)), frames++)
        for (unsigned i = ETW_HEAD_FLAGS(u32(at)) & ETW_F_TICK ? 24 : 8, n = 0; i < ETW_HEAD_BYTES(u32(at)); i++, n++)
            *wrong += at[i] != (uint8_t)n;
    ring_release(&ring, view.tail + (uint64_t)(at - copy), view.tick);
    return frames;
}

static void growth(void)
{
    uint64_t written = 0, read = 0, least = UINT64_MAX;
    unsigned wrong = 0, early = 0;
    for (unsigned start = 0; start < 300; start++) {
        ring_init(&ring, memory, SIZE, MOST, NEED);
        ring_begin(&ring, NEED, 100);
        for (unsigned i = 0; i < start; i++, written++, read += take(UINT64_MAX, &wrong))
            push(1000, 42, i * 37 % 400);
        early += ring_size(&ring) != SIZE;
        for (; ring_has_room_for_new(&ring); written++)
            push(1000, 42, (unsigned)written * 37 % 400);
        least = ring.head - ring.tail < least ? ring.head - ring.tail : least;
        for (unsigned piece = 0; piece < 60; piece++) {
            read += take(piece * 131 % 2000, &wrong);
            for (; ring_has_room_for_new(&ring); written++)
                push(1000, 42, (unsigned)written * 37 % 400);
        }
        read += take(UINT64_MAX, &wrong);
    }
    is_number(early, 0, "a ring does not grow while it has room");
    ok(least > MOST - SIZE - MOST / 8 - 3 * NEED, "a full ring grows: it holds %d bytes at least", (int)least);
    is_number(wrong, 0, "frames before and after the growth are complete");
    is_number((int64_t)read, (int64_t)written, "every one of them is read");
    ring_init(&ring, memory, SIZE, MOST, NEED);
    ring_begin(&ring, NEED, 100);
    while (ring.head < SIZE * 3 / 4)
        push(1000, 42, 100);
    ok(!ring_is_crowded(&ring) && ring_size(&ring) == MOST, "a ring grows before it is called crowded");
    while (ring_has_room_for_new(&ring))
        push(1000, 42, 100);
    ok(ring_is_crowded(&ring), "a ring that has grown and is full is crowded");
    ring_init(&ring, memory, SIZE, MOST, NEED);
    ring_begin(&ring, NEED, 100);
    ring_overwrite(&ring);
    for (unsigned i = 0; i < 1000 && ring_has_room_for_new(&ring); i++)
        push(1000, 42, 100);
    is_number((int64_t)ring_size(&ring), SIZE, "a ring that overwrites does not grow");
}

/* The alarm goes off when half of the ring is full, once after each drain. */
static void alarm_at_half(void)
{
    static _Atomic bool alarm;
    begin();
    ring.alarm = &alarm;
    uint64_t given_at = 0;
    unsigned given = 0, without = 0;
    for (unsigned i = 0; i < 1000 && ring_has_room(&ring); i++) {
        if (atomic_exchange(&alarm, false)) {
            given++;
            given_at = ring.head;
        }
        push(2000, 42, 8);
    }
    ok(given == 1 && given_at > SIZE / 2 && given_at < SIZE / 2 + 64, "a half full ring gives the alarm once");
    for (unsigned i = 0; i < 10; i++)
        without += !ring_has_room(&ring) && !atomic_load(&alarm);
    is_number(without, 10, "a full ring does not give the alarm again");
    ring_release(&ring, ring.head - SIZE / 4, 0);
    ok(ring_has_room(&ring) && !atomic_load(&alarm), "a quarter full ring gives no alarm");
    while (ring.head - atomic_load(&ring.tail) < SIZE / 2 + 32 && ring_has_room(&ring))
        push(3000, 42, 8);
    ok(ring_has_room(&ring) && atomic_load(&alarm), "a ring that is half full again gives the alarm again");
}

static void cutting(void)
{
    begin();
    for (unsigned i = 0; i < 10; i++)
        push(1000 + i * 10, 42, 12);
    struct ring_view view = ring_look(&ring);
    struct frame_cut cut = frame_cut(&ring, &view, 36 + 20 + 19, false);
    is_number((int64_t)cut.to, 36 + 20, "a cut is between two frames");
    is_number((int64_t)cut.next, 1020, "a cut knows the tick after it");
    is_number((int64_t)cut.tick, 1010, "a cut knows the tick before it");
    ring_release(&ring, cut.to, cut.tick);
    view = ring_look(&ring);
    cut = frame_cut(&ring, &view, 40, false);
    is_number((int64_t)cut.next, 1040, "a cut knows the tick after it without a tick in full");
    cut = frame_cut(&ring, &view, 19, false);
    ok(cut.to == view.tail && cut.next == 1020, "a cut is empty if no frame fits");
    cut = frame_cut(&ring, &view, 19, true);
    ok(cut.to == view.tail + 20 && cut.next == 1030, "a forced cut takes one frame");
    view.tail_tick -= 15;
    cut = frame_cut(&ring, &view, 40, false);
    is_number((int64_t)cut.next, 1025, "an older tick of the tail makes the tick of a cut earlier");
    ring_release(&ring, view.tail, 0);
    view = ring_look(&ring);
    is_number((int64_t)view.tail_tick, 1010, "a release does not move the tick of the tail back");
}

int main(void)
{
    layout();
    losses();
    wrap();
    growth();
    alarm_at_half();
    cutting();
    return tap_end();
}

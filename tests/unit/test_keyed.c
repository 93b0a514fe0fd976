/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the figures by keys: that different keys have different rows, what happens when there is no room, and, with real
 * threads, that a drain which may be the last one reports every event.
 */
#include "keyed.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "tap.h"
#include "tick.h"

enum { PRODUCERS = 3, KEYS = 300, NEED = 1024, RING = 16384 };

static uint64_t events_each = 60000;
static _Atomic int running = PRODUCERS;
static struct etw_bucket buckets[KEYED_VALUES * ETW_BUCKETS];

static struct keyed_key text_key(const char *text)
{
    return (struct keyed_key){(const uint8_t *)text, (uint32_t)strlen(text), false};
}

static uint32_t keyed_text(const char *text)
{
    struct keyed_key key = text_key(text);
    return keyed_row(&key);
}

/* Reads a whole round. Returns the growth of a row; one without figures if the row did not grow. */
static struct keyed_growth grown(uint32_t row)
{
    struct keyed_growth g, found = {.row = KEYED_NONE};
    int64_t work = INT64_MAX;
    while (keyed_take(&work, &g, buckets) == TALLY_TOOK)
        if (g.row == row)
            found = g;
    return found;
}

static void open_rows(void)
{
    while (keyed_open() == TALLY_CLEARING)
        continue;
}

static void test_keys(void)
{
    uint32_t one = keyed_text("one"), longer = keyed_text("one\1"), empty = keyed_text("");
    struct keyed_key cut = {(const uint8_t *)"cut", 3, true}, back;

    ok(one != longer && one != empty && one && longer && empty, "keys that differ have different rows");
    is_number(keyed_text("one"), one, "the same key has the same row");
    back = keyed_key_of(longer);
    ok(back.length == 4 && !memcmp(back.bytes, "one\1", 4) && !back.cut, "a row knows its key");
    ok(keyed_key_of(keyed_row(&cut)).cut, "a row knows that its key was cut");
    is_number(keyed_row(&(struct keyed_key){(const uint8_t *)"x", KEYED_KEY_MOST + 1, false}), KEYED_OTHER,
              "a key that is too long is another one");
}

static void test_figures(struct lane *lane)
{
    uint32_t row = keyed_text("figures");

    grown(row);
    is_number(grown(row).row, KEYED_NONE, "a row that did not grow is not reported");
    keyed_count(lane, row, 1, 2);
    keyed_value(lane, row, 0, 100);
    keyed_value(lane, row, 0, -7);
    keyed_value(lane, row, 0, 5);
    struct keyed_growth g = grown(row);
    ok(g.by.counts[1] == 2 && g.by.counts[0] == 0, "a count grows");
    ok(g.by.values[0].count == 3 && g.by.values[0].sum == 98 && g.by.values[0].least == -7 && g.by.values[0].most == 100,
       "count, sum and extremes are exact");
    is_number(g.by.buckets[0], 3, "each value has its bucket");
    keyed_value(lane, row, 0, 1);
    g = grown(row);
    ok(g.by.values[0].count == 1 && g.by.values[0].sum == 1 && g.by.values[0].most == 100 && g.by.buckets[0] == 1,
       "a round reports the growth, and the extremes so far");
}

static void test_bounds(struct lane *lane)
{
    char text[16];
    uint32_t others = 0;
    int64_t counted = 0, work = INT64_MAX;
    struct keyed_growth g;

    for (unsigned i = 0; i < 2 * KEYED_ROWS; i++) {
        snprintf(text, sizeof(text), "key %u", i);
        uint32_t row = keyed_text(text);
        others += row == KEYED_OTHER;
        keyed_count(lane, row, 0, 1);
    }
    ok(others > KEYED_ROWS && others < KEYED_ROWS + 16, "keys without room share the row of others");
    while (keyed_take(&work, &g, buckets) == TALLY_TOOK)
        counted += g.by.counts[0];
    is_number(counted, 2 * KEYED_ROWS, "no count is lost when there is no room");
    work = 64;
    for (unsigned i = 0; i < 2 * KEYED_ROWS; i++) {
        snprintf(text, sizeof(text), "key %u", i);
        keyed_count(lane, keyed_text(text), 0, 1);
    }
    unsigned taken = 0;
    while (keyed_take(&work, &g, buckets) == TALLY_TOOK)
        taken++;
    ok(taken && taken <= 64 && work <= 0, "one call of the owner takes a limited number of rows");
    open_rows();
    is_number(keyed_text("key 1"), 1, "a new session begins without rows");
}

static void *produce(void *arg)
{
    unsigned self = (unsigned)(uintptr_t)arg;
    for (uint64_t i = 0; i < events_each; i++) {
        struct lane *lane = lane_mine();
        uint8_t bytes[] = {'k', (uint8_t)(i % KEYS), (uint8_t)(i % KEYS >> 8)};
        struct keyed_key key = {bytes, sizeof bytes, false};
        tally_begin(lane);
        uint32_t row = keyed_row(&key);
        keyed_count(lane, row, self % KEYED_COUNTS, 1);
        keyed_value(lane, row, 2, (int64_t)(i % 1000));
        tally_end(lane);
        if (i % 16 == 0)
            nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[PRODUCERS];
    uint64_t counts = 0, values = 0, in_buckets = 0;
    int64_t sum = 0;
    unsigned unequal = 0, ends = 0;
    struct keyed_growth g;

    for (uintptr_t i = 0; i < PRODUCERS; i++)
        pthread_create(&threads[i], NULL, produce, (void *)i);
    for (bool done = false; !done;) {
        bool last = atomic_load(&running) == 0;
        int64_t work = INT64_MAX;
        while (keyed_take(&work, &g, buckets) == TALLY_TOOK) {
            for (unsigned i = 0; i < KEYED_COUNTS; i++)
                counts += (uint64_t)g.by.counts[i];
            values += g.by.values[2].count;
            sum += g.by.values[2].sum;
            for (uint32_t i = 0; i < g.by.buckets[2]; i++)
                in_buckets += buckets[i].count;
        }
        if (!keyed_is_told())
            continue;
        unequal += counts != values || values != in_buckets;
        ends++;
        done = last;
    }
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(threads[i], NULL);
    printf("# %u rounds reported everything\n", ends);
    is_number(unequal, 0, "figures that are said to be complete agree with each other");
    is_number((int64_t)counts, PRODUCERS * (int64_t)events_each, "every event is counted");
    is_number(sum, PRODUCERS * (int64_t)(events_each / 1000) * 499500, "every value is in the sum");
}

int main(void)
{
    if (getenv("EVENTS"))
        events_each = strtoull(getenv("EVENTS"), NULL, 10) / 1000 * 1000;
    tick_start();
    ok(lanes_open(PRODUCERS + 1, RING, NEED, (struct encode_limits){0}), "the lanes open");
    open_rows();
    test_keys();
    test_figures(lane_mine());
    test_bounds(lane_mine());
    test_threads();
    keyed_unmap();
    lanes_unmap();
    return tap_end();
}

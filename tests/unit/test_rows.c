/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the tables of rows: that different keys have different rows, what happens when there is no room, and, with real
 * threads, that a drain which may be the last one reports every event.
 */
#include "rows.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "tally.h"
#include "tap.h"
#include "tick.h"

enum { PRODUCERS = 3, KEYS = 300, NEED = 1024, RING = 16384, ROWS = 4096 };

static struct rows rows;
static const struct rows_room room = {.counts = ROWS_COUNTS,
                                      .values = ROWS_VALUES,
                                      .rows = ROWS,
                                      .key_bytes = 1u << 20,
                                      .groups = 65536};

static uint64_t events_each = 60000;
static _Atomic int running = PRODUCERS;
static struct etw_bucket buckets[ROWS_VALUES * ETW_BUCKETS];

static struct rows_key text_key(const char *text)
{
    return (struct rows_key){(const uint8_t *)text, (uint32_t)strlen(text), false};
}

static uint32_t row_named(const char *text)
{
    struct rows_key key = text_key(text);
    return rows_find(rows_memory(&rows), &key);
}

static void count(struct lane *lane, uint32_t row, unsigned which, int64_t by)
{
    const struct rows_place p = rows_place(rows_memory(&rows), lane, row);
    rows_count(&p, which, by);
}

static void value(struct lane *lane, uint32_t row, unsigned which, int64_t value)
{
    const struct rows_place p = rows_place(rows_memory(&rows), lane, row);
    rows_value(&p, which, value);
}

/* Reads a whole round. Returns the growth of a row; one without figures if the row did not grow. */
static struct rows_growth grown(uint32_t row)
{
    struct rows_growth g, found = {.row = ROWS_NONE};
    int64_t work = INT64_MAX;
    while (rows_take(&rows, &work, &g, buckets) == ROWS_TOOK)
        if (g.row == row)
            found = g;
    return found;
}

static void open_rows(void)
{
    while (rows_open(&rows, &room) == ROWS_CLEARING)
        continue;
}

static void test_keys(void)
{
    uint32_t one = row_named("one"), longer = row_named("one\1"), empty = row_named("");
    struct rows_key cut = {(const uint8_t *)"cut", 3, true}, back;

    ok(one != longer && one != empty && one && longer && empty, "keys that differ have different rows");
    is_number(row_named("one"), one, "the same key has the same row");
    back = rows_key_of(rows_memory(&rows), longer);
    ok(back.length == 4 && !memcmp(back.bytes, "one\1", 4) && !back.cut, "a row knows its key");
    ok(rows_key_of(rows_memory(&rows), rows_find(rows_memory(&rows), &cut)).cut, "a row knows that its key was cut");
    is_number(rows_find(rows_memory(&rows), &(struct rows_key){(const uint8_t *)"x", ROWS_KEY_MOST + 1, false}),
              ROWS_OTHER, "a key that is too long is another one");
}

static void test_figures(struct lane *lane)
{
    uint32_t row = row_named("figures");

    grown(row);
    is_number(grown(row).row, ROWS_NONE, "a row that did not grow is not reported");
    count(lane, row, 1, 2);
    value(lane, row, 0, 100);
    value(lane, row, 0, -7);
    value(lane, row, 0, 5);
    struct rows_growth g = grown(row);
    ok(g.by.counts[1] == 2 && g.by.counts[0] == 0, "a count grows");
    ok(g.by.values[0].count == 3 && g.by.values[0].sum == 98 && g.by.values[0].least == -7 &&
           g.by.values[0].most == 100,
       "count, sum and extremes are exact");
    is_number(g.by.buckets[0], 3, "each value has its bucket");
    value(lane, row, 0, 1);
    g = grown(row);
    ok(g.by.values[0].count == 1 && g.by.values[0].sum == 1 && g.by.values[0].most == 100 && g.by.buckets[0] == 1,
       "a round reports the growth, and the extremes so far");
}

static void test_bounds(struct lane *lane)
{
    char text[16];
    uint32_t others = 0;
    int64_t counted = 0, work = INT64_MAX;
    struct rows_growth g;

    for (unsigned i = 0; i < 2 * ROWS; i++) {
        snprintf(text, sizeof(text), "key %u", i);
        uint32_t row = row_named(text);
        others += row == ROWS_OTHER;
        count(lane, row, 0, 1);
    }
    ok(others > ROWS && others < ROWS + 16, "keys without room share the row of others");
    while (rows_take(&rows, &work, &g, buckets) == ROWS_TOOK)
        counted += g.by.counts[0];
    is_number(counted, 2 * ROWS, "no count is lost when there is no room");
    work = 64;
    for (unsigned i = 0; i < 2 * ROWS; i++) {
        snprintf(text, sizeof(text), "key %u", i);
        count(lane, row_named(text), 0, 1);
    }
    unsigned taken = 0;
    while (rows_take(&rows, &work, &g, buckets) == ROWS_TOOK)
        taken++;
    ok(taken && taken <= 64 && work <= 0, "one call of the owner takes a limited number of rows");
    open_rows();
    is_number(row_named("key 1"), 1, "a new session begins without rows");
}

/* A late callback of an earlier session may remember a row after the table was cleared. */
static void test_recent(struct lane *lane)
{
    const struct stack_function f = {.module = 1, .name = 2, .arity = 3};
    struct rows_recent *recent = rows_recent(rows_memory(&rows), lane, &f, NULL, 0);

    *recent = (struct rows_recent){.epoch = rows_epoch(&rows), .row = 7, .function = f};
    ok(rows_is_recent(recent, rows_epoch(&rows), &f, NULL, 0), "a lane remembers a row");
    rows_forget(&rows);
    ok(!rows_is_recent(recent, rows_epoch(&rows), &f, NULL, 0), "but not one of an earlier session");
}

/* A trace by functions has rows with one value. Traces by turns use the mappings of the earlier ones. */
static void test_turns(struct lane *lane)
{
    const struct rows_room few = {.counts = 5, .values = 1, .rows = ROWS / 2, .key_bytes = 1u << 20, .groups = 65536};
    struct rows_memory *turns[2][2];

    for (unsigned turn = 0; turn < 2; turn++)
        for (unsigned which = 0; which < 2; which++) {
            while (rows_open(&rows, which ? &few : &room) == ROWS_CLEARING)
                continue;
            turns[turn][which] = rows_memory(&rows);
            is_number(grown(row_named("turn")).row, ROWS_NONE, "a table begins without figures");
            for (unsigned i = 0; i < rows_memory(&rows)->values; i++)
                value(lane, row_named("turn"), i, 7);
            struct rows_growth g = grown(row_named("turn"));
            ok(g.by.values[0].sum == 7 && g.by.values[2].sum == (which ? 0 : 7), "a row has the values of its table");
        }
    ok(turns[0][0] == turns[1][0] && turns[0][1] == turns[1][1], "a table is mapped once");
    open_rows();
}

static void *produce(void *arg)
{
    unsigned self = (unsigned)(uintptr_t)arg;
    for (uint64_t i = 0; i < events_each; i++) {
        struct lane *lane = lane_mine();
        uint8_t bytes[] = {'k', (uint8_t)(i % KEYS), (uint8_t)(i % KEYS >> 8)};
        struct rows_key key = {bytes, sizeof bytes, false};
        tally_begin(lane);
        uint32_t row = rows_find(rows_memory(&rows), &key);
        count(lane, row, self % ROWS_COUNTS, 1);
        value(lane, row, 2, (int64_t)(i % 1000));
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
    struct rows_growth g;

    for (uintptr_t i = 0; i < PRODUCERS; i++)
        pthread_create(&threads[i], NULL, produce, (void *)i);
    for (bool done = false; !done;) {
        bool last = atomic_load(&running) == 0;
        int64_t work = INT64_MAX;
        while (rows_take(&rows, &work, &g, buckets) == ROWS_TOOK) {
            for (unsigned i = 0; i < ROWS_COUNTS; i++)
                counts += (uint64_t)g.by.counts[i];
            values += g.by.values[2].count;
            sum += g.by.values[2].sum;
            for (uint32_t i = 0; i < g.by.buckets[2]; i++)
                in_buckets += buckets[i].count;
        }
        if (!rows_are_told(&rows))
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
    test_recent(lane_mine());
    test_turns(lane_mine());
    test_threads();
    rows_unmap(&rows);
    lanes_unmap();
    return tap_end();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Adds and removes random items, and compares the table with the array that has the items. */
#include "course.h"
#include "ground/table.h"
#include "tap.h"

#define ITEMS 400

static uint32_t hash_of[ITEMS];
static bool present[ITEMS];

static bool found(const struct table *t, uint32_t item)
{
    for (uint32_t step = 0, i; (i = table_next(t, hash_of[item], &step)) != TABLE_NONE;) {
        expect(present[i] && hash_of[i] == hash_of[item], "only items with the hash are found");
        if (i == item)
            return true;
    }
    return false;
}

/* spread: number of different hashes. With few of them items collide, and runs of slots wrap around. */
static void play(unsigned seed, unsigned spread)
{
    struct table t = {0};

    course_seed = seed;
    for (unsigned i = 0; i < ITEMS; i++) {
        hash_of[i] = roll(spread) - spread / 2;
        present[i] = false;
    }
    expect(!found(&t, 0), "an empty table finds nothing");
    for (unsigned step = 0; step < 5000; step++) {
        unsigned item = roll(step % 1000 < 500 ? ITEMS : ITEMS / 8);
        if (present[item])
            table_remove(&t, hash_of[item], item);
        else
            table_add(&t, hash_of[item], item);
        present[item] = !present[item];
        unsigned other = roll(ITEMS);
        expect(found(&t, item) == present[item] && found(&t, other) == present[other], "exactly the items are found");
    }
    table_clear(&t);
    for (unsigned i = 0; i < ITEMS; i++)
        present[i] = false;
    expect(!t.used && !found(&t, 0), "a cleared table finds nothing");
    table_release(&t);
}

int main(void)
{
    static const unsigned spreads[] = {3, 40, 30000};

    for (unsigned i = 0; i < sizeof spreads / sizeof *spreads; i++) {
        for (unsigned seed = 1; seed <= 20; seed++)
            play(seed, spreads[i]);
        ok(!course_wrong, "the table finds what was added and not removed, among %u hashes", spreads[i]);
    }
    return tap_end();
}

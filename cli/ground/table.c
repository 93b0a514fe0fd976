/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"

#define FIRST 64 /* slots of the smallest table; a power of two */

void table_release(struct table *t)
{
    free(t->slots);
    *t = (struct table){0};
}

void table_clear(struct table *t)
{
    if (t->used)
        memset(t->slots, 0, ((size_t)t->mask + 1) * sizeof(*t->slots));
    t->used = 0;
}

static void put_slot(struct table *t, struct table_slot s)
{
    uint32_t at = s.hash & t->mask;

    while (t->slots[at].item)
        at = (at + 1) & t->mask;
    t->slots[at] = s;
}

static void grow_table(struct table *t)
{
    struct table_slot *old = t->slots;
    size_t n = old ? (size_t)t->mask + 1 : 0, more = n ? n * 2 : FIRST;

    t->slots = mem_zalloc(more * sizeof(*t->slots));
    t->mask = (uint32_t)(more - 1);
    for (size_t i = 0; i < n; i++)
        if (old[i].item)
            put_slot(t, old[i]);
    free(old);
}

void table_add(struct table *t, uint32_t hash, uint32_t item)
{
    if (!t->slots || t->used > t->mask / 2)
        grow_table(t);
    put_slot(t, (struct table_slot){hash, item + 1});
    t->used++;
}

/* Moves later items into the gap, up to the next free slot. An item must not move before the slot of its hash. */
void table_remove(struct table *t, uint32_t hash, uint32_t item)
{
    uint32_t gap = hash & t->mask;

    while (t->slots[gap].item != item + 1)
        gap = (gap + 1) & t->mask;
    for (uint32_t at = (gap + 1) & t->mask; t->slots[at].item; at = (at + 1) & t->mask) {
        if (((at - t->slots[at].hash) & t->mask) >= ((at - gap) & t->mask)) {
            t->slots[gap] = t->slots[at];
            gap = at;
        }
    }
    t->slots[gap] = (struct table_slot){0, 0};
    t->used--;
}

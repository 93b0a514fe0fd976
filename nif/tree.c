/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include <stdatomic.h>

#include "pages.h"

_Static_assert(sizeof(struct tree_event) % 8 == 0, "events lie one after the other");

static struct tree *trees;
static _Atomic uint64_t taken[TREES / 64]; /* one bit for each tree */

void trees_unmap(void)
{
    if (trees)
        munmap(trees, sizeof *trees * TREES);
    trees = NULL;
}

bool trees_begin(void)
{
    size_t at = 0;

    if (!trees && !(trees = pages_map(sizeof *trees * TREES)))
        return false;
    pages_clear(trees, sizeof *trees * TREES, &at, sizeof *trees * TREES);
    for (unsigned i = 0; i < TREES / 64; i++)
        atomic_store(&taken[i], 0);
    return true;
}

/* Takes the first free tree, so that the pages of the last trees are seldom used. */
struct tree *tree_take(void)
{
    for (unsigned i = 0; i < TREES / 64; i++) {
        uint64_t bits = atomic_load_explicit(&taken[i], memory_order_relaxed);
        while (~bits) {
            unsigned bit = (unsigned)__builtin_ctzll(~bits);
            /* Acquire: the last user of the tree has finished its writes. */
            if (!atomic_compare_exchange_weak_explicit(&taken[i], &bits, bits | UINT64_C(1) << bit,
                                                       memory_order_acquire, memory_order_relaxed))
                continue;
            struct tree *t = &trees[i * 64 + bit];
            t->head = t->first = t->next = t->end = t->count = t->gone = 0;
            t->wrapped = t->tailed = t->doubtful = false;
            return t;
        }
    }
    return NULL;
}

void tree_free(struct tree *t)
{
    size_t i = (size_t)(t - trees);

    atomic_fetch_and_explicit(&taken[i / 64], ~(UINT64_C(1) << i % 64), memory_order_release);
}

static struct tree_event *event_at(struct tree *t, uint32_t at)
{
    return (struct tree_event *)(void *)(t->bytes + at);
}

static void forget_first(struct tree *t)
{
    const struct tree_event *e = event_at(t, TREE_HEAD + t->first);

    if (t->gone <= e->number)
        t->gone = e->number + 1;
    t->doubtful |= e->chosen;
    t->first += e->bytes;
    if (t->first >= t->end) {
        t->first = 0;
        t->wrapped = false;
    }
}

/* Returns the offset in the tail at which `bytes` bytes are free. Drops the oldest events until there is room. */
static uint32_t tail_room(struct tree *t, uint32_t bytes)
{
    for (;;) {
        if (!t->wrapped && TREE_TAIL - t->next < bytes) {
            t->end = t->next;
            t->next = 0;
            t->wrapped = true;
        }
        if (!t->wrapped || t->first - t->next >= bytes)
            return t->next;
        forget_first(t);
    }
}

struct tree_event *tree_add(struct tree *t, size_t words, size_t terms)
{
    const size_t needs = sizeof(struct tree_event) + words * sizeof(uint64_t) + (terms + 7) / 8 * 8;
    struct tree_event *e;

    t->count++;
    if (needs > TREE_TAIL / 2) {
        t->gone = t->count;
        return NULL;
    }
    const uint32_t bytes = (uint32_t)needs;
    t->tailed |= TREE_HEAD - t->head < bytes;
    if (t->tailed) {
        e = event_at(t, TREE_HEAD + tail_room(t, bytes));
        t->next += bytes;
    } else {
        e = event_at(t, t->head);
        t->head += bytes;
    }
    *e =
        (struct tree_event){.bytes = bytes, .terms = (uint32_t)terms, .words = (uint16_t)words, .number = t->count - 1};
    return e;
}

/* Returns the first event of the tail, or NULL if the tail is empty. */
static struct tree_event *tail_first(struct tree *t)
{
    return t->wrapped || t->first < t->next ? event_at(t, TREE_HEAD + t->first) : NULL;
}

struct tree_event *tree_next(struct tree *t, const struct tree_event *e)
{
    if (!e)
        return t->head ? event_at(t, 0) : tail_first(t);
    const uint32_t at = (uint32_t)((const uint8_t *)e - t->bytes), behind = at + e->bytes;
    if (at < TREE_HEAD)
        return behind < t->head ? event_at(t, behind) : tail_first(t);
    const uint32_t end = t->wrapped && at - TREE_HEAD >= t->first ? t->end : t->next;
    if (behind - TREE_HEAD < end)
        return event_at(t, behind);
    return end != t->next && t->next ? event_at(t, TREE_HEAD) : NULL;
}

void tree_choose(struct tree *t, uint32_t from)
{
    t->doubtful |= from < t->gone;
    for (struct tree_event *e = NULL; (e = tree_next(t, e));)
        e->chosen |= e->number >= from;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps what happens inside of a root until the root's result decides whether to send it. A tree belongs to the
 * outermost open root of a process and holds encoded events, in their order.
 *
 * All memory is one mapping of TREES trees. A tree keeps its first events (the head) and its last ones (the tail, whose
 * oldest event makes room for a new one). The numbers of the events tell how many are missing between them. A tree
 * returns to the pool when its root has returned. If its process ends before, inside.c finds that out when the pool is
 * empty.
 *
 * One thread at a time uses a tree, in a callback of its process. The owner calls trees_begin() while no session is
 * live, and the unload trees_unmap().
 */
#ifndef ETRACE_TREE_H
#define ETRACE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TREES 512
#define TREE_HEAD (64u * 1024)
#define TREE_TAIL (64u * 1024)
#define TREE_ROOTS 4096 /* open calls beyond the list of the process (inside.h); more than a tree has room for */

struct tree_event {
    uint32_t bytes; /* of the whole event with its words and terms, a multiple of 8 */
    uint32_t terms; /* bytes of the terms, which follow the words */
    uint64_t module, name, tick;
    uint32_t number; /* number of this event in its tree, from 0 */
    uint16_t words;
    uint8_t kind, flags;
    uint8_t arity;
    bool bare;   /* the event has no function, and `module` and `name` are not set */
    bool chosen; /* part of an inner root that is sent even if the outer one is not */
};

/* An open call that has no room on the list of its process (inside.h). */
struct tree_call {
    uint64_t tick;
    uint32_t number; /* number of the call's event */
    bool root;
};

struct tree {
    uint32_t head;             /* bytes used of the head */
    uint32_t first, next, end; /* the tail: from `first` to `next`, or to `end` and then from 0 to `next` */
    bool wrapped, tailed;      /* tailed: the head is closed */
    uint32_t count;            /* events so far */
    uint32_t gone;             /* the tree still has all events with this number or a higher one */
    bool doubtful;             /* events of an inner root that the filter accepts may be missing */
    _Alignas(8) uint8_t bytes[TREE_HEAD + TREE_TAIL];
    struct tree_call calls[TREE_ROOTS];
};

/* Empties the pool. Returns false if memory is missing. */
bool trees_begin(void);
void trees_unmap(void);

/* Takes an empty tree. Returns NULL if all trees are taken. */
struct tree *tree_take(void);
void tree_free(struct tree *t);

/*
 * Returns the place of a new event with `words` words and `terms` bytes of terms. Returns NULL if the event is too long
 * for a tree: it is only counted.
 */
struct tree_event *tree_add(struct tree *t, size_t words, size_t terms);

/* Returns the event after `e`, or the first event if `e` is NULL. Returns NULL if there are no more events. */
struct tree_event *tree_next(struct tree *t, const struct tree_event *e);

/*
 * Marks the events from this number on as chosen. Sets `doubtful` if any of them are missing, or if they go missing
 * later.
 */
void tree_choose(struct tree *t, uint32_t from);

static inline uint64_t *tree_words(struct tree_event *e)
{
    return (uint64_t *)(void *)(e + 1);
}

static inline uint8_t *tree_terms(struct tree_event *e)
{
    return (uint8_t *)(e + 1) + e->words * sizeof(uint64_t);
}

#endif

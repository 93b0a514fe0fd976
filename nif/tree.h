/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores the events inside of a root until the root's result decides whether to send them. A tree belongs to the
 * outermost open root of a process and holds encoded events, oldest first.
 *
 * All memory is one mapping of TREES trees. A tree has two parts: the head has its first events, and the tail has its
 * last events. If the tail is full, it drops its oldest event for a new one. The numbers of the events tell how many
 * events are missing between head and tail. A tree returns to the pool when its root has returned. If its process ends
 * earlier, inside.c frees the tree when the pool is empty.
 *
 * One thread at a time uses a tree, in a callback of its process. The owner calls trees_begin() while no session is
 * live. The unloading of the library calls trees_unmap().
 */
#ifndef ETRACE_TREE_H
#define ETRACE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TREES 512
#define TREE_HEAD (64u * 1024)
#define TREE_TAIL (64u * 1024)
#define TREE_ROOTS 4096 /* the most open calls in `calls`: more than there are events in a tree */

struct tree_event {
    uint32_t bytes; /* of the whole event with its words and terms, a multiple of 8 */
    uint32_t terms; /* bytes of the terms, which follow the words */
    uint64_t module, name, tick;
    uint32_t number; /* number of this event in its tree, from 0 */
    uint16_t words;  /* number of the words, which follow this struct */
    uint8_t kind, flags;
    uint8_t arity;
    bool bare;   /* the event has no function, so `module` and `name` are not set */
    bool chosen; /* the event is inside an accepted inner root: send it even if the outer root is rejected */
};

/* An open call that has no room on the list of its process (inside.h). */
struct tree_call {
    uint64_t tick;
    uint32_t number; /* number of the call's event */
    bool root;
};

struct tree {
    uint32_t head; /* bytes used of the head */
    /* Offsets in the tail: its events are from `first` to `next`; if wrapped, from `first` to `end` and 0 to `next`. */
    uint32_t first, next, end;
    bool wrapped, tailed; /* tailed: new events go to the tail */
    uint32_t count;       /* events so far, with dropped ones */
    uint32_t gone;        /* no event with this number or a higher one is missing */
    bool doubtful;        /* events of an accepted inner root may be missing */
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
 * Adds an event and returns its place for the caller to fill. The event has `words` words and `terms` bytes of terms.
 * Returns NULL if the event is too long for a tree: then the event is only counted.
 */
struct tree_event *tree_add(struct tree *t, size_t words, size_t terms);

/* Returns the event after `e`, or the first event if `e` is NULL. Returns NULL if there are no more events. */
struct tree_event *tree_next(struct tree *t, const struct tree_event *e);

/*
 * Marks the events from this number on as chosen. Sets `doubtful` if any of these events is missing. forget_first()
 * sets `doubtful` if the tail drops one of them later.
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

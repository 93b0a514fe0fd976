/*
 * Events to batches that stand alone: what a ring of a node had defined long before - names of functions, atoms, what
 * processes are called - is spelled out in each batch that needs it, so that any of them may be dropped and the others are
 * read all the same. A batch is made for one node; its seq, and its counts, are the reader's to set (scroll.c).
 */
#ifndef ETRACE_ALONE_H
#define ETRACE_ALONE_H

#include "event.h"

struct alone {
    struct buf names, frames; /* of the owner's section, and of the others' */
    uint64_t tick;
    uint64_t tracee;
    bool begun;
    int64_t mono_ns, wall_ns; /* of the last event */
    size_t events;
    bool hello; /* holds the node's hello */
    uint32_t *funs;    /* serials + 1 by id */
    uint64_t *tracees; /* a set, of those that are named */
    size_t nfuns, ntracees;
    uint64_t lost[ETW_LOSSES]; /* of the node, since the beginning */
};

void alone_init(struct alone *a);
void alone_release(struct alone *a);

bool alone_full(const struct alone *a); /* time for alone_take() */
bool alone_empty(const struct alone *a);

/* Any event of merge_next(), in their order. */
void alone_add(struct alone *a, const struct event *e);

/*
 * Appends the batch and begins the next. Its seq is 0, its one counting section says `seen` and what was lost; the counters
 * in the frames of losses are the node's, too. last: nothing comes of the node behind it.
 */
void alone_take(struct alone *a, uint64_t seen, bool last, struct buf *to);

/* A batch that says what a node is, with its hello as bytes that stand alone. */
void alone_hello(struct wire hello, int64_t mono_ns, int64_t wall_ns, uint64_t seen, const uint64_t lost[static ETW_LOSSES],
                 struct buf *to);

/* Sets the seq of such a batch, and takes away from its counts what was before the reader began. */
void alone_rebase(char *batch, size_t len, uint64_t seq, uint64_t seen, const uint64_t lost[static ETW_LOSSES]);

#endif

/*
 * Encodes events into self-contained batches for the scrollback.
 *
 * On the wire a ring defines function names, atoms and process names once. Here each batch repeats the definitions that
 * it needs, so any batch can be dropped and the others can still be decoded. A struct alone serves one node. Its
 * batches have seq 0; scroll.c sets the seq and adjusts the counts for each reader.
 */
#ifndef ETRACE_ALONE_H
#define ETRACE_ALONE_H

#include "event.h"

struct alone {
    struct buf names, frames; /* the frames of the owner's section, and of the section with the events */
    uint64_t tick;
    uint64_t tracee;
    bool begun;
    int64_t mono_ns, wall_ns; /* of the last event */
    size_t events;
    bool hello; /* contains the node's hello */
    uint32_t *funs;    /* function serial + 1, by id in this batch; 0: free */
    uint64_t *tracees; /* hash set of the processes that this batch names */
    size_t nfuns, ntracees;
    uint64_t lost[ETW_LOSSES]; /* by the node, since its trace began */
};

void alone_init(struct alone *a);
void alone_release(struct alone *a);

bool alone_full(const struct alone *a); /* call alone_take() now */
bool alone_empty(const struct alone *a);

/* Accepts every event of merge_next(), in that order. */
void alone_add(struct alone *a, const struct event *e);

/*
 * Appends the batch to `to` and begins the next one. The batch has seq 0; its one counting section contains `seen` and
 * the node's losses, and its loss frames count from the beginning of the node's trace. `last` marks it as the node's
 * last batch.
 */
void alone_take(struct alone *a, uint64_t seen, bool last, struct buf *to);

/* Appends a batch that contains only a node's hello, which must be self-contained bytes. */
void alone_hello(struct wire hello, int64_t mono_ns, int64_t wall_ns, uint64_t seen, const uint64_t lost[static ETW_LOSSES],
                 struct buf *to);

/* Sets the seq of such a batch, and subtracts the counts from before the reader began. */
void alone_rebase(char *batch, size_t len, uint64_t seq, uint64_t seen, const uint64_t lost[static ETW_LOSSES]);

#endif

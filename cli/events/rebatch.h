/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes events into self-contained batches for the scrollback.
 *
 * A node defines a function name, an atom or a process name only once for each ring. Here each batch repeats the
 * definitions that it needs, so any batch can be dropped and the remaining batches can still be decoded. A struct
 * rebatch serves one node. Its batches have seq 0; scroll_reader.c sets the seq and adjusts the counts for each reader.
 */
#ifndef ETRACE_REBATCH_H
#define ETRACE_REBATCH_H

#include "../ground/table.h"
#include "event.h"

struct rebatch {
    struct buf names, frames; /* the frames of the owner's section, and of the section with the events */
    uint64_t tick;
    uint64_t tracee;
    bool begun;
    int64_t mono_ns, wall_ns; /* times of the last event */
    int64_t first_ns;         /* monotonic time of the first event in `frames` */
    size_t events;
    bool hello;        /* `names` contains the node's hello */
    uint32_t *funs;    /* fun->serial + 1 of each function that this batch defines, by its id in the batch */
    uint64_t *tracees; /* the processes that this batch names */
    size_t nfuns, ntracees;
    struct table by_tracee;
    uint64_t lost[ETW_LOSSES]; /* events that the node lost since its trace began */
};

void rebatch_init(struct rebatch *a);
void rebatch_release(struct rebatch *a);

bool rebatch_full(const struct rebatch *a); /* returns true if it is time to call rebatch_take() */
bool rebatch_empty(const struct rebatch *a);

/* Adds an event. Call it for every event of merge_next(), in the same order. */
void rebatch_add(struct rebatch *a, const struct event *e);

/*
 * Appends the batch to `to` and begins the next one. The batch has seq 0. Its section with the events contains `seen`
 * and the node's losses, and its loss frames count from the beginning of the node's trace. `last` marks the batch as
 * the node's last one.
 */
void rebatch_take(struct rebatch *a, uint64_t seen, bool last, struct buf *to);

/*
 * Appends a batch that contains only a frame of the owner: ETW_HELLO, ETW_NOTICE or ETW_TICK. `terms` must not refer to
 * atoms by id.
 */
void rebatch_own(enum etw_kind kind, struct wire terms, int64_t mono_ns, int64_t wall_ns, uint64_t seen,
                 const uint64_t lost[static ETW_LOSSES], struct buf *to);

/*
 * Sets the seq of a batch that rebatch_take() or rebatch_own() wrote. Subtracts `seen` and `lost`, the counts from
 * before the reader began, from the counts of the batch.
 */
void rebatch_rebase(char *batch, size_t len, uint64_t seq, uint64_t seen, const uint64_t lost[static ETW_LOSSES]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the frames with figures: the growth of the rows of functions or keys (tally.h) since the last round, and the
 * calls that a counter of the VM has counted. These frames belong in the owner's section of a batch.
 */
#ifndef ETRACE_FIGURES_H
#define ETRACE_FIGURES_H

#include "by.h"
#include "frame.h"

/* The most bytes that one figures_put() writes. */
#define FIGURES_FRAME (BY_BYTES + ROWS_VALUES * ETW_BUCKETS * sizeof(struct etw_bucket) + 1024)

/*
 * Begin and end a frame that has its full tick and tracee, so that it does not depend on the frame before it.
 * apart_begin() returns where the terms go, apart_end() where the next frame goes.
 */
static inline uint8_t *apart_begin(uint8_t *at, uint64_t tick, uint64_t tracee)
{
    return put64(put64(put32(at + 4, 0), tick), tracee);
}

static inline uint8_t *apart_end(uint8_t *at, uint8_t *end, enum etw_kind kind)
{
    put32(at, ETW_HEAD(end - at, kind, ETW_F_TICK | ETW_F_TRACEE));
    return end;
}

/*
 * Takes the next row of this round, like tally_take(). Writes the frames of the row at *at, if it has any, and moves
 * *at behind them. If events are counted by keys, writes at the end of the round a frame with the numbers of all
 * events. The owner calls it; when the owner can no longer run, leftover.c calls it.
 */
enum rows_took figures_put(ErlNifEnv *env, int64_t *work, uint8_t **at);

/*
 * Writes a notice about the counted calls that began at least a second ago and have not returned, and moves *at behind
 * the notice. Returns the process of the oldest of these calls, or 0 if there is no such call. The notice belongs
 * behind the last figures of a trace.
 */
ERL_NIF_TERM figures_put_waits(ErlNifEnv *env, uint8_t **at);

/* Puts the frame of a function whose calls a counter of the VM has counted. The figures have no buckets. */
uint8_t *figures_counted(ErlNifEnv *env, uint8_t *at, const struct stack_function *f, const struct etw_tally *figures);

#endif

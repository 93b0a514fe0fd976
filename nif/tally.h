/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts events instead of sending them. The one table of a trace (rows.h) has a row for each function (`-c`, views
 * that show only figures), or for each key of `by`. An event then costs no ring, no batch and no wake-up.
 *
 * This file has the table, what the counts of its rows mean, and the figures by function: how many calls and results,
 * how many failed, how long they took. by.h has the figures by key. Held and kept events (hold.h, keep.h) are only
 * added to the numbers of hidden events and of open calls.
 *
 * stack.h holds the open calls of each process. A call of a function that finds no room on a stack is counted but not
 * timed. With a filter such a call counts as lost: when its result comes, the node does not have the call any more and
 * cannot evaluate the filter. After a pause of the tracing, a result may belong to several calls. With a filter, it
 * then counts as lost, too.
 *
 * The owner calls tally_open(), tally_take(), tally_totals() and tally_is_told(). The unloading of the library calls
 * tally_unmap(). Any thread calls the rest, in a callback of the traced process.
 */
#ifndef ETRACE_TALLY_H
#define ETRACE_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hidden.h"
#include "lane.h"
#include "rows.h"
#include "stack.h"
#include "verdict.h"

#define TALLY_FUNCTIONS_MOST (1u << 18)

/* The counts of a row. The first value of a row of a function is the duration in nanoseconds. */
enum {
    TALLY_EVENTS,   /* of a function: its calls */
    TALLY_BESIDE,   /* events that are seen but are not among TALLY_EVENTS, such as results */
    TALLY_OPEN,     /* calls that have not returned: all of a function; of `by`, those whose key waits for a result */
    TALLY_FILTERED, /* events that the filter hides; of `by`, only in ROWS_OTHER */
    TALLY_SKIPPED,  /* of `by`, for each value: the events without an integer */
    TALLY_ERRORS = TALLY_SKIPPED, /* of a function: results that are exceptions */
    TALLY_COUNTS
};
_Static_assert(TALLY_SKIPPED + ROWS_VALUES == ROWS_COUNTS, "a row has the counts of each value");

/*
 * Values of stack_call.verdict, in addition to enum verdict. TALLY_SENT and TALLY_LOST calls do not wait for their
 * results; stack_call.flags is the reason of the loss. A TALLY_WHOLE call is counted with its result.
 */
enum { TALLY_SENT = VERDICT_WAITS + 1, TALLY_LOST, TALLY_WHOLE };

extern HIDDEN struct rows tally_rows;

/*
 * Enclose the changes of one event by a producer. The fence: a drain that sees a change, and then executes its own
 * fence (round_is_told()), sees the odd count. The release at the end: a drain that sees the even count sees all the
 * changes.
 */
static inline void tally_begin(struct lane *lane)
{
    atomic_store_explicit(&lane->counted, atomic_load_explicit(&lane->counted, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

static inline void tally_end(struct lane *lane)
{
    atomic_store_explicit(&lane->counted, atomic_load_explicit(&lane->counted, memory_order_relaxed) + 1,
                          memory_order_release);
}

static inline struct rows_place tally_place(const struct lane *lane, uint32_t row)
{
    return rows_place(rows_memory(&tally_rows), lane, row);
}

/* Returns the room for the figures of so many functions, and some more. */
struct rows_room tally_functions(uint32_t count);
/* Resets all figures. The caller repeats it while it returns ROWS_CLEARING. */
enum rows_opened tally_open(const struct rows_room *room, uint64_t ticks_per_ms, stack_alive_fn *alive);
void tally_unmap(void);

/* How a call ended. */
struct tally_result {
    uint64_t tick, bytes;
    bool failed;
    struct verdict_end end;
};

/* Finds the row of a function by its key. */
uint32_t tally_find(struct rows_memory *m, const struct stack_function *f);

/* Returns the place of a function's figures in a lane: in the row ROWS_OTHER if the function has no row of its own. */
static inline struct rows_place tally_place_of(const struct lane *lane, const struct stack_function *f)
{
    uint32_t epoch = rows_epoch(&tally_rows);
    struct rows_memory *m = rows_memory(&tally_rows);
    struct rows_recent *recent = rows_recent(m, lane, f, NULL, 0);
    if (__builtin_expect(rows_is_recent(recent, epoch, f, NULL, 0), 1))
        return rows_place(m, lane, recent->row);
    uint32_t row = tally_find(m, f);
    if (row != ROWS_OTHER)
        *recent = (struct rows_recent){.epoch = epoch, .row = row, .function = *f};
    return rows_place(m, lane, row);
}

/* Adds to a count that belongs to no row of its own. Called between tally_begin() and tally_end(). */
void tally_add(struct lane *lane, unsigned which, int by);
void tally_waiting(struct lane *lane, int filtered, int open); /* the same for TALLY_FILTERED and TALLY_OPEN */
/* Counts an event that the filter hides, or hides until its result decides, and calls that wait: `open`. */
void tally_hide(struct lane *lane, int open);

/*
 * Counts a call by its function. returns: the call will report its result, and has begun at `tick`. bytes: the size of
 * the frame, for the filter.
 */
static inline void tally_call(void *env, struct lane *lane, uint64_t process, const struct stack_function *f,
                              uint64_t tick, uint64_t bytes, bool returns)
{
    const struct rows_place p = tally_place_of(lane, f);
    const enum verdict verdict = verdict_call(bytes, returns);
    const bool knows =
        !returns ||
        stack_push(env, process, &(struct stack_call){.function = *f, .tick = tick, .verdict = (uint8_t)verdict});
    tally_begin(lane);
    if (returns)
        rows_count(&p, TALLY_OPEN, 1);
    if (!knows && verdict_is_set()) {
        ring_lose(&lane->ring, ETW_LOST_GUARD);
    } else {
        if (verdict == VERDICT_SHOWS)
            rows_count(&p, TALLY_EVENTS, 1);
        else
            rows_count(&p, TALLY_FILTERED, 1);
        ring_count_seen(&lane->ring);
    }
    tally_end(lane);
}

/* Counts a result by its function. bytes: as for tally_call(). */
void tally_result(struct lane *lane, uint64_t process, const struct stack_function *f, const struct tally_result *r);

/*
 * Stops waiting for the results of a function that loops (owed.h) in this process. Its open calls count as none,
 * because a process may wait inside of one for ever.
 */
void tally_drop(struct lane *lane, uint64_t process, const struct stack_function *f);

uint64_t tally_ns(uint64_t from, uint64_t to); /* nanoseconds from one tick to another */

/* Returns true if a call on a stack is shown before it returns, and its function does not loop. */
bool tally_counts(const struct stack_call *call);

/* Returns the next row of this round whose figures grew, like rows_take(). */
enum rows_took tally_take(int64_t *work, struct rows_growth *ret, struct etw_bucket *ret_buckets);

/*
 * Reads the figures of a row of a function. The module of *ret_function is 0 if the row stands for all functions
 * without a row of their own, or is no row of a function.
 */
struct etw_tally tally_of(const struct rows_growth *g, struct stack_function *ret_function);

/* Returns how many events the rows that were taken since the last call of this function have seen and hidden. */
struct etw_tally tally_totals(void);
bool tally_is_told(void); /* see rows_are_told() */

#endif

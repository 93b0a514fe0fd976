/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts events instead of sending them. A trace has one table (rows.h). It has a row for each function (`-c`, views
 * that show only figures), or a row for each key of `by`. A counted event costs no ring, no batch and no wake-up.
 *
 * This file has the table, the meaning of the counts of its rows, and the figures by function: how many calls and
 * results, how many failed, how long they took. by.h has the figures by key. If events are held or kept (hold.h,
 * keep.h), the table has only the numbers of hidden events and of open calls.
 *
 * stack.h holds the open calls of each process. A call that finds no room on a stack is counted but not timed. With a
 * filter, such a call counts as lost: when its result comes, the node no longer has the call and cannot evaluate the
 * filter. After a pause of the tracing, it may be unclear which call a result belongs to. With a filter, such a result
 * counts as lost, too.
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

/*
 * The counts of a row. A row counts by a function or by a key of `by`. In a row of a function, value 0 is the duration
 * in nanoseconds.
 */
enum {
    TALLY_EVENTS,   /* in a row of a function: its calls; in a row of `by`: its calls and messages */
    TALLY_BESIDE,   /* events that are seen but are not among TALLY_EVENTS, such as results */
    TALLY_OPEN,     /* calls that have not returned; with `by`, only calls whose key waits for the result */
    TALLY_FILTERED, /* events that the filter hides; with `by`, only in the row ROWS_OTHER */
    TALLY_SKIPPED,  /* with `by`, one count for each value: events in which the value is not an integer */
    TALLY_ERRORS = TALLY_SKIPPED, /* in a row of a function: results that are exceptions */
    TALLY_COUNTS
};
_Static_assert(TALLY_SKIPPED + ROWS_VALUES == ROWS_COUNTS, "a row has the counts of each value");

/*
 * Values of stack_call.verdict, in addition to enum verdict. TALLY_SENT: the call was sent. TALLY_LOST: the call was
 * lost, for the reason in stack_call.flags. TALLY_WHOLE: the call is shown, and is counted with its result.
 */
enum { TALLY_SENT = VERDICT_WAITS + 1, TALLY_LOST, TALLY_WHOLE };

extern HIDDEN struct rows tally_rows;

/*
 * tally_begin() and tally_end() enclose the changes that a producer makes for one event. lane->counted is odd between
 * them. The fence: a drain that sees a change, and then executes its own fence (round_is_told()), sees the odd value.
 * The release at the end: a drain that sees the even value sees all changes.
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

/* Returns the size of a table for this number of functions, with spare rows. */
struct rows_room tally_functions(uint32_t count);
/* Resets all figures. The caller repeats the call while it returns ROWS_CLEARING. */
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

/* Returns the figures of a function in a lane. A function without a row of its own counts in the row ROWS_OTHER. */
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

/* Adds to the count `which` of the row ROWS_OTHER. Called between tally_begin() and tally_end(). */
void tally_add(struct lane *lane, unsigned which, int by);
/* Adds to TALLY_FILTERED and to TALLY_OPEN of the row ROWS_OTHER. Called between tally_begin() and tally_end(). */
void tally_waiting(struct lane *lane, int filtered, int open);
/*
 * Counts an event that the filter hides, at least until a result decides. open: the number of calls that begin to wait
 * for their result, 0 or 1.
 */
void tally_hide(struct lane *lane, int open);

/*
 * Counts a call by its function. The call has begun at `tick`. returns: the VM will report its result. bytes: the size
 * that its frame would have, for the filter.
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
 * Stops waiting for the results of a function that loops (owed.h) in this process. Its open calls no longer count as
 * open, because the loop may never end.
 */
void tally_drop(struct lane *lane, uint64_t process, const struct stack_function *f);

uint64_t tally_ns(uint64_t from, uint64_t to); /* nanoseconds from one tick to another */

/* Returns true if a call on a stack counts as an open call: the filter shows it, and its function does not loop. */
bool tally_counts(const struct stack_call *call);

/* Returns the next row of this round whose figures grew, like rows_take(). */
enum rows_took tally_take(int64_t *work, struct rows_growth *ret, struct etw_bucket *ret_buckets);

/*
 * Returns the growth of a row of a function. The module of *ret_function is 0 if the row is ROWS_OTHER or does not
 * count by a function.
 */
struct etw_tally tally_of(const struct rows_growth *g, struct stack_function *ret_function);

/* Returns how many events were seen and hidden according to the rows taken since the last call of this function. */
struct etw_tally tally_totals(void);
bool tally_is_told(void); /* see rows_are_told() */

#endif

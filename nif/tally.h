/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts calls and results by function instead of sending frames: how many, how many failed, how long they took. Views
 * that show only figures ask for it. An event then costs no ring, no batch and no wake-up.
 *
 * Each function has a row (rows.h). The table has room for the functions that the owner has armed and some more.
 * Functions beyond that are counted together, in the row ROWS_OTHER. stack.h holds the open calls of each process. A
 * call that finds no room on a stack is counted but not timed. With a filter such a call counts as lost: when its
 * result comes, the node does not have the call any more and cannot evaluate the filter. After a pause of the tracing,
 * a result may belong to several calls. With a filter, it then counts as lost, too.
 *
 * The owner calls tally_open(), tally_take() and tally_is_told(). The unloading of the library calls tally_unmap(). Any
 * thread calls the rest, in a callback of the traced process.
 */
#ifndef ETRACE_TALLY_H
#define ETRACE_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verdict.h"
#include "lane.h"
#include "rows.h"
#include "stack.h"

#define TALLY_FUNCTIONS_MOST (1u << 18)

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

bool tally_is_told(void); /* see rows_are_told() */

/* Returns true if a call on a stack is shown before it returns, and its function does not loop. */
bool tally_counts(const struct stack_call *call);

/* Resets all figures and makes room for `functions`. The caller repeats it while it returns ROWS_CLEARING. */
enum rows_opened tally_open(uint32_t functions, uint64_t ticks_per_ms, stack_alive_fn *alive);
void tally_unmap(void);

/* How a call ended. */
struct tally_result {
    uint64_t tick, bytes;
    bool failed;
    struct verdict_end end;
};

/*
 * Count a call or a result, also as seen. returns: the call will report its result. bytes: the size of the frame, for
 * the filter.
 */
void tally_call(void *env, struct lane *lane, uint64_t process, const struct stack_function *f, uint64_t tick,
                uint64_t bytes, bool returns);
void tally_result(struct lane *lane, uint64_t process, const struct stack_function *f, const struct tally_result *r);

/*
 * Stops waiting for the results of a function that loops (owed.h) in this process. Its open calls count as none,
 * because a process may wait inside of one for ever.
 */
void tally_drop(struct lane *lane, uint64_t process, const struct stack_function *f);

/*
 * Adds to the numbers of hidden events and of open calls. It is for held calls (hold.h), which are not counted by
 * function.
 */
void tally_waiting(struct lane *lane, int filtered, int open);
/*
 * Counts an event as seen that is not sent and has its figures elsewhere (by.h). Called between tally_begin() and
 * tally_end().
 */
void tally_seen(struct lane *lane);
void tally_show(struct lane *lane);            /* counts a hidden event as shown */
uint64_t tally_ns(uint64_t from, uint64_t to); /* nanoseconds from one tick to another */

/*
 * Returns the next function of this round whose figures grew, and by how much, like rows_take(). Module 0 stands for
 * all functions without a row of their own. ret_buckets: an array of ETW_BUCKETS.
 */
enum rows_took tally_take(int64_t *work, struct stack_function *ret_function, struct etw_tally *ret,
                          struct etw_bucket *ret_buckets);

#endif

/*
 * Counts calls and results by function instead of sending frames: how often, how many failed, how long. Views that show only figures
 * ask for it. An event then costs no ring, no batch and no wake-up.
 *
 * All lanes share one table that gives each function a number. Each lane has figures of its own by that number, which only its thread
 * writes. The drain adds the lanes up and reports what each function gained since its last round. A round takes several calls of the
 * owner, and each call touches a bounded number of figures.
 *
 * The owner says how many functions it has armed, and there is room for so many and some more. Functions that are beyond that are
 * counted together, as number 0. stack.h knows which calls a process is in. A call that finds no room on a stack is counted and not
 * timed; with a filter, nobody can decide about it, so it counts as lost.
 *
 * A drain may come between an event's figures and its count as seen. The last batch therefore asks tally_is_told().
 *
 * tally_open/unmap/take/is_told: the owner's calls and unload. tally_call/result: any thread, in a callback of that process.
 */
#ifndef ETRACE_TALLY_H
#define ETRACE_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filter.h"
#include "lane.h"
#include "stack.h"

#define TALLY_FUNCTIONS_MOST (1u << 18)

/*
 * Producer: what it changes in between belongs together. The fence: a drain that sees a change sees the odd count, once it has a fence
 * of its own (tally_is_told()). Release at the end: a drain that sees the even count sees all the changes.
 */
static inline void tally_begin(struct lane *lane)
{
    atomic_store_explicit(&lane->counted, atomic_load_explicit(&lane->counted, memory_order_relaxed) + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

static inline void tally_end(struct lane *lane)
{
    atomic_store_explicit(&lane->counted, atomic_load_explicit(&lane->counted, memory_order_relaxed) + 1, memory_order_release);
}

/* Whether all that an earlier look at the rings has shown as seen stands in the figures of the last round. */
bool tally_is_told(void);

enum tally_opened { TALLY_OPEN, TALLY_CLEARING, TALLY_NO_MEMORY };

/*
 * Begins with nothing, and with room for so many functions. Gives back the memory of the figures before: a few megabytes in each call,
 * so it is to be called again until it does not say TALLY_CLEARING.
 */
enum tally_opened tally_open(uint32_t functions, uint64_t ticks_per_ms, stack_alive_fn *alive);
void tally_unmap(void);

/* What came of a call. */
struct tally_result {
    uint64_t tick, bytes;
    bool failed;
    enum etw_class class; /* when it failed; ETW_CLASSES: none that is known */
};

/* `returns`: the call will report its result. Bytes: what the filter measures. Both count the event as seen. */
void tally_call(void *env, struct lane *lane, uint64_t process, const struct stack_function *f, uint64_t tick, uint64_t bytes,
    bool returns);
void tally_result(struct lane *lane, uint64_t process, const struct stack_function *f, const struct tally_result *r);

/* The function does not return (owed.h): its open calls in this process are not waited for any more. */
void tally_drop(struct lane *lane, uint64_t process, const struct stack_function *f);

/* Of calls that are not counted by function, but wait for their result (hold.h): how many more are hidden, and open. */
void tally_waiting(struct lane *lane, int filtered, int open);
uint64_t tally_ns(uint64_t from, uint64_t to); /* from one tick to another */

enum tally_took { TALLY_TOOK, TALLY_PAUSE, TALLY_END };

/*
 * The next function of this round that gained something, with what it gained; the function with module 0 is all those without a number
 * of their own. Takes off *work what it touched (figures of a function in a lane, and groups of buckets), and pauses when none is left.
 * TALLY_END: the round is over, and the next call begins another one. Buckets: room for ETW_BUCKETS.
 */
enum tally_took tally_take(int64_t *work, struct stack_function *ret_function, struct etw_tally *ret, struct etw_bucket *ret_buckets);

#endif

/*
 * Figures for each function instead of frames: how often, how many failed, how long. What views that show only figures ask for;
 * it costs no ring, no batch and no wake-up for an event.
 *
 * Every lane has a table of its own, written by its thread and read by the drain, which takes what was added since the last time.
 * Which calls a process is in, its stack knows (stack.h). Both are bounded: functions beyond TALLY_FUNCTIONS are counted together,
 * calls that find no room on a stack are counted and not timed. Where there is a filter it could not be decided about them: they
 * are lost.
 *
 * Between the figures of an event and its being counted as seen a drain may come: whoever has to know that all is told asks.
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

#define TALLY_FUNCTIONS 2047

/* Producer: what is changed in between belongs together. */
static inline void tally_begin(struct lane *lane)
{
    atomic_store_explicit(&lane->counted, atomic_load_explicit(&lane->counted, memory_order_relaxed) + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

static inline void tally_end(struct lane *lane)
{
    atomic_store_explicit(&lane->counted, atomic_load_explicit(&lane->counted, memory_order_relaxed) + 1, memory_order_release);
}

/* Of all that a look at the rings, before this, has shown as seen: whether it stands in the figures that were taken last. */
bool tally_is_told(void);

/* Begins with nothing, in all lanes. False: no memory. */
bool tally_open(uint64_t ticks_per_ms, stack_alive_fn *alive);
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

/* Of calls that are not counted by function, but wait for their result (hold.h): how many more are hidden, and open. */
void tally_waiting(struct lane *lane, int filtered, int open);
uint64_t tally_ns(uint64_t from, uint64_t to); /* from one tick to another */

/*
 * The next function with something new in a lane, from *at on, which moves behind it; false: none. The function with module 0
 * is all those that found no place. Buckets: room for ETW_BUCKETS.
 */
bool tally_take(uint32_t slot, uint32_t *at, struct stack_function *ret_function, struct etw_tally *ret, struct etw_bucket *ret_buckets);

#endif

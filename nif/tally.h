/*
 * Figures for each function instead of frames: how often, how many failed, how long. What views that show only figures ask for;
 * it costs no ring, no batch and no wake-up for an event.
 *
 * Every lane has a table of its own, written by its thread and read by the drain, which takes what was added since the last time.
 * Which calls a process is in is remembered in one table for all threads, by the word of the process: a process runs on one
 * thread at a time, so a stack has one writer. Both are bounded: functions beyond TALLY_FUNCTIONS are counted together, calls
 * of processes that find no stack, and those deeper than TALLY_DEPTH, are counted and not timed. Where there is a filter it
 * could not be decided about them: they are lost.
 *
 * tally_open/unmap/take: the owner's calls and unload. tally_call/result: any thread, in a callback of that process.
 */
#ifndef ETRACE_TALLY_H
#define ETRACE_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filter.h"
#include "lane.h"

#define TALLY_FUNCTIONS 2047
#define TALLY_DEPTH 510

/* The words of a function. */
struct tally_function {
    uint64_t module, name;
    uint32_t arity;
};

/* Whether the process of a word lives; env is what tally_call() was given. A stack whose process died in a call is free again. */
typedef bool tally_alive_fn(void *env, uint64_t process);

/* Begins with nothing, in all lanes. False: no memory. */
bool tally_open(uint64_t ticks_per_ms, tally_alive_fn *alive);
void tally_unmap(void);

/* What came of a call. */
struct tally_result {
    uint64_t tick, bytes;
    bool failed;
    enum etw_class class; /* when it failed; ETW_CLASSES: none that is known */
};

/* `returns`: the call will report its result. Bytes: what the filter measures. Both count the event as seen. */
void tally_call(void *env, struct lane *lane, uint64_t process, const struct tally_function *f, uint64_t tick, uint64_t bytes,
    bool returns);
void tally_result(struct lane *lane, uint64_t process, const struct tally_function *f, const struct tally_result *r);

/*
 * The next function with something new in a lane, from *at on, which moves behind it; false: none. The function with module 0
 * is all those that found no place. Buckets: room for ETW_BUCKETS.
 */
bool tally_take(uint32_t slot, uint32_t *at, struct tally_function *ret_function, struct etw_tally *ret, struct etw_bucket *ret_buckets);

#endif

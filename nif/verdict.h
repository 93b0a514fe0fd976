/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates the client's filter (etrace_wire.h) in a callback. The filter decides whether a call and its result are
 * shown or only counted as hidden. Without a filter all calls are shown.
 *
 * The owner sets the filter before anything is traced; every producer reads it. A late producer, with an event of the
 * previous trace, may read a half-written filter. The verdict is then arbitrary, but the producer accesses no memory
 * outside of the filter and the C stack.
 */
#ifndef ETRACE_VERDICT_H
#define ETRACE_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "etrace_wire.h"
#include "hidden.h"

enum verdict { VERDICT_HIDES, VERDICT_SHOWS, VERDICT_WAITS /* the result decides */ };

extern HIDDEN uint32_t verdict_steps;

/* Programs that test the value of a result (program.h), and the function that runs them. */
typedef bool verdict_accepts_fn(void *env, const void *program, uint64_t value);
struct verdict_programs {
    const void *programs[ETW_FILTER_PROGRAMS];
    unsigned count;
    verdict_accepts_fn *accepts;
};

/* Sets the filter; no filter if n is 0. Returns false and keeps the old filter if the bytes are not a valid filter. */
bool verdict_set(const uint8_t *bytes, size_t n, const struct verdict_programs *programs);

extern HIDDEN bool verdict_measured; /* the filter tests the size of events */
/* The verdict about every call whose result will be reported. Valid only if the filter does not test sizes. */
extern HIDDEN enum verdict verdict_sizeless;

static inline bool verdict_is_set(void)
{
    return verdict_steps;
}

enum verdict verdict_call_slowly(uint64_t bytes, bool returns);

static inline enum verdict verdict_call(uint64_t bytes, bool returns)
{
    return __builtin_expect(!verdict_is_set(), 1) ? VERDICT_SHOWS : verdict_call_slowly(bytes, returns);
}

/* How a call ended. */
struct verdict_end {
    enum etw_class class; /* the class of the exception; ETW_CLASSES: no exception, or its class is unknown */
    bool returned;        /* the call has returned, and `value` is its return value */
    uint64_t value;
    void *env; /* for verdict_accepts_fn */
};

/* Decides about a call that waited for its result. Returns true if the call and the result are shown. */
bool verdict_result(uint64_t bytes, uint64_t ns, const struct verdict_end *end);

/* Like verdict_result(), but for a call whose beginning is not known: a test of its duration fails. */
bool verdict_result_untimed(const struct verdict_end *end);

/*
 * Sets the shortest and the longest duration that the filter has tested since it was set. Returns false if it has
 * tested none.
 */
bool verdict_times(uint64_t *ret_least_ns, uint64_t *ret_most_ns);

/*
 * Returns true if the client might show a call that waited, and its result. The caller then sends both, and the client
 * decides. Unlike verdict_result(), this allows for a small difference between the client's duration and ours, and for
 * the unknown size of the result. Also returns true for the first call that the client will not show: a client that
 * shows nothing can then give an example of what its filter rejects.
 */
bool verdict_result_may(uint64_t ns, const struct verdict_end *end);

#endif

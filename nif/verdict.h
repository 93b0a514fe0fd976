/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates the client's filter (etrace_wire.h) in the callback: decides whether a call and its result are shown or
 * only counted as hidden. Without a filter everything is shown.
 *
 * The owner sets the filter before anything is traced; every producer reads it. A late producer, with an event of the
 * previous trace, may read a half-written filter. Its verdict is then arbitrary, but it accesses no memory outside the
 * filter and its own stack.
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

/* Sets the filter; n = 0: no filter. Returns false if the bytes are not a valid filter; the old filter then stays. */
bool verdict_set(const uint8_t *bytes, size_t n, const struct verdict_programs *programs);

extern HIDDEN bool verdict_measured; /* the filter tests the size of events */
/* The verdict for every call whose result will be reported. Valid only if the filter does not test sizes. */
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
    enum etw_class class; /* ETW_CLASSES: no exception, or one of unknown class */
    bool returned;        /* with this value: */
    uint64_t value;
    void *env;
};

/* Returns true if a call that waited, and its result, are shown. */
bool verdict_result(uint64_t bytes, uint64_t ns, const struct verdict_end *end);

/* Like verdict_result(), but for a call whose beginning is not known: a test of its duration fails. */
bool verdict_result_untimed(const struct verdict_end *end);

/*
 * Returns true if the client might show a call that waited, and its result. Unlike after verdict_result(), the client
 * decides in the end. This allows for the small difference between the client's and our durations, and for the unknown
 * size of the result.
 */
bool verdict_result_may(uint64_t ns, const struct verdict_end *end);

#endif

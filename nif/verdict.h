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

enum verdict { VERDICT_HIDES, VERDICT_SHOWS, VERDICT_WAITS /* for the result */ };

extern HIDDEN uint32_t verdict_steps;
/* False: the bytes are not a valid filter, and the old one stays. n = 0: no filter. */
bool verdict_set(const uint8_t *bytes, size_t n);

extern HIDDEN bool verdict_measured; /* the filter tests the size of events */
/* If it does not: its verdict for every call that will report its result */
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

/*
 * Decides about a call that waited: whether it and its result are shown. ETW_CLASSES: no exception, or one of unknown
 * class.
 */
bool verdict_result(uint64_t bytes, uint64_t ns, enum etw_class class);

/*
 * Like verdict_result(), but the client decides in the end: whether the client might show them. It allows for the small
 * difference between the client's and our durations, and for the unknown size of the result.
 */
bool verdict_result_may(uint64_t ns, enum etw_class class);

#endif

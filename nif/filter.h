/*
 * The filter of what is counted: a few steps from the client (etrace_wire.h) that decide, in the callback, whether a call and
 * its result are counted or only said to be hidden. With no filter everything is shown.
 *
 * Set by the owner's calls before anything is traced, read by every producer. A producer that is late, with an event of what
 * was traced before, may read steps half of which are new: it computes nonsense then, and touches nothing but its own stack.
 */
#ifndef ETRACE_NIF_FILTER_H
#define ETRACE_NIF_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "etrace_wire.h"
#include "hidden.h"

enum filter_verdict { FILTER_HIDES, FILTER_SHOWS, FILTER_WAITS /* for the result */ };

extern HIDDEN uint32_t filter_steps;
/* False: these bytes are no filter, and nothing has changed. None at all: no filter. */
bool filter_set(const uint8_t *bytes, size_t n);

extern HIDDEN bool filter_measured;                 /* it asks for the size of events */
extern HIDDEN enum filter_verdict filter_sizeless; /* where it does not: of every call that returns */

static inline bool filter_is_set(void)
{
    return filter_steps;
}

enum filter_verdict filter_call_slowly(uint64_t bytes, bool returns);

static inline enum filter_verdict filter_call(uint64_t bytes, bool returns)
{
    return __builtin_expect(!filter_is_set(), 1) ? FILTER_SHOWS : filter_call_slowly(bytes, returns);
}

/* Of a call that waited: whether both are shown. ETW_CLASSES: it did not fail, or in no way that has a name. */
bool filter_result(uint64_t bytes, uint64_t ns, enum etw_class class);

/*
 * The same where the client decides, of what comes there: whether it may come to showing both. Its clocks differ by a little from
 * ours, and how large the result is nobody has measured.
 */
bool filter_result_may(uint64_t ns, enum etw_class class);

#endif

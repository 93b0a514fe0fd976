/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the notices of a node (ETW_NOTICE). Each function reads one kind of notice, and returns false or 0 for other
 * events.
 */
#ifndef ETRACE_NOTICE_H
#define ETRACE_NOTICE_H

#include "mfa.h"

/* Reads a notice that a function is endless: it calls itself in a loop and never returns. */
bool notice_endless(const struct event *e, struct mfa *ret);
/*
 * Reads a notice that a root, a function behind `inside`, calls itself in a loop. The node sends the results of that
 * root, but no calls of roots that run inside of its loops.
 */
bool notice_root_loops(const struct event *e, struct mfa *ret);

/* The trace tokens that the node could not remove at the end of the trace. */
struct notice_tokens {
    int64_t held, queued; /* processes with a token; processes with queued messages that may carry one */
    bool known;           /* false: the node could not count them */
};
bool notice_tokens(const struct event *e, struct notice_tokens *ret);

/*
 * The calls that were counted, began at least a second before the end, and had not returned at the end. `calls` is
 * their number. `ns`, `pid` and `function` are the age, process and function of the oldest one.
 */
struct notice_waits {
    int64_t calls, ns;
    const uint8_t *pid;
    struct mfa function;
};
bool notice_waits(const struct event *e, struct notice_waits *ret);

/* The shortest and the longest duration that a node has tested with the filter. */
struct notice_times {
    int64_t least_ns, most_ns;
};
bool notice_times(const struct event *e, struct notice_times *ret);

/* A notice about the budget of the trace (--overhead). */
struct notice_overhead {
    int64_t functions;    /* number of functions that are only counted; 0: this is the notice at the end of the trace */
    int64_t taken, limit; /* in hundredths of a percent: the share of time that tracing took; its limit */
    int64_t calls;    /* calls per second of the busiest function; in the notice at the end: calls that were rejected */
    int64_t untraced; /* in the notice at the end: calls that made no event because of the budget; -1: unknown */
    bool estimated;   /* `untraced` is an estimate */
    struct mfa busiest;
};
bool notice_overhead(const struct event *e, struct notice_overhead *ret);

/*
 * Returns how many modules the notice reports as loaded or reloaded. Calls of these modules before the notice may be
 * missing.
 */
uint64_t notice_reloads(const struct event *e);

#endif

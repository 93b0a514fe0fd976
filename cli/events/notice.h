/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what the notices of a node (ETW_NOTICE) report. Each function returns false, or 0, for other notices. */
#ifndef ETRACE_NOTICE_H
#define ETRACE_NOTICE_H

#include "mfa.h"

/* Reads a notice that a function is endless. */
bool notice_endless(const struct event *e, struct mfa *ret);
/*
 * Reads a notice that a root of `inside` calls itself in a loop. The node sends the results of that root, but no calls
 * of roots that run inside of its loops.
 */
bool notice_root_loops(const struct event *e, struct mfa *ret);

/* Trace tokens that the node could not remove at the end. */
struct notice_tokens {
    int64_t held, queued; /* processes with a token; processes with queued messages that may carry one */
    bool known;           /* false: the node could not count them */
};
bool notice_tokens(const struct event *e, struct notice_tokens *ret);

/*
 * Calls that were counted and had not returned at the end, although they began a second before. `ns`, `pid` and
 * `function` are about the oldest call.
 */
struct notice_waits {
    int64_t calls, ns;
    const uint8_t *pid;
    struct mfa function;
};
bool notice_waits(const struct event *e, struct notice_waits *ret);

/* A notice about the budget of the trace. Shares are hundredths of a percent. */
struct notice_overhead {
    int64_t functions; /* number of functions that are only counted; 0: this is the notice at the end of the trace */
    int64_t taken, limit;
    int64_t calls;    /* calls a second of the busiest function; at the end: calls that were rejected */
    int64_t untraced; /* at the end: calls that made no event because of the budget; -1: unknown */
    bool estimated;   /* `untraced` is an estimate */
    struct mfa busiest;
};
bool notice_overhead(const struct event *e, struct notice_overhead *ret);

/*
 * Returns the number of modules that were loaded or reloaded, by this notice. Earlier calls of these modules were not
 * seen.
 */
uint64_t notice_reloads(const struct event *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what the notices of a node (ETW_NOTICE) report. Each function returns false, or 0, for other notices. */
#ifndef ETRACE_NOTICE_H
#define ETRACE_NOTICE_H

#include "mfa.h"

/* A function that is endless. */
bool notice_endless(const struct event *e, struct mfa *ret);
/* A root of `inside` that calls itself in a loop.
 * The node sends its results, but no calls of roots that run inside of its loops. */
bool notice_root_loops(const struct event *e, struct mfa *ret);

/* Trace tokens that the node could not remove at the end. */
struct notice_tokens {
    int64_t held, queued; /* processes with a token; processes with queued messages that may carry one */
    bool known;           /* false: the node could not count them */
};
bool notice_tokens(const struct event *e, struct notice_tokens *ret);

/* Counted calls that had not returned at the end, though they began a second before.
 * The rest is about the oldest one. */
struct notice_waits {
    int64_t calls, ns;
    const uint8_t *pid;
    struct mfa function;
};
bool notice_waits(const struct event *e, struct notice_waits *ret);

/* A notice about the budget of the trace. Shares are hundredths of a percent. */
struct notice_overhead {
    int64_t functions; /* how many are only counted; 0: the notice at the end */
    int64_t taken, limit;
    int64_t calls;    /* calls a second of the busiest function; at the end: calls that were rejected */
    int64_t untraced; /* at the end: calls that made no event because of the budget; -1: unknown */
    bool estimated;   /* that number is an estimate */
    struct mfa busiest;
};
bool notice_overhead(const struct event *e, struct notice_overhead *ret);

/* How many modules were loaded or reloaded. Their calls until then were not seen. */
uint64_t notice_reloads(const struct event *e);

#endif

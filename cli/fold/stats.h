/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums figures for each function, and for each kind of event without a function: count, errors, and a histogram of
 * durations (etw_bucket_of()), whose percentiles are accurate within a sixteenth. Bounded: after STATS_MAX entries, all
 * further functions share one entry.
 */
#ifndef ETRACE_STATS_H
#define ETRACE_STATS_H

#include "../events/event.h"
#include "../ground/table.h"

#define STATS_MAX 16384

struct stat {
    const struct event_node *node; /* NULL: all nodes together */
    const struct fun *fun;         /* NULL: an event kind, or the shared entry */
    uint8_t arity, kind;           /* kind 0: the shared entry */
    uint64_t events;               /* number of events; a call and its result count as one */
    uint64_t counted;              /* number of all calls, from a counter of the VM or estimated; 0: unknown */
    uint64_t estimated;            /* number of calls in `counted` that are an estimate */
    uint64_t only_counted;         /* number of calls in `counted` that could not become events */
    uint64_t errors;               /* number of exceptions */
    uint64_t timed;                /* number of events with a known duration */
    uint64_t total_ns, min_ns, max_ns;
    uint64_t *buckets; /* NULL: no durations */
};

struct stats {
    bool by_node; /* separate figures for each node */
    struct stat *items;
    size_t n, cap;
    struct table by_function;
};

void stats_release(struct stats *s);
void stats_event(struct stats *s, const struct event *e); /* accepts events of the VM and ETW_TALLY */
/* These functions work on a struct stat of the caller, who frees its buckets. stat_add() adds a duration. */
void stat_add(struct stat *t, uint64_t ns);
void stat_merge(struct stat *t, const struct stat *other); /* adds the durations of `other` */
/* Adds durations that a node has counted. `buckets` may be unaligned; their numbers must be below ETW_BUCKETS. */
void stat_add_row(struct stat *t, const struct etw_row_sum *sum, const uint8_t *buckets, uint32_t nbuckets);
uint64_t stat_calls(const struct stat *s); /* returns the number of calls, also of those that made no event */
uint64_t stat_percentile(const struct stat *s, unsigned percent); /* returns the percentile in nanoseconds */
uint64_t stat_bucket_floor(size_t bucket); /* returns the lower bound of a bucket in nanoseconds */
void stats_sort(struct stats *s);          /* sorts by total time, then by count */

#endif

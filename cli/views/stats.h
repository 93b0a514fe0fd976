/*
 * Figures for each function (and each other kind of event): how often, how many failed, and how long it took as a
 * histogram (etw_bucket_of), so that a percentile is right within six percent. Bounded: what comes
 * after STATS_MAX different functions is counted together.
 */
#ifndef ETRACE_STATS_H
#define ETRACE_STATS_H

#include "../events/event.h"

#define STATS_MAX 16384

struct stat {
    const struct event_node *node; /* NULL: all of them together */
    const struct fun *fun; /* NULL: the kind of event, or everything else */
    uint8_t arity, kind;   /* kind 0: everything else */
    uint64_t events;       /* calls, or results where no call was seen */
    uint64_t errors;       /* exceptions */
    uint64_t timed;        /* of which the duration is known */
    uint64_t total_ns, max_ns;
    uint32_t *buckets;     /* NULL: nothing was timed */
};

struct stats {
    bool by_node; /* each node has figures of its own */
    struct stat *items;
    size_t n, cap;
    uint32_t *slots; /* hash to 1 + index */
    size_t nslots;
};

void stats_release(struct stats *s);
void stats_event(struct stats *s, const struct event *e); /* one of the VM's, or figures that the node has gathered */
uint64_t stat_percentile(const struct stat *s, unsigned percent); /* nanoseconds */
uint64_t stat_bucket_floor(size_t bucket);                         /* the least nanoseconds that fall into it */
void stats_sort(struct stats *s); /* by total time, then by number */
void stat_name(const struct stat *s, struct buf *to); /* with the node in front, where it is one's own */

#endif

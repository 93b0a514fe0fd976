/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of events counted by keys: for each key the number of events, and sums of values. Takes single events, and
 * rows that a node has counted.
 *
 * Bounded: after GROUPS_MAX keys or GROUPS_BYTES of memory, `other` counts the events with further keys. Pids, ports
 * and references of different nodes are different keys.
 */
#ifndef ETRACE_GROUP_TABLE_H
#define ETRACE_GROUP_TABLE_H

#include "../events/event.h"
#include "../ground/table.h"
#include "../lang/spec.h"
#include "group_sums.h"

#define GROUPS_MAX 100000
#define GROUPS_BYTES ((size_t)256 << 20) /* limit of memory, counted as if every histogram had all buckets */

/* A part of a key. ABSENT: the event has no such value. UNKNOWN: the value was not captured. */
enum group_part { GROUP_ABSENT, GROUP_UNKNOWN, GROUP_TERM };

struct group_key {
    uint32_t hash;
    const struct event_node *node; /* set if a part contains a pid, a port or a reference of that node, else NULL */
    bool cut;                      /* a part is incomplete, because the node has cut its term */
    bool otp27;                    /* print the terms of the key as OTP 27 does */
    struct str bytes; /* for each part, an enum group_part and the term in the normal form (wire_normal()) */
};

struct group {
    struct group_key key; /* owns its bytes */
    uint64_t count;
    struct group_sums *sums; /* one for each aggregate; unused for the aggregate `count` */
};

struct groups {
    const struct spec_by *by; /* borrowed */
    struct group *items;
    size_t n, cap, bytes;
    struct group other;
    struct table by_key;
    uint64_t unpaired; /* number of results that were not counted, because their calls are unknown */
    int64_t open;      /* number of calls whose key depends on a result that has not come yet */
};

struct groups *groups_new(const struct spec_by *by);
void groups_free(struct groups *g);
void groups_clear(struct groups *g); /* counts anew */

/*
 * Make the key of an event: call group_key_begin(), then group_key_add() for each part. `to` owns the bytes, which are
 * valid until `to` changes. For a GROUP_TERM, `at` is a term of the environment `env`.
 */
struct group_key group_key_begin(struct buf *to, const struct event *e);
void group_key_add(struct group_key *key, struct buf *to, const struct event *e, enum group_part part,
                   const struct term_env *env, const uint8_t *at);

/*
 * Adds the values of an event to its group, and returns the group. Also counts the event if `counts` is set. `values`
 * has an element for each aggregate. A key NULL means `other`, the group of the keys that had no room in the table.
 */
struct group *groups_event(struct groups *g, const struct group_key *key, bool counts,
                           const struct group_value *values);
/* Adds a row that a node has counted. A key NULL means `other`, as above. */
struct group *groups_row(struct groups *g, const struct group_key *key, uint64_t count, const struct group_sums *sums);

/* ---- reading ---- */

void groups_sort(struct groups *g); /* sorts by the first aggregate, the largest first; equal rows in a fixed order */
bool group_aggregate(const struct groups *g, const struct group *row, size_t which, struct group_number *ret);

/* Returns true if the values of the aggregate are durations, in nanoseconds. */
bool groups_is_duration(const struct groups *g, size_t which);
/*
 * Returns true if the clause `by` offers the aggregate with this text: count, max(dur), or p99(dur) if the clause has
 * quantiles(dur) or hist(dur). *ret_which is the index of the aggregate; for count it is the number of aggregates.
 * *ret_percent is 0 except for p99() and the like.
 */
bool groups_offer(const struct spec_by *by, struct str text, size_t *ret_which, unsigned *ret_percent);
/* Computes the value of the aggregate with this text. Returns false if the row has no value. */
bool groups_find(const struct groups *g, const struct group *row, struct str text, struct group_number *ret);
/* Returns how many values of an aggregate were no numbers, in all rows. */
uint64_t groups_skipped(const struct groups *g, size_t aggregate);
uint64_t groups_cut(const struct groups *g); /* returns the number of rows with a key that was cut */

enum group_part group_part_of(const struct group *row, size_t part, const uint8_t **ret_at);
struct term_env group_env(const struct group *row); /* returns the environment for the terms of the key */

#endif

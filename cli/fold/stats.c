/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <stdlib.h>
#include <string.h>

#include "../ground/mem.h"

void stats_release(struct stats *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->items[i].buckets);
    free(s->items);
    table_release(&s->by_function);
    *s = (struct stats){0};
}

static uint32_t stats_hash(const struct stat *t)
{
    return (t->fun ? t->fun->hash : 0) * 31u + t->arity * 7u + t->kind + (t->node ? t->node->index * 101u : 0);
}

static struct stat *stats_get(struct stats *s, const struct event_node *node, const struct fun *fun, uint8_t arity,
                              uint8_t kind)
{
    struct stat it = {.node = node, .fun = fun, .arity = arity, .kind = kind};
    uint32_t hash = stats_hash(&it);

    for (uint32_t step = 0, i; (i = table_next(&s->by_function, hash, &step)) != TABLE_NONE;) {
        struct stat *t = &s->items[i];
        if (t->node == node && t->fun == fun && t->arity == arity && t->kind == kind)
            return t;
    }
    if (s->n >= STATS_MAX && kind)
        return stats_get(s, NULL, NULL, 0, 0);
    s->items = mem_grow(s->items, &s->cap, s->n + 1, sizeof(*s->items));
    s->items[s->n] = it;
    table_add(&s->by_function, hash, (uint32_t)s->n);
    return &s->items[s->n++];
}

uint64_t stat_bucket_floor(size_t bucket)
{
    size_t power = bucket / ETW_STEPS + 2;

    if (bucket < ETW_STEPS)
        return bucket;
    return (uint64_t)(ETW_STEPS + bucket % ETW_STEPS) << (power - 3);
}

static void add_to_bucket(struct stat *t, uint32_t bucket, uint64_t count)
{
    if (!t->buckets)
        t->buckets = mem_zalloc(ETW_BUCKETS * sizeof(*t->buckets));
    t->buckets[bucket] += count;
}

static void add_times(struct stat *t, uint64_t timed, uint64_t total_ns, uint64_t min_ns, uint64_t max_ns)
{
    if (timed)
        t->min_ns = t->timed ? MIN(t->min_ns, min_ns) : min_ns;
    t->timed += timed;
    t->total_ns += total_ns;
    t->max_ns = MAX(t->max_ns, max_ns);
}

void stat_add(struct stat *t, uint64_t ns)
{
    add_to_bucket(t, etw_bucket_of(ns), 1);
    add_times(t, 1, ns, ns, ns);
}

void stat_merge(struct stat *t, const struct stat *other)
{
    for (uint32_t b = 0; other->buckets && b < ETW_BUCKETS; b++)
        if (other->buckets[b])
            add_to_bucket(t, b, other->buckets[b]);
    add_times(t, other->timed, other->total_ns, other->min_ns, other->max_ns);
}

static void add_buckets(struct stat *t, const uint8_t *at, uint32_t n)
{
    struct etw_bucket b;

    for (; n; n--, at += sizeof(b)) {
        memcpy(&b, at, sizeof(b));
        add_to_bucket(t, b.bucket, b.count);
    }
}

void stat_add_row(struct stat *t, const struct etw_row_sum *sum, const uint8_t *buckets, uint32_t nbuckets)
{
    add_buckets(t, buckets, nbuckets);
    add_times(t, sum->count, (uint64_t)sum->sum, (uint64_t)MAX(sum->least, 0), (uint64_t)MAX(sum->most, 0));
}

static void add_tally(struct stat *t, const struct etw_tally *tally, const uint8_t *buckets)
{
    add_buckets(t, buckets, tally->buckets);
    if (tally->counted) {
        t->counted += tally->events;
        t->estimated += tally->counted == 2 ? tally->events : 0;
        t->only_counted += tally->counted >= 2 ? tally->events : 0;
        return;
    }
    t->events += tally->events;
    t->errors += tally->errors;
    add_times(t, tally->timed, tally->total_ns, tally->min_ns, tally->max_ns);
}

/*
 * Returns true if a tally has figures to show. It has none if a filter hid all calls of the function. A tally may have
 * only durations, because these may come in a later tally than the results.
 */
static bool tally_shows(const struct etw_tally *tally)
{
    return tally->seen || tally->timed || tally->max_ns || tally->counted;
}

void stats_event(struct stats *s, const struct event *e)
{
    const struct event_node *node = s->by_node ? e->node : NULL;
    struct stat *t;

    if (e->tally) {
        if (tally_shows(e->tally))
            add_tally(e->fun ? stats_get(s, node, e->fun, e->arity, ETW_CALL) : stats_get(s, node, NULL, 0, 0),
                      e->tally, e->tally_buckets);
        return;
    }
    if (event_is_result(e)) {
        t = stats_get(s, node, e->fun, e->arity, ETW_CALL);
        if (!e->call)
            t->events++;
        t->errors += e->kind == ETW_EXCEPTION_FROM;
    } else {
        t = e->kind == ETW_CALL ? stats_get(s, node, e->fun, e->arity, ETW_CALL) : stats_get(s, node, NULL, 0, e->kind);
        t->events++;
    }
    if (e->dur_ns >= 0)
        stat_add(t, (uint64_t)e->dur_ns);
}

uint64_t stat_calls(const struct stat *s)
{
    return MAX(s->counted, s->events);
}

uint64_t stat_percentile(const struct stat *s, unsigned percent)
{
    uint64_t want = (s->timed * percent + 99) / 100, seen = 0;

    if (want == s->timed) /* the maximum is known exactly */
        return s->max_ns;
    for (size_t b = 0; s->buckets && b < ETW_BUCKETS; b++) {
        seen += s->buckets[b];
        if (seen >= want && seen) {
            uint64_t middle = (stat_bucket_floor(b) + stat_bucket_floor(b + 1)) / 2;
            return MAX(MIN(middle, s->max_ns), s->min_ns);
        }
    }
    return s->max_ns;
}

static int stats_by_name(const struct stat *x, const struct stat *y)
{
    const int module = str_order(raw_view(x->fun->module), raw_view(y->fun->module));
    const int name = module ? module : str_order(raw_view(x->fun->name), raw_view(y->fun->name));

    return name ? name : x->arity - y->arity;
}

static int stats_order(const void *a, const void *b)
{
    const struct stat *x = a, *y = b;

    if (x->total_ns != y->total_ns)
        return x->total_ns < y->total_ns ? 1 : -1;
    if (stat_calls(x) != stat_calls(y))
        return stat_calls(x) < stat_calls(y) ? 1 : -1;
    if (x->node && y->node && x->node != y->node)
        return x->node->index < y->node->index ? -1 : 1;
    if (x->fun && y->fun)
        return stats_by_name(x, y);
    if (!x->fun != !y->fun)
        return x->fun ? -1 : 1;
    return x->kind - y->kind;
}

void stats_sort(struct stats *s)
{
    if (!s->n)
        return;
    qsort(s->items, s->n, sizeof(*s->items), stats_order);
    table_clear(&s->by_function);
    for (size_t i = 0; i < s->n; i++)
        table_add(&s->by_function, stats_hash(&s->items[i]), (uint32_t)i);
}

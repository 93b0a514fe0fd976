/* SPDX-License-Identifier: Apache-2.0 */
#include "group_table.h"

#include <stdlib.h>

#include "../erlang/wire_order.h"
#include "../ground/mem.h"

struct groups *groups_new(const struct spec_by *by)
{
    struct groups *g = mem_zalloc(sizeof(*g));

    g->by = by;
    g->other.sums = mem_zalloc(by->naggregates * sizeof(*g->other.sums));
    return g;
}

static void group_release(const struct groups *g, struct group *row)
{
    for (size_t i = 0; i < g->by->naggregates; i++)
        group_sums_release(&row->sums[i]);
    free(row->sums);
    free((char *)(uintptr_t)row->key.bytes.at);
}

static void release_rows(struct groups *g)
{
    for (size_t i = 0; i < g->n; i++)
        group_release(g, &g->items[i]);
    group_release(g, &g->other);
}

void groups_free(struct groups *g)
{
    release_rows(g);
    free(g->items);
    table_release(&g->by_key);
    free(g);
}

void groups_clear(struct groups *g)
{
    release_rows(g);
    g->n = g->bytes = 0;
    g->unpaired = 0;
    g->open = 0;
    g->other = (struct group){.sums = mem_zalloc(g->by->naggregates * sizeof(*g->other.sums))};
    table_clear(&g->by_key);
}

/* ---- keys ---- */

struct group_key group_key_begin(struct buf *to, const struct event *e)
{
    buf_clear(to);
    return (struct group_key){.hash = HASH_BEGIN, .otp27 = e->env.otp27};
}

/*
 * Sets key->cut if the term was cut. Sets key->node if the term contains a pid, a port or a reference, because an equal
 * pid on another node is another process.
 */
static void look_into(struct group_key *key, const struct event *e, const uint8_t *at)
{
    struct raw bytes;
    uint64_t size;

    for (const uint8_t *end = wire_skip(at); at < end; at = wire_token(at)) {
        const bool is_ref = *at == ETW_T_TEXT && at[1] == ETW_TEXT_REF;
        if (*at == ETW_T_PID || *at == ETW_T_PORT || is_ref)
            key->node = e->node;
        key->cut |= *at == ETW_T_CUT || *at == ETW_T_ELIDED || (wire_bin(at, &bytes, &size) && bytes.len < size);
    }
}

void group_key_add(struct group_key *key, struct buf *to, const struct event *e, enum group_part part,
                   const struct term_env *env, const uint8_t *at)
{
    const size_t from = to->len;

    buf_char(to, (char)part);
    if (part == GROUP_TERM) {
        wire_normal(to, env, at);
        look_into(key, e, (const uint8_t *)to->data + from + 1);
    }
    key->hash = hash_text(key->hash, (struct str){to->data + from, to->len - from});
    key->bytes = buf_view(to);
}

static bool same_key(const struct group_key *a, const struct group_key *b)
{
    return a->node == b->node && str_same(a->bytes, b->bytes);
}

static bool has_buckets(const struct groups *g, size_t which)
{
    return g->by->aggregates[which].kind >= BY_HIST;
}

/* Returns the memory of a key and its sums in bytes, counted as if each histogram had all buckets. */
static size_t memory_of_key(const struct groups *g, const struct group_key *key)
{
    size_t bytes = sizeof(struct group) + key->bytes.len + g->by->naggregates * sizeof(struct group_sums);

    for (size_t i = 0; i < g->by->naggregates; i++)
        bytes += has_buckets(g, i) ? GROUP_BUCKETS_MOST * sizeof(uint64_t) : 0;
    return bytes;
}

/* Finds or adds the group of a key. Returns `other` if the table is full. */
static struct group *group_of(struct groups *g, const struct group_key *key)
{
    const uint32_t hash = key->hash;

    for (uint32_t step = 0, i; (i = table_next(&g->by_key, hash, &step)) != TABLE_NONE;)
        if (same_key(&g->items[i].key, key))
            return &g->items[i];
    const size_t bytes = memory_of_key(g, key);
    if (g->n == GROUPS_MAX || bytes > GROUPS_BYTES - g->bytes)
        return &g->other;
    g->bytes += bytes;
    g->items = mem_grow(g->items, &g->cap, g->n + 1, sizeof(*g->items));
    struct group *row = &g->items[g->n];
    *row = (struct group){.key = *key};
    row->key.bytes.at = mem_strndup(key->bytes.at, key->bytes.len);
    row->sums = mem_zalloc(g->by->naggregates * sizeof(*row->sums));
    table_add(&g->by_key, hash, (uint32_t)g->n++);
    return row;
}

struct group *groups_event(struct groups *g, const struct group_key *key, bool counts, const struct group_value *values)
{
    struct group *row = key ? group_of(g, key) : &g->other;

    row->count += counts;
    for (size_t i = 0; i < g->by->naggregates; i++)
        group_sums_add(&row->sums[i], values[i], has_buckets(g, i));
    return row;
}

struct group *groups_row(struct groups *g, const struct group_key *key, uint64_t count, const struct group_sums *sums)
{
    struct group *row = key ? group_of(g, key) : &g->other;

    row->count += count;
    for (size_t i = 0; i < g->by->naggregates; i++)
        group_sums_merge(&row->sums[i], &sums[i]);
    return row;
}

/* ---- reading ---- */

bool group_aggregate(const struct groups *g, const struct group *row, size_t which, struct group_number *ret)
{
    const struct group_sums *s = &row->sums[which];

    *ret = (struct group_number){.i = (int64_t)s->n};
    switch (g->by->aggregates[which].kind) {
    case BY_COUNT:
        *ret = (struct group_number){.i = (int64_t)row->count};
        return true;
    case BY_SUM:
        *ret = s->reals ? (struct group_number){.real = true, .d = (double)(s->whole + s->real)}
                        : (struct group_number){.i = s->whole};
        break;
    case BY_MIN:
        *ret = s->min;
        break;
    case BY_MAX:
        *ret = s->max;
        break;
    case BY_AVG:
        if (s->n)
            *ret = group_average(s, groups_is_duration(g, which));
        break;
    case BY_HIST:
    case BY_QUANTILES:
    case BY_KINDS:
        break;
    }
    return s->n > 0;
}

static void skip_blanks(struct str *s)
{
    while (s->len && strchr(" \t\r\n", *s->at))
        s->at++, s->len--;
}

/* Returns true if the texts of two expressions differ only in blanks outside of quotes. */
static bool same_text(struct str a, struct str b)
{
    char quote = 0;

    for (;; a.at++, a.len--, b.at++, b.len--) {
        if (!quote) {
            skip_blanks(&a);
            skip_blanks(&b);
        }
        if (!a.len || !b.len)
            return a.len == b.len;
        if (*a.at != *b.at)
            return false;
        if (quote && *a.at == '\\' && a.len > 1 && b.len > 1 && a.at[1] == b.at[1])
            a.at++, a.len--, b.at++, b.len--;
        else if (quote ? *a.at == quote : strchr("'\"", *a.at) != NULL)
            quote = quote ? 0 : *a.at;
    }
}

/* Returns true if both texts have the same expression in parentheses. */
static bool same_value(struct str aggregate, struct str text)
{
    const char *x = memchr(aggregate.at, '(', aggregate.len), *y = memchr(text.at, '(', text.len);

    return x && y &&
           same_text((struct str){x, aggregate.len - (size_t)(x - aggregate.at)},
                     (struct str){y, text.len - (size_t)(y - text.at)});
}

bool groups_offer(const struct spec_by *by, struct str text, size_t *ret_which, unsigned *ret_percent)
{
    const bool quantile = text.len > 3 && text.at[0] == 'p' && text.at[3] == '(';

    *ret_percent = quantile ? (unsigned)atoi(text.at + 1) : 0;
    *ret_which = by->naggregates;
    if (str_is(text, "count"))
        return true;
    for (*ret_which = 0; *ret_which < by->naggregates; ++*ret_which) {
        const struct by_aggregate *a = &by->aggregates[*ret_which];
        if (quantile ? a->kind >= BY_HIST && same_value(a->text, text) : same_text(a->text, text))
            return true;
    }
    return false;
}

bool groups_find(const struct groups *g, const struct group *row, struct str text, struct group_number *ret)
{
    unsigned percent;
    size_t which;

    if (!groups_offer(g->by, text, &which, &percent))
        return false;
    if (percent)
        return group_quantile(&row->sums[which], percent, ret);
    if (which < g->by->naggregates)
        return group_aggregate(g, row, which, ret);
    *ret = (struct group_number){.i = (int64_t)row->count};
    return true;
}

bool groups_is_duration(const struct groups *g, size_t which)
{
    const struct where *value = g->by->aggregates[which].value;

    return value && value->kind == WT_DURATION;
}

static const struct term_env no_names;

/* Compares keys in Erlang's order. Keys that were cut are compared by their bytes. */
static int compare_keys(const struct groups *g, const struct group *x, const struct group *y)
{
    const struct group_key *a = &x->key, *b = &y->key;
    const uint8_t *m, *n;

    for (size_t i = 0; i < g->by->nkeys; i++) {
        const enum group_part p = group_part_of(x, i, &m), q = group_part_of(y, i, &n);
        const enum wire_order terms =
            p == GROUP_TERM && q == GROUP_TERM ? wire_compare(&no_names, m, &no_names, n, true) : WIRE_EQUAL;
        if (p != q)
            return p < q ? -1 : 1;
        if (terms == WIRE_LESS || terms == WIRE_GREATER)
            return terms;
    }
    const int order = str_order(a->bytes, b->bytes);

    if (order)
        return order;
    return a->node && b->node ? (a->node->index > b->node->index) - (a->node->index < b->node->index) : 0;
}

static int groups_order(const void *a, const void *b, void *data)
{
    const struct group *x = a, *y = b;
    struct group_number m, n;
    const bool has_m = group_aggregate(data, x, 0, &m), has_n = group_aggregate(data, y, 0, &n);

    if (has_m != has_n)
        return has_m ? -1 : 1;
    const int order = has_m ? group_number_compare(n, m) : 0;
    if (order || x->count != y->count)
        return order ? order : x->count < y->count ? 1 : -1;
    return compare_keys(data, x, y);
}

void groups_sort(struct groups *g)
{
    if (!g->n)
        return;
    qsort_r(g->items, g->n, sizeof(*g->items), groups_order, g);
    table_clear(&g->by_key);
    for (size_t i = 0; i < g->n; i++)
        table_add(&g->by_key, g->items[i].key.hash, (uint32_t)i);
}

enum group_part group_part_of(const struct group *row, size_t part, const uint8_t **ret_at)
{
    const uint8_t *at = (const uint8_t *)row->key.bytes.at;

    while (part--)
        at = *at == GROUP_TERM ? wire_skip(at + 1) : at + 1;
    *ret_at = at + 1;
    return (enum group_part) * at;
}

struct term_env group_env(const struct group *row)
{
    return (struct term_env){.otp27 = row->key.otp27};
}

uint64_t groups_skipped(const struct groups *g, size_t aggregate)
{
    uint64_t n = g->other.sums[aggregate].skipped;

    for (size_t i = 0; i < g->n; i++)
        n += g->items[i].sums[aggregate].skipped;
    return n;
}

uint64_t groups_cut(const struct groups *g)
{
    uint64_t n = 0;

    for (size_t i = 0; i < g->n; i++)
        n += g->items[i].key.cut;
    return n;
}

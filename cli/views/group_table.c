/* SPDX-License-Identifier: Apache-2.0 */
#include "group_table.h"

#include <math.h>
#include <stdlib.h>

#include "../erlang/wire_order.h"
#include "../ground/mem.h"
#include "line.h"
#include "stats.h"

#define BUCKET_COUNT ((UINT64_C(1) << 48) - 1)

struct groups *groups_new(const struct spec_by *by)
{
    struct groups *g = mem_zalloc(sizeof(*g));

    g->by = by;
    g->other.sums = mem_zalloc(by->naggregates * sizeof(*g->other.sums));
    return g;
}

void group_sums_release(struct group_sums *s)
{
    free(s->buckets);
    *s = (struct group_sums){0};
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

/* ---- numbers ---- */

static int compare_numbers(struct group_number a, struct group_number b)
{
    if (!a.real && !b.real)
        return (a.i > b.i) - (a.i < b.i);
    const long double x = a.real ? (long double)a.d : (long double)a.i, y = b.real ? (long double)b.d : (long double)b.i;
    return (x > y) - (x < y);
}

/* ---- buckets ---- */

/*
 * Bucket 0 has the value 0. Each power of two on both sides has ETW_STEPS buckets, so an integer that a node counted has
 * a bucket here for its bucket there. A bucket includes its lower bound, also among the negative numbers.
 */
#define EXPONENT_LEAST (-1073) /* of frexp(), for the least float */
#define EXPONENT_MOST 1024     /* for the largest one */
#define BUCKET_BIAS ((EXPONENT_MOST - EXPONENT_LEAST + 2) * ETW_STEPS)
#define BUCKETS_MOST 1024u /* of one histogram: 128 powers of two; further values are added to the bucket beside them */

_Static_assert(2 * BUCKET_BIAS < UINT16_MAX, "the number of a bucket has 16 bits");

/* An integer of 64 bits keeps all its bits in a long double. */
static int bucket_of(struct group_number n)
{
    const long double d = n.real ? (long double)n.d : (long double)n.i;
    int exponent;

    if (d == 0)
        return 0;
    const long double steps = frexpl(fabsl(d), &exponent) * 2 * ETW_STEPS;
    const int step = (d < 0 ? (int)ceill(steps) - 1 : (int)steps) - ETW_STEPS; /* -1: the power of two below */
    const int bucket = (exponent - EXPONENT_LEAST + 1) * ETW_STEPS + step;
    return d < 0 ? -bucket : bucket;
}

/* The power of two above the numbers of a bucket. */
static int exponent_of(int bucket)
{
    return abs(bucket) / ETW_STEPS + EXPONENT_LEAST - 1;
}

/* A number in a bucket, without its sign: 0 is its bound next to zero, 1 is the other one. */
static double within_bucket(int bucket, double part)
{
    return ldexp(ETW_STEPS + abs(bucket) % ETW_STEPS + part, exponent_of(bucket) - 4);
}

static void insert_bucket(struct group_sums *s, uint32_t i, uint64_t biased)
{
    size_t cap = s->cap;

    s->buckets = mem_grow(s->buckets, &cap, s->nbuckets + 1, sizeof(*s->buckets));
    s->cap = (uint32_t)cap;
    memmove(s->buckets + i + 1, s->buckets + i, (s->nbuckets - i) * sizeof(*s->buckets));
    s->buckets[i] = biased << 48;
    s->nbuckets++;
}

static void add_bucket(struct group_sums *s, int bucket, uint64_t count)
{
    const uint64_t biased = (uint64_t)(bucket + BUCKET_BIAS);
    uint32_t i = s->nbuckets; /* from the end, because the buckets of a node come in order */

    while (i && s->buckets[i - 1] >> 48 >= biased)
        i--;
    if (s->nbuckets == BUCKETS_MOST)
        i = MIN(i, BUCKETS_MOST - 1);
    else if (i == s->nbuckets || s->buckets[i] >> 48 != biased)
        insert_bucket(s, i, biased);
    s->buckets[i] += MIN(count, BUCKET_COUNT - (s->buckets[i] & BUCKET_COUNT));
}

void group_sums_bucket(struct group_sums *s, uint32_t bucket, uint64_t count)
{
    add_bucket(s, bucket_of((struct group_number){.i = (int64_t)stat_bucket_floor(bucket)}), count);
}

static int bucket_at(const struct group_sums *s, uint32_t i, uint64_t *ret_count)
{
    *ret_count = s->buckets[i] & BUCKET_COUNT;
    return (int)(s->buckets[i] >> 48) - BUCKET_BIAS;
}

/* ---- sums ---- */

static void add_whole(struct group_sums *s, int64_t n)
{
    if (!__builtin_add_overflow(s->whole, n, &s->whole))
        return;
    s->whole = (int64_t)((uint64_t)s->whole - (uint64_t)n); /* undo: the result had wrapped */
    s->real += n;
    s->reals = true;
}

static void add_extremes(struct group_sums *s, struct group_number min, struct group_number max)
{
    if (!s->n || compare_numbers(min, s->min) < 0)
        s->min = min;
    if (!s->n || compare_numbers(max, s->max) > 0)
        s->max = max;
}

void group_sums_add(struct group_sums *s, struct group_value v, bool buckets)
{
    if (v.is != GROUP_NUMBER) {
        s->skipped += v.is == GROUP_SKIPPED;
        return;
    }
    add_extremes(s, v.number, v.number);
    s->n++;
    if (v.number.real) {
        s->real += v.number.d;
        s->reals = s->floats = true;
    } else {
        add_whole(s, v.number.i);
    }
    if (buckets)
        add_bucket(s, bucket_of(v.number), 1);
}

void group_sums_merge(struct group_sums *s, const struct group_sums *other)
{
    if (other->n)
        add_extremes(s, other->min, other->max);
    s->n += other->n;
    s->skipped += other->skipped;
    s->real += other->real;
    s->reals |= other->reals;
    s->floats |= other->floats;
    add_whole(s, other->whole);
    for (uint32_t i = 0; i < other->nbuckets; i++) {
        uint64_t count;
        const int bucket = bucket_at(other, i, &count);
        add_bucket(s, bucket, count);
    }
}

/* ---- keys ---- */

struct group_key group_key_begin(struct buf *to, const struct event *e)
{
    buf_clear(to);
    return (struct group_key){.hash = HASH_BEGIN, .otp27 = e->env.otp27};
}

/* Whether the term has a pid, a port or a reference, which other nodes may have, too; and whether it was cut. */
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

/* The memory of a key, as if its histograms had all buckets. */
static size_t weight(const struct groups *g, const struct group_key *key)
{
    size_t bytes = sizeof(struct group) + key->bytes.len + g->by->naggregates * sizeof(struct group_sums);

    for (size_t i = 0; i < g->by->naggregates; i++)
        bytes += has_buckets(g, i) ? BUCKETS_MOST * sizeof(uint64_t) : 0;
    return bytes;
}

/* Finds the group of a key, or makes it, or returns `other` if the table is full. */
static struct group *group_of(struct groups *g, const struct group_key *key)
{
    const uint32_t hash = key->hash;

    for (uint32_t step = 0, i; (i = table_next(&g->by_key, hash, &step)) != TABLE_NONE;)
        if (same_key(&g->items[i].key, key))
            return &g->items[i];
    const size_t bytes = weight(g, key);
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

/* The middle of the integers of a bucket. */
static int64_t middle_integer(int bucket)
{
    const double low = within_bucket(bucket, 0), high = within_bucket(bucket, 1);

    if (bucket >= 0) {
        const int64_t least = (int64_t)ceil(low);
        return least + ((int64_t)(ceil(high) - 1) - least) / 2;
    }
    const uint64_t least = (uint64_t)floor(low) + 1;
    return (int64_t)(0 - (least + ((uint64_t)floor(high) - least) / 2));
}

/* Returns the middle of a bucket, or the smallest or largest value if the middle is beyond it. */
static struct group_number middle_of(const struct group_sums *s, int bucket)
{
    const double middle = bucket ? within_bucket(bucket, 0.5) : 0;
    struct group_number of = {.real = true, .d = bucket < 0 ? -middle : middle};

    if (!s->floats)
        of = (struct group_number){.i = bucket ? middle_integer(bucket) : 0};
    return compare_numbers(of, s->min) < 0 ? s->min : compare_numbers(of, s->max) > 0 ? s->max : of;
}

bool group_quantile(const struct group_sums *s, unsigned percent, struct group_number *ret)
{
    const uint64_t want = (s->n * percent + 99) / 100;
    uint64_t seen = 0, count;

    if (!s->n)
        return false;
    *ret = s->max;
    for (uint32_t i = 0; i < s->nbuckets && seen < want && want < s->n; i++) {
        const int bucket = bucket_at(s, i, &count);
        seen += count;
        if (seen >= want)
            *ret = middle_of(s, bucket);
    }
    return true;
}

static struct group_number power_of_two(int power, int sign)
{
    if (power >= 0 && power < 63)
        return (struct group_number){.i = sign * (INT64_C(1) << power)};
    return (struct group_number){.real = true, .d = sign * ldexp(1, power)};
}

struct group_rows group_rows(const struct group_sums *s)
{
    struct group_rows r = {.sums = s, .above = 0, .below = 0};

    for (uint32_t i = 0; i < s->nbuckets; i++) {
        uint64_t count;
        const int bucket = bucket_at(s, i, &count), power = exponent_of(bucket);
        if (bucket > 0)
            r.above = MIN(r.above, power - 1);
        else if (bucket < 0)
            r.below = MIN(r.below, power);
    }
    return r;
}

static int row_of_bucket(const struct group_rows *r, int bucket)
{
    return bucket > 0 ? exponent_of(bucket) - r->above : bucket ? r->below - 1 - exponent_of(bucket) : 0;
}

bool group_row_from(const struct group_rows *r, int row, struct group_number *ret)
{
    *ret = row > 0 ? power_of_two(row - 1 + r->above, 1)
           : row   ? power_of_two(r->below - 1 - row, -1)
                   : (struct group_number){0};
    return !ret->real || isfinite(ret->d);
}

bool group_next_row(struct group_rows *r, struct group_row *ret)
{
    const struct group_sums *s = r->sums;
    uint64_t count;

    if (r->next == s->nbuckets)
        return false;
    *ret = (struct group_row){.number = row_of_bucket(r, bucket_at(s, r->next, &count))};
    for (; r->next < s->nbuckets && row_of_bucket(r, bucket_at(s, r->next, &count)) == ret->number; r->next++)
        ret->count += count;
    return true;
}

static struct group_number average(const struct group_sums *s, bool duration)
{
    if (!s->reals && (duration || s->whole % (int64_t)s->n == 0))
        return (struct group_number){.i = s->whole / (int64_t)s->n};
    return (struct group_number){.real = true, .d = (double)((s->whole + s->real) / s->n)};
}

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
            *ret = average(s, groups_is_duration(g, which));
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

/* Whether the texts of two expressions differ only in blanks outside of quotes. */
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

/* Whether the two texts end in the same value in brackets. */
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

/* Compares keys in Erlang's order; keys that were cut compare by their bytes. */
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
    const int order = memcmp(a->bytes.at, b->bytes.at, MIN(a->bytes.len, b->bytes.len));

    if (order || a->bytes.len != b->bytes.len)
        return order ? order : (a->bytes.len > b->bytes.len) - (a->bytes.len < b->bytes.len);
    return a->node && b->node ? (a->node->index > b->node->index) - (a->node->index < b->node->index) : 0;
}

static int groups_order(const void *a, const void *b, void *data)
{
    const struct group *x = a, *y = b;
    struct group_number m, n;
    const bool has_m = group_aggregate(data, x, 0, &m), has_n = group_aggregate(data, y, 0, &n);

    if (has_m != has_n)
        return has_m ? -1 : 1;
    const int order = has_m ? compare_numbers(n, m) : 0;
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

/* Whether the value is a name that other views print without quotes. */
static bool is_name(const struct where *w)
{
    static const enum property names[] = {PROPERTY_node, PROPERTY_name, PROPERTY_type, PROPERTY_m, PROPERTY_f};
    bool is = false;

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        is = is || (w->type == WHERE_NAME && w->property == names[i]);
    return is;
}

void group_put_part(struct buf *to, const struct groups *g, const struct group *row, size_t part,
                    const struct printer *printer)
{
    const struct by_key *key = &g->by->keys[part];
    const uint8_t *at;
    const enum group_part is = group_part_of(row, part, &at);
    const struct event e = {.env = group_env(row)};
    struct raw name;

    if (is != GROUP_TERM)
        buf_puts(to, is == GROUP_ABSENT ? "-" : "(unknown)");
    else if (!key->tag && key->value->kind == WT_FUNCTION)
        line_mfa(to, &e, printer, at);
    else if (!key->tag && key->value->type == WHERE_NAME && key->value->property == PROPERTY_stack)
        line_stack(to, &e, printer, at);
    else if (!key->tag && is_name(key->value) && wire_atom(&e.env, at, &name))
        print_safe(to, name);
    else
        printer->term(to, &e.env, at);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Counts by keys: the bound of the table, rows that were added up elsewhere, equal keys, and large sums. */
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "lang/lang.h"
#include "tap.h"
#include "fold/group_table.h"

#define KEYS 1000000u

static const struct event_node nodes[2] = {{.index = 0}, {.index = 1}};

static const struct spec_by *compile(struct arena *a, const char *text)
{
    const struct spec_by *by = NULL;
    struct err e;

    if (!lang_by(&(struct lang_options){0}, (struct str){text, strlen(text)}, a, &by, &e))
        printf("# %s\n", e.text);
    return by;
}

static struct group_key key_of(struct buf *to, const uint8_t *at, unsigned node)
{
    const struct event e = {.node = &nodes[node]};
    struct group_key key = group_key_begin(to, &e);

    group_key_add(&key, to, &e, at ? GROUP_TERM : GROUP_ABSENT, &e.env, at);
    return key;
}

static struct group_value number(int64_t n)
{
    return (struct group_value){GROUP_NUMBER, {.i = n}};
}

static void add_int(struct groups *g, struct buf *to, uint32_t key, int64_t value)
{
    uint8_t term[5] = {ETW_T_INT32};
    const struct group_value values[] = {{0}, number(value)};

    memcpy(term + 1, &key, sizeof(key));
    const struct group_key k = key_of(to, term, 0);
    groups_event(g, &k, true, values);
}

static void many_keys(struct arena *a)
{
    struct groups *g = groups_new(compile(a, "args[1]: count, sum(size)"));
    struct buf to = {0};
    struct rusage use;
    uint64_t count = 0;
    int64_t sum = 0;

    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = 0; i < KEYS; i++)
            add_int(g, &to, i, i);
    for (size_t i = 0; i < g->n; i++) {
        count += g->items[i].count;
        sum += g->items[i].sums[1].whole;
    }
    getrusage(RUSAGE_SELF, &use);
    ok(g->n == GROUPS_MAX, "a table keeps %u keys of %u", GROUPS_MAX, KEYS);
    ok(count == 2 * GROUPS_MAX && g->other.count == 2 * (KEYS - GROUPS_MAX), "the others are counted together");
    ok(sum + g->other.sums[1].whole == (int64_t)KEYS * (KEYS - 1), "the sums add up to those of all events");
    ok(use.ru_maxrss < 200 * 1024, "the memory stays below 200 MB: %ld kB", use.ru_maxrss);
    groups_free(g);
    buf_release(&to);
}

static void histograms(struct arena *a)
{
    struct groups *g = groups_new(compile(a, "args[1]: hist(size), quantiles(size)"));
    struct buf to = {0};

    for (uint32_t i = 0; i < GROUPS_MAX; i++)
        add_int(g, &to, i, i);
    ok(g->n < GROUPS_MAX && g->n > 10000 && g->bytes <= GROUPS_BYTES,
       "histograms count in the bound of memory: %zu keys", g->n);
    ok(g->n + g->other.count == GROUPS_MAX, "no event is left out");
    groups_free(g);
    buf_release(&to);
}

static void equal_keys(struct arena *a)
{
    /* 1, 1 as 64 bits, 1.0, [1,2], "\1\2", a map in two orders, a pid on two nodes */
    static const uint8_t one[] = {1}, wide[] = {ETW_T_INT64, 1, 0, 0, 0, 0, 0, 0, 0},
                         real[] = {ETW_T_FLOAT, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, list[] = {ETW_T_LIST, 1, 2, ETW_T_END},
                         text[] = {ETW_T_STRING, 2, 0, 1, 2}, map[] = {ETW_T_MAP, 2, 0, 0, 0, 1, 5, 2, 6},
                         pam[] = {ETW_T_MAP, 2, 0, 0, 0, 2, 6, 1, 5}, pid[] = {ETW_T_PID, 7, 0, 0, 0, 0, 0, 0, 0};
    static const struct {
        const uint8_t *term;
        unsigned node;
    } keys[] = {{one, 0}, {wide, 1}, {real, 0}, {list, 0}, {text, 1}, {map, 0},
                {pam, 1}, {pid, 0},  {pid, 1},  {NULL, 0}, {NULL, 1}};
    struct groups *g = groups_new(compile(a, "args[1]"));
    const struct group_value none = {0};
    struct buf to = {0};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct group_key k = key_of(&to, keys[i].term, keys[i].node);
        groups_event(g, &k, true, &none);
    }
    ok(g->n == 7, "equal terms are one key, however they are encoded: %zu keys", g->n);
    groups_sort(g);
    ok(g->items[0].count == 2 && g->items[6].count == 1, "the keys with the most events are first");
    groups_free(g);
    buf_release(&to);
}

/*
 * Each pair is one term in two encodings. The comparison of terms decides about none of them, because they have a part
 * that was not captured, or that is a text.
 */
static void equal_keys_of_texts(struct arena *a)
{
#define WIDE(n) ETW_T_INT64, n, 0, 0, 0, 0, 0, 0, 0
#define TYPE ETW_T_TEXT, ETW_TEXT_OTHER, 6, 0, 'l', 'i', 's', 't', '(', ')'
#define ATOM(c) ETW_T_ATOMTEXT, 1, 0, c
    static const uint8_t terms[][2][64] = {
        {{ETW_T_TUPLE0 + 2, 1, TYPE}, {ETW_T_TUPLE0 + 2, WIDE(1), TYPE}},
        {{ETW_T_MAP, 2, 0, 0, 0, ATOM('a'), TYPE, ATOM('b'), 1},
         {ETW_T_MAP, 2, 0, 0, 0, ATOM('b'), 1, ATOM('a'), TYPE}},
        {{ETW_T_TUPLE0 + 2, 7, ETW_T_REDACTED}, {ETW_T_TUPLE, 2, 0, 0, 0, WIDE(7), ETW_T_REDACTED}},
        {{ETW_T_LIST, 1, 2, ETW_T_CUT}, {ETW_T_LIST, WIDE(1), WIDE(2), ETW_T_CUT}},
        {{ETW_T_MAP, 3, 0, 0, 0, 2, 2, ATOM('b'), 1, ETW_T_CUT},
         {ETW_T_MAP, 3, 0, 0, 0, ATOM('b'), 1, WIDE(2), 2, ETW_T_CUT}},
        {{ETW_T_TUPLE0 + 2, ETW_T_BIGPOS, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, TYPE},
         {ETW_T_TUPLE0 + 2, ETW_T_BIGPOS, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, TYPE}},
        {{ETW_T_TUPLE0 + 2, ETW_T_STRING, 2, 0, 200, 3, TYPE},
         {ETW_T_TUPLE0 + 2, ETW_T_LIST, WIDE(200), 3, ETW_T_END, TYPE}},
    };
    const size_t n = sizeof terms / sizeof *terms;
    struct groups *g = groups_new(compile(a, "args[1]"));
    const struct group_value none = {0};
    struct buf to = {0};
    bool twice = true;

    for (size_t i = 0; i < 2 * n; i++) {
        const struct group_key k = key_of(&to, terms[i % n][i / n], 0);
        groups_event(g, &k, true, &none);
    }
    for (size_t i = 0; i < g->n; i++)
        twice &= g->items[i].count == 2;
    ok(g->n == n && twice, "equal keys with texts, cuts and secrets are one key: %zu keys of %zu", g->n, n);
    groups_free(g);
    buf_release(&to);
}

static void rows(struct arena *a)
{
    static const uint8_t term[] = {1};
    const struct spec_by *by = compile(a, "args[1]: count, sum(size), hist(size), quantiles(size), avg(size)");
    struct groups *g = groups_new(by), *whole = groups_new(by);
    struct buf to = {0};
    struct group_number n, m;
    bool same = true;

    for (unsigned i = 0; i < 1000; i++) {
        const struct group_value v = i % 10 ? number((int64_t)i * i - 5) : (struct group_value){GROUP_SKIPPED, {0}};
        const struct group_value values[] = {{0}, v, v, v, v};
        const struct group_key k = key_of(&to, term, 0);
        groups_event(whole, &k, true, values);
        if (i % 2) {
            groups_event(g, &k, true, values);
        } else {
            struct group_sums sums[5] = {0};
            for (size_t j = 1; j < 5; j++)
                group_sums_add(&sums[j], values[j], j == 2 || j == 3);
            groups_row(g, &k, 1, sums);
            for (size_t j = 1; j < 5; j++)
                group_sums_release(&sums[j]);
        }
    }
    for (size_t j = 0; j < 5; j++) {
        same &= group_aggregate(g, &g->items[0], j, &n) && group_aggregate(whole, &whole->items[0], j, &m);
        same &= n.real == m.real && n.i == m.i && g->items[0].sums[j].skipped == whole->items[0].sums[j].skipped;
    }
    for (unsigned p = 1; p < 100; p++)
        same &= group_quantile(&g->items[0].sums[3], p, &n) && group_quantile(&whole->items[0].sums[3], p, &m) &&
                n.i == m.i;
    struct group_row row, other;
    struct group_rows of_events = group_rows(&whole->items[0].sums[2]), of_rows = group_rows(&g->items[0].sums[2]);
    while (group_next_row(&of_events, &row))
        same &= group_next_row(&of_rows, &other) && row.number == other.number && row.count == other.count;
    ok(same && !group_next_row(&of_rows, &other),
       "rows that were added up elsewhere give the same figures as their events");
    groups_free(g);
    groups_free(whole);
    buf_release(&to);
}

static void large_sums(void)
{
    struct group_sums s = {0};

    for (int i = 0; i < 4; i++)
        group_sums_add(&s, number(INT64_MAX), false);
    group_sums_add(&s, (struct group_value){GROUP_NUMBER, {.real = true, .d = 0.5}}, false);
    const double sum = (double)(s.whole + s.real);
    ok(s.reals && sum > 3.6e19 && sum < 3.7e19, "a sum that exceeds 64 bits goes on as a floating-point number");
    ok(s.min.real && s.min.d == 0.5 && !s.max.real && s.max.i == INT64_MAX,
       "integers and floats compare by their values");
}

/* The counts of a forged row may be any numbers. */
static void forged_counts(void)
{
    static const uint64_t counts[] = {UINT64_MAX, UINT64_C(1) << 63};
    bool right = true;

    for (size_t i = 0; i < 2; i++)
        for (int duration = 0; duration < 2; duration++) {
            const struct group_sums s = {.n = counts[i], .whole = INT64_MIN};
            const struct group_number n = group_average(&s, duration);
            right &= n.real && n.d <= -0.5 && n.d >= -1;
        }
    ok(right, "a count of more than 63 bits has an average");
}

static struct group_value real(double d)
{
    return (struct group_value){GROUP_NUMBER, {.real = true, .d = d}};
}

/* Whether the quantile of the numbers, in percent, is that number. */
static bool quantile_is(const int64_t *numbers, size_t n, unsigned percent, int64_t is)
{
    struct group_sums s = {0};
    struct group_number q;

    for (size_t i = 0; i < n; i++)
        group_sums_add(&s, number(numbers[i]), true);
    const bool same = group_quantile(&s, percent, &q) && !q.real && q.i == is;
    group_sums_release(&s);
    return same;
}

static void quantiles(void)
{
    static const int64_t negative[] = {-1000, -10, -9, -8, -7}, both[] = {0, 0, 0, -1, -5, -1000};
    struct group_sums s = {0};
    struct group_number q;
    bool near = true;

    ok(quantile_is(negative, 5, 50, -9) && quantile_is(negative, 5, 90, -7) && quantile_is(negative, 5, 20, -992),
       "quantiles of negative numbers are in their order");
    ok(quantile_is(both, 6, 50, -1) && quantile_is(both, 6, 90, 0), "negative numbers come before 0");
    for (int power = 0; power < 63; power++)
        for (int sign = -1; sign <= 1; sign += 2) {
            const int64_t n = sign * ((INT64_C(1) << power) + (INT64_C(1) << power) / 3);
            for (unsigned i = 0; i < 100; i++)
                group_sums_add(&s, number(i < 50 ? n : i % 2 ? INT64_MIN : INT64_MAX), true);
            near &= group_quantile(&s, 50, &q) && llabs(q.i - n) <= llabs(n) / 16;
            group_sums_release(&s);
        }
    ok(near, "quantiles are accurate within a sixteenth, up to 64 bits and for both signs");
    group_sums_add(&s, real(1.0e308), true);
    group_sums_add(&s, real(1.0e308), true);
    group_sums_add(&s, number(-3), true);
    ok(group_quantile(&s, 50, &q) && q.real && q.d <= 1.0e308 && q.d > 0.94e308,
       "a quantile may be near the largest float");
    group_sums_release(&s);
}

static int compare_reals(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Whether each quantile of the numbers is accurate within a sixteenth, and is not less or more than all of them. */
static bool quantiles_are_near(double *numbers, size_t n)
{
    struct group_sums s = {0};
    struct group_number q;
    bool near = true;

    for (size_t i = 0; i < n; i++)
        group_sums_add(&s, real(numbers[i]), true);
    qsort(numbers, n, sizeof *numbers, compare_reals);
    for (unsigned percent = 1; percent <= 100; percent++) {
        const double is = numbers[(n * percent + 99) / 100 - 1];
        near &= group_quantile(&s, percent, &q);
        const double found = q.real ? q.d : (double)q.i;
        near &= fabs(found - is) <= fabs(is) / 16 && found >= numbers[0] && found <= numbers[n - 1];
    }
    group_sums_release(&s);
    return near;
}

static void quantiles_of_floats(void)
{
    double numbers[2000];
    uint64_t bits = 1;
    size_t n = 0;

    for (n = 0; n < 100; n++)
        numbers[n] = (double)(n + 1) / 100;
    ok(quantiles_are_near(numbers, n), "quantiles of 0.01 to 1.00 are accurate");
    for (n = 0; n < 100; n++)
        numbers[n] = ((double)n - 50) / 7;
    ok(quantiles_are_near(numbers, n), "quantiles of fractions of both signs are accurate");
    for (n = 0; n < 400; n++)
        numbers[n] = ldexp(n % 2 ? -1.3 : 1.7, (int)n * 5 - 1070);
    ok(quantiles_are_near(numbers, n), "quantiles are accurate for the least and the largest floats");
    for (n = 0; n < 2000; n++, bits = bits * UINT64_C(6364136223846793005) + 1442695040888963407u)
        numbers[n] = ldexp((double)(bits >> 11), -100 - (int)(bits >> 3 & 63));
    ok(quantiles_are_near(numbers, n), "quantiles of random floats are accurate");
    const double ends[] = {5e-324, 1.7976931348623157e308, -5e-324, -1.7976931348623157e308};
    bool right = true;
    for (n = 0; n < 4; n++) {
        numbers[0] = numbers[1] = ends[n];
        right &= quantiles_are_near(numbers, 2);
    }
    ok(right, "the least and the largest float have buckets");
}

static void full_histogram(void)
{
    struct group_sums s = {0};
    struct group_number q;
    struct group_row row;
    uint64_t count = 0;

    for (int i = -1000; i < 1000; i++)
        group_sums_add(&s, real(ldexp(i % 2 ? 1.3 : -1.7, i)), true);
    struct group_rows rows = group_rows(&s);
    while (group_next_row(&rows, &row))
        count += row.count;
    ok(s.nbuckets <= 1024 && count == 2000, "a histogram has 1024 buckets at most, and counts each value");
    ok(group_quantile(&s, 99, &q) && q.d <= s.max.d && q.d >= s.min.d, "a full histogram has quantiles in its range");
    group_sums_release(&s);
}

/* Whether the number is in the row of its bounds. False, too: a bound is missing, other than one beyond all floats. */
static bool row_is(struct group_value v, int number)
{
    struct group_sums one = {0};
    struct group_number from, below;
    struct group_row row;

    group_sums_add(&one, v, true);
    struct group_rows rows = group_rows(&one);
    bool right = group_next_row(&rows, &row) && row.count == 1 && row.number == number;
    const bool has_from = group_row_from(&rows, row.number, &from),
               has_below = group_row_from(&rows, row.number + 1, &below);
    const long double is = v.number.real ? (long double)v.number.d : (long double)v.number.i;
    right &= !has_from || (from.real ? (long double)from.d : (long double)from.i) <= is;
    right &= !has_below || is < (below.real ? (long double)below.d : (long double)below.i);
    right &= !group_next_row(&rows, &row);
    group_sums_release(&one);
    return right && (has_from || is < -0x1p1023) && (has_below || is >= 0x1p1023);
}

static void histogram_rows(void)
{
    static const int64_t numbers[] = {INT64_MIN, -9, -8, -2, -1, 0, 1, 2, 3, 1024, INT64_C(1) << 54, INT64_MAX};
    static const int of[] = {-64, -5, -4, -2, -1, 0, 1, 2, 2, 11, 55, 63};
    static const double reals[] = {0x1p63, -0x1p63, -0x1p64, 1e308,  -1e308,  0.5,
                                   0.75,   -0.5,    -0.75,   1e-320, -1e-320, -0.0};
    static const int of_reals[] = {64, -64, -65, 1024, -1025, 1, 1, -1, -1, 1, -1, 0};
    static const double fractions[] = {-1e308, -0.5, -0.25, 0, 0.01, 0.5, 1, 1e308};
    struct group_sums s = {0};
    struct group_number n;
    struct group_row row;
    bool right = true;

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        right &= row_is(number(numbers[i]), of[i]);
    ok(right, "each integer is in the row of its bounds");
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        right &= row_is(real(reals[i]), of_reals[i]);
    ok(right, "each float is in the row of its bounds");
    for (size_t i = 0; i < sizeof fractions / sizeof *fractions; i++)
        group_sums_add(&s, real(fractions[i]), true);
    struct group_rows rows = group_rows(&s);
    uint64_t count = 0;
    double before = -INFINITY;
    ok(!group_row_from(&rows, -1027, &n) && n.d < 0, "the first row has no lower bound");
    ok(group_row_from(&rows, 0, &n) && n.i == 0 && group_row_from(&rows, 1, &n) && n.d == 0x1p-7 &&
           group_row_from(&rows, -1, &n) && n.d == -0.25,
       "the rows beside 0 are as small as the values");
    for (; group_next_row(&rows, &row); count += row.count) {
        right &= group_row_from(&rows, row.number, &n) || row.count == 1;
        right &= (n.real ? n.d : (double)n.i) > before || before == -INFINITY;
        before = n.real ? n.d : (double)n.i;
    }
    ok(right && count == 8, "the rows rise, and each number is in one row");
    group_sums_release(&s);
}

int main(void)
{
    struct arena a;

    arena_init(&a);
    many_keys(&a);
    histograms(&a);
    equal_keys(&a);
    equal_keys_of_texts(&a);
    rows(&a);
    large_sums();
    forged_counts();
    quantiles();
    quantiles_of_floats();
    full_histogram();
    histogram_rows();
    arena_release(&a);
    return tap_end();
}

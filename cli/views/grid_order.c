/* SPDX-License-Identifier: Apache-2.0 */
#include "grid_order.h"

#include <stdlib.h>
#include <string.h>

#include "../ground/mem.h"

#define ASCENDING ":asc"
#define DESCENDING ":desc"
#define MICROSECONDS "_us" /* a name of a column may lack the unit */

/* ---- names ---- */

const char *grid_column_name(const struct grid_column *k)
{
    const char *name = k->key ? k->key : k->also ? k->also : k->title;

    return name && *name ? name : NULL;
}

static bool order_named(const struct grid_column *k, struct str text)
{
    const size_t len = k->key ? strlen(k->key) : 0, unit = strlen(MICROSECONDS);

    return text.len && ((k->key && str_is(text, k->key)) || (k->also && str_is(text, k->also)) ||
                        (k->title && str_is(text, k->title)) ||
                        (len > unit && !strcmp(k->key + len - unit, MICROSECONDS) &&
                         str_same((struct str){k->key, len - unit}, text)));
}

static size_t order_find(const struct grid_table *t, struct str text)
{
    size_t i = 0;

    while (i < t->count && !order_named(&t->columns[i], text))
        i++;
    return i;
}

static bool order_cut(struct str *text, const char *end)
{
    const size_t len = strlen(end);

    if (text->len <= len || memcmp(text->at + text->len - len, end, len) != 0)
        return false;
    text->len -= len;
    return true;
}

/* Like grid_order_column(). Sets *ret_descends to the direction. */
static size_t order_parse(const struct grid_table *t, const char *given, bool *ret_descends)
{
    struct str text = {given, strlen(given)};
    const bool ascends = order_cut(&text, ASCENDING), descends = !ascends && order_cut(&text, DESCENDING);
    const size_t column = order_find(t, text);

    *ret_descends = descends || (!ascends && column < t->count && t->columns[column].number);
    return column;
}

size_t grid_order_column(const struct grid_table *t, const char *given)
{
    bool descends;

    return order_parse(t, given, &descends);
}

void grid_column_names(const struct grid_table *t, const char *between, struct buf *to)
{
    const size_t begin = to->len;

    for (size_t i = 0; i < t->count; i++) {
        const char *name = grid_column_name(&t->columns[i]);
        if (!name || order_find(t, (struct str){name, strlen(name)}) != i)
            continue;
        buf_puts(to, to->len > begin ? between : "");
        buf_puts(to, name);
    }
}

bool grid_order_check(const struct grid_table *t, const char *given, struct err *e)
{
    struct buf names = {0};

    if (grid_order_column(t, given) < t->count)
        return true;
    grid_column_names(t, ", ", &names);
    err_set(e, ERR_USAGE, "--sort: no column '%s'; the columns are %s", given, buf_cstr(&names));
    buf_release(&names);
    return false;
}

/* ---- the column ---- */

/* Fills `ret` with the columns that the keys of a screen can choose: those with a title, or with the name `also`. */
static size_t order_shown(const struct grid *g, size_t *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < g->ncolumns; i++)
        if (!g->columns[i].hidden && (g->columns[i].also || (g->columns[i].title && *g->columns[i].title)))
            ret[n++] = i;
    return n;
}

/*
 * Chooses the column and the direction. Returns false if the rows keep the order that they have. The keys of a screen
 * can choose that order, too, unless `given` names a column.
 */
static bool order_choose(const struct grid *g, const struct grid_sort *by, size_t *ret_column, bool *ret_descends)
{
    const struct grid_table t = {g->columns, g->ncolumns};
    size_t shown[GRID_COLUMNS], n = order_shown(g, shown), at = 0;
    size_t column = by->given ? order_parse(&t, by->given, ret_descends) : t.count;
    const bool given = column < t.count;

    if (by->turn && by->turn->steps && n) {
        const long all = (long)n + !given;
        while (at < n && shown[at] != column)
            at++;
        at = (size_t)((((long)at + by->turn->steps) % all + all) % all);
        column = at < n ? shown[at] : t.count;
        *ret_descends = at < n && g->columns[column].number;
    }
    *ret_column = column;
    *ret_descends ^= column < t.count && by->turn && by->turn->reversed;
    return column < t.count;
}

/* ---- the order ---- */

/* The value of a row in the column of the order. Numbers come before texts. */
struct order_value {
    size_t row;
    bool known, number;
    long double value;
    size_t at, len; /* the text, in order_values.texts */
};

struct order_values {
    struct order_value *items;
    struct buf texts;
    bool descends;
};

/* Returns true if the text is a decimal number. strtold() also takes words and hexadecimal numbers. */
static bool order_number(const char *text, long double *ret)
{
    char *end;

    if (!*text || strspn(text, "+-0123456789.eE") != strlen(text) || !strpbrk(text, "0123456789"))
        return false;
    *ret = strtold(text, &end);
    return !*end;
}

static struct order_value order_value(const struct grid *g, size_t row, size_t column, struct grid_cell *cell,
                                      struct buf *texts)
{
    struct order_value v = {.row = row, .at = texts->len};

    grid_make(g, row, column, cell);
    buf_str(texts, buf_view(&cell->text));
    v.len = texts->len - v.at;
    buf_char(texts, 0);
    v.known = v.len > 0;
    v.number = order_number(texts->data + v.at, &v.value);
    return v;
}

static bool order_digit(const char *at, const char *end)
{
    return at < end && *at >= '0' && *at <= '9';
}

/* Returns the digits at *at without the zeros before them. Moves *at behind the digits. */
static struct str order_digits(const char **at, const char *end)
{
    while (order_digit(*at, end) && **at == '0')
        ++*at;
    const char *const begin = *at;
    while (order_digit(*at, end))
        ++*at;
    return (struct str){begin, (size_t)(*at - begin)};
}

/* Compares the digits of two texts by value, and all else by bytes. */
static int order_texts(struct str a, struct str b)
{
    const char *p = a.at, *q = b.at, *const p_end = a.at + a.len, *const q_end = b.at + b.len;

    while (p < p_end && q < q_end) {
        if (order_digit(p, p_end) && order_digit(q, q_end)) {
            const struct str m = order_digits(&p, p_end), n = order_digits(&q, q_end);
            const int order = m.len != n.len ? (m.len > n.len) - (m.len < n.len) : memcmp(m.at, n.at, m.len);
            if (order)
                return order;
        } else if (*p != *q) {
            return (unsigned char)*p < (unsigned char)*q ? -1 : 1;
        } else {
            p++, q++;
        }
    }
    return p < p_end ? 1 : q < q_end ? -1 : str_order(a, b);
}

static int order_known(const struct order_values *all, const struct order_value *x, const struct order_value *y)
{
    if (x->number != y->number)
        return x->number ? -1 : 1;
    if (x->number)
        return (x->value > y->value) - (x->value < y->value);
    return order_texts((struct str){all->texts.data + x->at, x->len}, (struct str){all->texts.data + y->at, y->len});
}

static int order_compare(const void *a, const void *b, void *data)
{
    const struct order_values *all = data;
    const struct order_value *x = a, *y = b;
    const int order = x->known && y->known ? order_known(all, x, y) : 0;

    if (x->known != y->known)
        return x->known ? -1 : 1;
    if (order)
        return all->descends ? -order : order;
    return x->row < y->row ? -1 : 1;
}

void grid_order(struct grid *g, const struct grid_sort *by)
{
    const size_t n = g->nrows - (g->rest && g->nrows);
    struct order_values all = {0};
    struct grid_cell cell = {.as = GRID_ORDER};
    size_t column;

    if (!order_choose(g, by, &column, &all.descends))
        return;
    all.items = mem_alloc((n + 1) * sizeof(*all.items));
    for (size_t i = 0; i < n; i++)
        all.items[i] = order_value(g, i, column, &cell, &all.texts);
    qsort_r(all.items, n, sizeof(*all.items), order_compare, &all);
    g->order = mem_alloc((g->nrows + 1) * sizeof(*g->order));
    for (size_t i = 0; i < g->nrows; i++)
        g->order[i] = i < n ? all.items[i].row : i;
    g->sorted = column + 1;
    g->descends = all.descends;
    free(all.items);
    buf_release(&all.texts);
    buf_release(&cell.text);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "term.h"

#include <assert.h>
#include <string.h>

#include "etf_write.h"

static struct term *term_make(struct arena *a, enum term_type type)
{
    struct term *t = arena_alloc(a, sizeof(*t));

    t->type = type;
    return t;
}

term_t term_atom_n(struct arena *a, struct str name)
{
    struct term *t = term_make(a, TERM_ATOM);

    t->text.at = arena_strndup(a, name.at, name.len);
    t->text.len = name.len;
    return t;
}

term_t term_atom(struct arena *a, const char *name)
{
    return term_atom_n(a, (struct str){name, strlen(name)});
}

term_t term_bool(struct arena *a, bool value)
{
    return term_atom(a, value ? "true" : "false");
}

term_t term_int(struct arena *a, int64_t value)
{
    struct term *t = term_make(a, TERM_INT);

    t->integer = value;
    return t;
}

term_t term_float(struct arena *a, double value)
{
    struct term *t = term_make(a, TERM_FLOAT);

    t->real = value;
    return t;
}

term_t term_bin(struct arena *a, const void *bytes, size_t len)
{
    struct term *t = term_make(a, TERM_BIN);

    t->text.at = arena_strndup(a, bytes, len);
    t->text.len = len;
    t->bits = 8;
    return t;
}

static void copy_items(struct arena *a, struct term *t, size_t count, const term_t *items)
{
    t->count = count;
    t->items = arena_alloc(a, count * sizeof(*items) + 1);
    if (count)
        memcpy(t->items, items, count * sizeof(*items));
}

term_t term_tuple(struct arena *a, size_t count, const term_t *items)
{
    struct term *t = term_make(a, TERM_TUPLE);

    copy_items(a, t, count, items);
    return t;
}

term_t term_list(struct arena *a, size_t count, const term_t *items, term_t tail)
{
    struct term *t = term_make(a, TERM_LIST);

    if (!count && tail)
        return tail;
    if (!tail || tail->type != TERM_LIST) {
        copy_items(a, t, count, items);
        t->tail = tail;
        return t;
    }
    t->count = count + tail->count; /* flatten [a | [b]] to [a,b], so that a list has only one representation */
    t->items = arena_alloc(a, t->count * sizeof(*items));
    memcpy(t->items, items, count * sizeof(*items));
    if (tail->count)
        memcpy(t->items + count, tail->items, tail->count * sizeof(*items));
    t->tail = tail->tail;
    return t;
}

term_t term_map(struct arena *a, size_t pairs, const term_t *keys_and_values)
{
    struct term *t = term_make(a, TERM_MAP);

    copy_items(a, t, pairs * 2, keys_and_values);
    return t;
}

static bool same_map(term_t a, term_t b)
{
    for (size_t i = 0; i < a->count; i += 2) {
        size_t j = 0;
        while (j < b->count && !term_equal(a->items[i], b->items[j]))
            j += 2;
        if (j >= b->count || !term_equal(a->items[i + 1], b->items[j + 1]))
            return false;
    }
    return true;
}

bool term_equal(term_t a, term_t b)
{
    if (a == b)
        return true;
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case TERM_ATOM:
    case TERM_BIG:
        return str_same(a->text, b->text);
    case TERM_BIN:
        return str_same(a->text, b->text) && (!a->text.len || a->bits == b->bits);
    case TERM_INT:
        return a->integer == b->integer;
    case TERM_FLOAT:
        return !memcmp(&a->real, &b->real, sizeof(a->real));
    case TERM_MAP:
        return a->count == b->count && same_map(a, b);
    case TERM_LIST:
    case TERM_TUPLE:
    case TERM_EXPORT:
        if (a->count != b->count || !a->tail != !b->tail || (a->tail && !term_equal(a->tail, b->tail)))
            return false;
        for (size_t i = 0; i < a->count; i++)
            if (!term_equal(a->items[i], b->items[i]))
                return false;
        return true;
    case TERM_PID:
    case TERM_PORT:
    case TERM_REF:
        return str_same(a->text, b->text) && a->id == b->id && a->serial == b->serial && a->creation == b->creation &&
               a->nwords == b->nwords && !memcmp(a->words, b->words, a->nwords * sizeof(a->words[0]));
    }
    return false;
}

bool term_is_atom(term_t t, const char *name)
{
    return t->type == TERM_ATOM && str_is(t->text, name);
}

static void term_put(struct buf *b, term_t t)
{
    switch (t->type) {
    case TERM_ATOM:
        etf_atom(b, t->text);
        break;
    case TERM_INT:
        etf_int(b, t->integer);
        break;
    case TERM_BIG:
        etf_big(b, t->text);
        break;
    case TERM_FLOAT:
        etf_float(b, t->real);
        break;
    case TERM_BIN:
        etf_bits(b, t->text.at, t->text.len, t->bits);
        break;
    case TERM_TUPLE:
        etf_tuple(b, t->count);
        for (size_t i = 0; i < t->count; i++)
            term_put(b, t->items[i]);
        break;
    case TERM_LIST:
        etf_list(b, t->count);
        for (size_t i = 0; i < t->count; i++)
            term_put(b, t->items[i]);
        if (t->tail)
            term_put(b, t->tail);
        else
            etf_nil(b);
        break;
    case TERM_MAP:
        etf_map(b, t->count / 2);
        for (size_t i = 0; i < t->count; i++)
            term_put(b, t->items[i]);
        break;
    case TERM_PID:
        assert(t->text.len);
        etf_pid(b, t->text, (uint32_t)t->id, t->serial, t->creation);
        break;
    case TERM_PORT:
        assert(t->text.len);
        etf_port(b, t->text, t->id, t->creation);
        break;
    case TERM_REF:
        assert(t->text.len);
        etf_ref(b, t->text, t->creation, t->words, t->nwords);
        break;
    case TERM_EXPORT:
        etf_export(b, t->items[0]->text, t->items[1]->text, (int)t->items[2]->integer);
        break;
    }
}

void term_to_etf(struct buf *b, term_t t)
{
    etf_version(b);
    term_put(b, t);
}

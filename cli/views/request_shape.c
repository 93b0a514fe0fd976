/* SPDX-License-Identifier: Apache-2.0 */
#include "request_shape.h"

#include <stdlib.h>

#include "../erlang/term_print.h"
#include "../ground/mem.h"

#define DEPTH 3       /* nested tuples of a shape */
#define ELEMENTS 10   /* of a tuple */
#define TEXT_MAX 160u /* bytes; a longer shape keeps only its tag */

void request_shapes_release(struct request_shapes *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->items[i].erl);
        free(s->items[i].elixir);
    }
    free(s->items);
    table_release(&s->by_text);
    buf_release(&s->text);
    *s = (struct request_shapes){0};
}

/* ---- terms to text ---- */

struct shape_printer {
    const struct printer *printer;
    const struct term_env *env;
    bool coarse; /* keep only the outermost tag */
};

static void put_shape(const struct shape_printer *p, struct buf *to, const uint8_t *at, unsigned depth, bool is_tag);

static void put_tuple_shape(const struct shape_printer *p, struct buf *to, const uint8_t *at, unsigned depth)
{
    uint32_t arity, i;
    const uint8_t *each;
    int64_t known = wire_tuple(at, &arity, &each);

    buf_char(to, '{');
    for (i = 0; i < MIN(arity, ELEMENTS); i++) {
        if (i)
            buf_puts(to, p->printer == &printer_elixir ? ", " : ",");
        if (i < known)
            put_shape(p, to, each, depth + 1, i == 0);
        else
            buf_char(to, '_');
        if (i < known)
            each = wire_skip(each);
    }
    buf_puts(to, i < arity ? ",…}" : "}");
}

/* Prints %Module{} for a struct. False: another map. */
static bool put_struct_shape(const struct shape_printer *p, struct buf *to, const uint8_t *at)
{
    uint32_t pairs;
    const uint8_t *key;
    struct raw module;
    int64_t known = wire_map(at, &pairs, &key);

    for (int64_t i = 0; i < known; i++) {
        const uint8_t *value = wire_skip(key);
        if (wire_is_atom(p->env, key, "__struct__") && wire_atom(p->env, value, &module)) {
            buf_char(to, '%');
            printer_elixir.atom(to, module);
            buf_puts(to, "{}");
            return true;
        }
        key = wire_skip(value);
    }
    return false;
}

static void put_shape(const struct shape_printer *p, struct buf *to, const uint8_t *at, unsigned depth, bool is_tag)
{
    uint32_t arity;
    const uint8_t *first;
    struct raw atom;

    if (is_tag && wire_atom(p->env, at, &atom))
        p->printer->atom(to, atom);
    else if (wire_tuple(at, &arity, &first) >= 0 && depth < (p->coarse ? 1 : DEPTH))
        put_tuple_shape(p, to, at, depth);
    else if (!put_struct_shape(p, to, at))
        buf_char(to, '_');
}

/* ---- the table ---- */

static uint32_t shape_find(const struct request_shapes *s, struct str erl)
{
    for (uint32_t step = 0, i; (i = table_next(&s->by_text, hash_text(HASH_BEGIN, erl), &step)) != TABLE_NONE;)
        if (str_is(erl, s->items[i].erl))
            return i;
    return TABLE_NONE;
}

static uint32_t shape_add(struct request_shapes *s, struct str erl, struct str elixir)
{
    s->items = mem_grow(s->items, &s->cap, s->n + 1, sizeof(*s->items));
    s->items[s->n] = (struct request_shape){.erl = mem_strndup(erl.at, erl.len),
                                            .elixir = mem_strndup(elixir.at, elixir.len),
                                            .coarse = (uint32_t)s->n};
    table_add(&s->by_text, hash_text(HASH_BEGIN, erl), (uint32_t)s->n);
    return (uint32_t)s->n++;
}

static void shapes_begin(struct request_shapes *s)
{
    if (!s->n)
        shape_add(s, STR("(other requests)"), STR("(other requests)"));
}

/* Prints a term with both printers, adds it unless the table is full, and returns its number. */
static uint32_t shape_term(struct request_shapes *s, const struct term_env *env, const uint8_t *at, bool coarse)
{
    struct shape_printer erl = {&printer_erlang, env, coarse}, elixir = {&printer_elixir, env, coarse};

    buf_clear(&s->text);
    put_shape(&erl, &s->text, at, 0, true);
    size_t len = s->text.len;
    uint32_t found = shape_find(s, buf_view(&s->text));
    if (found != TABLE_NONE)
        return found;
    if (s->n == SHAPES_MAX || (len > TEXT_MAX && !coarse))
        return TABLE_NONE;
    put_shape(&elixir, &s->text, at, 0, true);
    return shape_add(s, (struct str){s->text.data, len}, (struct str){s->text.data + len, s->text.len - len});
}

uint32_t request_shape_of(struct request_shapes *s, const struct term_env *env, const uint8_t *at)
{
    shapes_begin(s);
    const size_t before = s->n;
    uint32_t shape = shape_term(s, env, at, false);

    if (shape != TABLE_NONE && shape < before)
        return request_shape_now(s, shape);
    uint32_t coarse = shape_term(s, env, at, true);
    if (coarse == TABLE_NONE)
        return shape == TABLE_NONE ? 0 : shape;
    if (shape == TABLE_NONE)
        return coarse;
    s->items[shape].coarse = coarse;
    s->items[coarse].variants += shape != coarse;
    return request_shape_now(s, shape);
}

uint32_t request_shape_text(struct request_shapes *s, struct str safe)
{
    shapes_begin(s);
    uint32_t found = shape_find(s, safe);

    return found != TABLE_NONE ? found : s->n == SHAPES_MAX ? 0 : shape_add(s, safe, safe);
}

uint32_t request_shape_now(const struct request_shapes *s, uint32_t shape)
{
    uint32_t coarse = s->items[shape].coarse;

    return s->items[coarse].variants > SHAPE_VARIANTS ? coarse : shape;
}

const char *request_shape_name(const struct request_shapes *s, uint32_t shape, bool elixir)
{
    return elixir ? s->items[shape].elixir : s->items[shape].erl;
}

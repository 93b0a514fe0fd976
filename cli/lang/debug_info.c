/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads records from a module's debug information. It converts the abstract form back to Erlang source, which hrl.c
 * reads like a header file. For a default value that is not a literal it writes an unknown macro, so that hrl.c takes
 * the value as unknown.
 */
#include "../ground/utf8.h"
#include "comp.h"

#define MAX_DEPTH 64
#define NO_LITERAL "?NO_LITERAL"

struct forms {
    struct etf *r;
    struct arena *a;
    struct buf *b;
    unsigned depth;
};

static bool debug_info_expr(struct forms *f);

static bool debug_info_put_atom(struct forms *f, struct raw name)
{
    if (!utf8_valid(raw_view(name).at, name.len))
        return false;
    lang_print_term(term_atom_n(f->a, raw_view(name)), f->b);
    return true;
}

static bool put_number(struct forms *f, const struct etf_head *h)
{
    if (h->type != ETF_INT && h->type != ETF_FLOAT)
        return false;
    lang_print_term(h->type == ETF_INT ? term_int(f->a, h->integer) : term_float(f->a, h->real), f->b);
    return true;
}

/* Writes a string literal. The abstract form has its characters as bytes or as a list of code points. */
static bool debug_info_put_string(struct forms *f)
{
    struct etf_head h;

    if (!etf_next(f->r, &h))
        return false;
    if (h.type == ETF_NIL) {
        buf_puts(f->b, "\"\"");
        return true;
    }
    if (h.type != ETF_STRING && h.type != ETF_LIST)
        return false;
    buf_char(f->b, '"');
    for (size_t i = 0, n = h.type == ETF_STRING ? h.text.len : h.count; i < n; i++) {
        int64_t point = h.type == ETF_STRING ? (unsigned char)raw_view(h.text).at[i] : 0;
        if (h.type == ETF_LIST && !etf_get_int(f->r, &point))
            return false;
        buf_printf(f->b, "\\x{%llx}", (unsigned long long)point);
    }
    buf_char(f->b, '"');
    return h.type == ETF_STRING || etf_get_nil(f->r);
}

static bool debug_info_put_list(struct forms *f, const char *open, const char *close, bool (*item)(struct forms *))
{
    size_t n;

    if (!etf_get_list(f->r, &n))
        return false;
    buf_puts(f->b, open);
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_char(f->b, ',');
        if (!item(f))
            return false;
    }
    buf_puts(f->b, close);
    return !n || etf_get_nil(f->r);
}

/* Writes {map_field_assoc, Anno, Key, Value} as Key => Value. */
static bool map_pair(struct forms *f)
{
    struct raw tag;

    if (!etf_get_tuple(f->r, 4) || !etf_get_atom(f->r, &tag) || !etf_skip(f->r) || !debug_info_expr(f))
        return false;
    buf_puts(f->b, " => ");
    return debug_info_expr(f);
}

/* Writes {bin_element, Anno, Value, default, default}; other sizes and types are not supported. */
static bool bin_element(struct forms *f)
{
    struct raw tag, size, type;

    return etf_get_tuple(f->r, 5) && etf_get_atom(f->r, &tag) && etf_skip(f->r) && debug_info_expr(f) &&
           etf_get_atom(f->r, &size) && etf_get_atom(f->r, &type) && raw_is(size, "default") && raw_is(type, "default");
}

static bool put_cons(struct forms *f)
{
    buf_char(f->b, '[');
    if (!debug_info_expr(f))
        return false;
    buf_char(f->b, '|');
    if (!debug_info_expr(f))
        return false;
    buf_char(f->b, ']');
    return true;
}

static bool put_op(struct forms *f, size_t operands)
{
    struct raw op;

    if (!etf_get_atom(f->r, &op))
        return false;
    buf_char(f->b, '(');
    if (operands == 2 && !debug_info_expr(f))
        return false;
    buf_char(f->b, ' ');
    buf_str(f->b, raw_view(op));
    buf_char(f->b, ' ');
    if (!debug_info_expr(f))
        return false;
    buf_char(f->b, ')');
    return true;
}

/* Writes one expression in abstract form. Returns false if it is not a literal or is malformed. */
static bool debug_info_expr(struct forms *f)
{
    struct etf_head h;
    struct raw tag, name;
    bool ok = false;

    if (f->depth == MAX_DEPTH || !etf_next(f->r, &h) || h.type != ETF_TUPLE || h.count < 2 ||
        !etf_get_atom(f->r, &tag) || !etf_skip(f->r))
        return false;
    f->depth++;
    if (raw_is(tag, "nil") && h.count == 2) {
        buf_puts(f->b, "[]");
        ok = true;
    } else if (raw_is(tag, "atom") && h.count == 3) {
        ok = etf_get_atom(f->r, &name) && debug_info_put_atom(f, name);
    } else if ((raw_is(tag, "integer") || raw_is(tag, "char") || raw_is(tag, "float")) && h.count == 3) {
        ok = etf_next(f->r, &h) && put_number(f, &h);
    } else if (raw_is(tag, "string") && h.count == 3) {
        ok = debug_info_put_string(f);
    } else if (raw_is(tag, "cons") && h.count == 4) {
        ok = put_cons(f);
    } else if (raw_is(tag, "tuple") && h.count == 3) {
        ok = debug_info_put_list(f, "{", "}", debug_info_expr);
    } else if (raw_is(tag, "map") && h.count == 3) {
        ok = debug_info_put_list(f, "#{", "}", map_pair);
    } else if (raw_is(tag, "bin") && h.count == 3) {
        ok = debug_info_put_list(f, "<<", ">>", bin_element);
    } else if (raw_is(tag, "op") && (h.count == 4 || h.count == 5)) {
        ok = put_op(f, h.count - 3);
    }
    f->depth--;
    return ok;
}

/*
 * Writes a field: {record_field, Anno, {atom, Anno, Name}}, possibly with a default value, and possibly in
 * {typed_record_field, Field, Type}.
 */
static bool debug_info_field(struct forms *f)
{
    struct etf one, *outer = f->r;
    struct etf_head h;
    struct raw tag, name;

    if (!etf_take(outer, &one))
        return false;
    f->r = &one;
    bool ok = etf_next(&one, &h) && h.type == ETF_TUPLE && etf_get_atom(&one, &tag);
    if (ok && raw_is(tag, "typed_record_field"))
        ok = h.count == 3 && etf_next(&one, &h) && h.type == ETF_TUPLE && etf_get_atom(&one, &tag);
    ok = ok && raw_is(tag, "record_field") && (h.count == 3 || h.count == 4) && etf_skip(&one) &&
         etf_get_tuple(&one, 3) && etf_get_atom(&one, &tag) && etf_skip(&one) && etf_get_atom(&one, &name) &&
         debug_info_put_atom(f, name);
    if (ok && h.count == 4) {
        buf_puts(f->b, " = ");
        size_t before = f->b->len;
        if (!debug_info_expr(f)) {
            f->b->len = before;
            buf_puts(f->b, NO_LITERAL);
        }
    }
    f->r = outer;
    return ok;
}

bool lang_debug_record(struct str name, struct etf fields, struct buf *ret_text)
{
    struct arena a;
    size_t before = ret_text->len;

    arena_init(&a);
    struct forms f = {.r = &fields, .a = &a, .b = ret_text};
    buf_puts(ret_text, "-record(");
    bool ok = debug_info_put_atom(&f, raw_of(name));
    buf_puts(ret_text, ", ");
    ok = ok && debug_info_put_list(&f, "{", "}", debug_info_field);
    buf_puts(ret_text, ").\n");
    arena_release(&a);
    if (!ok)
        ret_text->len = before;
    return ok;
}

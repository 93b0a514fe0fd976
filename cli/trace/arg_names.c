/* SPDX-License-Identifier: Apache-2.0 */
#include "arg_names.h"

#include <stdlib.h>
#include <string.h>

#include "../erlang/etf.h"
#include "../erlang/term_print.h"

#define ARGS_MAX 255
#define MATCHES_MAX 16 /* limit for nested matches (A = B = C) in one argument */

void arg_names_init(struct arg_names *n)
{
    *n = (struct arg_names){0};
    arena_init(&n->arena);
}

void arg_names_release(struct arg_names *n)
{
    arena_release(&n->arena);
    free(n->items);
    *n = (struct arg_names){0};
}

static void arg_names_add(struct arg_names *n, struct str function, int arity, struct buf *text)
{
    n->items = mem_grow(n->items, &n->cap, n->count + 1, sizeof(*n->items));
    n->items[n->count++] = (struct arg_name){
        .function = {arena_strndup(&n->arena, function.at, function.len), function.len},
        .text = {arena_strndup(&n->arena, text->data, text->len), text->len},
        .arity = arity,
    };
}

/* ---- one argument of one clause ---- */

static struct raw without_underscores(struct raw name)
{
    const char *at = raw_view(name).at;
    size_t n = 0;

    while (n < name.len && at[n] == '_')
        n++;
    return raw_bytes(at + n, name.len - n);
}

/*
 * Appends the name of an argument in Erlang's syntax tree: {var, _, 'Name'}, {match, _, _, _} or {record, _, Name, _}.
 * Returns false if the argument has no name, as with '_'.
 */
static bool erlang_name(struct etf r, unsigned matches, struct buf *to)
{
    struct etf_head h;
    struct raw kind, name;

    if (!etf_next(&r, &h) || h.type != ETF_TUPLE || h.count < 3 || !etf_get_atom(&r, &kind) || !etf_skip(&r))
        return false;
    if (raw_is(kind, "match") && h.count == 4) {
        struct etf left, right;
        return matches < MATCHES_MAX && etf_take(&r, &left) && etf_take(&r, &right) &&
               (erlang_name(left, matches + 1, to) || erlang_name(right, matches + 1, to));
    }
    bool record = raw_is(kind, "record");
    if ((!record && !raw_is(kind, "var")) || !etf_get_atom(&r, &name))
        return false;
    name = record ? name : without_underscores(name);
    if (name.len && record)
        buf_char(to, '#');
    print_safe(to, name);
    return name.len > 0;
}

/*
 * Appends the name of an argument in Elixir's syntax tree: {name, Meta, Context} or {'=', Meta, [Left, Right]}. Returns
 * false if the argument has no name.
 */
static bool elixir_name(struct etf r, unsigned matches, struct buf *to)
{
    struct etf_head h;
    struct raw name, context;
    size_t n;

    if (!etf_next(&r, &h) || h.type != ETF_TUPLE || h.count != 3 || !etf_get_atom(&r, &name) || !etf_skip(&r))
        return false;
    if (raw_is(name, "=")) {
        struct etf left, right;
        return matches < MATCHES_MAX && etf_get_list(&r, &n) && n == 2 && etf_take(&r, &left) && etf_take(&r, &right) &&
               (elixir_name(right, matches + 1, to) || elixir_name(left, matches + 1, to));
    }
    if (!etf_get_atom(&r, &context) || !raw_is(context, "nil"))
        return false; /* names of the source have the context nil; other names were made by macros */
    name = without_underscores(name);
    print_safe(to, name);
    return name.len > 0;
}

/* ---- a function's clauses ---- */

struct language {
    size_t clause_size, before; /* elements of a clause in the syntax tree; elements before the arguments */
    bool (*name)(struct etf r, unsigned matches, struct buf *to);
};

static const struct language erlang = {5, 2, erlang_name}, elixir = {4, 1, elixir_name};

/* Reads the next clause. Names those arguments that earlier clauses have left without a name. */
static bool read_clause(struct etf *r, const struct language *l, struct buf *names, int arity)
{
    struct etf args, arg;
    size_t n;

    if (!etf_get_tuple(r, l->clause_size))
        return false;
    for (size_t i = 0; i < l->before; i++)
        if (!etf_skip(r))
            return false;
    if (!etf_take(r, &args))
        return false;
    for (size_t i = l->before + 1; i < l->clause_size; i++)
        if (!etf_skip(r))
            return false;
    if (!etf_get_list(&args, &n) || n != (size_t)arity)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!etf_take(&args, &arg))
            return false;
        if (!names[i].len && !l->name(arg, 0, &names[i]))
            buf_clear(&names[i]);
    }
    return true;
}

static void name_arguments(struct arg_names *all, struct str name, int64_t arity, struct etf clauses,
                           const struct language *l)
{
    struct buf names[ARGS_MAX] = {{0}}, text = {0};
    size_t n;

    if (arity < 0 || arity > ARGS_MAX || !etf_get_list(&clauses, &n))
        return;
    while (n-- && read_clause(&clauses, l, names, (int)arity))
        ;
    for (int64_t i = 0; i < arity; i++) {
        buf_puts(&text, i ? ", " : "");
        buf_str(&text, names[i].len ? buf_view(&names[i]) : STR("_"));
        buf_release(&names[i]);
    }
    arg_names_add(all, name, (int)arity, &text);
    buf_release(&text);
}

/* ---- a module ---- */

/* Reads {Forms, _}, and in it the arguments of each {function, _, Name, Arity, Clauses}. */
static void erlang_forms(struct arg_names *all, struct etf r)
{
    struct etf form, clauses;
    struct etf_head h;
    struct raw kind, name;
    int64_t arity;
    size_t n;

    if (!etf_get_tuple(&r, 2) || !etf_get_list(&r, &n))
        return;
    while (n-- && etf_take(&r, &form))
        if (etf_next(&form, &h) && h.type == ETF_TUPLE && h.count == 5 && etf_get_atom(&form, &kind) &&
            raw_is(kind, "function") && etf_skip(&form) && etf_get_atom(&form, &name) && etf_get_int(&form, &arity) &&
            etf_take(&form, &clauses))
            name_arguments(all, raw_view(name), arity, clauses, &erlang);
}

/* Reads {elixir_v1, #{definitions := [{{Name, Arity}, Kind, Meta, Clauses}]}, _}. */
static void elixir_definitions(struct arg_names *all, struct etf r)
{
    struct etf clauses;
    struct raw name, key;
    int64_t arity;
    size_t pairs, n;

    if (!etf_get_tuple(&r, 3) || !etf_skip(&r) || !etf_get_map(&r, &pairs))
        return;
    while (pairs-- && etf_get_atom(&r, &key)) {
        if (!raw_is(key, "definitions")) {
            etf_skip(&r);
            continue;
        }
        if (!etf_get_list(&r, &n))
            return;
        while (n-- && etf_get_tuple(&r, 4) && etf_get_tuple(&r, 2) && etf_get_atom(&r, &name) &&
               etf_get_int(&r, &arity) && etf_skip(&r) && etf_skip(&r) && etf_take(&r, &clauses))
            name_arguments(all, raw_view(name), arity, clauses, &elixir);
        return;
    }
}

/* Reads the arguments from the text between the parentheses of "get(queryable, id)". */
static void read_signature(struct arg_names *all, struct str name, int64_t arity, struct str text)
{
    const char *open = memchr(text.at, '(', text.len), *close = memrchr(text.at, ')', text.len);
    struct buf b = {0};

    if (open && close && open < close && arity >= 0 && arity <= ARGS_MAX) {
        print_safe(&b, raw_bytes(open + 1, (size_t)(close - open - 1)));
        arg_names_add(all, name, (int)arity, &b);
    }
    buf_release(&b);
}

/*
 * Reads the rest of {docs_v1, Anno, Language, Format, ModuleDoc, Metadata, [{{Kind, Name, Arity}, Anno, [Signature],
 * Doc, Metadata}]}.
 */
static void read_docs(struct arg_names *all, struct etf r)
{
    struct etf signatures;
    struct raw kind, name, text;
    int64_t arity;
    size_t n, m;

    for (int i = 0; i < 5; i++)
        if (!etf_skip(&r))
            return;
    if (!etf_get_list(&r, &n))
        return;
    while (n-- && etf_get_tuple(&r, 5) && etf_get_tuple(&r, 3) && etf_get_atom(&r, &kind) && etf_get_atom(&r, &name) &&
           etf_get_int(&r, &arity) && etf_skip(&r) && etf_take(&r, &signatures) && etf_skip(&r) && etf_skip(&r))
        if (raw_is(kind, "function") && etf_get_list(&signatures, &m) && m && etf_get_bin(&signatures, &text))
            read_signature(all, raw_view(name), arity, raw_view(text));
}

static int arg_names_order(const void *a, const void *b)
{
    const struct arg_name *x = a, *y = b;
    const int order = str_order(x->function, y->function);

    return order ? order : x->arity - y->arity;
}

void arg_names_read(struct arg_names *n, struct str term)
{
    struct etf r;
    struct etf_head h;
    struct raw tag, backend;

    etf_open(&r, term.at, term.len);
    if (!etf_next(&r, &h) || h.type != ETF_TUPLE || !etf_get_atom(&r, &tag))
        return;
    if (raw_is(tag, "docs_v1") && h.count == 7) {
        read_docs(n, r);
    } else if (raw_is(tag, "debug_info_v1") && h.count == 3 && etf_get_atom(&r, &backend)) {
        if (raw_is(backend, "erl_abstract_code"))
            erlang_forms(n, r);
        else if (raw_is(backend, "elixir_erl"))
            elixir_definitions(n, r);
    }
    if (n->count)
        qsort(n->items, n->count, sizeof(*n->items), arg_names_order);
}

const struct arg_name *arg_names_find(const struct arg_names *n, struct str function, int arity)
{
    struct arg_name key = {.function = function, .arity = arity};

    return n->count ? bsearch(&key, n->items, n->count, sizeof(key), arg_names_order) : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translates Elixir's guards to Erlang's: other names, another order of arguments, and the macros of Kernel, Integer
 * and Bitwise expanded. A call :erlang.f(…) keeps Erlang's order of arguments.
 */
#include <string.h>

#include "check.h"

static struct ast *check_elixir_atom(struct check *k, const char *name, const struct ast *like)
{
    return check_lit(k, term_atom(k->c->arena, name), like);
}

static struct ast *has_key(struct check *k, struct ast *n, struct ast *map, const char *key)
{
    return CHECK_OP(k, FN_IS_MAP_KEY, n, check_elixir_atom(k, key, n), map);
}

static struct ast *make_map_get(struct check *k, struct ast *n, struct ast *map, const char *key)
{
    return CHECK_OP(k, FN_MAP_GET, n, check_elixir_atom(k, key, n), map);
}

static struct ast *check_elixir_is_nil(struct check *k, struct ast *n, struct ast **args)
{
    return CHECK_OP(k, FN_EQ_EXACT, n, args[0], check_elixir_atom(k, "nil", n));
}

static struct ast *make_elem(struct check *k, struct ast *n, struct ast **args)
{
    struct ast *index;

    if (args[1]->known && args[1]->known->type == TERM_INT && args[1]->known->integer >= 0)
        index = check_lit(k, term_int(k->c->arena, args[1]->known->integer + 1), args[1]);
    else
        index = CHECK_OP(k, FN_ADD, args[1], args[1], check_lit(k, term_int(k->c->arena, 1), n));
    return CHECK_OP(k, FN_ELEMENT, n, index, args[0]);
}

static struct ast *is_map_key(struct check *k, struct ast *n, struct ast **args)
{
    return CHECK_OP(k, FN_IS_MAP_KEY, n, args[1], args[0]);
}

/*
 * Returns true if the argument certainly has none of the types. The caller then makes a constant, because a test of the
 * value of such an argument would always fail.
 */
static bool is_never(const struct ast *arg, unsigned types)
{
    return !(arg->types & types);
}

static struct ast *is_struct(struct check *k, struct ast *n, struct ast **args)
{
    if (is_never(args[0], TY_MAP))
        return check_elixir_atom(k, "false", n);
    struct ast *is_map = CHECK_OP(k, FN_IS_MAP, n, args[0]);
    struct ast *key = has_key(k, n, args[0], "__struct__"), *name = make_map_get(k, n, args[0], "__struct__");
    if (n->count == 2)
        return CHECK_OP(k, FN_ANDALSO, n, is_map, key, CHECK_OP(k, FN_EQ_EXACT, n, name, args[1]));
    return CHECK_OP(k, FN_ANDALSO, n, is_map, key, CHECK_OP(k, FN_IS_ATOM, n, name));
}

static struct ast *is_non_struct_map(struct check *k, struct ast *n, struct ast **args)
{
    if (is_never(args[0], TY_MAP))
        return check_elixir_atom(k, "false", n);
    struct ast *is_map = CHECK_OP(k, FN_IS_MAP, n, args[0]);
    struct ast *key = has_key(k, n, args[0], "__struct__"), *name = make_map_get(k, n, args[0], "__struct__");
    struct ast *test = CHECK_OP(k, FN_ANDALSO, n, key, CHECK_OP(k, FN_IS_ATOM, n, name));

    return test ? CHECK_OP(k, FN_ANDALSO, n, is_map, CHECK_OP(k, FN_NOT, n, test)) : NULL;
}

static struct ast *is_exception(struct check *k, struct ast *n, struct ast **args)
{
    if (is_never(args[0], TY_MAP))
        return check_elixir_atom(k, "false", n);
    struct ast *test = is_struct(k, n, args), *key = has_key(k, n, args[0], "__exception__");
    struct ast *value = make_map_get(k, n, args[0], "__exception__");

    return CHECK_OP(k, FN_ANDALSO, n, test, key, CHECK_OP(k, FN_EQ_EXACT, n, value, check_elixir_atom(k, "true", n)));
}

static struct ast *make_parity_test(struct check *k, struct ast *n, struct ast **args, int bit)
{
    if (is_never(args[0], TY_INT))
        return check_elixir_atom(k, "false", n);
    struct ast *one = check_lit(k, term_int(k->c->arena, 1), n), *want = check_lit(k, term_int(k->c->arena, bit), n);
    struct ast *band = CHECK_OP(k, FN_BAND, n, args[0], one);

    return CHECK_OP(k, FN_ANDALSO, n, CHECK_OP(k, FN_IS_INTEGER, n, args[0]), CHECK_OP(k, FN_EQ_EXACT, n, band, want));
}

static struct ast *is_odd(struct check *k, struct ast *n, struct ast **args)
{
    return make_parity_test(k, n, args, 1);
}

static struct ast *is_even(struct check *k, struct ast *n, struct ast **args)
{
    return make_parity_test(k, n, args, 0);
}

static const struct {
    const char *module; /* with the prefix Elixir.; NULL: Kernel */
    const char *name;
    size_t least, most;
    struct ast *(*write)(struct check *, struct ast *, struct ast **);
} macros[] = {
    {NULL, "is_nil", 1, 1, check_elixir_is_nil},
    {NULL, "elem", 2, 2, make_elem},
    {NULL, "is_map_key", 2, 2, is_map_key},
    {NULL, "is_struct", 1, 2, is_struct},
    {NULL, "is_non_struct_map", 1, 1, is_non_struct_map},
    {NULL, "is_exception", 1, 2, is_exception},
    {"Elixir.Integer", "is_odd", 1, 1, is_odd},
    {"Elixir.Integer", "is_even", 1, 1, is_even},
};

bool check_step(struct check *k, const struct ast *range, int64_t *ret)
{
    *ret = 0;
    if (range->count < 3)
        return true;
    struct ast *step = check_pattern(k, range->items[2]);
    if (!step)
        return false;
    if (!step->known || step->known->type != TERM_INT || !step->known->integer) {
        diag(k->c, range->items[2]->from, range->items[2]->len, "the step of a range must be an integer other than 0");
        return false;
    }
    *ret = step->known->integer;
    return true;
}

/*
 * Makes the struct of a range. An omitted step is 1 or -1, depending on the ends; if the ends are not known, a pattern
 * matches any step.
 */
struct ast *check_range(struct check *k, const struct ast *n)
{
    static const char *const keys[] = {"__struct__", "first", "last", "step"};
    struct ast *map = check_new(k, A_MAP, n), *ends[2] = {n->items[0], n->items[1]};
    int64_t step;

    if (!check_step(k, n, &step))
        return NULL;
    for (size_t i = 0; i < 2 && n->count < 3; i++) {
        const bool negative = ends[i]->type == A_OP && ends[i]->op == FN_MINUS;
        if (ends[i]->type == A_LIT || negative)
            ends[i] = check_pattern(k, ends[i]);
        if (!ends[i])
            return NULL;
    }
    if (n->count < 3 && ends[0]->known && ends[1]->known && ends[0]->known->type == TERM_INT &&
        ends[1]->known->type == TERM_INT)
        step = ends[0]->known->integer <= ends[1]->known->integer ? 1 : -1;
    map->items = arena_alloc(k->c->arena, 8 * sizeof(*map->items));
    map->items[1] = check_lit(k, term_atom(k->c->arena, "Elixir.Range"), n);
    map->items[3] = n->items[0];
    map->items[5] = n->items[1];
    map->items[7] = check_lit(k, term_int(k->c->arena, step), n);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        map->items[2 * i] = check_elixir_atom(k, keys[i], n);
        map->items[2 * i]->quoted = true;
    }
    map->items[1]->quoted = true;
    map->count = step ? 8 : 6;
    return map;
}

void check_elixir_names(struct guess *g)
{
    for (size_t i = 0; i < ARRAY_LEN(macros); i++)
        if (!macros[i].module)
            guess_offer(g, str_of(macros[i].name));
}

struct ast *check_elixir(struct check *k, struct ast *n, bool *ret_done)
{
    const bool kernel = !n->module.len || str_is(n->module, "Elixir.Kernel");

    *ret_done = true;
    for (size_t i = 0; i < ARRAY_LEN(macros); i++) {
        if (!str_is(n->text, macros[i].name) || !(macros[i].module ? str_is(n->module, macros[i].module) : kernel))
            continue;
        if (n->count < macros[i].least || n->count > macros[i].most) {
            diag(k->c, n->from, n->len, "%s takes %zu argument%s, not %zu", macros[i].name, macros[i].least,
                 PLURAL(macros[i].least), n->count);
            return NULL;
        }
        struct ast *args[2];
        for (size_t j = 0; j < n->count; j++)
            if (!(args[j] = check_expr(k, n->items[j])))
                return NULL;
        return macros[i].write(k, n, args);
    }
    if (kernel || str_is(n->module, "Elixir.Bitwise"))
        n->module = (struct str){0};
    *ret_done = false;
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts guards and values: wraps tuples, makes tuples of operators, and puts a literal that the VM could misread
 * into {const, _}.
 */
#include "mspec.h"

static term_t wrap_const(struct mclause *m, term_t t)
{
    return TUPLE(m->a, term_atom(m->a, "const"), t);
}

term_t mspec_value(struct mclause *m, term_t t)
{
    term_t *items;

    switch (t->type) {
    case TERM_ATOM:
        return m->k->literal_dollars && check_special(t) && !str_is(t->text, "_") ? wrap_const(m, t) : t;
    case TERM_TUPLE:
    case TERM_LIST:
    case TERM_MAP:
        break;
    case TERM_INT:
    case TERM_BIG:
    case TERM_FLOAT:
    case TERM_BIN:
    case TERM_PID:
    case TERM_PORT:
    case TERM_REF:
    case TERM_EXPORT:
        return t;
    }
    items = arena_alloc(m->a, t->count * sizeof(*items) + 1);
    for (size_t i = 0; i < t->count; i++)
        items[i] = mspec_value(m, t->items[i]);
    if (t->type == TERM_TUPLE)
        return TUPLE(m->a, term_tuple(m->a, t->count, items));
    if (t->type == TERM_MAP)
        return term_map(m->a, t->count / 2, items);
    return term_list(m->a, t->count, items, t->tail ? mspec_value(m, t->tail) : NULL);
}

static bool is_compound(term_t t)
{
    return t->type == TERM_TUPLE || t->type == TERM_MAP || t->type == TERM_LIST || check_special(t);
}

term_t mspec_expr(struct mclause *m, const struct ast *n)
{
    term_t *items;

    switch (n->type) {
    case A_LIT:
        return mspec_value(m, n->value);
    case A_PIN:
        return is_compound(n->value) && !(n->value->type == TERM_LIST && !n->value->count) ? wrap_const(m, n->value)
                                                                                           : n->value;
    case A_VAR:
        for (size_t i = 0; i < m->nbindings; i++)
            if (str_same(m->bindings[i].name, n->text))
                return m->bindings[i].value;
        break;
    case A_ANY:
    case A_TUPLE:
    case A_LIST:
    case A_MAP:
    case A_RECORD:
    case A_RECFIELD:
    case A_NATIVE:
    case A_BIN:
    case A_SEG:
    case A_MATCH:
    case A_OP:
    case A_CALL:
    case A_DOT:
    case A_INDEX:
    case A_UNIT:
    case A_REGEX:
        break;
    }
    const size_t first = n->type == A_OP;
    items = arena_alloc(m->a, (n->count + 1) * sizeof(*items));
    if (first)
        items[0] = term_atom(m->a, fn_row((enum fn)n->op)->name);
    for (size_t i = 0; i < n->count; i++)
        items[i + first] = mspec_expr(m, n->items[i]);
    if (n->type == A_OP)
        return term_tuple(m->a, n->count + 1, items);
    const term_t t = ast_term(m->a, n, items, n->tail ? mspec_expr(m, n->tail) : NULL);
    return n->type == A_TUPLE ? TUPLE(m->a, t) : t;
}

/* Joins the tests of one guard sequence into one expression. */
static term_t all_of(struct mclause *m, const struct ast_guard *g)
{
    term_t *items = arena_alloc(m->a, (g->count + 1) * sizeof(*items));

    if (g->count == 1)
        return mspec_expr(m, g->tests[0]);
    items[0] = term_atom(m->a, "andalso");
    for (size_t i = 0; i < g->count; i++)
        items[i + 1] = mspec_expr(m, g->tests[i]);
    return term_tuple(m->a, g->count + 1, items);
}

/*
 * Returns true if a guard sequence may raise. An exception ends the whole guard, so the sequences after it need a
 * clause of their own.
 */
static bool alternative_can_fail(const struct ast_guard *g)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->tests[i]->types != TY_BOOL || check_can_fail(g->tests[i]))
            return true;
    return false;
}

void mspec_guards(struct mclause *m, const struct ast_clause *cl, struct ptrs *ret_lists)
{
    if (cl->nguards <= 1) {
        struct ptrs tests = {0};
        for (size_t i = 0; cl->nguards && i < cl->guards[0].count; i++)
            ptrs_add(&tests, m->a, (void *)(uintptr_t)mspec_expr(m, cl->guards[0].tests[i]));
        ptrs_add(ret_lists, m->a,
                 (void *)(uintptr_t)term_list(m->a, tests.count, (const term_t *)(void *)tests.items, NULL));
        return;
    }
    for (size_t i = 0; i < cl->nguards;) {
        struct ptrs group = {0};
        ptrs_add(&group, m->a, (void *)(uintptr_t)term_atom(m->a, "orelse"));
        bool failing;
        do {
            failing = alternative_can_fail(&cl->guards[i]);
            ptrs_add(&group, m->a, (void *)(uintptr_t)all_of(m, &cl->guards[i++]));
        } while (!failing && i < cl->nguards);
        const term_t *items = (const term_t *)(void *)group.items;
        term_t test = group.count == 2 ? items[1] : term_tuple(m->a, group.count, items);
        ptrs_add(ret_lists, m->a, (void *)(uintptr_t)LIST(m->a, test));
    }
}

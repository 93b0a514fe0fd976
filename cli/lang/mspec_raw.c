/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks literal match specifications: their shape, functions and variables. Without this check the VM would only
 * answer badarg. The caret marks the whole literal because its parts have no places of their own.
 */
#include <string.h>

#include "mspec.h"

struct raw_spec {
    struct check *k;
    size_t from, len, clause;
    bool bound[128];
    unsigned place;
};

static bool mspec_raw_fail(struct raw_spec *r, const char *what)
{
    diag(r->k->c, r->from, r->len, "%s", what);
    if (r->clause)
        diag_note(r->k->c, "clause %zu", r->clause);
    return false;
}

static void mspec_raw_bind(struct raw_spec *r, term_t t)
{
    const int n = spec_variable(t);

    if (n >= 0 && n < (int)ARRAY_LEN(r->bound))
        r->bound[n] = true;
    for (size_t i = 0; i < t->count && t->type != TERM_EXPORT; i++)
        mspec_raw_bind(r, t->items[i]);
    if (t->tail)
        mspec_raw_bind(r, t->tail);
}

static bool mspec_raw_expr(struct raw_spec *r, term_t t);

static bool mspec_raw_token_fits(struct raw_spec *r, term_t component, term_t label)
{
    const bool constant = spec_is_call(label, "const") && label->count == 2;

    if (component->type != TERM_ATOM || check_special(component))
        return mspec_raw_fail(r, "set_seq_token takes the name of a component");
    if (!str_is(component->text, "label") || spec_is_call(label, "self") ||
        check_label(constant ? label->items[1] : label))
        return true;
    return check_label_wrong(r->k, r->from, r->len);
}

static bool mspec_raw_function(struct raw_spec *r, term_t t)
{
    struct str name = t->items[0]->text;
    enum fn fn = fn_find(name, t->count - 1);
    struct ast at = {.from = r->from, .len = r->len};
    struct guess g;

    if (fn == FN_NONE) {
        if (fn_named(name, FN_NONE) != FN_NONE) {
            diag(r->k->c, r->from, r->len, "'" STR_FMT "' does not take %zu argument%s", STR_ARG(name), t->count - 1,
                 PLURAL(t->count - 1));
            return false;
        }
        guess_init(&g, name);
        for (int i = 0; i < FN_COUNT; i++)
            guess_offer(&g, str_of(fn_row((enum fn)i)->name));
        diag(r->k->c, r->from, r->len, "'" STR_FMT "' is not a match specification function", STR_ARG(name));
        return diag_guess(r->k->c, &g);
    }
    if (!(fn_row(fn)->places & r->place)) {
        diag(r->k->c, r->from, r->len, "'" STR_FMT "' is not allowed in this %s", STR_ARG(name),
             r->place & PLACE_ANY_GUARD ? "guard" : "body");
        return false;
    }
    if ((fn == FN_DISPLAY || fn == FN_SET_TCW) && !r->k->c->opt->unsafe) {
        diag(r->k->c, r->from, r->len, "'" STR_FMT "' acts on the whole node", STR_ARG(name));
        return diag_note(r->k->c, "--unsafe allows it");
    }
    if (!check_otp(r->k, fn, &at) || (fn == FN_SET_SEQ_TOKEN && !mspec_raw_token_fits(r, t->items[1], t->items[2])))
        return false;
    for (size_t i = 1; i < t->count; i++)
        if (!mspec_raw_expr(r, t->items[i]))
            return false;
    return true;
}

static bool mspec_raw_expr(struct raw_spec *r, term_t t)
{
    const int n = spec_variable(t);

    if (n >= 0 && n < (int)ARRAY_LEN(r->bound) && !r->bound[n]) {
        diag(r->k->c, r->from, r->len, "unbound variable '" STR_FMT "'", STR_ARG(t->text));
        return diag_note(r->k->c, "clause %zu", r->clause);
    }
    if (t->type == TERM_TUPLE) {
        if (t->count == 1 && t->items[0]->type == TERM_TUPLE) {
            for (size_t i = 0; i < t->items[0]->count; i++)
                if (!mspec_raw_expr(r, t->items[0]->items[i]))
                    return false;
            return true;
        }
        if (!t->count || t->items[0]->type != TERM_ATOM)
            return mspec_raw_fail(r, "a tuple in a guard or body is a call; a tuple as a value is written {{…}}");
        if (str_is(t->items[0]->text, "const"))
            return t->count == 2 || mspec_raw_fail(r, "const takes one term");
        return mspec_raw_function(r, t);
    }
    if (t->type == TERM_EXPORT)
        return true;
    for (size_t i = 0; i < t->count; i++)
        if (!mspec_raw_expr(r, t->items[i]))
            return false;
    return !t->tail || mspec_raw_expr(r, t->tail);
}

static bool mspec_raw_exprs(struct raw_spec *r, term_t list, unsigned place)
{
    r->place = place;
    if (list->type != TERM_LIST || list->tail)
        return mspec_raw_fail(r, "guards and bodies are lists");
    for (size_t i = 0; i < list->count; i++)
        if (!mspec_raw_expr(r, list->items[i]))
            return false;
    return true;
}

static bool mspec_raw_is_number(term_t t)
{
    return t && (t->type == TERM_INT || t->type == TERM_FLOAT || t->type == TERM_BIG);
}

/* Converts a tree without variables and operators to a term. Returns false after an error. */
static bool mspec_raw_term(struct check *k, struct ast *n, term_t *ret)
{
    struct arena *a = k->c->arena;
    const struct term **items = arena_alloc(a, n->count * sizeof(*items) + 1);
    const bool negative = n->type == A_OP && n->op == FN_MINUS && n->count == 1 && n->items[0]->type == A_LIT &&
                          mspec_raw_is_number(n->items[0]->value);
    term_t tail = NULL;

    if (n->type == A_BIN || negative) {
        k->place = k->guard;
        const struct ast *known = check_expr(k, n);
        *ret = known ? known->known : NULL;
        return known;
    }
    if (n->type == A_LIT || n->type == A_ANY) {
        *ret = n->type == A_LIT ? n->value : term_atom(a, "_");
        return true;
    }
    if (n->type != A_TUPLE && n->type != A_LIST && n->type != A_MAP) {
        diag(k->c, n->from, n->len, "a match specification is a literal term");
        return false;
    }
    for (size_t i = 0; i < n->count; i++)
        if (!mspec_raw_term(k, n->items[i], &items[i]))
            return false;
    if (n->tail && !mspec_raw_term(k, n->tail, &tail))
        return false;
    *ret = ast_term(a, n, items, tail);
    return true;
}

bool mspec_raw(struct check *k, struct ast *tree, term_t *ret)
{
    struct raw_spec r = {.k = k, .from = tree->from, .len = tree->len};
    term_t ms;

    if (!mspec_raw_term(k, tree, &ms))
        return false;
    *ret = ms;
    if (term_is_atom(ms, "true"))
        return true;
    if (ms->type != TERM_LIST || ms->tail)
        return mspec_raw_fail(&r, "a match specification is a list of {Head, Guards, Body}");
    for (size_t i = 0; i < ms->count; i++) {
        term_t clause = ms->items[i];
        r.clause = i + 1;
        memset(r.bound, 0, sizeof(r.bound));
        if (clause->type != TERM_TUPLE || clause->count != 3)
            return mspec_raw_fail(&r, "a match specification is a list of {Head, Guards, Body}");
        term_t head = clause->items[0];
        if (head->type != TERM_LIST && !term_is_atom(head, "_") && spec_variable(head) < 0)
            return mspec_raw_fail(&r, "the head is a list of patterns, '_' or '$1'");
        mspec_raw_bind(&r, head);
        if (!mspec_raw_exprs(&r, clause->items[1], k->guard) || !mspec_raw_exprs(&r, clause->items[2], k->body))
            return false;
    }
    return true;
}

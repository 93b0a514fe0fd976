/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "meant.h"

#include <stdio.h>
#include <string.h>

struct ast *check_new(struct check *k, enum ast_type type, const struct ast *like)
{
    struct ast *n = arena_alloc(k->c->arena, sizeof(*n));

    n->type = type;
    n->from = like->from;
    n->len = like->len;
    n->depth = like->depth;
    n->types = TY_ANY;
    return n;
}

struct ast *check_lit(struct check *k, term_t value, const struct ast *like)
{
    struct ast *n = check_new(k, A_LIT, like);

    n->value = n->known = value;
    n->types = term_types(value);
    n->quoted = like->quoted;
    n->plain = like->plain;
    n->paren = like->paren;
    return n;
}

bool check_special(term_t t)
{
    if (t->type == TERM_ATOM)
        return str_is(t->text, "_") || str_is(t->text, "$_") || str_is(t->text, "$$") || spec_variable(t) >= 0;
    if (t->type == TERM_EXPORT)
        return false;
    for (size_t i = 0; i < t->count; i++)
        if (check_special(t->items[i]))
            return true;
    return t->tail && check_special(t->tail);
}

bool check_let(struct check *k, const struct ast *pin, term_t *ret)
{
    const struct lang_options *opt = k->c->opt;
    struct guess g;

    guess_init(&g, pin->text);
    for (size_t i = opt->nlets; i-- > 0;) { /* the last value counts */
        if (str_same(opt->lets[i].name, pin->text)) {
            *ret = opt->lets[i].value;
            return true;
        }
        guess_offer(&g, opt->lets[i].name);
    }
    diag(k->c, pin->from, pin->len, "^" STR_FMT " has no value", STR_ARG(pin->text));
    diag_note(k->c, "set it with --let " STR_FMT "=TERM", STR_ARG(pin->text));
    return diag_guess(k->c, &g);
}

bool check_otp(struct check *k, enum fn fn, const struct ast *at)
{
    const struct fn_row *row = fn_row(fn);

    k->needs_otp = MAX(k->needs_otp, row->otp);
    if (!k->c->opt->otp || !row->otp || k->c->opt->otp >= row->otp)
        return true;
    diag(k->c, at->from, at->len, "%s/%d in a match specification needs OTP %d", row->name, row->most, row->otp);
    return diag_note(k->c, "this node has OTP %d", k->c->opt->otp);
}

static struct ast *infer_operator(struct check *k, struct ast *n);

struct ast *check_op(struct check *k, int op, const struct ast *like, size_t count, struct ast **items)
{
    struct ast *n = check_new(k, A_OP, like);

    n->op = op;
    n->count = count;
    n->items = arena_alloc(k->c->arena, count * sizeof(*items) + 1);
    for (size_t i = 0; i < count; i++) {
        if (!items[i])
            return NULL;
        n->items[i] = items[i];
    }
    n->paren = like->paren;
    return infer_operator(k, n);
}

static bool is_logic(int op)
{
    return op == FN_AND || op == FN_OR || op == FN_XOR || op == FN_NOT || op == FN_ANDALSO || op == FN_ORELSE;
}

bool check_can_fail(const struct ast *n)
{
    bool known = n->known != NULL;

    for (size_t i = 0; i < n->count; i++) {
        if (n->items[i] && check_can_fail(n->items[i]))
            return true;
        known &= n->items[i] && n->items[i]->known;
    }
    if (n->tail && check_can_fail(n->tail))
        return true;
    if (n->type != A_OP || !fn_row((enum fn)n->op)->fails || known)
        return false;
    if (!is_logic(n->op))
        return true;
    for (size_t i = 0; i < n->count; i++)
        if (n->items[i]->types != TY_BOOL)
            return true;
    return false;
}

/*
 * Reports an expression that fails: as a warning in dbg's fun, if the failure is not certain, or if another clause may
 * match instead (k->spare); otherwise as an error. Returns true after a warning. `note` may be empty.
 */
static bool report_failure(struct check *k, const struct ast *at, bool certain, const char *text, const char *note)
{
    if (k->probe->fun || k->spare || !certain) {
        warn(k->c, at->from, at->len, false, "%s%s%s", text, note[0] ? ": " : "", note);
        return true;
    }
    diag(k->c, at->from, at->len, "%s", text);
    return note[0] ? diag_note(k->c, "%s", note) : false;
}

static bool is_zero(term_t t)
{
    return t && ((t->type == TERM_INT && !t->integer) || (t->type == TERM_FLOAT && t->real == 0));
}

/*
 * Checks the types and values of the arguments. Returns false after an error. Sets *ret_odd if a wrong argument caused
 * only a warning.
 */
static bool check_args(struct check *k, const struct ast *n, const term_t *args, bool *ret_odd)
{
    const enum fn fn = (enum fn)n->op;
    char text[160];

    for (size_t i = 0; i < n->count; i++) {
        const struct ast *arg = n->items[i];
        unsigned wants = fn_wants(fn, i);
        if (wants & arg->types)
            continue;
        const char *want = fn_type_name(wants), *have = fn_type_name(arg->types);
        snprintf(text, sizeof(text), "'%s' takes %s%s%s", fn_row(fn)->name, want ? want : "something else",
                 have ? ", not " : "", have ? have : "");
        bool lazy = i && (fn == FN_ANDALSO || fn == FN_ORELSE);
        if (!report_failure(k, arg, !lazy, text, lazy ? "" : "this always fails"))
            return false;
        *ret_odd = true;
    }
    if (*ret_odd)
        return true;
    if ((fn == FN_DIV || fn == FN_REM || fn == FN_DIVIDE) && is_zero(args[1])) {
        *ret_odd = true;
        return report_failure(k, n, true, "this always fails", "division by zero");
    }
    if (fn == FN_IS_RECORD && !(n->items[2]->types & TY_INT) && !check_native(k, n))
        return false;
    if (fn == FN_ELEMENT && args[0] && args[0]->type == TERM_INT && args[0]->integer < 1) {
        *ret_odd = true;
        return report_failure(k, n->items[0], true, "elements are counted from 1", "");
    }
    return true;
}

/* Sets `types` and `known` of an operator. Returns NULL after an error. */
static struct ast *infer_operator(struct check *k, struct ast *n)
{
    const enum fn fn = (enum fn)n->op;
    term_t *args = arena_alloc(k->c->arena, n->count * sizeof(*args) + 1);
    bool odd = false, raises = false;
    char note[80] = "";

    for (size_t i = 0; i < n->count; i++)
        args[i] = n->items[i]->known;
    if (!check_otp(k, fn, n) || !check_args(k, n, args, &odd))
        return NULL;
    n->types = fn_row(fn)->result;
    if (odd) {
        n->types = TY_ANY;
        return n;
    }
    for (size_t i = 0; i < n->count; i++)
        if (!args[i] && (n->items[i]->types != TY_BOOL || check_can_fail(n->items[i])))
            return n;
    n->known = n->count ? fold(k->c->arena, fn, args, n->count, &raises) : NULL;
    if (raises) {
        if (fn == FN_ELEMENT)
            snprintf(note, sizeof(note), "the tuple has %zu elements, counted from 1", args[1]->count);
        else if (fn == FN_HD || fn == FN_TL)
            snprintf(note, sizeof(note), "the list is empty");
        return report_failure(k, n, true, "this always fails", note) ? n : NULL;
    }
    if (n->known)
        n->types = term_types(n->known);
    return n;
}

static bool is_known_true(const struct ast *n)
{
    return n->known && term_is_atom(n->known, "true");
}

static bool lacks_parentheses(const struct ast *n)
{
    return n->type == A_OP && !n->paren && (n->op == FN_AND || n->op == FN_OR || n->op == FN_XOR);
}

/* Warns about `A and B == C`: Erlang reads it as `(A and B) == C`. */
static void warn_binding(struct check *k, const struct ast *n)
{
    for (size_t i = 0; i < n->count; i++) {
        const struct ast *side = n->items[i];
        if (n->type == A_OP && n->op >= FN_GT && n->op <= FN_NE && side && lacks_parentheses(side))
            warn(k->c, side->from, side->len, false, "'%s' binds tighter than '%s': this is read as (%.*s) %s …",
                 fn_row((enum fn)side->op)->name, fn_row((enum fn)n->op)->name, (int)side->len,
                 k->c->text.at + side->from, fn_row((enum fn)n->op)->name);
        if (side && i < n->count && n->type == A_OP)
            warn_binding(k, side);
    }
}

/*
 * Finds an atom that the user may have meant as a variable: one side of a comparison whose result is known. In Erlang
 * it is an unquoted atom, in Elixir an alias of one word. Returns NULL if there is none.
 */
static const struct ast *plain_atom(const struct check *k, const struct ast *n)
{
    const bool compares = n->type == A_OP && n->op >= FN_GT && n->op <= FN_NE && n->known;
    const struct ast *found = NULL;

    for (size_t i = 0; i < n->count && !found; i++) {
        const struct ast *side = n->items[i];
        if (!side)
            continue;
        if (compares && side->type == A_LIT && term_types(side->value) == TY_ATOM && side->plain)
            found = side;
        else
            found = plain_atom(k, side);
    }
    return found;
}

/* Warns about a test whose result does not depend on the event. */
static void warn_constant(struct check *k, const struct ast *test, bool alone)
{
    const bool erlang = k->probe->surface == SPEC_ERLANG;
    const struct ast *atom = plain_atom(k, test);
    const bool never = test->known && test->types & TY_BOOL && !is_known_true(test),
               always = is_known_true(test) && test->type != A_LIT;
    const struct ast *at = never || always ? test : atom;
    const char *property = atom && erlang ? meant_property(k->c, atom->value->text) : NULL;
    char why[120] = "";

    if (!at)
        return;
    if (property)
        snprintf(why, sizeof(why), "%s", property);
    else if (atom)
        snprintf(why, sizeof(why),
                 erlang ? "%.*s is an atom; a variable, named in the head, begins with a capital letter"
                        : "%.*s is a module; a variable, named in the head, is written in lower case",
                 (int)MIN(atom->len, 40u), k->c->text.at + atom->from);
    warn(k->c, at->from, at->len, never && alone, "%s%s%s",
         never    ? "this is never true"
         : always ? "this is always true"
                  : "",
         atom && at != atom ? ": " : "", why);
}

/* Returns true if another clause or another guard sequence can match when a guard of this clause fails. */
static bool is_spare(const struct check *k, const struct ast_clause *cl)
{
    return cl->nguards > 1 || k->probe->nclauses > 1;
}

static struct ast *check_test(struct check *k, struct ast *n)
{
    char text[80];

    if (k->probe->surface == SPEC_ERLANG)
        warn_binding(k, n);
    struct ast *test = check_expr(k, n);
    if (!test || test->types & TY_BOOL)
        return test;
    const char *have = fn_type_name(test->types);
    snprintf(text, sizeof(text), "a guard must be a test, and this is %s", have ? have : "not one");
    return report_failure(k, test, true, text, "it is never true") ? test : NULL;
}

bool check_guards(struct check *k, struct ast_clause *cl)
{
    const bool spare = is_spare(k, cl);

    k->place = k->guard;
    k->spare += spare;
    for (size_t i = 0; i < cl->nguards; i++)
        for (size_t j = 0; j < cl->guards[i].count; j++) {
            struct ast **test = &cl->guards[i].tests[j];
            if (!(*test = check_test(k, *test)))
                return false;
        }
    k->spare -= spare;
    return true;
}

void fold_guards(struct check *k, struct ast_clause *cl)
{
    cl->always = cl->nguards == 0;
    for (size_t i = 0; i < cl->nguards; i++) {
        const struct ast_guard *g = &cl->guards[i];
        bool all = true;
        for (size_t j = 0; j < g->count; j++) {
            all &= is_known_true(g->tests[j]);
            warn_constant(k, g->tests[j], cl->nguards == 1);
        }
        cl->always |= all;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the passes check and fold for one probe: checks its heads against the arities of the selectors, its guards and
 * its bodies; then folds guards and warns about clauses that never match.
 */
#include <string.h>

#include "compile.h"

/* ---- heads and arities ---- */

static bool nth_differs(struct comp *c, const struct ast_clause *cl, size_t have, size_t want)
{
    diag(c, cl->head_from, cl->head_len, "this clause has %zu argument%s", have, PLURAL(have));
    return diag_note(c, "the first clause has %zu", want);
}

static bool check_head(struct check *k, struct ast_clause *cl)
{
    k->names = (struct ptrs){0};
    check_atoms(k, cl->head, cl->nhead, k->probe, cl);
    if (cl->whole)
        ptrs_add(&k->names, k->c->arena, cl->whole);
    for (size_t i = 0; i < cl->nhead; i++)
        if (!(cl->head[i] = check_pattern(k, cl->head[i])))
            return false;
    if (cl->tail && !(cl->tail = check_pattern(k, cl->tail)))
        return false;
    if (cl->tail && cl->tail->type != A_VAR && cl->tail->type != A_ANY)
        return diag(k->c, cl->tail->from, cl->tail->len, "the rest of the arguments must be a variable or _");
    return true;
}

bool compile_takes_everything(const struct ast_clause *cl)
{
    for (size_t i = 0; i < cl->nhead; i++) {
        const struct ast *n = cl->head[i];
        if (n->type != A_ANY && n->type != A_VAR)
            return false;
        for (size_t j = 0; j < i && n->type == A_VAR; j++)
            if (cl->head[j]->type == A_VAR && str_same(cl->head[j]->text, n->text))
                return false;
    }
    return true;
}

bool compile_has_action(const struct ast_probe *p, enum action_how how, enum fn fn)
{
    for (size_t i = 0; i < p->nclauses && !p->fun; i++)
        for (size_t j = 0; j < p->clauses[i].nacts; j++) {
            const struct action_row *row = action_row((enum action)p->clauses[i].acts[j]->action);
            if (row->how == how && (fn == FN_NONE || row->fn == fn))
                return true;
        }
    return false;
}

/*
 * Checks that every head has as many arguments as the first head. Heads that end in `...` and clauses of dbg's fun may
 * differ.
 */
static bool check_counts(struct comp *c, const struct ast_probe *p)
{
    const struct ast_clause *first = NULL;

    for (size_t i = 0; i < p->nclauses && !p->fun; i++) {
        const struct ast_clause *cl = &p->clauses[i];
        if (!cl->has_head)
            continue;
        if (!first)
            first = cl;
        else if (cl->nhead != first->nhead && !cl->prefix && !first->prefix)
            return nth_differs(c, cl, cl->nhead, first->nhead);
    }
    return true;
}

static bool fit_selector(struct comp *c, struct selector *s, bool given, size_t lo, size_t hi,
                         const struct ast_clause *cl)
{
    if (!given) {
        s->arity_lo = (int)lo;
        s->arity_hi = (int)MIN(hi, SPEC_ARITY_MAX);
        return true;
    }
    if ((size_t)s->arity_hi < lo || (size_t)s->arity_lo > hi) {
        struct str name = {c->text.at + s->from, s->len};
        diag(c, cl->head_from, cl->head_len, "the head has %zu argument%s", lo, PLURAL(lo));
        return diag_note(c, "this does not match " STR_FMT, STR_ARG(name));
    }
    s->arity_lo = MAX(s->arity_lo, (int)lo);
    s->arity_hi = MIN(s->arity_hi, (int)MIN(hi, SPEC_ARITY_MAX));
    return true;
}

/* Restricts the arities of the selectors to those of the heads. */
static bool fit_arities(struct comp *c, struct ast_probe *p, struct spec *s)
{
    size_t lo = SIZE_MAX, hi = 0;
    const struct ast_clause *shown = NULL;

    s->head_arity = -1;
    for (size_t i = 0; i < p->nclauses; i++) {
        const struct ast_clause *cl = &p->clauses[i];
        if (!cl->has_head) {
            lo = 0;
            hi = SPEC_ARITY_MAX;
            continue;
        }
        lo = MIN(lo, cl->nhead);
        hi = MAX(hi, cl->prefix || cl->tail ? SPEC_ARITY_MAX : cl->nhead);
        s->prefix |= cl->prefix || cl->tail;
        s->head_arity = (int)cl->nhead;
        if (!shown)
            shown = cl;
        if (cl->nhead > SPEC_ARITY_MAX) {
            diag(c, cl->head_from, cl->head_len, "no function has that many arguments");
            return diag_note(c, "the limit is %d", SPEC_ARITY_MAX);
        }
    }
    for (size_t i = 0; shown && i < p->nselectors; i++)
        if (!fit_selector(c, &p->selectors[i], p->arity_given[i], lo, hi, shown))
            return false;
    return true;
}

static bool check_widths(struct check *k, const struct ast_probe *p, size_t width)
{
    for (size_t i = 0; i < p->nclauses; i++) {
        const struct ast_clause *cl = &p->clauses[i];
        if (cl->prefix) {
            diag(k->c, cl->head_from, cl->head_len, "'...' is only allowed in the arguments of calls");
            return false;
        }
        if (cl->has_head && (cl->nhead < 1 || cl->nhead > width)) {
            diag(k->c, cl->head_from, cl->head_len,
                 width == 2 ? "send takes one or two patterns" : "recv takes one to three patterns");
            return diag_note(k->c, width == 2 ? "send(Msg), send(To, Msg)"
                                              : "recv(Msg), recv(From, Msg), recv(Node, From, Msg)");
        }
    }
    return true;
}

/* ---- check ---- */

static bool check_clauses(struct unit *u)
{
    static const size_t widths[] = {0, 2, 3};
    struct ast_probe *p = u->probe;

    u->k.literal_dollars = p->fun;
    u->width = widths[p->shape];
    if (u->width ? !check_widths(&u->k, p, u->width) : !check_counts(u->c, p) || !fit_arities(u->c, p, u->spec))
        return false;
    for (size_t i = 0; i < p->nclauses; i++) {
        struct ast_clause *cl = &p->clauses[i];
        if (!check_head(&u->k, cl) || !check_guards(&u->k, cl) || !check_body(&u->k, cl))
            return false;
    }
    return true;
}

bool unit_check(struct unit *u)
{
    if (u->probe->shape == SHAPE_EVENT)
        return compile_event(u);
    return u->probe->raw ? mspec_raw(&u->k, u->probe->raw, &u->raw) : check_clauses(u);
}

/* ---- fold ---- */

/* Warns about clauses that no event reaches, and about tests whose result does not depend on the event. */
bool unit_fold(struct unit *u)
{
    struct ast_probe *p = u->probe;
    bool everything = false;

    if (p->shape == SHAPE_EVENT || p->raw)
        return true;
    for (size_t i = 0; i < p->nclauses; i++) {
        struct ast_clause *cl = &p->clauses[i];
        if (everything)
            warn(u->c, cl->from, cl->len, true, "this clause can never match: the one before it matches everything");
        fold_guards(&u->k, cl);
        /* The next clause of dbg's fun may have another number of arguments. */
        const bool other = p->fun && cl->has_head && !cl->tail;
        everything |= cl->always && compile_takes_everything(cl) && !other;
    }
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fit.h"

#include <string.h>

#include "comp.h"

/* ---- variables ---- */

struct variable {
    long number;
    unsigned times; /* occurrences in the head */
    bool read;      /* a guard or the body reads the variable */
    int to;         /* new number of the variable; 0: '_' replaces it */
};

struct variables {
    struct fit *f;
    struct variable *items;
    size_t count, cap;
    bool all; /* '$$' is used, which reads every variable */
};

static struct variable *fit_variable(struct variables *v, long number)
{
    for (size_t i = 0; i < v->count; i++)
        if (v->items[i].number == number)
            return &v->items[i];
    if (v->count == v->cap) {
        size_t cap = v->cap ? v->cap * 2 : 16;
        struct variable *items = arena_alloc(v->f->a, cap * sizeof(*items));
        if (v->count)
            memcpy(items, v->items, v->count * sizeof(*items));
        v->items = items;
        v->cap = cap;
    }
    v->items[v->count] = (struct variable){.number = number};
    return &v->items[v->count++];
}

static bool is_const(term_t t)
{
    return spec_is_call(t, "const") && t->count == 2;
}

/*
 * Returns true if item `i` is a key of a map in a head. Such a key is a constant; in a guard or a body a key is an
 * expression.
 */
static bool is_key(term_t t, size_t i, bool head)
{
    return head && t->type == TERM_MAP && i % 2 == 0;
}

/*
 * Raises f->variables for atoms such as '$7' in places where the VM does not read them as variables. These atoms are
 * not renumbered, so the node must have them, too.
 */
static void find_lookalikes(struct fit *f, term_t t)
{
    const int n = spec_variable(t);

    f->variables = MAX(f->variables, n);
    for (size_t i = 0; i < t->count; i++)
        find_lookalikes(f, t->items[i]);
    if (t->tail)
        find_lookalikes(f, t->tail);
}

static void find_variables(struct variables *v, term_t t, bool head)
{
    const int n = spec_variable(t);

    if (n >= 0) {
        struct variable *x = fit_variable(v, n);
        x->times += head;
        x->read |= !head;
    }
    v->all |= !head && term_is_atom(t, "$$");
    if (t->type == TERM_EXPORT || (!head && is_const(t))) {
        find_lookalikes(v->f, t);
        return;
    }
    for (size_t i = 0; i < t->count; i++)
        if (is_key(t, i, head))
            find_lookalikes(v->f, t->items[i]);
        else
            find_variables(v, t->items[i], head);
    if (t->tail)
        find_variables(v, t->tail, head);
}

/* Assigns new numbers in the old order, because '$$' lists the variables by number. */
static int renumber_variables(struct variables *v)
{
    int next = 0;

    for (;;) {
        struct variable *least = NULL;
        for (size_t i = 0; i < v->count; i++) {
            struct variable *x = &v->items[i];
            if (!x->to && (x->read || x->times > 1 || v->all) && (!least || x->number < least->number))
                least = x;
        }
        if (!least)
            return next;
        least->to = ++next;
    }
}

static term_t rename_variables(struct variables *v, term_t t, bool head)
{
    const int n = spec_variable(t);

    if (n >= 0) {
        const struct variable *x = fit_variable(v, n);
        return term_atom(v->f->a, x->to ? arena_printf(v->f->a, "$%d", x->to) : "_");
    }
    if (t->type == TERM_EXPORT || (!head && is_const(t)) || (!t->count && !t->tail))
        return t;
    struct term *copy = arena_alloc(v->f->a, sizeof(*copy));
    term_t *items = arena_alloc(v->f->a, t->count * sizeof(*items) + 1);
    *copy = *t;
    for (size_t i = 0; i < t->count; i++)
        items[i] = is_key(t, i, head) ? t->items[i] : rename_variables(v, t->items[i], head);
    copy->items = items;
    copy->tail = t->tail ? rename_variables(v, t->tail, head) : NULL;
    return copy;
}

static term_t with_variables(struct fit *f, term_t clause)
{
    struct variables v = {.f = f};

    find_variables(&v, clause->items[0], true);
    find_variables(&v, clause->items[1], false);
    find_variables(&v, clause->items[2], false);
    const int most = renumber_variables(&v);
    f->variables = MAX(f->variables, most);
    return TUPLE(f->a, rename_variables(&v, clause->items[0], true), rename_variables(&v, clause->items[1], false),
                 rename_variables(&v, clause->items[2], false));
}

/* ---- unknown atoms ---- */

/*
 * Returns 1 + the index in f->unknown of the atom `t`, or of the module or function of the external fun `t`. Returns 0
 * for another term, or if the node has the atoms.
 */
static size_t unknown_index(const struct fit *f, term_t t)
{
    size_t found = 0;

    for (size_t i = 0; t->type == TERM_EXPORT && i < 2 && !found; i++)
        found = unknown_index(f, t->items[i]);
    for (size_t i = 0; t->type == TERM_ATOM && i < f->nunknown && !found; i++)
        found = str_same(f->unknown[i], t->text) ? i + 1 : 0;
    return found;
}

/* Returns 1 + the index in f->unknown of the first unknown atom at any depth of the term; 0 if there is none. */
static size_t unknown_in(const struct fit *f, term_t t)
{
    size_t found = unknown_index(f, t);

    for (size_t i = 0; i < t->count && !found; i++)
        found = unknown_in(f, t->items[i]);
    return found || !t->tail ? found : unknown_in(f, t->tail);
}

static term_t fail_for_unknown(struct fit *f, term_t t)
{
    f->name = f->unknown[unknown_in(f, t) - 1];
    return NULL;
}

/*
 * Copies a container and applies the function to every element and the tail. Returns NULL if the function returns NULL.
 */
static term_t fit_each(struct fit *f, term_t t, term_t (*fit)(struct fit *f, term_t t))
{
    struct term *copy = arena_alloc(f->a, sizeof(*copy));
    term_t *items = arena_alloc(f->a, t->count * sizeof(*items) + 1);

    *copy = *t;
    for (size_t i = 0; i < t->count; i++)
        if (!(items[i] = fit(f, t->items[i])))
            return NULL;
    copy->items = items;
    return !t->tail || (copy->tail = fit(f, t->tail)) ? copy : NULL;
}

/* Returns a reference that the node never creates, so it equals no term there. */
static term_t never_equal_ref(struct fit *f, size_t index)
{
    struct term *t = arena_alloc(f->a, sizeof(*t));

    if (f->compared)
        f->compared[index - 1] = true;
    *t = (struct term){.type = TERM_REF, .words = {0x3ffff - (uint32_t)index, 0xfeedface, 0xffffffff}, .nwords = 3};
    return t;
}

/* Replaces unknown atoms in heads and inside of {const, _}. */
static term_t fit_literal(struct fit *f, term_t t)
{
    const size_t i = unknown_index(f, t);

    return i ? never_equal_ref(f, i) : unknown_in(f, t) ? fit_each(f, t, fit_literal) : t;
}

static term_t fit_expr(struct fit *f, term_t t);

static bool is_written_tuple(term_t t)
{
    return t->type == TERM_TUPLE && t->count == 1 && t->items[0]->type == TERM_TUPLE;
}

typedef term_t fit_fn(struct fit *f, term_t t);

/*
 * Replaces the unknown atoms in an expression that builds a term. `bare` replaces the expression if it is itself an
 * unknown atom, `literal` the T of {const, T}, and `again` each element of a container.
 */
static term_t fit_built(struct fit *f, term_t t, fit_fn *again, fit_fn *literal, fit_fn *bare)
{
    term_t inner;

    if (!unknown_in(f, t))
        return t;
    if (unknown_index(f, t))
        return bare(f, t);
    if (t->type != TERM_TUPLE)
        return fit_each(f, t, again);
    if (is_const(t))
        return TUPLE(f->a, t->items[0], literal(f, t->items[1]));
    if (!is_written_tuple(t))
        return fit_expr(f, t);
    return (inner = fit_each(f, t->items[0], again)) ? TUPLE(f->a, inner) : NULL;
}

/* Replaces unknown atoms in an operand of a comparison, or in a key to look up. */
static term_t fit_value(struct fit *f, term_t t)
{
    return fit_built(f, t, fit_value, fit_literal, fit_literal);
}

static bool is_equality(term_t t)
{
    return t->count == 3 &&
           (spec_is_call(t, "=:=") || spec_is_call(t, "=/=") || spec_is_call(t, "==") || spec_is_call(t, "/="));
}

/*
 * Returns the name or module in is_record() that is unknown on the node, which therefore has no such record. Returns
 * NULL if the record may exist.
 */
static term_t no_record(const struct fit *f, term_t t)
{
    if (!spec_is_call(t, "is_record"))
        return NULL;
    for (size_t i = 2; i < t->count && i < 4; i++)
        if (unknown_index(f, t->items[i]))
            return t->items[i];
    return NULL;
}

/* Replaces unknown atoms in a call. Returns NULL if the result may depend on the order of such an atom. */
static term_t fit_expr(struct fit *f, term_t t)
{
    term_t items[3];

    if (!unknown_in(f, t))
        return t;
    if (t->type != TERM_TUPLE || is_written_tuple(t) || is_const(t))
        return fail_for_unknown(f, t);
    if (is_equality(t))
        return fit_each(f, t, fit_value);
    if (t->count == 3 && (spec_is_call(t, "is_map_key") || spec_is_call(t, "map_get")))
        return (items[1] = fit_value(f, t->items[1])) && (items[2] = fit_expr(f, t->items[2]))
                   ? TUPLE(f->a, t->items[0], items[1], items[2])
                   : NULL;
    if ((items[2] = no_record(f, t)))
        return (items[1] = fit_expr(f, t->items[1]))
                   ? TUPLE(f->a, term_atom(f->a, "=:="), items[1], fit_literal(f, items[2]))
                   : NULL;
    return fit_each(f, t, fit_expr);
}

/* ---- messages ---- */

static term_t fit_message_literal(struct fit *f, term_t t)
{
    if (unknown_index(f, t))
        return TUPLE(f->a, term_atom(f->a, SPEC_ATOM_MARK), term_bin(f->a, t->text.at, t->text.len));
    return unknown_in(f, t) ? fit_each(f, t, fit_message_literal) : t;
}

/* Returns {{etrace_atom, Name}}, the expression that makes the tuple {etrace_atom, Name}. */
static term_t fit_message_bare(struct fit *f, term_t t)
{
    return TUPLE(f->a, fit_message_literal(f, t));
}

static term_t fit_message(struct fit *f, term_t t)
{
    return fit_built(f, t, fit_message, fit_message_literal, fit_message_bare);
}

static term_t fit_body(struct fit *f, term_t t)
{
    if (t->type != TERM_TUPLE || t->count != 2 || !spec_is_call(t, "message"))
        return fit_expr(f, t);
    term_t message = fit_message(f, t->items[1]);
    return message ? TUPLE(f->a, t->items[0], message) : NULL;
}

/* ---- whether a clause can still match ---- */

enum { CAN_BE_TRUE = 1, CAN_BE_FALSE = 2, CAN_FAIL = 4, CAN_BE_ANY = 7 };

/* Returns true if the value of the expression contains the atom. Ignores the arguments of functions. */
static bool holds_atom(const struct fit *f, term_t t, size_t atom, bool literal)
{
    if (unknown_index(f, t) == atom)
        return true;
    if (t->type == TERM_TUPLE && !literal) {
        if (is_const(t))
            return holds_atom(f, t->items[1], atom, true);
        if (!is_written_tuple(t))
            return false;
        t = t->items[0];
    }
    for (size_t i = 0; i < t->count; i++)
        if (holds_atom(f, t->items[i], atom, literal))
            return true;
    return t->tail && holds_atom(f, t->tail, atom, literal);
}

/*
 * Returns true if one of the two values contains an atom that the node does not know, and the other does not contain
 * it. A value that the node computes contains no such atom.
 */
static bool unknowns_differ(const struct fit *f, term_t x, term_t y)
{
    for (size_t i = 1; i <= f->nunknown; i++)
        if (holds_atom(f, x, i, false) != holds_atom(f, y, i, false))
            return true;
    return false;
}

static unsigned guard_outcomes(const struct fit *f, term_t t);

static unsigned join_outcomes(const struct fit *f, term_t t, unsigned by_one, unsigned by_all)
{
    unsigned any = 0, all = by_all;

    for (size_t i = 1; i < t->count; i++) {
        unsigned o = guard_outcomes(f, t->items[i]);
        any |= o & (by_one | CAN_FAIL);
        all &= o;
        if (o == by_one)
            return any;
    }
    return any | all;
}

/* Returns the results that a guard may have on the node (CAN_ bits). Only its unknown atoms can rule out results. */
static unsigned guard_outcomes(const struct fit *f, term_t t)
{
    if (t->type != TERM_TUPLE || t->count < 2 || is_const(t) || is_written_tuple(t))
        return term_is_atom(t, "true") ? CAN_BE_TRUE : term_is_atom(t, "false") ? CAN_BE_FALSE : CAN_BE_ANY;
    if (spec_is_call(t, "and") || spec_is_call(t, "andalso"))
        return join_outcomes(f, t, CAN_BE_FALSE, CAN_BE_TRUE);
    if (spec_is_call(t, "or") || spec_is_call(t, "orelse"))
        return join_outcomes(f, t, CAN_BE_TRUE, CAN_BE_FALSE);
    if (spec_is_call(t, "not") && t->count == 2) {
        unsigned o = guard_outcomes(f, t->items[1]);
        return (o & CAN_BE_TRUE ? CAN_BE_FALSE : 0) | (o & CAN_BE_FALSE ? CAN_BE_TRUE : 0) | (o & CAN_FAIL);
    }
    if (is_equality(t) && unknowns_differ(f, t->items[1], t->items[2]))
        return CAN_FAIL | (spec_is_call(t, "=:=") || spec_is_call(t, "==") ? CAN_BE_FALSE : CAN_BE_TRUE);
    for (size_t i = 1; i <= f->nunknown; i++) {
        if (t->count == 3 && spec_is_call(t, "is_map_key") && holds_atom(f, t->items[1], i, false))
            return CAN_BE_FALSE | CAN_FAIL;
        if (t->count == 3 && spec_is_call(t, "map_get") && holds_atom(f, t->items[1], i, false))
            return CAN_FAIL;
        if (no_record(f, t) && unknown_index(f, no_record(f, t)) == i)
            return CAN_BE_FALSE | CAN_FAIL;
    }
    return CAN_BE_ANY;
}

static bool only_hides(term_t body)
{
    return body->count == 1 && body->items[0]->type == TERM_TUPLE && body->items[0]->count == 2 &&
           spec_is_call(body->items[0], "message") && term_is_atom(body->items[0]->items[1], "false");
}

/* Returns 1 + the index of an unknown atom without which the clause cannot match, or 0 if the clause can match. */
static size_t needed_atom(const struct fit *f, term_t clause)
{
    size_t i = unknown_in(f, clause->items[0]);

    for (size_t g = 0; g < clause->items[1]->count && !i; g++)
        if (!(guard_outcomes(f, clause->items[1]->items[g]) & CAN_BE_TRUE))
            i = unknown_in(f, clause->items[1]->items[g]);
    return i;
}

/* ---- whole specifications ---- */

static term_t fit_clause(struct fit *f, term_t t)
{
    term_t guards = fit_each(f, t->items[1], fit_expr), body = guards ? fit_each(f, t->items[2], fit_body) : NULL;

    return body ? with_variables(f, TUPLE(f->a, fit_literal(f, t->items[0]), guards, body)) : NULL;
}

/*
 * Returns true and sets f->name if no event can be shown, because each clause that shows events needs an unknown atom.
 * Returns false if no clause shows events.
 */
static bool report_if_dead(struct fit *f, term_t ms)
{
    size_t dead = 0, shows = 0, i = 0;

    for (size_t c = 0; c < ms->count; c++) {
        if (only_hides(ms->items[c]->items[2]))
            continue;
        shows++;
        const size_t atom = needed_atom(f, ms->items[c]);
        dead += atom != 0;
        i = i ? i : atom;
    }
    if (!shows || dead < shows)
        return false;
    f->name = f->unknown[i - 1];
    return true;
}

static bool fit_ms(struct fit *f, term_t *ms)
{
    if (!*ms || (*ms)->type != TERM_LIST)
        return true;
    *ms = fit_each(f, *ms, fit_clause);
    return *ms;
}

enum fit_result fit_spec(struct fit *f, const struct spec *s, struct spec *ret)
{
    *ret = *s;
    const bool dead = s->match_spec && s->match_spec->type == TERM_LIST && report_if_dead(f, s->match_spec);
    if (!fit_ms(f, &ret->match_spec) || !fit_ms(f, &ret->anonymous))
        return FIT_UNFIT;
    return dead ? FIT_DEAD : f->variables > FIT_VARIABLES_MAX ? FIT_VARIABLES : FIT_OK;
}

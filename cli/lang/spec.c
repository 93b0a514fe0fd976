/* SPDX-License-Identifier: Apache-2.0 */
#include "spec.h"

#include <string.h>

#include "compile.h"
#include "match_program.h"

bool selector_any_arity(const struct selector *s)
{
    return s->arity_lo == 0 && s->arity_hi == SPEC_ARITY_MAX;
}

int spec_variable(term_t t)
{
    int n = 0;

    if (t->type != TERM_ATOM || t->text.len < 2 || t->text.len > 9 || t->text.at[0] != '$' ||
        (t->text.at[1] == '0' && t->text.len > 2))
        return -1;
    for (size_t i = 1; i < t->text.len; i++) {
        if (t->text.at[i] < '0' || t->text.at[i] > '9')
            return -1;
        n = n * 10 + (t->text.at[i] - '0');
    }
    return n;
}

bool spec_is_call(term_t t, const char *name)
{
    return t->type == TERM_TUPLE && t->count && term_is_atom(t->items[0], name);
}

unsigned where_collect(const struct where *w, unsigned (*of)(const struct where *))
{
    unsigned all = of(w);

    for (size_t i = 0; i < w->count; i++)
        all |= where_collect(w->items[i], of);
    return w->tail ? all | where_collect(w->tail, of) : all;
}

/*
 * Returns the PROPERTY_NEEDS_ bits of a property. Also returns PROPERTY_AROUND, if the property has this bit and the
 * node cannot compare the property itself.
 */
static unsigned word_uses(const struct where *w)
{
    const unsigned all = PROPERTY_NEEDS_RETURN | PROPERTY_NEEDS_CALLER | PROPERTY_NEEDS_SENDER | PROPERTY_AROUND;
    const unsigned uses = w->type == WHERE_NAME ? property_rows[w->property].uses : 0;

    return uses & all & (uses & PROPERTY_NODE ? ~(unsigned)PROPERTY_AROUND : ~0u);
}

unsigned where_uses(const struct where *w)
{
    return where_collect(w, word_uses);
}

static unsigned is_aggregate(const struct where *w)
{
    return w->type == WHERE_AGGREGATE;
}

bool where_is_of_rows(const struct where *w)
{
    return where_collect(w, is_aggregate);
}

bool spec_head_takes_all(term_t head)
{
    if (head->type != TERM_LIST)
        return term_is_atom(head, "_") || spec_variable(head) >= 0;
    for (size_t i = 0; i < head->count; i++) {
        term_t t = head->items[i];
        if (!term_is_atom(t, "_") && spec_variable(t) < 0)
            return false;
        for (size_t k = 0; k < i && spec_variable(t) >= 0; k++)
            if (term_equal(head->items[k], t))
                return false;
    }
    return !head->tail || term_is_atom(head->tail, "_");
}

/*
 * Replaces the tail of ['$1' | '_'] by as many '_' as the arity needs. Returns NULL if the head cannot match that many
 * arguments.
 */
static term_t fill_head(term_t head, int arity, struct arena *a)
{
    term_t *items;

    if (head->type != TERM_LIST || !head->tail)
        return head->type == TERM_LIST && head->count != (size_t)arity ? NULL : head;
    if (head->count > (size_t)arity)
        return NULL;
    items = arena_alloc(a, (size_t)arity * sizeof(*items) + 1);
    for (size_t i = 0; i < (size_t)arity; i++)
        items[i] = i < head->count ? head->items[i] : term_atom(a, "_");
    return term_list(a, (size_t)arity, items, NULL);
}

term_t spec_match_spec_for(const struct spec *s, int arity, struct arena *a)
{
    struct ptrs clauses = {0};

    if (!s->prefix || arity < 0)
        return s->match_spec;
    for (size_t i = 0; i < s->match_spec->count; i++) {
        term_t clause = s->match_spec->items[i], head = fill_head(clause->items[0], arity, a);
        if (head)
            ptrs_add(&clauses, a, (void *)(uintptr_t)TUPLE(a, head, clause->items[1], clause->items[2]));
    }
    return term_list(a, clauses.count, (const term_t *)(void *)clauses.items, NULL);
}

/* Returns true if the clause's message is a single term instead of the pack's tuple. */
static bool is_short(term_t clause)
{
    const term_t body = clause->items[2], last = body->count ? body->items[body->count - 1] : body;

    return last->type == TERM_TUPLE && last->count == 2 && term_is_atom(last->items[0], "message") &&
           !term_is_atom(last->items[1], "false") && (last->items[1]->type != TERM_TUPLE || last->items[1]->count != 1);
}

term_t spec_match_spec_plain(const struct spec *s, struct arena *a)
{
    struct ptrs clauses = {0};

    if (!spec_packs_sender_only(s) || s->match_spec->type != TERM_LIST)
        return s->match_spec;
    for (size_t i = 0; i < s->match_spec->count; i++)
        if (!is_short(s->match_spec->items[i]))
            ptrs_add(&clauses, a, (void *)(uintptr_t)s->match_spec->items[i]);
    return term_list(a, clauses.count, (const term_t *)(void *)clauses.items, NULL);
}

term_t spec_program(const struct spec *s, struct arena *a)
{
    return s->kind == SPEC_CALL && s->scope != SPEC_META ? program_of(s->match_spec, a) : NULL;
}

/* ---- atoms that the node must have ---- */

struct collected {
    struct arena *a;
    struct str *items;
    size_t count, cap;
};

static bool is_builtin(term_t t)
{
    const struct str name = t->text;

    return fn_named(name, FN_NONE) != FN_NONE || str_is(name, "const") || str_is(name, "_") || str_is(name, "true") ||
           str_is(name, "false") || str_is(name, "undefined") || str_is(name, "$_") || str_is(name, "$$") ||
           spec_variable(t) >= 0;
}

static void collect_atoms(struct collected *c, term_t t)
{
    if (t->type == TERM_ATOM) {
        if (is_builtin(t))
            return;
        for (size_t i = 0; i < c->count; i++)
            if (str_same(c->items[i], t->text))
                return;
        if (c->count == c->cap) {
            size_t cap = c->cap ? c->cap * 2 : 16;
            struct str *items = arena_alloc(c->a, cap * sizeof(*items));
            if (c->count)
                memcpy(items, c->items, c->count * sizeof(*items));
            c->items = items;
            c->cap = cap;
        }
        c->items[c->count++] = t->text;
        return;
    }
    for (size_t i = 0; i < t->count; i++)
        collect_atoms(c, t->items[i]);
    if (t->tail)
        collect_atoms(c, t->tail);
}

void compile_atoms(struct arena *a, struct spec *s)
{
    struct collected c = {.a = a};

    if (s->match_spec)
        collect_atoms(&c, s->match_spec);
    s->atoms = c.items;
    s->natoms = c.count;
}

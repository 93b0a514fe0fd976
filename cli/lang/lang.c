/* SPDX-License-Identifier: Apache-2.0 */
#include "lang.h"

#include <string.h>

#include "../ground/utf8.h"
#include "compile.h"
#include "dump.h"
#include "parse.h"

static bool check_text(struct comp *c)
{
    const char *at = c->text.at, *end = at + c->text.len;

    if (c->text.len > LANG_MAX_TEXT)
        return err_set(c->err, ERR_USAGE, "the expression is longer than %d KiB", LANG_MAX_TEXT / 1024);
    while (at < end) {
        const char *here = at;
        if (utf8_next(&at, end) == UTF8_BAD)
            return diag(c, (size_t)(here - c->text.at), 1, "this is not valid UTF-8");
        if (!*here)
            return diag(c, (size_t)(here - c->text.at), 1, "a NUL is not allowed here");
    }
    return true;
}

/* ---- the passes ---- */

static bool unit_lex(struct unit *u)
{
    return lex_probe(u->c, &u->pos, &u->tokens);
}

static bool unit_parse(struct unit *u)
{
    u->probe = arena_alloc(u->c->arena, sizeof(*u->probe));
    return parse_probe(u->c, &u->tokens, u->probe);
}

static const struct {
    struct lang_pass is;
    bool each;                   /* runs for each probe of the list that the parser returns */
    bool (*run)(struct unit *u); /* NULL: trace/exprs.c runs it for each node */
    void (*dump)(const struct unit *u, struct buf *b);
} passes[LANG_PASSES] = {
    {{"tokens", "the tokens, after the surface is known"}, false, unit_lex, dump_tokens},
    {{"ast", "the tree that the parser builds of the tokens"}, false, unit_parse, dump_ast},
    {{"checked", "the tree with names resolved, types, and records as tuples"}, true, unit_check, dump_checked},
    {{"folded", "the tree with constant expressions replaced by their values"}, true, unit_fold, dump_folded},
    {{"where", "the conditions of the filter"}, true, unit_where, dump_where},
    {{"spec", "the specification: match specification, events, flags"}, true, unit_spec, dump_spec},
    {{"fitted", "the specification for one node, with only the variables that it needs"}, true, NULL, dump_fitted},
    {{"program", "the steps that the tracer runs instead of the match specification"}, true, NULL, dump_program},
};

const struct lang_pass *lang_pass(size_t i)
{
    return &passes[i].is;
}

static bool run_passes(struct unit *u, bool each)
{
    struct buf *const *dumps = u->c->opt->dumps;

    for (size_t i = 0; i < LANG_PASSES; i++) {
        if (passes[i].each != each)
            continue;
        if (passes[i].run && !passes[i].run(u))
            return false;
        if (dumps && dumps[i])
            passes[i].dump(u, dumps[i]);
    }
    return true;
}

static bool check_may_be_root(struct comp *c, const struct ast_probe *p)
{
    if (p->shape != SHAPE_CALL || p->raw || p->fun || p->scope != SPEC_LOCAL) {
        diag(c, p->from, p->len, "only a function can be a root");
        return diag_note(c, "write it as in shop:take/4 or shop:take(_, Id) when Id > 7");
    }
    return true;
}

/* Whether the probe of a root has no `by`. */
static bool check_no_group(struct comp *c, const struct ast_probe *p)
{
    if (!p->nkeys)
        return true;
    diag(c, p->by_from, 2, "a root is not counted");
    return diag_note(c, "'by' goes before inside");
}

/* Whether it is clear that the actions are those of the root. Behind a bare root they look like those of the probe. */
static bool check_actions_clear(struct comp *c, const struct ast_probe *p)
{
    if (c->opt->root || c->paren || !p->clauses[p->nclauses - 1].nbody)
        return true;
    const struct ast *act = p->clauses[p->nclauses - 1].body[0];
    diag(c, act->from, act->len, "actions go before inside");
    return diag_note(c, "write PROBE -> ACTIONS inside ROOT; those of the root: inside (ROOT -> ACTIONS)");
}

/* A process causes the events of these flags itself, so they are inside of the function that it calls then. */
#define INSIDE_FLAGS                                                                                                   \
    (SPEC_F_CALL | SPEC_F_ARITY | SPEC_F_RETURN_TO | SPEC_F_SEND | SPEC_F_RECEIVE | SPEC_F_PROCS | SPEC_F_RUNNING |    \
     SPEC_F_GC)
#define OF_OTHERS                                                                                                      \
    (SPEC_EVENT_BIT(SPEC_EV_spawned) | SPEC_EVENT_BIT(SPEC_EV_register) | SPEC_EVENT_BIT(SPEC_EV_unregister))

static bool may_be_inside(struct comp *c, const struct ast_probe *p, struct spec *s)
{
    if (s->scope == SPEC_META) {
        diag(c, p->from, p->len, "'meta' traces the calls of all processes, also outside of the root");
        return diag_note(c, "write it without 'meta'");
    }
    s->events &= ~OF_OTHERS;
    if (s->flags & ~(unsigned)INSIDE_FLAGS || (s->kind == SPEC_EVENT && !s->events)) {
        diag(c, p->from, p->len, "this event is not inside of a function, because its process does not cause it");
        return diag_note(c, "it needs a probe of its own, without inside");
    }
    return true;
}

/* Compiles the probe at *pos and adds its specs. *ret_inside: a root follows.
 * Returns where the probe ends; 0: error. */
static size_t compile_one(struct comp *c, size_t *pos, struct ptrs *specs, bool *ret_inside)
{
    struct unit u = {.c = c, .pos = *pos};

    c->warnings = (struct ptrs){0};
    if (!run_passes(&u, false))
        return 0;
    *pos = u.pos;
    *ret_inside = u.tokens.inside;
    for (struct ast_probe *p = u.probe; p; p = p->next) {
        if (c->root && (!check_may_be_root(c, p) || !check_no_group(c, p) || !check_actions_clear(c, p)))
            return 0;
        unit_begin(&u, c, p);
        if (!run_passes(&u, true))
            return 0;
        if (*ret_inside && !c->root && !may_be_inside(c, p, u.spec))
            return 0;
        if (*ret_inside && u.spec->counters)
            return diag(c, p->from, p->len, "the VM's counters count every call, also outside");
        c->warnings = (struct ptrs){0};
        u.spec->number = c->opt->number + specs->count;
        ptrs_add(specs, c->arena, u.spec);
    }
    const struct token *last = &u.tokens.items[u.tokens.count - 2];
    return last->from + last->len;
}

static size_t root_ends(struct comp *c, size_t pos)
{
    const size_t at = lex_blanks(c->text, pos), word = lex_word(c->text, at, false);

    diag(c, at, MAX(word, 1), "unexpected text after the root");
    diag_note(c, "guards, actions and the filter of the probe go before inside");
    return 0;
}

/* Compiles the root after the word at *pos. Returns where it ends; 0: error. */
static size_t compile_root(struct comp *c, size_t *pos, struct ptrs *specs)
{
    const size_t word = *pos;
    size_t from = word;
    bool again;

    lex_skip_inside(c->text, &from);
    c->paren = from < c->text.len && c->text.at[from] == '(';
    *pos = lex_skip_space(c->text, from + c->paren);
    if (lex_skip(c->text, *pos) > *pos || *pos >= c->text.len) {
        diag(c, word, strlen(LEX_INSIDE), "expected a function after inside");
        diag_note(c, "as in ets:_ inside shop:take/4");
        return 0;
    }
    c->root = true;
    const size_t end = compile_one(c, pos, specs, &again);
    const bool paren = c->paren;
    c->root = c->paren = false;
    if (!end)
        return 0;
    if (again)
        return diag(c, *pos, strlen(LEX_INSIDE), "a root is not inside of another one");
    if (!paren)
        return end;
    if (lex_peek(c->text, *pos) != ')')
        return diag(c, from, 1, "this '(' is not closed");
    *pos += 1;
    const char next = lex_peek(c->text, lex_blanks(c->text, *pos));
    return !next || strchr("\n.#%", next) ? *pos : root_ends(c, *pos);
}

/* Compiles the probe at *pos and its roots, and adds their specs. The text of a probe has its roots. */
static bool compile_at(struct comp *c, size_t *pos, struct ptrs *specs)
{
    const size_t first = specs->count;
    bool inside;

    if (!compile_one(c, pos, specs, &inside))
        return false;
    const size_t roots = specs->count;
    size_t root = *pos;
    if (!inside)
        return true;
    const size_t end = compile_root(c, pos, specs);
    if (!end)
        return false;
    lex_skip_inside(c->text, &root);
    const struct str written = {c->text.at + root, end - root};
    for (size_t i = first; i < roots; i++) {
        struct spec *s = specs->items[i];
        s->text.at = arena_printf(c->arena, STR_FMT " inside " STR_FMT, STR_ARG(s->text), STR_ARG(written));
        s->text.len = strlen(s->text.at);
        s->inside = written;
    }
    return true;
}

bool lang_by(const struct lang_options *opt, struct str text, struct arena *a, const struct spec_by **ret_by,
             struct err *e)
{
    const char *whole = arena_printf(a, LEX_BY " " STR_FMT, STR_ARG(text));
    struct comp c = {.opt = opt, .arena = a, .text = str_of(whole), .err = e, .by = true};
    struct ast_probe probe;
    struct spec spec = {0};
    struct tokens t;

    c.surface = lex_surface(c.text, 0, opt->surface);
    if (!check_text(&c) || !lex_term(&c, &t) || !parse_by_alone(&c, &t, &probe))
        return false;
    struct unit u = {.c = &c,
                     .probe = &probe,
                     .spec = &spec,
                     .k = {.c = &c, .probe = &probe, .guard = PLACE_ANY_GUARD}};
    if (!(*ret_by = compile_by(&u, &probe, NULL)))
        return false;
    *e = (struct err){0};
    return true;
}

bool lang_compile(const struct lang_options *opt, struct str text, struct arena *a, struct spec_list *ret_specs,
                  struct err *e)
{
    struct comp c = {.opt = opt, .arena = a, .text = text, .err = e, .root = opt->root};
    struct ptrs specs = {0};
    size_t pos = 0;

    if (!check_text(&c))
        return false;
    while ((pos = lex_skip(text, pos)) < text.len)
        if (!compile_at(&c, &pos, &specs))
            return false;
    if (!specs.count) {
        err_set(e, ERR_USAGE, "the expression is empty");
        err_hint(e, "name a function, as in lists:seq/2");
        return false;
    }
    ret_specs->items = (const struct spec *const *)(void *)specs.items;
    ret_specs->count = specs.count;
    *e = (struct err){0};
    return true;
}

/* Parses a text that is one expression, in the surface c->surface. */
static struct ast *term_alone(struct comp *c, bool where)
{
    struct tokens t;

    return lex_term(c, &t) ? parse_alone(c, &t, where) : NULL;
}

static bool lang_literal(struct comp *c, term_t *ret_term)
{
    struct ast *n = term_alone(c, false);

    if (!n)
        return false;
    const struct ast_probe probe = {.surface = c->surface};
    struct check k = {.c = c, .probe = &probe, .literal_dollars = true, .place = PLACE_ANY_GUARD};
    if (!(n = check_expr(&k, n)))
        return false;
    if (!n->known)
        return diag(c, n->from, n->len, "expected a literal term");
    *ret_term = n->known;
    *c->err = (struct err){0};
    return true;
}

bool lang_term(struct str text, enum spec_surface surface, struct arena *a, term_t *ret_term, struct err *e)
{
    const struct lang_options none = {0};
    struct comp c = {.opt = &none, .arena = a, .text = text, .err = e, .surface = lex_surface(text, 0, surface)};

    return check_text(&c) && lang_literal(&c, ret_term);
}

bool erlang_term(struct str text, struct arena *a, term_t *ret_term, struct err *e)
{
    const struct lang_options none = {0};
    struct comp c = {.opt = &none, .arena = a, .text = text, .err = e, .surface = SPEC_ERLANG};

    return check_text(&c) && lang_literal(&c, ret_term);
}

bool lang_where(const struct lang_options *opt, struct str text, struct arena *a, const struct where **ret_where,
                struct err *e)
{
    struct comp c = {.opt = opt, .arena = a, .text = text, .err = e, .surface = lex_surface(text, 0, opt->surface)};
    struct ptrs all = {0};
    unsigned needs = 0;
    struct ast *n = check_text(&c) ? term_alone(&c, true) : NULL;

    if (!n)
        return false;
    const struct ast_probe probe = {.surface = c.surface};
    struct check k = {.c = &c, .probe = &probe, .guard = PLACE_ANY_GUARD};
    if (!where_compile(&k, n, NULL, &all, &needs))
        return false;
    struct where *w = all.items[0];
    if (all.count > 1) {
        w = arena_alloc(a, sizeof(*w));
        *w = (struct where){.type = WHERE_CALL, .kind = WT_BOOL, .fn = FN_ANDALSO, .count = all.count, .early = true};
        w->items = (const struct where **)(void *)all.items;
        for (size_t i = 0; i < all.count; i++)
            w->early &= w->items[i]->early;
        w->len = text.len;
    }
    *ret_where = w;
    *e = (struct err){0};
    return true;
}

term_t lang_localize(term_t t, struct str node, uint32_t creation, struct arena *a)
{
    struct term *copy;
    bool changed = false;

    if ((t->type == TERM_PID || t->type == TERM_PORT || t->type == TERM_REF) && !t->text.len) {
        copy = arena_alloc(a, sizeof(*copy));
        *copy = *t;
        copy->text = node;
        copy->creation = creation;
        return copy;
    }
    if (!t->count || t->type == TERM_EXPORT)
        return t;
    term_t *items = arena_alloc(a, t->count * sizeof(*items));
    term_t tail = t->tail ? lang_localize(t->tail, node, creation, a) : NULL;
    for (size_t i = 0; i < t->count; i++) {
        items[i] = lang_localize(t->items[i], node, creation, a);
        changed |= items[i] != t->items[i];
    }
    if (!changed && tail == t->tail)
        return t;
    copy = arena_alloc(a, sizeof(*copy));
    *copy = *t;
    copy->items = items;
    copy->tail = tail;
    return copy;
}

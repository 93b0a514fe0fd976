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
    return u->inside ? lex_root(u->c, &u->pos, &u->tokens) : lex_probe(u->c, &u->pos, &u->tokens);
}

static bool unit_parse(struct unit *u)
{
    u->probe = arena_alloc(u->c->arena, sizeof(*u->probe));
    return parse_probe(u->c, &u->tokens, u->probe) && (!u->inside || lex_root_ends(u->c, &u->pos, &u->tokens)) &&
           (!u->c->root || compile_require_roots(u->c, u->probe));
}

static const struct {
    struct lang_pass is;
    bool each;                   /* run the pass once for each probe that the parser returns, instead of once */
    bool (*run)(struct unit *u); /* the pass; NULL if trace/exprs_arm.c runs it for each node */
    void (*dump)(const struct unit *u, struct buf *b);
} passes[LANG_PASSES] = {
    {{"tokens", "the tokens, after the surface is known"}, false, unit_lex, dump_tokens},
    {{"ast", "the tree that the parser builds of the tokens"}, false, unit_parse, dump_ast},
    {{"checked", "the tree with names resolved, types, and records as tuples"}, true, unit_check, dump_checked},
    {{"folded", "the tree with constant expressions replaced by their values"}, true, unit_fold, dump_folded},
    {{"inside", "whether the probe is a root, or is traced only inside of one"}, true, unit_inside, dump_inside},
    {{"where", "the conditions of the filter"}, true, unit_where, dump_where},
    {{"by", "the keys and aggregates by which the events are counted"}, true, unit_by, dump_by},
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

/* Compiles the probe at u->pos, or with u->inside the root behind the word at u->pos, and adds its specs. */
static bool compile_unit(struct unit *u, struct ptrs *specs)
{
    struct comp *c = u->c;

    c->warnings = (struct ptrs){0};
    if (!run_passes(u, false))
        return false;
    for (struct ast_probe *p = u->probe; p; p = p->next) {
        unit_begin(u, c, p);
        if (!run_passes(u, true))
            return false;
        c->warnings = (struct ptrs){0};
        u->spec->number = c->opt->number + specs->count;
        ptrs_add(specs, c->arena, u->spec);
    }
    return true;
}

/*
 * Compiles the probe at *pos and its root, and adds the specs of both. The text of the probe's spec includes the root.
 */
static bool compile_at(struct comp *c, size_t *pos, struct ptrs *specs)
{
    struct unit probe = {.c = c, .pos = *pos}, root = {.c = c, .inside = true};
    const size_t first = specs->count;

    if (!compile_unit(&probe, specs))
        return false;
    *pos = root.pos = probe.pos;
    if (!probe.tokens.inside)
        return true;
    const size_t roots = specs->count;
    c->root = true;
    if (!compile_unit(&root, specs))
        return false;
    const struct token *last = &root.tokens.items[root.tokens.count - 2];
    const size_t end = c->paren ? root.pos : last->from + last->len;
    const struct str written = {c->text.at + root.tokens.root, end - root.tokens.root};
    c->root = c->paren = false;
    *pos = root.pos;
    for (size_t i = first; i < roots; i++)
        compile_inside_of(c, specs->items[i], written);
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

    c.surface = opt->surface;
    if (!check_text(&c) || !lex_term(&c, true, &t) || !parse_by_alone(&c, &t, &probe))
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

/* Parses a text that is one expression. With `open` the first mark in the text may change the surface c->surface. */
static struct ast *term_alone(struct comp *c, bool open, bool where)
{
    struct tokens t;

    return lex_term(c, open, &t) ? parse_alone(c, &t, where) : NULL;
}

static bool literal_alone(struct str text, enum spec_surface surface, bool open, struct arena *a, term_t *ret_term,
                          struct err *e)
{
    const struct lang_options none = {0};
    struct comp c = {.opt = &none, .arena = a, .text = text, .err = e, .surface = surface};
    struct ast *n = check_text(&c) ? term_alone(&c, open, false) : NULL;

    if (!n)
        return false;
    const struct ast_probe probe = {.surface = c.surface};
    struct check k = {.c = &c, .probe = &probe, .literal_dollars = true, .place = PLACE_ANY_GUARD};
    if (!(n = check_expr(&k, n)))
        return false;
    if (!n->known)
        return diag(&c, n->from, n->len, "expected a literal term");
    *ret_term = n->known;
    *e = (struct err){0};
    return true;
}

bool lang_term(struct str text, enum spec_surface surface, struct arena *a, term_t *ret_term, struct err *e)
{
    return literal_alone(text, surface, true, a, ret_term, e);
}

bool erlang_term(struct str text, struct arena *a, term_t *ret_term, struct err *e)
{
    return literal_alone(text, SPEC_ERLANG, false, a, ret_term, e);
}

bool lang_where(const struct lang_options *opt, struct str text, struct arena *a, const struct where **ret_where,
                struct err *e)
{
    struct comp c = {.opt = opt, .arena = a, .text = text, .err = e, .surface = opt->surface};
    struct ptrs all = {0};
    unsigned needs = 0;
    struct ast *n = check_text(&c) ? term_alone(&c, true, true) : NULL;

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

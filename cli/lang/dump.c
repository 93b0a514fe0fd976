/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the result of each pass for `explain --dump=PASS`: a line for each token or node, with its place in the text
 * and its kind. Children are indented.
 */
#include "dump.h"

#include "actions.h"
#include "fit.h"
#include "match_program.h"

struct dumper {
    struct buf *b;
    bool types;  /* print the types and values that check has inferred */
    bool folded; /* print the value of a constant expression instead of the expression */
};

/* Begins a line with the place of the token or node, and indents it by `depth` levels. */
static void dump_place(const struct dumper *d, size_t from, size_t len, unsigned depth)
{
    const size_t start = d->b->len;

    buf_printf(d->b, "%zu..%zu ", from, from + len);
    while (d->b->len - start < 10)
        buf_char(d->b, ' ');
    for (unsigned i = 0; i < depth; i++)
        buf_puts(d->b, "  ");
}

static void dump_line(const struct dumper *d, size_t from, size_t len, unsigned depth, const char *what)
{
    dump_place(d, from, len, depth);
    buf_printf(d->b, "%s\n", what);
}

/* ---- trees ---- */

static const char *const type_names[] = {
    [A_LIT] = "literal", [A_ANY] = "any",     [A_VAR] = "variable",  [A_PIN] = "pin",        [A_TUPLE] = "tuple",
    [A_LIST] = "list",   [A_MAP] = "map",     [A_RECORD] = "record", [A_RECFIELD] = "field", [A_NATIVE] = "native",
    [A_BIN] = "binary",  [A_SEG] = "segment", [A_MATCH] = "match",   [A_OP] = "operator",    [A_CALL] = "call",
    [A_DOT] = "dot",     [A_INDEX] = "index", [A_UNIT] = "unit",     [A_REGEX] = "regex",
};

static const char *dump_operator(int op)
{
    static const char *const syntax[] = {"++", "<>", "in", "not in", "..", "=~", "!~"};

    return op < FN_COUNT ? fn_row((enum fn)op)->name : syntax[op - FN_COUNT];
}

static void dump_detail(const struct dumper *d, const struct ast *n)
{
    if (n->type == A_OP)
        buf_printf(d->b, " %s", dump_operator(n->op));
    if (n->type == A_LIT || n->type == A_UNIT) {
        buf_char(d->b, ' ');
        lang_print_term(n->value, d->b);
    }
    if (n->module.len)
        buf_printf(d->b, " " STR_FMT ":", STR_ARG(n->module));
    if (n->text.len && n->type != A_ANY)
        buf_printf(d->b, " " STR_FMT, STR_ARG(n->text));
    if (n->tail)
        buf_puts(d->b, " and a tail");
}

static void dump_types(const struct dumper *d, const struct ast *n)
{
    const char *name = n->types == TY_ANY ? NULL : fn_type_name(n->types);

    if (n->type == A_LIT)
        return;
    if (name)
        buf_printf(d->b, ": %s", name);
    if (n->known) {
        buf_puts(d->b, " = ");
        lang_print_term(n->known, d->b);
    }
}

static void dump_tree(const struct dumper *d, const struct ast *n, unsigned depth)
{
    dump_place(d, n->from, n->len, depth);
    if (d->folded && n->known) {
        buf_puts(d->b, "literal ");
        lang_print_term(n->known, d->b);
        buf_char(d->b, '\n');
        return;
    }
    buf_puts(d->b, type_names[n->type]);
    dump_detail(d, n);
    if (d->types)
        dump_types(d, n);
    buf_char(d->b, '\n');
    for (size_t i = 0; i < n->count; i++)
        if (n->items[i])
            dump_tree(d, n->items[i], depth + 1);
    if (n->tail)
        dump_tree(d, n->tail, depth + 1);
}

/* Prints a part of a probe: a line that says what it is, and its tree. */
static void dump_part(const struct dumper *d, const char *what, const struct ast *n, unsigned depth)
{
    dump_line(d, n->from, n->len, depth, what);
    dump_tree(d, n, depth + 1);
}

/* ---- probes ---- */

static void dump_selector(const struct dumper *d, const struct selector *s)
{
    dump_place(d, s->from, s->len, 1);
    buf_puts(d->b, "select ");
    lang_print_selector(s, d->b);
    buf_char(d->b, '\n');
}

static void dump_guards(const struct dumper *d, const struct ast_clause *cl)
{
    for (size_t i = 0; i < cl->nguards; i++) {
        dump_line(d, cl->guards[i].from, cl->guards[i].len, 2, i ? "or" : "when");
        for (size_t j = 0; j < cl->guards[i].count; j++)
            dump_tree(d, cl->guards[i].tests[j], 3);
    }
}

/* Prints the body as the parser left it, or the actions that check has found. */
static void dump_body(const struct dumper *d, const struct ast_clause *cl)
{
    for (size_t i = 0; i < cl->nbody && !d->types; i++)
        dump_part(d, "do", cl->body[i], 2);
    for (size_t i = 0; i < cl->nacts && d->types; i++) {
        const struct ast_act *act = cl->acts[i];
        dump_place(d, act->node->from, act->node->len, 2);
        buf_printf(d->b, "do %s\n", act->action == ACTION_NONE ? "" : action_row((enum action)act->action)->word);
        dump_tree(d, act->node, 3);
    }
}

static void dump_clause(const struct dumper *d, const struct ast_clause *cl)
{
    dump_line(d, cl->from, cl->len, 1, d->folded && cl->always ? "clause, always" : "clause");
    if (cl->has_head || cl->whole)
        dump_line(d, cl->head_from, cl->head_len, 2, cl->prefix ? "head and more" : "head");
    if (cl->whole)
        dump_tree(d, cl->whole, 3);
    for (size_t i = 0; i < cl->nhead; i++)
        dump_tree(d, cl->head[i], 3);
    if (cl->tail)
        dump_tree(d, cl->tail, 3);
    dump_guards(d, cl);
    dump_body(d, cl);
}

static void dump_probe(const struct dumper *d, const struct ast_probe *p)
{
    static const char *const shapes[] = {"call", "send", "recv", "event"};

    dump_place(d, p->from, p->len, 0);
    buf_printf(d->b, "probe %s %s", p->surface == SPEC_ELIXIR ? "elixir" : "erlang", shapes[p->shape]);
    if (p->event.len)
        buf_printf(d->b, " @" STR_FMT, STR_ARG(p->event));
    buf_char(d->b, '\n');
    for (size_t i = 0; i < p->nselectors; i++)
        dump_selector(d, &p->selectors[i]);
    for (size_t i = 0; i < p->nclauses; i++)
        dump_clause(d, &p->clauses[i]);
    if (p->raw)
        dump_part(d, "ms", p->raw, 1);
    if (d->types)
        return;
    if (p->where)
        dump_part(d, "where", p->where, 1);
    for (size_t i = 0; i < p->nkeys; i++)
        dump_part(d, "key", p->keys[i], 1);
    for (size_t i = 0; i < p->naggregates; i++)
        dump_part(d, "aggregate", p->aggregates[i], 1);
}

void dump_ast(const struct unit *u, struct buf *b)
{
    const struct dumper d = {.b = b};

    for (const struct ast_probe *p = u->probe; p; p = p->next)
        dump_probe(&d, p);
}

void dump_checked(const struct unit *u, struct buf *b)
{
    const struct dumper d = {.b = b, .types = true};

    dump_probe(&d, u->probe);
}

void dump_folded(const struct unit *u, struct buf *b)
{
    const struct dumper d = {.b = b, .types = true, .folded = true};

    dump_probe(&d, u->probe);
}

/* ---- tokens ---- */

void dump_tokens(const struct unit *u, struct buf *b)
{
    static const char *const forms[] = {
        [LEX_CALL] = "call",   [LEX_MESSAGE] = "message", [LEX_EVENT] = "event",
        [LEX_ARROW] = "arrow", [LEX_TUPLE] = "tuple",
    };
    const struct tokens *t = &u->tokens;
    const struct dumper d = {.b = b};

    dump_place(&d, t->from, t->items[t->count - 1].from - t->from, 0);
    buf_printf(b, "probe %s %s\n", t->surface == SPEC_ELIXIR ? "elixir" : "erlang", forms[t->form]);
    for (size_t i = 0; i < t->count; i++) {
        const struct token *k = &t->items[i];
        dump_place(&d, k->from, k->len, 0);
        token_print(k, b);
        buf_char(b, '\n');
    }
}

/* ---- filters and specifications ---- */

static void dump_property(const struct dumper *d, const struct where *w)
{
    switch (w->type) {
    case WHERE_CALL:
        buf_printf(d->b, " %s", dump_operator(w->fn));
        break;
    case WHERE_REGEX:
        buf_printf(d->b, "%s " STR_FMT, w->negated ? " not" : "", STR_ARG(w->regex));
        break;
    case WHERE_MATCH:
        buf_char(d->b, ' ');
        lang_print_term(w->constant, d->b);
        break;
    case WHERE_CONST:
    case WHERE_NAME:
    case WHERE_AGGREGATE:
        buf_char(d->b, ' ');
        lang_print_where(w, d->b);
        break;
    case WHERE_TUPLE:
    case WHERE_LIST:
    case WHERE_MAP:
        break;
    }
}

static void dump_condition(const struct dumper *d, const struct where *w, unsigned depth)
{
    static const char *const types[] = {
        [WHERE_CONST] = "literal", [WHERE_NAME] = "property", [WHERE_CALL] = "function",
        [WHERE_TUPLE] = "tuple",   [WHERE_LIST] = "list",     [WHERE_MAP] = "map",
        [WHERE_REGEX] = "regex",   [WHERE_MATCH] = "matches", [WHERE_AGGREGATE] = "aggregate",
    };

    dump_place(d, w->from, w->len, depth);
    buf_puts(d->b, types[w->type]);
    dump_property(d, w);
    if (!depth)
        buf_puts(d->b, w->early ? ", the tracer can decide" : ", the client decides");
    buf_char(d->b, '\n');
    for (size_t i = 0; i < w->count; i++)
        dump_condition(d, w->items[i], depth + 1);
    if (w->tail)
        dump_condition(d, w->tail, depth + 1);
}

void dump_where(const struct unit *u, struct buf *b)
{
    const struct dumper d = {.b = b};

    for (size_t i = 0; i < u->where.count; i++)
        dump_condition(&d, u->where.items[i], 0);
}

static void dump_group(const struct dumper *d, const struct spec_by *by)
{
    for (size_t i = 0; i < by->nkeys; i++) {
        const struct by_key *key = &by->keys[i];
        dump_line(d, key->value->from, key->value->len, 0, key->tag ? "key, the tag of" : "key");
        dump_condition(d, key->value, 1);
    }
    for (size_t i = 0; i < by->naggregates; i++) {
        const struct where *of = by->aggregates[i].value;
        dump_place(d, of ? of->from : 0, of ? of->len : 0, 0);
        buf_printf(d->b, "aggregate %s\n", by_kind_names[by->aggregates[i].kind]);
        if (of)
            dump_condition(d, of, 1);
    }
}

void dump_by(const struct unit *u, struct buf *b)
{
    if (u->spec->by)
        dump_group(&(const struct dumper){.b = b}, u->spec->by);
}

void dump_inside(const struct unit *u, struct buf *b)
{
    const struct dumper d = {.b = b};

    dump_line(&d, u->probe->from, u->probe->len, 0,
              u->spec->root      ? "root"
              : u->tokens.inside ? "inside of the root"
                                 : "everywhere");
}

void dump_spec(const struct unit *u, struct buf *b)
{
    lang_explain(u->spec, LANG_ERL, b);
}

/* ---- the passes that depend on a node ---- */

/* Returns false, after a line that says so, if one clause has too many variables. */
static bool dump_fit(const struct unit *u, struct spec *ret, struct buf *b)
{
    struct fit f = {.a = u->c->arena};

    if (fit_spec(&f, u->spec, ret) == FIT_OK)
        return true;
    buf_printf(b, "more than %d variables in one clause\n", FIT_VARIABLES_MAX);
    return false;
}

void dump_fitted(const struct unit *u, struct buf *b)
{
    struct spec fitted;

    if (dump_fit(u, &fitted, b))
        lang_explain(&fitted, LANG_ERL, b);
}

void dump_program(const struct unit *u, struct buf *b)
{
    struct spec fitted;

    if (!dump_fit(u, &fitted, b))
        return;
    const term_t program = spec_program(&fitted, u->c->arena);
    if (program)
        program_print(program, "", "", b);
    else
        buf_puts(b, "no program\n");
}

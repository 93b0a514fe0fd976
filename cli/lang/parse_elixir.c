/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the terms of Elixir, without operators. Words are variables, aliases are atoms, keywords are lists. */
#include <string.h>

#include "parse.h"

static struct str alias_atom(struct parser *p, struct str alias)
{
    return elixir_module(p->c->arena, alias);
}

static struct ast *parse_elixir_list(struct parser *p)
{
    struct ast *n = make_node(p, A_LIST, tok(p)->from), *tail = NULL;
    struct ptrs items = {0};

    p->at++;
    if (!at_punct(p, P_RBRACK)) {
        for (;;) {
            if (tok(p)->type == TOK_KEY) {
                struct ast *pairs = parse_keywords(p);
                if (!pairs)
                    return NULL;
                for (size_t i = 0; i < pairs->count; i++)
                    ptrs_add(&items, p->c->arena, pairs->items[i]);
                break;
            }
            struct ast *item = parse_expr(p, PARSE_ANY);
            if (!item)
                return NULL;
            ptrs_add(&items, p->c->arena, item);
            if (!take_punct(p, P_COMMA))
                break;
        }
        if (take_punct(p, P_BAR) && !(tail = parse_expr(p, PARSE_ANY)))
            return NULL;
    }
    return close_node(p, n, &items, tail, P_RBRACK, n->from);
}

static void add_struct_key(struct parser *p, struct ptrs *items, size_t from, struct ast *value)
{
    struct token key = {.from = from, .len = 1, .quoted = true};

    ptrs_add(items, p->c->arena, node_lit(p, &key, term_atom(p->c->arena, "__struct__")));
    ptrs_add(items, p->c->arena, value);
}

/* Parses %{…}, %Name{…}, %_{…}, %var{…}; the current token is '%'. */
static struct ast *parse_elixir_map(struct parser *p)
{
    struct ast *n = make_node(p, A_MAP, tok(p)->from);
    struct ptrs items = {0};

    p->at++;
    if (!at_punct(p, P_LBRACE)) {
        struct token *t = tok(p);
        struct ast *name;
        if (t->type == TOK_ALIAS) {
            name = node_lit(p, t, term_atom_n(p->c->arena, alias_atom(p, t->text)));
            name->quoted = true;
        } else if (t->type == TOK_IDENT) {
            name = make_node(p, str_is(t->text, "_") ? A_ANY : A_VAR, t->from);
            name->text = t->text;
            name->len = t->len;
            name->quoted = true;
        } else {
            return report_unexpected_node(p, "'{' or the name of a struct");
        }
        add_struct_key(p, &items, t->from, name);
        p->at++;
    }
    const size_t open = tok(p)->from;
    if (!take_punct(p, P_LBRACE))
        return report_unexpected_node(p, "'{'");
    while (!at_punct(p, P_RBRACE)) {
        struct ast *key, *value;
        if (tok(p)->type == TOK_KEY) {
            key = node_lit(p, tok(p), tok(p)->value);
            key->quoted = true;
            p->at++;
        } else {
            if (!(key = parse_expr(p, PARSE_NO_MATCH)))
                return NULL;
            if (!take_punct(p, P_ASSOC))
                return report_unexpected_node(p, at_punct(p, P_BAR) ? "'=>': a map cannot be updated here" : "'=>'");
        }
        if (!(value = parse_expr(p, PARSE_ANY)))
            return NULL;
        ptrs_add(&items, p->c->arena, key);
        ptrs_add(&items, p->c->arena, value);
        if (!take_punct(p, P_COMMA))
            break;
    }
    return close_node(p, n, &items, NULL, P_RBRACE, open);
}

/* Parses &Mod.fun/1 and &:mod.fun/1. */
static struct ast *parse_capture(struct parser *p)
{
    const size_t from = tok(p)->from;
    struct token *t = &p->tokens[++p->at];
    struct str module;

    if (t->type == TOK_ALIAS)
        module = alias_atom(p, t->text);
    else if (t->type == TOK_LIT && t->value->type == TERM_ATOM)
        module = t->value->text;
    else
        return report_unexpected_node(p, "a module");
    p->at++;
    if (!take_punct(p, P_DOT))
        return report_unexpected_node(p, "'.'");
    t = tok(p);
    if (t->type != TOK_IDENT)
        return report_unexpected_node(p, "a function");
    p->at++;
    return parse_export(p, from, module, t->text);
}

/* Parses .field, .function(…) and [index] after a term. */
static struct ast *parse_behind(struct parser *p, struct ast *n)
{
    while (!tok(p)->spaced) {
        if (at_punct(p, P_DOT) && p->tokens[p->at + 1].type == TOK_IDENT) {
            struct token *name = &p->tokens[p->at + 1];
            p->at += 2;
            if (at_punct(p, P_LPAREN) && !tok(p)->spaced) {
                if (n->type != A_LIT || n->value->type != TERM_ATOM)
                    return report_unexpected_node(p, "an operator");
                if (!(n = parse_call(p, n->from, n->value->text, name->text, true)))
                    return NULL;
                continue;
            }
            struct ast *dot = make_node(p, A_DOT, n->from);
            struct ptrs items = {0};
            dot->text = name->text;
            ptrs_add(&items, p->c->arena, n);
            if (!(n = node_with(p, dot, &items, NULL, tok_end(name))))
                return NULL;
        } else if (at_punct(p, P_LBRACK) && p->where && n->type == A_VAR) {
            struct ast *index = make_node(p, A_INDEX, n->from), *number;
            struct ptrs items = {0};
            const size_t open = tok(p)->from;
            p->at++;
            if (!(number = parse_expr(p, PARSE_ANY)) || !want_punct(p, P_RBRACK, open))
                return NULL;
            ptrs_add(&items, p->c->arena, n);
            ptrs_add(&items, p->c->arena, number);
            if (!(n = node_with(p, index, &items, NULL, tok_end(&p->tokens[p->at - 1]))))
                return NULL;
        } else {
            break;
        }
    }
    return n;
}

static const char *const reserved[] = {"when", "and",   "or",   "in",    "do",     "end",
                                       "fn",   "after", "else", "catch", "rescue", "where"};

static struct ast *parse_word(struct parser *p)
{
    struct token *t = tok(p);
    struct str none = {0};

    if (str_is(t->text, "nil") || str_is(t->text, "true") || str_is(t->text, "false")) {
        p->at++;
        struct ast *n = node_lit(p, t, term_atom_n(p->c->arena, t->text));
        n->quoted = true;
        return n;
    }
    for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
        if (str_is(t->text, reserved[i]))
            return report_unexpected_node(p, "a term");
    p->at++;
    if (at_punct(p, P_LPAREN) && !tok(p)->spaced)
        return parse_call(p, t->from, none, t->text, true);
    struct ast *n = make_node(p, str_is(t->text, "_") ? A_ANY : A_VAR, t->from);
    n->text = t->text;
    n->len = t->len;
    return n;
}

/* Parses a term that begins with a punctuation mark, except parentheses. */
static struct ast *parse_elixir_mark(struct parser *p)
{
    if (at_punct(p, P_LBRACK))
        return parse_elixir_list(p);
    if (at_punct(p, P_LBRACE))
        return parse_tuple(p, true);
    if (at_punct(p, P_BIN_OPEN))
        return parse_binary(p);
    if (at_punct(p, P_PERCENT))
        return parse_elixir_map(p);
    if (at_punct(p, P_AMP))
        return parse_capture(p);
    if (at_punct(p, P_CARET))
        return parse_pin(p, TOK_ALIAS);
    return report_unexpected_node(p, "a term");
}

struct ast *parse_primary_elixir(struct parser *p)
{
    struct token *t = tok(p);
    struct ast *n = NULL;

    switch (t->type) {
    case TOK_IDENT:
        n = parse_word(p);
        break;
    case TOK_ALIAS:
        p->at++;
        n = node_lit(p, t, term_atom_n(p->c->arena, alias_atom(p, t->text)));
        n->quoted = true;
        n->plain = !memchr(t->text.at, '.', t->text.len);
        break;
    case TOK_LIT:
        n = parse_literal(p);
        break;
    case TOK_REGEX:
        return parse_regex(p);
    case TOK_PUNCT:
        if (!take_punct(p, P_LPAREN))
            return parse_elixir_mark(p);
        if (!(n = parse_expr(p, PARSE_ANY)) || !want_punct(p, P_RPAREN, t->from))
            return NULL;
        n->paren = true;
        break;
    case TOK_END:
    case TOK_VAR:
    case TOK_KEY:
    case TOK_EVENT:
    case TOK_PREFIX:
        return report_unexpected_node(p, "a term");
    }
    return n ? parse_behind(p, n) : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the terms of Erlang, without operators. A record may name its module, as in redbug: mod#rec{field=P}. */
#include <string.h>

#include "parse.h"

static const char *const reserved[] = {"after", "begin", "case", "catch",   "cond",  "else",    "end",
                                       "fun",   "if",    "let",  "of",      "maybe", "receive", "try",
                                       "when",  "where", "and",  "andalso", "or",    "orelse",  "xor",
                                       "div",   "rem",   "band", "bor",     "bxor",  "bsl",     "bsr"};

static struct ast *parse_erlang_list(struct parser *p)
{
    struct ast *n = make_node(p, A_LIST, tok(p)->from), *tail = NULL;
    struct ptrs items = {0};

    p->at++;
    if (!parse_items(p, P_RBRACK, false, &items))
        return NULL;
    if (items.count && take_punct(p, P_BAR) && !(tail = parse_expr(p, PARSE_ANY)))
        return NULL;
    return close_node(p, n, &items, tail, P_RBRACK, n->from);
}

/* Parses the rest of #{…}; the current token is '{', and `from` is the place of the hash. */
static struct ast *parse_erlang_map(struct parser *p, size_t from)
{
    struct ast *n = make_node(p, A_MAP, from);
    struct ptrs items = {0};
    const size_t open = tok(p)->from;

    p->at++;
    while (!at_punct(p, P_RBRACE)) {
        struct ast *key = parse_expr(p, PARSE_NO_MATCH), *value;
        if (!key)
            return NULL;
        n->assigns |= at_punct(p, P_ASSIGN);
        if (!take_punct(p, P_ASSIGN) && !take_punct(p, P_ASSOC))
            return report_unexpected_node(p, "':=' or '=>'");
        if (!(value = parse_expr(p, PARSE_ANY)))
            return NULL;
        ptrs_add(&items, p->c->arena, key);
        ptrs_add(&items, p->c->arena, value);
        if (!take_punct(p, P_COMMA))
            break;
        if (at_punct(p, P_RBRACE))
            return report_unexpected_node(p, "another key");
    }
    return close_node(p, n, &items, NULL, P_RBRACE, open);
}

static bool name_of(struct parser *p, struct str *ret)
{
    struct token *t = tok(p);

    if (t->type == TOK_IDENT)
        *ret = t->text;
    else if (t->type == TOK_LIT && t->value->type == TERM_ATOM)
        *ret = t->value->text;
    else
        return report_unexpected(p, "a name");
    p->at++;
    return true;
}

/*
 * Parses the name of a record. The name of a native record may have a module (mod:rec), may look like a variable, and
 * may be `_`, which stands for any native record.
 */
static bool parse_record_name(struct parser *p, struct ast *n)
{
    struct token *t = tok(p);
    bool own = !n->module.len;

    if (t->type != TOK_VAR || !(next_is_punct(p, P_LBRACE) || next_is_punct(p, P_DOT) || next_is_punct(p, P_COLON))) {
        if (!name_of(p, &n->text))
            return false;
    } else {
        n->quoted = str_is(t->text, "_");
        n->text = t->text;
        p->at++;
    }
    if (n->quoted || !(own || p->where) || !at_punct(p, P_COLON))
        return true;
    n->quoted = true;
    n->module = n->text;
    t = &p->tokens[++p->at];
    if (t->type != TOK_VAR)
        return name_of(p, &n->text);
    n->text = t->text;
    p->at++;
    return true;
}

/* Parses a record at the name after the hash: rec{f = P, …}, rec.f, or rec alone (redbug). */
static struct ast *parse_record(struct parser *p, size_t from, struct str module, struct ast *of)
{
    struct ast *n = make_node(p, A_RECORD, from);
    struct ptrs items = {0};

    n->module = module;
    if (!parse_record_name(p, n))
        return NULL;
    if (at_punct(p, P_DOT) && !tok(p)->spaced) {
        struct token *field = &p->tokens[++p->at];
        struct str name;
        if (!name_of(p, &name))
            return NULL;
        n->type = A_RECFIELD;
        ptrs_add(&items, p->c->arena, of);
        ptrs_add(&items, p->c->arena, node_lit(p, field, term_atom_n(p->c->arena, name)));
        return node_with(p, n, &items, NULL, tok_end(field));
    }
    if (of) {
        diag(p->c, from, tok_end(tok(p)) - from, "a record cannot be updated here");
        return NULL;
    }
    const size_t open = tok(p)->from;
    if (!take_punct(p, P_LBRACE)) {
        if (!module.len || n->quoted)
            return report_unexpected_node(p, "the '{' or '.' of a record");
        return node_with(p, n, &items, NULL, tok_end(&p->tokens[p->at - 1]));
    }
    while (!at_punct(p, P_RBRACE)) {
        struct token *t = tok(p);
        struct str field;
        struct ast *key, *value;
        if (t->type == TOK_VAR && str_is(t->text, "_")) {
            p->at++;
            key = make_node(p, A_ANY, t->from);
            key->len = t->len;
        } else {
            if (!name_of(p, &field))
                return NULL;
            key = node_lit(p, t, term_atom_n(p->c->arena, field));
        }
        if (!take_punct(p, P_MATCH))
            return report_unexpected_node(p, "'='");
        if (!(value = parse_expr(p, PARSE_ANY)))
            return NULL;
        ptrs_add(&items, p->c->arena, key);
        ptrs_add(&items, p->c->arena, value);
        if (!take_punct(p, P_COMMA))
            break;
        if (at_punct(p, P_RBRACE))
            return report_unexpected_node(p, "another field");
    }
    return close_node(p, n, &items, NULL, P_RBRACE, open);
}

/* Parses fun m:f/a, a literal. */
static struct ast *parse_external(struct parser *p)
{
    const size_t from = tok(p)->from;
    struct str module, function;

    p->at++;
    if (at_punct(p, P_LPAREN)) {
        diag(p->c, from, 3, "a fun is not allowed here");
        diag_note(p->c, "write the fun … end after the function that it is for");
        return NULL;
    }
    if (!name_of(p, &module))
        return NULL;
    if (!take_punct(p, P_COLON))
        return report_unexpected_node(p, "':'");
    return name_of(p, &function) ? parse_export(p, from, module, function) : NULL;
}

/* Parses a word or a quoted atom: an atom, a call, or a record of a module. */
static struct ast *parse_name(struct parser *p)
{
    struct token *t = tok(p);
    struct str name = t->type == TOK_IDENT ? t->text : t->value->text, none = {0};

    if (t->type == TOK_IDENT) {
        if (str_is(name, "fun"))
            return parse_external(p);
        for (size_t i = 0; i < ARRAY_LEN(reserved); i++) {
            if (!str_is(name, reserved[i]) || (str_is(name, "where") && t[1].type != TOK_END))
                continue;
            if (t[1].type == TOK_PUNCT &&
                (t[1].punct == P_COMMA || t[1].punct == P_RPAREN || t[1].punct == P_RBRACE || t[1].punct == P_RBRACK)) {
                diag(p->c, t->from, t->len, "'" STR_FMT "' is a reserved word", STR_ARG(name));
                diag_note(p->c, "quote it to mean the atom");
                return NULL;
            }
            return report_unexpected_node(p, "a term");
        }
    }
    p->at++;
    if (at_punct(p, P_LPAREN) && (!tok(p)->spaced || t->type == TOK_IDENT))
        return parse_call(p, t->from, none, name, false);
    if (at_punct(p, P_COLON) && (p->tokens[p->at + 1].type == TOK_IDENT || p->tokens[p->at + 1].quoted)) {
        struct str function;
        p->at++;
        if (!name_of(p, &function))
            return NULL;
        if (at_punct(p, P_SLASH)) {
            diag(p->c, t->from, tok_end(&p->tokens[p->at - 1]) - t->from, "a function is a tuple here");
            diag_note(p->c, "as in caller == {" STR_FMT ", " STR_FMT ", 2}", STR_ARG(name), STR_ARG(function));
            return NULL;
        }
        if (!at_punct(p, P_LPAREN))
            return report_unexpected_node(p, "'('");
        return parse_call(p, t->from, name, function, false);
    }
    if (at_punct(p, P_HASH) && !tok(p)->spaced && !next_is_punct(p, P_LBRACE)) {
        p->at++;
        struct ast *n = parse_record(p, t->from, name, NULL);
        if (n && n->quoted && (!p->where || n->type == A_RECORD)) {
            diag(p->c, n->from, n->len, "a record cannot be updated here");
            return NULL;
        }
        if (n && p->where && t->type == TOK_IDENT && n->type == A_RECFIELD) {
            n->module = n->quoted ? n->module : none; /* `ret` in ret#rec.field is a property, not a module */
            n->items[0] = node_lit(p, t, term_atom_n(p->c->arena, name));
        }
        return n;
    }
    return node_lit(p, t, term_atom_n(p->c->arena, name));
}

static struct ast *parse_variable(struct parser *p)
{
    struct token *t = tok(p);
    struct ast *n = make_node(p, str_is(t->text, "_") ? A_ANY : A_VAR, t->from);

    n->text = t->text;
    n->len = t->len;
    p->at++;
    if (n->type == A_VAR && at_punct(p, P_HASH) && !tok(p)->spaced) {
        struct str none = {0};
        if (next_is_punct(p, P_LBRACE)) {
            diag(p->c, t->from, tok_end(tok(p)) + 1 - t->from, "a map cannot be updated here");
            return NULL;
        }
        p->at++;
        return parse_record(p, t->from, none, n);
    }
    return n;
}

static struct ast *parse_erlang_literal(struct parser *p)
{
    struct token *t = tok(p);
    struct ast *n = parse_literal(p);

    if (n->type == A_UNIT || !t->string || t->value->type != TERM_LIST)
        return n;
    while (tok(p)->type == TOK_LIT && tok(p)->string) {
        const struct term *more = tok(p)->value;
        size_t count = n->value->count + more->count;
        const struct term **items = arena_alloc(p->c->arena, count * sizeof(*items) + 1);
        memcpy(items, n->value->items, n->value->count * sizeof(*items));
        memcpy(items + n->value->count, more->items, more->count * sizeof(*items));
        n->value = term_list(p->c->arena, count, items, NULL);
        n->len = tok_end(tok(p)) - n->from;
        p->at++;
    }
    return n;
}

/*
 * Parses the tests in the parentheses of a guard. ',' means andalso, and ';' means orelse; ',' binds tighter. Without a
 * separator the parentheses contain one expression.
 */
static struct ast *parse_bracketed(struct parser *p, enum punct separator)
{
    const bool outer = separator == P_SEMI;
    struct ptrs items = {0};
    struct ast *n;

    do {
        if (!(n = outer ? parse_bracketed(p, P_COMMA) : parse_expr(p, PARSE_ANY)))
            return NULL;
        ptrs_add(&items, p->c->arena, n);
    } while (p->guard && take_punct(p, separator));
    return items.count > 1 ? node_ops(p, outer ? FN_ORELSE : FN_ANDALSO, &items, ast_end(n)) : n;
}

/* Parses a term that begins with a punctuation mark. */
static struct ast *parse_erlang_mark(struct parser *p)
{
    const size_t from = tok(p)->from;
    const struct str none = {0};
    struct ast *n;

    if (take_punct(p, P_LPAREN)) {
        if (!(n = parse_bracketed(p, P_SEMI)) || !want_punct(p, P_RPAREN, from))
            return NULL;
        n->paren = true;
        return n;
    }
    if (take_punct(p, P_HASH))
        return at_punct(p, P_LBRACE) ? parse_erlang_map(p, from) : parse_record(p, from, none, NULL);
    if (at_punct(p, P_LBRACK))
        return parse_erlang_list(p);
    if (at_punct(p, P_LBRACE))
        return parse_tuple(p, false);
    if (at_punct(p, P_BIN_OPEN))
        return parse_binary(p);
    if (at_punct(p, P_CARET))
        return parse_pin(p, TOK_VAR);
    return report_unexpected_node(p, "a term");
}

static struct ast *parse_primary(struct parser *p)
{
    struct token *t = tok(p);
    struct ast *n = NULL;

    switch (t->type) {
    case TOK_IDENT:
        n = parse_name(p);
        break;
    case TOK_VAR:
        return parse_variable(p);
    case TOK_LIT:
        n = t->value->type == TERM_ATOM && t->quoted ? parse_name(p) : parse_erlang_literal(p);
        if (n && n->type == A_LIT && t->quoted) {
            n->quoted = true;
            n->plain = false;
        }
        break;
    case TOK_REGEX:
        return parse_regex(p);
    case TOK_PUNCT:
        return parse_erlang_mark(p);
    case TOK_END:
    case TOK_ALIAS:
    case TOK_KEY:
    case TOK_EVENT:
    case TOK_PREFIX:
        return report_unexpected_node(p, "a term");
    }
    if (n && p->where && n->type == A_LIT && at_punct(p, P_LBRACK) && !tok(p)->spaced && !n->quoted) {
        struct ast *index = make_node(p, A_INDEX, n->from), *number;
        struct ptrs items = {0};
        const size_t open = tok(p)->from;
        p->at++;
        if (!(number = parse_expr(p, PARSE_ANY)) || !want_punct(p, P_RBRACK, open))
            return NULL;
        ptrs_add(&items, p->c->arena, n);
        ptrs_add(&items, p->c->arena, number);
        index = node_with(p, index, &items, NULL, tok_end(&p->tokens[p->at - 1]));
        if (!index || !at_punct(p, P_HASH) || tok(p)->spaced)
            return index;
        p->at++;
        return parse_record(p, index->from, (struct str){0}, index);
    }
    return n;
}

/* Parses one operand. Only parentheses that group tests may contain several tests; calls, tuples and lists may not. */
struct ast *parse_primary_erlang(struct parser *p)
{
    const bool guard = p->guard, list = p->list;

    p->guard = guard && at_punct(p, P_LPAREN);
    p->list = at_punct(p, P_LBRACK);
    struct ast *n = parse_primary(p);
    p->guard = guard;
    p->list = list;
    return n;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a tree from tokens. parse.c parses probes and clauses, parse_other.c the syntax of other tools, parse_erlang.c
 * and parse_elixir.c the terms of their surface, and parse_expr.c the shared part: operators and the building of nodes.
 */
#ifndef ETRACE_PARSE_H
#define ETRACE_PARSE_H

#include "lex.h"

#define PARSE_MAX_DEPTH 200
#define PARSE_MAX_SIZE 100000 /* only an expression with 'in' can reach it */

struct operand {
    struct ast *n;
    size_t end; /* index of the token behind the operand */
};

struct parser {
    struct comp *c;
    struct token *tokens;
    size_t count;
    const struct err *bad; /* the error of struct tokens, or NULL */
    size_t at;
    unsigned depth;
    bool loose;               /* `and`, `or` and `xor` bind weaker than comparisons here (parse_expr.c) */
    bool *loose_at;           /* for each token, whether an expression that begins with it is parsed with `loose` set */
    struct operand *operands; /* for each token, the operand that begins with it, once that operand is parsed */
    bool where;               /* units and args[N] are allowed */
    bool by;                  /* the parser is behind the word `by` */
    bool guard;               /* parentheses may contain several tests, separated by ',' and ';' */
    bool list;                /* the current expression is directly inside of [ ] */
};

/*
 * Parses the tokens of one probe. The result is a list of several probes if the user wrote a list of {M, F, A}, or
 * several alternatives with patterns.
 */
bool parse_probe(struct comp *c, const struct tokens *t, struct ast_probe *ret);

/* Parses tokens that are one expression. */
struct ast *parse_alone(struct comp *c, const struct tokens *t, bool where);

/* Parses tokens that are `by`, keys and aggregates. */
bool parse_by_alone(struct comp *c, const struct tokens *t, struct ast_probe *ret);

/* ---- selectors ---- */

bool select_parse(struct parser *p, struct ast_probe *probe);
bool select_module(struct parser *p, struct sel_name *ret); /* parses one module, or a pattern for several */
struct str elixir_module(struct arena *a, struct str alias);

/* ---- clauses and probes ---- */

bool parse_clauses(struct parser *p, struct ast_probe *probe);
bool parse_clause_rest(struct parser *p, struct ast_clause *cl); /* parses guard and body */
void parse_add_clause(struct parser *p, struct ptrs *list, const struct ast_clause *cl);
void parse_take_clauses(struct parser *p, struct ast_probe *probe, const struct ptrs *list);
/* Parses `where` and `by`, and requires the end of the probe. */
bool parse_end(struct parser *p, struct ast_probe *probe);
/* Returns true, and sets the note of the error, if the module at `from` is the name of a node, such as shop@host. */
bool parse_is_node(struct parser *p, const struct sel_name *module, size_t from);

/* The following functions parse the syntax of other tools. parse_fun() sets *ret_found if it found a fun. */
bool parse_fun(struct parser *p, struct ast_probe *probe, bool *ret_found);
bool parse_raw(struct parser *p, struct ast_probe *probe);
bool parse_mfa(struct parser *p, struct ast_probe *probe);

/* ---- expressions ---- */

struct ast *parse_expr(struct parser *p, int least);
struct ast *parse_primary_erlang(struct parser *p);
struct ast *parse_primary_elixir(struct parser *p);
/* Returns true if the result of the operator is a boolean. */
bool parse_is_test(struct parser *p, const struct token *t);
#define PARSE_ANY 0       /* lowest binding power: any operator */
#define PARSE_NO_MATCH 15 /* any operator but `=` */

/* ---- nodes ---- */

struct ast *make_node(struct parser *p, enum ast_type type, size_t from);
/* Sets the children and the end of a node. Returns NULL after an error if the tree is too deep. */
struct ast *node_with(struct parser *p, struct ast *n, const struct ptrs *items, struct ast *tail, size_t end);
struct ast *node_op(struct parser *p, int op, struct ast *left, struct ast *right_or_null, size_t from, size_t end);
/* Makes one node of all operands. */
struct ast *node_ops(struct parser *p, int op, const struct ptrs *items, size_t end);
struct ast *node_lit(struct parser *p, const struct token *t, term_t value);
size_t ast_end(const struct ast *n);

/* ---- tokens ---- */

static inline struct token *tok(struct parser *p)
{
    return &p->tokens[p->at];
}

static inline bool at_punct(struct parser *p, enum punct punct)
{
    return tok(p)->type == TOK_PUNCT && tok(p)->punct == punct;
}

static inline bool next_is_punct(struct parser *p, enum punct punct)
{
    struct token *t = tok(p);
    return t->type != TOK_END && t[1].type == TOK_PUNCT && t[1].punct == punct;
}

static inline bool at_word(struct parser *p, const char *word)
{
    return tok(p)->type == TOK_IDENT && str_is(tok(p)->text, word);
}

static inline size_t tok_end(const struct token *t)
{
    return t->from + t->len;
}

bool take_punct(struct parser *p, enum punct punct); /* consumes the token if it matches */
/* Consumes the token; if it does not match, reports an error at the opening bracket `open`. */
bool want_punct(struct parser *p, enum punct punct, size_t open);
/* Consumes the closing `punct` and calls node_with(). */
struct ast *close_node(struct parser *p, struct ast *n, const struct ptrs *items, struct ast *tail, enum punct punct,
                       size_t open);
bool report_unexpected(struct parser *p, const char *wanted);       /* always false */
void *report_unexpected_node(struct parser *p, const char *wanted); /* always NULL */

/*
 * Parses comma-separated items up to `close`. With `keys`, the items may end with `key: value` pairs of Elixir, which
 * become one item: a keyword list.
 */
bool parse_items(struct parser *p, enum punct close, bool keys, struct ptrs *ret);
/* Parses a tuple at its brace. `keys` is the argument of parse_items(). */
struct ast *parse_tuple(struct parser *p, bool keys);
/* Parses the /Arity of a fun and makes the literal of the fun. The text of the literal begins at `from`. */
struct ast *parse_export(struct parser *p, size_t from, struct str module, struct str function);
/* Parses a function call at the parenthesis after its name. */
struct ast *parse_call(struct parser *p, size_t from, struct str module, struct str name, bool keys);
/* Elixir: parses `key: value, …` into a list of pairs. The current token is a TOK_KEY. */
struct ast *parse_keywords(struct parser *p);
struct ast *parse_binary(struct parser *p);  /* parses <<…>> at the << */
struct ast *parse_literal(struct parser *p); /* parses a literal with its unit, if any */
struct ast *parse_regex(struct parser *p);
/* Parses ^name at the caret. The name is an identifier or a token of type `name`. */
struct ast *parse_pin(struct parser *p, enum tok_type name);

#endif

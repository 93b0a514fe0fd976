/*
 * Tokens to a tree. parse.c reads probes and clauses, parse_other.c what other tools write, parse_erlang.c and parse_elixir.c the terms of their surface,
 * parse_expr.c what both share: operators and the building of nodes.
 */
#ifndef ETRACE_PARSE_H
#define ETRACE_PARSE_H

#include "lex.h"

#define PARSE_MAX_DEPTH 200
#define PARSE_MAX_SIZE 100000 /* more than anybody can write without an 'in' */

struct parser {
    struct comp *c;
    struct token *tokens;
    size_t at;
    unsigned depth;
    bool loose;       /* `and`, `or`, `xor` bind weaker than comparisons: see parse_expr.c */
    bool *loose_at;   /* for each token: an expression that begins there is read that way */
    bool where;       /* units and args[N] have a meaning */
    bool guard;       /* brackets may hold tests with ',' and ';' between them */
    bool list;        /* directly inside of [ ] */
};

/* One probe of the text at *pos, which moves behind it. */
bool parse_probe(struct comp *c, size_t *pos, struct ast_probe *ret);

/* The selectors of a probe: they are read from the text itself, as globs and patterns are not tokens of a term. */
bool select_begins(struct str text, size_t pos);
bool select_parse(struct comp *c, size_t *pos, struct ast_probe *p);
bool select_module(struct comp *c, size_t *pos, struct sel_name *ret); /* a module by itself, or several by a pattern */
struct str elixir_module(struct arena *a, struct str alias);
size_t select_blanks(struct str text, size_t pos); /* the next place that is not a blank on this line */

/* ---- clauses and probes ---- */

/* Lexes from *pos on, and begins to parse. */
bool parse_start(struct comp *c, size_t *pos, struct parser *p);
bool parse_clauses(struct parser *p, struct ast_probe *probe);
bool parse_clause_rest(struct parser *p, struct ast_clause *cl); /* guard and body */
void parse_add_clause(struct parser *p, struct ptrs *list, const struct ast_clause *cl);
void parse_take_clauses(struct parser *p, struct ast_probe *probe, const struct ptrs *list);
bool parse_end(struct parser *p, struct ast_probe *probe); /* where, and nothing more */

/* What other tools write; ret_found tells whether a fun was there. */
bool parse_fun(struct parser *p, struct ast_probe *probe, bool *ret_found);
bool parse_raw(struct parser *p, struct ast_probe *probe);
bool parse_mfa(struct comp *c, size_t *pos, struct ast_probe *probe);

/* ---- expressions ---- */

struct ast *parse_expr(struct parser *p, int least);
struct ast *parse_primary_erlang(struct parser *p);
struct ast *parse_primary_elixir(struct parser *p);
#define PARSE_ANY 0      /* the least binding power: everything */
#define PARSE_NO_MATCH 15 /* everything but `=` */

/* ---- nodes ---- */

struct ast *node(struct parser *p, enum ast_type type, size_t from);
/* Sets children and the end of the node; NULL with an error when the tree is too deep. */
struct ast *node_with(struct parser *p, struct ast *n, const struct ptrs *items, struct ast *tail, size_t end);
struct ast *node_op(struct parser *p, int op, struct ast *left, struct ast *right_or_null, size_t from, size_t end);
struct ast *node_ops(struct parser *p, int op, const struct ptrs *items, size_t end); /* one operator of them all */
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

bool take_punct(struct parser *p, enum punct punct); /* moves on when it is there */
bool want_punct(struct parser *p, enum punct punct, size_t open); /* or an error, which names what was opened */
/* node_with(), ended by `punct`. */
struct ast *close_node(struct parser *p, struct ast *n, const struct ptrs *items, struct ast *tail, enum punct punct,
                       size_t open);
bool unexpected(struct parser *p, const char *wanted); /* always false */
void *unexpected_node(struct parser *p, const char *wanted); /* always NULL */

/* Comma-separated items up to `close`; keys (Elixir) become a last keyword list when `keys` allows it. */
bool parse_items(struct parser *p, enum punct close, bool keys, struct ptrs *ret);
/* The call of a function, at the parenthesis behind its name. */
struct ast *parse_call(struct parser *p, size_t from, struct str module, struct str name, bool keys);
/* For Elixir: the pairs of `key: value, …` as a list, at a TOK_KEY. */
struct ast *parse_keywords(struct parser *p);
struct ast *parse_binary(struct parser *p); /* <<…>>, at the << */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses operators by binding power, and has the functions that both surfaces share.
 *
 * In Erlang `and`, `or` and `xor` bind tighter than comparisons. Therefore `X == 1 and Y == 2` is an error, and
 * `is_atom(X) and Y == 0` compares a boolean with a number. redbug lets comparisons bind tighter. This parser first
 * arranges the operands as Erlang does. If the result is an error or can never hold, it arranges the same operands as
 * redbug does.
 */
#include "parse.h"

#include <string.h>

#include "meant.h"

struct ast *make_node(struct parser *p, enum ast_type type, size_t from)
{
    struct ast *n = arena_alloc(p->c->arena, sizeof(*n));

    n->type = type;
    n->from = from;
    n->size = n->depth = 1;
    return n;
}

struct ast *parse_literal(struct parser *p)
{
    struct token *t = tok(p);
    struct ast *n = node_lit(p, t, t->value);

    p->at++;
    if (t->suffix.len) {
        n->type = A_UNIT;
        n->text = t->suffix;
    }
    return n;
}

struct ast *parse_regex(struct parser *p)
{
    const struct token *t = tok(p);
    struct ast *n = make_node(p, A_REGEX, t->from);

    p->at++;
    n->text = t->text;
    n->len = t->len;
    return n;
}

struct ast *parse_pin(struct parser *p, enum tok_type name)
{
    struct ast *n = make_node(p, A_PIN, tok(p)->from);

    p->at++;
    if (tok(p)->type != name && tok(p)->type != TOK_IDENT)
        return report_unexpected_node(p, "the name of a --let");
    n->text = tok(p)->text;
    n->len = tok_end(tok(p)) - n->from;
    p->at++;
    return n;
}

size_t ast_end(const struct ast *n)
{
    return n->from + n->len;
}

/* Returns the number of copies of its left operand that an 'in' contains after it was expanded. */
static size_t count_copies(const struct ast *of)
{
    if (of->type == A_OP && of->op == OP_RANGE)
        return 4;
    return MAX(of->type == A_LIT && of->value->type == TERM_LIST ? of->value->count : of->count, 1);
}

struct ast *node_with(struct parser *p, struct ast *n, const struct ptrs *items, struct ast *tail, size_t end)
{
    unsigned depth = tail ? tail->depth : 0;
    size_t size = tail ? tail->size : 0;

    n->items = (struct ast **)(void *)items->items;
    n->count = items->count;
    n->tail = tail;
    n->len = end - n->from;
    for (size_t i = 0; i < n->count; i++)
        if (n->items[i]) {
            depth = MAX(depth, n->items[i]->depth);
            size += n->items[i]->size;
        }
    n->depth = depth + 1;
    n->size = size + 1;
    if (n->depth > PARSE_MAX_DEPTH) {
        diag(p->c, n->from, 1, "this is nested too deeply");
        diag_note(p->c, "the limit is %d levels", PARSE_MAX_DEPTH);
        return NULL;
    }
    if (n->type == A_OP && (n->op == OP_IN || n->op == OP_NOT_IN))
        n->size += (count_copies(n->items[1]) - 1) * n->items[0]->size;
    if (n->size > PARSE_MAX_SIZE) {
        diag(p->c, n->from, n->len, "this is too large when each 'in' is expanded");
        diag_note(p->c, "the term before 'in' is repeated for every element of the list");
        return NULL;
    }
    return n;
}

struct ast *node_op(struct parser *p, int op, struct ast *left, struct ast *right, size_t from, size_t end)
{
    struct ast *n = make_node(p, A_OP, from);
    struct ptrs items = {0};

    n->op = op;
    ptrs_add(&items, p->c->arena, left);
    if (right)
        ptrs_add(&items, p->c->arena, right);
    return node_with(p, n, &items, NULL, end);
}

struct ast *node_ops(struct parser *p, int op, const struct ptrs *items, size_t end)
{
    struct ast *n = make_node(p, A_OP, ((struct ast *)items->items[0])->from);

    n->op = op;
    return node_with(p, n, items, NULL, end);
}

struct ast *node_lit(struct parser *p, const struct token *t, term_t value)
{
    struct ast *n = make_node(p, A_LIT, t->from);

    n->len = t->len;
    n->value = value;
    n->quoted = t->quoted;
    n->plain = p->c->surface == SPEC_ERLANG && !t->quoted;
    return n;
}

/* ---- errors ---- */

static const char *const marks[] = {
#define PUNCT(id, text, surfaces) text,
#include "punct.def"
};

bool report_unexpected(struct parser *p, const char *wanted)
{
    struct token *t = tok(p);
    const bool arrow = (at_punct(p, P_MINUS) && next_is_punct(p, P_GT)) ||
                       (at_punct(p, P_GT) && p->at && t[-1].type == TOK_PUNCT && t[-1].punct == P_MINUS);

    if (t->type == TOK_END) {
        diag(p->c, t->from, 1, "the expression ends too early");
    } else {
        struct str text = {p->c->text.at + t->from, t->len};
        diag(p->c, t->from, t->len, "unexpected '" STR_FMT "'", (int)MIN(text.len, 60), text.at);
    }
    return arrow ? diag_note(p->c, "write -> without a blank") : diag_note(p->c, "expected %s", wanted);
}

void *report_unexpected_node(struct parser *p, const char *wanted)
{
    report_unexpected(p, wanted);
    return NULL;
}

bool take_punct(struct parser *p, enum punct punct)
{
    if (!at_punct(p, punct))
        return false;
    p->at++;
    return true;
}

bool want_punct(struct parser *p, enum punct punct, size_t open)
{
    if (take_punct(p, punct))
        return true;
    if (tok(p)->type == TOK_END) {
        const struct str mark = {p->c->text.at + open, 1};
        diag(p->c, open, 1, "'" STR_FMT "' is not closed", STR_ARG(mark));
        return diag_note(p->c, "the closing '%s' is missing", marks[punct]);
    }
    struct str text = {p->c->text.at + tok(p)->from, tok(p)->len};
    diag(p->c, tok(p)->from, tok(p)->len, "unexpected '" STR_FMT "'", (int)MIN(text.len, 60), text.at);
    return diag_note(p->c,
                     punct == P_RPAREN || punct == P_RBRACK || punct == P_RBRACE || punct == P_BIN_CLOSE
                         ? "expected ',' or '%s'"
                         : "expected '%s'",
                     marks[punct]);
}

struct ast *close_node(struct parser *p, struct ast *n, const struct ptrs *items, struct ast *tail, enum punct punct,
                       size_t open)
{
    return want_punct(p, punct, open) ? node_with(p, n, items, tail, tok_end(&p->tokens[p->at - 1])) : NULL;
}

/* ---- items ---- */

struct ast *parse_keywords(struct parser *p)
{
    struct ast *list = make_node(p, A_LIST, tok(p)->from);
    struct ptrs items = {0};

    while (tok(p)->type == TOK_KEY) {
        struct ast *pair = make_node(p, A_TUPLE, tok(p)->from);
        struct ptrs two = {0};
        struct ast *key = node_lit(p, tok(p), tok(p)->value);
        key->quoted = true;
        p->at++;
        struct ast *value = parse_expr(p, PARSE_ANY);
        if (!value)
            return NULL;
        ptrs_add(&two, p->c->arena, key);
        ptrs_add(&two, p->c->arena, value);
        if (!node_with(p, pair, &two, NULL, ast_end(value)))
            return NULL;
        ptrs_add(&items, p->c->arena, pair);
        if (!at_punct(p, P_COMMA) || p->tokens[p->at + 1].type != TOK_KEY)
            break;
        p->at++;
    }
    return node_with(p, list, &items, NULL, tok_end(&p->tokens[p->at - 1]));
}

bool parse_items(struct parser *p, enum punct close, bool keys, struct ptrs *ret)
{
    if (at_punct(p, close))
        return true;
    for (;;) {
        bool keyword = keys && tok(p)->type == TOK_KEY;
        struct ast *item = keyword ? parse_keywords(p) : parse_expr(p, PARSE_ANY);
        if (!item)
            return false;
        ptrs_add(ret, p->c->arena, item);
        if (keyword || !take_punct(p, P_COMMA) || at_punct(p, P_ELLIPSIS))
            return true;
    }
}

struct ast *parse_tuple(struct parser *p, bool keys)
{
    struct ast *n = make_node(p, A_TUPLE, tok(p)->from);
    struct ptrs items = {0};

    p->at++;
    return parse_items(p, P_RBRACE, keys, &items) ? close_node(p, n, &items, NULL, P_RBRACE, n->from) : NULL;
}

struct ast *parse_export(struct parser *p, size_t from, struct str module, struct str function)
{
    struct ast *n = make_node(p, A_LIT, from);

    if (!take_punct(p, P_SLASH))
        return report_unexpected_node(p, "'/'");
    struct token *t = tok(p);
    if (t->type != TOK_LIT || t->value->type != TERM_INT || t->value->integer > SPEC_ARITY_MAX)
        return report_unexpected_node(p, "an arity");
    p->at++;
    struct term *v = arena_alloc(p->c->arena, sizeof(*v));
    v->type = TERM_EXPORT;
    v->items = arena_alloc(p->c->arena, 3 * sizeof(*v->items));
    v->items[0] = term_atom_n(p->c->arena, module);
    v->items[1] = term_atom_n(p->c->arena, function);
    v->items[2] = t->value;
    v->count = 3;
    n->value = v;
    n->len = tok_end(t) - n->from;
    return n;
}

struct ast *parse_call(struct parser *p, size_t from, struct str module, struct str name, bool keys)
{
    struct ast *n = make_node(p, A_CALL, from);
    struct ptrs items = {0};
    const size_t open = tok(p)->from;

    n->module = module;
    n->text = name;
    n->called = open - from;
    p->at++;
    return parse_items(p, P_RPAREN, keys, &items) ? close_node(p, n, &items, NULL, P_RPAREN, open) : NULL;
}

/* ---- operators ---- */

enum assoc { LEFT, RIGHT, NONE };

struct binary_op {
    int punct; /* the punctuation mark; -1 if the operator is a word */
    const char *word;
    int power;
    enum assoc assoc;
    int op; /* the operator in the tree; -1 for `=`, which makes an A_MATCH */
};

#define COMPARES 40
#define LOOSE 35
#define UNARY 90

static const struct binary_op erlang_ops[] = {
    {P_MATCH, NULL, 10, RIGHT, -1},
    {-1, "orelse", 20, LEFT, FN_ORELSE},
    {-1, "andalso", 30, LEFT, FN_ANDALSO},
    {P_EQ2, NULL, COMPARES, NONE, FN_EQ},
    {P_NE, NULL, COMPARES, NONE, FN_NE},
    {P_LE_ERL, NULL, COMPARES, NONE, FN_LE},
    {P_LT, NULL, COMPARES, NONE, FN_LT},
    {P_GE, NULL, COMPARES, NONE, FN_GE},
    {P_GT, NULL, COMPARES, NONE, FN_GT},
    {P_EQ_EXACT, NULL, COMPARES, NONE, FN_EQ_EXACT},
    {P_NE_EXACT, NULL, COMPARES, NONE, FN_NE_EXACT},
    {P_LIKE, NULL, COMPARES, NONE, OP_LIKE},
    {P_UNLIKE, NULL, COMPARES, NONE, OP_UNLIKE},
    {P_CONCAT, NULL, 50, RIGHT, OP_CONCAT},
    {P_PLUS, NULL, 60, LEFT, FN_ADD},
    {P_MINUS, NULL, 60, LEFT, FN_SUB},
    {-1, "bor", 60, LEFT, FN_BOR},
    {-1, "bxor", 60, LEFT, FN_BXOR},
    {-1, "bsl", 60, LEFT, FN_BSL},
    {-1, "bsr", 60, LEFT, FN_BSR},
    {-1, "or", 60, LEFT, FN_OR},
    {-1, "xor", 60, LEFT, FN_XOR},
    {P_STAR, NULL, 70, LEFT, FN_MUL},
    {P_SLASH, NULL, 70, LEFT, FN_DIVIDE},
    {-1, "div", 70, LEFT, FN_DIV},
    {-1, "rem", 70, LEFT, FN_REM},
    {-1, "band", 70, LEFT, FN_BAND},
    {-1, "and", 70, LEFT, FN_AND},
    {0},
};

static const struct binary_op elixir_ops[] = {
    {P_MATCH, NULL, 10, RIGHT, -1},
    {-1, "or", 20, LEFT, FN_ORELSE},
    {P_BOR3, NULL, 20, LEFT, FN_BOR},
    {-1, "and", 30, LEFT, FN_ANDALSO},
    {P_BAND3, NULL, 30, LEFT, FN_BAND},
    {P_EQ2, NULL, COMPARES, LEFT, FN_EQ},
    {P_NE_EX, NULL, COMPARES, LEFT, FN_NE},
    {P_EQ3, NULL, COMPARES, LEFT, FN_EQ_EXACT},
    {P_NE3, NULL, COMPARES, LEFT, FN_NE_EXACT},
    {P_LIKE, NULL, COMPARES, LEFT, OP_LIKE},
    {P_UNLIKE, NULL, COMPARES, LEFT, OP_UNLIKE},
    {P_LT, NULL, 45, LEFT, FN_LT},
    {P_GT, NULL, 45, LEFT, FN_GT},
    {P_LE_EX, NULL, 45, LEFT, FN_LE},
    {P_GE, NULL, 45, LEFT, FN_GE},
    {P_SHL3, NULL, 50, LEFT, FN_BSL},
    {P_SHR3, NULL, 50, LEFT, FN_BSR},
    {-1, "in", 55, LEFT, OP_IN},
    {P_XOR3, NULL, 57, LEFT, FN_BXOR},
    {P_CONCAT, NULL, 60, RIGHT, OP_CONCAT},
    {P_BINCAT, NULL, 60, RIGHT, OP_BINCAT},
    {P_RANGE, NULL, 60, RIGHT, OP_RANGE},
    {P_PLUS, NULL, 70, LEFT, FN_ADD},
    {P_MINUS, NULL, 70, LEFT, FN_SUB},
    {P_STAR, NULL, 80, LEFT, FN_MUL},
    {P_SLASH, NULL, 80, LEFT, FN_DIVIDE},
    {0},
};

static bool is_loose(int op)
{
    return op == FN_AND || op == FN_OR || op == FN_XOR;
}

static const struct binary_op *operator_of(const struct parser *p, const struct token *t)
{
    const bool elixir = p->c->surface == SPEC_ELIXIR;
    const struct binary_op *op = elixir ? elixir_ops : erlang_ops;

    if (t->type != TOK_PUNCT && t->type != TOK_IDENT)
        return NULL;
    for (; op->power; op++)
        if (t->type == TOK_PUNCT ? op->punct == (int)t->punct : op->word && str_is(t->text, op->word))
            return op;
    return NULL;
}

static const struct binary_op *operator_at(struct parser *p)
{
    return operator_of(p, tok(p));
}

bool parse_is_test(struct parser *p, const struct token *t)
{
    const struct binary_op *op = operator_of(p, t);

    if (t->type == TOK_IDENT && str_is(t->text, "not"))
        return true;
    if (!op || op->op < 0)
        return false;
    return op->op < FN_COUNT ? fn_row((enum fn)op->op)->result == RES_BOOL
                             : op->op == OP_IN || op->op == OP_LIKE || op->op == OP_UNLIKE;
}

/* Reports an operator that the language of the probe does not have, and names the right one. */
static bool report_foreign(struct parser *p)
{
    if (tok(p)->type != TOK_PUNCT && tok(p)->type != TOK_IDENT)
        return false;
    if (p->list && at_punct(p, P_OR2)) {
        diag(p->c, tok(p)->from, tok(p)->len, "comprehensions are not allowed here");
        diag_note(p->c, "a match specification has no loops");
        return true;
    }
    const struct str text = {p->c->text.at + tok(p)->from, tok(p)->len};
    if (!meant(p->c, MEANT_OPERATOR, text))
        return false;
    diag(p->c, tok(p)->from, tok(p)->len, "'" STR_FMT "' is not allowed here", STR_ARG(text));
    meant_note(p->c, MEANT_OPERATOR, text, NULL);
    return true;
}

static bool is_boolean_op(const struct ast *n)
{
    return n->type == A_OP && (is_loose(n->op) || n->op == FN_NOT) && !n->paren;
}

static bool never_boolean(const struct ast *n)
{
    switch (n->type) {
    case A_LIT:
        return !(term_is_atom(n->value, "true") || term_is_atom(n->value, "false") ||
                 (n->value->type == TERM_ATOM && n->value->text.len && n->value->text.at[0] == '$'));
    case A_TUPLE:
    case A_LIST:
    case A_MAP:
    case A_BIN:
    case A_UNIT:
    case A_REGEX:
        return true;
    case A_OP:
        return n->op < FN_COUNT && fn_row((enum fn)n->op)->result != RES_BOOL &&
               fn_row((enum fn)n->op)->result != RES_ANY;
    case A_CALL: {
        enum fn fn = fn_find(n->text, n->count);
        return fn != FN_NONE && fn_row(fn)->result != RES_BOOL && fn_row(fn)->result != RES_ANY;
    }
    case A_ANY:
    case A_VAR:
    case A_PIN:
    case A_RECORD:
    case A_RECFIELD:
    case A_NATIVE:
    case A_SEG:
    case A_MATCH:
    case A_DOT:
    case A_INDEX:
        return false;
    }
    return false;
}

/* Returns true if Erlang's reading of `left OP right` cannot be what the user means. */
static bool cannot_be_meant(const struct ast *left, const struct ast *right)
{
    if (is_boolean_op(left) && never_boolean(right))
        return true;
    if (!is_boolean_op(right) || right->op == FN_NOT)
        return false;
    return never_boolean(right->items[0]) || never_boolean(right->items[1]);
}

static struct ast *parse_operand(struct parser *p)
{
    struct operand *o = &p->operands[p->at];

    if (!o->n) {
        struct ast *n = p->c->surface == SPEC_ELIXIR ? parse_primary_elixir(p) : parse_primary_erlang(p);
        *o = (struct operand){n, p->at};
    }
    p->at = o->end;
    return o->n;
}

static struct ast *parse_unary(struct parser *p)
{
    static const struct {
        int punct;
        const char *word;
        int op, surfaces;
    } ops[] = {
        {P_MINUS, NULL, FN_MINUS, 3}, {P_PLUS, NULL, FN_PLUS, 3}, {-1, "not", FN_NOT, 3},
        {-1, "bnot", FN_BNOT, 1},     {P_NOT3, NULL, FN_BNOT, 2},
    };
    const int surface = p->c->surface == SPEC_ELIXIR ? 2 : 1;
    const size_t from = tok(p)->from;

    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        if (!(ops[i].surfaces & surface) ||
            !(ops[i].word ? at_word(p, ops[i].word) : at_punct(p, (enum punct)ops[i].punct)))
            continue;
        p->at++;
        struct ast *of = parse_expr(p, ops[i].op == FN_NOT && p->loose ? COMPARES : UNARY);
        return of ? node_op(p, ops[i].op, of, NULL, from, ast_end(of)) : NULL;
    }
    if (surface == 2 && at_punct(p, P_BANG)) {
        diag(p->c, from, 1, "'!' is not allowed in a guard");
        diag_note(p->c, "write 'not'");
        return NULL;
    }
    return parse_operand(p);
}

static struct ast *combine_operands(struct parser *p, const struct binary_op *op, struct ast *left, struct ast *right)
{
    if (op->op == OP_RANGE && take_punct(p, P_STEP)) {
        struct ast *step = parse_expr(p, op->power);
        struct ptrs items = {0};
        ptrs_add(&items, p->c->arena, left);
        ptrs_add(&items, p->c->arena, right);
        ptrs_add(&items, p->c->arena, step);
        return step ? node_ops(p, OP_RANGE, &items, ast_end(step)) : NULL;
    }
    if (op->op >= 0) {
        if (op->op == OP_IN && left->type == A_OP && left->op == FN_NOT && !left->paren)
            return node_op(p, OP_NOT_IN, left->items[0], right, left->from, ast_end(right));
        return node_op(p, op->op, left, right, left->from, ast_end(right));
    }
    struct ast *n = make_node(p, A_MATCH, left->from);
    struct ptrs items = {0};
    ptrs_add(&items, p->c->arena, left);
    ptrs_add(&items, p->c->arena, right);
    return node_with(p, n, &items, NULL, ast_end(right));
}

/* Returns true if one node can have any number of operands of this operator, so that they do not nest. */
static bool is_chain(int op)
{
    return op == FN_ORELSE || op == FN_ANDALSO || op == FN_OR || op == FN_AND;
}

/* Parses the further operands of the same operator, and makes one node of all. */
static struct ast *parse_chain(struct parser *p, const struct binary_op *op, int power, struct ast *left,
                               struct ast *right)
{
    struct ptrs items = {0};

    ptrs_add(&items, p->c->arena, left);
    do
        ptrs_add(&items, p->c->arena, right);
    while (operator_at(p) == op && (p->at++, right = parse_expr(p, power + 1)));
    return right ? node_ops(p, op->op, &items, ast_end(right)) : NULL;
}

static struct ast *climb_precedence(struct parser *p, int least)
{
    const size_t begin = p->at;
    struct ast *left;

again:
    if (!(left = parse_unary(p)))
        return NULL;
    for (;;) {
        if (p->c->surface == SPEC_ELIXIR && at_word(p, "not") && p->tokens[p->at + 1].type == TOK_IDENT &&
            str_is(p->tokens[p->at + 1].text, "in") && least <= 55) {
            p->at += 2;
            struct ast *list = parse_expr(p, 56);
            if (!list || !(left = node_op(p, OP_NOT_IN, left, list, left->from, ast_end(list))))
                return NULL;
            continue;
        }
        const struct binary_op *op = operator_at(p);
        if (!op)
            return report_foreign(p) ? NULL : left;
        int power = p->loose && is_loose(op->op) ? LOOSE : p->where && op->op < 0 ? COMPARES : op->power;
        if (power < least)
            return left;
        if (op->op < 0 && p->where && !p->loose) { /* `=` compares here: parse again, with weaker `and` and `or` */
            p->loose_at[begin] = true;
            p->loose = true;
            p->at = begin;
            goto again;
        }
        const size_t mark = p->at++;
        struct ast *right = parse_expr(p, op->assoc == RIGHT ? power : power + 1);
        if (!right)
            return NULL;
        if (op->power == COMPARES && op->assoc == NONE) {
            const struct binary_op *next = operator_at(p);
            bool chained = next && next->power == COMPARES;
            if (!p->loose && (chained || cannot_be_meant(left, right)) &&
                (is_boolean_op(left) || is_boolean_op(right))) {
                p->loose_at[begin] = true;
                p->loose = true;
                p->at = begin;
                goto again;
            }
            if (chained) {
                diag(p->c, tok(p)->from, tok(p)->len, "comparisons cannot be chained");
                diag_note(p->c, "write A %s B andalso B %s C", marks[p->tokens[mark].punct], marks[tok(p)->punct]);
                return NULL;
            }
        }
        left = is_chain(op->op) ? parse_chain(p, op, power, left, right) : combine_operands(p, op, left, right);
        if (!left)
            return NULL;
    }
}

struct ast *parse_expr(struct parser *p, int least)
{
    const bool loose = p->loose;
    struct ast *n = NULL;

    if (++p->depth > PARSE_MAX_DEPTH) {
        diag(p->c, tok(p)->from, tok(p)->len, "this is nested too deeply");
        diag_note(p->c, "the limit is %d levels", PARSE_MAX_DEPTH);
    } else {
        /* An operand of a loose expression is loose, too. An expression in parentheses or brackets is not. */
        p->loose = least == PARSE_ANY ? p->loose_at[p->at] : loose || p->loose_at[p->at];
        n = climb_precedence(p, least);
    }
    p->loose = loose;
    p->depth--;
    return n;
}

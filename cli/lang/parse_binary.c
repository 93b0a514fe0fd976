/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses <<…>> of both surfaces: Value:Size/type-unit:N and value::type-size(n). check_bin.c interprets the segments.
 */
#include "parse.h"

static const struct {
    const char *word;
    enum seg_type type;
} types[] = {
    {"integer", SEG_INTEGER}, {"float", SEG_FLOAT},    {"binary", SEG_BINARY},
    {"bytes", SEG_BINARY},    {"bitstring", SEG_BITS}, {"bits", SEG_BITS},
    {"utf8", SEG_UTF8},       {"utf16", SEG_UTF16},    {"utf32", SEG_UTF32},
};

/* Parses one word of a type list. */
static bool take_type(struct parser *p, struct seg *s)
{
    struct token *t = tok(p);

    if (t->type != TOK_IDENT)
        return report_unexpected(p, "the type of a segment");
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (str_is(t->text, types[i].word)) {
            s->type = types[i].type;
            p->at++;
            return true;
        }
    }
    if (str_is(t->text, "signed"))
        s->is_signed = true;
    else if (str_is(t->text, "little"))
        s->little = true;
    else if (str_is(t->text, "native"))
        s->native = true;
    else if (!str_is(t->text, "unsigned") && !str_is(t->text, "big")) {
        struct guess g;
        guess_init(&g, t->text);
        for (size_t i = 0; i < ARRAY_LEN(types); i++)
            guess_offer(&g, str_of(types[i].word));
        diag(p->c, t->from, t->len, "unknown segment type '" STR_FMT "'", STR_ARG(t->text));
        return diag_guess(p->c, &g);
    }
    p->at++;
    return true;
}

static bool take_unit(struct parser *p, struct seg *s)
{
    struct token *t = tok(p);

    if (t->type != TOK_LIT || t->value->type != TERM_INT || t->value->integer < 1 || t->value->integer > 256)
        return report_unexpected(p, "a unit of 1 to 256");
    s->unit = (int)t->value->integer;
    p->at++;
    return true;
}

static bool erlang_suffix(struct parser *p, struct ast *seg, struct ast **ret_size)
{
    if (take_punct(p, P_COLON)) {
        struct token *t = tok(p);
        if (t->type == TOK_LIT || t->type == TOK_VAR || t->type == TOK_PUNCT)
            *ret_size = parse_primary_erlang(p);
        else
            report_unexpected(p, "a size");
        if (!*ret_size)
            return false;
    }
    if (take_punct(p, P_SLASH)) {
        do {
            if (at_word(p, "unit") && next_is_punct(p, P_COLON)) {
                p->at += 2;
                if (!take_unit(p, &seg->seg))
                    return false;
            } else if (!take_type(p, &seg->seg)) {
                return false;
            }
        } while (take_punct(p, P_MINUS));
    }
    return true;
}

static bool elixir_suffix(struct parser *p, struct ast *seg, struct ast **ret_size)
{
    if (!take_punct(p, P_TYPE))
        return true;
    do {
        bool size = at_word(p, "size") && next_is_punct(p, P_LPAREN);
        bool unit = at_word(p, "unit") && next_is_punct(p, P_LPAREN);
        if (size || unit) {
            const size_t open = p->tokens[p->at + 1].from;
            p->at += 2;
            if (size ? !(*ret_size = parse_expr(p, PARSE_ANY)) : !take_unit(p, &seg->seg))
                return false;
            if (!want_punct(p, P_RPAREN, open))
                return false;
        } else if (tok(p)->type == TOK_LIT && tok(p)->value->type == TERM_INT) {
            *ret_size = node_lit(p, tok(p), tok(p)->value);
            p->at++;
            if (take_punct(p, P_STAR) && !take_unit(p, &seg->seg))
                return false;
        } else if (!take_type(p, &seg->seg)) {
            return false;
        }
    } while (take_punct(p, P_MINUS));
    return true;
}

struct ast *parse_binary(struct parser *p)
{
    const bool elixir = p->c->surface == SPEC_ELIXIR;
    struct ast *n = make_node(p, A_BIN, tok(p)->from);
    struct ptrs segs = {0};

    p->at++;
    while (!at_punct(p, P_BIN_CLOSE)) {
        struct ast *seg = make_node(p, A_SEG, tok(p)->from), *value, *size = NULL;
        struct ptrs items = {0};
        bool minus = at_punct(p, P_MINUS);
        const size_t from = tok(p)->from;
        if (minus)
            p->at++;
        value = elixir ? parse_expr(p, 60) : parse_primary_erlang(p);
        if (!value || (minus && !(value = node_op(p, FN_MINUS, value, NULL, from, ast_end(value)))))
            return NULL;
        if (!(elixir ? elixir_suffix(p, seg, &size) : erlang_suffix(p, seg, &size)))
            return NULL;
        ptrs_add(&items, p->c->arena, value);
        if (size)
            ptrs_add(&items, p->c->arena, size);
        if (!node_with(p, seg, &items, NULL, tok_end(&p->tokens[p->at - 1])))
            return NULL;
        ptrs_add(&segs, p->c->arena, seg);
        if (!take_punct(p, P_COMMA))
            break;
    }
    return close_node(p, n, &segs, NULL, P_BIN_CLOSE, n->from);
}

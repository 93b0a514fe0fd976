/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the tokens of a text that a user types line by line, to find out whether the text is complete, and where its
 * comments are. Does not parse it.
 */
#include <string.h>

#include "lang.h"
#include "lex.h"

/* The pieces of a text, one after the other. A piece is a probe, or the root behind the word `inside`. */
struct pieces {
    struct comp c;
    struct lang_options options;
    struct arena arena;
    struct err e;
    struct tokens tokens; /* those of the last piece */
    size_t pos;           /* the offset behind the last piece */
    enum {
        PIECE_WHOLE,
        PIECE_CUT,
        PIECE_MALFORMED
    } is; /* PIECE_CUT: the text ends inside of a quoted text or a root */
};

static void pieces_begin(struct pieces *p, struct str text)
{
    *p = (struct pieces){.c = {.opt = &p->options, .arena = &p->arena, .text = text, .err = &p->e}};
    arena_init(&p->arena);
}

static void pieces_read_root(struct pieces *p)
{
    struct comp *c = &p->c;
    bool good = lex_root(c, &p->pos, &p->tokens) && !p->tokens.bad;

    if (good && c->paren && !p->tokens.inside)
        good = lex_peek(c->text, p->pos++) == ')';
    p->is = good ? PIECE_WHOLE : c->cut || p->pos >= c->text.len ? PIECE_CUT : PIECE_MALFORMED;
    c->paren = false;
}

static void pieces_read_probe(struct pieces *p)
{
    if (lex_probe(&p->c, &p->pos, &p->tokens) && !p->tokens.bad)
        p->is = PIECE_WHOLE;
    else
        p->is = p->c.cut ? PIECE_CUT : PIECE_MALFORMED;
}

/* Reads the next piece. Returns false at the end of the text, or behind a piece that is not whole. */
static bool pieces_next(struct pieces *p)
{
    if (p->is != PIECE_WHOLE)
        return false;
    if (p->tokens.inside) {
        pieces_read_root(p);
        return true;
    }
    p->pos = lex_skip(p->c.text, p->pos);
    if (p->pos >= p->c.text.len)
        return false;
    pieces_read_probe(p);
    return true;
}

/* ---- whether the text is complete ---- */

static bool is_name_of_selector(const struct token *t)
{
    return t->type == TOK_PUNCT && (t->punct == P_COLON || t->punct == P_DOT);
}

/* Returns true if an operand must follow the last of the `n` tokens. */
static bool wants_operand(const struct token *items, size_t n)
{
    static const char *const words[] = {"when", "where", LEX_BY, "and", "or", "andalso", "orelse"};
    const struct token *last = &items[n - 1];

    if (last->type == TOK_PUNCT)
        return last->punct == P_ARROW || last->punct == P_SEMI || last->punct == P_BAR || last->punct == P_COMMA ||
               last->punct == P_AND2 || last->punct == P_OR2;
    for (size_t i = 0; i < ARRAY_LEN(words) && last->type == TOK_IDENT && n > 1; i++)
        if (str_is(last->text, words[i]) && !is_name_of_selector(last - 1))
            return true;
    return false;
}

static bool tokens_are_open(const struct tokens *t)
{
    const size_t n = t->count - 1; /* without TOK_END */
    int depth = 0;

    for (size_t i = 0; i < n; i++)
        depth = MAX(depth + token_nests(&t->items[i]), 0);
    return depth > 0 || (n && wants_operand(t->items, n));
}

bool lang_is_open(struct str text)
{
    struct pieces p;
    bool open = false;

    pieces_begin(&p, text);
    while (pieces_next(&p))
        open = p.is == PIECE_CUT || (p.is == PIECE_WHOLE && tokens_are_open(&p.tokens));
    arena_release(&p.arena);
    return open;
}

bool lang_is_blank(struct str text)
{
    return lex_skip_space(text, 0) >= text.len;
}

/* ---- one line ---- */

static void join_lines(struct str text, size_t from, size_t to, struct buf *ret)
{
    for (; from < to; from++)
        buf_char(ret, text.at[from] == '\n' ? ' ' : text.at[from]);
}

/* Appends text between tokens, without the comments that end with a newline. */
static void join_gap(struct str text, size_t from, size_t to, struct buf *ret)
{
    while (from < to) {
        const char *at = text.at + from, *end = memchr(at, '\n', text.len - from);
        if ((*at == '%' || *at == '#') && end)
            from = (size_t)(end - text.at);
        join_lines(text, from, from + 1, ret);
        from++;
    }
}

void lang_join_lines(struct str text, struct buf *ret)
{
    struct pieces p;
    size_t done = 0;

    pieces_begin(&p, text);
    while (pieces_next(&p))
        for (size_t i = 0; i < p.tokens.count; i++) {
            const struct token *t = &p.tokens.items[i];
            if (t->type == TOK_END || t->from < done)
                continue;
            join_gap(text, done, t->from, ret);
            join_lines(text, t->from, t->from + t->len, ret);
            done = t->from + t->len;
        }
    (p.is == PIECE_WHOLE ? join_gap : join_lines)(text, done, text.len, ret);
    arena_release(&p.arena);
}

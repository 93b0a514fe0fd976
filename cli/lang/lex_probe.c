/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads whole probes: finds the form of a probe by its first characters, reads the words before its selectors, and
 * decides the surface of its terms.
 */
#include <string.h>

#include "lex.h"

/* Returns true if the word at `pos` is a keyword and not the module of a selector. */
static bool is_keyword(struct str text, size_t pos, size_t len)
{
    char ch = lex_peek(text, pos + len);
    char next = lex_peek(text, pos + len + 1);

    if (ch == ':' || ch == '/' || ch == '*' || ch == '?')
        return false;
    return ch != '.' || next == ' ' || next == '\n' || !next;
}

static bool word_is(struct str text, size_t pos, const char *word)
{
    size_t len = strlen(word);

    return lex_word(text, pos, false) == len && !memcmp(text.at + pos, word, len) && is_keyword(text, pos, len);
}

static bool is_arrow(struct str text, size_t pos)
{
    char ch = lex_peek(text, pos), next = lex_peek(text, pos + 1);

    return ch == '!' && next != '=' && next != '~';
}

static void add_prefix(struct lexer *l, size_t len)
{
    const struct str word = {l->c->text.at + l->pos, len};

    lex_add(l, (struct token){.type = TOK_PREFIX, .from = l->pos, .len = len, .text = word});
    l->pos += len;
}

/*
 * Reads the keyword `word` and the blanks after it. Returns false and reads nothing if no selector follows. The words
 * `when`, `where` and `by` are no selectors.
 */
static bool take_prefix(struct lexer *l, const char *word)
{
    const struct str text = l->c->text;
    const size_t end = l->pos + strlen(word);

    if (!word_is(text, l->pos, word))
        return false;
    const size_t next = lex_blanks(text, end);
    if (next == end || !lex_selects(text, next) || word_is(text, next, "when") || word_is(text, next, "where") ||
        word_is(text, next, LEX_BY))
        return false;
    add_prefix(l, strlen(word));
    l->pos = next;
    return true;
}

static bool begin_event(struct lexer *l)
{
    const struct str text = l->c->text;
    const size_t len = lex_word(text, l->pos + 1, false);

    if (!len)
        return diag(l->c, l->pos, 1, "expected the name of an event after '@'");
    lex_add(l, (struct token){.type = TOK_EVENT, .from = l->pos, .len = len + 1, .text = {text.at + l->pos + 1, len}});
    l->pos += len + 1;
    l->out->form = LEX_EVENT;
    return true;
}

/*
 * Finds the surface of {M, F, A} or [{M, F, A}, …] by how the (first) module is written. Returns false if M is not
 * written as a module.
 */
static bool tuple_surface(struct str text, size_t pos, enum spec_surface *ret)
{
    if (lex_peek(text, pos) == '[')
        pos = lex_blanks(text, pos + 1);
    if (lex_peek(text, pos) != '{')
        return false;
    pos = lex_blanks(text, pos + 1);
    const char ch = lex_peek(text, pos);
    if (ch == ':' || lex_is_upper(ch))
        *ret = SPEC_ELIXIR;
    else if (ch == '\'' || (ch != '_' && lex_word(text, pos, false)))
        *ret = SPEC_ERLANG;
    else
        return false;
    return true;
}

/* Reads the selectors. Reads nothing if a '!' follows the first selector, which is then the receiver of a message. */
static bool begin_selectors(struct lexer *l)
{
    const size_t begin = l->pos, count = l->out->count;

    if (!lex_selectors(l))
        return false;
    const struct token *last = l->out->count > count ? &l->out->items[l->out->count - 1] : NULL;
    const bool whole = last && (last->type != TOK_PUNCT || last->punct == P_RPAREN);
    if (whole && is_arrow(l->c->text, lex_blanks(l->c->text, l->pos))) {
        l->pos = begin;
        l->out->count = count;
        l->spaced = false;
        return true;
    }
    l->out->form = LEX_CALL;
    l->excludes = true;
    return true;
}

static bool begin_probe(struct lexer *l)
{
    static const char *const messages[] = {"send", "recv", "receive"}, *const scopes[] = {"local", "global", "meta"};
    const struct str text = l->c->text;

    if (lex_peek(text, l->pos) == '@')
        return begin_event(l);
    for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
        const size_t len = strlen(messages[i]);
        if (!word_is(text, l->pos, messages[i]) || is_arrow(text, lex_blanks(text, l->pos + len)))
            continue;
        add_prefix(l, len);
        l->out->form = LEX_MESSAGE;
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(scopes); i++)
        if (take_prefix(l, scopes[i]))
            break;
    if (take_prefix(l, "ms")) {
        l->out->form = LEX_CALL;
        return lex_selectors(l);
    }
    return !lex_selects(text, l->pos) || begin_selectors(l);
}

static bool read_terms(struct lexer *l, const struct lexer *begin, enum spec_surface surface, bool open)
{
    *l = *begin;
    l->open = open;
    l->mark = MARK_NONE;
    l->out->count = l->terms;
    l->out->surface = l->c->surface = surface;
    return lex_terms(l);
}

/*
 * Reads the terms in the preferred surface; with `open` the first mark may change the surface. If the text is malformed
 * in the preferred surface before its first mark, reads it in the other surface, in which it may be valid.
 */
static bool read_open(struct lexer *l, enum spec_surface preferred, bool open)
{
    const struct lexer begin = *l;
    bool good = read_terms(l, &begin, preferred, open);

    if (!good && l->open)
        good = read_terms(l, &begin, preferred == SPEC_ERLANG ? SPEC_ELIXIR : SPEC_ERLANG, true);
    const enum spec_surface surface = l->mark == MARK_NONE ? preferred : (enum spec_surface)l->mark;
    return surface == l->c->surface && !l->beyond ? good : read_terms(l, &begin, surface, false);
}

/* Returns true if the terms have a '!' outside of brackets. */
static bool has_arrow(const struct lexer *l)
{
    int depth = 0;

    for (size_t i = l->terms; i < l->out->count; i++) {
        const struct token *t = &l->out->items[i];
        if (t->type == TOK_PUNCT && t->punct == P_BANG && !depth)
            return true;
        depth = MAX(depth + token_nests(t), 0);
    }
    return false;
}

/*
 * Reads {M, F, A} or a list of such tuples. If a '!' follows, the tuple or list is the receiver of a message instead.
 */
static bool read_tuple(struct lexer *l)
{
    const struct lexer begin = *l;
    enum spec_surface surface = l->c->opt->surface;
    const bool named = tuple_surface(l->c->text, l->pos, &surface);
    const bool good = read_open(l, surface, !named);

    if (!has_arrow(l))
        l->out->form = LEX_TUPLE;
    else if (named)
        return *l = begin, read_open(l, l->c->opt->surface, true);
    return good;
}

/* Reads the terms. Stores an error in l->out->bad. */
static void read_rest(struct lexer *l, enum spec_surface preferred, bool open)
{
    const char ch = lex_peek(l->c->text, l->pos);

    l->terms = l->out->count;
    if (l->out->form == LEX_ARROW && (ch == '{' || ch == '[') ? !read_tuple(l) : !read_open(l, preferred, open)) {
        struct err *bad = arena_alloc(l->c->arena, sizeof(*bad));
        *bad = *l->c->err;
        l->out->bad = bad;
    }
    lex_add(l, (struct token){.type = TOK_END, .from = l->pos, .len = 1});
}

bool lex_probe(struct comp *c, size_t *pos, struct tokens *ret)
{
    struct lexer l = {.c = c, .out = ret, .pos = *pos, .probe = true};

    *ret = (struct tokens){.from = *pos, .form = LEX_ARROW};
    if (!begin_probe(&l))
        return false;
    const bool open = ret->form != LEX_CALL;
    read_rest(&l, open ? c->opt->surface : ret->surface, open);
    if (!ret->bad && l.pos > *pos && lex_is_inside(c->text, l.pos))
        ret->inside = l.pos;
    *pos = ret->inside || c->paren ? l.pos : MIN(l.pos + 1, c->text.len);
    return true;
}

bool lex_root(struct comp *c, size_t *pos, struct tokens *ret)
{
    const size_t word = *pos, open = lex_skip_space(c->text, word + strlen(LEX_INSIDE));

    c->paren = lex_peek(c->text, open) == '(';
    *pos = lex_skip_space(c->text, open + c->paren);
    if (lex_skip(c->text, *pos) > *pos || *pos >= c->text.len) {
        diag(c, word, strlen(LEX_INSIDE), "expected a function after inside");
        return diag_note(c, "as in ets:_ inside shop:take/4");
    }
    const bool good = lex_probe(c, pos, ret);
    ret->root = open;
    return good;
}

bool lex_root_ends(struct comp *c, size_t *pos, const struct tokens *t)
{
    if (!c->paren || t->inside)
        return true;
    if (lex_peek(c->text, *pos) != ')')
        return diag(c, t->root, 1, "this '(' is not closed");
    const size_t at = lex_blanks(c->text, ++*pos), word = lex_word(c->text, at, false);
    const char next = lex_peek(c->text, at);
    if (!next || strchr("\n.#%", next))
        return true;
    diag(c, at, MAX(word, 1), "unexpected text after the root");
    return diag_note(c, "guards, actions and the filter of the probe go before inside");
}

bool lex_term(struct comp *c, bool open, struct tokens *ret)
{
    struct lexer l = {.c = c, .out = ret};

    *ret = (struct tokens){.form = LEX_TUPLE};
    while (lex_is_blank(lex_peek(c->text, l.pos)) || lex_peek(c->text, l.pos) == '\n')
        l.pos++;
    read_rest(&l, c->surface, open);
    if (ret->bad)
        *c->err = *ret->bad;
    return !ret->bad;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits selectors into tokens. Names in a selector may be globs and regular expressions, so its tokens differ from
 * those of terms. It just stops at an incomplete selector; select.c reports what is missing.
 */
#include <string.h>

#include "lex.h"

size_t lex_blanks(struct str text, size_t pos)
{
    while (lex_peek(text, pos) == ' ' || lex_peek(text, pos) == '\t' || lex_peek(text, pos) == '\r')
        pos++;
    return pos;
}

static char select_peek(const struct lexer *l, size_t i)
{
    return lex_peek(l->c->text, l->pos + i);
}

static size_t select_word(const struct lexer *l, size_t i, bool elixir)
{
    return lex_word(l->c->text, l->pos + i, elixir);
}

bool lex_selects(struct str text, size_t pos)
{
    char ch = lex_peek(text, pos), next = lex_peek(text, pos + 1);

    if (ch == ':')
        return next == '"' || next == '*' || lex_word(text, pos + 1, true);
    return ch == '\'' || ch == '*' || (ch == '~' && next == '/') || lex_word(text, pos, true);
}

/* Adds a token of `len` characters and moves past it. */
static struct token *select_add(struct lexer *l, struct token t, size_t len)
{
    t.from = l->pos;
    t.len = len;
    t.spaced = l->spaced;
    l->pos += len;
    l->spaced = false;
    return lex_add(l, t);
}

static void select_punct(struct lexer *l, enum punct punct, size_t len)
{
    select_add(l, (struct token){.type = TOK_PUNCT, .punct = punct}, len);
}

static void select_skip(struct lexer *l, size_t to)
{
    l->spaced |= to > l->pos;
    l->pos = to;
}

/* ---- names ---- */

/*
 * Returns the length of a name. Sets *ret_glob if the name has a wildcard: a *, or a ? in Erlang. In Elixir a ? or ! at
 * the end belongs to the name of a function.
 */
static size_t select_glob(const struct lexer *l, size_t from, bool elixir, bool function, bool *ret_glob)
{
    size_t at = from;

    *ret_glob = false;
    for (;;) {
        size_t len = select_word(l, at, elixir);
        const char ch = select_peek(l, at);
        if (len && elixir && !function && (select_peek(l, at + len - 1) == '!' || select_peek(l, at + len - 1) == '?'))
            len--;
        if (!len && lex_is_digit(ch) && at > from)
            len = 1;
        if (!len && (ch == '*' || (ch == '?' && !elixir))) {
            *ret_glob = true;
            len = 1;
        }
        if (!len)
            return at - from;
        at += len;
    }
}

/* Adds an unquoted name of `len` characters. */
static bool select_name(struct lexer *l, enum tok_type type, size_t len, bool glob)
{
    const struct str text = {l->c->text.at + l->pos, len};

    if (len > 255 * 4)
        return diag(l->c, l->pos, len, "a name has at most 255 characters");
    select_add(l, (struct token){.type = type, .text = text, .glob = glob}, len);
    return true;
}

static bool select_quoted(struct lexer *l)
{
    const enum spec_surface surface = l->c->surface;
    const size_t begin = l->pos;
    struct token t = {.type = TOK_LIT, .quoted = true};

    l->c->surface = select_peek(l, 0) == '"' ? SPEC_ELIXIR : SPEC_ERLANG;
    const bool ok = lex_quoted_atom(l->c, &l->pos, &t.value);
    l->c->surface = surface;
    if (!ok)
        return false;
    const size_t len = l->pos - begin;
    l->pos = begin;
    select_add(l, t, len);
    return true;
}

static bool select_regex(struct lexer *l)
{
    const struct str text = l->c->text;
    const size_t begin = l->pos;
    size_t at = begin + 2, n = 0;
    char *out = arena_alloc(l->c->arena, text.len - at + 1);

    while (lex_peek(text, at) != '/' && at < text.len && text.at[at] != '\n') {
        if (text.at[at] == '\\' && lex_peek(text, at + 1) == '/')
            at++;
        else if (text.at[at] == '\\' && at + 1 < text.len)
            out[n++] = text.at[at++];
        out[n++] = text.at[at++];
    }
    if (lex_peek(text, at) != '/') {
        diag(l->c, begin, 2, "unterminated regular expression");
        return diag_note(l->c, "the closing / is missing");
    }
    if (!n)
        return diag(l->c, begin, 3, "the regular expression is empty");
    select_add(l, (struct token){.type = TOK_REGEX, .text = {out, n}}, at + 1 - begin);
    return true;
}

/* Returns the length of an operator as a function name: Kernel.+/2. In Erlang it needs quotes: erlang:'+'/2. */
static size_t select_operator(const struct lexer *l)
{
    size_t n = 0;

    while (select_peek(l, n) && strchr("+-*/<>=!&|^~@", select_peek(l, n)))
        n++;
    if (n > 1 && select_peek(l, n - 1) == '/' && lex_is_digit(select_peek(l, n)))
        n--;
    return n;
}

/* Reads the name of a function, or nothing if no name is there. */
static bool select_function(struct lexer *l, bool elixir)
{
    const char ch = select_peek(l, 0);
    bool glob;

    if (ch == '\'' || (ch == '"' && elixir))
        return select_quoted(l);
    if (ch == '~' && select_peek(l, 1) == '/')
        return select_regex(l);
    size_t len = select_glob(l, 0, elixir, true, &glob);
    if (!len && elixir)
        len = select_operator(l);
    if (!len)
        return true;
    const bool upper = lex_is_upper(ch) || (!elixir && ch == '_' && len > 1);
    return select_name(l, !upper || glob ? TOK_IDENT : elixir ? TOK_ALIAS : TOK_VAR, len, glob);
}

/* ---- modules ---- */

/* Reads a module name without quotes, possibly with wildcards. */
static bool select_plain(struct lexer *l, bool elixir)
{
    bool glob;
    const size_t len = select_glob(l, 0, elixir, false, &glob);

    l->several |= glob || (len == 1 && select_peek(l, 0) == '_');
    return !len || select_name(l, TOK_IDENT, len, glob);
}

/*
 * Returns true if a part of an alias begins here: Repo, *Controller, or a * before further parts. A word in lower case
 * is not a part but a function.
 */
static bool select_is_part(const struct lexer *l, size_t i)
{
    while (select_peek(l, i) == '*' && select_peek(l, i + 1) == '.')
        i += 2;
    return lex_is_upper(select_peek(l, i)) || (select_peek(l, i) == '*' && lex_is_upper(select_peek(l, i + 1)));
}

/* Reads MyApp.Repo, MyApp.* or MyAppWeb.*Controller. */
static bool select_alias(struct lexer *l)
{
    bool glob, any = false;
    size_t n = 0;

    for (;;) {
        n += select_glob(l, n, true, false, &glob);
        any |= glob;
        if (select_peek(l, n) != '.' || !select_is_part(l, n + 1))
            break;
        n++;
    }
    const char behind = select_peek(l, n + 2);
    if (select_peek(l, n) == '.' && select_peek(l, n + 1) == '*' && behind != '/' && behind != '(' && behind != '*' &&
        !select_word(l, n + 2, true)) {
        any = true;
        n += 2;
    }
    l->several |= any;
    return select_name(l, TOK_ALIAS, n, any);
}

static bool select_elixir_module(struct lexer *l)
{
    if (select_peek(l, 0) != ':')
        return select_alias(l);
    select_punct(l, P_COLON, 1);
    return select_peek(l, 0) == '"' ? select_quoted(l) : select_plain(l, true);
}

/* Returns true at app(name) or behaviour(name). The name may be an atom of either surface. */
static bool select_is_group(const struct lexer *l)
{
    static const char *const words[] = {"app", "behaviour", "behavior"};
    const struct str word = {l->c->text.at + l->pos, select_word(l, 0, false)};

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (str_is(word, words[i]))
            return select_peek(l, word.len) == '(';
    return false;
}

/* Reads a group such as app(name). Stops at the first character that does not belong to the group. */
static bool select_group(struct lexer *l, bool *ret_elixir)
{
    l->several = true;
    select_name(l, TOK_IDENT, select_word(l, 0, false), false);
    select_punct(l, P_LPAREN, 1);
    select_skip(l, lex_blanks(l->c->text, l->pos));
    if (select_peek(l, 0) == ':') {
        *ret_elixir = true;
        select_punct(l, P_COLON, 1);
    }
    const char ch = select_peek(l, 0);
    const size_t len = select_word(l, 0, true);
    if (ch == '\'' || ch == '"') {
        if (!select_quoted(l))
            return false;
    } else if (lex_is_upper(ch)) {
        size_t n = 0;
        while (lex_is_upper(select_peek(l, n))) {
            n += select_word(l, n, true);
            if (select_peek(l, n) == '.' && lex_is_upper(select_peek(l, n + 1)))
                n++;
        }
        *ret_elixir = true;
        select_name(l, TOK_ALIAS, n, false);
    } else if (len) {
        select_name(l, TOK_IDENT, len, false);
    } else {
        return true;
    }
    select_skip(l, lex_blanks(l->c->text, l->pos));
    if (select_peek(l, 0) == ')')
        select_punct(l, P_RPAREN, 1);
    return true;
}

static bool select_is_elixir(const struct lexer *l)
{
    return select_peek(l, 0) == ':' || lex_is_upper(select_peek(l, 0));
}

/* Reads one module, or a pattern for several. *ret_elixir: the module is written in Elixir. */
static bool select_module(struct lexer *l, bool *ret_elixir)
{
    const char ch = select_peek(l, 0);

    if ((*ret_elixir = select_is_elixir(l)))
        return select_elixir_module(l);
    if (select_is_group(l))
        return select_group(l, ret_elixir);
    if (ch == '~') {
        l->several = true;
        return select_regex(l);
    }
    if (ch != '\'')
        return select_plain(l, false);
    if (!select_quoted(l))
        return false;
    l->several |= term_is_atom(l->out->items[l->out->count - 1].value, "_");
    return true;
}

/* ---- selectors ---- */

static bool select_number(struct lexer *l)
{
    int64_t value = 0;
    size_t n = 0;

    for (; lex_is_digit(select_peek(l, n)); n++)
        value = MIN(value * 10 + (select_peek(l, n) - '0'), 1000000);
    if (n)
        select_add(l, (struct token){.type = TOK_LIT, .value = term_int(l->c->arena, value)}, n);
    return n > 0;
}

/* Reads /2, /_ or /1..3. In Elixir also /any or any other word, as Rexbug does. */
static bool select_arity(struct lexer *l, bool elixir)
{
    size_t len;

    select_punct(l, P_SLASH, 1);
    len = elixir ? select_word(l, 0, true) : 0;
    if (select_peek(l, 0) == '_' || len)
        return select_name(l, TOK_IDENT, len ? len : 1, false);
    if (!select_number(l) || select_peek(l, 0) != '.' || select_peek(l, 1) != '.')
        return true;
    select_punct(l, P_RANGE, 2);
    if (select_peek(l, 0) == '_')
        return select_name(l, TOK_IDENT, 1, false);
    select_number(l);
    return true;
}

/* Returns true if a full stop here separates the module from a function. Otherwise it ends the probe. */
static bool select_is_dot(const struct lexer *l, bool elixir)
{
    const char next = select_peek(l, 1);

    if (select_peek(l, 0) != '.')
        return false;
    return elixir ? next && next != ' ' && next != '\t' && next != '\n' && next != '\r'
                  : next == '\'' || select_word(l, 1, true);
}

static bool select_one(struct lexer *l, bool *ret_elixir)
{
    const bool first = select_is_elixir(l);

    if (!select_module(l, ret_elixir))
        return false;
    const bool dot =
        first ? select_is_dot(l, true) : *ret_elixir && select_peek(l, 0) == '.' && select_word(l, 1, true);
    if (dot) {
        select_punct(l, P_DOT, 1);
        if (!select_function(l, true))
            return false;
    } else if (select_peek(l, 0) == ':') {
        select_punct(l, P_COLON, 1);
        if (first)
            return true; /* an error */
        select_skip(l, lex_blanks(l->c->text, l->pos));
        if (!select_function(l, false))
            return false;
    } else if (select_is_dot(l, false)) {
        select_punct(l, P_DOT, 1);
        return true; /* an error */
    }
    return select_peek(l, 0) != '/' || select_arity(l, *ret_elixir);
}

/* Returns the position of a '|' after a selector, possibly on the next line, or `pos` if no '|' follows. */
static size_t select_bar(struct str text, size_t pos)
{
    size_t next = lex_blanks(text, pos);

    if (lex_peek(text, next) == '\n')
        next = lex_skip(text, next);
    return lex_peek(text, next) == '|' && lex_peek(text, next + 1) != '|' ? next : pos;
}

bool lex_selectors(struct lexer *l)
{
    const struct str text = l->c->text;
    bool elixir, first = true;

    for (;;) {
        if (!select_one(l, &elixir))
            return false;
        if (first)
            l->out->surface = elixir ? SPEC_ELIXIR : SPEC_ERLANG;
        first = false;
        const size_t bar = select_bar(text, l->pos);
        if (lex_peek(text, bar) != '|' || lex_peek(text, bar + 1) == '|')
            return true;
        select_skip(l, bar);
        select_punct(l, P_BAR, 1);
        select_skip(l, lex_skip(text, l->pos));
        if (!lex_selects(text, l->pos))
            return true;
    }
}

bool lex_excluded(struct lexer *l)
{
    const struct str text = l->c->text;
    bool elixir;

    for (;;) {
        while (lex_is_blank(select_peek(l, 0)) || select_peek(l, 0) == '\n')
            select_skip(l, l->pos + 1);
        if (!lex_selects(text, l->pos))
            return true;
        if (!select_module(l, &elixir))
            return false;
        const size_t next = lex_blanks(text, l->pos);
        const char ch = lex_peek(text, next);
        if (ch != ',' && (ch != '-' || lex_peek(text, next + 1) == '>'))
            return true;
        select_skip(l, next);
        select_punct(l, ch == ',' ? P_COMMA : P_MINUS, 1);
    }
}

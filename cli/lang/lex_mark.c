/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds marks: texts that only one surface has. `:atom`, `%{`, `key: `, `Mod.fun`, `<>`, `!=` are Elixir; `#{`, `=:=`,
 * `andalso`, `$c`, `m:f` are Erlang. The lexer asks at each token of a text without selectors until it finds a mark. Up
 * to the first mark the text has the same tokens in both surfaces, so a mark may depend on the tokens before it.
 */
#include <string.h>

#include "lex.h"

static char mark_at(const struct lexer *l, size_t i)
{
    return lex_peek(l->c->text, l->pos + i);
}

static bool mark_is(const struct lexer *l, const char *text)
{
    const size_t len = strlen(text);

    return l->c->text.len - l->pos >= len && !memcmp(l->c->text.at + l->pos, text, len);
}

static size_t mark_word(const struct lexer *l, size_t i, bool elixir)
{
    return lex_word(l->c->text, l->pos + i, elixir);
}

static bool is_space(char ch)
{
    return lex_is_blank(ch) || ch == '\n';
}

static bool is_listed(struct str word, const char *const *words)
{
    while (*words && !str_is(word, *words))
        words++;
    return *words;
}

static const struct token *last_token(const struct lexer *l)
{
    return l->out->count > l->terms ? &l->out->items[l->out->count - 1] : NULL;
}

static bool is_punct(const struct token *t, enum punct punct)
{
    return t && t->type == TOK_PUNCT && t->punct == punct;
}

static bool begins_with(const struct lexer *l, const struct token *t, char ch)
{
    return t && lex_peek(l->c->text, t->from) == ch;
}

/* Words of both surfaces that an operand must follow. */
static const char *const openers[] = {"and", "or", "not", "when", "where", "bnot", NULL};

/* Returns true if the last token ends an operand, so that an operator or the end must follow. */
static bool behind_operand(const struct lexer *l)
{
    const struct token *t = last_token(l);

    if (!t || t->type == TOK_PUNCT)
        return t && token_nests(t) < 0;
    if (t->type != TOK_IDENT)
        return t->type != TOK_KEY;
    return !is_listed(t->text, openers) && !(l->by && str_is(t->text, LEX_BY));
}

/* Decides about ~w(a b), ~b"…" and ~r/…/i. After =~ both surfaces have a regular expression between slashes. */
static enum lex_mark mark_of_sigil(const struct lexer *l)
{
    static const char pairs[] = "()[]{}<>";
    const bool regex = is_punct(last_token(l), P_LIKE) || is_punct(last_token(l), P_UNLIKE);
    const char letter = mark_at(l, 1), name = (letter | 32) >= 'a' && (letter | 32) <= 'z' ? letter : 0;
    size_t at = name ? 2 : 1;
    const char open = mark_at(l, at);
    const char *pair = open ? memchr(pairs, open, sizeof(pairs) - 1) : NULL;

    if (!open || !memchr("\"'([{</|`#", open, 10))
        return MARK_NONE;
    if (!regex && (!name || memchr("bB", name, 2)))
        return MARK_ERLANG;
    if (name && memchr("cCwWDTNU", name, 8))
        return MARK_ELIXIR;
    if ((name | 32) != 'r')
        return MARK_NONE;
    for (at++; mark_at(l, at) && mark_at(l, at) != (pair ? pair[1] : open); at++)
        at += mark_at(l, at) == '\\';
    return regex && name == 'r' && open == '/' && !mark_word(l, at + 1, false) ? MARK_NONE : MARK_ELIXIR;
}

/* Decides about '%': %{…} and %Name{…} are Elixir; any other % begins a comment of Erlang. */
static enum lex_mark mark_of_percent(const struct lexer *l)
{
    size_t n = 1, len;

    while ((len = mark_word(l, n, true)) > 0 || (n > 1 && mark_at(l, n) == '.'))
        n += len ? len : 1;
    return mark_at(l, n) == '{' ? MARK_ELIXIR : MARK_ERLANG;
}

/* Decides about '#': #{…}, #rec{…}, X#rec.field, mod#rec are Erlang; any other # begins a comment of Elixir. */
static enum lex_mark mark_of_hash(const struct lexer *l)
{
    size_t n = 1 + mark_word(l, 1, false);

    if (lex_is_id(l->c->text, l->pos))
        return MARK_NONE;
    if (n > 1 && mark_at(l, n) == ':')
        n += 1 + mark_word(l, n + 1, false);
    const char next = mark_at(l, n);
    const bool record = n > 1 && ((behind_operand(l) && !l->spaced) || next == '.');
    return record || next == '{' || next == '\'' ? MARK_ERLANG : MARK_ELIXIR;
}

static enum lex_mark mark_of_colon(const struct lexer *l)
{
    const struct token *last = last_token(l);
    const char next = mark_at(l, 1);
    const bool operand = behind_operand(l);

    if (next == ':')
        return l->depth ? MARK_ELIXIR : MARK_NONE; /* <<x::8>> */
    if (is_punct(last, P_COLON) && !l->spaced)
        return MARK_NONE;
    if (begins_with(l, last, '"') && !l->spaced && is_space(next))
        return MARK_ELIXIR; /* "key": value */
    if (l->by && !l->depth && operand)
        return MARK_NONE;
    if (operand) /* Erlang: K := V, m:f, X:8; Elixir: return :ok */
        return next == '=' || (!l->spaced && !is_space(next)) ? MARK_ERLANG : is_space(next) ? MARK_NONE : MARK_ELIXIR;
    const bool atom = next && (memchr("\"'+-*/<>=!&|^~.@", next, 16) || mark_is(l, ":{}") || mark_word(l, 1, true));
    return atom ? MARK_ELIXIR : MARK_NONE;
}

/* ---- words ---- */

/* Returns true if the word `fun` or `fn` at the position begins a function, and is not a name. */
static bool begins_fun(const struct lexer *l, size_t len, bool elixir)
{
    size_t next = len;

    while (is_space(mark_at(l, next)))
        next++;
    const char ch = mark_at(l, next);
    if (ch == '(' || (behind_operand(l) && !elixir) || next == len)
        return ch == '(';
    return elixir ? ch && (memchr("_[{%:\"", ch, 6) || mark_word(l, next, true))
                  : ch == '\'' || mark_word(l, next, false);
}

/* Returns true inside of a guard, where a second `when` is a mark of Elixir. */
static bool in_guard(const struct lexer *l)
{
    for (size_t i = l->out->count; i-- > l->terms;) {
        const struct token *t = &l->out->items[i];
        if (is_punct(t, P_ARROW) || is_punct(t, P_SEMI))
            return false;
        if (t->type == TOK_IDENT && str_is(t->text, "when"))
            return true;
    }
    return false;
}

static enum lex_mark mark_of_word(const struct lexer *l, size_t len)
{
    static const char *const erlang[] = {"andalso", "orelse", "div", "rem", "band", "bor",
                                         "bxor",    "bsl",    "bsr", "xor", NULL};
    const struct token *last = last_token(l);
    const struct str word = {l->c->text.at + l->pos, len};
    const char next = mark_at(l, len), after = mark_at(l, len + 1);
    const bool upper = lex_is_upper(word.at[0]), operand = behind_operand(l);

    if (operand && is_listed(word, erlang))
        return MARK_ERLANG;
    if (!operand && next == '(' && (str_is(word, "div") || str_is(word, "rem")))
        return MARK_ELIXIR; /* operators of Erlang, functions of Elixir */
    /* `in` is an operator of Elixir; where an operand is expected it can only be an atom of Erlang. */
    if (str_is(word, "in"))
        return operand || (last && last->type == TOK_IDENT && str_is(last->text, "not")) ? MARK_ELIXIR : MARK_ERLANG;
    if (is_listed(word, openers))
        return str_is(word, "when") && in_guard(l) ? MARK_ELIXIR : MARK_NONE;
    if (str_is(word, "fun") && begins_fun(l, len, false))
        return MARK_ERLANG;
    if (str_is(word, "fn") && begins_fun(l, len, true))
        return MARK_ELIXIR;
    if (str_is(word, "end") && l->depth)
        return MARK_NONE;
    if (!operand && next == ':' && is_space(after) && !upper && !(l->by && !l->depth))
        return MARK_ELIXIR; /* key: value */
    if (next == '?' || (next == '!' && after == '(' && !upper))
        return MARK_ELIXIR; /* valid?(x), get!(x) */
    if (next == '!' && (mark_word(l, len + 1, false) || (after && memchr("({['", after, 4))))
        return MARK_ERLANG; /* Pid!Msg: in Elixir the '!' would belong to the word */
    /* Mod.Name, or a word with letters that no name of Erlang has */
    const bool alias = upper && next == '.' && lex_is_upper(after);
    return alias || mark_word(l, len, true) ? MARK_ELIXIR : MARK_NONE;
}

/* ---- operators ---- */

/* Returns true inside of <<…>>. */
static bool in_binary(const struct lexer *l)
{
    size_t open = 0;

    for (size_t i = l->terms; i < l->out->count; i++) {
        open += is_punct(&l->out->items[i], P_BIN_OPEN);
        open -= is_punct(&l->out->items[i], P_BIN_CLOSE) && open;
    }
    return open > 0;
}

static enum lex_mark mark_of_symbol(const struct lexer *l)
{
    /* A longer text must precede its prefixes. */
    static const struct {
        const char *text;
        enum lex_mark mark;
    } operators[] = {
        {"=:=", MARK_ERLANG}, {"=/=", MARK_ERLANG}, {"===", MARK_ELIXIR}, {"!==", MARK_ELIXIR}, {"&&&", MARK_ELIXIR},
        {"|||", MARK_ELIXIR}, {"^^^", MARK_ELIXIR}, {"~~~", MARK_ELIXIR}, {"...", MARK_NONE},   {"..", MARK_ELIXIR},
        {"->", MARK_NONE},    {"==", MARK_NONE},    {"=~", MARK_NONE},    {"!~", MARK_NONE},    {"=>", MARK_NONE},
        {">=", MARK_NONE},    {"/=", MARK_ERLANG},  {"!=", MARK_ELIXIR},  {"<=", MARK_ELIXIR},  {"++", MARK_NONE},
    };
    const char ch = mark_at(l, 0), next = mark_at(l, 1);
    const bool operand = behind_operand(l);

    if (operand && (mark_is(l, "<<<") || (mark_is(l, ">>>") && !in_binary(l))))
        return MARK_ELIXIR;
    if (mark_is(l, "<<<<"))
        return MARK_ERLANG; /* <<<<1>>/binary>> is Erlang; in Elixir <<< is an operator */
    if (mark_is(l, "=<") && mark_at(l, 2) != '<')
        return MARK_ERLANG;
    for (size_t i = 0; i < ARRAY_LEN(operators); i++)
        if (mark_is(l, operators[i].text))
            return operators[i].mark;
    if (ch == ';' && l->depth)
        return MARK_ERLANG; /* when (A; B) */
    return (ch == '&' && (next == ':' || lex_is_upper(next))) || (operand && ch == '<' && next == '>') ? MARK_ELIXIR
                                                                                                       : MARK_NONE;
}

enum lex_mark lex_mark(const struct lexer *l)
{
    const struct token *last = last_token(l);
    const char ch = mark_at(l, 0);
    size_t len = 0;

    if (last && last->type == TOK_KEY && begins_with(l, last, '"'))
        return MARK_ELIXIR;
    if (ch == '"')
        return behind_operand(l) ? MARK_ERLANG : MARK_NONE; /* "a" "b" */
    if (ch == '$' || ch == '?')
        return ch == '$' ? MARK_ERLANG : MARK_ELIXIR;
    if (ch == '~' && !mark_is(l, "~~~"))
        return mark_of_sigil(l);
    if (ch == '%')
        return mark_of_percent(l);
    if (ch == '#')
        return mark_of_hash(l);
    if (ch == ':')
        return mark_of_colon(l);
    if (ch == '.' && behind_operand(l) && !l->spaced && mark_word(l, 1, false)) /* but not 1.x */
        return lex_is_digit(lex_peek(l->c->text, last->from)) ? MARK_NONE : MARK_ELIXIR;
    if (lex_is_digit(ch)) { /* 16#ff */
        while (digit_of(mark_at(l, len)) < 36 || mark_at(l, len) == '_')
            len++;
        return mark_at(l, len) == '#' && digit_of(mark_at(l, len + 1)) < 36 ? MARK_ERLANG : MARK_NONE;
    }
    if ((len = mark_word(l, 0, false)) > 0)
        return mark_of_word(l, len);
    return mark_word(l, 0, true) ? MARK_ELIXIR : mark_of_symbol(l);
}

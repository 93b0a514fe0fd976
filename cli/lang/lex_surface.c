/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides the surface of a text without selectors, before it is split into tokens. The first mark that only one
 * surface has decides: `:atom`, `%{`, `key: `, `Mod.fun`, `<>`, `!=` are Elixir; `#{`, `=:=`, `andalso`, `$c`, `m:f`
 * are Erlang. A text without a mark reads the same in both, so the preferred surface decides. It reports no errors:
 * the lexer and the parser report them in the surface that this file decides.
 */
#include <string.h>

#include "../ground/utf8.h"
#include "lex.h"

struct scan {
    struct str text;
    size_t at;
    size_t depth;    /* number of open brackets, and of open fun … end */
    bool operand;    /* the last token ends an operand, so that an operator or the end must follow */
    bool spaced;     /* white space precedes the current token */
    bool regex;      /* a regular expression must follow */
    bool record;     /* the last word is the name of a record: its '.' is Erlang's */
    bool negated;    /* the last word is `not` */
    bool guard;      /* after `when`: another `when` is Elixir */
    bool begun;      /* a token precedes the current one */
    bool by;         /* after `by`: a ':' outside of brackets separates keys and aggregates in both surfaces */
    size_t binaries; /* open << */
    struct lex_marks found;
};

static char scan_at(const struct scan *s, size_t i)
{
    return lex_peek(s->text, s->at + i);
}

static bool scan_is(const struct scan *s, const char *mark)
{
    const size_t len = strlen(mark);

    return s->text.len - s->at >= len && !memcmp(s->text.at + s->at, mark, len);
}

static void scan_mark(struct scan *s, enum spec_surface surface)
{
    if (s->found.marked)
        return;
    s->found.marked = true;
    s->found.surface = surface;
}

static void scan_operand(struct scan *s, size_t len)
{
    s->at += len;
    s->operand = true;
}

static void scan_operator(struct scan *s, size_t len)
{
    s->at += len;
    s->operand = false;
}

static void scan_line(struct scan *s)
{
    while (s->at < s->text.len && s->text.at[s->at] != '\n')
        s->at++;
}

/* Moves past the next `close` that no backslash precedes. */
static void scan_to(struct scan *s, char close)
{
    while (s->at < s->text.len && s->text.at[s->at] != close)
        s->at += s->text.at[s->at] == '\\' ? 2 : 1;
    s->at = MIN(s->at + 1, s->text.len);
    s->operand = true;
}

static size_t scan_blanks(const struct scan *s, size_t i)
{
    while (lex_is_blank(scan_at(s, i)) || scan_at(s, i) == '\n')
        i++;
    return i;
}

static bool is_space(char ch)
{
    return lex_is_blank(ch) || ch == '\n';
}

/* A string of either surface; `"key": ` is a key of Elixir. */
static void scan_string(struct scan *s)
{
    const bool block = scan_is(s, "\"\"\"");

    if (s->operand)
        scan_mark(s, SPEC_ERLANG); /* "a" "b" */
    s->at += block ? 3 : 1;
    if (block) {
        while (s->at < s->text.len && !scan_is(s, "\"\"\""))
            s->at++;
        scan_operand(s, MIN(3, s->text.len - s->at));
        return;
    }
    scan_to(s, '"');
    if (scan_at(s, 0) == ':' && is_space(scan_at(s, 1))) {
        scan_mark(s, SPEC_ELIXIR);
        scan_operator(s, 1);
    }
}

static void scan_sigil(struct scan *s)
{
    static const char pairs[] = "()[]{}<>";
    const char name = (scan_at(s, 1) | 32) >= 'a' && (scan_at(s, 1) | 32) <= 'z' ? scan_at(s, 1) : 0;
    const char open = scan_at(s, name ? 2 : 1);
    const char *pair = open ? memchr(pairs, open, sizeof(pairs) - 1) : NULL;

    if (!open || !memchr("\"'([{</|`#", open, 10)) {
        scan_operator(s, 1);
        return;
    }
    if (!s->regex && (!name || memchr("bB", name, 2)))
        scan_mark(s, SPEC_ERLANG);
    else if (name && memchr("cCwWDTNU", name, 8))
        scan_mark(s, SPEC_ELIXIR);
    const bool regex = s->regex;
    s->at += name ? 3 : 2;
    scan_to(s, pair ? pair[1] : open);
    if ((name | 32) != 'r')
        return;
    const size_t modifiers = lex_word(s->text, s->at, false);
    if (!regex || name == 'R' || open != '/' || modifiers) /* =~ ~r/…/ is the regular expression of both */
        scan_mark(s, SPEC_ELIXIR);
    s->at += modifiers;
}

static void scan_number(struct scan *s)
{
    size_t n = 0;

    while (digit_of(scan_at(s, n)) < 36 || scan_at(s, n) == '_' || (unsigned char)scan_at(s, n) >= 0x80)
        n++;
    if (scan_at(s, n) == '#' && digit_of(scan_at(s, n + 1)) < 36) {
        scan_mark(s, SPEC_ERLANG);
        n++;
    }
    if (scan_at(s, n) == '.' && digit_of(scan_at(s, n + 1)) < 36)
        n++;
    while (digit_of(scan_at(s, n)) < 36 || scan_at(s, n) == '_')
        n++;
    scan_operand(s, n);
}

/* %{…} and %Name{…} are Elixir; any other % begins a comment of Erlang. */
static void scan_percent(struct scan *s)
{
    size_t n = 1, len;

    while ((len = lex_word(s->text, s->at + n, true)) > 0 || (n > 1 && scan_at(s, n) == '.'))
        n += len ? len : 1;
    if (scan_at(s, n) == '{') {
        scan_mark(s, SPEC_ELIXIR);
        scan_operator(s, n);
        return;
    }
    scan_mark(s, SPEC_ERLANG);
    scan_line(s);
}

/* #{…}, #rec{…}, X#rec.field, mod#rec are Erlang; any other # begins a comment of Elixir. */
static void scan_hash(struct scan *s)
{
    static const char *const ids[] = {"#PID<", "#Port<", "#Ref<", "#Reference<"};
    const bool behind = s->operand && !s->spaced;
    size_t n = 1;

    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        if (scan_is(s, ids[i])) {
            scan_to(s, '>');
            return;
        }
    n += lex_word(s->text, s->at + n, false);
    if (n > 1 && scan_at(s, n) == ':')
        n += 1 + lex_word(s->text, s->at + n + 1, false);
    const char next = scan_at(s, n);
    if (next == '{' || next == '\'' || (n > 1 && (behind || next == '.'))) {
        scan_mark(s, SPEC_ERLANG);
        s->at += n;
        s->record = s->operand = n > 1;
        return;
    }
    scan_mark(s, SPEC_ELIXIR);
    scan_line(s);
}

static size_t scan_symbols(const struct scan *s, size_t i)
{
    size_t n = 0;

    while (scan_at(s, i + n) && memchr("+-*/<>=!&|^~.@", scan_at(s, i + n), 14))
        n++;
    return n;
}

static void scan_colon(struct scan *s)
{
    const char next = scan_at(s, 1);
    size_t n;

    if (next == ':') {
        if (s->depth)
            scan_mark(s, SPEC_ELIXIR); /* <<x::8>> */
        scan_operator(s, 2);
    } else if (s->by && !s->depth && s->operand) {
        scan_operator(s, 1);
    } else if (s->operand) {
        if (next == '=' || (!s->spaced && !is_space(next)))
            scan_mark(s, SPEC_ERLANG); /* K := V, m:f, X:8 */
        else if (!is_space(next))
            scan_mark(s, SPEC_ELIXIR); /* return :ok */
        scan_operator(s, next == '=' ? 2 : 1);
    } else if (next == '"' || next == '\'') {
        scan_mark(s, SPEC_ELIXIR);
        s->at += 2;
        scan_to(s, next);
    } else if ((n = lex_word(s->text, s->at + 1, true)) > 0 || (n = scan_symbols(s, 1)) > 0 ||
               (n = scan_is(s, ":{}") ? 2 : 0)) {
        scan_mark(s, SPEC_ELIXIR);
        scan_operand(s, 1 + n);
    } else {
        scan_operator(s, 1);
    }
}

/* ---- words ---- */

static bool scan_listed(struct str word, const char *const *words)
{
    for (; *words; words++)
        if (str_is(word, *words))
            return true;
    return false;
}

/* Whether `fun` and `fn` begin a function here; elsewhere they are names. */
static bool scan_begins_fun(const struct scan *s, size_t len, bool elixir)
{
    const size_t next = scan_blanks(s, len);
    const char ch = scan_at(s, next);

    if (s->operand && !elixir)
        return ch == '(';
    if (ch == '(')
        return true;
    if (next == len)
        return false;
    return elixir ? ch && (memchr("_[{%:\"", ch, 6) || lex_word(s->text, s->at + next, true))
                  : ch == '\'' || lex_word(s->text, s->at + next, false);
}

/* Moves past Foo.Bar.Baz. */
static size_t scan_alias(struct scan *s, size_t len)
{
    while (scan_at(s, len) == '.' && lex_is_upper(scan_at(s, len + 1))) {
        scan_mark(s, SPEC_ELIXIR);
        len += 1 + lex_word(s->text, s->at + len + 1, false);
    }
    return len;
}

static bool scan_begins_term(const struct scan *s, size_t i)
{
    return lex_word(s->text, s->at + i, false) || (scan_at(s, i) && memchr("({['", scan_at(s, i), 4));
}

static void scan_word(struct scan *s, size_t len)
{
    static const char *const erlang[] = {"andalso", "orelse", "div", "rem", "band", "bor",
                                         "bxor",    "bsl",    "bsr", "xor", NULL};
    static const char *const both[] = {"and", "or", "not", "when", "where", "bnot", NULL};
    const struct str word = {s->text.at + s->at, len};
    const char next = scan_at(s, len), after = scan_at(s, len + 1);
    const bool upper = lex_is_upper(word.at[0]);
    bool negated = false;

    s->record = false;
    if (str_is(word, LEX_BY) && is_space(next) && !s->depth && (s->operand || !s->begun)) {
        s->by = true;
        scan_operator(s, len);
    } else if (s->operand && scan_listed(word, erlang)) {
        scan_mark(s, SPEC_ERLANG);
        scan_operator(s, len);
    } else if (!s->operand && next == '(' && (str_is(word, "div") || str_is(word, "rem"))) {
        scan_mark(s, SPEC_ELIXIR); /* operators of Erlang, functions of Elixir */
        scan_operand(s, len);
    } else if (str_is(word, "in")) { /* an operator of Elixir, where no name can be `in` */
        scan_mark(s, s->operand || s->negated ? SPEC_ELIXIR : SPEC_ERLANG);
        s->operand |= s->negated;
        s->at += len;
        s->operand = !s->operand;
    } else if (scan_listed(word, both)) {
        if (s->guard && str_is(word, "when"))
            scan_mark(s, SPEC_ELIXIR);
        s->guard |= str_is(word, "when");
        scan_operator(s, len);
        negated = str_is(word, "not");
    } else if ((str_is(word, "fun") && scan_begins_fun(s, len, false)) ||
               (str_is(word, "fn") && scan_begins_fun(s, len, true))) {
        scan_mark(s, word.at[1] == 'n' ? SPEC_ELIXIR : SPEC_ERLANG);
        if (word.at[1] == 'n' || scan_at(s, scan_blanks(s, len)) == '(')
            s->depth++;
        scan_operator(s, len);
    } else if (str_is(word, "end") && s->depth) {
        s->depth--;
        scan_operand(s, len);
    } else if (!s->operand && next == ':' && is_space(after) && !upper && !(s->by && !s->depth)) {
        scan_mark(s, SPEC_ELIXIR); /* key: value */
        scan_operator(s, len + 1);
    } else if (next == '?' || (next == '!' && after == '(' && !upper)) {
        scan_mark(s, SPEC_ELIXIR); /* valid?(x), get!(x) */
        scan_operand(s, len + 1);
    } else if (next == '!' && scan_begins_term(s, len + 1)) {
        scan_mark(s, SPEC_ERLANG); /* Pid!Msg: in Elixir the '!' would belong to the word */
        scan_operand(s, len);
    } else {
        scan_operand(s, upper ? scan_alias(s, len) : len);
    }
    s->negated = negated;
}

/* ---- operators ---- */

/* Marks and neutral operators. A longer text precedes its prefixes. */
static const struct {
    const char *text;
    int surface; /* -1: both surfaces have the operator */
} operators[] = {
    {"=:=", SPEC_ERLANG}, {"=/=", SPEC_ERLANG}, {"===", SPEC_ELIXIR}, {"!==", SPEC_ELIXIR}, {"&&&", SPEC_ELIXIR},
    {"|||", SPEC_ELIXIR}, {"^^^", SPEC_ELIXIR}, {"~~~", SPEC_ELIXIR}, {"...", -1},          {"..", SPEC_ELIXIR},
    {"->", -1},           {"==", -1},           {"=~", -1},           {"!~", -1},           {"=>", -1},
    {">=", -1},           {"/=", SPEC_ERLANG},  {"!=", SPEC_ELIXIR},  {"<=", SPEC_ELIXIR},  {"++", -1},
};

static void scan_symbol(struct scan *s)
{
    const char ch = scan_at(s, 0), next = scan_at(s, 1);

    if (scan_is(s, "=<") && scan_at(s, 2) != '<') {
        scan_mark(s, SPEC_ERLANG);
        scan_operator(s, 2);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
        if (!scan_is(s, operators[i].text))
            continue;
        if (operators[i].surface >= 0)
            scan_mark(s, (enum spec_surface)operators[i].surface);
        s->guard &= strcmp(operators[i].text, "->") != 0;
        const bool like = operators[i].text[1] == '~' && ch != '~';
        scan_operator(s, strlen(operators[i].text));
        s->regex = like;
        return;
    }
    if (ch == '!' && !s->depth)
        s->found.arrow = true;
    if (ch == ';' && s->depth)
        scan_mark(s, SPEC_ERLANG); /* when (A; B) */
    s->guard &= ch != ';';
    if ((ch == '&' && (next == ':' || lex_is_upper(next))) || (s->operand && ch == '<' && next == '>'))
        scan_mark(s, SPEC_ELIXIR);
    scan_operator(s, ch == '<' && next == '>' ? 2 : 1);
}

/* <<…>>, <<<, <0.84.0>, and the other brackets. Returns whether there was one. */
static bool scan_bracket(struct scan *s)
{
    const char ch = scan_at(s, 0);
    size_t n = 1;

    if (s->operand && (scan_is(s, "<<<") || (scan_is(s, ">>>") && !s->binaries))) {
        scan_mark(s, SPEC_ELIXIR);
        scan_operator(s, 3);
        return true;
    }
    while (ch == '<' && (lex_is_digit(scan_at(s, n)) || scan_at(s, n) == '.'))
        n++;
    if (n > 5 && scan_at(s, n) == '>') {
        scan_operand(s, n + 1);
        return true;
    }
    const bool opens = scan_is(s, "<<"), closes = scan_is(s, ">>");
    s->binaries += opens;
    s->binaries -= closes && s->binaries;
    if (scan_is(s, "<<<<"))
        scan_mark(s, SPEC_ERLANG); /* <<<<1>>/binary>>; in Elixir <<< is an operator */
    if (opens || memchr("([{", ch, 3)) {
        s->depth++;
        scan_operator(s, opens ? 2 : 1);
        return true;
    }
    if (!closes && !memchr(")]}", ch, 3))
        return false;
    s->depth -= s->depth > 0;
    scan_operand(s, closes ? 2 : 1);
    return true;
}

/* ---- whole texts ---- */

/* Whether the probe ends at this full stop or newline. */
static bool scan_ends(const struct scan *s)
{
    const char ch = scan_at(s, 0), next = scan_at(s, 1);

    if (ch == '\n')
        return !s->depth && s->operand && !lex_continues(s->text, s->at, false);
    return ch == '.' && (!next || is_space(next));
}

static void scan_token(struct scan *s)
{
    const char ch = scan_at(s, 0);
    const bool regex = s->regex;
    size_t len;

    s->regex = false;
    if (ch == '"') {
        scan_string(s);
    } else if (ch == '\'') {
        s->at++;
        scan_to(s, '\'');
    } else if (ch == '$') {
        scan_mark(s, SPEC_ERLANG);
        scan_operand(s, scan_at(s, 1) == '\\' ? 3 : 2);
    } else if (ch == '?') {
        scan_mark(s, SPEC_ELIXIR);
        scan_operand(s, scan_at(s, 1) == '\\' ? 3 : 2);
    } else if (ch == '~' && !scan_is(s, "~~~")) {
        s->regex = regex;
        scan_sigil(s);
        s->regex = false;
    } else if (lex_is_digit(ch)) {
        scan_number(s);
    } else if (ch == '%') {
        scan_percent(s);
    } else if (ch == '#') {
        scan_hash(s);
    } else if (ch == ':') {
        scan_colon(s);
    } else if (ch == '.' && s->operand && !s->spaced && lex_word(s->text, s->at + 1, false)) {
        if (!s->record)
            scan_mark(s, SPEC_ELIXIR);
        s->record = false;
        scan_operator(s, 1);
    } else if ((len = lex_word(s->text, s->at, false)) > 0) {
        scan_word(s, len);
    } else if ((len = lex_word(s->text, s->at, true)) > 0) {
        scan_mark(s, SPEC_ELIXIR); /* letters that names of Erlang do not have */
        scan_operand(s, len);
    } else if (!scan_bracket(s)) {
        scan_symbol(s);
    }
    s->at = MIN(s->at, s->text.len);
}

struct lex_marks lex_marks(struct str text, size_t pos)
{
    struct scan s = {.text = text, .at = pos};

    while (s.at < text.len && !scan_ends(&s)) {
        if (is_space(text.at[s.at])) {
            s.at++;
            s.spaced = true;
            continue;
        }
        scan_token(&s);
        s.begun = true;
        s.spaced = false;
    }
    return s.found;
}

enum spec_surface lex_surface(struct str text, size_t pos, enum spec_surface preferred)
{
    const struct lex_marks found = lex_marks(text, pos);

    return found.marked ? found.surface : preferred;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "lex.h"

#include <string.h>

#include "../ground/utf8.h"

static const struct {
    const char *text;
    size_t len;
    unsigned surfaces;
} puncts[] = {
#define PUNCT(id, text, surfaces) {text, sizeof(text) - 1, surfaces},
#define E 1
#define X 2
#include "punct.def"
};

/*
 * The case of a letter. Erlang has only the letters of Latin-1. Elixir has further characters, which count as lower
 * case.
 */
enum letter { NOT_LETTER, LOWER, UPPER };

static enum letter letter_at(struct str text, size_t pos, bool elixir, size_t *ret_len)
{
    const char *at = text.at + pos;
    char ch = lex_peek(text, pos);

    *ret_len = 1;
    if (ch >= 'a' && ch <= 'z')
        return LOWER;
    if ((ch >= 'A' && ch <= 'Z') || ch == '_')
        return UPPER;
    if (!((unsigned char)ch & 0x80))
        return NOT_LETTER;
    uint32_t cp = utf8_next(&at, text.at + text.len);
    if (cp == UTF8_BAD)
        return NOT_LETTER;
    *ret_len = (size_t)(at - (text.at + pos));
    if (cp >= 0xdf && cp <= 0xff && cp != 0xf7)
        return LOWER;
    if (cp >= 0xc0 && cp <= 0xde && cp != 0xd7)
        return UPPER;
    if (cp > 0xff && elixir && utf8_shows(cp) && !(cp >= 0x2000 && cp <= 0x2bff) && !(cp >= 0x3000 && cp <= 0x3020))
        return LOWER;
    return NOT_LETTER;
}

size_t lex_word(struct str text, size_t pos, bool elixir)
{
    size_t at = pos, len;

    if (letter_at(text, at, elixir, &len) == NOT_LETTER)
        return 0;
    for (;;) {
        if (letter_at(text, at, elixir, &len) != NOT_LETTER)
            at += len;
        else if (lex_is_digit(lex_peek(text, at)) || lex_peek(text, at) == '@')
            at++;
        else
            break;
    }
    if (elixir && (lex_peek(text, at) == '?' || lex_peek(text, at) == '!') && lex_peek(text, at + 1) != '=' &&
        lex_peek(text, at + 1) != '~')
        at++;
    return at - pos;
}

bool lex_is_id(struct str text, size_t pos)
{
    static const char *const ids[] = {"#PID<", "#Port<", "#Ref<", "#Reference<"};

    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        if (text.len - pos >= strlen(ids[i]) && !memcmp(text.at + pos, ids[i], strlen(ids[i])))
            return true;
    return false;
}

static bool is_comment(struct str text, size_t pos, char mark)
{
    return lex_peek(text, pos) == mark && !lex_is_id(text, pos);
}

size_t lex_skip_space(struct str text, size_t pos)
{
    for (;;) {
        char ch = lex_peek(text, pos);
        if (lex_is_blank(ch) || ch == '\n') {
            pos++;
        } else if (is_comment(text, pos, '%') || is_comment(text, pos, '#')) {
            while (pos < text.len && text.at[pos] != '\n')
                pos++;
        } else {
            return pos;
        }
    }
}

size_t lex_skip(struct str text, size_t pos)
{
    for (;;) {
        pos = lex_skip_space(text, pos);
        if (lex_peek(text, pos) != '.' || pos >= text.len ||
            (!lex_is_blank(lex_peek(text, pos + 1)) && lex_peek(text, pos + 1) != '\n' && pos + 1 != text.len))
            return pos;
        pos++;
    }
}

struct token *lex_add(struct lexer *l, struct token token)
{
    struct tokens *t = l->out;

    if (t->count == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 64;
        struct token *items = arena_alloc(l->c->arena, cap * sizeof(*items));
        if (t->count)
            memcpy(items, t->items, t->count * sizeof(*items));
        t->items = items;
        t->cap = cap;
    }
    t->items[t->count] = token;
    return &t->items[t->count++];
}

/* ---- where a probe ends ---- */

static const char *const joining[] = {"when", "where", "and", "or",  "andalso", "orelse", "xor", "div", "rem", "band",
                                      "bor",  "bxor",  "bsl", "bsr", "not",     "bnot",   "in",  "end", LEX_BY};

static bool is_joining(struct str word)
{
    for (size_t i = 0; i < ARRAY_LEN(joining); i++)
        if (str_is(word, joining[i]))
            return true;
    return false;
}

/* Returns true if the probe cannot end after this token, so that a following newline is only white space. */
static bool is_unfinished(const struct token *t)
{
    if (t->type == TOK_IDENT)
        return is_joining(t->text) && !str_is(t->text, "end");
    if (t->type == TOK_KEY)
        return true;
    return t->type == TOK_PUNCT && token_nests(t) >= 0;
}

bool lex_is_inside(struct str text, size_t pos)
{
    const size_t len = strlen(LEX_INSIDE);
    const char next = lex_peek(text, pos + len);

    return text.len - pos >= len && !memcmp(text.at + pos, LEX_INSIDE, len) &&
           (!next || lex_is_blank(next) || next == '\n' || next == '(');
}

bool lex_continues(struct str text, size_t pos, bool elixir)
{
    static const char *const marks[] = {"->", ";", ",", "||", "|", "&&", "=:=", "=/=", "==", "=<", ">=", "/="};

    for (;;) {
        char ch = lex_peek(text, pos);
        if (lex_is_blank(ch) || ch == '\n') {
            pos++;
        } else if (is_comment(text, pos, elixir ? '#' : '%')) {
            while (pos < text.len && text.at[pos] != '\n')
                pos++;
        } else {
            break;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        size_t len = strlen(marks[i]);
        if (text.len - pos >= len && !memcmp(text.at + pos, marks[i], len))
            return true;
    }
    if (lex_is_inside(text, pos))
        return true;
    size_t len = lex_word(text, pos, elixir);
    struct str word = {text.at + pos, len};
    char next = lex_peek(text, pos + len);
    return len && is_joining(word) && next != ':' && next != '.' &&
           (next != '/' || !lex_is_digit(lex_peek(text, pos + len + 1)));
}

/*
 * Returns true if the tokens so far are a whole probe. The words `inside` and `by` are then neither atoms nor
 * variables.
 */
static bool is_finished(const struct lexer *l)
{
    const size_t n = l->out->count;

    return !l->depth && n && (n == l->terms || !is_unfinished(&l->out->items[n - 1]));
}

/* Returns true if the word `inside` is here and ends the probe. Returns false if the word is an atom or a variable. */
static bool at_inside(const struct lexer *l)
{
    return l->probe && l->spaced && lex_is_inside(l->c->text, l->pos) && is_finished(l);
}

/* Returns true if the word is the `by` in front of keys. Returns false if it is an atom or a variable. */
static bool at_by(const struct lexer *l, struct str word)
{
    const char next = lex_peek(l->c->text, l->pos + word.len);

    if (!str_is(word, LEX_BY) || (next && !lex_is_blank(next) && next != '\n'))
        return false;
    return l->probe ? l->spaced && is_finished(l) : l->c->by && !l->out->count;
}

/* Returns true if a ':' at this position separates keys and aggregates. */
static bool is_separator(const struct lexer *l)
{
    return l->by && !l->depth;
}

static bool ends_here(struct lexer *l)
{
    struct str text = l->c->text;

    if (l->open && at_inside(l))
        l->beyond = true;
    if (l->pos >= text.len || (!l->open && at_inside(l)) || (l->c->paren && !l->depth && text.at[l->pos] == ')'))
        return true;
    if (text.at[l->pos] == '\n')
        return !l->depth && !l->c->paren &&
               (l->out->count == l->terms || !is_unfinished(&l->out->items[l->out->count - 1])) &&
               !lex_continues(text, l->pos, l->c->surface == SPEC_ELIXIR);
    if (text.at[l->pos] == '.') {
        char next = lex_peek(text, l->pos + 1);
        return l->pos + 1 == text.len || lex_is_blank(next) || next == '\n' || next == '%';
    }
    return false;
}

/* ---- tokens ---- */

static bool add_literal(struct lexer *l, size_t begin, struct token t)
{
    t.type = t.type == TOK_KEY ? TOK_KEY : TOK_LIT;
    t.from = begin;
    t.len = l->pos - begin;
    t.spaced = l->spaced;
    lex_add(l, t);
    return true;
}

static bool is_key_colon(struct str text, size_t pos)
{
    char next = lex_peek(text, pos + 1);

    return lex_peek(text, pos) == ':' && (lex_is_blank(next) || next == '\n');
}

static bool string_token(struct lexer *l)
{
    const size_t begin = l->pos;
    const bool elixir = l->c->surface == SPEC_ELIXIR;
    const bool characters = !elixir || l->c->text.at[begin] == '\'';
    struct quoted q;

    if (!lex_quoted(l->c, &l->pos, QUOTE_PLAIN, &q))
        return false;
    struct token t = {.string = true, .value = characters ? quoted_list(l->c, &q) : quoted_binary(l->c, &q)};
    if (elixir && !characters && is_key_colon(l->c->text, l->pos)) {
        l->pos++;
        t = (struct token){.type = TOK_KEY, .value = term_atom_n(l->c->arena, t.value->text)};
    }
    return add_literal(l, begin, t);
}

static bool char_token(struct lexer *l)
{
    const size_t begin = l->pos++;
    struct quoted q = {0};
    const char *at = l->c->text.at + l->pos;

    if (l->pos < l->c->text.len && *at == '\\') {
        if (!lex_escape(l->c, &l->pos, &q))
            return false;
        if (!q.count)
            return diag(l->c, begin, 2, "expected a character after '%c'", l->c->text.at[begin]);
    } else {
        uint32_t cp = l->pos < l->c->text.len ? utf8_next(&at, l->c->text.at + l->c->text.len) : UTF8_BAD;
        if (cp == UTF8_BAD)
            return diag(l->c, begin, 1, "expected a character after '%c'", l->c->text.at[begin]);
        l->pos = (size_t)(at - l->c->text.at);
        return add_literal(l, begin, (struct token){.value = term_int(l->c->arena, (int64_t)cp)});
    }
    return add_literal(l, begin, (struct token){.value = term_int(l->c->arena, (int64_t)(q.points[0] & ~QUOTED_BYTE))});
}

/* Reads an atom of Elixir: :name, :"quoted" or :+. */
static bool elixir_atom(struct lexer *l)
{
    static const char operators[] = "+-*/<>=!&|^~.@";
    const size_t begin = l->pos++;
    struct str text = l->c->text;
    struct token t = {.quoted = true};
    char ch = lex_peek(text, l->pos);

    if (ch == '"' || ch == '\'') {
        if (!lex_quoted_atom(l->c, &l->pos, &t.value))
            return false;
        return add_literal(l, begin, t);
    }
    size_t len = lex_word(text, l->pos, true);
    if (!len)
        while (lex_peek(text, l->pos + len) && strchr(operators, lex_peek(text, l->pos + len)))
            len++;
    if (!len && !strncmp(text.at + l->pos, "{}", MIN(2, text.len - l->pos)) && text.len - l->pos >= 2)
        len = 2;
    if (!len)
        return diag(l->c, begin, 1, "expected a name after ':'");
    if (len > 255)
        return diag(l->c, begin, len, "an atom has at most 255 characters");
    t.value = term_atom_n(l->c->arena, (struct str){text.at + l->pos, len});
    l->pos += len;
    return add_literal(l, begin, t);
}

static bool word_token(struct lexer *l, size_t len)
{
    const bool elixir = l->c->surface == SPEC_ELIXIR;
    const size_t begin = l->pos;
    struct str text = l->c->text, word = {text.at + begin, len};
    size_t n;
    bool upper = letter_at(text, begin, elixir, &n) == UPPER;
    struct token t = {.type = TOK_IDENT, .from = begin, .len = len, .spaced = l->spaced, .text = word};

    if (len > 255 * 4)
        return diag(l->c, begin, len, "a name has at most 255 characters");
    l->by = l->by || at_by(l, word);
    l->pos += len;
    if (elixir && is_key_colon(text, l->pos) && !is_separator(l)) {
        l->pos++;
        return add_literal(l, begin, (struct token){.type = TOK_KEY, .value = term_atom_n(l->c->arena, word)});
    }
    if (elixir && upper && word.at[0] != '_') {
        while (lex_peek(text, l->pos) == '.' && lex_peek(text, l->pos + 1) >= 'A' && lex_peek(text, l->pos + 1) <= 'Z')
            l->pos += 1 + lex_word(text, l->pos + 1, true);
        t.type = TOK_ALIAS;
        t.text.len = t.len = l->pos - begin;
    } else if (!elixir && upper) {
        t.type = TOK_VAR;
    }
    if (t.type == TOK_IDENT &&
        ((str_is(word, "fun") && !elixir && lex_peek(text, l->pos) == '(') || (str_is(word, "fn") && elixir)))
        l->depth++;
    else if (t.type == TOK_IDENT && str_is(word, "end") && l->depth)
        l->depth--;
    lex_add(l, t);
    return true;
}

/* Reads the pattern after =~ and !~ in Elixir: ~r with any delimiter, and its modifiers. */
static bool regex_sigil(struct lexer *l)
{
    const size_t begin = l->pos;
    struct token t = {0};

    if (!lex_sigil(l->c, &l->pos, &t))
        return false;
    t.from = begin;
    t.len = l->pos - begin;
    t.spaced = l->spaced;
    lex_add(l, t);
    return true;
}

static bool report_regex(struct lexer *l, size_t begin)
{
    diag(l->c, begin, l->pos - begin, "a regular expression is not a term");
    return diag_note(l->c, "use it after 'where', as in text =~ ~r/…/");
}

/*
 * Reads the pattern after =~ and !~: "pcre", ~/pcre/ or ~r/pcre/. Removes only the backslash before the closing
 * character.
 */
static bool regex_token(struct lexer *l)
{
    struct str text = l->c->text;
    const size_t begin = l->pos;
    char close = '"';

    if (text.at[l->pos] == '~') {
        l->pos++;
        if (lex_peek(text, l->pos) == 'r')
            l->pos++;
        close = '/';
    }
    size_t at = ++l->pos, n = 0;
    char *out = arena_alloc(l->c->arena, text.len - at + 1);
    while (at < text.len && text.at[at] != close) {
        if (text.at[at] == '\\' && lex_peek(text, at + 1) == close)
            at++;
        else if (text.at[at] == '\\' && at + 1 < text.len)
            out[n++] = text.at[at++];
        out[n++] = text.at[at++];
    }
    if (at >= text.len)
        return diag(l->c, begin, 1, "unterminated regular expression"), diag_cut(l->c);
    l->pos = at + 1;
    lex_add(l, (struct token){.type = TOK_REGEX,
                              .from = begin,
                              .len = l->pos - begin,
                              .text = {out, n},
                              .spaced = l->spaced});
    return true;
}

/* Typographic characters that word processors and web pages insert, and the ASCII characters to suggest. */
static const struct {
    const char *mark, *say;
} typeset[] = {
    {"\xe2\x80\x9c", "\""}, {"\xe2\x80\x9d", "\""}, {"\xe2\x80\x9e", "\""},  {"\xe2\x80\x98", "'"},
    {"\xe2\x80\x99", "'"},  {"\xe2\x86\x92", "->"}, {"\xe2\x87\x92", "=>"},  {"\xe2\x89\xa4", "=<"},
    {"\xe2\x89\xa5", ">="}, {"\xe2\x89\xa0", "/="}, {"\xe2\x80\xa6", "..."}, {"\xe2\x80\x93", "-"},
    {"\xe2\x80\x94", "-"},  {"\xe2\x88\x92", "-"},
};

/* Returns the script of a letter that may look like a Latin one, from a keyboard with two layouts; else NULL. */
static const char *script_of(uint32_t cp)
{
    return cp >= 0x370 && cp <= 0x3ff ? "Greek" : cp >= 0x400 && cp <= 0x52f ? "Cyrillic" : NULL;
}

/* Returns true if the innermost open bracket is a '{'. */
static bool in_braces(const struct tokens *t)
{
    int open = 0;

    for (size_t i = t->count; i-- > 0;)
        if ((open += token_nests(&t->items[i])) > 0)
            return t->items[i].punct == P_LBRACE;
    return false;
}

static bool punct_token(struct lexer *l)
{
    const unsigned surface = l->c->surface == SPEC_ELIXIR ? 2 : 1;
    struct str text = l->c->text;

    for (size_t i = 0; i < PUNCTS; i++) {
        if (!(puncts[i].surfaces & surface) || text.len - l->pos < puncts[i].len ||
            memcmp(text.at + l->pos, puncts[i].text, puncts[i].len))
            continue;
        if (i == P_LE_ERL && surface == 2 && lex_peek(text, l->pos + 2) == '<')
            continue; /* x =<<1>> */
        if (i == P_LIKE && surface == 1 && in_braces(l->out) && strchr("\"rsRSbB", lex_peek(text, l->pos + 2)))
            continue; /* #rec{field=~"sigil"} */
        const int nests = token_nests(lex_add(l, (struct token){.type = TOK_PUNCT,
                                                                .punct = (enum punct)i,
                                                                .from = l->pos,
                                                                .len = puncts[i].len,
                                                                .spaced = l->spaced}));
        l->pos += puncts[i].len;
        l->depth += nests > 0;
        l->depth -= nests < 0 && l->depth;
        return true;
    }
    const char *at = text.at + l->pos;
    uint32_t cp = utf8_next(&at, text.at + text.len);
    if (cp == UTF8_BAD)
        return diag(l->c, l->pos, 1, "this is not valid UTF-8");
    if (!utf8_shows(cp))
        return diag(l->c, l->pos, 1, "the character U+%04X is not allowed here", cp);
    size_t bytes = (size_t)(at - (text.at + l->pos));
    diag(l->c, l->pos, bytes, "'" STR_FMT "' is not allowed here", (int)bytes, text.at + l->pos);
    if (script_of(cp))
        diag_note(l->c, "it is a %s letter; quote it in an atom", script_of(cp));
    for (size_t i = 0; i < ARRAY_LEN(typeset); i++)
        if (strlen(typeset[i].mark) == bytes && !memcmp(typeset[i].mark, text.at + l->pos, bytes))
            diag_note(l->c, "write %s", typeset[i].say);
    return false;
}

static bool wants_regex(const struct lexer *l)
{
    if (!l->out->count)
        return false;
    const struct token *last = &l->out->items[l->out->count - 1];
    if (last->type != TOK_PUNCT || (last->punct != P_LIKE && last->punct != P_UNLIKE))
        return false;
    char ch = lex_peek(l->c->text, l->pos);
    return ch == '"' ||
           (ch == '~' && (lex_peek(l->c->text, l->pos + 1) == '/' || lex_peek(l->c->text, l->pos + 1) == 'r'));
}

static bool next_token(struct lexer *l)
{
    const bool elixir = l->c->surface == SPEC_ELIXIR;
    struct str text = l->c->text;
    const size_t begin = l->pos;
    char ch = text.at[l->pos];
    struct token t = {0};
    bool found;
    size_t len;

    if (wants_regex(l))
        return elixir && (lex_peek(text, l->pos + 1) | 32) == 'r' ? regex_sigil(l) : regex_token(l);
    if ((ch == '<' && lex_is_digit(lex_peek(text, l->pos + 1))) || ch == '#') {
        if (!lex_process_id(l->c, &l->pos, &t, &found))
            return false;
        if (found)
            return add_literal(l, begin, t);
    }
    if (lex_is_digit(ch))
        return lex_number(l->c, &l->pos, &t) && add_literal(l, begin, t);
    if (ch == '"' || (ch == '\'' && elixir))
        return string_token(l);
    if (ch == '\'') {
        t.quoted = true;
        return lex_quoted_atom(l->c, &l->pos, &t.value) && add_literal(l, begin, t);
    }
    if (ch == (elixir ? '?' : '$') && l->pos + 1 < text.len)
        return char_token(l);
    if (ch == '~' && lex_peek(text, l->pos + 1) != '~')
        return lex_sigil(l->c, &l->pos, &t) &&
               (t.type == TOK_REGEX ? report_regex(l, begin) : add_literal(l, begin, t));
    const bool separates = ch == ':' && is_separator(l) && !l->spaced && is_finished(l);
    const char next = lex_peek(text, l->pos + 1);
    if (elixir && ch == ':' && !separates && next != ':' && !lex_is_blank(next))
        return elixir_atom(l);
    if ((len = lex_word(text, l->pos, elixir)) > 0)
        return word_token(l, len);
    return punct_token(l);
}

/* Returns true if the last token ends an operand, so that an operator may follow. */
static bool is_behind_operand(const struct lexer *l)
{
    const struct token *last = l->out->count ? &l->out->items[l->out->count - 1] : NULL;

    if (!last || last->type == TOK_PUNCT)
        return last && !is_unfinished(last);
    return last->type != TOK_IDENT || !is_joining(last->text);
}

/* Returns true if a '{' is at `at`, possibly after the name of a struct or record. */
static bool is_braced(struct str text, size_t at)
{
    size_t len;

    while ((len = lex_word(text, at, true)) > 0 || (len = lex_peek(text, at) == '.') > 0)
        at += len;
    return lex_peek(text, at) == '{';
}

/*
 * Returns true if the text after a % looks like an operand: a number, a variable or parentheses, before something that
 * can follow an operand, such as `== 0`. The user then means an operator and not a comment.
 */
static bool is_operand(struct str text, size_t at)
{
    const bool number = lex_is_digit(lex_peek(text, at)), bracket = lex_peek(text, at) == '(';

    if (!number && !bracket && !lex_is_upper(lex_peek(text, at)))
        return false;
    if (bracket)
        while (lex_peek(text, at) && lex_peek(text, at) != '\n' && lex_peek(text, at) != ')')
            at++;
    at += bracket ? lex_peek(text, at) == ')' : lex_word(text, at, false);
    while (number && lex_is_digit(lex_peek(text, at)))
        at++;
    at = lex_blanks(text, at);
    const char next = lex_peek(text, at);
    return next ? strchr(number ? "=<>/+-*,;:)]}\n" : "=</+*)]}", next) || (next == '>' && !number) : number;
}

/*
 * Rejects a comment that the user means as something else: `A % 2`, `%{}` in Erlang, `#{}` in Elixir. Otherwise etrace
 * would silently ignore the rest of the line. Two marks (%%, ##) always begin a comment.
 */
static bool check_comment(struct lexer *l)
{
    const struct str text = l->c->text;
    const bool elixir = l->c->surface == SPEC_ELIXIR, behind = is_behind_operand(l);
    const char mark = text.at[l->pos];
    const char *note = NULL;

    if (!l->out->count || l->newline || lex_peek(text, l->pos + 1) == mark)
        return true;
    if (is_braced(text, l->pos + 1) && elixir)
        note = lex_peek(text, l->pos + 1) == '{' ? "a map is written %{a => 1}" : "a record is a tuple: {:name, …}";
    else if (is_braced(text, l->pos + 1))
        note = "a map is written #{a => 1}";
    else if (!elixir && behind && is_operand(text, lex_blanks(text, l->pos + 1)))
        note = "write A rem 2 for the remainder; %% always begins a comment";
    else if (behind && !l->spaced)
        note = elixir ? "a field of a record is elem(x, N); write a blank before a comment" : "write a blank before it";
    if (!note)
        return true;
    diag(l->c, l->pos, 1, "'%c' begins a comment", mark);
    return diag_note(l->c, "%s", note);
}

static void skip_comment(struct lexer *l)
{
    while (l->pos < l->c->text.len && l->c->text.at[l->pos] != '\n')
        l->pos++;
}

/*
 * Clears l->open if the next token is a mark. Returns false if it is a mark of the other surface.
 */
static bool accept_mark(struct lexer *l)
{
    l->mark = lex_mark(l);
    l->open = l->mark == MARK_NONE;
    return l->open || l->mark == (enum lex_mark)l->c->surface;
}

bool lex_terms(struct lexer *l)
{
    const char comment = l->c->surface == SPEC_ELIXIR ? '#' : '%';
    const struct str text = l->c->text;

    while (!ends_here(l)) {
        if (lex_is_blank(text.at[l->pos]) || text.at[l->pos] == '\n') {
            l->newline |= text.at[l->pos++] == '\n';
            l->spaced = true;
            continue;
        }
        if (l->open && !accept_mark(l))
            return false;
        if (is_comment(text, l->pos, comment)) {
            if (!check_comment(l))
                return false;
            skip_comment(l);
            continue;
        }
        const size_t begin = l->pos;
        if (!next_token(l)) {
            l->pos = begin;
            return false;
        }
        l->spaced = l->newline = false;
        const struct token *last = &l->out->items[l->out->count - 1];
        const bool mark = last->type == TOK_PUNCT && !l->depth;
        if (mark && last->punct == P_BAR) {
            if (l->out->form != LEX_CALL)
                break;
            l->pos = lex_skip(text, l->pos);
            const bool selects = lex_selects(text, l->pos);
            const enum spec_surface surface = l->out->surface;
            if (selects && !lex_selectors(l))
                return false;
            l->out->surface = surface;
            l->excludes = selects;
            if (selects)
                l->terms = l->out->count;
        } else if (mark && last->punct == P_MINUS && l->excludes && l->several) {
            if (!lex_excluded(l))
                return false;
        } else if (!l->depth && !(mark && last->punct == P_RPAREN)) {
            l->excludes = false;
        }
    }
    return true;
}

void token_print(const struct token *t, struct buf *b)
{
    static const char *const names[] = {
        [TOK_END] = "end",     [TOK_IDENT] = "word",    [TOK_VAR] = "variable", [TOK_ALIAS] = "alias",
        [TOK_KEY] = "key",     [TOK_LIT] = "literal",   [TOK_REGEX] = "regex",  [TOK_PUNCT] = "mark",
        [TOK_EVENT] = "event", [TOK_PREFIX] = "prefix",
    };

    buf_puts(b, t->glob ? "glob" : names[t->type]);
    if (t->type == TOK_PUNCT)
        buf_printf(b, " %s", puncts[t->punct].text);
    if (t->type == TOK_LIT || t->type == TOK_KEY) {
        buf_char(b, ' ');
        lang_print_term(t->value, b);
    }
    if (t->text.len) {
        buf_char(b, ' ');
        buf_str(b, t->text);
    }
    if (t->suffix.len) {
        buf_puts(b, " unit ");
        buf_str(b, t->suffix);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads quoted text: strings, quoted atoms, triple-quoted strings and heredocs, sigils, escapes. It rejects
 * interpolation because an expression has no values to interpolate.
 */
#include <string.h>

#include "../ground/utf8.h"
#include "lex.h"

static void add_point(struct comp *c, struct quoted *q, uint32_t point)
{
    if (q->count == q->cap) {
        size_t cap = q->cap ? q->cap * 2 : 32;
        uint32_t *points = arena_alloc(c->arena, cap * sizeof(*points));
        if (q->count)
            memcpy(points, q->points, q->count * sizeof(*points));
        q->points = points;
        q->cap = cap;
    }
    q->points[q->count++] = point;
}

/* Reads `least` to `most` hexadecimal digits, or up to eight digits in braces. */
static bool hex_escape(struct comp *c, size_t begin, size_t *pos, int least, int most, uint32_t *ret)
{
    const char *at = c->text.at;
    bool braces = *pos < c->text.len && at[*pos] == '{';
    uint32_t value = 0;
    int n = 0;

    if (braces) {
        ++*pos;
        most = 8;
        least = 1;
    }
    while (*pos < c->text.len && n < most && digit_of(at[*pos]) < 16) {
        value = value * 16 + (uint32_t)digit_of(at[*pos]);
        ++*pos;
        n++;
    }
    if (n < least || (braces && (*pos >= c->text.len || at[(*pos)++] != '}')))
        return diag(c, begin, *pos - begin, "incomplete hexadecimal escape");
    if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
        return diag(c, begin, *pos - begin, "the escape is not a Unicode character");
    *ret = value;
    return true;
}

static const struct {
    char ch;
    char means;
    bool elixir_only;
} escapes[] = {
    {'b', 8, false},  {'d', 127, false}, {'e', 27, false}, {'f', 12, false}, {'n', 10, false},
    {'r', 13, false}, {'s', 32, false},  {'t', 9, false},  {'v', 11, false}, {'a', 7, true},
};

bool lex_escape(struct comp *c, size_t *pos, struct quoted *to)
{
    const bool elixir = c->surface == SPEC_ELIXIR;
    const char *at = c->text.at;
    size_t begin = (*pos)++;
    uint32_t value = 0;

    if (*pos >= c->text.len)
        return diag(c, begin, 1, "incomplete escape at the end of the text"), diag_cut(c);

    char ch = at[*pos];
    if (ch == 'x') {
        ++*pos;
        bool braces = *pos < c->text.len && at[*pos] == '{';
        if (!hex_escape(c, begin, pos, elixir ? 1 : 2, 2, &value))
            return false;
        add_point(c, to, elixir && !braces ? value | QUOTED_BYTE : value);
        return true;
    }
    if (ch == 'u' && elixir) {
        ++*pos;
        if (!hex_escape(c, begin, pos, 4, 4, &value))
            return false;
        add_point(c, to, value);
        return true;
    }
    if (ch >= '0' && ch <= '7' && !elixir) {
        for (int n = 0; n < 3 && *pos < c->text.len && at[*pos] >= '0' && at[*pos] <= '7'; n++)
            value = value * 8 + (uint32_t)(at[(*pos)++] - '0');
        add_point(c, to, value);
        return true;
    }
    if (ch == '^' && !elixir && *pos + 1 < c->text.len) {
        add_point(c, to, (uint32_t)(at[*pos + 1] & 0x1f));
        *pos += 2;
        return true;
    }
    if (ch == '\n' && elixir) {
        ++*pos;
        return true;
    }
    if (ch == '0' && elixir) {
        ++*pos;
        add_point(c, to, 0);
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(escapes); i++) {
        if (escapes[i].ch == ch && (elixir || !escapes[i].elixir_only)) {
            ++*pos;
            add_point(c, to, (uint32_t)escapes[i].means);
            return true;
        }
    }

    const char *here = at + *pos;
    uint32_t point = utf8_next(&here, at + c->text.len);
    if (point == UTF8_BAD)
        return diag(c, *pos, 1, "this is not valid UTF-8");
    *pos = (size_t)(here - at);
    add_point(c, to, point);
    return true;
}

static bool at_interpolation(const struct comp *c, size_t pos)
{
    return c->surface == SPEC_ELIXIR && pos + 1 < c->text.len && c->text.at[pos] == '#' && c->text.at[pos + 1] == '{';
}

static bool one_char(struct comp *c, size_t *pos, bool with_escapes, struct quoted *q)
{
    const char *at = c->text.at + *pos;

    if (with_escapes && *at == '\\')
        return lex_escape(c, pos, q);
    if (with_escapes && at_interpolation(c, *pos))
        return diag(c, *pos, 2, "interpolation is not allowed here");

    uint32_t point = utf8_next(&at, c->text.at + c->text.len);
    if (point == UTF8_BAD)
        return diag(c, *pos, 1, "this is not valid UTF-8");
    *pos = (size_t)(at - c->text.at);
    add_point(c, q, point);
    return true;
}

static size_t quotes_at(const struct comp *c, size_t pos, char quote)
{
    size_t n = 0;

    while (pos + n < c->text.len && c->text.at[pos + n] == quote)
        n++;
    return n;
}

/* Returns the end of the line that contains `pos`: the newline or the end of the text. */
static size_t line_end(const struct comp *c, size_t pos)
{
    while (pos < c->text.len && c->text.at[pos] != '\n')
        pos++;
    return pos;
}

static size_t blanks_at(const struct comp *c, size_t pos)
{
    size_t n = 0;

    while (pos + n < c->text.len && (c->text.at[pos + n] == ' ' || c->text.at[pos + n] == '\t'))
        n++;
    return n;
}

/*
 * Reads a """ block: the lines up to a line that begins with as many quotes, without the indentation of that last line.
 * In Erlang the last newline is not part of the string; in Elixir it is.
 */
static bool read_text_block(struct comp *c, size_t *pos, size_t quotes, bool with_escapes, struct quoted *q)
{
    const char quote = c->text.at[*pos];
    const size_t begin = *pos;
    size_t first = *pos + quotes, close = 0, indent = 0;

    first += blanks_at(c, first);
    if (first < c->text.len && c->text.at[first] == '\r')
        first++;
    if (first >= c->text.len || c->text.at[first] != '\n') {
        diag(c, begin, quotes, "a block string begins on the line after its quotes");
        return first >= c->text.len && diag_cut(c);
    }
    first++;
    for (size_t line = first; line < c->text.len; line = line_end(c, line) + 1) {
        size_t n = blanks_at(c, line);
        if (quotes_at(c, line + n, quote) >= quotes) {
            close = line;
            indent = n;
            break;
        }
    }
    if (!close)
        return diag(c, begin, quotes, "unterminated block string"), diag_cut(c);

    for (size_t line = first; line < close;) {
        size_t end = line_end(c, line), at = line, skip = MIN(blanks_at(c, line), indent);
        if (skip < indent && at + skip < end && c->text.at[at + skip] != '\r' && c->surface == SPEC_ERLANG)
            return diag(c, at, MAX(skip, 1), "this line is indented less than the closing quotes of its string");
        at += skip;
        while (at < end) {
            if (c->text.at[at] == '\r' && at + 1 == end) {
                at++;
                continue;
            }
            if (!one_char(c, &at, with_escapes, q))
                return false;
        }
        if (c->surface == SPEC_ELIXIR || end + 1 < close)
            if (at <= end)
                add_point(c, q, '\n');
        line = MAX(end + 1, at);
    }
    *pos = close + indent + quotes;
    return true;
}

static char closing_mark(char open)
{
    static const char pairs[] = "()[]{}<>";
    const char *p = memchr(pairs, open, sizeof(pairs) - 1);

    return p && (p - pairs) % 2 == 0 ? p[1] : open;
}

bool lex_quoted(struct comp *c, size_t *pos, enum quoting quoting, struct quoted *ret)
{
    const bool with_escapes = quoting != QUOTE_VERBATIM;
    const size_t begin = *pos;
    const char open = c->text.at[*pos], close = closing_mark(open);
    struct quoted q = {0};

    if (open == '"' || (open == '\'' && c->surface == SPEC_ELIXIR)) {
        size_t n = quotes_at(c, *pos, open);
        if (n >= 3 && (c->surface == SPEC_ERLANG || n == 3)) {
            size_t after = *pos + n + blanks_at(c, *pos + n);
            if (after >= c->text.len || c->text.at[after] == '\n' || c->text.at[after] == '\r') {
                if (!read_text_block(c, pos, n, quoting == QUOTE_ESCAPES || (with_escapes && c->surface == SPEC_ELIXIR),
                                     &q))
                    return false;
                *ret = q;
                return true;
            }
        }
    }
    ++*pos;
    while (*pos < c->text.len && c->text.at[*pos] != close) {
        if (!with_escapes && c->surface == SPEC_ELIXIR && c->text.at[*pos] == '\\' && *pos + 1 < c->text.len &&
            c->text.at[*pos + 1] == close)
            ++*pos; /* the only escape of a sigil with an uppercase letter in Elixir */
        if (!one_char(c, pos, with_escapes, &q))
            return false;
    }
    if (*pos >= c->text.len) {
        diag(c, begin, 1, open == '\'' ? "unterminated quote" : "unterminated string");
        diag_note(c, "the closing %c is missing", close);
        return diag_cut(c);
    }
    ++*pos;
    *ret = q;
    return true;
}

term_t quoted_list(struct comp *c, const struct quoted *q)
{
    term_t *list = arena_alloc(c->arena, q->count * sizeof(*list) + 1);

    for (size_t i = 0; i < q->count; i++)
        list[i] = term_int(c->arena, (int64_t)(q->points[i] & ~QUOTED_BYTE));
    return term_list(c->arena, q->count, list, NULL);
}

static struct str utf8_of(struct comp *c, const struct quoted *q)
{
    char *bytes = arena_alloc(c->arena, q->count * 4 + 1);
    size_t n = 0;

    for (size_t i = 0; i < q->count; i++) {
        if (q->points[i] & QUOTED_BYTE)
            bytes[n++] = (char)q->points[i];
        else
            n += utf8_put(bytes + n, q->points[i]);
    }
    return (struct str){bytes, n};
}

term_t quoted_binary(struct comp *c, const struct quoted *q)
{
    struct str s = utf8_of(c, q);

    return term_bin(c->arena, s.at, s.len);
}

#define MAX_ATOM 255

bool lex_quoted_atom(struct comp *c, size_t *pos, term_t *ret)
{
    const size_t begin = *pos;
    struct quoted q;

    if (!lex_quoted(c, pos, QUOTE_ESCAPES, &q))
        return false;
    if (q.count > MAX_ATOM)
        return diag(c, begin, *pos - begin, "an atom has at most %d characters", MAX_ATOM);
    for (size_t i = 0; i < q.count; i++)
        if (q.points[i] & QUOTED_BYTE)
            q.points[i] &= ~QUOTED_BYTE;
    *ret = term_atom_n(c->arena, utf8_of(c, &q));
    return true;
}

/* Reads the words of ~w(a b c)x. */
static bool split_words(struct comp *c, const struct quoted *q, char as, term_t *ret)
{
    struct ptrs list = {0};
    size_t i = 0;

    while (i < q->count) {
        while (i < q->count && (q->points[i] == ' ' || q->points[i] == '\n' || q->points[i] == '\t'))
            i++;
        size_t from = i;
        while (i < q->count && q->points[i] != ' ' && q->points[i] != '\n' && q->points[i] != '\t')
            i++;
        if (i == from)
            break;
        struct quoted word = {q->points + from, i - from, 0};
        term_t t = as == 'c' ? quoted_list(c, &word) : quoted_binary(c, &word);
        if (as == 'a')
            t = term_atom_n(c->arena, t->text);
        ptrs_add(&list, c->arena, (void *)(uintptr_t)t);
    }
    *ret = term_list(c->arena, list.count, (const term_t *)(void *)list.items, NULL);
    return true;
}

static const struct sigil {
    char name; /* the letter of the sigil; 0: no letter, as in ~"text" */
    bool elixir, erlang, escapes;
    char makes; /* b binary, c characters, w words, d date or time, r regular expression */
} sigils[] = {
    {0, false, true, true, 'b'},    {'b', false, true, true, 'b'},  {'B', false, true, false, 'b'},
    {'s', true, true, true, 'b'},   {'S', true, true, false, 'b'},  {'c', true, false, true, 'c'},
    {'C', true, false, false, 'c'}, {'w', true, false, true, 'w'},  {'W', true, false, false, 'w'},
    {'D', true, false, false, 'd'}, {'T', true, false, false, 'd'}, {'N', true, false, false, 'd'},
    {'U', true, false, false, 'd'}, {'r', true, false, false, 'r'}, {'R', true, false, false, 'r'},
};

/*
 * Reads the modifiers of ~r/…/ism, and makes a token of the pattern with the modifiers in front, as PCRE2 expects them.
 */
static bool lex_text_regex_sigil(struct comp *c, size_t *pos, const struct quoted *q, struct token *ret)
{
    struct quoted all = {0};
    struct str text;
    size_t at = *pos;

    while (at < c->text.len && c->text.at[at] >= 'a' && c->text.at[at] <= 'z') {
        if (!memchr("ismxu", c->text.at[at], 5)) {
            diag(c, at, 1, "unknown modifier");
            return diag_note(c, "one of: i s m x u");
        }
        if (c->text.at[at] != 'u') { /* patterns always have the modifier u */
            add_point(c, &all, all.count ? (uint32_t)c->text.at[at] : '(');
            if (all.count == 1) {
                add_point(c, &all, '?');
                add_point(c, &all, (uint32_t)c->text.at[at]);
            }
        }
        at++;
    }
    if (all.count)
        add_point(c, &all, ')');
    for (size_t i = 0; i < q->count; i++)
        add_point(c, &all, q->points[i]);
    text = utf8_of(c, &all);
    *ret = (struct token){.type = TOK_REGEX, .text = text};
    *pos = at;
    return true;
}

/* Reads a sigil. ~s and ~S make lists of characters in Erlang and binaries in Elixir. */
bool lex_sigil(struct comp *c, size_t *pos, struct token *ret)
{
    const size_t begin = *pos;
    size_t at = begin + 1;
    char name = 0;

    if (at < c->text.len && ((c->text.at[at] | 32) >= 'a' && (c->text.at[at] | 32) <= 'z'))
        name = c->text.at[at++];
    const struct sigil *s = NULL;
    for (size_t i = 0; i < ARRAY_LEN(sigils); i++)
        if (sigils[i].name == name && (c->surface == SPEC_ELIXIR ? sigils[i].elixir : sigils[i].erlang))
            s = &sigils[i];
    if (at >= c->text.len || !memchr("\"'([{</|`#", c->text.at[at], 10))
        return diag(c, begin, at - begin, "expected a delimiter after the '~' of a sigil");
    if (!s) {
        diag(c, begin, at - begin, "the sigil ~%c is not allowed here", name ? name : '"');
        return diag_note(c,
                         c->surface == SPEC_ELIXIR ? "one of: ~s ~S ~c ~C ~w ~W ~D ~T ~N ~U" : "one of: ~ ~b ~B ~s ~S");
    }

    struct quoted q;
    if (!lex_quoted(c, &at, s->escapes ? name ? QUOTE_ESCAPES : QUOTE_PLAIN : QUOTE_VERBATIM, &q))
        return false;

    char as = s->makes;
    if (as == 'r') {
        *pos = at;
        return lex_text_regex_sigil(c, pos, &q, ret);
    }
    if (as == 'b' && c->surface == SPEC_ERLANG && (name == 's' || name == 'S'))
        as = 'c';
    if (as == 'w') {
        char kind = 's';
        if (at < c->text.len && memchr("asc", c->text.at[at], 3))
            kind = c->text.at[at++];
        if (!split_words(c, &q, kind, &ret->value))
            return false;
    } else if (as == 'd') {
        if (!lex_date(c, name, utf8_of(c, &q), begin, at - begin, &ret->value))
            return false;
    } else {
        ret->value = as == 'c' ? quoted_list(c, &q) : quoted_binary(c, &q);
    }
    ret->type = TOK_LIT;
    *pos = at;
    return true;
}

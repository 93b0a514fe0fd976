/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints terms as text that file:consult/1 reads, for explanations and for other programs. It does not print terms of a
 * traced node: these are encoded, and may be cut and redacted (erlang/term_print.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ground/utf8.h"
#include "comp.h"

static const char *const reserved[] = {"after",   "and",  "andalso", "band",  "begin", "bnot", "bor",  "bsl",
                                       "bsr",     "bxor", "case",    "catch", "cond",  "div",  "else", "end",
                                       "fun",     "if",   "let",     "maybe", "not",   "of",   "or",   "orelse",
                                       "receive", "rem",  "try",     "when",  "xor"};

static bool is_plain(struct str name)
{
    if (!name.len || name.at[0] < 'a' || name.at[0] > 'z')
        return false;
    for (size_t i = 1; i < name.len; i++) {
        char ch = name.at[i];
        if (!((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '_' ||
              ch == '@'))
            return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
        if (str_is(name, reserved[i]))
            return false;
    return true;
}

static void put_char(struct buf *b, uint32_t cp, char quote)
{
    static const char names[] = "\nn\tt\rr\bb\ff\vv\033e\177d";
    const char *named = cp && cp < 128 ? memchr(names, (int)cp, sizeof(names) - 1) : NULL;

    if (cp == (uint32_t)quote || cp == '\\') {
        buf_char(b, '\\');
        buf_char(b, (char)cp);
    } else if (named && (named - names) % 2 == 0) {
        buf_char(b, '\\');
        buf_char(b, named[1]);
    } else if (cp != UTF8_BAD && utf8_shows(cp)) {
        buf_utf8(b, cp);
    } else {
        buf_printf(b, "\\x{%X}", (unsigned)cp);
    }
}

static void put_quoted(struct buf *b, struct str s, char quote)
{
    const char *at = s.at, *end = s.at + s.len;

    buf_char(b, quote);
    while (at < end)
        put_char(b, utf8_next(&at, end), quote);
    buf_char(b, quote);
}

static void print_put_atom(struct buf *b, struct str name)
{
    if (is_plain(name))
        buf_str(b, name);
    else
        put_quoted(b, name, '\'');
}

/* Prints the fewest digits that read back to the same number. */
static void print_put_float(struct buf *b, double v)
{
    char text[40];
    int digits = 1;

    while (digits < 17 && (snprintf(text, sizeof(text), "%.*e", digits - 1, v), strtod(text, NULL) != v))
        digits++;
    snprintf(text, sizeof(text), "%.*e", digits - 1, v);
    int exponent = atoi(strchr(text, 'e') + 1);
    if (exponent >= -5 && exponent < 16) {
        buf_printf(b, "%.*f", MAX(digits - 1 - exponent, 1), v);
        return;
    }
    *strchr(text, 'e') = 0;
    buf_printf(b, strchr(text, '.') ? "%se%d" : "%s.0e%d", text, exponent);
}

static bool is_text(term_t t)
{
    if (!t->count || t->tail)
        return false;
    for (size_t i = 0; i < t->count; i++) {
        const struct term *item = t->items[i];
        if (item->type != TERM_INT || item->integer < 9 || item->integer > 0x10ffff)
            return false;
        if (item->integer != '\n' && item->integer != '\t' && !utf8_shows((uint32_t)item->integer))
            return false;
    }
    return true;
}

static void print_put_list(struct buf *b, term_t t, bool as_text)
{
    if (as_text && is_text(t)) {
        buf_char(b, '"');
        for (size_t i = 0; i < t->count; i++)
            put_char(b, (uint32_t)t->items[i]->integer, '"');
        buf_char(b, '"');
        return;
    }
    buf_char(b, '[');
    for (size_t i = 0; i < t->count; i++) {
        if (i)
            buf_char(b, ',');
        lang_print_term(t->items[i], b);
    }
    if (t->tail) {
        buf_char(b, '|');
        lang_print_term(t->tail, b);
    }
    buf_char(b, ']');
}

static bool is_printable(struct str s, bool *ret_wide)
{
    const char *at = s.at, *end = s.at + s.len;

    *ret_wide = false;
    while (at < end) {
        uint32_t cp = utf8_next(&at, end);
        if (cp == UTF8_BAD || (cp != '\n' && cp != '\t' && !utf8_shows(cp)))
            return false;
        *ret_wide |= cp > 127;
    }
    return s.len > 0;
}

static void put_bin(struct buf *b, term_t t)
{
    bool wide;

    buf_puts(b, "<<");
    if (t->bits == 8 && is_printable(t->text, &wide)) {
        put_quoted(b, t->text, '"');
        if (wide)
            buf_puts(b, "/utf8");
    } else {
        for (size_t i = 0; i < t->text.len; i++) {
            unsigned byte = (unsigned char)t->text.at[i];
            bool last = i + 1 == t->text.len && t->bits != 8;
            buf_printf(b, last ? "%s%u:%u" : "%s%u", i ? "," : "", last ? byte >> (8 - t->bits) : byte, t->bits);
        }
    }
    buf_puts(b, ">>");
}

void lang_print_term(term_t t, struct buf *b)
{
    switch (t->type) {
    case TERM_ATOM:
        print_put_atom(b, t->text);
        break;
    case TERM_INT:
        buf_printf(b, "%lld", (long long)t->integer);
        break;
    case TERM_BIG:
        buf_str(b, t->text);
        break;
    case TERM_FLOAT:
        print_put_float(b, t->real);
        break;
    case TERM_BIN:
        put_bin(b, t);
        break;
    case TERM_LIST:
        print_put_list(b, t, true);
        break;
    case TERM_TUPLE:
        buf_char(b, '{');
        for (size_t i = 0; i < t->count; i++) {
            if (i)
                buf_char(b, ',');
            lang_print_term(t->items[i], b);
        }
        buf_char(b, '}');
        break;
    case TERM_MAP:
        buf_puts(b, "#{");
        for (size_t i = 0; i < t->count; i += 2) {
            if (i)
                buf_char(b, ',');
            lang_print_term(t->items[i], b);
            buf_puts(b, " => ");
            lang_print_term(t->items[i + 1], b);
        }
        buf_char(b, '}');
        break;
    case TERM_PID:
        buf_printf(b, "<0.%llu.%u>", (unsigned long long)t->id, t->serial);
        break;
    case TERM_PORT:
        buf_printf(b, "#Port<0.%llu>", (unsigned long long)t->id);
        break;
    case TERM_REF:
        buf_puts(b, "#Ref<0");
        for (size_t i = t->nwords; i-- > 0;)
            buf_printf(b, ".%u", t->words[i]);
        buf_char(b, '>');
        break;
    case TERM_EXPORT:
        buf_puts(b, "fun ");
        lang_print_term(t->items[0], b);
        buf_char(b, ':');
        lang_print_term(t->items[1], b);
        buf_printf(b, "/%lld", (long long)t->items[2]->integer);
        break;
    }
}

/* Prints the heads always as lists of patterns, never as strings. */
void print_match_spec(term_t t, struct buf *b)
{
    if (t->type != TERM_LIST) {
        lang_print_term(t, b);
        return;
    }
    buf_char(b, '[');
    for (size_t i = 0; i < t->count; i++) {
        const struct term *cl = t->items[i];
        buf_puts(b, i ? ",{" : "{");
        if (cl->items[0]->type == TERM_LIST)
            print_put_list(b, cl->items[0], false);
        else
            lang_print_term(cl->items[0], b);
        buf_char(b, ',');
        print_put_list(b, cl->items[1], false);
        buf_char(b, ',');
        print_put_list(b, cl->items[2], false);
        buf_char(b, '}');
    }
    buf_char(b, ']');
}

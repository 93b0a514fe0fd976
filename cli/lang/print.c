/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints terms as text that file:consult/1 reads, for explanations and for other programs. It does not print terms of a
 * traced node: these are encoded, and may be cut and redacted (erlang/term_print.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../erlang/term_print.h"
#include "../ground/utf8.h"
#include "comp.h"

/* Prints an atom. Every atom that is not plain ASCII gets quotes. */
static void print_put_atom(struct buf *b, struct str name)
{
    bool ascii = true;

    for (size_t i = 0; i < name.len; i++)
        ascii &= (unsigned char)name.at[i] < 128;
    if (ascii)
        erlang_print_atom(b, raw_of(name));
    else
        erlang_print_string(b, raw_of(name), '\'');
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

static void put_text(struct buf *b, term_t t)
{
    struct buf text = {0};

    for (size_t i = 0; i < t->count; i++)
        buf_utf8(&text, (uint32_t)t->items[i]->integer);
    erlang_print_string(b, raw_of(buf_view(&text)), '"');
    buf_release(&text);
}

/* Prints the items of a list, a tuple or a map, and the tail of a list, in brackets. */
static void put_items(struct buf *b, const char *open, term_t t, char close)
{
    buf_puts(b, open);
    for (size_t i = 0; i < t->count; i++) {
        if (i)
            buf_puts(b, t->type == TERM_MAP && i % 2 ? " => " : ",");
        lang_print_term(t->items[i], b);
    }
    if (t->tail) {
        buf_char(b, '|');
        lang_print_term(t->tail, b);
    }
    buf_char(b, close);
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
        erlang_print_string(b, raw_of(t->text), '"');
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
        if (is_text(t))
            put_text(b, t);
        else
            put_items(b, "[", t, ']');
        break;
    case TERM_TUPLE:
        put_items(b, "{", t, '}');
        break;
    case TERM_MAP:
        put_items(b, "#{", t, '}');
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

/* Prints a match specification. Heads, guards and bodies are printed as lists, never as strings. */
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
        for (size_t k = 0; k < 3; k++) {
            buf_puts(b, k ? "," : "");
            if (cl->items[k]->type == TERM_LIST)
                put_items(b, "[", cl->items[k], ']');
            else
                lang_print_term(cl->items[k], b);
        }
        buf_char(b, '}');
    }
    buf_char(b, ']');
}

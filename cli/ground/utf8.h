/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8, and the decision which characters may reach a terminal. Escaping is left to the printers; nothing here knows
 * Erlang.
 */
#ifndef ETRACE_UTF8_H
#define ETRACE_UTF8_H

#include "macros.h"

#define UTF8_BAD 0xffffffffu

/* Decodes the code point at *at (which is before end) and advances *at. Returns UTF8_BAD for malformed input and
 * advances one byte. Strict: rejects overlong forms and surrogates. */
uint32_t utf8_next(const char **at, const char *end);

/* Returns the text without the byte order mark that some editors put in front of it. */
struct str utf8_unmarked(struct str text);

size_t utf8_put(char *to, uint32_t codepoint); /* returns the number of bytes written, up to 4 */
bool utf8_valid(const char *text, size_t len);

/* Returns the first byte from `at` on that is not plain between such quotes. Plain is printable ASCII without the quote
 * and the backslash. */
const char *utf8_plain(const char *at, const char *end, char quote);

/*
 * True if a code point may be shown unescaped: graphic characters and space, but nothing that moves a cursor or hides,
 * reorders or joins text (controls, formats, private use, surrogates, line separators, default-ignorables).
 */
bool utf8_shows(uint32_t codepoint);

/* Replaces each malformed byte and each character that utf8_shows() rejects with a question mark, in place. */
void utf8_make_safe(char *text);

/* The columns that valid text takes on a terminal: 0 for combining marks, 2 for wide characters. */
size_t utf8_width(const char *text, size_t len);

#endif

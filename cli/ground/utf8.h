/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes UTF-8, and decides which characters may reach a terminal. The printers escape the others. This file
 * knows nothing about Erlang.
 */
#ifndef ETRACE_UTF8_H
#define ETRACE_UTF8_H

#include "macros.h"

#define UTF8_BAD 0xffffffffu

/*
 * Decodes the code point at *at, which is before `end`, and advances *at. For malformed input returns UTF8_BAD and
 * advances by one byte. Strict: overlong forms and surrogates are malformed.
 */
uint32_t utf8_next(const char **at, const char *end);

/* Returns the text without the byte order mark that some editors put in front of it. */
struct str utf8_unmarked(struct str text);

size_t utf8_put(char *to, uint32_t codepoint); /* returns the number of bytes written, up to 4 */
bool utf8_valid(const char *text, size_t len);

/*
 * Returns the first byte from `at` on that is not plain, or `end`. Plain bytes are printable ASCII, except the
 * backslash and the byte `quote`.
 */
const char *utf8_plain(const char *at, const char *end, char quote);

/*
 * Returns true if a code point may be shown unescaped: graphic characters and space, but nothing that moves a cursor or
 * hides, reorders or joins text (controls, formats, private use, surrogates, line separators, default-ignorables).
 */
bool utf8_shows(uint32_t codepoint);

/* Replaces each malformed byte and each character that utf8_shows() rejects with a question mark, in place. */
void utf8_make_safe(char *text);

/* Returns the number of columns that valid text takes on a terminal: 0 for a combining mark, 2 for a wide character. */
size_t utf8_width(const char *text, size_t len);

#endif

/*
 * UTF-8, and the one decision about which characters may reach a terminal.
 * Nothing here knows Erlang; escaping syntax belongs to the printers.
 */
#ifndef ETRACE_UTF8_H
#define ETRACE_UTF8_H

#include "macros.h"

#define UTF8_BAD 0xffffffffu

/* The code point at *at (before end), moving *at behind it; UTF8_BAD moves one byte. Strict: no overlongs, no surrogates. */
uint32_t utf8_next(const char **at, const char *end);

/* The byte order mark that some editors put in front of a text; what else is there, without it. */
struct str utf8_unmarked(struct str text);

size_t utf8_put(char *to, uint32_t codepoint); /* up to 4 bytes; how many were written */
bool utf8_valid(const char *text, size_t len);

/* The first byte from `at` on that does not stand for itself between such quotes: all but printable ASCII, and a backslash. */
const char *utf8_plain(const char *at, const char *end, char quote);

/*
 * Whether a code point may be shown as it is: graphic characters and space, but nothing that moves a cursor, hides,
 * reorders or joins text (controls, formats, private use, surrogates, separators of lines, default-ignorables).
 */
bool utf8_shows(uint32_t codepoint);

/* In place: what is not shown, and what is no UTF-8, becomes a question mark each. */
void utf8_make_safe(char *text);

/* Columns that a terminal gives to valid text: 0 for combining marks, 2 for wide characters. */
size_t utf8_width(const char *text, size_t len);

#endif

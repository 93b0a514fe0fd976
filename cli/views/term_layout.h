/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Breaks a line with printed terms into lines, by its brackets and quotes: a field of a map, a record or a struct has a
 * line of its own, and so has an element of another container that does not fit. Works for Erlang, Elixir and JSON,
 * because it knows no term, only the text.
 */
#ifndef ETRACE_TERM_LAYOUT_H
#define ETRACE_TERM_LAYOUT_H

#include "../ground/buf.h"

/* Appends the text in lines of at most `width` columns. The text has no newline; the result ends with one. */
void term_layout(struct buf *to, struct str text, unsigned width);

#endif

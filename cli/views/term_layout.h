/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Breaks a line with printed terms into lines, by its brackets and quotes: each field of a map, a record or a struct
 * gets a line. Each element of another container gets a line if the container does not fit into one line. Works for
 * Erlang, Elixir and JSON, because it reads only the text.
 */
#ifndef ETRACE_TERM_LAYOUT_H
#define ETRACE_TERM_LAYOUT_H

#include "../ground/buf.h"

/* Appends the text in lines of at most `width` columns. The text has no newline; the result ends with one. */
void term_layout(struct buf *to, struct str text, unsigned width);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the text of a line: label and words, and whether the next line continues it. Needs no session. */
#ifndef ETRACE_REPL_SYNTAX_H
#define ETRACE_REPL_SYNTAX_H

#include <stdbool.h>

#include "../ground/mem.h"

/* True if a bracket or a quote is open, or the last word or sign needs an operand. */
bool repl_is_open(struct str text);

/*
 * Returns the next word of *rest, without quotes, and moves *rest past the word. Overwrites the text. Returns NULL if
 * no word is left.
 */
char *repl_next_word(char **rest);
char *repl_trimmed(char *text); /* removes white space at both ends, in place */

/* Returns the name of the file in the arena, with $HOME in place of a ~ at its beginning, as in a shell. */
const char *repl_file_name(struct arena *arena, const char *typed);

/* Returns the length of the label of `label: expression`, or 0 if the line has none. */
size_t repl_label_length(const char *line);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the text of a line: whether it continues on the next line, its label, its words. It does not need a session.
 */
#ifndef ETRACE_REPL_SYNTAX_H
#define ETRACE_REPL_SYNTAX_H

#include <stdbool.h>

#include "../ground/mem.h"

bool repl_is_open(struct str text); /* a bracket or a quote is open, or the last word or sign needs an operand */

/* The next word of *rest, without quotes; writes into the text and moves *rest past the word. NULL: no word is left. */
char *repl_next_word(char **rest);
char *repl_trimmed(char *text); /* removes white space at both ends, in place */

/* Returns the name of a file with $HOME in place of a ~ at its beginning, as a shell does; in the arena. */
const char *repl_file_name(struct arena *arena, const char *typed);

/* The length of the label of `label: expression`; 0: the line has none. */
size_t repl_label_length(const char *line);

#endif

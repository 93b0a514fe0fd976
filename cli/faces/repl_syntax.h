/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses a line: splits it into label and words, and finds out whether it continues on the next line. Needs no session.
 */
#ifndef ETRACE_REPL_SYNTAX_H
#define ETRACE_REPL_SYNTAX_H

#include <stdbool.h>

#include "../ground/mem.h"

/* Returns true if a bracket or a quotation mark is open, or if the last word or sign needs an operand. */
bool repl_is_open(struct str text);

/*
 * Returns the next word of *rest without its quotes, and moves *rest behind it. Overwrites the text. Returns NULL if
 * there are no more words.
 */
char *repl_next_word(char **rest);
char *repl_trimmed(char *text); /* removes white space at both ends, in place */

/* Returns the name of a file, allocated in the arena. A ~ at the beginning becomes $HOME, as in a shell. */
const char *repl_file_name(struct arena *arena, const char *typed);

/* Returns the length of the label of `label: expression`, or 0 if the line has none. */
size_t repl_label_length(const char *line);

#endif

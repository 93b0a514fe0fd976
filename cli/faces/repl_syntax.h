/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses a line: finds out what it is and whether it continues on the next line, and splits it into label and words.
 * Needs no session. A line may consist of several lines that the user has typed.
 */
#ifndef ETRACE_REPL_SYNTAX_H
#define ETRACE_REPL_SYNTAX_H

#include <stdbool.h>

#include "../ground/buf.h"
#include "../ground/mem.h"

/* Returns true if the line is a :command. An expression may also begin with a colon, as in :ets.lookup(_, _). */
bool repl_is_command(struct str line);
/* Returns true if the expression continues on the next line. */
bool repl_is_open(struct str line);
/* Appends the expression, with its label, as one line with the same meaning. */
void repl_join_lines(struct str line, struct buf *ret);

/*
 * Returns the next word of *rest without its quotes, and moves *rest behind it. Overwrites the text. Returns NULL if
 * there are no more words.
 */
char *repl_next_word(char **rest);
char *repl_trimmed(char *text); /* removes white space at both ends, in place */

/* Returns the name of a file, allocated in the arena. A ~ at the beginning becomes $HOME, as in a shell. */
const char *repl_file_name(struct arena *arena, const char *typed);

/* Returns the length of the label of `label: expression` with the colon, or 0 if the line has none. */
size_t repl_label_length(struct str line);

#endif

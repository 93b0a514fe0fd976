/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs lines: an expression is traced, and a :command is run. Commands of the session are rows of a table in
 * repl_words.c. Options of tracing commands (as settings), commands of etrace, and views are also :commands.
 */
#ifndef ETRACE_REPL_WORDS_H
#define ETRACE_REPL_WORDS_H

#include "repl_parts.h"

struct repl_words;

struct repl_words *repl_words_new(const struct repl_parts *parts);
void repl_words_free(struct repl_words *w); /* accepts NULL */

void repl_words_run(struct repl_words *w, char *line); /* runs one complete line, and overwrites it */
void repl_words_each(void (*each)(void *data, const char *word, const char *help), void *data);

#endif

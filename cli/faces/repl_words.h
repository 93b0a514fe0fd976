/*
 * Lines: an expression is traced, a word behind a colon is done. The words of the session are rows of a table here;
 * every option of a tracing command is a setting of the same name; every command of the shell and every view is a
 * word, too.
 */
#ifndef ETRACE_REPL_WORDS_H
#define ETRACE_REPL_WORDS_H

#include "repl_parts.h"

struct repl_words;

struct repl_words *repl_words_new(const struct repl_parts *parts);
void repl_words_free(struct repl_words *w); /* accepts NULL */

void repl_words_run(struct repl_words *w, char *line); /* one whole line, in which it writes */
void repl_words_each(void (*each)(void *data, const char *word, const char *help), void *data);

#endif

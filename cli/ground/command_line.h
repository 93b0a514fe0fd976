/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a command that etrace prints and that the user can paste into a shell. Names from a node are added only with
 * command_line_word(), which quotes a word that a shell would otherwise interpret.
 */
#ifndef ETRACE_COMMAND_LINE_H
#define ETRACE_COMMAND_LINE_H

#include "buf.h"
#include "err.h"

struct command_line {
    struct buf text; /* owned */
};

/*
 * Adds text that needs no quotes, such as " --for 10s". The text begins with a blank, except at the beginning of the
 * command.
 */
#define command_line_add(c, literal) buf_puts(&(c)->text, "" literal)
/* Adds a blank and the word, in quotes if necessary. Writes characters that must not reach a terminal as escapes. */
void command_line_word(struct command_line *c, const char *word);
const char *command_line_text(struct command_line *c); /* valid until the next change */
/*
 * Begins the command `etrace NAME --ssh SSH -n NODE`. Leaves out each part whose argument is NULL.
 */
void command_line_begin(struct command_line *c, const char *name, const char *ssh, const char *node);
/* Makes later commands name this node as the user typed it. The texts are borrowed until the program ends. */
void command_line_rename(const char *node, const char *typed);
/*
 * Sets the hint of the error to `before`, a blank, the word, and `after`. Quotes the word as command_line_word() does,
 * because users paste hints. Use it for every option or command in a hint whose word comes from the user, a file or
 * another node.
 */
void command_line_hint(struct err *e, const char *before, const char *word, const char *after);
void command_line_clear(struct command_line *c);
void command_line_release(struct command_line *c);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history of the line editor: lines of earlier sessions and of this one, kept in a file. Answers of a node and
 * lines that begin with a space are never kept. Each line is appended at once, so no exit loses one.
 */
#ifndef ETRACE_REPL_HISTORY_H
#define ETRACE_REPL_HISTORY_H

#include "editor.h"

struct repl_history {
    int fd; /* -1: there is no file */
    struct editor *line;
};

/* Gives the kept lines to the editor; keeps none without a file. */
void repl_history_open(struct repl_history *h, struct editor *line);
void repl_history_add(struct repl_history *h, struct str line);
void repl_history_close(struct repl_history *h); /* accepts a zeroed struct */

#endif

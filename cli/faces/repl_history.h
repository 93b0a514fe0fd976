/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the lines of this session and of earlier ones in a file, for the line editor. Does not keep answers of nodes,
 * and no lines that begin with a space. Appends each line at once, so that a crash loses none.
 */
#ifndef ETRACE_REPL_HISTORY_H
#define ETRACE_REPL_HISTORY_H

#include "editor.h"

struct repl_history {
    int fd; /* -1: there is no file */
    struct editor *line;
};

/* Opens the file, and gives its lines to the editor. Keeps no lines if the file cannot be opened. */
void repl_history_open(struct repl_history *h, struct editor *line);
void repl_history_add(struct repl_history *h, struct str line);
void repl_history_close(struct repl_history *h); /* accepts a zeroed struct */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of -o and :output. They get every event that comes while they are open, in the background, whatever the
 * user looks at meanwhile.
 */
#ifndef ETRACE_REPL_FILES_H
#define ETRACE_REPL_FILES_H

#include "repl_reel.h"

struct repl_files;

struct repl_files *repl_files_new(struct repl_base *base, struct repl_nodes *nodes);
void repl_files_free(struct repl_files *f); /* accepts NULL */

/* Opens the files of the options for what comes from now on, and ends the files before. false: these stay open. */
bool repl_files_open(struct repl_files *f, struct err *e);
bool repl_files_are_open(const struct repl_files *f);
/* Writes for a few milliseconds. true: there is more to write, and room for it. */
bool repl_files_pump(struct repl_files *f);
size_t repl_files_behind(const struct repl_files *f); /* bytes of events that are not in the files yet */
bool repl_files_catch_up(struct repl_files *f);       /* waits until everything so far is in the files; false: Ctrl-C */
/* As repl_files_catch_up(), then closes the files. An error is printed and kept as the status. */
void repl_files_end(struct repl_files *f);

#endif

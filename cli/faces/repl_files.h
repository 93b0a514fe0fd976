/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the files of -o and :output. While they are open, they get every event that arrives, in the background,
 * whatever view the user looks at.
 */
#ifndef ETRACE_REPL_FILES_H
#define ETRACE_REPL_FILES_H

#include "repl_reel.h"

struct repl_files;

struct repl_files *repl_files_new(struct repl_base *base, struct repl_nodes *nodes);
void repl_files_free(struct repl_files *f); /* accepts NULL */

/*
 * Opens the files of the options for all events from now on, and then closes the previous files. Returns false, with an
 * error, if a file cannot be opened; then the previous files stay open.
 */
bool repl_files_open(struct repl_files *f, struct err *e);
bool repl_files_are_open(const struct repl_files *f);
/* Writes for a few milliseconds. Returns true if there are more events to write and the outputs can take them. */
bool repl_files_pump(struct repl_files *f);
size_t repl_files_behind(const struct repl_files *f); /* bytes of events that are not written to the files yet */
/* Waits until all events so far are written. Returns false if a signal ended the wait. */
bool repl_files_catch_up(struct repl_files *f);
/* Waits as repl_files_catch_up() does, then closes the files. Prints an error, and keeps the error's status. */
void repl_files_end(struct repl_files *f);

#endif

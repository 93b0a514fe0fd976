/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the files of -o and :output. While they are open, all events that arrive are written to them in the
 * background, independently of the view on the terminal.
 */
#ifndef ETRACE_REPL_FILES_H
#define ETRACE_REPL_FILES_H

#include "repl_reel.h"

struct repl_files;

struct repl_files *repl_files_new(struct repl_base *base, struct repl_nodes *nodes);
void repl_files_free(struct repl_files *f); /* accepts NULL */

/*
 * Opens the files that the options name. They get all events from now on. Then closes the previous files. Returns
 * false, with an error, if a file cannot be opened; the previous files then stay open.
 */
bool repl_files_open(struct repl_files *f, struct err *e);
bool repl_files_are_open(const struct repl_files *f);
/* Writes for a few milliseconds. Returns true if there are more events to write and the outputs can take them. */
bool repl_files_pump(struct repl_files *f);
/* Returns the number of bytes of events that still have to be written. */
size_t repl_files_behind(const struct repl_files *f);
/* Waits until all events that have arrived are written. Returns false if a signal has ended the wait. */
bool repl_files_catch_up(struct repl_files *f);
/*
 * Waits like repl_files_catch_up(), then closes the files. If one cannot be closed, prints the error, with whose status
 * the interactive mode ends.
 */
void repl_files_end(struct repl_files *f);

#endif

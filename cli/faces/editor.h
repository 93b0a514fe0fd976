/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edits the line that a user types at a terminal, with libedit. editor_read() serves everything else while it waits for
 * keys, and editor_above() prints above the line without disturbing it. All output for the terminal goes through one
 * `struct out`, so a terminal that is stopped (Ctrl-S) blocks nothing.
 *
 * A program has one `struct editor` at most, because it has one terminal. While it exists, it handles SIGTSTP and
 * SIGWINCH.
 */
#ifndef ETRACE_EDITOR_H
#define ETRACE_EDITOR_H

#include "../ground/buf.h"
#include "../ground/err.h"
#include "../ground/loop.h"
#include "../ground/out.h"

struct editor_host {
    void *data;
    void (*serve)(void *data); /* waits for the next event of the loop and handles it */
    bool (*stops)(void *data); /* called before each serve(); true: editor_read() returns EDITOR_STOPPED */
    void (*complete)(void *data, struct str before); /* called for Tab; may call editor_insert() and editor_above() */
    void (*typed)(void *data);                       /* called for each key */
    void (*resumed)(void *data, int64_t stopped_ms); /* called when the process continues after Ctrl-Z */
};

struct editor;

/* Whether standard input and output are a terminal that can move its cursor, and editor_fits(). */
bool editor_possible(void);
/* Whether the terminal reports a plausible size. editor_read() returns EDITOR_END if it does not. */
bool editor_fits(void);

struct editor *editor_new(struct loop *loop, struct out *out, const struct editor_host *host, struct err *e);
void editor_free(struct editor *l); /* restores the modes of the terminal; accepts NULL */
void editor_panic(void);            /* only restores the modes; for signal handlers; does nothing if there is no line */

enum editor_got { EDITOR_TEXT, EDITOR_END /* Ctrl-D, or the terminal is gone */, EDITOR_STOPPED };
/* Replaces *ret by the line, without its newline. */
enum editor_got editor_read(struct editor *l, const char *prompt, struct buf *ret);

/* Prints whole lines, above the line that is being typed. */
void editor_above(struct editor *l, struct str text);
void editor_insert(struct editor *l, struct str text); /* inserts at the cursor; only complete() may call it */
bool editor_is_empty(const struct editor *l);          /* nothing is typed, or editor_read() is not running */
/* The column at which prompt and text end, on a terminal of any width. */
size_t editor_column(const struct editor *l, const char *prompt, const char *text, size_t len);
unsigned editor_width(const struct editor *l);
unsigned editor_height(const struct editor *l);

/* Adds a line to the history, for the arrow keys and Ctrl-R. */
void editor_remember(struct editor *l, const char *text);

/* editor_lend() restores the modes of the terminal for a command that uses it;
 * editor_return() takes the terminal back. */
void editor_lend(struct editor *l);
void editor_return(struct editor *l);

/* Takes one key that was typed while editor_read() was not running. -1: none. 4 (Ctrl-D): the terminal is gone. */
int editor_key(struct editor *l);

#endif

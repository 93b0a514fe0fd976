/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edits the line that a user types at a terminal, with libedit. While editor_read() waits for keys, the caller's
 * serve() handles all other events, and editor_above() prints above the line without disturbing it. All output for the
 * terminal goes through one `struct out`, so a stopped terminal (Ctrl-S) blocks nothing.
 *
 * A program has one `struct editor` at most, because it has one terminal. While the editor exists, it handles SIGTSTP
 * and SIGWINCH.
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
    /* Called before each serve(); if it returns true, editor_read() returns EDITOR_STOPPED. */
    bool (*stops)(void *data);
    void (*complete)(void *data, struct str before); /* called for Tab; may call editor_insert() and editor_above() */
    void (*typed)(void *data);                       /* called for each key */
    void (*resumed)(void *data, int64_t stopped_ms); /* called when the process continues after Ctrl-Z */
};

struct editor;

/* Returns true if standard input and output are a terminal that can move its cursor, and if editor_fits() is true. */
bool editor_possible(void);
/* Returns true if the size that the terminal reports is plausible. If it is not, editor_read() returns EDITOR_END. */
bool editor_fits(void);

struct editor *editor_new(struct loop *loop, struct out *out, const struct editor_host *host, struct err *e);
void editor_free(struct editor *l); /* restores the modes of the terminal; accepts NULL */
void editor_panic(void); /* only restores the modes of the terminal, in a signal handler; a no-op if no editor exists */

enum editor_got { EDITOR_TEXT, EDITOR_END /* Ctrl-D, or the terminal is gone */, EDITOR_STOPPED };
/* Lets the user type a line. If it returns EDITOR_TEXT, *ret is the line, without its newline. */
enum editor_got editor_read(struct editor *l, const char *prompt, struct buf *ret);

/* Prints whole lines above the line that the user types. */
void editor_above(struct editor *l, struct str text);
void editor_insert(struct editor *l, struct str text); /* inserts at the cursor; only complete() may call it */
bool editor_is_empty(const struct editor *l);          /* true also while editor_read() is not running */
/* Returns the column at which prompt and text would end on a terminal of unlimited width. */
size_t editor_column(const struct editor *l, const char *prompt, const char *text, size_t len);
unsigned editor_width(const struct editor *l);
unsigned editor_height(const struct editor *l);

/* Adds a line to the history, for the arrow keys and Ctrl-R. */
void editor_remember(struct editor *l, const char *text);

/* Restores the modes of the terminal for a command that uses the terminal, until editor_return(). */
void editor_lend(struct editor *l);
void editor_return(struct editor *l);

/*
 * Takes one key that was typed while editor_read() was not running. Returns -1 if there is none, and 4 (Ctrl-D) if the
 * terminal is gone.
 */
int editor_key(struct editor *l);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edits the line that a user types at a terminal, with libedit. While editor_read() waits for keys, the caller's
 * serve() handles all other events, and editor_above() prints above the line without disturbing it. All output for the
 * terminal goes through one `struct out`, so a stopped terminal (Ctrl-S) blocks nothing.
 *
 * There is at most one `struct editor`, because the program has one terminal. While it exists, the editor handles
 * SIGTSTP and SIGWINCH.
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
    /* called for Tab with the text before the cursor; may call editor_insert() and editor_above() */
    void (*complete)(void *data, struct str before);
    void (*typed)(void *data); /* called for each key */
    /* called when the process continues after Ctrl-Z, with the time for which it was stopped */
    void (*resumed)(void *data, int64_t stopped_ms);
};

struct editor;

/* Returns true if standard input and output are a terminal that can move its cursor, and editor_fits() returns true. */
bool editor_possible(void);
/* Returns true if the size that the terminal reports is plausible. If it is not, editor_read() returns EDITOR_END. */
bool editor_fits(void);

struct editor *editor_new(struct loop *loop, struct out *out, const struct editor_host *host, struct err *e);
void editor_free(struct editor *l); /* restores the modes of the terminal; accepts NULL */
/* Restores only the modes of the terminal; for signal handlers; does nothing if there is no editor. */
void editor_panic(void);

enum editor_got { EDITOR_TEXT, EDITOR_END /* EDITOR_END: Ctrl-D, or the terminal is gone */, EDITOR_STOPPED };
/* Reads one line that the user types. If it returns EDITOR_TEXT, it has set *ret to the line without its newline. */
enum editor_got editor_read(struct editor *l, const char *prompt, struct buf *ret);

/* Prints whole lines above the line that the user types. */
void editor_above(struct editor *l, struct str text);
void editor_insert(struct editor *l, struct str text); /* inserts at the cursor; only complete() may call it */
/* Returns true if the line is empty, or if editor_read() is not running. */
bool editor_is_empty(const struct editor *l);
/* Returns the column at which `prompt` and `text` would end if the terminal had unlimited width. */
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

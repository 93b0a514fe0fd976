/*
 * Edits the line that a user types at a terminal, with libedit. line_read() serves everything else while it waits for
 * keys, and line_above() prints above the line without disturbing it. All output for the terminal goes through one
 * `struct out`, so a terminal that is stopped (Ctrl-S) blocks nothing.
 *
 * A program has one `struct line` at most, because it has one terminal. While it exists, it handles SIGTSTP and
 * SIGWINCH.
 */
#ifndef ETRACE_LINE_FACE_H
#define ETRACE_LINE_FACE_H

#include "../ground/buf.h"
#include "../ground/err.h"
#include "../ground/loop.h"
#include "../ground/out.h"

struct line_host {
    void *data;
    void (*serve)(void *data);       /* waits for the next event of the loop and handles it */
    bool (*stops)(void *data);       /* called before each serve(); true: line_read() returns LINE_STOPPED */
    void (*complete)(void *data, struct str before); /* for Tab; may call line_insert() and line_above() */
    void (*typed)(void *data);       /* called for each key */
    void (*resumed)(void *data, int64_t stopped_ms); /* called when the process continues after Ctrl-Z */
};

struct line;

/* Whether standard input and output are a terminal that can move its cursor, and line_fits(). */
bool line_possible(void);
/* Whether the terminal reports a plausible size. line_read() returns LINE_END if it does not. */
bool line_fits(void);

struct line *line_new(struct loop *loop, struct out *out, const struct line_host *host, struct err *e);
void line_free(struct line *l); /* restores the modes of the terminal; accepts NULL */
void line_panic(void);          /* only restores the modes; for signal handlers; does nothing if there is no line */

enum line_got { LINE_TEXT, LINE_END /* Ctrl-D, or the terminal is gone */, LINE_STOPPED };
/* Replaces *ret by the line, without its newline. */
enum line_got line_read(struct line *l, const char *prompt, struct buf *ret);

/* Prints whole lines, above the line that is being typed. */
void line_above(struct line *l, struct str text);
void line_insert(struct line *l, struct str text); /* inserts at the cursor; only complete() may call it */
bool line_is_empty(const struct line *l);          /* nothing is typed, or line_read() is not running */
/* The column at which prompt and text end, on a terminal of any width. */
size_t line_column(const struct line *l, const char *prompt, const char *text, size_t len);
unsigned line_width(const struct line *l);
unsigned line_height(const struct line *l);

/* Adds a line to the history, for the arrow keys and Ctrl-R. */
void line_remember(struct line *l, const char *text);

/* line_lend() restores the modes of the terminal for a command that uses it; line_return() takes the terminal back. */
void line_lend(struct line *l);
void line_return(struct line *l);

/* Takes one key that was typed while line_read() was not running. -1: none. 4 (Ctrl-D): the terminal is gone. */
int line_key(struct line *l);

#endif

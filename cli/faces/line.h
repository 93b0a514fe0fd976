/*
 * The line that a person types at a terminal, edited by libedit, while everything else goes on: what is printed meanwhile
 * stands above it and leaves it as it is. Everything for the terminal goes through one `struct out`, so that a terminal that
 * waits (Ctrl-S) holds up nobody.
 *
 * There is one such line in a program, for a terminal is one: signals of job control and resizing are taken while it exists.
 */
#ifndef ETRACE_LINE_FACE_H
#define ETRACE_LINE_FACE_H

#include "../ground/buf.h"
#include "../ground/err.h"
#include "../ground/loop.h"
#include "../ground/out.h"

struct line_host {
    void *data;
    void (*serve)(void *data);       /* waits until something happens, and does what is to be done but reading keys */
    bool (*stops)(void *data);       /* asked after each serve(): whether line_read() shall return without a line */
    void (*complete)(void *data, struct str before); /* Tab: may call line_insert() and line_above() */
    void (*typed)(void *data);       /* a key */
    void (*resumed)(void *data, int64_t stopped_ms); /* Ctrl-Z, then fg */
};

struct line;

/* Standard input and output are a terminal that can move its cursor. */
bool line_possible(void);
bool line_fits(void); /* the terminal has a size that one can have; line_read() ends when it has not any more */

struct line *line_new(struct loop *loop, struct out *out, const struct line_host *host, struct err *e);
void line_free(struct line *l); /* the terminal is as it was; accepts NULL */
void line_panic(void);          /* the same at once, for a program that ends without unwinding; harmless without a line */

enum line_got { LINE_TEXT, LINE_END /* Ctrl-D, or the terminal is gone */, LINE_STOPPED };
/* `ret` is replaced. */
enum line_got line_read(struct line *l, const char *prompt, struct buf *ret);

/* Whole lines; at any time. */
void line_above(struct line *l, struct str text);
void line_insert(struct line *l, struct str text); /* at the cursor; from complete() alone */
bool line_is_empty(const struct line *l);          /* nothing is typed, or nothing is being read */
size_t line_column(const struct line *l, const char *prompt, const char *text, size_t len); /* where that ends on an empty line */
unsigned line_width(const struct line *l);
unsigned line_height(const struct line *l);

/* Lines of earlier times for arrow keys and Ctrl-R. */
void line_remember(struct line *l, const char *text);

/* The terminal as it was found, for a command that does with it what it likes; and back. */
void line_lend(struct line *l);
void line_return(struct line *l);

/* One key that was typed while no line is read, -1: none. */
int line_key(struct line *l);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts the terminal into a full-screen mode, for a table that refreshes in place: alternate screen, no cursor,
 * unbuffered keys. The program has only one such screen.
 *
 * screen_open() and screen_close() append escape sequences to the caller's output buffer, so that they stay in order
 * with the content.
 */
#ifndef ETRACE_SCREEN_H
#define ETRACE_SCREEN_H

#include "buf.h"
#include "loop.h"

/* Returns true if `in` and `out` are terminals, $TERM is not dumb, and this process is in the foreground. */
bool screen_can(int in, int out);

void screen_open(int in, int out, struct buf *to);
void screen_close(struct buf *to); /* restores the terminal; does nothing without a screen */
/* Restores the terminal at once, for a program that ends without unwinding. Does nothing without a screen. */
void screen_panic(void);

/* Reads the size of the terminal. When it changes, SIGWINCH interrupts the wait of the loop. */
void screen_size(unsigned *ret_columns, unsigned *ret_lines);

enum screen_key {
    KEY_UP = 0x100,
    KEY_DOWN,
    KEY_RIGHT,
    KEY_LEFT,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_FIRST, /* Home */
    KEY_LAST,  /* End */
    KEY_END,   /* the terminal is gone */
};

/*
 * Calls `pressed` in the loop for each pressed key: a byte of a character, or a key of the enum. The key Escape and
 * keys that are not in the enum give 27. A terminal may send the bytes of one key in pieces, so a sequence that has
 * begun counts as the key Escape only after a short time without its rest. KEY_END comes at most once, and nothing
 * after it.
 */
void screen_listen(struct loop *l, void (*pressed)(void *data, int key), void *data);
void screen_ignore(void); /* ends screen_listen() */

#endif

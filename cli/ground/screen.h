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

/* Returns true if `in` and `out` are terminals, $TERM is not dumb, and this process is in the foreground. */
bool screen_can(int in, int out);

void screen_open(int in, int out, struct buf *to);
void screen_close(struct buf *to); /* restores the terminal; does nothing without a screen */
/* Restores the terminal at once, for a program that ends without unwinding. Does nothing without a screen. */
void screen_panic(void);

/* Reads the size of the terminal. When it changes, SIGWINCH interrupts the wait of the loop. */
void screen_size(unsigned *ret_columns, unsigned *ret_lines);

enum screen_key {
    KEY_NONE,
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
 * Returns the next pressed key without waiting: a byte of a character, a key of the enum, or KEY_NONE if none was
 * pressed. The key Escape and keys that are not in the enum give 27.
 */
int screen_key(void);

#endif

/*
 * A whole terminal for a table that is drawn in its place: the other screen, no cursor, keys one by one. There is one such
 * terminal in a program. What is shown goes through the caller's own output, so that nothing overtakes it; these
 * functions append what they have to say to a buffer.
 */
#ifndef ETRACE_SCREEN_H
#define ETRACE_SCREEN_H

#include "buf.h"

/* Whether both are terminals and we are in the foreground. */
bool screen_can(int in, int out);

void screen_open(int in, int out, struct buf *to);
void screen_close(struct buf *to); /* the terminal is as it was; once more is harmless */
void screen_panic(void);           /* the same at once, for a program that ends without unwinding; harmless without a screen */

void screen_size(unsigned *ret_columns, unsigned *ret_lines); /* after SIGWINCH, which ends every wait, it may be another */

enum screen_key { KEY_NONE, KEY_UP = 0x100, KEY_DOWN, KEY_RIGHT, KEY_LEFT, KEY_END };

/* The next key that is there: a character, an arrow, KEY_NONE when there is none, KEY_END when the terminal is gone. */
int screen_key(void);

#endif

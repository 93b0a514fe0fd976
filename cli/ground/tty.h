/* SPDX-License-Identifier: Apache-2.0 */
/* Reads properties of terminals. It does not write to them. */
#ifndef ETRACE_TTY_H
#define ETRACE_TTY_H

#include "macros.h"

enum tty_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/*
 * Returns true if text on `fd` should be coloured: because the user asked for it, or because `fd` is a terminal that is
 * not dumb and NO_COLOR is unset or empty.
 */
bool tty_colors(int fd, enum tty_color wish);

bool tty_is(int fd);
unsigned tty_columns(int fd); /* returns 80 if the terminal does not know */

#endif

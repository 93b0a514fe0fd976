/* What is known about the terminal: nothing here writes to one. */
#ifndef ETRACE_TTY_H
#define ETRACE_TTY_H

#include "macros.h"

enum tty_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* Colour belongs on fd: asked for, or a terminal that is not dumb while NO_COLOR is unset or empty. */
bool tty_colors(int fd, enum tty_color wish);

bool tty_is(int fd);
unsigned tty_columns(int fd); /* 80 where nothing says so */

#endif

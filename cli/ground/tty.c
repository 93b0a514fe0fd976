/* SPDX-License-Identifier: Apache-2.0 */
#include "tty.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool tty_is(int fd)
{
    return isatty(fd) == 1;
}

bool tty_colors(int fd, enum tty_color wish)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    if (wish != COLOR_AUTO)
        return wish == COLOR_ALWAYS;
    return tty_is(fd) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

unsigned tty_columns(int fd)
{
    struct winsize ws;

    if (!ioctl(fd, TIOCGWINSZ, &ws) && ws.ws_col)
        return ws.ws_col;
    return 80;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "screen.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define ENTER "\033[?1049h\033[?25l\033[?7l\033[H\033[2J"
#define LEAVE "\033[0m\033[?7h\033[?25h\033[?1049l"

static struct {
    bool open;
    int in, out;
    struct termios before;
    struct sigaction winch;
    unsigned char keys[64];
    size_t from, end;
} screen;

static void on_signal_wake(int signal)
{
    (void)signal; /* the handler exists only so that the signal interrupts a wait */
}

bool screen_can(int in, int out)
{
    const char *term = getenv("TERM");

    if (term && !strcmp(term, "dumb"))
        return false;
    return isatty(in) == 1 && isatty(out) == 1 && tcgetpgrp(in) == getpgrp();
}

void screen_open(int in, int out, struct buf *to)
{
    struct termios raw;
    struct sigaction winch = {.sa_handler = on_signal_wake};

    if (screen.open || tcgetattr(in, &screen.before))
        return;
    screen.in = in;
    screen.out = out;
    screen.from = screen.end = 0;
    raw = screen.before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* no Ctrl-Z: the node ends the session of a client that is stopped */
    tcsetattr(in, TCSANOW, &raw);
    sigaction(SIGWINCH, &winch, &screen.winch);
    screen.open = true;
    buf_puts(to, ENTER);
}

static void restore_terminal(void)
{
    tcsetattr(screen.in, TCSANOW, &screen.before);
    sigaction(SIGWINCH, &screen.winch, NULL);
    screen.open = false;
}

void screen_close(struct buf *to)
{
    if (!screen.open)
        return;
    restore_terminal();
    buf_puts(to, LEAVE);
}

void screen_panic(void)
{
    if (!screen.open)
        return;
    restore_terminal();
    ssize_t n = write(screen.out, LEAVE, sizeof(LEAVE) - 1);
    (void)n;
}

void screen_size(unsigned *ret_columns, unsigned *ret_lines)
{
    struct winsize ws = {0};

    ioctl(screen.out, TIOCGWINSZ, &ws);
    *ret_columns = ws.ws_col ? ws.ws_col : 80;
    *ret_lines = ws.ws_row ? ws.ws_row : 24;
}

/* Returns the key whose escape sequence ends in this letter, or in this number and a tilde. */
static int name_key(unsigned char last, unsigned number)
{
    static const struct {
        unsigned char last, number;
        int key;
    } names[] = {
        {'A', 0, KEY_UP},    {'B', 0, KEY_DOWN}, {'C', 0, KEY_RIGHT},   {'D', 0, KEY_LEFT},
        {'H', 0, KEY_FIRST}, {'F', 0, KEY_LAST}, {'~', 1, KEY_FIRST},   {'~', 7, KEY_FIRST},
        {'~', 4, KEY_LAST},  {'~', 8, KEY_LAST}, {'~', 5, KEY_PAGE_UP}, {'~', 6, KEY_PAGE_DOWN},
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i].last == last && (last != '~' || names[i].number == number))
            return names[i].key;
    return 27;
}

int screen_key(void)
{
    if (screen.from == screen.end) {
        ssize_t n = read(screen.in, screen.keys, sizeof(screen.keys));
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return KEY_END;
        if (n <= 0)
            return KEY_NONE;
        screen.from = 0;
        screen.end = (size_t)n;
    }
    unsigned char c = screen.keys[screen.from++];
    if (c != 27 || screen.end - screen.from < 2 || (screen.keys[screen.from] != '[' && screen.keys[screen.from] != 'O'))
        return c;
    unsigned char last = screen.keys[screen.from + 1];
    unsigned number = 0;
    screen.from += 2;
    while ((last < '@' || last > '~') && screen.from < screen.end) {
        number = last >= '0' && last <= '9' ? number * 10 + last - '0' : number;
        last = screen.keys[screen.from++];
    }
    return name_key(last, number);
}

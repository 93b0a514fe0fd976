/* SPDX-License-Identifier: Apache-2.0 */
#include "screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define ENTER "\033[?1049h\033[?25l\033[?7l\033[H\033[2J"
#define ESCAPE 27
#define REST_MS 50 /* time in which the rest of an escape sequence must come */
#define LEAVE "\033[0m\033[?7h\033[?25h\033[?1049l"

static struct {
    bool open;
    int in, out;
    struct termios before;
    struct sigaction winch;
    struct loop *loop; /* NULL: nobody listens */
    struct loop_fd fd;
    struct loop_timer rest; /* due when a sequence that has begun counts as the key Escape */
    void (*pressed)(void *data, int key);
    void *data;
    unsigned char keys[64]; /* the bytes that are not a complete key yet */
    size_t n;
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
    return ESCAPE;
}

/*
 * Returns the number of bytes of the first key, and the key in *ret_key. Returns 0 if the sequence has begun but is
 * incomplete.
 */
static size_t first_key(const unsigned char *keys, size_t n, int *ret_key)
{
    unsigned number = 0;

    *ret_key = keys[0];
    if (keys[0] != ESCAPE || (n > 1 && keys[1] != '[' && keys[1] != 'O'))
        return 1;
    for (size_t i = 2; i < n; i++) {
        if (keys[i] >= '@' && keys[i] <= '~') {
            *ret_key = name_key(keys[i], number);
            return i + 1;
        }
        number = keys[i] >= '0' && keys[i] <= '9' ? number * 10 + keys[i] - '0' : number;
    }
    return n == sizeof(screen.keys) ? n : 0;
}

/* Passes on all complete keys, and the first incomplete one if `escaped` is true. */
static void pass_keys(bool escaped)
{
    size_t used = 0;

    while (used < screen.n && screen.loop) {
        int key;
        size_t len = first_key(screen.keys + used, screen.n - used, &key);
        if (!len && !escaped)
            break;
        escaped = escaped && len;
        used += len ? len : 1;
        screen.pressed(screen.data, key);
    }
    used = MIN(used, screen.n);
    screen.n -= used;
    memmove(screen.keys, screen.keys + used, screen.n);
    screen.rest.due = screen.n ? loop_now() + REST_MS : -1;
}

static bool terminal_has(short events)
{
    struct pollfd p = {.fd = screen.in, .events = POLLIN};

    return poll(&p, 1, 0) > 0 && p.revents & events;
}

/* Reads the keys. If a readable terminal has no bytes, it is gone, unless a signal or another reader came first. */
static void on_bytes(void *owner UNUSED)
{
    const ssize_t n = read(screen.in, screen.keys + screen.n, sizeof(screen.keys) - screen.n);

    if (n > 0) {
        screen.n += (size_t)n;
        pass_keys(false);
        return;
    }
    if (n < 0 ? errno == EINTR || errno == EAGAIN : !terminal_has(POLLHUP | POLLERR | POLLNVAL))
        return;
    void (*pressed)(void *data, int key) = screen.pressed;
    screen_ignore();
    pressed(screen.data, KEY_END);
}

/* Ends the wait for the rest of a sequence. The rest may have come while the loop served something else. */
static void on_no_rest(void *owner)
{
    if (terminal_has(POLLIN))
        on_bytes(owner);
    else
        pass_keys(true);
}

void screen_listen(struct loop *l, void (*pressed)(void *data, int key), void *data)
{
    screen_ignore();
    screen.loop = l;
    screen.pressed = pressed;
    screen.data = data;
    screen.n = 0;
    screen.fd = (struct loop_fd){.fd = screen.in, .want_read = true, .ready = on_bytes};
    screen.rest = (struct loop_timer){.due = -1, .run = on_no_rest};
    loop_add(l, &screen.fd);
    loop_start(l, &screen.rest);
}

void screen_ignore(void)
{
    if (!screen.loop)
        return;
    loop_remove(screen.loop, &screen.fd);
    loop_stop(screen.loop, &screen.rest);
    screen.loop = NULL;
}

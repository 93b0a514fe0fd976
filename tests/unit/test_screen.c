/* SPDX-License-Identifier: Apache-2.0 */
/* Presses keys on a terminal whose other end is here, and tests which keys the screen passes on. */
#include "ground/screen.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "tap.h"

static struct loop loop = {.signals = -1};
static int pressed[16];
static size_t count;

static void on_key(void *data UNUSED, int key)
{
    pressed[count++ % ARRAY_LEN(pressed)] = key;
}

/* Sends bytes, and serves the loop until `want` keys have come. */
static void types(int terminal, const char *bytes, size_t want)
{
    count = 0;
    if (write(terminal, bytes, strlen(bytes)) < 0)
        return;
    do
        loop_step(&loop, loop_now() + 20000);
    while (count < want);
}

int main(void)
{
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    struct buf b = {0};

    grantpt(terminal);
    unlockpt(terminal);
    const int in = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    screen_open(in, in, &b);
    screen_listen(&loop, on_key, NULL);

    types(terminal, "ab\033[A\033[6~\033OF", 5);
    ok(pressed[0] == 'a' && pressed[1] == 'b' && pressed[2] == KEY_UP && pressed[3] == KEY_PAGE_DOWN &&
           pressed[4] == KEY_LAST && count == 5,
       "the keys of one piece come in order");
    types(terminal, "\033", 0);
    ok(!count, "a sequence that has begun is no key yet");
    types(terminal, "[", 0);
    ok(!count, "nor with another byte of it");
    types(terminal, "5~x", 2);
    ok(pressed[0] == KEY_PAGE_UP && pressed[1] == 'x' && count == 2, "its rest completes the key");
    types(terminal, "\033", 1);
    ok(pressed[0] == 27 && count == 1, "without a rest, it is the key Escape");
    types(terminal, "\033q", 2);
    ok(pressed[0] == 27 && pressed[1] == 'q', "and so it is before another key");
    count = 0;
    close(terminal);
    loop_step(&loop, loop_now() + 20000);
    ok(pressed[0] == KEY_END && count == 1, "the end of the terminal is a key");
    loop_step(&loop, loop_now());
    is_number((int64_t)count, 1, "which comes once");
    screen_ignore();
    buf_release(&b);
    return tap_end();
}

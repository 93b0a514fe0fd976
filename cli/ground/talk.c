/* SPDX-License-Identifier: Apache-2.0 */
#include "talk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tty.h"

#define WAITING_MOST (64 << 10) /* limit for the bytes in `waiting` */
#define AT_ONCE 4096            /* PIPE_BUF: a pipe that poll() reports as writable takes this much without blocking */

/*
 * Opens a terminal or a pipe once more, as non-blocking. The descriptor of standard error stays as it is, because other
 * processes share it.
 */
void talk_init(struct talk *t)
{
    struct stat st;
    int fd = -1;

    if (tty_is(STDERR_FILENO) || (!fstat(STDERR_FILENO, &st) && S_ISFIFO(st.st_mode)))
        fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    *t = (struct talk){.fd = fd >= 0 ? fd : STDERR_FILENO, .own = fd >= 0};
}

void talk_release(struct talk *t)
{
    if (t->own)
        close(t->fd);
    buf_release(&t->waiting);
}

/*
 * Writes as much as is possible without waiting. Returns the number of bytes that the caller need not keep: they were
 * written, or are dropped after a failed write.
 */
static size_t talk_put(const struct talk *t, const char *at, size_t len)
{
    size_t done = 0;

    while (done < len) {
        struct pollfd room = {.fd = t->fd, .events = POLLOUT};
        int n = poll(&room, 1, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            break;
        ssize_t wrote = write(t->fd, at + done, MIN(len - done, AT_ONCE));
        if (wrote < 0 && errno == EAGAIN)
            break;
        if (wrote < 0 && errno != EINTR)
            return len;
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    return done;
}

static void put_waiting(struct talk *t)
{
    size_t done = talk_put(t, t->waiting.data, t->waiting.len);

    t->waiting.len -= done;
    if (done)
        memmove(t->waiting.data, t->waiting.data + done, t->waiting.len);
}

static size_t lines_of(struct str text)
{
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++)
        n += text.at[i] == '\n';
    return n;
}

void talk_say(struct talk *t, struct str lines)
{
    size_t done = t->waiting.len ? 0 : talk_put(t, lines.at, lines.len);

    if (t->waiting.len + (lines.len - done) <= WAITING_MOST)
        buf_add(&t->waiting, lines.at + done, lines.len - done);
    else
        t->left_out += lines_of(lines);
}

void talk_on(struct talk *t)
{
    put_waiting(t);
    if (t->waiting.len || !t->left_out)
        return;
    buf_printf(&t->waiting, "etrace: %zu more line%s not shown: the output was blocked\n", t->left_out,
               PLURAL(t->left_out));
    t->left_out = 0;
    put_waiting(t);
}

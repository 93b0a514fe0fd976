/* SPDX-License-Identifier: Apache-2.0 */
#include "proc_text.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define PROC_MOST (256u << 10)

bool proc_read(const char *pid, const char *name, struct buf *b)
{
    char path[300];
    ssize_t n = 1;

    buf_clear(b);
    buf_room(b, PROC_MOST + 4097); /* at once, because growing would leave copies of secrets behind */
    snprintf(path, sizeof path, "/proc/%s/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && n > 0 && b->len < PROC_MOST) {
        n = read(fd, buf_room(b, 4096), 4096);
        b->len += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0)
        close(fd);
    buf_char(b, 0);
    return fd >= 0 && n == 0;
}

void proc_wipe(struct buf *b)
{
    if (b->data)
        explicit_bzero(b->data, b->len);
    buf_release(b);
}

const char *proc_next(const struct buf *b, const char *text)
{
    const char *next = text + strlen(text) + 1;

    return next < b->data + b->len - 1 ? next : NULL;
}

bool proc_has(const struct buf *b, const char *wanted)
{
    for (const char *t = b->data; t; t = proc_next(b, t))
        if (!strcmp(t, wanted))
            return true;
    return false;
}

const char *proc_env(const struct buf *b, const char *name)
{
    const size_t len = strlen(name);

    for (const char *t = b->data; t; t = proc_next(b, t))
        if (!strncmp(t, name, len) && t[len] == '=')
            return t + len + 1;
    return NULL;
}

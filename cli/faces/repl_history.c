/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the history in etrace/history below $XDG_STATE_HOME or ~/.local/state, one entry a line, readable only by the
 * user.
 */
#include "repl_history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../ground/mem.h"
#include "repl_syntax.h"

#define READ_MOST (1 << 20)
#define KEEP (256 << 10) /* a file larger than READ_MOST is cut to its last KEEP bytes */

static bool make_directories(char *path)
{
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        bool ok = !mkdir(path, 0700) || errno == EEXIST;
        *at = '/';
        if (!ok)
            return false;
    }
    return true;
}

static char *file_name(void)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    struct buf b = {0};

    if (state && *state == '/')
        buf_printf(&b, "%s/etrace/history", state);
    else if (home && *home == '/')
        buf_printf(&b, "%s/.local/state/etrace/history", home);
    if (!b.len)
        return NULL;
    buf_cstr(&b);
    return b.data;
}

static void repl_history_load(struct repl_history *h, struct buf *all)
{
    ssize_t n = 1;
    off_t size = lseek(h->fd, 0, SEEK_END);

    if (size < 0)
        return;
    lseek(h->fd, size > READ_MOST ? size - KEEP : 0, SEEK_SET);
    while (n > 0 && all->len < READ_MOST) {
        n = read(h->fd, buf_room(all, 65536), 65536);
        all->len += n > 0 ? (size_t)n : 0;
    }
    char *at = all->data, *end = all->data + all->len;
    if (size > READ_MOST) {
        char *line = memchr(at, '\n', all->len);
        at = line ? line + 1 : end;
        if (!ftruncate(h->fd, 0) && write(h->fd, at, (size_t)(end - at)) < 0)
            return;
    }
    for (char *line; at < end && (line = memchr(at, '\n', (size_t)(end - at))); at = line + 1) {
        *line = 0;
        if (*at)
            editor_remember(h->line, at);
    }
}

void repl_history_open(struct repl_history *h, struct editor *line)
{
    char *path = file_name();
    struct buf all = {0};
    struct stat st;

    *h = (struct repl_history){.fd = -1, .line = line};
    if (!path)
        return;
    if (make_directories(path))
        h->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (h->fd >= 0 && (fstat(h->fd, &st) || !S_ISREG(st.st_mode))) {
        close(h->fd); /* writing to another kind of file could block */
        h->fd = -1;
    }
    if (h->fd >= 0 && !fchmod(h->fd, 0600))
        repl_history_load(h, &all);
    buf_release(&all);
    free(path);
}

void repl_history_add(struct repl_history *h, struct str line)
{
    struct buf b = {0};

    if (!line.len || line.at[0] == ' ' || !line.at[strspn(line.at, " \t\n")])
        return;
    repl_join_lines(line, &b);
    editor_remember(h->line, buf_cstr(&b));
    buf_char(&b, '\n');
    ssize_t n = h->fd >= 0 ? write(h->fd, b.data, b.len) : 0;
    (void)n; /* if writing fails, the line is lost from the history and the session continues */
    buf_release(&b);
}

void repl_history_close(struct repl_history *h)
{
    if (h->line && h->fd >= 0)
        close(h->fd);
    *h = (struct repl_history){.fd = -1};
}

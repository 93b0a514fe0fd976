/*
 * Lines of earlier times, one a line in $XDG_STATE_HOME/etrace/history, for the user alone. What a node answered is never
 * kept, and neither is a line that begins with a space. Lines are appended as they come, so nothing is lost however it ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../ground/mem.h"
#include "repl.h"

#define READ_MOST (1 << 20)
#define KEEP (256 << 10) /* of a file that has become larger than READ_MOST */

static bool directories(char *path)
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

static void load(struct repl *r, struct buf *all)
{
    ssize_t n = 1;
    off_t size = lseek(r->history, 0, SEEK_END);

    if (size < 0)
        return;
    lseek(r->history, size > READ_MOST ? size - KEEP : 0, SEEK_SET);
    while (n > 0 && all->len < READ_MOST) {
        n = read(r->history, buf_room(all, 65536), 65536);
        all->len += n > 0 ? (size_t)n : 0;
    }
    char *at = all->data, *end = all->data + all->len;
    if (size > READ_MOST) {
        char *line = memchr(at, '\n', all->len);
        at = line ? line + 1 : end;
        if (!ftruncate(r->history, 0) && write(r->history, at, (size_t)(end - at)) < 0)
            return;
    }
    for (char *line; at < end && (line = memchr(at, '\n', (size_t)(end - at))); at = line + 1) {
        *line = 0;
        if (*at)
            line_remember(r->line, at);
    }
}

void repl_history_open(struct repl *r)
{
    char *path = file_name();
    struct buf all = {0};
    struct stat st;

    r->history = -1;
    if (!path || !r->line) {
        free(path);
        return;
    }
    if (directories(path))
        r->history = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (r->history >= 0 && (fstat(r->history, &st) || !S_ISREG(st.st_mode))) {
        close(r->history); /* what is no file may hold up whoever writes to it */
        r->history = -1;
    }
    if (r->history >= 0 && !fchmod(r->history, 0600))
        load(r, &all);
    buf_release(&all);
    free(path);
}

void repl_history_add(struct repl *r, struct str line)
{
    struct buf b = {0};

    if (!r->line || !line.len || line.at[0] == ' ' || !line.at[strspn(line.at, " \t\n")])
        return;
    for (size_t i = 0; i < line.len; i++)
        buf_char(&b, line.at[i] == '\n' ? ' ' : line.at[i]);
    line_remember(r->line, buf_cstr(&b));
    buf_char(&b, '\n');
    ssize_t n = r->history >= 0 ? write(r->history, b.data, b.len) : 0;
    (void)n; /* a history that cannot be kept is no reason to stop */
    buf_release(&b);
}

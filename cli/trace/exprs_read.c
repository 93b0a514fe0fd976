/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the files of a command: expressions and headers, which may be pipes. */
#include "exprs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../ground/small_file.h"
#include "../ground/utf8.h"

const char *exprs_file_name(const char *path)
{
    return strcmp(path, "-") ? path : "standard input";
}

struct reading {
    int fd, error;
    struct buf *to;
    bool over;
};

static void read_piece(void *owner)
{
    struct reading *r = owner;
    ssize_t n = read(r->fd, buf_room(r->to, 4096), 4096);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    r->error = n < 0 ? errno : 0;
    r->to->len += n > 0 ? (size_t)n : 0;
    r->over = n <= 0 || r->to->len > LANG_MAX_TEXT;
}

/* Reads a pipe or a terminal, which may be slow: serves the loop meanwhile. A signal ends the wait. */
static void read_when_ready(struct ctx *ctx, struct reading *r)
{
    struct loop_fd ready = {.fd = r->fd, .want_read = true, .ready = read_piece, .owner = r};
    int before = ctx->interrupts;

    loop_add(&ctx->loop, &ready);
    while (!r->over && ctx->interrupts == before)
        loop_step(&ctx->loop, -1);
    loop_remove(&ctx->loop, &ready);
    if (!r->over)
        r->error = EINTR;
}

static bool read_open(struct ctx *ctx, int fd, const char *shown, struct buf *b, struct err *e)
{
    struct reading r = {.fd = fd, .to = b};
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        r.error = errno;
    else if (S_ISREG(st.st_mode))
        return small_file_read_fd(fd, shown, LANG_MAX_TEXT, b, ERR_USAGE, e);
    else
        read_when_ready(ctx, &r);
    if (r.error)
        return err_set(e, ERR_USAGE, "cannot read %s: %s", shown,
                       r.error == EBADF ? "it is closed" : strerror(r.error));
    return small_file_fits(b->len, shown, LANG_MAX_TEXT, ERR_USAGE, e);
}

/* Reads a file. Without a ctx there is no loop to serve, so the file must be a regular file. */
static bool read_all(struct ctx *ctx, const char *path, struct buf *b, struct err *e)
{
    const char *shown = exprs_file_name(path);
    bool ok;

    if (ctx) {
        int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : STDIN_FILENO;
        ok = read_open(ctx, fd, shown, b, e);
        if (fd > STDIN_FILENO)
            close(fd);
    } else {
        ok = small_file_read(path, shown, LANG_MAX_TEXT, b, ERR_USAGE, e);
    }
    if (!ok)
        return false;
    struct str text = utf8_unmarked(buf_view(b));
    if (text.len < b->len)
        memmove(b->data, text.at, text.len);
    b->len = text.len;
    return true;
}

static const char *text_of_pipe(const struct what_opts *what, const char *path)
{
    for (size_t i = 0; i < what->pipes.count; i += 2)
        if (!strcmp(what->pipes.items[i], path))
            return what->pipes.items[i + 1];
    return NULL;
}

bool exprs_pipes(struct ctx *ctx, struct what_opts *what, struct arena *a, struct err *e)
{
    struct stat st;
    struct buf b = {0};
    bool ok = true;

    for (size_t i = 0; ok && i < what->records.count; i++) {
        const char *path = what->records.items[i];
        if (text_of_pipe(what, path) || (strcmp(path, "-") && (stat(path, &st) < 0 || S_ISREG(st.st_mode))))
            continue;
        buf_clear(&b);
        ok = read_all(ctx, path, &b, e);
        if (ok) {
            texts_add(&what->pipes, path);
            texts_add(&what->pipes, arena_strndup(a, b.data, b.len));
        }
    }
    buf_release(&b);
    return ok;
}

bool exprs_read_header(const struct what_opts *what, const char *path, struct buf *b, struct err *e)
{
    const char *text = text_of_pipe(what, path);

    buf_clear(b);
    if (!text)
        return read_all(NULL, path, b, e);
    buf_puts(b, text);
    return true;
}

bool exprs_texts(struct ctx *ctx, const struct what_opts *what, const struct texts *words, struct arena *a,
                 struct texts *ret, struct err *e)
{
    struct buf b = {0};
    bool ok = true;

    for (size_t i = 0; i < words->count; i++)
        texts_add(ret, words->items[i]);
    for (size_t i = 0; ok && i < what->files.count; i++) {
        buf_clear(&b);
        ok = read_all(ctx, what->files.items[i], &b, e);
        if (ok && b.len && memchr(b.data, 0, b.len))
            ok = err_set(e, ERR_USAGE, "%s has a NUL in it", exprs_file_name(what->files.items[i]));
        if (ok)
            texts_add(ret, arena_strndup(a, b.data, b.len));
        ret->nfiles += ok;
    }
    buf_release(&b);
    return ok;
}

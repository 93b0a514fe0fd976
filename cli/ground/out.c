/* SPDX-License-Identifier: Apache-2.0 */
#include "out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mem.h"
#include "thread.h"

#define PIPE_BYTES (1 << 20) /* size of the pipe to a reader; with the default size, writing costs twice as much */
#define KEPT (512 << 10) /* a buffer that a slow reader made larger than this is freed when it is no longer needed */
#define FDS_MOST 1024    /* is_ours() checks descriptors below this; etrace never opens more */
/*
 * The number of small writes in a row after which a large buffer is freed. It is also freed after a second without
 * writes.
 */
#define CALM 16

struct out {
    int fd, wake;
    int watch; /* an epoll that watches `wake`, and whether the reader of `fd` goes away; -1 if `fd` has no reader */
    bool close_fd, raw;
    const struct out_pack *pack; /* the functions that change the written bytes, or NULL */
    bool file;                   /* `fd` is a regular file, which has no reader that may go away */
    char *name;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all members below */
    pthread_cond_t filled;
    struct buf filling;
    bool fresh;        /* out_is_new() was called, and out_begin() was not */
    bool stale;        /* the old content is still in the file; no writes until out_begin() */
    off_t kept;        /* out_begin() keeps these bytes of it, */
    struct buf header; /* with these at the beginning */
    size_t writing;    /* bytes that the thread took from `filling` and has not written yet */
    int error;
    bool threadless; /* the thread could not be started */
    bool awaited;    /* the owner wants a wake-up after the next write */
    bool settles;    /* out_settle() was called, and the thread has not yet begun to ask the file server */
    bool stop;
};

static void wake_owner(struct out *o)
{
    uint64_t one = 1;
    ssize_t n = write(o->wake, &one, sizeof(one));
    (void)n; /* EAGAIN means that the counter is full, so the descriptor is already readable */
}

static int write_all(struct out *o, const char *at, size_t len)
{
    while (len) {
        ssize_t n = write(o->fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            /* another process made the descriptor non-blocking; wait without spinning */
            fd_set set;
            FD_ZERO(&set);
            if (o->fd >= FD_SETSIZE)
                return EAGAIN;
            FD_SET(o->fd, &set);
            select(o->fd + 1, NULL, &set, NULL, NULL);
            continue;
        }
        if (n < 0)
            return errno;
        at += n;
        len -= (size_t)n;
        if (!len)
            break;
        pthread_mutex_lock(&o->lock);
        o->writing = len;
        pthread_mutex_unlock(&o->lock);
    }
    return 0;
}

/*
 * Closes a duplicate of the descriptor, because a file server reports some errors, such as a full disk, only at
 * close(). Returns this error, or 0.
 */
static int settle_file(const struct out *o)
{
    int copy = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);

    return copy >= 0 && close(copy) && errno != EINTR ? errno : 0;
}

static int write_packed(struct out *o, const struct buf *b, void *state, struct buf *packed)
{
    buf_shrink(packed, KEPT);
    o->pack->bytes(state, buf_view(b), packed);
    return write_all(o, packed->data, packed->len);
}

static int write_raw(struct out *o, const struct buf *b, struct buf *lines)
{
    buf_shrink(lines, KEPT);
    for (size_t i = 0; i < b->len; i++) {
        if (b->data[i] == '\n')
            buf_char(lines, '\r');
        buf_char(lines, b->data[i]);
    }
    return write_all(o, lines->data, lines->len);
}

/*
 * Waits until there is something to write or the thread must stop. Frees large buffers after a second without writes.
 */
static void await_filling(struct out *o, struct buf *mine)
{
    struct timespec until;

    if (mine->cap <= KEPT && o->filling.cap <= KEPT) {
        pthread_cond_wait(&o->filled, &o->lock);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    if (pthread_cond_timedwait(&o->filled, &o->lock, &until) == ETIMEDOUT && !o->filling.len) {
        buf_shrink(mine, KEPT);
        buf_shrink(&o->filling, KEPT);
    }
}

static void *write_in_thread(void *arg)
{
    struct out *o = arg;
    struct buf mine = {0}, changed = {0};
    void *pack = NULL;
    unsigned small = 0; /* consecutive writes of at most KEPT bytes */

    pthread_mutex_lock(&o->lock);
    while (!o->stop && !o->error) {
        if ((!o->filling.len && !o->settles) || o->stale) {
            await_filling(o, &mine);
            continue;
        }
        struct buf full = o->filling;
        o->filling = mine;
        mine = full;
        o->writing = mine.len + o->settles;
        bool settles = o->settles;
        o->settles = false;
        pthread_mutex_unlock(&o->lock);

        if (o->pack && !pack)
            pack = o->pack->open();
        int error = o->pack  ? write_packed(o, &mine, pack, &changed)
                    : o->raw ? write_raw(o, &mine, &changed)
                             : write_all(o, mine.data, mine.len);
        if (!error && settles)
            error = settle_file(o);
        small = mine.len > KEPT ? 0 : small + 1;
        buf_shrink(&mine, small > CALM ? KEPT : SIZE_MAX);

        pthread_mutex_lock(&o->lock);
        o->writing = 0;
        o->error = error;
        if (o->awaited || error)
            wake_owner(o);
        o->awaited = false;
    }
    pthread_mutex_unlock(&o->lock);
    if (pack)
        o->pack->close(pack);
    buf_release(&mine);
    buf_release(&changed);
    return NULL;
}

/*
 * Returns an epoll that reports when the reader of the pipe or the socket goes away, or -1. It is needed because a
 * trace without events never writes, and so never gets EPIPE. `gone` asks for no event: epoll always reports a lost
 * reader.
 */
static int watch_reader(const struct out *o)
{
    struct epoll_event woken = {.events = EPOLLIN}, gone = {.data.fd = o->fd};
    const int watch = epoll_create1(EPOLL_CLOEXEC);

    if (watch >= 0 && !epoll_ctl(watch, EPOLL_CTL_ADD, o->wake, &woken) &&
        !epoll_ctl(watch, EPOLL_CTL_ADD, o->fd, &gone))
        return watch;
    if (watch >= 0)
        close(watch);
    return -1;
}

/* Sets o->error to EPIPE if the reader went away. */
static void check_reader(struct out *o)
{
    struct epoll_event events[2];
    const int n = o->watch < 0 ? 0 : epoll_wait(o->watch, events, ARRAY_LEN(events), 0);

    for (int i = 0; i < n; i++) {
        if (!(events[i].events & (EPOLLERR | EPOLLHUP)))
            continue;
        epoll_ctl(o->watch, EPOLL_CTL_DEL, o->fd, NULL);
        pthread_mutex_lock(&o->lock);
        if (!o->error)
            o->error = EPIPE;
        pthread_mutex_unlock(&o->lock);
        pthread_cond_signal(&o->filled);
    }
}

struct out *out_new(int fd, bool close_fd, const char *name)
{
    struct out *o = mem_zalloc(sizeof(*o));
    struct stat st;

    o->fd = fd;
    o->close_fd = close_fd;
    o->name = mem_strndup(name, strlen(name));
    o->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool known = !fstat(fd, &st);
    o->file = known && S_ISREG(st.st_mode);
    if (known && S_ISFIFO(st.st_mode))
        fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
    o->watch = known && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) ? watch_reader(o) : -1;
    pthread_mutex_init(&o->lock, NULL);
    pthread_cond_init(&o->filled, NULL);
    if (o->wake < 0 || !thread_start(&o->thread, write_in_thread, o)) {
        o->error = EAGAIN;
        o->threadless = o->stop = true;
    }
    return o;
}

/* Removes a file that is still as its creation left it. */
static void remove_unused(const struct out *o)
{
    struct stat own, st;

    if (o->fresh && !fstat(o->fd, &own) && S_ISREG(own.st_mode) && !own.st_size && !lstat(o->name, &st) &&
        st.st_dev == own.st_dev && st.st_ino == own.st_ino)
        unlink(o->name);
}

void out_free(struct out *o)
{
    if (!o)
        return;
    pthread_mutex_lock(&o->lock);
    bool runs = !o->stop, idle = !o->writing;
    o->stop = true;
    pthread_cond_signal(&o->filled);
    pthread_mutex_unlock(&o->lock);
    if (runs && !idle) {
        /* The thread may block in write(2) for ever, so it keeps the struct. The process is about to end. */
        pthread_detach(o->thread);
        return;
    }
    if (runs)
        pthread_join(o->thread, NULL);
    remove_unused(o);
    if (o->close_fd)
        close(o->fd);
    close(o->wake);
    if (o->watch >= 0)
        close(o->watch);
    pthread_mutex_destroy(&o->lock);
    pthread_cond_destroy(&o->filled);
    buf_release(&o->filling);
    buf_release(&o->header);
    free(o->name);
    free(o);
}

struct out *out_create(const char *path, bool append, struct err *e)
{
    /* with O_APPEND the next write leaves no hole if log rotation truncates the file */
    int fd = out_open(path, O_WRONLY | O_APPEND, append, e);

    if (fd < 0)
        return NULL;
    struct out *o = out_new(fd, true, path);
    if (!append)
        out_replaces(o);
    return o;
}

/*
 * Returns true if this process has the same file open for writing under another descriptor. Skips the standard
 * descriptors, which are never locked.
 */
static bool is_ours(int fd, const struct stat *st)
{
    struct stat other;

    for (int i = STDERR_FILENO + 1; i < FDS_MOST; i++)
        if (i != fd && !fstat(i, &other) && other.st_dev == st->st_dev && other.st_ino == st->st_ino &&
            (fcntl(i, F_GETFL) & O_ACCMODE) != O_RDONLY)
            return true;
    return false;
}

bool out_claim(int fd, bool beside, const char *path, struct err *e)
{
    struct stat st;

    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !flock(fd, LOCK_NB | (beside ? LOCK_SH : LOCK_EX)) ||
        errno != EWOULDBLOCK)
        return true;
    return err_set(e, ERR_RUN,
                   is_ours(fd, &st) ? "cannot write %s: this etrace already appends to it"
                                    : "cannot write %s: another process is writing it",
                   path);
}

int out_open(const char *path, int flags, bool beside, struct err *e)
{
    /* O_NONBLOCK: do not wait for the reader of a pipe */
    int fd = open(path, flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600);

    if (fd < 0) {
        if (errno == ELOOP)
            err_set(e, ERR_RUN, "will not write %s: it is a symbolic link", path);
        else if (errno == ENXIO)
            err_set(e, ERR_RUN, "cannot write %s: nobody reads this pipe", path);
        else
            err_set(e, ERR_RUN, "cannot write %s: %s", path, strerror(errno));
        return -1;
    }
    if (!out_claim(fd, beside, path, e)) {
        close(fd);
        return -1;
    }
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

bool out_write_file(const char *path, struct str bytes, bool regular, struct err *e)
{
    struct stat is;
    const int fd = out_open(path, O_WRONLY, false, e);
    size_t at = 0;

    if (fd < 0)
        return false;
    errno = 0;
    bool ok = !fstat(fd, &is) && (S_ISREG(is.st_mode) ? !ftruncate(fd, 0) : !regular);
    while (ok && at < bytes.len) {
        const ssize_t n = write(fd, bytes.at + at, bytes.len - at);
        ok = n > 0 || (n < 0 && errno == EINTR);
        at += n > 0 ? (size_t)n : 0;
    }
    int error = errno ? errno : EINVAL;
    if (close(fd) && ok) {
        error = errno;
        ok = false;
    }
    return ok || err_set(e, ERR_RUN, "cannot write %s: %s", path, strerror(error));
}

void out_replaces(struct out *o)
{
    struct stat st;

    o->stale = !fstat(o->fd, &st) && S_ISREG(st.st_mode) && st.st_size;
}

void out_is_new(struct out *o)
{
    o->fresh = true;
}

void out_continues(struct out *o, uint64_t kept, struct str header)
{
    out_replaces(o);
    o->kept = (off_t)kept;
    buf_str(&o->header, header);
}

void out_begin(struct out *o)
{
    const struct buf *h = &o->header;

    pthread_mutex_lock(&o->lock);
    if (o->stale && (ftruncate(o->fd, o->kept) || lseek(o->fd, o->kept, SEEK_SET) < 0 ||
                     (h->len && pwrite(o->fd, h->data, h->len, 0) != (ssize_t)h->len)))
        o->error = errno;
    o->stale = o->fresh = false;
    pthread_mutex_unlock(&o->lock);
    pthread_cond_signal(&o->filled);
}

void out_raw(struct out *o)
{
    o->raw = true;
}

void out_pack(struct out *o, const struct out_pack *pack)
{
    o->pack = pack;
}

void out_write(struct out *o, const void *data, size_t len)
{
    if (!len)
        return;
    pthread_mutex_lock(&o->lock);
    if (!o->error)
        buf_add(&o->filling, data, len);
    pthread_mutex_unlock(&o->lock);
    /* signal after the unlock: before it, the thread would wake only to block on the mutex */
    pthread_cond_signal(&o->filled);
}

void out_take(struct out *o, struct buf *b)
{
    if (!b->len)
        return;
    pthread_mutex_lock(&o->lock);
    if (!o->error && !o->filling.len) {
        struct buf empty = o->filling;
        o->filling = *b;
        *b = empty;
    } else if (!o->error) {
        buf_add(&o->filling, b->data, b->len);
    }
    pthread_mutex_unlock(&o->lock);
    pthread_cond_signal(&o->filled);
    buf_clear(b);
}

void out_settle(struct out *o)
{
    pthread_mutex_lock(&o->lock);
    o->settles = o->file;
    pthread_mutex_unlock(&o->lock);
    pthread_cond_signal(&o->filled);
}

size_t out_backlog(struct out *o, size_t enough)
{
    pthread_mutex_lock(&o->lock);
    size_t n = o->error || o->stale ? 0 : o->filling.len + o->writing + o->settles;
    o->awaited |= n > enough;
    pthread_mutex_unlock(&o->lock);
    return n;
}

int out_fd(struct out *o)
{
    return o->watch >= 0 ? o->watch : o->wake;
}

void out_ack(struct out *o)
{
    uint64_t count;
    ssize_t n = read(o->wake, &count, sizeof(count));
    (void)n;
    check_reader(o);
}

bool out_failed(struct out *o, bool *ret_closed, struct err *e)
{
    pthread_mutex_lock(&o->lock);
    int error = o->error;
    pthread_mutex_unlock(&o->lock);
    if (!error)
        return false;
    /* ECONNRESET: the reader of a socket left before it read everything */
    *ret_closed = !o->file && (error == EPIPE || error == ECONNRESET);
    err_set(e, ERR_RUN, "cannot write %s: %s", o->name,
            o->threadless    ? "no thread or file descriptor is available"
            : error == EBADF ? "it is closed"
                             : strerror(error));
    return true;
}

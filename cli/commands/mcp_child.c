/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ground/mem.h"
#include "../ground/spawn.h"

#define READ_MOST 65536
#define KILL_MS 8000 /* time that the child has to end after SIGTERM */

struct mcp_becoming {
    pid_t parent;
    int out, err;
};

/*
 * Prepares the new process for its program. Gives it its own process group, so that signals of the terminal do not
 * reach it, and lets the kernel send it SIGTERM when the server dies.
 */
static void become_child(void *data)
{
    const struct mcp_becoming *b = data;
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != b->parent)
        _exit(1);
    dup2(nothing, STDIN_FILENO);
    dup2(b->out, STDOUT_FILENO);
    dup2(b->err, STDERR_FILENO);
}

/* Reads the bytes that are available. Returns false at the end of the pipe. */
static bool read_some(struct mcp_child *c, const struct loop_fd *f)
{
    char bytes[READ_MOST];
    const ssize_t n = read(f->fd, bytes, sizeof(bytes));

    if (n > 0)
        (f == &c->out ? c->output : c->message)(c->data, (struct str){bytes, (size_t)n});
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

static void close_fd(struct mcp_child *c, struct loop_fd *f)
{
    if (f->fd < 0)
        return;
    loop_remove(c->loop, f);
    close(f->fd);
    f->fd = -1;
}

static void child_on_output(void *owner)
{
    struct mcp_child *c = owner;

    if (!read_some(c, &c->out))
        close_fd(c, &c->out);
}

static void child_on_message(void *owner)
{
    struct mcp_child *c = owner;

    if (!read_some(c, &c->err))
        close_fd(c, &c->err);
}

/*
 * Reads the bytes that remain in the pipe after the child has ended, and closes the pipe. Does not wait for the end of
 * the pipe, because a program that the child has started may still hold it open.
 */
static void read_rest(struct mcp_child *c, struct loop_fd *f)
{
    do
        errno = 0;
    while (f->fd >= 0 && read_some(c, f) && errno != EAGAIN);
    close_fd(c, f);
}

static void child_on_end(void *owner)
{
    struct mcp_child *c = owner;
    int status;

    if (waitpid(c->pid, &status, WNOHANG) != c->pid)
        return;
    c->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    c->pid = 0;
    loop_stop(c->loop, &c->timer);
    read_rest(c, &c->out);
    read_rest(c, &c->err);
    close_fd(c, &c->end);
    c->ended(c->data);
}

void mcp_child_stop(struct mcp_child *c)
{
    if (!c->pid || c->told)
        return;
    c->told = true;
    c->timer.due = loop_now() + KILL_MS;
    kill(c->pid, SIGTERM);
}

static void child_on_time(void *owner)
{
    struct mcp_child *c = owner;

    if (c->told) {
        c->timer.due = -1;
        kill(c->pid, SIGKILL);
        return;
    }
    c->late = true;
    mcp_child_stop(c);
}

static void watch_fd(struct mcp_child *c, struct loop_fd *f, int fd, void (*ready)(void *owner))
{
    *f = (struct loop_fd){.fd = fd, .want_read = true, .ready = ready, .owner = c};
    loop_add(c->loop, f);
}

static bool make_pipe(int ret[2])
{
    if (pipe2(ret, O_CLOEXEC))
        return false;
    fcntl(ret[0], F_SETFL, O_NONBLOCK);
    return true;
}

/* Starts the program. Returns 0 or an errno. *ret_end is a descriptor that becomes readable when the process ends. */
static int spawn_words(struct mcp_child *c, const struct texts *words, struct mcp_becoming *b, int *ret_end)
{
    char **argv = mem_zalloc((words->count + 2) * sizeof(*argv));

    argv[0] = (char *)"/proc/self/exe";
    memcpy(argv + 1, words->items, words->count * sizeof(*argv));
    int error = spawn_program(argv, become_child, b, &c->pid);
    free(argv);
    *ret_end = error ? -1 : spawn_end(c->pid);
    if (!error && *ret_end < 0) {
        error = errno;
        kill(c->pid, SIGKILL);
        waitpid(c->pid, NULL, 0);
    }
    return error;
}

bool mcp_child_start(struct mcp_child *c, const struct texts *words, int64_t most_ms, struct err *e)
{
    int out[2], err[2], end;

    if (!make_pipe(out))
        return err_set(e, ERR_RUN, "cannot start etrace: %s", strerror(errno));
    if (!make_pipe(err)) {
        const int error = errno;
        close(out[0]);
        close(out[1]);
        return err_set(e, ERR_RUN, "cannot start etrace: %s", strerror(error));
    }
    const int error = spawn_words(c, words, &(struct mcp_becoming){getpid(), out[1], err[1]}, &end);
    close(out[1]);
    close(err[1]);
    if (error) {
        close(out[0]);
        close(err[0]);
        c->pid = 0;
        return err_set(e, ERR_RUN, "cannot start etrace: %s", strerror(error));
    }
    watch_fd(c, &c->out, out[0], child_on_output);
    watch_fd(c, &c->err, err[0], child_on_message);
    watch_fd(c, &c->end, end, child_on_end);
    c->timer = (struct loop_timer){.due = loop_now() + most_ms, .run = child_on_time, .owner = c};
    loop_start(c->loop, &c->timer);
    return true;
}

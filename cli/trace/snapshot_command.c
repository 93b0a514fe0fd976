/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot_command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ground/mem.h"
#include "../ground/spawn.h"

#define WORDS_MOST 64
#define WAIT_MS 10000 /* how long the end of etrace may wait for the command */

static const char verb[] = "exec ";

struct snapshot_command {
    struct ctx *ctx;
    const char *text;
    uint64_t number; /* of the snapshot whose command runs */
    pid_t pid;       /* 0: none runs */
    struct loop_fd end;
};

bool snapshot_command_check(const char *action, struct err *e)
{
    size_t words = 0;

    if (!strncmp(action, verb, strlen(verb)))
        for (const char *at = action + strlen(verb); *(at += strspn(at, " ")); at += strcspn(at, " "))
            words++;
    if (!words) {
        err_set(e, ERR_USAGE, "--then does not take '%.200s'", action);
        err_hint(e, "exec and a command without quotes: 'exec etrace stacks', 'exec gzip crash-%%n.etr'");
        return false;
    }
    return words < WORDS_MOST || err_set(e, ERR_USAGE, "--then takes at most %d words", WORDS_MOST - 1);
}

struct snapshot_command *snapshot_command_new(struct ctx *ctx, const char *action)
{
    struct snapshot_command *c = mem_zalloc(sizeof(*c));

    c->ctx = ctx;
    c->text = action + strlen(verb);
    return c;
}

static void forget_command(struct snapshot_command *c)
{
    loop_remove(&c->ctx->loop, &c->end);
    close(c->end.fd);
    c->pid = 0;
}

void snapshot_command_free(struct snapshot_command *c)
{
    if (!c)
        return;
    if (c->pid)
        forget_command(c);
    free(c);
}

static void command_ended(void *owner)
{
    struct snapshot_command *c = owner;
    int status;

    if (waitpid(c->pid, &status, WNOHANG) != c->pid)
        return;
    forget_command(c);
    if (WIFSIGNALED(status))
        ctx_warn(c->ctx, "the command of snapshot %llu was ended by signal %d", (unsigned long long)c->number, WTERMSIG(status));
    else if (WEXITSTATUS(status))
        ctx_warn(c->ctx, "the command of snapshot %llu failed with status %d", (unsigned long long)c->number, WEXITSTATUS(status));
}

void snapshot_put_numbered(struct buf *to, struct str pattern, uint64_t number)
{
    for (size_t i = 0; i < pattern.len; i++)
        if (pattern.at[i] == '%' && i + 1 < pattern.len && pattern.at[i + 1] == 'n')
            buf_printf(to, "%llu", (unsigned long long)number), i++;
        else
            buf_char(to, pattern.at[i]);
}

/* Splits the text and replaces %n. The words live as long as the buffer. */
static void put_words(const struct snapshot_command *c, struct buf *to, char *argv[WORDS_MOST])
{
    size_t starts[WORDS_MOST], n = 0, len;

    for (const char *at = c->text; *(at += strspn(at, " ")); at += len) {
        len = strcspn(at, " ");
        starts[n++] = to->len;
        snapshot_put_numbered(to, (struct str){at, len}, c->number);
        buf_char(to, 0);
    }
    for (size_t i = 0; i < n; i++)
        argv[i] = to->data + starts[i];
    argv[n] = NULL;
}

struct becoming {
    char number[24];
    const char *file; /* NULL: none */
};

/* Runs in the new process. Standard output carries events, so the command writes to standard error. */
static void prepare_command(void *data)
{
    const struct becoming *b = data;
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

    setenv("ETRACE_SNAPSHOT", b->number, 1);
    if (b->file)
        setenv("ETRACE_FILE", b->file, 1);
    else
        unsetenv("ETRACE_FILE");
    dup2(nothing, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
}

void snapshot_command_run(struct snapshot_command *c, uint64_t number, const char *file)
{
    char *argv[WORDS_MOST];
    struct buf words = {0};

    if (c->pid) {
        ctx_warn(c->ctx, "no command for snapshot %llu: that of snapshot %llu still runs", (unsigned long long)number,
                 (unsigned long long)c->number);
        return;
    }
    c->number = number;
    put_words(c, &words, argv);
    struct becoming b = {.file = file};
    snprintf(b.number, sizeof b.number, "%llu", (unsigned long long)number);
    int error = spawn_program(argv, prepare_command, &b, &c->pid);
    const int fd = error ? -1 : spawn_end(c->pid);
    if (!error && fd < 0)
        error = errno;
    if (error) {
        ctx_warn(c->ctx, "cannot run the command of snapshot %llu: %s: %s", (unsigned long long)number, argv[0], strerror(error));
        c->pid = 0;
    } else {
        c->end = (struct loop_fd){.fd = fd, .want_read = true, .ready = command_ended, .owner = c};
        loop_add(&c->ctx->loop, &c->end);
    }
    buf_release(&words);
}

void snapshot_command_wait(struct snapshot_command *c)
{
    const int64_t until = loop_now() + WAIT_MS;

    if (!c)
        return;
    const int before = c->ctx->interrupts;
    while (c->pid && loop_now() < until && c->ctx->interrupts == before)
        loop_step(&c->ctx->loop, until);
    if (c->pid)
        ctx_warn(c->ctx, "the command of snapshot %llu still runs", (unsigned long long)c->number);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The program etrace: prepares the process, finds the command in the arguments and runs it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../trace/child.h"
#include "../trace/demo_node.h"
#include "../commands/cmd.h"
#include "../ground/mem.h"
#include "../ground/screen.h"
#include "../ground/stack_size.h"
#include "../node/ssh.h"
#include "../views/sink.h"
#include "editor.h"
#include "repl.h"

static void no_memory(void)
{
    static const char text[] = "etrace: out of memory\n";

    screen_panic();
    editor_panic();
    child_panic();
    ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)n;
    _exit(ERR_RUN); /* closes the connection, so the node cleans up by itself */
}

/*
 * Replaces malloc(), calloc() and realloc() in all code of this program, with --wrap of the linker, because libei does
 * not check their results.
 */
void *__real_malloc(size_t size), *__real_calloc(size_t n, size_t size), *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size), *__wrap_calloc(size_t n, size_t size), *__wrap_realloc(void *old, size_t size);

static void *require_memory(void *p, size_t size)
{
    if (!p && size)
        no_memory();
    return p;
}

void *__wrap_malloc(size_t size)
{
    return require_memory(__real_malloc(size), size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return require_memory(__real_calloc(n, size), n * size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return require_memory(__real_realloc(old, size), size);
}

/*
 * Handles signals that end the process: a fault, a request for a core dump, or, in a sandbox without signalfd, any
 * signal. Restores the terminal, removes temporary directories, and then lets the signal end the process
 * (SA_RESETHAND).
 */
static void on_end(int signal)
{
    screen_panic();
    editor_panic();
    child_panic();
    raise(signal);
    if (getpid() == 1) /* signals do not end the first process of a container */
        _exit(128 + signal);
}

static bool ends_process(int signal)
{
    static const int others[] = {SIGCHLD, SIGCONT, SIGURG, SIGWINCH, SIGTSTP, SIGTTIN, SIGTTOU};

    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (signal == others[i])
            return false;
    return true;
}

static void hear_ends(void)
{
    struct sigaction act = {.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND}, found;

    for (int signal = 1; signal < NSIG; signal++)
        if (ends_process(signal) && !sigaction(signal, NULL, &found) &&
            found.sa_handler == SIG_DFL) /* otherwise a sanitizer has set a handler, which stays */
            sigaction(signal, &act, NULL);
}

/*
 * Returns the command, and moves argv to the arguments of the command. The first word is the name of a command or of a
 * view, or else the first argument of `etrace trace`. Options may precede the name: `etrace -n shop ps`.
 */
static const struct cmd *choose_command(char ***argv)
{
    const char *first = **argv;

    if (!first || !strcmp(first, "-h") || !strcmp(first, "--help")) {
        *argv += first ? 1 : 0;
        return &cmd_help;
    }
    if (!strcmp(first, "--version") || !strcmp(first, "-V")) {
        *argv += 1;
        return &cmd_version;
    }
    char **at = cmd_first_word(*argv), *word = at ? *at : NULL;
    const struct cmd *c = word ? cmd_find(word) : NULL;
    if (!c && !(word && sink_by_name(word)))
        return &cmd_trace;
    memmove(*argv + 1, *argv, (size_t)(at - *argv) * sizeof **argv);
    if (c) {
        *argv += 1;
        return c;
    }
    **argv = word; /* `etrace hist …` is `etrace trace --as hist …` */
    *--*argv = "--as";
    return &cmd_trace;
}

/*
 * Opens a descriptor for each standard stream that is closed. Otherwise the next file that etrace opens would get such
 * a descriptor, and etrace would write its output into that file.
 */
static void keep_places(void)
{
    int fd;

    do
        fd = open("/", O_PATH | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    struct ctx ctx;
    struct err e;

    mem_give_back();
    keep_places();
    bool room = stack_size_ready(&e);
    mem_on_exhausted(no_memory);
    hear_ends();
    argv += argc > 0 ? 1 : 0; /* choose_command() may overwrite the element before argv[0] */
    cmd_add(&cmd_repl);
    const struct cmd *c = choose_command(&argv);
    ctx_init(&ctx);
    int status = ctx_flush(&ctx, room ? c->run(&ctx, c, argv) : ctx_fail(&ctx, &e));
    demo_node_close();
    ctx_release(&ctx);
    ssh_end();
    return status;
}

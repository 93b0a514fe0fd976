/* SPDX-License-Identifier: Apache-2.0 */
/* The main function of etrace: prepares the process, chooses the command from the arguments, and runs it. */
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
    _exit(ERR_RUN); /* also closes the connections, so each node cleans up by itself */
}

/*
 * Wrappers for malloc(), calloc() and realloc() that end the process if there is no memory. The linker uses them in all
 * code of the program (--wrap), because libei does not check the results.
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
 * Handles a signal that ends the process: a fault, a request for a core dump or, in a sandbox without signalfd, any
 * other one. Restores the terminal and removes temporary directories. SA_RESETHAND has restored the default action, so
 * raise() then ends the process.
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
            found.sa_handler == SIG_DFL) /* otherwise a sanitizer has set a handler, which must stay */
            sigaction(signal, &act, NULL);
}

/*
 * Returns the command, and moves argv to its arguments. The first word names a command or a view; otherwise it is the
 * first argument of `etrace trace`. Options may precede the name, as in `etrace -n shop ps`.
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
 * Opens /dev/null for each standard stream that is closed. Otherwise the next file that etrace opens would become this
 * stream, and etrace would write its output into the file.
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
    /* choose_command() may overwrite argv[-1], so argv must not be the beginning of the array */
    argv += argc > 0 ? 1 : 0;
    cmd_add(&cmd_repl);
    const struct cmd *c = choose_command(&argv);
    ctx_init(&ctx);
    int status = ctx_flush(&ctx, room ? c->run(&ctx, c, argv) : ctx_fail(&ctx, &e));
    demo_node_close();
    ctx_release(&ctx);
    ssh_end();
    return status;
}

/* The shell's face of etrace: finds the command and hands it the words. Everything else is below. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../commands/child.h"
#include "../commands/cmd.h"
#include "../ground/mem.h"
#include "../ground/screen.h"
#include "../ground/stack.h"
#include "../views/sink.h"
#include "line.h"
#include "repl.h"

static void no_memory(void)
{
    static const char text[] = "etrace: out of memory\n";

    screen_panic();
    line_panic();
    child_panic();
    ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)n;
    _exit(ERR_RUN); /* the connection closes, and the node cleans up by itself */
}

/* The linker sends everybody's calls here who is linked into this program (--wrap): libei does not look at what it gets. */
void *__real_malloc(size_t size), *__real_calloc(size_t n, size_t size), *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size), *__wrap_calloc(size_t n, size_t size), *__wrap_realloc(void *old, size_t size);

static void *got(void *p, size_t size)
{
    if (!p && size)
        no_memory();
    return p;
}

void *__wrap_malloc(size_t size)
{
    return got(__real_malloc(size), size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return got(__real_calloc(n, size), n * size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return got(__real_realloc(old, size), size);
}

/*
 * A fault, somebody who wants a core, or a sandbox without signalfd: the terminal is as it was, no directory stays, and the end is
 * the signal's own.
 */
static void on_end(int signal)
{
    screen_panic();
    line_panic();
    child_panic();
    raise(signal);
    if (getpid() == 1) /* of a container: no signal ends it by itself */
        _exit(128 + signal);
}

static bool ends(int signal)
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
        if (ends(signal) && !sigaction(signal, NULL, &found) && found.sa_handler == SIG_DFL) /* a sanitizer has its own */
            sigaction(signal, &act, NULL);
}

/* A first word that names a command or a view is one; `etrace --version` and `etrace -h` are what people try first. */
static const struct cmd *choose(char ***argv)
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
    const struct cmd *c = cmd_find(first);
    if (c)
        *argv += 1;
    if (!c && sink_by_name(first)) {
        *--*argv = "--as"; /* `etrace hist …` is `etrace trace --as hist …` */
        return &cmd_trace;
    }
    return c ? c : &cmd_trace;
}

/* A standard stream that is closed stays so: what is opened next would take its place, and be written to. */
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
    bool room = stack_ready(&e);
    mem_on_exhausted(no_memory);
    hear_ends();
    argv += argc > 0 ? 1 : 0; /* choose() may need the place in front */
    cmd_add(&cmd_repl);
    const struct cmd *c = choose(&argv);
    ctx_init(&ctx);
    int status = ctx_flush(&ctx, room ? c->run(&ctx, c, argv) : ctx_fail(&ctx, &e));
    ctx_release(&ctx);
    return status;
}

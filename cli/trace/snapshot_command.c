/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ground/mem.h"
#include "../ground/spawn.h"

#define WORDS_MOST 64
#define WAIT_MS 10000 /* how long etrace waits for the program before it ends; for a trace, --then-for is added */

struct snapshot_command {
    struct ctx *ctx;
    const char *name;   /* "command" or "trace", for messages */
    struct texts words; /* owned */
    int64_t wait_ms;
    bool traces;
    uint64_t number; /* number of the snapshot for which the program runs */
    pid_t pid;       /* 0: none runs */
    struct loop_fd end;
};

/* ---- actions ---- */

/* Returns the text after the verb and the spaces that follow it. NULL: the action does not begin with this verb. */
static const char *object_of(const char *action, const char *verb)
{
    const size_t n = strlen(verb);

    if (strncmp(action, verb, n) != 0 || action[n] != ' ')
        return NULL;
    action += n + strspn(action + n, " ");
    return *action ? action : NULL;
}

static size_t count_words(const char *text)
{
    size_t words = 0;

    for (const char *at = text; *(at += strspn(at, " ")); at += strcspn(at, " "))
        words++;
    return words;
}

static bool read_action(const char *action, struct then_opts *ret, struct err *e)
{
    const char *command = object_of(action, "exec"), *probe = object_of(action, "trace");

    if (!strcmp(action, "stacks")) {
        ret->stacks = true;
    } else if (probe) {
        texts_add(&ret->probes, probe);
    } else if (command && ret->command) {
        return err_set(e, ERR_USAGE, "--then takes one command: exec is given twice");
    } else if (command) {
        ret->command = command;
        return count_words(command) < WORDS_MOST ||
               err_set(e, ERR_USAGE, "--then takes at most %d words", WORDS_MOST - 1);
    } else {
        err_set(e, ERR_USAGE, "--then does not take '%.200s'", action);
        err_hint(e, "stacks, 'trace PROBE', or exec and a command without quotes: 'exec gzip crash-%%n.etr'");
        return false;
    }
    return true;
}

bool snapshot_actions(const struct texts *actions, struct then_opts *ret, struct err *e)
{
    bool ok = true;

    for (size_t i = 0; ok && i < actions->count; i++)
        ok = read_action(actions->items[i], ret, e);
    return ok;
}

/* ---- programs ---- */

static void add_word(struct snapshot_command *c, const char *word, size_t len)
{
    texts_add(&c->words, mem_strndup(word, len));
}

static void add_text(struct snapshot_command *c, const char *word)
{
    add_word(c, word, strlen(word));
}

/* Adds an option with its value, unless the value is NULL. */
static void add_option(struct snapshot_command *c, const char *option, const char *value)
{
    if (!value)
        return;
    add_text(c, option);
    add_text(c, value);
}

static struct snapshot_command *new_program(struct ctx *ctx, const char *name)
{
    struct snapshot_command *c = mem_zalloc(sizeof(*c));

    c->ctx = ctx;
    c->name = name;
    c->wait_ms = WAIT_MS;
    return c;
}

struct snapshot_command *snapshot_command_exec(struct ctx *ctx, const struct then_opts *o)
{
    size_t len;

    if (!o->command)
        return NULL;
    struct snapshot_command *c = new_program(ctx, "command");
    for (const char *at = o->command; *(at += strspn(at, " ")); at += len) {
        len = strcspn(at, " ");
        add_word(c, at, len);
    }
    return c;
}

/* Adds the options that bound what leaves the node, so that the trace captures and hides what this one does. */
static void add_limits(struct snapshot_command *c, const struct limit_opts *limit)
{
    const struct {
        const char *option;
        int64_t value;
    } numbers[] = {{"--rate", limit->rate},
                   {"--memory", limit->memory},
                   {"--size", limit->size},
                   {"--depth", limit->depth},
                   {"--items", limit->items}};
    char text[32];

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        snprintf(text, sizeof text, "%lld", (long long)numbers[i].value);
        add_option(c, numbers[i].option, numbers[i].value < 0 ? NULL : text); /* -1: not given */
    }
    for (size_t i = 0; i < limit->redact.count; i++)
        add_option(c, "--redact", limit->redact.items[i]);
    if (!limit->redact_defaults)
        add_text(c, "--no-redact");
}

struct snapshot_command *snapshot_command_trace(struct ctx *ctx, const struct then_opts *o,
                                                const struct node_opts *node, const struct limit_opts *limit)
{
    char text[32];

    if (!o->probes.count)
        return NULL;
    struct snapshot_command *c = new_program(ctx, "trace");
    c->traces = true;
    c->wait_ms += o->for_ns / 1000000;
    add_text(c, "/proc/self/exe");
    add_text(c, "trace");
    add_text(c, "-q");
    snprintf(text, sizeof text, "%lldus", (long long)MAX(o->for_ns / 1000, 1));
    add_option(c, "--for", text);
    for (size_t i = 0; i < node->nodes.count; i++)
        add_option(c, "-n", node->nodes.items[i]);
    snprintf(text, sizeof text, "%lld", (long long)node->port);
    add_option(c, "--port", node->port ? text : NULL);
    add_option(c, "-p", node->os_pid);
    add_option(c, "--ssh", node->ssh);
    add_option(c, "--cookie-file", node->cookie_file);
    add_option(c, "--tls-ca", node->tls_ca);
    add_option(c, "--tls-cert", node->tls_cert);
    add_option(c, "--tls-key", node->tls_key);
    add_option(c, "--tls-optfile", node->tls_optfile);
    const struct {
        bool given;
        const char *option;
    } flags[] = {{node->cluster, "--cluster"},
                 {node->tls, "--tls"},
                 {node->tls_no_verify, "--tls-no-verify"},
                 {node->fallback, "--fallback"}};
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if (flags[i].given)
            add_text(c, flags[i].option);
    add_limits(c, limit);
    for (size_t i = 0; i < o->probes.count; i++)
        add_text(c, o->probes.items[i]);
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
    for (size_t i = 0; i < c->words.count; i++)
        free((char *)c->words.items[i]);
    texts_release(&c->words);
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
        ctx_warn(c->ctx, "the %s of snapshot %llu was ended by signal %d", c->name, (unsigned long long)c->number,
                 WTERMSIG(status));
    else if (WEXITSTATUS(status))
        ctx_warn(c->ctx, "the %s of snapshot %llu failed with status %d", c->name, (unsigned long long)c->number,
                 WEXITSTATUS(status));
}

void snapshot_put_numbered(struct buf *to, struct str pattern, uint64_t number)
{
    for (size_t i = 0; i < pattern.len; i++)
        if (pattern.at[i] == '%' && i + 1 < pattern.len && pattern.at[i + 1] == 'n')
            buf_printf(to, "%llu", (unsigned long long)number), i++;
        else
            buf_char(to, pattern.at[i]);
}

struct becoming {
    char number[24];
    const char *file, *node; /* NULL: there is none */
    bool apart, silent;
};

static void set_variable(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/*
 * Runs in the new process. Connects the standard output of the program to standard error, because that of etrace
 * carries events. A trace with a file prints nothing. A program that is a trace (`apart`) gets a process group of its
 * own, because etrace passes signals on to it, and the kernel ends it if etrace is killed.
 */
static void prepare_command(void *data)
{
    const struct becoming *b = data;
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (nothing < 0) /* otherwise it would read the keys and write among the events */
        _exit(127);
    if (b->apart) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
    }
    setenv("ETRACE_SNAPSHOT", b->number, 1);
    set_variable("ETRACE_FILE", b->file);
    if (b->node)
        setenv("ETRACE_NODE", b->node, 1);
    dup2(nothing, STDIN_FILENO);
    dup2(b->silent ? nothing : STDERR_FILENO, STDOUT_FILENO);
}

/*
 * Returns the words of the program. In a command, the number replaces %n; a trace also gets -o with its file. The
 * caller frees the words.
 */
static char **put_words(const struct snapshot_command *c, const char *file)
{
    char **argv = mem_zalloc((c->words.count + 3) * sizeof(*argv));
    size_t n = 0;

    for (; n < c->words.count; n++) {
        const char *word = c->words.items[n];
        struct buf b = {0};
        if (c->traces)
            buf_puts(&b, word);
        else
            snapshot_put_numbered(&b, (struct str){word, strlen(word)}, c->number);
        argv[n] = mem_strndup(b.data, b.len);
        buf_release(&b);
    }
    if (c->traces && file) {
        argv[n++] = mem_strndup("-o", 2);
        argv[n++] = mem_strndup(file, strlen(file));
    }
    return argv;
}

static void free_words(char **argv)
{
    for (size_t i = 0; argv[i]; i++)
        free(argv[i]);
    free(argv);
}

void snapshot_command_run(struct snapshot_command *c, uint64_t number, const char *file, const char *node)
{
    if (!c)
        return;
    if (c->pid) {
        ctx_warn(c->ctx, "no %s for snapshot %llu: that of snapshot %llu still runs", c->name,
                 (unsigned long long)number, (unsigned long long)c->number);
        return;
    }
    c->number = number;
    char **argv = put_words(c, file);
    struct becoming b = {.file = file, .node = node, .apart = c->traces, .silent = c->traces && file};
    snprintf(b.number, sizeof b.number, "%llu", (unsigned long long)number);
    int error = spawn_program(argv, prepare_command, &b, &c->pid);
    const int fd = error ? -1 : spawn_end(c->pid);
    if (!error && fd < 0)
        error = errno;
    if (error) {
        ctx_warn(c->ctx, "cannot run the %s of snapshot %llu: %s: %s", c->name, (unsigned long long)number, argv[0],
                 strerror(error));
        c->pid = 0;
    } else {
        c->end = (struct loop_fd){.fd = fd, .want_read = true, .ready = command_ended, .owner = c};
        loop_add(&c->ctx->loop, &c->end);
    }
    free_words(argv);
}

void snapshot_command_wait(struct snapshot_command *c)
{
    if (!c)
        return;
    int64_t until = loop_now() + c->wait_ms;
    const int before = c->ctx->interrupts;
    bool asked = false;
    while (c->pid && loop_now() < until && (c->traces || c->ctx->interrupts == before)) {
        if (c->traces && !asked && c->ctx->interrupts) { /* the signal may have come before this wait */
            kill(c->pid, SIGINT);
            asked = true;
            until = loop_now() + WAIT_MS;
        }
        loop_step(&c->ctx->loop, until);
    }
    if (c->pid)
        ctx_warn(c->ctx, "the %s of snapshot %llu still runs", c->name, (unsigned long long)c->number);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the input of users, files and the environment: command lines, variables, scripts, cookies, TLS options,
 * cached completions, the history, and the /proc entry of a booting node. The first byte selects the reader, NUL bytes
 * end texts, and all files have the same content: opening one returns memory. The target connects to nothing, starts
 * nothing and writes nothing. Messages must be fit for a terminal.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/exprs.h"
#include "trace/boot_hold.h"
#include "commands/cmd.h"
#include "commands/complete.h"
#include "faces/repl.h"
#include "faces/repl_history.h"
#include "faces/repl_options.h"
#include "faces/repl_syntax.h"
#include "ground/tty.h"
#include "node/cookies.h"
#include "node/epmd.h"
#include "node/optfile.h"
#include "must.h"
#include "no_net.h"

#define WORDS 40

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Suppresses the leak of libtinfo, which libedit uses to read the terminal's capabilities. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libtinfo\n";
}

/* ---- system calls that the linker wraps; outside of an input they call the real function for libFuzzer ---- */

static bool reading;
static int files;        /* a memory file with the content of all files */
static unsigned entries; /* entries left in the directory */

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
FILE *__real_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);
struct dirent *__real_readdir64(DIR *dir);
struct dirent *__wrap_readdir64(DIR *dir);
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
char *__real_mkdtemp(char *path);
char *__wrap_mkdtemp(char *path);
pid_t __real_fork(void);
pid_t __wrap_fork(void);

static int file(int flags)
{
    if ((flags & O_ACCMODE) == O_WRONLY)
        return __real_open64("/dev/null", O_WRONLY | O_CLOEXEC);
    int fd = fcntl(files, F_DUPFD_CLOEXEC, 3);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

int __wrap_open64(const char *path, int flags, ...)
{
    va_list args;

    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return reading ? file(flags) : __real_open64(path, flags, mode);
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
    return reading ? fdopen(file(O_RDONLY), "r") : __real_fopen64(path, mode);
}

struct dirent *__wrap_readdir64(DIR *dir)
{
    static struct dirent process = {.d_name = "1"};

    return !reading ? __real_readdir64(dir) : entries && entries-- ? &process : NULL;
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    return reading ? 0 : __real_mkdir(path, mode);
}

char *__wrap_mkdtemp(char *path)
{
    errno = EACCES;
    return reading ? NULL : __real_mkdtemp(path);
}

pid_t __wrap_fork(void)
{
    errno = EAGAIN;
    return reading ? -1 : __real_fork();
}

void __wrap_loop_let_die(bool on);
void __wrap_loop_let_die(bool on UNUSED)
{
} /* libFuzzer's own alarm would end the process */

enum net_status net_connect(const struct addr *t UNUSED, int p UNUSED, int64_t d UNUSED, int *f UNUSED)
{
    return NET_REFUSED;
}
enum net_status net_wait(int fd UNUSED, short events UNUSED, int64_t d UNUSED)
{
    return NET_FAILED;
}
enum net_status net_write(int fd UNUSED, const void *b UNUSED, size_t n UNUSED, int64_t d UNUSED)
{
    return NET_FAILED;
}
enum net_status net_read(int fd UNUSED, void *b UNUSED, size_t m UNUSED, int64_t d UNUSED, size_t *r UNUSED)
{
    return NET_FAILED;
}
void net_make_room(int fd UNUSED, size_t b UNUSED)
{
}
size_t net_under_way(int fd UNUSED)
{
    return 0;
}
enum net_status net_send(int fd UNUSED, const void *b UNUSED, size_t n UNUSED, size_t *s UNUSED)
{
    return NET_FAILED;
}
void net_loopback(struct addrs *a)
{
    *a = (struct addrs){.count = 2};
}

/* ---- the input ---- */

struct input {
    char *words[WORDS + 1]; /* NULL-terminated; each in memory of exactly its size */
    size_t count;
};

/* Reads words up to an empty one. The rest is the content of the files. */
static struct input take(const uint8_t *at, size_t size)
{
    const uint8_t *end = at + size;
    struct input in = {0};

    while (at < end && *at && in.count < WORDS) {
        size_t len = strnlen((const char *)at, (size_t)(end - at));
        in.words[in.count++] = strndup((const char *)at, len);
        at += MIN(len + 1, (size_t)(end - at));
    }
    at += at < end && !*at;
    must(!ftruncate(files, 0) && pwrite(files, at, (size_t)(end - at), 0) == end - at &&
         lseek(files, 0, SEEK_SET) == 0);
    return in;
}

static const char *word(const struct input *in, size_t i)
{
    return i < in->count ? in->words[i] : "";
}

/* ---- readers ---- */

/* Runs a command as main() does, without signals. */
static void run(const struct cmd *cmd, char **argv)
{
    struct ctx ctx = {.talk = hear, .out = out_new(STDOUT_FILENO, false, "standard output")};

    loop_init(&ctx.loop);
    int status = ctx_flush(&ctx, cmd->run(&ctx, cmd, argv));
    must((status >= 0 && status <= ERR_EMPTY) || status == ERR_FAIL_ON || status == ERR_EXPECT);
    ctx_release(&ctx);
}

static void command_line(struct input *in)
{
    const struct cmd *cmd = in->count ? cmd_find(in->words[0]) : NULL;

    /* Skip options that wait for a node without a limit. */
    for (size_t i = 0; i < in->count; i++)
        if (strstr(in->words[i], "reattach"))
            return;
    run(cmd ? cmd : &cmd_trace, in->words + (cmd != NULL));
}

static void script(struct input *in)
{
    lseek(files, 0, SEEK_SET);
    if (dup2(files, STDIN_FILENO) == STDIN_FILENO && !in->count)
        run(&cmd_repl, in->words);
}

static void environment(struct input *in)
{
    static const char *const names[] = {"ERL_EPMD_PORT",      "ETRACE_NODE",    "HOME",
                                        "XDG_CONFIG_HOME",    "XDG_CACHE_HOME", "TERM",
                                        "NO_COLOR",           "TMPDIR",         "ERL_AFLAGS",
                                        "ELIXIR_ERL_OPTIONS", "MIX_ENV",        "RELEASE_NODE",
                                        "RELEASE_COOKIE",     "ERL_DIST_PORT",  "RELEASE_DISTRIBUTION"};
    char *none[] = {NULL}, *iex[] = {"iex", NULL}, *command[] = {"a:b", "--", "iex", NULL};
    struct cookie cookie;
    struct err e;
    bool unnamed;

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (i < in->count)
            setenv(names[i], in->words[i], 1);
    must(epmd_port() > 0 && epmd_port() < 65536);
    tty_colors(STDERR_FILENO, COLOR_AUTO);
    must(boot_hold_fits(iex, &unnamed));
    if (!cookie_read_own(&cookie, &e))
        must_say(&e);
    run(&cmd_nodes, none);
    run(&cmd_ls, none);
    run(&cmd_trace, command);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unsetenv(names[i]);
}

static void cookie(struct input *in UNUSED)
{
    struct cookies all;
    const struct cookie *c;
    struct err e;

    /* The command line, the environment and the files of the process are the same text, too. */
    for (int given = 0; given < 2; given++) {
        cookies_begin(&all, given ? "cookie" : NULL, NULL, 1);
        while ((c = cookies_next(&all))) {
            must(strlen(c->text) <= COOKIE_MAX && (c->text[0] || !given));
            for (const char *at = c->text; *at && given; at++) /* OTP takes an argument or a variable as it is */
                must((unsigned char)*at >= ' ' && *at != 127);
        }
        cookies_end(&all);
        if (!all.count && !cookies_none(&all, &e))
            must_say(&e);
    }
}

static void tls_options(struct input *in UNUSED)
{
    struct optfile *o = calloc(1, sizeof *o);
    struct err e;

    if (optfile_read("optfile", o, &e))
        must((!o->options.ca || o->options.ca == o->ca) && (!o->options.host || o->options.host == o->host) &&
             strlen(o->password) < sizeof o->password);
    else
        must_say(&e);
    free(o);
}

static void values(struct input *in)
{
    int64_t n;

    for (size_t i = 0; i < in->count; i++) {
        must(!opt_duration(in->words[i], &n) || n >= 0);
        must(!opt_size(in->words[i], &n) || n >= 0);
        must(utf8_valid(in->words[i], strlen(in->words[i])) || !repl_setting_row(in->words[i]));
        const struct str line = {in->words[i], strlen(in->words[i])};
        struct buf joined = {0};
        if (!repl_is_command(line))
            repl_is_open(line);
        repl_join_lines(line, &joined);
        buf_release(&joined);
        for (char *rest = in->words[i], *next; (next = repl_next_word(&rest));)
            must(next < rest);
    }
}

static void completion(struct input *in)
{
    const char *current = in->count ? in->words[in->count - 1] : "";
    struct buf b = {0};

    setenv("XDG_CACHE_HOME", "/nowhere", 1);
    complete((const char *const *)in->words, in->count ? in->count - 1 : 0, current, &b);
    buf_cstr(&b);
    /* An empty line, alone, keeps the shell from offering files. */
    for (const char *at = strcmp(b.data, "\n") ? b.data : "", *end; *at; at = end + 1) {
        must((end = strchr(at, '\n')) && !strncmp(at, current, strlen(current)));
        must_be_shown(at + strlen(current), (size_t)(end - at) - strlen(current));
    }
    buf_release(&b);
    unsetenv("XDG_CACHE_HOME");
}

/* The command line and the environment are the same file. */
static void process(struct input *in)
{
    struct boot_hold h = {0};

    entries = 2;
    must(boot_hold_find(&h, word(in, 0), 1) == (h.vm != 0));
    must(!h.held && !h.name[0]);
}

static void history_file(struct input *in)
{
    const struct editor_host host = {0};
    struct ctx ctx = {.talk = hear, .out = out_new(STDOUT_FILENO, false, "standard output")};
    struct repl_history history;
    struct editor *line;
    struct err e;

    loop_init(&ctx.loop);
    setenv("XDG_STATE_HOME", "/nowhere", 1);
    line = editor_new(&ctx.loop, ctx.out, &host, &e);
    must(line);
    repl_history_open(&history, line);
    for (size_t i = 0; i < in->count; i++)
        repl_history_add(&history, (struct str){in->words[i], strlen(in->words[i])});
    repl_history_close(&history);
    editor_free(line);
    unsetenv("XDG_STATE_HOME");
    ctx_release(&ctx);
}

static void (*const readers[])(struct input *in) = {command_line, script,     environment, cookie,      tls_options,
                                                    values,       completion, process,     history_file};

int LLVMFuzzerInitialize(int *argc UNUSED, char ***argv UNUSED)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    files = memfd_create("files", MFD_CLOEXEC);
    must(null >= 0 && files >= 0 && !fchmod(files, 0600));
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    cmd_add(&cmd_repl);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct input in = take(data + 1, size - 1);
    reading = true;
    readers[data[0] % ARRAY_LEN(readers)](&in);
    reading = false;
    for (size_t i = 0; i < in.count; i++)
        free(in.words[i]);
    return 0;
}

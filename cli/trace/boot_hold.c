/* SPDX-License-Identifier: Apache-2.0 */
#include "boot_hold.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../erlang/etf_write.h"
#include "../ground/path.h"
#include "../ground/utf8.h"
#include "../ground/proc_text.h"
#include "../node/vms.h"
#include "project.h"

#define CALL_MS 1000

const char boot_hold_flags[] = "-kernel sync_nodes_optional [etrace_hold] sync_nodes_timeout " TEXT_OF(BOOT_HOLD_MS);

/* ---- which commands ---- */

/*
 * Returns true if the command is the script of a release. mix release and relx create BIN/NAME with
 * BIN/../releases/start_erl.data or RELEASES. OTP itself also has these files, but it has BIN/erl, too.
 */
static bool is_release(const char *command)
{
    static const char *const signs[] = {"start_erl.data", "RELEASES"};
    char real[PATH_MAX], path[PATH_MAX + 64];
    struct stat st;

    if (!strchr(command, '/') || !realpath(command, real))
        return false;
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(real, '/');
        if (!slash)
            return false;
        *slash = 0;
    }
    snprintf(path, sizeof path, "%s/bin/erl", real);
    if (access(path, F_OK) == 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(signs); i++) {
        snprintf(path, sizeof path, "%s/releases/%s", real, signs[i]);
        if (stat(path, &st) == 0)
            return true;
    }
    return false;
}

/*
 * Returns true if iex gives its node a name, by an option or by an environment variable of erl. The option may be
 * inside of a text for a shell. Any --erl counts, because its value may have the option.
 */
static bool has_name(char **argv)
{
    static const char *const flags[] = {"ELIXIR_ERL_OPTIONS", "ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS"};

    for (; *argv; argv++)
        if (strstr(*argv, "-name") || strstr(*argv, "-sname") || strstr(*argv, "--erl"))
            return true;
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if (getenv(flags[i]) && strstr(getenv(flags[i]), "name"))
            return true;
    return false;
}

static bool is_iex(const char *command)
{
    return !strcmp(path_base(command), "iex");
}

/*
 * Returns true if this command starts another command that its arguments name, such as env or sh. A shell gets that
 * command as one text.
 */
static bool is_wrapper(const char *command)
{
    static const char *const names[] = {"env",  "sh",      "bash",   "dash",   "zsh",   "ksh",    "nice",  "ionice",
                                        "time", "timeout", "setsid", "stdbuf", "nohup", "script", "rlwrap"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!strcmp(path_base(command), names[i]))
            return true;
    return false;
}

/* Returns true if is() accepts one of the words in the text. */
static bool has_command(const char *text, bool (*is)(const char *command))
{
    char *words = strdup(text), *rest = words;
    bool found = false;

    for (char *word; words && !found && (word = strsep(&rest, " \t\n;&|()\"'"));)
        found = is(word);
    free(words);
    return found;
}

bool boot_hold_fits(char **argv, bool *ret_unnamed)
{
    bool iex = is_iex(argv[0]), release = is_release(argv[0]);

    for (char **arg = argv + 1; *arg && is_wrapper(argv[0]) && !iex && !release; arg++) {
        iex = has_command(*arg, is_iex);
        release = has_command(*arg, is_release);
    }
    *ret_unnamed = iex && !has_name(argv + 1);
    return iex || release;
}

/* ---- the process of the node ---- */

static bool is_vm(const struct buf *cmdline)
{
    return !strncmp(path_base(cmdline->data), "beam", 4);
}

/* Returns true if the command line of the virtual machine has a name for its node, before -extra. */
static bool names_node(const struct buf *cmdline)
{
    for (const char *t = cmdline->data; t && strcmp(t, "-extra"); t = proc_next(cmdline, t))
        if ((!strcmp(t, "-sname") || !strcmp(t, "-name")) && proc_next(cmdline, t))
            return true;
    return false;
}

/*
 * Returns true if the process belongs to the command. Any user can start a process with our mark in its environment, so
 * the process must descend from the command or belong to our own user.
 */
static bool is_of_command(const char *pid, long command)
{
    char path[280];
    struct stat st;

    snprintf(path, sizeof path, "/proc/%s", pid);
    return vm_is_below(strtol(pid, NULL, 10), command) || (!stat(path, &st) && st.st_uid == geteuid());
}

bool boot_hold_find(struct boot_hold *h, const char *mark, long command)
{
    struct buf b = {0};
    struct dirent *d;
    DIR *dir = h->vm ? NULL : opendir("/proc");

    while (dir && !h->vm && (d = readdir(dir)))
        if (isdigit((unsigned char)d->d_name[0]) && proc_read(d->d_name, "cmdline", &b) && is_vm(&b) &&
            names_node(&b) && proc_read(d->d_name, "environ", &b) && proc_has(&b, mark) &&
            is_of_command(d->d_name, command))
            h->vm = strtol(d->d_name, NULL, 10);
    if (dir)
        closedir(dir);
    buf_release(&b);
    return h->vm != 0;
}

/* ---- the kernel process that waits ---- */

static bool boot_hold_call(struct boot_hold *h, const char *m, const char *f, struct str args, struct buf *keep,
                           struct etf *ret)
{
    struct err e;

    return rpc_call(&h->rpc, m, f, args, CALL_MS, keep, ret, &e);
}

static void put_one(struct buf *b, struct str term)
{
    etf_list(b, 1);
    buf_str(b, term);
    etf_nil(b);
}

static struct str bytes_of(const struct etf *term)
{
    return (struct str){(const char *)term->at, (size_t)(term->end - term->at)};
}

static bool is_config(struct boot_hold *h, struct str pid)
{
    struct buf args = {0}, keep = {0};
    struct etf r;

    put_one(&args, pid);
    bool yes = boot_hold_call(h, "proc_lib", "translate_initial_call", buf_view(&args), &keep, &r) &&
               etf_get_tuple(&r, 3) && etf_is_atom(&r, "kernel_config");
    buf_release(&args);
    buf_release(&keep);
    return yes;
}

/* Finds kernel_config, the process of the kernel that waits, among the processes that kernel_sup is linked to. */
static bool find_config(struct boot_hold *h)
{
    struct buf args = {0}, super = {0}, keep = {0};
    struct etf r, pid;
    size_t n;
    bool found = false;

    etf_list(&args, 1);
    etf_atomz(&args, "kernel_sup");
    etf_nil(&args);
    if (!boot_hold_call(h, "erlang", "whereis", buf_view(&args), &super, &r))
        goto out;
    buf_clear(&args);
    etf_list(&args, 2);
    buf_str(&args, bytes_of(&r));
    etf_atomz(&args, "links");
    etf_nil(&args);
    if (!boot_hold_call(h, "erlang", "process_info", buf_view(&args), &keep, &r) || !etf_get_tuple(&r, 2) ||
        !etf_skip(&r) || !etf_get_list(&r, &n))
        goto out;
    for (size_t i = 0; !found && i < n && etf_take(&r, &pid); i++)
        if ((found = is_config(h, bytes_of(&pid)))) {
            buf_clear(&h->waits);
            buf_str(&h->waits, bytes_of(&pid));
        }
out:
    buf_release(&args);
    buf_release(&super);
    buf_release(&keep);
    return found;
}

static void boot_hold_put_string(struct buf *b, const char *at, const char *end)
{
    const char *next = at;
    size_t n = 0;

    for (; next < end; n++)
        utf8_next(&next, end);
    etf_list(b, n);
    while (at < end)
        etf_int(b, (int64_t)utf8_next(&at, end));
    etf_nil(b);
}

/* Calls code:add_pathsz/1 or code:del_paths/1 on the node, with the directories of its project. */
static void change_paths(struct boot_hold *h, const char *function)
{
    struct buf paths = {0}, args = {0}, keep = {0};
    struct etf r;
    size_t n = 0;

    project_paths(h->vm, &paths);
    for (size_t i = 0; i < paths.len; i++)
        n += paths.data[i] == ':';
    etf_list(&args, 1);
    etf_list(&args, n);
    for (char *at = n ? paths.data : NULL, *end; at && at < paths.data + paths.len; at = end + 1) {
        end = memchr(at, ':', (size_t)(paths.data + paths.len - at));
        boot_hold_put_string(&args, at, end);
    }
    etf_nil(&args);
    etf_nil(&args);
    if (n)
        boot_hold_call(h, "code", function, buf_view(&args), &keep, &r);
    buf_release(&paths);
    buf_release(&args);
    buf_release(&keep);
}

bool boot_hold_try(struct boot_hold *h, const struct node_target *like)
{
    struct node_target target = *like;
    struct node_conn conn;
    struct err e;

    target.ospid = h->vm; /* by its name we might reach a stranger that has taken the name */
    if (!node_connect(&target, &conn, &e))
        return false;
    rpc_open(&h->rpc, &conn, NULL);
    h->held = find_config(h);
    if (h->held) {
        snprintf(h->name, sizeof h->name, "%s", conn.node);
        change_paths(h, "add_pathsz");
    } else {
        rpc_close(&h->rpc);
    }
    return h->held;
}

void boot_hold_go(struct boot_hold *h)
{
    struct buf args = {0}, keep = {0};
    struct etf r;

    if (h->held) {
        change_paths(h, "del_paths");
        etf_list(&args, 2);
        buf_str(&args, buf_view(&h->waits));
        etf_tuple(&args, 2);
        etf_atomz(&args, "nodeup");
        etf_atomz(&args, "etrace_hold");
        etf_nil(&args);
        boot_hold_call(h, "erlang", "send", buf_view(&args), &keep, &r);
        rpc_close(&h->rpc);
    }
    h->held = false;
    buf_release(&args);
    buf_release(&keep);
    buf_release(&h->waits);
}

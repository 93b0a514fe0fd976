/* SPDX-License-Identifier: Apache-2.0 */
#include "cookies.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../ground/proc_text.h"
#include "../ground/utf8.h"

#define PROC_MOST (256u << 10)

/* Reads a file of the node's process in /proc of the other host, through ssh. */
static bool proc_of_there(const struct cookies *s, const char *name, struct buf *b)
{
    char command[100];
    struct err ignored;

    snprintf(command, sizeof command, "head -c %u </proc/%ld/%s", PROC_MOST, s->ospid, name);
    bool ok = ssh_ask(s->ssh, command, PROC_MOST, b, &ignored);
    if (ok)
        buf_char(b, 0);
    return ok;
}

static bool proc_of(const struct cookies *s, const char *name, struct buf *b)
{
    char pid[24];

    snprintf(pid, sizeof pid, "%ld", s->ospid);
    return s->ospid && (s->ssh ? proc_of_there(s, name, b) : proc_read(pid, name, b)) && b->len > 1;
}

/* ---- the arguments and the environment of the node ---- */

/*
 * Finds the value of -setcookie. Like auth.erl, ignores -setcookie if it occurs twice. The form with two values is for
 * other nodes and does not count.
 */
static const char *find_setcookie(const struct buf *b)
{
    const char *found = NULL;
    size_t times = 0;

    for (const char *at = b->data, *value, *more; at && strcmp(at, "-extra"); at = proc_next(b, at)) {
        if (strcmp(at, "-setcookie"))
            continue;
        value = proc_next(b, at);
        more = value && *value != '-' ? proc_next(b, value) : NULL;
        if (more && *more != '-')
            continue;
        found = value && *value != '-' ? value : NULL;
        times++;
    }
    return times == 1 ? found : NULL;
}

static int read_argument(struct cookies *s, struct cookie *ret, struct err *e)
{
    struct buf b = {0};
    char from[64];

    const char *value = proc_of(s, "cmdline", &b) ? find_setcookie(&b) : NULL;
    snprintf(from, sizeof from, "-setcookie of process %ld", s->ospid);
    int got = value ? cookie_take(value, from, ret, e) : -1;
    proc_wipe(&b);
    return got;
}

static int read_variable(struct cookies *s, struct cookie *ret, struct err *e)
{
    struct buf b = {0};
    char from[64];

    const char *value = proc_of(s, "environ", &b) ? proc_env(&b, "RELEASE_COOKIE") : NULL;
    snprintf(from, sizeof from, "RELEASE_COOKIE of process %ld", s->ospid);
    int got = value && *value ? cookie_take(value, from, ret, e) : -1;
    proc_wipe(&b);
    return got;
}

/* ---- the files of the node ---- */

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Returns true if the kernel has no openat2(). Without it, symbolic links can lead out of a directory. */
static bool is_missing(int error)
{
    return error == ENOSYS || error == EPERM;
}

#define GROUPS_MAX 1024

/* The ids by which the kernel decides which files a process or a thread may access. */
struct rights {
    unsigned uid, gid;
    size_t ngroups;
    gid_t groups[GROUPS_MAX];
};

/* Reads the four ids of a line. Returns false if they differ. */
static bool has_one_id(const char *text, const char *begin, unsigned *ret_id)
{
    const char *line = strstr(text, begin);
    unsigned real, effective, saved;

    return line && sscanf(line + strlen(begin), " %u %u %u %u", &real, &effective, &saved, ret_id) == 4 &&
           real == effective && effective == saved && saved == *ret_id;
}

/*
 * Reads the rights of the node's process. Fails if its real, effective, saved and file system ids differ, as in a
 * setuid program: such a process has rights that its user lacks.
 */
static bool rights_of(const struct cookies *s, struct rights *ret)
{
    struct buf b = {0};
    int read;

    const char *text = proc_of(s, "status", &b) ? b.data : "", *groups = strstr(text, "\nGroups:");
    bool ok = has_one_id(text, "\nUid:", &ret->uid) && has_one_id(text, "\nGid:", &ret->gid) && groups;
    ret->ngroups = 0;
    for (const char *at = ok ? groups + strlen("\nGroups:") : ""; *at && *at != '\n'; at += read) {
        read = 1;
        if (isdigit((unsigned char)*at) && ret->ngroups < GROUPS_MAX)
            sscanf(at, "%u%n", &ret->groups[ret->ngroups++], &read);
    }
    buf_release(&b);
    return ok;
}

/* Sets the rights of this thread. Uses system calls, because the functions of the C library change all threads. */
static bool rights_take(const struct rights *r)
{
    return !syscall(SYS_setgroups, r->ngroups, r->groups) && syscall(SYS_setfsgid, r->gid) >= 0 &&
           syscall(SYS_setfsuid, r->uid) >= 0 && syscall(SYS_setfsgid, -1) == (long)r->gid &&
           syscall(SYS_setfsuid, -1) == (long)r->uid;
}

/*
 * Opens a file below `root`, the root directory of the node's process. Symbolic links cannot lead to files outside
 * `root`.
 */
static int open_below(int root, const char *path)
{
    const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    struct open_how how = {.flags = (unsigned)flags, .resolve = RESOLVE_IN_ROOT};
    struct stat theirs, ours;

    int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    if (fd < 0 && is_missing(errno) && !fstat(root, &theirs) && !stat("/", &ours) && same_file(&theirs, &ours))
        fd = open(path, flags);
    return fd;
}

/*
 * Opens a file with the rights of the node's process. The arguments or the environment of the process name the file. If
 * we are root, they could name a file that the process may not read, and the node must not learn its content.
 */
static int open_as_process(const struct cookies *s, const char *path)
{
    struct rights theirs, ours = {.uid = geteuid(), .gid = getegid()};
    char root[64];
    int fd = -1;

    snprintf(root, sizeof root, "/proc/%ld/root", s->ospid);
    int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -1;
    bool known = rights_of(s, &theirs);
    if (ours.uid || (known && theirs.uid == ours.uid)) {
        fd = open_below(dir, path);
    } else if (known) {
        int n = getgroups(GROUPS_MAX, ours.groups);
        ours.ngroups = n > 0 ? (size_t)n : 0;
        if (rights_take(&theirs))
            fd = open_below(dir, path);
        rights_take(&ours);
    }
    close(dir);
    return fd;
}

/* ---- the files of the host of ssh ---- */

/* Reads a cookie from the output of commands on the other host. */
static int take_printed(const struct cookies *s, const char *commands, const char *from, struct cookie *ret,
                        struct err *e)
{
    struct buf b = {0};

    bool ok = ssh_ask(s->ssh, commands, COOKIE_MAX + 2, &b, e) && b.len;
    int got = ok ? cookie_take_file(b.data, b.len, from, ret, e) : -1;
    proc_wipe(&b);
    return got;
}

/*
 * Appends the start of a command for the other host: it runs the rest with the rights of the node's process. That
 * process chose the name of the file, so etrace must not read what the process may not read. Only root needs setpriv:
 * to another user, /proc shows only processes with that user's rights.
 */
static bool put_rights(const struct cookies *s, struct buf *b)
{
    struct rights r;

    if (!rights_of(s, &r))
        return false;
    buf_printf(b, "if [ \"$(id -u)\" != 0 ] || [ %u = 0 ]; then r=; else r='setpriv --reuid=%u --regid=%u", r.uid,
               r.uid, r.gid);
    buf_puts(b, r.ngroups ? " --groups=" : " --clear-groups");
    for (size_t i = 0; i < r.ngroups; i++)
        buf_printf(b, "%s%u", i ? "," : "", (unsigned)r.groups[i]);
    buf_puts(b, "'; fi; ");
    return true;
}

/*
 * Reads a file that the node's process names. Fails if the process sees other file systems than the shell does, because
 * the name would mean another file.
 */
static int read_file_there(const struct cookies *s, const char *path, struct cookie *ret, struct err *e)
{
    struct buf b = {0};
    char from[sizeof ret->from];
    int got = -1;

    snprintf(from, sizeof from, "%.300s on %.100s", path, ssh_host(s->ssh));
    utf8_make_safe(from);
    if (put_rights(s, &b)) {
        buf_printf(&b,
                   "p=/proc/%ld; [ \"$(readlink $p/ns/mnt)\" = \"$(readlink /proc/self/ns/mnt)\" ] && "
                   "[ $p/root/. -ef / ] && set -- ",
                   s->ospid);
        ssh_quote(&b, path);
        buf_printf(&b, " && $r test -f \"$1\" && $r head -c %d \"$1\"", COOKIE_MAX + 2);
        got = take_printed(s, buf_cstr(&b), from, ret, e);
    }
    buf_release(&b);
    return got;
}

/* Reads .erlang.cookie of the user of ssh on the other host. */
static int read_own_there(struct cookies *s, struct cookie *ret, struct err *e)
{
    char from[sizeof ret->from], commands[300];

    if (!s->ssh)
        return -1;
    snprintf(from, sizeof from, "~/.erlang.cookie on %.100s", ssh_host(s->ssh));
    snprintf(commands, sizeof commands,
             "for f in ~/.erlang.cookie \"${XDG_CONFIG_HOME:-$HOME/.config}/erlang/.erlang.cookie\"; do "
             "if [ -f \"$f\" ]; then head -c %d \"$f\"; break; fi; done",
             COOKIE_MAX + 2);
    return take_printed(s, commands, from, ret, e);
}

static int read_file(const struct cookies *s, const char *path, struct cookie *ret, struct err *e)
{
    char from[sizeof ret->from];
    struct stat theirs, ours;

    if (s->ssh)
        return *path == '/' ? read_file_there(s, path, ret, e) : -1;
    int fd = *path == '/' ? open_as_process(s, path) : -1;

    if (fd < 0)
        return -1;
    cookie_path_shown(path, from, sizeof from);
    if (fstat(fd, &theirs) || stat(path, &ours) || !same_file(&theirs, &ours))
        snprintf(from + strlen(from), sizeof from - strlen(from), " of process %ld", s->ospid);
    int got = cookie_read_fd(fd, from, ret, e);
    close(fd);
    return got;
}

static int read_release(struct cookies *s, struct cookie *ret, struct err *e)
{
    struct buf b = {0};
    char path[4096];

    const char *root = proc_of(s, "environ", &b) ? proc_env(&b, "RELEASE_ROOT") : NULL;
    snprintf(path, sizeof path, "%.4000s/releases/COOKIE", root ? root : "");
    proc_wipe(&b);
    int got = root ? read_file(s, path, ret, e) : -1;
    if (got > 0)
        ret->open = 0; /* do not warn: mix makes this file readable by all */
    return got;
}

/* Finds the home directory in the argument -home, as the node does. Sets ret_home to "" if there is none. */
static void find_home(const struct cookies *s, char *ret_home, size_t size)
{
    struct buf b = {0};

    *ret_home = 0;
    for (const char *at = proc_of(s, "cmdline", &b) ? b.data : NULL, *value; at && (value = proc_next(&b, at));
         at = value)
        if (!strcmp(at, "-home")) {
            snprintf(ret_home, size, "%s", value);
            break;
        }
    proc_wipe(&b);
}

static int read_home(struct cookies *s, struct cookie *ret, struct err *e)
{
    struct buf b = {0};
    char home[3900], path[4096];

    find_home(s, home, sizeof home);
    snprintf(path, sizeof path, "%s/.erlang.cookie", home);
    int got = *home ? read_file(s, path, ret, e) : -1;
    if (got >= 0)
        return got;
    const char *xdg = proc_of(s, "environ", &b) ? proc_env(&b, "XDG_CONFIG_HOME") : NULL;
    if (xdg && *xdg)
        snprintf(path, sizeof path, "%.3900s/erlang/.erlang.cookie", xdg);
    else
        snprintf(path, sizeof path, "%s/.config/erlang/.erlang.cookie", home);
    proc_wipe(&b);
    return *path == '/' ? read_file(s, path, ret, e) : -1;
}

/* ---- our own ---- */

static int read_given(struct cookies *s, struct cookie *ret, struct err *e)
{
    int got = cookie_read(s->file, ret, e);

    if (got < 0)
        return err_set(e, ERR_NODE, "there is no cookie file %s", s->file);
    return got;
}

static int read_own_variable(struct cookies *s UNUSED, struct cookie *ret, struct err *e)
{
    const char *value = getenv("RELEASE_COOKIE");

    return value && *value ? cookie_take(value, "$RELEASE_COOKIE", ret, e) : -1;
}

static int read_own(struct cookies *s UNUSED, struct cookie *ret, struct err *e)
{
    return cookie_read_own(ret, e);
}

/* ---- the search ---- */

struct source {
    int (*read)(struct cookies *s, struct cookie *ret, struct err *e);
    enum cookie_owner owner;
};

static const struct source given = {read_given, COOKIE_GIVEN};
static const struct source sources[] = {
    {read_argument, COOKIE_PROCESS}, {read_variable, COOKIE_PROCESS}, {read_release, COOKIE_PROCESS},
    {read_home, COOKIE_PROCESS},     {read_own_there, COOKIE_OWN},    {read_own_variable, COOKIE_OWN},
    {read_own, COOKIE_OWN},
};

void cookies_begin(struct cookies *s, const char *file, struct ssh *ssh, long ospid)
{
    *s = (struct cookies){.file = file, .ssh = ssh, .ospid = ospid};
}

static bool cookies_is_new(const struct cookies *s, const struct cookie *c)
{
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(s->tried[i].text, c->text) && !s->tried[i].kept)
            return false;
    return true;
}

const struct cookie *cookies_next(struct cookies *s)
{
    const size_t end = s->file ? 1 : ARRAY_LEN(sources);
    struct cookie *c = &s->tried[s->count];
    struct err why;

    if (!s->next)
        cookie_protect();
    while (s->next < end && s->count < COOKIES_TRIES) {
        const struct source *from = s->file ? &given : &sources[s->next];
        int got = from->read(s, c, &why);
        s->bytes = got > 0 && !s->bytes && cookie_narrow(c);
        s->next += !s->bytes;
        c->owner = from->owner;
        c->ospid = from->owner == COOKIE_PROCESS ? s->ospid : 0;
        if (got > 0 && cookies_is_new(s, c)) {
            s->count++;
            return c;
        }
        if (got > 0)
            cookie_wipe(c);
        else if (!got && !s->why.status)
            s->why = why;
    }
    return NULL;
}

void cookies_keep(struct cookies *s)
{
    s->tried[s->count - 1].kept = true;
}

size_t cookies_sent(const struct cookies *s)
{
    size_t sent = 0;

    for (size_t i = 0; i < s->count; i++)
        sent += !s->tried[i].kept;
    return sent;
}

void cookies_end(struct cookies *s)
{
    for (size_t i = 0; i < s->count; i++)
        cookie_wipe(&s->tried[i]);
}

static bool cookies_has_text(struct cookie *own, const char *text)
{
    return !strcmp(own->text, text) || (cookie_narrow(own) && !strcmp(own->text, text));
}

bool cookies_is_own(struct cookies *s, const struct cookie *c)
{
    bool own = c->owner == COOKIE_OWN;

    for (size_t i = 0; i < ARRAY_LEN(sources) && !own && !s->file && !s->ssh; i++) {
        struct cookie other;
        struct err ignored;
        if (sources[i].owner == COOKIE_OWN && sources[i].read(s, &other, &ignored) > 0) {
            own = cookies_has_text(&other, c->text);
            cookie_wipe(&other);
        }
    }
    return own;
}

bool cookies_hidden(long ospid)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%ld/environ", ospid);
    int fd = open(path, O_RDONLY | O_CLOEXEC); /* access() would only check the mode of the file */
    if (fd >= 0)
        close(fd);
    return fd < 0;
}

bool cookies_none(const struct cookies *s, struct err *e)
{
    if (s->why.status)
        *e = s->why;
    else
        err_set(e, ERR_NODE, "no cookie: neither ~/.erlang.cookie nor the XDG one exists");
    if (e->hint[0])
        return false;
    if (s->ssh)
        err_hint(e, "--cookie-file names the file that holds the node's cookie; --ssh as the user of the node finds it "
                    "there");
    else if (s->ospid && cookies_hidden(s->ospid))
        err_hint(e, "the cookie of process %ld is hidden: run etrace as its user or as root, %s; or use --cookie-file",
                 s->ospid, geteuid() ? "with sudo" : "with the capability SYS_PTRACE");
    else if (!s->why.status)
        err_hint(e, "--cookie-file names the file that holds the node's cookie, and $RELEASE_COOKIE may have it");
    return false;
}

void cookies_tried(const struct cookies *s, char *ret, size_t size)
{
    *ret = 0;
    for (size_t i = 0; i < s->count; i++)
        if (!s->tried[i].kept && !(i && !strcmp(s->tried[i].from, s->tried[i - 1].from)))
            snprintf(ret + strlen(ret), size - strlen(ret), "%s%.200s", *ret ? ", " : "", s->tried[i].from);
}

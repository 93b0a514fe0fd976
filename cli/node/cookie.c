/* SPDX-License-Identifier: Apache-2.0 */
#include "cookie.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

void cookie_wipe(struct cookie *c)
{
    explicit_bzero(c->text, sizeof c->text);
}

/* Abbreviates the home directory to ~. The result is valid until the next call. */
static const char *shown(const char *path)
{
    static char text[sizeof((struct cookie *)0)->path];
    const char *home = getenv("HOME");
    size_t len = home ? strlen(home) : 0;

    if (!len || strncmp(path, home, len) || path[len] != '/')
        return path;
    snprintf(text, sizeof text, "~%s", path + len);
    return text;
}

static bool check_file(const char *path, const struct stat *st, struct err *e)
{
    if (!S_ISREG(st->st_mode))
        return err_set(e, ERR_NODE, "the cookie file %s is not a regular file", shown(path));
    if (st->st_uid != geteuid() && geteuid() != 0)
        return err_set(e, ERR_NODE, "the cookie file %s belongs to another user", shown(path));
    if (st->st_mode & 077) {
        err_set(e, ERR_NODE, "the cookie file %s is accessible to other users (mode %04o)", shown(path),
                (unsigned)st->st_mode & 07777);
        err_hint(e, "chmod 400 %s", shown(path));
        return false;
    }
    return true;
}

/* The rules of auth.erl: printable ASCII without spaces, followed only by spaces and line ends. */
static bool check_text(struct cookie *c, size_t len, const char *path, struct err *e)
{
    if (memchr(c->text, 0, len))
        return err_set(e, ERR_NODE, "the cookie in %s has a NUL character in it", shown(path));
    while (len && strchr(" \r\n", c->text[len - 1]))
        len--;
    if (len == 0)
        return err_set(e, ERR_NODE, "the cookie file %s is empty", shown(path));
    for (size_t i = 0; i < len; i++) {
        if (c->text[i] == ' ')
            return err_set(e, ERR_NODE, "the cookie in %s has a space in it", shown(path));
        if (c->text[i] < ' ' || c->text[i] == 127)
            return err_set(e, ERR_NODE, "the cookie in %s has a control character in it", shown(path));
    }
    c->text[len] = '\0';
    return true;
}

static bool read_fd(int fd, const char *path, struct cookie *c, struct err *e)
{
    struct stat st;
    char all[COOKIE_MAX + 2];
    size_t len = 0;
    ssize_t n;
    bool ok;

    if (fstat(fd, &st) || !check_file(path, &st, e))
        return false;
    while (len < sizeof all && (n = read(fd, all + len, sizeof all - len)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            err_set(e, ERR_NODE, "cannot read the cookie file %s: %s", shown(path), strerror(errno));
            explicit_bzero(all, sizeof all);
            return false;
        }
        len += (size_t)n;
    }
    ok = len <= COOKIE_MAX;
    if (ok) {
        memcpy(c->text, all, len);
        ok = check_text(c, len, path, e);
    } else {
        err_set(e, ERR_NODE, "the cookie in %s is longer than %d bytes", shown(path), COOKIE_MAX);
    }
    explicit_bzero(all, sizeof all);
    return ok;
}

/* Returns 1 on success, 0 on failure with err, -1 if there is no such file. */
static int try_file(const char *path, bool follow, struct cookie *c, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW));
    bool ok;

    if (fd < 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            return -1;
        if (errno == ELOOP)
            err_set(e, ERR_NODE, "the cookie file %s is a symbolic link, which is not followed", shown(path));
        else
            err_set(e, ERR_NODE, "cannot open the cookie file %s: %s", shown(path), strerror(errno));
        return 0;
    }
    ok = read_fd(fd, path, c, e);
    close(fd);
    snprintf(c->path, sizeof c->path, "%s", shown(path));
    return ok;
}

static int try_default(struct cookie *c, struct err *e)
{
    const char *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME");
    char path[sizeof c->path];
    int got = -1;

    if (home && *home) {
        snprintf(path, sizeof path, "%s/.erlang.cookie", home);
        got = try_file(path, false, c, e);
    }
    if (got < 0 && xdg && *xdg) {
        snprintf(path, sizeof path, "%s/erlang/.erlang.cookie", xdg);
        got = try_file(path, false, c, e);
    } else if (got < 0 && home && *home) {
        snprintf(path, sizeof path, "%s/.config/erlang/.erlang.cookie", home);
        got = try_file(path, false, c, e);
    }
    return got;
}

bool cookie_read(const char *file, struct cookie *ret, struct err *e)
{
    struct cookie c = {0};
    /* No core dump, and no other process of this user, must see the cookie or traced data in our memory. */
    prctl(PR_SET_DUMPABLE, 0);
    int got = file ? try_file(file, true, &c, e) : try_default(&c, e);

    if (got > 0) {
        *ret = c;
    } else if (got < 0 && file) {
        err_set(e, ERR_NODE, "there is no cookie file %s", file);
    } else if (got < 0) {
        err_set(e, ERR_NODE, "no cookie: neither ~/.erlang.cookie nor the XDG one exists");
        err_hint(e, "--cookie-file names the file that holds the node's cookie");
    }
    cookie_wipe(&c);
    return got > 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cookie.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../ground/utf8.h"

void cookie_wipe(struct cookie *c)
{
    explicit_bzero(c->text, sizeof c->text);
}

void cookie_protect(void)
{
    prctl(PR_SET_DUMPABLE, 0);
}

void cookie_path_shown(const char *path, char *ret, size_t size)
{
    const char *home = getenv("HOME");
    size_t len = home ? strlen(home) : 0;
    bool below = len && !strncmp(path, home, len) && path[len] == '/';

    snprintf(ret, size, "%s%s", below ? "~" : "", path + (below ? len : 0));
}

/*
 * Checks the content of a cookie file, and cuts it at the first line end. As in auth.erl, spaces belong to the cookie,
 * even at its end, and only spaces and line ends may follow the first line. auth.erl rejects bytes that are not ASCII.
 * This function accepts them, because the start script of a release passes the content of the file as an argument,
 * which OTP does not check.
 */
static bool check_file(struct cookie *c, size_t len, struct err *e)
{
    size_t end = 0;

    while (end < len && c->text[end] != '\r' && c->text[end] != '\n')
        end++;
    for (size_t i = 0; i < len; i++) {
        const unsigned char byte = (unsigned char)c->text[i];
        if (!byte)
            return err_set(e, ERR_NODE, "the cookie in %s has a NUL character in it", c->from);
        if (i < end ? byte < ' ' || byte == 127 : !strchr(" \r\n", byte))
            return err_set(e, ERR_NODE, "the cookie in %s has a control character in it", c->from);
    }
    if (!end)
        return err_set(e, ERR_NODE, "the cookie in %s is empty", c->from);
    c->text[end] = '\0';
    return true;
}

/* Sets c->text to the `len` bytes of `all`. Fails if the bytes do not fit. */
static bool take_bytes(struct cookie *c, const char *all, size_t len, struct err *e)
{
    if (len > COOKIE_MAX)
        return err_set(e, ERR_NODE, "the cookie in %s is longer than %d bytes", c->from, COOKIE_MAX);
    memcpy(c->text, all, len);
    c->text[len] = '\0';
    return true;
}

bool cookie_narrow(struct cookie *c)
{
    const char *end = c->text + strlen(c->text), *from = c->text;
    uint32_t cp = 0;

    while (from < end && (cp = utf8_next(&from, end)) <= 0xff)
        continue;
    if (cp > 0xff) /* UTF8_BAD is larger, too */
        return false;
    char *to = c->text;
    for (from = c->text; from < end;)
        *to++ = (char)utf8_next(&from, end);
    const bool shorter = to < end;
    explicit_bzero(to, (size_t)(end - to));
    return shorter;
}

static int hand_over_cookie(struct cookie *c, bool ok, struct cookie *ret)
{
    if (ok)
        *ret = *c;
    cookie_wipe(c);
    return ok;
}

int cookie_take(const char *text, const char *from, struct cookie *ret, struct err *e)
{
    struct cookie c = {0};

    cookie_protect();
    snprintf(c.from, sizeof c.from, "%s", from);
    return hand_over_cookie(&c, take_bytes(&c, text, strnlen(text, COOKIE_MAX + 1), e), ret);
}

int cookie_take_file(const char *bytes, size_t len, const char *from, struct cookie *ret, struct err *e)
{
    struct cookie c = {0};

    cookie_protect();
    snprintf(c.from, sizeof c.from, "%s", from);
    return hand_over_cookie(&c, take_bytes(&c, bytes, len, e) && check_file(&c, len, e), ret);
}

/* Reads the file to its end; if `line` is true, only to the end of its first line. */
static bool read_bytes(int fd, bool line, struct cookie *c, struct err *e)
{
    char all[COOKIE_MAX + 2];
    size_t len = 0;
    ssize_t n;

    while (len < sizeof all && (n = read(fd, all + len, line ? 1 : sizeof all - len)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            err_set(e, ERR_NODE, "cannot read the cookie file %s: %s", c->from, strerror(errno));
            explicit_bzero(all, sizeof all);
            return false;
        }
        len += (size_t)n;
        if (line && all[len - 1] == '\n')
            break;
    }
    bool ok = take_bytes(c, all, len, e) && check_file(c, len, e);
    explicit_bzero(all, sizeof all);
    return ok;
}

int cookie_read_fd(int fd, const char *from, struct cookie *ret, struct err *e)
{
    struct cookie c = {0};
    struct stat st;

    cookie_protect();
    snprintf(c.from, sizeof c.from, "%s", from);
    if (fstat(fd, &st) || !S_ISREG(st.st_mode))
        return err_set(e, ERR_NODE, "the cookie file %s is not a regular file", c.from);
    c.open = st.st_mode & 077 ? st.st_mode & 07777 : 0;
    return hand_over_cookie(&c, read_bytes(fd, false, &c, e), ret);
}

static int try_file(const char *path, bool own, struct cookie *ret, struct err *e)
{
    char from[sizeof ret->from];
    struct stat st;

    cookie_path_shown(path, from, sizeof from);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (own ? O_NOFOLLOW : 0));
    if (fd < 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            return -1;
        if (errno == ELOOP)
            return err_set(e, ERR_NODE, "the cookie file %s is a symbolic link, which is not followed", from);
        return err_set(e, ERR_NODE, "cannot open the cookie file %s: %s", from, strerror(errno));
    }
    int got = own && !fstat(fd, &st) && st.st_uid != geteuid() && geteuid() != 0
                  ? err_set(e, ERR_NODE, "the cookie file %s belongs to another user", from)
                  : cookie_read_fd(fd, from, ret, e);
    close(fd);
    return got;
}

int cookie_read_own(struct cookie *ret, struct err *e)
{
    const char *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME");
    char path[4096];
    int got = -1;

    if (home && *home) {
        snprintf(path, sizeof path, "%s/.erlang.cookie", home);
        got = try_file(path, true, ret, e);
    }
    if (got < 0 && xdg && *xdg) {
        snprintf(path, sizeof path, "%s/erlang/.erlang.cookie", xdg);
        got = try_file(path, true, ret, e);
    } else if (got < 0 && home && *home) {
        snprintf(path, sizeof path, "%s/.config/erlang/.erlang.cookie", home);
        got = try_file(path, true, ret, e);
    }
    return got;
}

static int read_input(struct cookie *ret, struct err *e)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct cookie kept = {.from = "standard input"};
    static struct err why;
    static bool read_already, ok;

    pthread_mutex_lock(&lock);
    if (!read_already) {
        cookie_protect();
        ok = read_bytes(STDIN_FILENO, true, &kept, &why);
        read_already = true;
    }
    if (ok)
        *ret = kept;
    else
        *e = why;
    pthread_mutex_unlock(&lock);
    return ok;
}

bool cookie_is_typed(const char *file)
{
    return file && !strcmp(file, "-") && isatty(STDIN_FILENO);
}

void cookie_await(const char *file)
{
    struct cookie c;
    struct err ignored;

    if (file && !strcmp(file, "-") && read_input(&c, &ignored))
        cookie_wipe(&c);
}

int cookie_read(const char *file, struct cookie *ret, struct err *e)
{
    return strcmp(file, "-") ? try_file(file, false, ret, e) : read_input(ret, e);
}

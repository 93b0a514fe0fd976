/* SPDX-License-Identifier: Apache-2.0 */
#include "small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool small_file_refuse(const char *shown, const char *why, enum err_status status, struct err *e)
{
    return err_set(e, status, "cannot read %s: %s", shown, why);
}

int small_file_open(const char *path, const char *shown, enum err_status status, struct err *e)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st)) {
        small_file_refuse(shown, strerror(errno), status, e);
    } else if (!S_ISREG(st.st_mode)) {
        small_file_refuse(shown, "it is not a regular file", status, e);
    } else {
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

bool small_file_fits(size_t len, const char *shown, size_t most, enum err_status status, struct err *e)
{
    if (len <= most)
        return true;
    return err_set(e, status, "cannot read %s: it is larger than %zu KiB", shown, most / 1024);
}

bool small_file_read_fd(int fd, const char *shown, size_t most, struct buf *to, enum err_status status, struct err *e)
{
    char *at = buf_room(to, most + 1);
    size_t len = 0;
    ssize_t n;

    while (len <= most && (n = read(fd, at + len, most + 1 - len)) != 0) {
        if (n > 0)
            len += (size_t)n;
        else if (errno != EINTR)
            return small_file_refuse(shown, strerror(errno), status, e);
    }
    to->len += len;
    return small_file_fits(len, shown, most, status, e);
}

bool small_file_read(const char *path, const char *shown, size_t most, struct buf *to, enum err_status status,
                     struct err *e)
{
    const int fd = small_file_open(path, shown, status, e);
    const bool ok = fd >= 0 && small_file_read_fd(fd, shown, most, to, status, e);

    if (fd >= 0)
        close(fd);
    return ok;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The namespace of this thread, because other threads may be in another one. */
#define OURS "/proc/thread-self/ns/net"

static bool is_same_namespace(const char *a, const char *b)
{
    struct stat x, y;

    /* Without the permission for stat(), the sockets of the process are hidden, too. find_listening() reports that. */
    return stat(a, &x) || stat(b, &y) || (x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

bool netns_is_ours(long ospid)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%ld/ns/net", ospid);
    return is_same_namespace(path, OURS);
}

/*
 * Returns true if this user owns the user namespace of the process, as with a rootless container. A program with one
 * thread can enter such a namespace, and then the network namespace. etrace has several threads and cannot.
 */
static bool is_own_user_namespace(long ospid)
{
    char path[64];
    uid_t owner;

    snprintf(path, sizeof path, "/proc/%ld/ns/user", ospid);
    int fd = is_same_namespace(path, "/proc/thread-self/ns/user") ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    bool own = fd >= 0 && !ioctl(fd, NS_GET_OWNER_UID, &owner) && owner == geteuid();
    if (fd >= 0)
        close(fd);
    return own;
}

bool netns_enter(long ospid, int *ret_back, struct err *e)
{
    char path[64];
    int there = -1, back = -1, error;

    *ret_back = -1;
    snprintf(path, sizeof path, "/proc/%ld/ns/net", ospid);
    if (!ospid || is_same_namespace(path, OURS))
        return true;
    if ((back = open(OURS, O_RDONLY | O_CLOEXEC)) >= 0 && (there = open(path, O_RDONLY | O_CLOEXEC)) >= 0 &&
        !setns(there, CLONE_NEWNET)) {
        close(there);
        *ret_back = back;
        return true;
    }
    error = errno;
    if (there >= 0)
        close(there);
    if (back >= 0)
        close(back);
    err_set(e, ERR_NODE,
            "process %ld is in another network namespace, as in a container, and etrace cannot enter it: %s", ospid,
            strerror(error));
    if (is_own_user_namespace(ospid))
        err_hint(e, "enter its user namespace: nsenter --user --preserve-credentials --target %ld etrace -p %ld", ospid,
                 ospid);
    else
        err_hint(e, "run etrace as root, sudo etrace -p %ld, or inside the container", ospid);
    return false;
}

void netns_leave(int back)
{
    if (back < 0)
        return;
    setns(back, CLONE_NEWNET);
    close(back);
}

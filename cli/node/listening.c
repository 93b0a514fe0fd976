/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the TCP ports on which a process listens: compares the inodes of its descriptors with the sockets in
 * /proc/PID/net.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ground/mem.h"
#include "find.h"

#define LISTENING 0x0a /* TCP_LISTEN in /proc/net/tcp */
#define INODES_MAX 65536

struct inodes {
    unsigned long *items;
    size_t count, cap;
};

static void read_inodes(DIR *dir, struct inodes *n)
{
    struct dirent *d;
    char text[64];

    while ((d = readdir(dir)) && n->count < INODES_MAX) {
        ssize_t len = readlinkat(dirfd(dir), d->d_name, text, sizeof text - 1);
        unsigned long inode;
        if (len <= 0)
            continue;
        text[len] = 0;
        if (sscanf(text, "socket:[%lu]", &inode) != 1)
            continue;
        n->items = mem_grow(n->items, &n->cap, n->count + 1, sizeof *n->items);
        n->items[n->count++] = inode;
    }
}

static bool has(const struct inodes *n, unsigned long inode)
{
    for (size_t i = 0; i < n->count; i++)
        if (n->items[i] == inode)
            return true;
    return false;
}

static void match(long ospid, const char *table, const struct inodes *n, int *ports, size_t most, size_t *count)
{
    char path[64], line[512];
    FILE *f;

    snprintf(path, sizeof path, "/proc/%ld/net/%s", ospid, table);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        unsigned port, state;
        unsigned long inode;
        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*d %*d %lu", &port, &state, &inode) == 3 &&
            state == LISTENING && *count < most && has(n, inode))
            ports[(*count)++] = (int)port;
    }
    if (f)
        fclose(f);
}

bool find_listening(long ospid, int *ret_ports, size_t most, size_t *ret_count, struct err *e)
{
    struct inodes n = {0};
    size_t count = 0;
    char path[64];
    DIR *dir;

    snprintf(path, sizeof path, "/proc/%ld/fd", ospid);
    dir = opendir(path);
    int error = dir ? 0 : errno;
    bool hidden = error == ENOENT && (!kill((pid_t)ospid, 0) || errno == EPERM);
    if (error == ENOENT && !hidden)
        return err_set(e, ERR_NODE, "there is no process %ld", ospid);
    if (!dir) {
        err_set(e, ERR_NODE, "cannot see the sockets of process %ld: %s", ospid,
                hidden ? "/proc is not there, or does not show it" : strerror(error));
        err_hint(e, "run etrace as that user or as root, or use -n NODE with the cookie");
        return false;
    }
    read_inodes(dir, &n);
    closedir(dir);
    match(ospid, "tcp", &n, ret_ports, most, &count);
    match(ospid, "tcp6", &n, ret_ports, most, &count);
    free(n.items);
    if (!count) {
        err_set(e, ERR_NODE, "process %ld listens on no TCP port, so it is not a distributed node", ospid);
        err_hint(e, "a node is reachable when it was started with -sname or -name");
        return false;
    }
    *ret_count = count;
    return true;
}

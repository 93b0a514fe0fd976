/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the TCP ports on which a process listens. Compares the inodes of the process's descriptors with the listening
 * sockets in /proc/PID/net.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ground/mem.h"
#include "vms.h"

#define LISTENING 0x0a /* TCP_LISTEN in /proc/net/tcp */
#define INODES_MAX 65536
/* Linux lists the listening sockets first. After this many sockets in other states in a row, the search ends. */
#define OTHERS_MAX 100

struct inodes {
    unsigned long *items;
    size_t count, cap;
};

/*
 * Reads the inodes of the sockets among the descriptors in `dir`. Returns an error number if the kernel lists the
 * descriptors but hides their targets, else 0.
 */
static int read_inodes(DIR *dir, struct inodes *n)
{
    struct dirent *d;
    char text[64];
    int error = 0;

    while ((d = readdir(dir)) && n->count < INODES_MAX) {
        ssize_t len = readlinkat(dirfd(dir), d->d_name, text, sizeof text - 1);
        unsigned long inode;
        if (len <= 0) {
            error = errno == EACCES || errno == EPERM ? errno : error;
            continue;
        }
        text[len] = 0;
        if (sscanf(text, "socket:[%lu]", &inode) != 1)
            continue;
        n->items = mem_grow(n->items, &n->cap, n->count + 1, sizeof *n->items);
        n->items[n->count++] = inode;
    }
    return error;
}

static bool hidden_sockets(long ospid, const char *why, struct err *e)
{
    err_set(e, ERR_NODE, "cannot see the sockets of process %ld: %s", ospid, why);
    if (geteuid())
        err_hint(e, "run etrace as that user or as root, sudo etrace -p %ld, or use -n NODE with the cookie", ospid);
    else
        err_hint(e, HIDDEN_HINT);
    return false;
}

static bool has_inode(const struct inodes *n, unsigned long inode)
{
    for (size_t i = 0; i < n->count; i++)
        if (n->items[i] == inode)
            return true;
    return false;
}

bool process_has_socket(long ospid, unsigned long inode, bool *ret_hidden)
{
    struct inodes n = {0};
    char path[64];

    snprintf(path, sizeof path, "/proc/%ld/fd", ospid);
    DIR *dir = opendir(path);
    *ret_hidden = dir ? read_inodes(dir, &n) != 0 : errno == EACCES || errno == EPERM;
    if (dir)
        closedir(dir);
    bool found = has_inode(&n, inode);
    free(n.items);
    return found;
}

static void read_table(const char *process, const char *table, struct listeners *l)
{
    char path[64], line[512];
    size_t others = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%s/net/%s", process, table);
    f = fopen(path, "re");
    if (f)
        setvbuf(f, NULL, _IOFBF, 16384);
    while (f && others < OTHERS_MAX && fgets(line, sizeof line, f)) {
        unsigned port, state;
        unsigned long inode;
        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*d %*d %lu", &port, &state,
                   &inode) != 3)
            continue;
        others = state == LISTENING ? 0 : others + 1;
        if (state != LISTENING || l->count == INODES_MAX)
            continue;
        l->items = mem_grow(l->items, &l->cap, l->count + 1, sizeof *l->items);
        l->items[l->count].inode = inode;
        l->items[l->count++].port = (int)port;
    }
    if (f)
        fclose(f);
}

void listeners_read(long ospid, struct listeners *ret)
{
    char process[24] = "thread-self";

    *ret = (struct listeners){0};
    if (ospid)
        snprintf(process, sizeof process, "%ld", ospid);
    read_table(process, "tcp", ret);
    read_table(process, "tcp6", ret);
}

void listeners_release(struct listeners *l)
{
    free(l->items);
    *l = (struct listeners){0};
}

bool find_listening(long ospid, const struct listeners *table, int *ret_ports, size_t most, size_t *ret_count,
                    struct err *e)
{
    struct listeners own = {0};
    struct inodes n = {0};
    struct arguments a;
    size_t count = 0;
    char path[64];
    DIR *dir;

    snprintf(path, sizeof path, "/proc/%ld/fd", ospid);
    dir = opendir(path);
    int error = dir ? 0 : errno;
    bool hidden = error == ENOENT && (!kill((pid_t)ospid, 0) || errno == EPERM);
    if (error == ENOENT && !hidden)
        return err_set(e, ERR_NODE, "there is no process %ld", ospid);
    if (!dir)
        return hidden_sockets(ospid, hidden ? "/proc is not there, or does not show it" : strerror(error), e);
    error = read_inodes(dir, &n);
    closedir(dir);
    if (error) {
        free(n.items);
        return hidden_sockets(ospid, strerror(error), e);
    }
    if (!table) {
        listeners_read(ospid, &own);
        table = &own;
    }
    for (size_t i = 0; i < table->count && count < most; i++)
        if (has_inode(&n, table->items[i].inode))
            ret_ports[count++] = table->items[i].port;
    listeners_release(&own);
    free(n.items);
    if (!count) {
        err_set(e, ERR_NODE, "process %ld listens on no TCP port, so it is not a distributed node", ospid);
        if (find_arguments(ospid, &a) && a.vm)
            hint_of_no_port(&a, e);
        else
            err_hint(e, "it does not run Erlang; etrace nodes lists the processes that do");
        return false;
    }
    *ret_count = count;
    return true;
}

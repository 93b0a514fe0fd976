/* SPDX-License-Identifier: Apache-2.0 */
#include "vms.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../ground/mem.h"
#include "../ground/path.h"
#include "../ground/proc_text.h"
#include "netns.h"

#define VMS_MAX 1024
#define ANCESTORS_MAX 256

/*
 * Rules out most processes that are no virtual machines, with one system call. Returns true if /proc hides the program
 * of the process, as for other users. Then the command line decides.
 */
static bool may_be_vm(long ospid)
{
    char path[64], text[4096];

    snprintf(path, sizeof path, "/proc/%ld/exe", ospid);
    ssize_t n = readlink(path, text, sizeof text - 1);
    if (n < 0)
        return errno != ENOENT; /* ENOENT: the process has ended, or is a thread of the kernel */
    text[n] = 0;
    return !strncmp(path_base(text), "beam", 4) || !strncmp(path_base(text), "qemu", 4);
}

static void look_at_sockets(struct vm *v, const struct listeners *ours)
{
    struct err ignored;

    find_listening(v->ospid, v->here ? ours : NULL, v->ports, ARRAY_LEN(v->ports), &v->nports, &ignored);
    v->visible = v->visible || v->nports;
    if (!v->visible && v->arguments.port)
        v->ports[v->nports++] = v->arguments.port;
}

static bool look_at(long ospid, const char *alive, struct vm *ret)
{
    struct stat st;
    char path[64], link[64];

    *ret = (struct vm){.ospid = ospid};
    if (!may_be_vm(ospid) || !find_arguments(ospid, &ret->arguments) || !ret->arguments.vm)
        return false;
    if (alive && *ret->arguments.name && !vm_is_named(ret, alive))
        return false;
    snprintf(path, sizeof path, "/proc/%ld", ospid);
    ret->uid = stat(path, &st) ? 0 : st.st_uid;
    ret->here = netns_is_ours(ospid);
    snprintf(path, sizeof path, "/proc/%ld/fd/0", ospid);
    ret->visible = readlink(path, link, sizeof link) > 0 || errno == ENOENT;
    return true;
}

void vms_find(const char *alive, struct vms *ret)
{
    struct vms all = {0};
    size_t cap = 0;
    struct dirent *d;
    struct vm vm;
    DIR *dir = opendir("/proc");

    while (dir && all.count < VMS_MAX && (d = readdir(dir))) {
        long ospid = isdigit((unsigned char)*d->d_name) ? strtol(d->d_name, NULL, 10) : 0;
        if (!ospid || !look_at(ospid, alive, &vm))
            continue;
        all.items = mem_grow(all.items, &cap, all.count + 1, sizeof vm);
        all.items[all.count++] = vm;
    }
    if (dir)
        closedir(dir);
    *ret = all;
}

void vms_find_ports(struct vms *v)
{
    struct listeners ours;

    listeners_read(0, &ours);
    for (size_t i = 0; i < v->count; i++)
        look_at_sockets(&v->items[i], &ours);
    listeners_release(&ours);
}

void vms_release(struct vms *v)
{
    free(v->items);
    *v = (struct vms){0};
}

bool vm_is_named(const struct vm *v, const char *alive)
{
    size_t len = strlen(alive);
    const char *name = v->arguments.name;

    return !strncmp(name, alive, len) && (name[len] == '@' || !name[len]);
}

static bool listens_on(const struct vm *v, int port)
{
    for (size_t i = 0; i < v->nports; i++)
        if (v->ports[i] == port)
            return true;
    return false;
}

const struct vm *vms_named(const struct vms *v, const char *alive)
{
    const struct vm *only = NULL;

    for (size_t i = 0; i < v->count; i++) {
        if (!v->items[i].here || !vm_is_named(&v->items[i], alive))
            continue;
        if (only)
            return NULL;
        only = &v->items[i];
    }
    return only;
}

const struct vm *vms_at(const struct vms *v, int port, const char *alive)
{
    for (size_t i = 0; i < v->count; i++)
        if (v->items[i].here && listens_on(&v->items[i], port))
            return &v->items[i];
    for (size_t i = 0; alive && i < v->count; i++)
        if (v->items[i].here && !v->items[i].visible && vm_is_named(&v->items[i], alive))
            return &v->items[i];
    return NULL;
}

void vms_hint(const struct vms *v, const char *alive, struct err *e)
{
    const struct vm *first = NULL;

    for (size_t i = 0; i < v->count && !first; i++)
        first = vm_is_named(&v->items[i], alive) ? &v->items[i] : NULL;
    if (first)
        err_hint(e, "process %ld has this name, and this epmd does not know it: try -p %ld", first->ospid,
                 first->ospid);
}

/* ---- the virtual machine below a process ---- */

static long parent_of(long ospid)
{
    struct buf b = {0};
    char pid[24];
    long parent = 0;

    snprintf(pid, sizeof pid, "%ld", ospid);
    const char *line = proc_read(pid, "status", &b) ? strstr(b.data, "\nPPid:") : NULL;
    if (line)
        parent = strtol(line + strlen("\nPPid:"), NULL, 10);
    buf_release(&b);
    return parent;
}

static bool vms_has(const struct vms *v, long ospid)
{
    for (size_t i = 0; i < v->count; i++)
        if (v->items[i].ospid == ospid)
            return true;
    return false;
}

/*
 * Returns true if process `vm` is a descendant of process `ospid`, and no virtual machine of the list `v` is between
 * them. `v` may be NULL.
 */
static bool is_below(const struct vms *v, long vm, long ospid)
{
    for (int i = 0; i < ANCESTORS_MAX && (vm = parent_of(vm)) > 0 && !(v && vms_has(v, vm)); i++)
        if (vm == ospid)
            return true;
    return false;
}

bool vm_is_below(long vm, long ospid)
{
    return is_below(NULL, vm, ospid);
}

static void keep_below(struct vms *v, long ospid)
{
    size_t kept = 0;

    bool *below = mem_zalloc(v->count + 1);
    for (size_t i = 0; i < v->count; i++)
        below[i] = is_below(v, v->items[i].ospid, ospid);
    for (size_t i = 0; i < v->count; i++)
        if (below[i])
            v->items[kept++] = v->items[i];
    v->count = kept;
    free(below);
}

static bool several_below(const struct vms *v, long ospid, struct err *e)
{
    char text[300] = "";

    for (size_t i = 0; i < v->count && strlen(text) < 200; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%sprocess %ld (%.60s)", i ? ", " : "",
                 v->items[i].ospid, v->items[i].arguments.name[0] ? v->items[i].arguments.name : "no name");
    err_set(e, ERR_NODE, "process %ld started several nodes: %s", ospid, text);
    err_hint(e, "choose one with -p OSPID");
    return false;
}

/*
 * Returns the only virtual machine of the list, or the only one that has a name and accepts connections. Returns NULL
 * if there is no such machine or several.
 */
static const struct vm *only_of(const struct vms *v)
{
    const struct vm *only = NULL;
    size_t named = 0;

    if (v->count == 1)
        return &v->items[0];
    for (size_t i = 0; i < v->count; i++)
        if (v->items[i].arguments.name[0] && !v->items[i].arguments.deaf) {
            only = &v->items[i];
            named++;
        }
    return named == 1 ? only : NULL;
}

bool vm_below(long ospid, long *ret_ospid, struct err *e)
{
    struct arguments own;
    struct vms all;

    *ret_ospid = ospid;
    if (!ospid || (find_arguments(ospid, &own) && own.vm))
        return true;
    vms_find(NULL, &all);
    keep_below(&all, ospid);
    const struct vm *only = only_of(&all);
    bool ok = only || !all.count || several_below(&all, ospid, e);
    if (only)
        *ret_ospid = only->ospid;
    vms_release(&all);
    return ok;
}

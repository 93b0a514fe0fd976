/* SPDX-License-Identifier: Apache-2.0 */
#include "ssh_find.h"

#include <stdio.h>
#include <string.h>

#include "../ground/command_line.h"

#define SHOWN 200 /* bytes after which a message lists no more names */

enum epmd_answer ssh_ask_epmd(void *data, struct epmd_names *ret, struct err *e)
{
    struct ssh_epmd *s = data;
    const struct ssh_listener *at = ssh_look_at(s->look, epmd_port(), 0);
    char why[200];
    int fd;

    *ret = (struct epmd_names){0};
    if (!at)
        return EPMD_NO_DAEMON;
    if (ssh_connect(s->ssh, at->address, epmd_port(), &fd) != NET_OK)
        return EPMD_UNREACHABLE;
    const enum epmd_answer a = epmd_list_on(fd, s->deadline, ret);
    if (a == EPMD_GARBAGE && ssh_denied(s->ssh, why, sizeof why))
        ssh_denied_error(s->ssh, epmd_port(), why, e);
    return a;
}

/* ---- names ---- */

/* Copies the part of a node's name before the @. */
static void alive_of(const char *name, char ret[256])
{
    snprintf(ret, 256, "%.*s", (int)MIN(strcspn(name, "@"), (size_t)255), name);
}

static void place_name(struct place *p, const char *alive, const char *host)
{
    snprintf(p->host, sizeof p->host, "%.255s", host);
    snprintf(p->name, sizeof p->name, "%.255s@%.255s", alive, p->host);
}

/*
 * Sets the name of a node from a name without a host. The host becomes what the other host calls itself, up to the
 * first dot.
 */
static void place_alive(struct place *p, const struct ssh_places *s, const char *alive)
{
    char own[256];

    snprintf(own, sizeof own, "%.*s", (int)strcspn(s->look->host, "."), s->look->host);
    place_name(p, alive, own);
}

/*
 * Sets the process of the node. Also takes the node's name from the command line of the process, if that name has a
 * host and matches `alive` (NULL: any name), and if /proc shows the sockets of the process.
 */
static void place_vm(struct place *p, const struct vm *vm, const char *alive)
{
    const char *name = vm->arguments.name, *at = strchr(name, '@');

    p->there = vm->ospid;
    if (at && at[1] && vm->visible && (!alive || vm_is_named(vm, alive))) {
        snprintf(p->name, sizeof p->name, "%s", name);
        snprintf(p->host, sizeof p->host, "%s", at + 1);
    }
}

static void place_ports(struct place *p, const struct vm *vm)
{
    p->nports = MIN(vm->nports, ARRAY_LEN(p->ports));
    memcpy(p->ports, vm->ports, p->nports * sizeof *p->ports);
}

/*
 * Returns the process that was started with exactly this name. If there is none, returns the only process whose name
 * has `alive` before the @, or NULL.
 */
static const struct vm *vm_of_name(const struct vms *v, const char *name, const char *alive)
{
    for (size_t i = 0; i < v->count; i++)
        if (v->items[i].here && !strcmp(v->items[i].arguments.name, name))
            return &v->items[i];
    return vms_named(v, alive);
}

/* ---- errors ---- */

static void hint_epmd(const struct epmd_names *names, struct err *e)
{
    char text[SHOWN + 100] = "";

    for (size_t i = 0; i < names->count && strlen(text) < SHOWN; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.60s", i ? ", " : "", names->items[i].name);
    err_hint(e, names->count ? "it knows %s" : "it knows no node at all%s", text);
}

static bool epmd_does_not_tell(const struct ssh_places *s, const char *name, enum epmd_answer a,
                               const struct epmd_names *names, struct err *e)
{
    if (a == EPMD_OK) {
        err_set(e, ERR_NODE, "cannot connect to %.255s: epmd on %.100s knows no node of that name", name, s->host);
        hint_epmd(names, e);
    } else if (a == EPMD_NO_DAEMON) {
        err_set(e, ERR_NODE, "cannot connect to %.255s: %.100s has no process of that name and no epmd (port %d)", name,
                s->host, epmd_port());
        command_line_hint(e, "etrace --ssh", s->host, " nodes lists the nodes there");
    } else if (!e->text[0]) {
        err_set(e, ERR_NODE, "cannot connect to %.255s: port %d of %.100s does not answer as epmd", name, epmd_port(),
                s->host);
    }
    return false;
}

static bool in_another_network(const struct ssh_places *s, const struct vm *vm, struct err *e)
{
    err_set(e, ERR_NODE, "process %ld of %.100s is in another network, as in a container, which ssh does not reach",
            vm->ospid, s->host);
    err_hint(e, "run etrace on that host, or make the port of the node one of the host");
    return false;
}

static bool no_port_there(const struct ssh_places *s, const struct vm *vm, struct err *e)
{
    if (!vm->here)
        return in_another_network(s, vm, e);
    if (!vm->visible) {
        err_set(e, ERR_NODE, "cannot see the sockets of process %ld of %.100s: it belongs to another user (uid %u)",
                vm->ospid, s->host, vm->uid);
        err_hint(e, "use --ssh as that user or as root, or -n NODE with --cookie-file");
        return false;
    }
    err_set(e, ERR_NODE, "process %ld of %.100s listens on no TCP port", vm->ospid, s->host);
    hint_of_no_port(&vm->arguments, e);
    return false;
}

/* ---- from the target to a place ---- */

static bool find_there_named(const struct ssh_places *s, const struct node_target *t, struct place *p, struct err *e)
{
    char alive[256];
    const char *at = strchr(t->name, '@');
    struct epmd_names names = {0};
    enum epmd_answer a = EPMD_NO_NODE;

    if (!node_name_check(t->name, e))
        return false;
    alive_of(t->name, alive);
    if (at)
        place_name(p, alive, at + 1);
    else
        place_alive(p, s, alive);
    p->named = true;
    const struct vm *vm = vm_of_name(&s->look->vms, t->name, alive);
    const bool hears = vm && !vm->arguments.deaf && vm->nports;
    if (t->port) {
        p->ports[p->nports++] = t->port;
    } else if (hears && vm->nports == 1) {
        place_ports(p, vm);
    } else {
        *e = (struct err){0};
        a = s->ask(s->data, &names, e);
        p->ports[0] = epmd_names_port(&names, alive, strlen(alive));
        p->nports = p->by_epmd = p->ports[0] != 0;
        if (!p->nports && hears)
            place_ports(p, vm);
    }
    bool ok = p->nports || epmd_does_not_tell(s, p->name, a, &names, e);
    epmd_names_release(&names);
    if (ok && !vm)
        vm = vms_at(&s->look->vms, p->ports[0], alive);
    if (ok && vm)
        place_vm(p, vm, alive);
    return ok;
}

static const struct vm *vm_of_process(const struct vms *v, long ospid)
{
    for (size_t i = 0; i < v->count; i++)
        if (v->items[i].ospid == ospid)
            return &v->items[i];
    return NULL;
}

/*
 * Finds a node by its process. Leaves p->named false if the process has ports, because epmd and the node may use
 * another name than the command line.
 */
static bool find_there_vm(const struct ssh_places *s, const struct vm *vm, struct place *p, struct err *e)
{
    struct node_target named = {.name = vm->arguments.name};

    if (vm->here && !vm->nports && *named.name)
        return find_there_named(s, &named, p, e);
    if (!vm->here || !vm->nports)
        return no_port_there(s, vm, e);
    char alive[256];
    alive_of(vm->arguments.name, alive);
    place_ports(p, vm);
    place_alive(p, s, alive);
    if (!*alive)
        snprintf(p->name, sizeof p->name, "process %ld", vm->ospid);
    place_vm(p, vm, NULL);
    return true;
}

static bool find_there_process(const struct ssh_places *s, const struct node_target *t, struct place *p, struct err *e)
{
    const struct vm *vm = vm_of_process(&s->look->vms, t->ospid);

    if (vm)
        return find_there_vm(s, vm, p, e);
    err_set(e, ERR_NODE, "%.100s has no process %ld that runs Erlang", s->host, t->ospid);
    command_line_hint(e, "etrace --ssh", s->host, " nodes lists those that do");
    return false;
}

static bool find_there_port(const struct ssh_places *s, const struct node_target *t, struct place *p)
{
    const struct vm *vm = vms_at(&s->look->vms, t->port, NULL);

    p->ports[p->nports++] = t->port;
    snprintf(p->name, sizeof p->name, "port %d", t->port);
    snprintf(p->host, sizeof p->host, "%s", s->look->host);
    if (vm)
        place_vm(p, vm, NULL);
    return true;
}

static bool several_there(const struct ssh_places *s, const char *text, struct err *e)
{
    err_set(e, ERR_NODE, "no node was given, and several run on %.100s: %s", s->host, text);
    command_line_hint(e, "choose one with -n NODE or -p OSPID; etrace --ssh", s->host, " nodes lists them");
    return false;
}

/*
 * Finds the only node of the other host, if the user named no node. Counts the nodes that epmd knows, and other
 * processes with a name and a port.
 */
static bool find_there_only(const struct ssh_places *s, struct place *p, struct err *e)
{
    const struct vms *v = &s->look->vms;
    struct epmd_names names = {0};
    struct node_target target = {0};
    char text[SHOWN + 100] = "", only[256] = "";
    const struct vm *vm = NULL;
    size_t count = 0;

    *e = (struct err){0};
    s->ask(s->data, &names, e);
    for (size_t i = 0; i < names.count; i++, count++) {
        snprintf(only, sizeof only, "%s", names.items[i].name);
        if (strlen(text) < SHOWN)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.60s", count ? ", " : "",
                     names.items[i].name);
    }
    for (size_t i = 0; i < v->count; i++) {
        const struct vm *at = &v->items[i];
        char alive[256];
        alive_of(at->arguments.name, alive);
        if (!at->here || !at->nports || !*alive || at->arguments.deaf || epmd_names_port(&names, alive, strlen(alive)))
            continue;
        vm = at;
        if (strlen(text) < SHOWN)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.60s (process %ld)", count ? ", " : "",
                     at->arguments.name, at->ospid);
        count++;
    }
    epmd_names_release(&names);
    if (count > 1)
        return several_there(s, text, e);
    target.name = only;
    if (count == 1)
        return vm ? find_there_vm(s, vm, p, e) : find_there_named(s, &target, p, e);
    if (!e->text[0])
        err_set(e, ERR_NODE, "no node was given, and none runs on %.100s", s->host);
    if (v->count && !e->hint[0]) {
        snprintf(text, sizeof text, "%zu process%s there run%s Erlang: etrace --ssh", v->count, PLURAL_ES(v->count),
                 v->count == 1 ? "s" : "");
        command_line_hint(e, text, s->host, " nodes says why etrace cannot attach");
    }
    return false;
}

bool ssh_find(const struct ssh_places *s, const struct node_target *t, struct place *ret, struct err *e)
{
    struct place p = {0};
    bool ok = t->name    ? find_there_named(s, t, &p, e)
              : t->ospid ? find_there_process(s, t, &p, e)
              : t->port  ? find_there_port(s, t, &p)
                         : find_there_only(s, &p, e);

    if (ok && p.named && !node_name_check(p.name, e)) {
        e->status = ERR_NODE;
        return false;
    }
    if (ok)
        *ret = p;
    return ok;
}

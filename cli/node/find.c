/* SPDX-License-Identifier: Apache-2.0 */
#include "find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ground/utf8.h"
#include "epmd.h"
#include "hosts.h"
#include "netns.h"
#include "vms.h"

static void this_host(char ret[256])
{
    if (gethostname(ret, 255))
        memcpy(ret, "localhost", sizeof "localhost");
    ret[255] = 0;
    ret[strcspn(ret, ".")] = 0;
}

static bool is_this_host(const char *host)
{
    char full[256] = "";

    gethostname(full, sizeof full - 1);
    if (!strcmp(host, "localhost") || !strcmp(host, full))
        return true;
    this_host(full);
    return !strcmp(host, full);
}

bool find_is_this_host(const char *host)
{
    struct addrs addrs;

    return is_this_host(host) || (hosts_parse(host, &addrs) && addrs.count && net_is_here(&addrs.items[0]));
}

bool find_may_be_this_host(const char *host)
{
    char own[256];

    this_host(own);
    return strlen(own) == strcspn(host, ".") && !strncmp(own, host, strlen(own));
}

/*
 * Checks a node name. A name that passes is safe to print. find_node() also checks names that epmd gave, so the name of
 * every connection is safe.
 */
bool node_name_check(const char *name, struct err *e)
{
    const char *at = strchr(name, '@');
    size_t len = strlen(name);

    if (at == name || !len)
        return err_set(e, ERR_USAGE, "'%s' is not a node name: the part before the @ is empty", name);
    if (at && (!at[1] || strchr(at + 1, '@')))
        return err_set(e, ERR_USAGE, "'%s' is not a node name: it is NAME or NAME@HOST", name);
    if (len > 255 || !utf8_valid(name, len))
        return err_set(e, ERR_USAGE, "a node name has at most 255 characters in UTF-8");
    for (const char *c = name, *end = name + len; c < end;) {
        uint32_t cp = utf8_next(&c, end);
        if (cp <= ' ' || cp == '/' || !utf8_shows(cp))
            return err_set(e, ERR_USAGE,
                           "'%s' is not a node name: it contains a space, a slash or an invisible character", name);
    }
    return true;
}

/* ---- hosts ---- */

static bool find_host(struct place *p, int64_t deadline, struct err *e)
{
    enum net_status s;

    if (is_this_host(p->host)) {
        net_loopback(&p->addrs);
        struct addrs more;
        /* The node may not listen on the loopback, but only on an interface to which this host's name resolves. */
        if (strcmp(p->host, "localhost") && net_resolve(p->host, MIN(deadline, net_now() + 500), &more) == NET_OK)
            for (size_t i = 0; i < more.count && p->addrs.count < NET_ADDRS; i++)
                p->addrs.items[p->addrs.count++] = more.items[i];
        return true;
    }
    s = net_resolve(p->host, deadline, &p->addrs);
    if (s == NET_OK && p->addrs.count)
        return true;
    if (s == NET_TIMEOUT)
        return err_set(e, ERR_NODE, "cannot connect to %s: no DNS server answers for the host name %s", p->name,
                       p->host);
    if (s == NET_UNKNOWN || s == NET_OK)
        return err_set(e, ERR_NODE, "cannot connect to %s: there is no host named %s", p->name, p->host);
    return err_set(e, ERR_NODE, "cannot connect to %s: the host name %s cannot be resolved", p->name, p->host);
}

/* ---- epmd ---- */

static void hint_names(const struct addr *a, int64_t deadline, struct err *e)
{
    struct epmd_names names;
    char text[200] = "";

    if (epmd_list(a, 1, deadline, &names) != EPMD_OK)
        return;
    for (size_t i = 0; i < names.count; i++) {
        size_t len = strlen(text);
        if (len + strlen(names.items[i].name) + 8 > sizeof text) {
            strcat(text, ", …");
            break;
        }
        snprintf(text + len, sizeof text - len, "%s%s", i ? ", " : "", names.items[i].name);
    }
    err_hint(e, names.count ? "it knows %s" : "it knows no node at all%s", text);
    epmd_names_release(&names);
}

static bool epmd_failed(const struct place *p, enum epmd_answer a, const struct addr *asked, int64_t deadline,
                        struct err *e)
{
    switch (a) {
    case EPMD_NO_DAEMON:
        err_set(e, ERR_NODE, "cannot connect to %s: no epmd runs on %s (port %d)", p->name, p->host, epmd_port());
        err_hint(e, "no distributed node runs there, or it runs without epmd: then use --port PORT");
        break;
    case EPMD_UNREACHABLE:
        err_set(e, ERR_NODE, "cannot connect to %s: the host %s cannot be reached", p->name, p->host);
        break;
    case EPMD_NO_PORT:
        return net_no_port(p->name, e);
    case EPMD_TIMEOUT:
        err_set(e, ERR_NODE, "cannot connect to %s: epmd on %s does not answer", p->name, p->host);
        break;
    case EPMD_NO_NODE:
        err_set(e, ERR_NODE, "cannot connect to %s: epmd on %s knows no node of that name", p->name, p->host);
        hint_names(asked, deadline, e);
        break;
    case EPMD_OK:
    case EPMD_GARBAGE:
        err_set(e, ERR_NODE, "cannot connect to %s: port %d of %s answers, but not as epmd", p->name, epmd_port(),
                p->host);
        break;
    }
    return false;
}

static bool is_here(const struct place *p)
{
    for (size_t i = 0; i < p->addrs.count; i++)
        if (net_is_here(&p->addrs.items[i]))
            return true;
    return false;
}

/*
 * Takes the ports of the process of this host that was started with the name, if exactly one was. Any user can start a
 * process with these arguments. This is safe, because etrace sends a cookie only where trust.h allows it, and the
 * handshake compares the name.
 */
static bool take_ports_of_process(struct place *p, struct vms *named, const char *alive)
{
    vms_find_ports(named);
    const struct vm *vm = vms_named(named, alive);

    if (vm && !vm->arguments.deaf) {
        p->nports = MIN(vm->nports, ARRAY_LEN(p->ports));
        memcpy(p->ports, vm->ports, p->nports * sizeof *p->ports);
    }
    return p->nports > 0;
}

/*
 * Looks for the node's port among the processes of this host. On failure, if a process has the name, adds a hint to *e,
 * which is the error of epmd.
 */
static bool find_port_without_epmd(struct place *p, const char *alive, struct err *e)
{
    struct vms named;

    vms_find(alive, &named);
    bool found = take_ports_of_process(p, &named, alive);
    if (!found)
        vms_hint(&named, alive, e);
    vms_release(&named);
    return found;
}

static bool find_port(struct place *p, const char *alive, int64_t deadline, struct err *e)
{
    struct addr asked = p->addrs.items[0];
    /* The other addresses remain: the node may listen on another address than its epmd. */
    const enum epmd_answer answer = epmd_lookup_any(&p->addrs, alive, deadline, &p->ports[0], &asked);

    if (answer == EPMD_OK) {
        p->nports = 1;
        p->by_epmd = true;
        return true;
    }
    epmd_failed(p, answer, &asked, deadline, e);
    return (answer == EPMD_NO_DAEMON || answer == EPMD_NO_NODE) && is_here(p) && find_port_without_epmd(p, alive, e);
}

static enum epmd_answer local_names(int64_t deadline, struct epmd_names *ret)
{
    struct addrs a = {0};

    net_loopback(&a);
    return epmd_list_any(&a, deadline, ret);
}

/* ---- from the target to a place ---- */

/*
 * Replaces name and host by those that a local node uses for itself, and adds the addresses of this host name. If the
 * user gave no host, etrace assumed the name of this host. But the node's certificate is for the host in the node's own
 * name, and the node may listen only at the addresses of that host.
 */
static void take_full_name(struct place *p, const char *full, int64_t deadline)
{
    struct addrs more;
    const char *at = strchr(full, '@');

    if (!at || !at[1] || !strcmp(full, p->name))
        return;
    snprintf(p->name, sizeof p->name, "%s", full);
    snprintf(p->host, sizeof p->host, "%s", at + 1);
    if (net_resolve(p->host, MIN(deadline, net_now() + 500), &more) == NET_OK)
        for (size_t i = 0; i < more.count && p->addrs.count < NET_ADDRS; i++)
            p->addrs.items[p->addrs.count++] = more.items[i];
}

/*
 * Finds the node's process on this host: by its name `alive` before the @, or else by its port. `alive` may be NULL. If
 * `rename` is true, takes the node's full name from the process.
 */
static void find_ospid(struct place *p, const char *alive, bool rename, int64_t deadline)
{
    struct vms vms;

    if (!is_here(p))
        return;
    vms_find(alive, &vms);
    const struct vm *vm = alive ? vms_named(&vms, alive) : NULL;
    if (!vm) {
        vms_find_ports(&vms);
        vm = vms_at(&vms, p->ports[0], alive);
    }
    if (vm) {
        p->ospid = vm->ospid;
        if (rename && vm->visible && (!alive || vm_is_named(vm, alive)))
            take_full_name(p, vm->arguments.name, deadline);
    }
    vms_release(&vms);
}

static bool find_named(const struct node_target *t, int64_t deadline, struct place *p, struct err *e)
{
    char alive[256];
    const char *at = strchr(t->name, '@');

    if (!node_name_check(t->name, e))
        return false;
    snprintf(alive, sizeof alive, "%.*s", (int)(at ? at - t->name : (ptrdiff_t)strlen(t->name)), t->name);
    if (at)
        snprintf(p->host, sizeof p->host, "%s", at + 1);
    else
        this_host(p->host);
    snprintf(p->name, sizeof p->name, "%s@%.255s", alive, p->host);
    p->named = true;
    if (!find_host(p, deadline, e))
        return false;
    net_prefer(&p->addrs, &t->first);
    if (t->port)
        p->ports[p->nports++] = t->port;
    else if (!find_port(p, alive, deadline, e))
        return false;
    /* The node's process is needed for the host in the node's name, and for the node's cookie. */
    if (!at || !t->cookie_file)
        find_ospid(p, alive, !at, deadline);
    return true;
}

static bool none_here(enum epmd_answer a, const struct vms *vms, struct err *e)
{
    if (a == EPMD_NO_PORT)
        return net_no_port("the epmd on this host", e);
    if (a == EPMD_NO_DAEMON || a == EPMD_UNREACHABLE)
        err_set(e, ERR_NODE, "no node was given, and no epmd runs on this host (port %d)", epmd_port());
    else if (a == EPMD_OK)
        err_set(e, ERR_NODE, "no node was given, and none runs on this host");
    else
        return err_set(e, ERR_NODE, "no node was given, and the epmd port of this host does not answer as epmd");
    if (vms->count == 1)
        err_hint(e, "process %ld runs Erlang: -p %ld attaches to it, or says why it cannot", vms->items[0].ospid,
                 vms->items[0].ospid);
    else if (vms->count)
        err_hint(e, "%zu processes of this host run Erlang: etrace nodes says how to attach, or why it cannot",
                 vms->count);
    else
        err_hint(e, "give -n NODE, or -p OSPID; only a node started with -sname or -name has a name");
    return false;
}

static void place_local(struct place *p, const char *alive, int port)
{
    this_host(p->host);
    snprintf(p->name, sizeof p->name, "%s@%.255s", alive, p->host);
    p->ports[p->nports++] = port;
}

static bool several_here(const char *text, struct err *e)
{
    err_set(e, ERR_NODE, "no node was given, and several run on this host: %s", text);
    err_hint(e, "choose one with -n NODE or -p OSPID; etrace nodes lists them");
    return false;
}

static bool find_process(const struct node_target *t, int64_t deadline, struct place *p, struct err *e);

/* Takes the only node of this host that can be reached without epmd. `a` is the answer of epmd, for the error. */
static bool find_only_process(enum epmd_answer a, int64_t deadline, struct place *p, struct err *e)
{
    struct vms vms;
    struct node_target target = {0};
    char text[300] = "";
    size_t count = 0;

    vms_find(NULL, &vms);
    vms_find_ports(&vms);
    for (size_t i = 0; i < vms.count; i++) {
        const struct vm *vm = &vms.items[i];
        if (!vm->here || !vm->nports || !vm->arguments.name[0] || vm->arguments.deaf)
            continue;
        target.ospid = vm->ospid;
        if (strlen(text) < 200)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.60s (process %ld)", count ? ", " : "",
                     vm->arguments.name, vm->ospid);
        count++;
    }
    bool ok = count == 1  ? find_process(&target, deadline, p, e)
              : count > 1 ? several_here(text, e)
                          : none_here(a, &vms, e);
    vms_release(&vms);
    return ok;
}

static bool find_only(int64_t deadline, struct place *p, struct err *e)
{
    struct epmd_names names = {0};
    enum epmd_answer a = local_names(deadline, &names);
    char text[300] = "";
    bool ok;

    if (a == EPMD_OK && names.count == 1) {
        place_local(p, names.items[0].name, names.items[0].port);
        p->by_epmd = p->named = true;
        ok = find_host(p, deadline, e);
        if (ok)
            find_ospid(p, names.items[0].name, true, deadline);
    } else if (names.count) {
        for (size_t i = 0; i < names.count && strlen(text) < 200; i++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.60s", i ? ", " : "", names.items[i].name);
        ok = several_here(text, e);
    } else {
        ok = find_only_process(a, deadline, p, e);
    }
    epmd_names_release(&names);
    return ok;
}

/* Finds the node at a port. Its name comes from its process, or else from the handshake. */
static bool find_at_port(const struct node_target *t, int64_t deadline, struct place *p, struct err *e)
{
    this_host(p->host);
    snprintf(p->name, sizeof p->name, "port %d", t->port);
    p->ports[p->nports++] = t->port;
    if (!find_host(p, deadline, e))
        return false;
    find_ospid(p, NULL, true, deadline);
    return true;
}

static bool find_process(const struct node_target *t, int64_t deadline, struct place *p, struct err *e)
{
    struct epmd_names names = {0};
    struct arguments arguments;
    int ports[ARRAY_LEN(p->ports)];
    size_t count;

    if (find_arguments(t->ospid, &arguments) && arguments.deaf) {
        err_set(e, ERR_NODE,
                "process %ld is a node that accepts no connections: it was started with -dist_listen false", t->ospid);
        err_hint(e, "start it without that; or trace it from inside, with the module trace");
        return false;
    }
    if (local_names(deadline, &names) != EPMD_OK)
        names = (struct epmd_names){0};
    if (!find_listening(t->ospid, NULL, ports, ARRAY_LEN(ports), &count, e)) {
        /*
         * The sockets of another user's process are hidden. Take the port from its arguments, or ask epmd for the name
         * in its arguments. trust.h decides whether a cookie may go there.
         */
        ports[0] =
            arguments.port ? arguments.port : epmd_names_port(&names, arguments.name, strcspn(arguments.name, "@"));
        count = 1;
        if (!ports[0]) {
            epmd_names_release(&names);
            return false;
        }
    }
    for (size_t i = 0; i < count && !p->nports; i++)
        for (size_t j = 0; j < names.count && !p->nports; j++)
            if (names.items[j].port == ports[i]) {
                place_local(p, names.items[j].name, ports[i]);
                p->by_epmd = p->named = true;
            }
    epmd_names_release(&names);
    if (!p->nports) {
        p->nameless = arguments.vm && !arguments.name[0];
        this_host(p->host);
        snprintf(p->name, sizeof p->name, "process %ld", t->ospid);
        for (size_t i = 0; i < count; i++)
            p->ports[p->nports++] = ports[i];
    }
    if (!find_host(p, deadline, e))
        return false;
    take_full_name(p, arguments.name, deadline);
    p->ospid = t->ospid;
    return true;
}

bool find_node(const struct node_target *t, int64_t deadline, struct place *ret, struct err *e)
{
    struct place p = {0};
    bool ok = t->name    ? find_named(t, deadline, &p, e)
              : t->ospid ? find_process(t, deadline, &p, e)
              : t->port  ? find_at_port(t, deadline, &p, e)
                         : find_only(deadline, &p, e);

    if (ok && p.named && !node_name_check(p.name, e)) {
        e->status = ERR_NODE;
        return false;
    }
    if (ok)
        *ret = p;
    return ok;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "way.h"

#include <stdio.h>
#include <string.h>

#include "netns.h"
#include "ssh_find.h"
#include "vms.h"

/* Time limit with ssh: for a dozen round trips, and for the programs that the other host starts. */
#define THERE_MS 15000

struct way_kind {
    int64_t ms;
    bool (*begin)(struct way *w, struct err *e);
    bool (*find)(struct way *w, int64_t deadline, struct place *ret, struct err *e);
    enum net_status (*connect)(const struct way *w, const struct place *p, const struct addr *to, int port,
                               int64_t deadline, int *ret_fd, struct trust_end *ret_end);
    bool (*denied)(const struct way *w, int port, struct err *e);
    void (*end)(struct way *w);
};

/* ---- this host, and the containers on it ---- */

static bool here_begin(struct way *w, struct err *e)
{
    return vm_below(w->target.ospid, &w->target.ospid, e) && netns_enter(w->target.ospid, &w->back, e);
}

static bool here_find(struct way *w, int64_t deadline, struct place *ret, struct err *e)
{
    return find_node(&w->target, deadline, ret, e);
}

static enum net_status here_connect(const struct way *w, const struct place *p UNUSED, const struct addr *to, int port,
                                    int64_t deadline, int *ret_fd, struct trust_end *ret_end)
{
    *ret_end = (struct trust_end){.typed = w->target.typed};
    return net_connect(to, port, deadline, ret_fd);
}

static bool here_denied(const struct way *w UNUSED, int port UNUSED, struct err *e UNUSED)
{
    return false;
}

static void here_end(struct way *w)
{
    netns_leave(w->back);
}

/* ---- ssh ---- */

static bool there_begin(struct way *w, struct err *e)
{
    w->ssh = ssh_open(w->target.ssh, e);
    return w->ssh != NULL;
}

static bool there_find(struct way *w, int64_t deadline, struct place *ret, struct err *e)
{
    struct ssh_epmd epmd = {.ssh = w->ssh, .look = &w->look, .deadline = deadline};
    const struct ssh_places places = {.host = w->target.ssh, .look = &w->look, .ask = ssh_ask_epmd, .data = &epmd};

    if (!ssh_look(w->ssh, &w->look, e) || !ssh_find(&places, &w->target, ret, e))
        return false;
    ret->addrs.count = 0;
    net_loopback(&ret->addrs); /* ssh_connect() knows the addresses; connect.c needs one to try */
    ret->addrs.count = 1;
    return true;
}

static enum net_status there_connect(const struct way *w, const struct place *p, const struct addr *to UNUSED, int port,
                                     int64_t deadline UNUSED, int *ret_fd, struct trust_end *ret_end)
{
    const struct ssh_listener *at = ssh_look_at(&w->look, port, p->there);

    *ret_end = (struct trust_end){.ssh = w->ssh, .listener = at, .user = w->look.uid, .vms = &w->look.vms};
    if (!at && w->look.count)
        return NET_REFUSED;
    return ssh_connect(w->ssh, at ? at->address : "127.0.0.1", port, ret_fd);
}

static bool there_denied(const struct way *w, int port, struct err *e)
{
    char why[200];

    return ssh_denied(w->ssh, why, sizeof why) && (ssh_denied_error(w->ssh, port, why, e), true);
}

static void there_end(struct way *w)
{
    ssh_look_release(&w->look);
}

/* ---- the table ---- */

static const struct way_kind here = {NODE_CONNECT_MS, here_begin, here_find, here_connect, here_denied, here_end};
static const struct way_kind there = {THERE_MS, there_begin, there_find, there_connect, there_denied, there_end};

bool way_begin(struct way *w, const struct node_target *t, struct err *e)
{
    *w = (struct way){.kind = t->ssh ? &there : &here, .target = *t, .back = -1};
    return w->kind->begin(w, e);
}

int64_t way_ms(const struct way *w)
{
    return w->kind->ms;
}

bool way_find(struct way *w, int64_t deadline, struct place *ret, struct err *e)
{
    return w->kind->find(w, deadline, ret, e);
}

enum net_status way_connect(const struct way *w, const struct place *p, const struct addr *to, int port,
                            int64_t deadline, int *ret_fd, struct trust_end *ret_end)
{
    return w->kind->connect(w, p, to, port, deadline, ret_fd, ret_end);
}

bool way_denied(const struct way *w, int port, struct err *e)
{
    return w->kind->denied(w, port, e);
}

void way_end(struct way *w)
{
    w->kind->end(w);
}

bool node_resolve(const struct node_target *t, char ret_name[NODE_NAME_MAX + 1], int *ret_port, long *ret_ospid,
                  struct err *e)
{
    struct way way;
    struct place p;

    bool ok = way_begin(&way, t, e) && way_find(&way, net_now() + way_ms(&way), &p, e);
    way_end(&way);
    if (!ok)
        return false;
    memcpy(ret_name, p.name, sizeof p.name);
    *ret_port = p.ports[0];
    *ret_ospid = t->ssh ? p.there : p.ospid;
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etrace nodes: lists the nodes that epmd knows and, on this host, the OS processes that run an Erlang VM. Shows how to
 * attach to each node, or why etrace cannot.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ground/aside.h"
#include "../ground/command_line.h"
#include "../ground/json.h"
#include "../ground/mem.h"
#include "../ground/tty.h"
#include "../node/connect.h"
#include "../node/epmd.h"
#include "../node/knock.h"
#include "../node/ssh_find.h"
#include "../node/vms.h"
#include "../trace/target.h"
#include "../views/grid_order.h"
#include "cmd.h"

#define HOST_MS 2000
#define OTP_LEAST 27
#define AT_ONCE 32         /* limit for the number of nodes that are tried at the same time */
#define TLS_SILENT_MS 1000 /* after this time without an answer over TLS, the node is also tried without TLS */

enum {
    COL_NODE,
    COL_HOST,
    COL_PORT,
    COL_PID,
    COL_OTP,
    COL_EPMD,
    COL_REACHABLE,
    COL_TLS,
    COL_ATTACH,
    COL_REASON,
    COL_HINT,
    COL_STATE,
    COLUMNS
};

static const struct grid_column columns[COLUMNS] = {
    [COL_NODE] = {.title = "NODE", .key = "node", .least = 24, .keep = GRID_WHOLE},
    [COL_HOST] = {.key = "host"},
    [COL_PORT] = {.title = "PORT", .key = "port", .number = true, .least = 5, .rank = 1},
    [COL_PID] = {.title = "PID", .key = "os_pid", .number = true, .least = 7, .rank = 3},
    [COL_OTP] = {.title = "OTP", .key = "otp", .number = true, .rank = 2},
    [COL_EPMD] = {.key = "epmd", .number = true},
    [COL_REACHABLE] = {.key = "reachable", .number = true},
    [COL_TLS] = {.key = "tls", .number = true},
    [COL_ATTACH] = {.key = "attach"},
    [COL_REASON] = {.key = "reason"},
    [COL_HINT] = {.key = "hint"},
    [COL_STATE] = {.title = "STATE", .also = "state", .wraps = true},
};

static const struct grid_table nodes_table = GRID_TABLE(columns);

struct nodes_opts {
    const char *cookie_file, *ssh, *sort;
    bool json;
    int as;                /* enum grid_as */
    struct node_opts node; /* only its TLS options are used */
};

#define ROW(...) OPT_ROW(struct nodes_opts, __VA_ARGS__)
static const struct opt rows[] = {
    ROW(0, "cookie-file", "FILE", OPT_TEXT, cookie_file,
        "default: that of each node, as for -n; - reads standard input"),
    ROW(0, "ssh", "[USER@]HOST", OPT_TEXT, ssh, "log in to this host with ssh and list the nodes there"),
    ROW(0, "json", NULL, OPT_FLAG, json, "one object per line"),
    ROW(0, "as", GRID_AS, OPT_CHOICE, as, "the format: a table (text), --json, or columns for spreadsheets"),
    OPT_SORT(struct nodes_opts, sort, "epmd's nodes first", &nodes_table),
};
static const struct opt_group nodes_group = {"Options", rows, ARRAY_LEN(rows)};

struct listing {
    struct ctx *ctx;
    const struct nodes_opts *o;
    struct target target; /* how to connect to a node; each trial fills in the name */
    struct buf hinted;    /* hints that were printed already, each with a NUL */
    size_t count;
};

/* A node of the list, as it is known before any attempt to connect. */
struct entry {
    const struct epmd_name *known; /* NULL: epmd does not know the node */
    const struct vm *vm;           /* the OS process of the node; NULL: not known */
};

/*
 * Ways to connect to a node: ASKED uses the TLS options, PLAINLY does not use TLS. epmd does not tell which nodes use
 * TLS, so a node that does not answer over TLS is also tried without it.
 */
enum { ASKED, PLAINLY, WAYS };

struct trial {
    struct entry entry;
    char name[NODE_NAME_MAX + 1]; /* "": unknown */
    struct loop *loop;
    struct knock *knocks[WAYS]; /* attempts that are under way */
    struct loop_fd fds[WAYS];
    int64_t plainly_at; /* net_now() time of the attempt without TLS; -1: it has begun, or is not needed */
    bool ok, plain;
    bool unfit; /* the node is not tried; why[ASKED] has the reason */
    struct err why[WAYS];
    const struct err *said; /* the error to print; NULL: the node can be traced */
    bool hints;             /* print the hint for this node */
};

/* Returns the port for the table; 0: unknown. */
static int port_of(const struct entry *n)
{
    return n->known ? n->known->port : n->vm->nports == 1 ? n->vm->ports[0] : 0;
}

/* ---- the table ---- */

struct nodes_rows {
    const struct listing *listing;
    const char *host;
    const struct trial *trials;
};

static void nodes_put_name(struct grid_cell *cell, const char *name)
{
    if (cell->as == GRID_TEXT && !*name)
        buf_char(&cell->text, '-');
    else
        grid_put_name(cell, raw_text(name));
}

static void nodes_put_number(struct grid_cell *cell, long number)
{
    if (number || cell->as != GRID_TEXT)
        buf_printf(&cell->text, "%ld", number);
}

static void nodes_put_attach(struct buf *b, const char *ssh, const struct trial *t)
{
    struct command_line options = {0};

    if (ssh) {
        command_line_add(&options, "--ssh");
        command_line_word(&options, ssh);
        command_line_add(&options, " ");
    }
    if (t->entry.known) {
        command_line_add(&options, "-n");
        command_line_word(&options, t->name);
    } else {
        buf_printf(&options.text, "-p %ld", t->entry.vm->ospid);
    }
    buf_puts(b, command_line_text(&options));
    command_line_release(&options);
}

static void nodes_put_state(struct buf *b, const struct trial *t)
{
    buf_puts(b, t->said ? t->said->text : t->plain ? "ok, without TLS" : "ok");
    if (!t->said && !t->entry.known)
        buf_printf(b, ", with -p %ld", t->entry.vm->ospid);
    if (t->hints)
        buf_printf(b, "\nhint: %s", t->said->hint);
}

static void nodes_put_cell(const void *data, size_t row, size_t column, struct grid_cell *cell)
{
    const struct nodes_rows *x = data;
    const struct trial *t = &x->trials[row];
    const struct vm *vm = t->entry.vm;

    switch (column) {
    case COL_NODE:
        nodes_put_name(cell, t->name);
        break;
    case COL_HOST:
        grid_put_name(cell, raw_text(x->host));
        break;
    case COL_PORT:
        nodes_put_number(cell, port_of(&t->entry));
        break;
    case COL_PID:
        if (vm)
            nodes_put_number(cell, vm->ospid);
        break;
    case COL_OTP:
        if (vm && vm->arguments.otp)
            nodes_put_number(cell, vm->arguments.otp);
        break;
    case COL_EPMD:
        json_bool(&cell->text, t->entry.known != NULL);
        break;
    case COL_REACHABLE:
        json_bool(&cell->text, !t->said);
        break;
    case COL_TLS:
        if (!t->said)
            json_bool(&cell->text, x->listing->target.node.tls && !t->plain);
        break;
    case COL_ATTACH:
        if (!t->said)
            nodes_put_attach(&cell->text, x->listing->o->ssh, t);
        break;
    case COL_REASON:
        buf_puts(&cell->text, t->said ? t->said->text : "");
        break;
    case COL_HINT:
        buf_puts(&cell->text, t->said ? t->said->hint : "");
        break;
    default:
        nodes_put_state(&cell->text, t);
        break;
    }
}

static void nodes_print(struct listing *l, const char *host, const struct trial *trials, size_t n)
{
    const struct nodes_rows rows_of = {l, host, trials};
    struct grid g = {columns, COLUMNS, nodes_put_cell, &rows_of, n, .continued = l->count > 0};
    struct buf b = {0};

    g.width = tty_is(STDOUT_FILENO) ? tty_columns(STDOUT_FILENO) : 0;
    grid_order(&g, &(struct grid_sort){l->o->sort, NULL});
    grid_print(&g, (enum grid_as)l->o->as, "node", &b);
    grid_release(&g);
    out_take(l->ctx->out, &b);
    buf_release(&b);
    l->count += n;
}

/*
 * Removes "cannot connect to NAME: " from the beginning of the error, because the row already has the name. If `name`
 * is NULL, removes any name that does not contain ": ".
 */
static void cut_name(struct err *e, const char *name)
{
    static const char begin[] = "cannot connect to ";
    const char *rest = e->text + sizeof begin - 1;

    if (strncmp(e->text, begin, sizeof begin - 1) || (name && strncmp(rest, name, strlen(name))))
        return;
    rest = strstr(rest + (name ? strlen(name) : 0), ": ");
    if (rest && rest[2])
        memmove(e->text, rest + 2, strlen(rest + 2) + 1);
}

static void on_asked(void *owner);
static void on_plainly(void *owner);

static void knock_at(struct listing *l, struct trial *t, int way, const struct addr *at)
{
    struct node_target target = l->target.node;

    if (t->entry.known) {
        target.name = t->name;
        target.first = *at;
        /* known from epmd already, so the attempt need not ask epmd through ssh */
        target.port = target.ssh ? t->entry.known->port : 0;
    } else {
        target.ospid = t->entry.vm->ospid;
    }
    if (way == PLAINLY)
        target.tls = NULL;
    t->knocks[way] = knock_start(&target);
    if (!t->knocks[way]) {
        err_set(&t->why[way], ERR_RUN, "cannot start a thread to connect");
        return;
    }
    t->fds[way] = (struct loop_fd){.fd = knock_fd(t->knocks[way]),
                                   .want_read = true,
                                   .ready = way == ASKED ? on_asked : on_plainly,
                                   .owner = t};
    loop_add(t->loop, &t->fds[way]);
}

static void end_knock(struct trial *t, int way)
{
    if (!t->knocks[way])
        return;
    loop_remove(t->loop, &t->fds[way]);
    knock_free(t->knocks[way]);
    t->knocks[way] = NULL;
}

static bool is_over(const struct trial *t)
{
    return t->ok || t->unfit || (!t->knocks[ASKED] && !t->knocks[PLAINLY] && t->plainly_at < 0);
}

static void take_answer(struct trial *t, int way)
{
    struct node_conn conn = {0};

    bool ok = knock_answer(t->knocks[way], &conn, &t->why[way]);
    end_knock(t, way);
    if (ok)
        stream_close(&conn.stream);
    if (t->ok)
        return;
    if (ok) {
        memcpy(t->name, conn.node, sizeof t->name);
        t->ok = true;
        t->plain = way == PLAINLY;
    } else if (way == ASKED && t->why[way].refused) {
        t->plainly_at = -1; /* do not try without TLS: the node has answered, and refused */
    } else if (way == ASKED && t->plainly_at >= 0) {
        t->plainly_at = net_now();
    }
}

static void on_asked(void *owner)
{
    take_answer(owner, ASKED);
}

static void on_plainly(void *owner)
{
    take_answer(owner, PLAINLY);
}

/*
 * Returns true if the hint was not printed yet, and adds it to the printed ones. So each hint is printed only once,
 * below the first node that it applies to.
 */
static bool nodes_add_hint(struct listing *l, const char *hint)
{
    const size_t size = strlen(hint) + 1;

    if (size == 1 || (l->hinted.len && memmem(l->hinted.data, l->hinted.len, hint, size)))
        return false;
    buf_add(&l->hinted, hint, size);
    return true;
}

static void nodes_finish(struct listing *l, struct trial *t)
{
    const bool asked = t->unfit || !l->target.node.tls || t->why[ASKED].refused || !*t->why[PLAINLY].text;
    struct err *why = &t->why[asked ? ASKED : PLAINLY];

    for (int way = 0; way < WAYS; way++)
        end_knock(t, way);
    if (t->ok)
        return;
    if (!t->unfit)
        cut_name(why, t->entry.known ? t->name : NULL);
    t->said = why;
    t->hints = nodes_add_hint(l, why->hint);
}

/* Runs the loop until an event arrives or the next attempt is due. Starts attempts without TLS that are due. */
static void wait_for_one(struct listing *l, struct trial *trials, size_t n, const struct addr *at)
{
    int64_t next = net_now() + NODE_CONNECT_MS;

    for (size_t i = 0; i < n; i++) {
        struct trial *t = &trials[i];
        if (is_over(t))
            continue;
        if (t->plainly_at >= 0 && net_now() >= t->plainly_at) {
            t->plainly_at = -1;
            knock_at(l, t, PLAINLY, at);
        }
        next = t->plainly_at >= 0 ? MIN(next, t->plainly_at) : next;
    }
    loop_step(&l->ctx->loop, next);
}

/* Returns true, with the reason as an error, if it is clear without connecting that the node cannot be traced. */
static bool report_unfit(const struct entry *n, const char *ssh, struct err *e)
{
    const struct vm *vm = n->vm;

    if (!vm)
        return false;
    const struct arguments *a = &vm->arguments;
    if (a->otp && a->otp < OTP_LEAST) {
        err_set(e, ERR_NODE, "the node runs OTP %d; etrace needs OTP %d or newer there", a->otp, OTP_LEAST);
        err_hint(e, OLD_OTP_HINT);
    } else if (a->deaf) {
        err_set(e, ERR_NODE, "it accepts no connections: it was started with -dist_listen false");
        err_hint(e, "start it without that; or trace it from inside, with the module trace");
    } else if (n->known) {
        return false;
    } else if (ssh && !vm->here) {
        err_set(e, ERR_NODE, "it is in another network, as in a container, which ssh does not reach");
    } else if (ssh && !vm->visible && !vm->nports) {
        err_set(e, ERR_NODE, "its sockets are hidden, because it belongs to another user (uid %u)", vm->uid);
        err_hint(e, "use --ssh as that user or as root");
    } else if (!vm->visible && !vm->nports && !geteuid()) {
        err_set(e, ERR_NODE, "its sockets are hidden, although etrace runs as root");
        err_hint(e, HIDDEN_HINT);
    } else if (!vm->visible && !vm->nports) {
        err_set(e, ERR_NODE, "its sockets are hidden, because it belongs to another user (uid %u)", vm->uid);
        err_hint(e, "run etrace as that user or as root: sudo etrace -p %ld", vm->ospid);
    } else if (!a->name[0] || !strcmp(a->name, "undefined")) {
        err_set(e, ERR_NODE, "no distribution: it was started without -sname and -name");
        hint_of_no_port(a, e);
    } else if (!vm->nports) {
        err_set(e, ERR_NODE, "it listens on no TCP port");
        hint_of_no_port(a, e);
    } else {
        return false;
    }
    return true;
}

static void begin_trial(struct listing *l, struct trial *t, const char *host, bool local, const struct addr *at)
{
    const struct entry *n = &t->entry;
    const char *given = n->vm ? n->vm->arguments.name : "";

    if (!n->known)
        snprintf(t->name, sizeof t->name, "%s", given);
    else if (local && n->vm && strchr(given, '@') && vm_is_named(n->vm, n->known->name))
        snprintf(t->name, sizeof t->name, "%s", given);
    else
        snprintf(t->name, sizeof t->name, "%s@%.255s", n->known->name, host);
    t->loop = &l->ctx->loop;
    t->plainly_at = l->target.node.tls ? net_now() + TLS_SILENT_MS : -1;
    t->unfit = report_unfit(n, l->o->ssh, &t->why[ASKED]);
    if (!t->unfit)
        knock_at(l, t, ASKED, at);
}

/* Tries to connect to the nodes at the same time. */
static void try_nodes(struct listing *l, const char *host, bool local, const struct addr *at,
                      const struct entry *entries, struct trial *trials, size_t n)
{
    size_t left = 0;

    for (size_t i = 0; i < n; i++) {
        trials[i].entry = entries[i];
        begin_trial(l, &trials[i], host, local, at);
        left += !is_over(&trials[i]);
    }
    while (left) {
        wait_for_one(l, trials, n, at);
        left = 0;
        for (size_t i = 0; i < n; i++)
            left += !is_over(&trials[i]);
    }
    for (size_t i = 0; i < n; i++)
        nodes_finish(l, &trials[i]);
}

/* Prints the nodes in the order of `entries` as soon as AT_ONCE of them are known, or all together with --sort. */
static void list_nodes(struct listing *l, const char *host, bool local, const struct addr *at,
                       const struct entry *entries, size_t n)
{
    struct trial *trials = mem_zalloc((n + 1) * sizeof *trials);
    size_t done = 0, printed = 0;

    while (done < n && !l->ctx->interrupts) {
        const size_t some = MIN(n - done, AT_ONCE);
        try_nodes(l, host, local, at, entries + done, trials + done, some);
        done += some;
        if (done == n || !l->o->sort) {
            nodes_print(l, host, trials + printed, done - printed);
            printed = done;
        }
        loop_step(&l->ctx->loop, 0); /* handles signals that have arrived */
    }
    free(trials);
}

static bool cmd_nodes_failed(const char *host, enum epmd_answer a, struct err *e)
{
    if (a == EPMD_NO_PORT)
        return net_no_port(host, e);
    if (a == EPMD_TIMEOUT || a == EPMD_UNREACHABLE)
        return err_set(e, ERR_NODE, "%s: epmd does not answer on port %d", host, epmd_port());
    return err_set(e, ERR_NODE, "%s: port %d answers, but not as epmd", host, epmd_port());
}

/* Names of nodes on one host, from its epmd, and the VMs on it: those of this host, or of the host of --ssh. */
struct host_names {
    const char *host; /* NULL: this host */
    const char *ssh;  /* the host of --ssh; NULL: not used */
    struct addrs addrs;
    bool resolved;
    enum epmd_answer answer;
    struct epmd_names names;
    struct vms vms;
    char own[256]; /* the name of the host of --ssh, as the host itself knows it */
    bool ok;       /* false: the host of --ssh did not answer, and `why` has the error */
    struct err why;
};

/* Asks the host of --ssh for its VMs and for the names that its epmd knows. */
static void look_there(struct host_names *h)
{
    struct ssh *ssh = ssh_open(h->ssh, &h->why);
    struct ssh_look look = {0};

    h->ok = ssh && ssh_look(ssh, &look, &h->why);
    if (!h->ok)
        return;
    h->why = (struct err){0};
    struct ssh_epmd epmd = {.ssh = ssh, .look = &look, .deadline = net_now() + HOST_MS};
    h->answer = ssh_ask_epmd(&epmd, &h->names, &h->why);
    snprintf(h->own, sizeof h->own, "%s", look.host);
    h->vms = look.vms;
    look.vms = (struct vms){0};
    ssh_look_release(&look);
}

static void look_up(void *data)
{
    struct host_names *h = data;
    int64_t deadline = net_now() + HOST_MS;

    h->resolved = true;
    if (h->ssh) {
        look_there(h);
        return;
    }
    h->resolved = !h->host || net_resolve(h->host, deadline, &h->addrs) == NET_OK;
    if (h->resolved)
        h->answer = epmd_list_any(&h->addrs, deadline, &h->names);
    if (!h->host)
        vms_find(NULL, &h->vms), vms_find_ports(&h->vms);
}

/* Lists the names from epmd, then the VMs that have none of these names. The caller frees the result. */
static struct entry *entries_of(const struct host_names *h, size_t *ret_count)
{
    struct entry *all = mem_zalloc((h->names.count + h->vms.count + 1) * sizeof *all);
    size_t n = 0;

    for (size_t i = 0; i < h->names.count; i++)
        all[n++] = (struct entry){&h->names.items[i], vms_at(&h->vms, h->names.items[i].port, h->names.items[i].name)};
    for (size_t i = 0; i < h->vms.count; i++) {
        bool known = false;
        for (size_t j = 0; j < h->names.count && !known; j++)
            known = all[j].vm == &h->vms.items[i];
        if (!known)
            all[n++].vm = &h->vms.items[i];
    }
    *ret_count = n;
    return all;
}

static bool list_host(struct listing *l, const char *host, struct err *e)
{
    char own[256] = "localhost";
    struct host_names h = {.host = host, .ssh = l->o->ssh, .ok = true};
    bool local = !host; /* the VMs of this host are known */

    if (local && !h.ssh) {
        net_loopback(&h.addrs);
        gethostname(own, sizeof own - 1);
        own[strcspn(own, ".")] = 0;
        host = own;
    }
    aside(&l->ctx->loop, look_up, &h);
    if (h.ssh) {
        snprintf(own, sizeof own, "%.*s", (int)strcspn(h.own, "."), h.own);
        host = own;
    }
    if (!h.ok) {
        *e = h.why;
        return false;
    }
    if (!h.resolved)
        return err_set(e, ERR_NODE, "there is no host named %s", host);
    size_t n;
    struct entry *all = entries_of(&h, &n);
    if (h.answer == EPMD_NO_DAEMON && !n)
        ctx_say(l->ctx, "%s: no epmd runs there (port %d), so there is no named node", host, epmd_port());
    list_nodes(l, host, local, &h.addrs.items[0], all, n);
    if (h.answer == EPMD_OK && !n)
        ctx_say(l->ctx, "%s: epmd runs, but knows no node", host);
    free(all);
    epmd_names_release(&h.names);
    vms_release(&h.vms);
    if (h.why.status)
        *e = h.why;
    return h.answer == EPMD_OK || h.answer == EPMD_NO_DAEMON || (!h.why.status && cmd_nodes_failed(host, h.answer, e));
}

static int cmd_nodes_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct nodes_opts o = {0};
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&nodes_group, &o}, {&tls_group, &o.node}, {&talk_group, &talk}};
    struct texts words = {0};
    struct listing l = {.ctx = ctx, .o = &o};
    struct err e;
    char **rest;
    int status = 0;

    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status)) {
        ctx_let_die(ctx, true);
        o.node.cookie_file = o.cookie_file;
        o.node.ssh = o.ssh;
        bool ok = cmd_format(o.json, &o.as, &e) && target_init(&l.target, &o.node, NULL, &e) &&
                  (!o.ssh || !words.count ||
                   err_set(&e, ERR_USAGE, "--ssh names the host, and so does %s: use only one", words.items[0]));
        l.target.node.port = 0;
        if (!ok || (!words.count && !list_host(&l, NULL, &e)))
            status = ctx_fail(ctx, &e);
        for (size_t i = 0; i < words.count && ok && !ctx->interrupts; i++)
            if (!list_host(&l, words.items[i], &e))
                status = ctx_fail(ctx, &e);
        if (ok && !l.count && (o.as == GRID_CSV || o.as == GRID_TSV))
            nodes_print(&l, "", NULL, 0); /* prints only the names of the columns */
        ctx_let_die(ctx, false);
    }
    target_release(&l.target);
    buf_release(&l.hinted);
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&words);
    return status;
}

static const char about[] = "etrace asks epmd. On this host it also lists other processes that run Erlang:\n"
                            "those without epmd or without a name, with an old OTP, of other users, and in\n"
                            "containers. It connects to each node and disconnects at once.\n"
                            "--ssh HOST does the same on another host.\n"
                            "\"ok\" means that -n NODE attaches, \"ok, with -p PID\" that -p does.\n";

static const struct opt_group *const groups[] = {&nodes_group, &tls_group, &talk_group, NULL};
const struct cmd cmd_nodes = {
    .name = "nodes",
    .usage = "[OPTIONS] [HOST]...",
    .summary = "Lists nodes, and whether etrace can connect to them",
    .about = about,
    .run = cmd_nodes_run,
    .groups = groups,
};

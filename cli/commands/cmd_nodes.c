/* etrace nodes: the nodes that epmd knows of, and whether each can be attached to from here, or why not. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../erlang/term_json.h"
#include "../ground/utf8.h"
#include "../node/connect.h"
#include "../node/epmd.h"
#include "cmd.h"
#include "target.h"

#define HOST_MS 2000

struct nodes_opts {
    const char *cookie_file;
    bool json;
    struct node_opts node; /* its TLS */
};

#define ROW(letter, name, arg, type, field, help) {letter, name, arg, type, offsetof(struct nodes_opts, field), help}
static const struct opt rows[] = {
    ROW(0, "cookie-file", "FILE", OPT_TEXT, cookie_file, "default ~/.erlang.cookie, then the XDG one"),
    ROW(0, "json", NULL, OPT_FLAG, json, "one object a line"),
};
static const struct opt_group nodes_group = {"Options", rows, ARRAY_LEN(rows)};

struct listing {
    struct ctx *ctx;
    const struct nodes_opts *o;
    struct target target; /* but for the name */
    struct buf out;
    size_t count;
};

static void as_text(struct listing *l, const char *name, int port, const struct err *why)
{
    char shown[NODE_NAME_MAX + 1];

    snprintf(shown, sizeof shown, "%s", name);
    utf8_make_safe(shown);
    buf_printf(&l->out, "%-32s %5d  %s\n", shown, port, why ? why->text : "ok");
    if (why && why->hint[0])
        buf_printf(&l->out, "%40s%s\n", "hint: ", why->hint);
}

static void as_json(struct listing *l, const char *name, const char *host, int port, const struct err *why)
{
    struct buf *b = &l->out;

    buf_puts(b, "{\"v\":1,\"type\":\"node\",\"node\":");
    json_string(b, (struct str){name, strlen(name)});
    buf_puts(b, ",\"host\":");
    json_string(b, (struct str){host, strlen(host)});
    buf_printf(b, ",\"port\":%d,\"reachable\":%s", port, why ? "false" : "true");
    if (why) {
        buf_puts(b, ",\"reason\":");
        json_string(b, (struct str){why->text, strlen(why->text)});
        if (why->hint[0]) {
            buf_puts(b, ",\"hint\":");
            json_string(b, (struct str){why->hint, strlen(why->hint)});
        }
    }
    buf_puts(b, "}\n");
}

/* The reason stands beside the name, so the sentence need not begin with it. */
static void shorten(struct err *e, const char *name)
{
    static const char begin[] = "cannot connect to ";
    size_t len = strlen(name), skip = sizeof begin - 1 + len + 2;

    if (!strncmp(e->text, begin, sizeof begin - 1) && !strncmp(e->text + sizeof begin - 1, name, len) && strlen(e->text) > skip)
        memmove(e->text, e->text + skip, strlen(e->text + skip) + 1);
}

static void try_node(struct listing *l, const char *host, const struct addr *at, const struct epmd_name *n)
{
    char name[NODE_NAME_MAX + 1];
    struct node_target target = l->target.node;
    struct node_conn conn = {0};
    struct err e;

    snprintf(name, sizeof name, "%s@%.255s", n->name, host);
    target.name = name;
    target.first = *at;
    bool ok = node_connect(&target, &conn, &e);
    if (ok)
        stream_close(&conn.stream);
    else
        shorten(&e, name);
    if (l->o->json)
        as_json(l, ok ? conn.node : name, host, n->port, ok ? NULL : &e);
    else
        as_text(l, ok ? conn.node : name, n->port, ok ? NULL : &e);
    l->count++;
    out_write(l->ctx->out, l->out.data, l->out.len);
    buf_clear(&l->out);
}

static bool failed(const char *host, enum epmd_answer a, struct err *e)
{
    if (a == EPMD_NO_PORT)
        return net_no_port(host, e);
    if (a == EPMD_TIMEOUT || a == EPMD_UNREACHABLE)
        return err_set(e, ERR_NODE, "%s: epmd does not answer on port %d", host, epmd_port());
    return err_set(e, ERR_NODE, "%s: what answers on port %d is not epmd", host, epmd_port());
}

static bool list_host(struct listing *l, const char *host, struct err *e)
{
    int64_t deadline = net_now() + HOST_MS;
    char own[256] = "localhost";
    struct addrs addrs = {0};
    struct epmd_names names = {0};
    enum epmd_answer a;

    if (!host) {
        net_loopback(&addrs);
        gethostname(own, sizeof own - 1);
        own[strcspn(own, ".")] = 0;
        host = own;
    } else if (net_resolve(host, deadline, &addrs) != NET_OK) {
        return err_set(e, ERR_NODE, "there is no host named %s", host);
    }
    a = epmd_list_any(&addrs, deadline, &names);
    if (a == EPMD_NO_DAEMON)
        ctx_say(l->ctx, "%s: no epmd runs there (port %d), so no node with a name", host, epmd_port());
    for (size_t i = 0; i < names.count && !l->ctx->interrupts; i++) {
        try_node(l, host, &addrs.items[0], &names.items[i]);
        loop_step(&l->ctx->loop, 0); /* signals */
    }
    if (a == EPMD_OK && !names.count)
        ctx_say(l->ctx, "%s: epmd runs and knows no node", host);
    epmd_names_release(&names);
    return a == EPMD_OK || a == EPMD_NO_DAEMON || failed(host, a, e);
}

static int run(struct ctx *ctx, const struct cmd *self, char **argv)
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
        bool ok = target_init(&l.target, &o.node, NULL, &e);
        if (!ok || (!words.count && !list_host(&l, NULL, &e)))
            status = ctx_fail(ctx, &e);
        for (size_t i = 0; i < words.count && ok; i++)
            if (!list_host(&l, words.items[i], &e))
                status = ctx_fail(ctx, &e);
        ctx_let_die(ctx, false);
    }
    target_release(&l.target);
    buf_release(&l.out);
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&words);
    return status;
}

static const char about[] = "Each is tried: a connection is made with this user's cookie and closed at once.\n"
                            "A node that was started without a name, or without epmd, is in no list.\n";

static const struct opt_group *const groups[] = {&nodes_group, &tls_group, &talk_group, NULL};
const struct cmd cmd_nodes = {"nodes", "[OPTIONS] [HOST]...", "Lists the nodes that can be reached, and why not the others", about,
                              run, groups};

/* SPDX-License-Identifier: Apache-2.0 */
#include "demo_node.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ground/carried.h"
#include "../ground/command_line.h"
#include "../node/epmd.h"
#include "../node/net.h"

#define LOOK_MS 20      /* interval between two checks whether the shop is open */
#define PATIENCE_MS 500 /* how long to wait for the answer of epmd */

/*
 * An expression that `erl` evaluates before etrace holds the node, so that the modules can be traced. The modules are
 * files with debug_info, in which etrace ls finds the names of arguments.
 */
static const char compile_shop[] = "D = os:getenv(\"ETRACE_DEMO\"), "
                                   "[begin {ok, M} = compile:file(F, [debug_info, report, {outdir, D}]), "
                                   "{module, M} = code:load_abs(filename:rootname(F)) end "
                                   "|| F <- filelib:wildcard(filename:join(D, \"*.erl\"))].";

/* The expression after the hold, quoted for erl. The deleted source tells etrace that the shop is open. */
static const char open_shop[] = "'shop:start(), file:delete(filename:join(os:getenv(\"ETRACE_DEMO\"), \"shop.erl\")).'";

static bool is_source(const struct carried *c)
{
    size_t len = strlen(c->name);

    return len > 4 && !strcmp(c->name + len - 4, ".erl");
}

static bool put_sources(const struct child *child, struct err *e)
{
    char path[256];

    for (const struct carried *c = carried; c->name; c++) {
        if (!is_source(c))
            continue;
        snprintf(path, sizeof path, "%s/%s", child->dir, c->name);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        bool ok = fd >= 0 && write(fd, c->text, c->len) == (ssize_t)c->len;
        int error = errno;
        if (fd >= 0)
            close(fd);
        if (!ok)
            return err_set(e, ERR_RUN, "cannot write %s: %s", path, strerror(error));
    }
    return true;
}

static bool start_erl(struct child *c, struct err *e)
{
    char *erl[] = {"erl",
                   "+Bi",
                   "+pc",
                   "unicode",
                   "-kernel",
                   "logger_level",
                   "critical",
                   "-noshell",
                   "-noinput",
                   "-eval",
                   (char *)compile_shop,
                   NULL};

    c->late = open_shop;
    setenv("ETRACE_DEMO", c->dir, 1);
    if (child_start(c, erl, e))
        return true;
    err_hint(e, "the demo needs an erl of OTP 27 or newer in $PATH");
    return false;
}

bool demo_node_hold(struct child *c, struct ctx *ctx, int *ret_status)
{
    struct err e;

    if (!child_init(c, ctx, &e) || !put_sources(c, &e) || !start_erl(c, &e)) {
        *ret_status = ctx_fail(ctx, &e);
        return false;
    }
    ctx_pass_signals(ctx, NULL, NULL); /* Ctrl-C ends the command first; then etrace kills the shop */
    if (child_wait_node(c))
        return true;
    err_set(&e, ERR_NODE, "the demo node does not start");
    *ret_status = ctx->interrupts ? 0 : ctx_fail(ctx, &e);
    return false;
}

void demo_node_end(struct child *c)
{
    child_signal(c, SIGKILL);
    if (c->pid > 0)
        child_wait(c);
    child_release(c);
}

/* ---- the node `demo` ---- */

static struct child shop;
static bool is_made; /* `shop` is in use */

/* Returns true if the epmd of this host knows a node with this name. */
static bool is_taken(const char *name)
{
    struct epmd_names names = {0};
    struct addrs addrs = {0};

    net_loopback(&addrs);
    if (epmd_list_any(&addrs, net_now() + PATIENCE_MS, &names) != EPMD_OK)
        return false;
    const bool found = epmd_names_port(&names, name, strlen(name));
    epmd_names_release(&names);
    return found;
}

/*
 * Lets the shop open, and serves the loop until it is open. Returns false if the node ends before that, or a signal
 * comes.
 */
static bool wait_for_shop(struct ctx *ctx)
{
    char path[256];

    snprintf(path, sizeof path, "%s/shop.erl", shop.dir);
    child_go(&shop);
    while (!access(path, F_OK)) {
        if (shop.ended || ctx->interrupts)
            return false;
        loop_step(&ctx->loop, loop_now() + LOOK_MS);
    }
    return true;
}

static bool names_demo(const struct node_opts *o)
{
    return o->nodes.count == 1 && !strcmp(o->nodes.items[0], "demo") && !o->ssh && !o->port && !o->os_pid &&
           !is_taken("demo");
}

static bool start_shop(struct ctx *ctx, int *ret_status)
{
    struct err e;

    is_made = true;
    if (!demo_node_hold(&shop, ctx, ret_status))
        return false;
    if (wait_for_shop(ctx))
        return true;
    err_set(&e, ERR_NODE, "the demo node does not open its shop");
    *ret_status = ctx->interrupts ? 0 : ctx_fail(ctx, &e);
    return false;
}

bool demo_node_named(struct ctx *ctx, struct node_opts *o, int *ret_status)
{
    if (!names_demo(o))
        return true;
    if (!is_made && !start_shop(ctx, ret_status))
        return false;
    command_line_rename(shop.node, "demo"); /* hints say `demo`, because the next demo node will have another name */
    o->nodes.items[0] = shop.node;
    return true;
}

void demo_node_close(void)
{
    if (is_made)
        demo_node_end(&shop);
    is_made = false;
}

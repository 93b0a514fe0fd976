/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etrace demo: traces a small shop on a node of its own. The node is the command of a trace with `--`. etrace contains
 * the sources of the shop and compiles them on the node.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../trace/assertions.h"
#include "../ground/carried.h"
#include "../trace/child.h"
#include "cmd.h"
#include "../trace/command_node.h"

/*
 * An expression that `erl` evaluates before etrace holds the node, so that the modules can be traced. The shop opens
 * after the hold.
 */
static const char compile_shop[] =
    "D = os:getenv(\"ETRACE_DEMO\"), "
    "[begin {ok, M, B} = compile:file(F, [binary, report]), {module, M} = code:load_binary(M, F, B) end "
    "|| F <- filelib:wildcard(filename:join(D, \"*.erl\"))].";

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

static int run_demo(struct ctx *ctx, const struct live_options *o)
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
    struct child child;
    struct err e;
    int status;

    bool ok = child_init(&child, ctx, &e);
    if (!ok || !put_sources(&child, &e)) {
        status = ctx_fail(ctx, &e);
        child_release(&child);
        return status;
    }
    child.late = "shop:start().";
    setenv("ETRACE_DEMO", child.dir, 1);
    if (!child_start(&child, erl, &e)) {
        err_hint(&e, "the demo needs an erl of OTP 27 or newer in $PATH");
        status = ctx_fail(ctx, &e);
    } else {
        ctx_pass_signals(ctx, NULL, NULL); /* Ctrl-C ends the trace first; then etrace kills the shop */
        if (child_wait_node(&child)) {
            status = command_node_trace(ctx, o, &child);
        } else {
            err_set(&e, ERR_NODE, "the demo node does not start");
            status = ctx->interrupts ? 0 : ctx_fail(ctx, &e);
        }
        child_signal(&child, SIGKILL);
        child_wait(&child);
    }
    child_release(&child);
    return status;
}

static int cmd_demo_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct node_opts node = NODE_OPTS_INIT;
    struct what_opts what = WHAT_OPTS_INIT;
    struct limit_opts limit = LIMIT_OPTS_INIT;
    struct view_opts view = VIEW_OPTS_INIT;
    struct assert_opts asserts = {0};
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&what_group, &what},
                             {&limit_group, &limit},
                             {&view_group, &view},
                             {&assert_group, &asserts},
                             {&talk_group, &talk}};
    struct texts words = {0};
    struct arena arena;
    struct err e;
    char **rest;
    int status = 0;

    arena_init(&arena);
    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status)) {
        struct live_options o =
            {.node = &node, .what = &what, .limit = &limit, .view = &view, .asserts = &asserts, .words = &words};
        if (!words.count && !what.files.count)
            texts_add(&words, "shop_orders:place/3 -> return");
        what.allow_empty = true;
        status = exprs_pipes(ctx, &what, &arena, &e) ? run_demo(ctx, &o) : ctx_fail(ctx, &e);
    }
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&what.pipes);
    texts_release(&words);
    arena_release(&arena);
    return status;
}

static const char about[] = "  etrace demo                               orders as they are placed\n"
                            "  etrace demo --for 5s -c 'shop_stock:_ -> return'\n"
                            "  etrace demo --as tree 'shop_orders:_ | shop_stock:_ -> return'\n"
                            "\nThe shop is a small program in Erlang: shop_orders, shop_stock, shop_courier,\n"
                            "shop_customer and Shop.Repo. It ends with the trace. etrace recipes has more to\n"
                            "try on it.\n";

static const struct opt_group *const groups[] = {&what_group,   &limit_group, &view_group,
                                                 &assert_group, &talk_group,  NULL};
const struct cmd cmd_demo = {
    .name = "demo",
    .usage = "[OPTIONS] [EXPR...]",
    .summary = "Starts a small demo node and traces it",
    .about = about,
    .run = cmd_demo_run,
    .groups = groups,
};

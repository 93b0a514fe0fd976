/* SPDX-License-Identifier: Apache-2.0 */
/* etrace demo: starts a node that runs a small shop, and traces it, like a trace with `-- COMMAND`. */
#include "../trace/assertions.h"
#include "cmd.h"
#include "../trace/command_node.h"
#include "../trace/demo_node.h"

static int run_demo(struct ctx *ctx, const struct live_options *o)
{
    struct child child;
    int status;

    if (demo_node_hold(&child, ctx, &status))
        status = command_node_trace(ctx, o, &child);
    demo_node_end(&child);
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
                            "shop_customer and Shop.Repo. It ends with the trace. -n demo gives any command a\n"
                            "shop of its own: etrace -n demo ps. etrace recipes has more to try on it.\n";

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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etrace [trace]: attaches to nodes and streams the events that the expressions ask for, or starts a command and traces
 * its node.
 */
#include "../trace/assertions.h"
#include "../trace/child.h"
#include "cmd.h"
#include "../trace/command_node.h"
#include "../trace/live.h"

static int no_expression(struct ctx *ctx)
{
    struct err e;

    err_set(&e, ERR_USAGE, "no expression to trace");
    err_hint(&e, "for example etrace 'lists:seq/2 -> return'; etrace help trace");
    return ctx_fail(ctx, &e);
}

static int cmd_trace_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct node_opts node = NODE_OPTS_INIT;
    struct what_opts what = WHAT_OPTS_INIT;
    struct limit_opts limit = LIMIT_OPTS_INIT;
    struct view_opts view = VIEW_OPTS_INIT;
    struct assert_opts asserts = {0};
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&node_group, &node}, {&what_group, &what},      {&limit_group, &limit},
                             {&view_group, &view}, {&assert_group, &asserts}, {&talk_group, &talk}};
    struct texts words = {0};
    struct arena arena;
    struct err e;
    char **rest;
    int status = 0;

    arena_init(&arena);
    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status)) {
        struct live_options o = {&node, &what, &limit, &view, &asserts, &words, NULL};
        if (!words.count && !what.files.count)
            status = no_expression(ctx);
        else if (!exprs_pipes(ctx, &what, &arena, &e))
            status = ctx_fail(ctx, &e);
        else
            status = rest ? command_node_run(ctx, &o, &what, rest) : live_run(ctx, &o, "text");
    }
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&what.pipes);
    texts_release(&words);
    arena_release(&arena);
    return status;
}

static const char about[] = "  etrace 'lists:seq/2'                            calls of a function\n"
                            "  etrace 'ets:lookup(_, K) when K > 9 -> return'  some of them, with results\n"
                            "  etrace 'MyApp.Repo.get/2 -> return, caller'     who called, how long it took\n"
                            "  etrace 'send(_, {reply, _})' -P my_server       messages\n"
                            "  etrace 'my_app:_' -- mix run                    a node that etrace starts\n"
                            "\netrace-expr(7) explains expressions. Each expression is one argument.\n";

static const struct opt_group *const groups[] = {&node_group,   &what_group, &limit_group, &view_group,
                                                 &assert_group, &talk_group, NULL};
const struct cmd cmd_trace = {
    .name = "trace",
    .usage = "[-n NODE] [OPTIONS] EXPR... [-- COMMAND...]",
    .summary = "Prints the events that the expressions select",
    .about = about,
    .run = cmd_trace_run,
    .groups = groups,
};

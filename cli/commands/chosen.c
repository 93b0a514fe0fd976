/* SPDX-License-Identifier: Apache-2.0 */
#include "chosen.h"

#include <stdio.h>

#include "../ground/command_line.h"
#include "../trace/live.h"

void chosen_node(struct chosen_node *ret, const struct peers *peers, unsigned index)
{
    const struct peer *p = &peers->items[index];

    snprintf(ret->text, sizeof(ret->text), "%s", peer_name(p));
    ret->name = ret->text;
    ret->named = peers_need_names(peers);
    peers_alone(peers, p, &ret->name, &ret->opts);
}

static int chosen_trace(struct ctx *ctx, const struct chosen_node *node, const char *const *pids, size_t count,
                        const char *const *exprs, size_t nexprs)
{
    struct what_opts what = WHAT_OPTS_INIT;
    struct limit_opts limit = LIMIT_OPTS_INIT;
    struct view_opts view = VIEW_OPTS_INIT;
    struct assert_opts asserts = {0};
    struct texts words = {.items = (const char **)(uintptr_t)exprs, .count = nexprs};
    struct command_line command = {0};

    command_line_begin(&command, NULL, node->opts.ssh, node->named ? node->name : NULL);
    what.procs = (struct texts){.items = (const char **)(uintptr_t)pids, .count = count};
    for (size_t i = 0; i < count; i++) {
        command_line_add(&command, " -P");
        command_line_word(&command, pids[i]);
    }
    for (size_t i = 0; i < nexprs; i++)
        command_line_word(&command, exprs[i]);
    ctx_say(ctx, "%s", command_line_text(&command));
    command_line_release(&command);
    const struct live_options o =
        {.node = &node->opts, .what = &what, .limit = &limit, .view = &view, .asserts = &asserts, .words = &words};
    return live_run(ctx, &o, "text");
}

int chosen_messages(struct ctx *ctx, const struct chosen_node *node, const char *const *pids, size_t count)
{
    static const char *const messages[] = {"recv(_)", "send(_, _)"};

    return chosen_trace(ctx, node, pids, count, messages, ARRAY_LEN(messages));
}

int chosen_calls(struct ctx *ctx, const struct chosen_node *node, const char *const *pids, size_t count,
                 const char *function)
{
    struct buf expr = {0};

    buf_printf(&expr, "%s -> return", function);
    int status = chosen_trace(ctx, node, pids, count, &(const char *){buf_cstr(&expr)}, 1);
    buf_release(&expr);
    return status;
}

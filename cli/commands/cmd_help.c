/* SPDX-License-Identifier: Apache-2.0 */
/* etrace help [COMMAND]: prints help from the rows of the commands and their options. */
#include "cmd.h"

#include "../ground/near.h"
#include "../trace/habits.h"
#include "../views/sink.h"
#include "groups.h"

#define COLUMNS 80

/* Prints the names of the views, as many in each line as fit. */
static void overview_views(struct buf *b)
{
    size_t column = COLUMNS;

    for (const struct sink_type *const *t = sink_types; *t; t++) {
        size_t len = strlen((*t)->name) + 1;
        if (column + len > COLUMNS) {
            buf_puts(b, "\n ");
            column = 1;
        }
        buf_printf(b, " %s", (*t)->name);
        column += len;
    }
    buf_puts(b, "\n");
}

static void overview_commands(struct buf *b)
{
    buf_puts(b, "usage: etrace [trace] [-n NODE] [OPTIONS] EXPR...\n"
                "Traces a running Erlang or Elixir node from outside, and leaves nothing on it.\n\n"
                "  etrace 'shop_stock:reserve(_, N) when N > 1 -> return, caller'\n"
                "  etrace 'Shop.Repo.get/2 -> return' --json | jq '.dur_us // empty'\n\n"
                "commands:\n");
    for (const struct cmd *const *c = cmd_all(); *c; c++)
        buf_printf(b, "  %-12s %s\n", (*c)->name, (*c)->summary);
    buf_puts(b, "\nviews, for --as; `etrace help trace` describes them:");
    overview_views(b);
    buf_puts(b, "\n`etrace help COMMAND` describes a command, etrace(1) all, etrace-expr(7) EXPR.\n");
}

static int cmd_help_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&talk_group, &talk}};
    struct texts words = {0};
    struct buf b = {0};
    struct err e;
    char **rest;
    int status = 0;

    if (!cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status)) {
        texts_release(&words);
        return status;
    }
    const char *name = words.count ? words.items[0] : NULL;
    const struct cmd *c = name ? cmd_find(name) : NULL;

    if (name && !c && sink_by_name(name))
        c = &cmd_trace; /* `etrace hist …` means `etrace trace --as hist …` */
    if (!name) {
        overview_commands(&b);
    } else if (c) {
        cmd_print_help(&b, c);
    } else {
        struct near near = near_start(name, strlen(name));
        for (const struct cmd *const *each = cmd_all(); *each; each++)
            near_try(&near, (*each)->name);
        err_set(&e, ERR_USAGE, "unknown command '%s'", name);
        if (!habit_command_hint(name, "", &e))
            err_hint(&e, near.best ? "did you mean %s?" : "etrace help lists them", near.best);
        status = ctx_fail(ctx, &e);
    }
    out_take(ctx->out, &b);
    buf_release(&b);
    texts_release(&words);
    return status;
}

static const struct opt_group *const groups[] = {&talk_group, NULL};
const struct cmd cmd_help = {
    .name = "help",
    .usage = "[COMMAND]",
    .summary = "Explains a command",
    .run = cmd_help_run,
    .groups = groups,
};

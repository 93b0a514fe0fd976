/* SPDX-License-Identifier: Apache-2.0 */
/* etrace completion SHELL: prints a script for the shell. To complete a word, the script calls `etrace __complete`. */
#include <stdio.h>
#include <string.h>

#include "../ground/carried.h"
#include "cmd.h"
#include "complete.h"
#include "groups.h"

static int print_script(struct ctx *ctx, const struct texts *words)
{
    const struct carried *c = NULL;
    char name[64];
    struct err e;

    if (words->count == 1 && strlen(words->items[0]) < 8) {
        snprintf(name, sizeof name, "completion.%s", words->items[0]);
        c = carried_find(name);
    }
    if (c) {
        out_write(ctx->out, c->text, c->len);
        return 0;
    }
    if (words->count == 1)
        err_set(&e, ERR_USAGE, "unknown shell '%s'", words->items[0]);
    else
        err_set(&e, ERR_USAGE, "no shell given");
    err_hint(&e, "bash, zsh or fish: eval \"$(etrace completion bash)\"");
    return ctx_fail(ctx, &e);
}

static int cmd_completion_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&talk_group, &talk}};
    struct texts words = {0};
    char **rest;
    int status = 0;

    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status))
        status = print_script(ctx, &words);
    texts_release(&words);
    return status;
}

/* Completes a command line. Reports no errors in it, because the user is still typing it. */
static int run_complete(struct ctx *ctx, const struct cmd *self UNUSED, char **argv)
{
    struct buf b = {0};
    size_t count = 0;

    while (argv[count])
        count++;
    if (count)
        complete((const char *const *)argv, count - 1, argv[count - 1], &b);
    out_take(ctx->out, &b);
    buf_release(&b);
    return 0;
}

static const struct opt_group *const groups[] = {&talk_group, NULL};
static const struct opt_group *const no_groups[] = {NULL};
const struct cmd cmd_completion = {
    .name = "completion",
    .usage = "bash|zsh|fish",
    .summary = "Prints a completion script for a shell",
    .about = "  eval \"$(etrace completion bash)\"\n",
    .run = cmd_completion_run,
    .aside = true,
    .groups = groups,
};
const struct cmd cmd_complete = {
    .name = "__complete",
    .usage = "WORDS... CURRENT",
    .summary = "Prints candidates for the completion scripts",
    .run = run_complete,
    .groups = no_groups,
};

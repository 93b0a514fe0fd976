/* SPDX-License-Identifier: Apache-2.0 */
/* etrace recipes [NAME]: prints common questions and the commands that answer them. */
#include <stdio.h>
#include <string.h>

#include "../ground/near.h"
#include "../ground/carried.h"
#include "cmd.h"
#include "groups.h"

static const char extension[] = ".recipe";

static size_t name_len(const struct carried *c)
{
    size_t len = strlen(c->name), ext = sizeof extension - 1;

    return len > ext && !strcmp(c->name + len - ext, extension) ? len - ext : 0;
}

/* Lists the recipes with their questions. The first line of a recipe is "# " and its question. */
static void cmd_recipes_list(struct buf *b)
{
    for (const struct carried *c = carried; c->name; c++) {
        size_t len = name_len(c), line = strcspn(c->text, "\n");
        if (len)
            buf_printf(b, "%-*.*s %.*s\n", 18, (int)len, c->name, (int)(line - 2), c->text + 2);
    }
}

static int cmd_recipes_show(struct ctx *ctx, const char *name, struct buf *b)
{
    struct near near = near_start(name, strlen(name));
    char known[64];
    struct err e;

    for (const struct carried *c = carried; c->name; c++) {
        size_t len = name_len(c);
        if (len && len == strlen(name) && !memcmp(c->name, name, len)) {
            buf_add(b, c->text, c->len);
            return 0;
        }
    }
    err_set(&e, ERR_USAGE, "unknown recipe '%s'", name);
    err_hint(&e, "etrace recipes lists them");
    for (const struct carried *c = carried; c->name; c++)
        if (name_len(c)) {
            snprintf(known, sizeof known, "%.*s", (int)name_len(c), c->name);
            near_try(&near, known);
            if (near.best == known) {
                err_hint(&e, "did you mean %s?", known);
                near.best = NULL;
            }
        }
    return ctx_fail(ctx, &e);
}

static int cmd_recipes_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&talk_group, &talk}};
    struct texts words = {0};
    struct buf b = {0};
    char **rest;
    int status = 0;

    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status)) {
        if (!words.count)
            cmd_recipes_list(&b);
        for (size_t i = 0; i < words.count && !status; i++)
            status = cmd_recipes_show(ctx, words.items[i], &b);
    }
    out_take(ctx->out, &b);
    buf_release(&b);
    texts_release(&words);
    return status;
}

static const struct opt_group *const groups[] = {&talk_group, NULL};
const struct cmd cmd_recipes = {
    .name = "recipes",
    .usage = "[NAME]",
    .summary = "Shows common questions and the commands that answer them",
    .about = "The commands of the recipes run on a small shop with -n demo.\n",
    .run = cmd_recipes_run,
    .aside = true,
    .groups = groups,
};

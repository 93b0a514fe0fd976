/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etrace schema: prints the JSON Schema of the JSON output. The schema is in views/schema.json, beside the JSON sink.
 */
#include "../ground/carried.h"
#include "cmd.h"
#include "groups.h"

static int cmd_schema_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&talk_group, &talk}};
    struct texts words = {0};
    char **rest;
    int status = 0;

    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status) &&
        cmd_no_words(ctx, self, &words, NULL, &status)) {
        const struct carried *schema = carried_find("schema.json");
        out_write(ctx->out, schema->text, schema->len);
    }
    texts_release(&words);
    return status;
}

static const struct opt_group *const groups[] = {&talk_group, NULL};
const struct cmd cmd_schema = {
    .name = "schema",
    .usage = "",
    .summary = "Prints the JSON Schema of the JSON lines",
    .run = cmd_schema_run,
    .aside = true,
    .groups = groups,
};

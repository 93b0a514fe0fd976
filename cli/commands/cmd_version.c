/* etrace version: what this build is. */
#include "cmd.h"
#include "groups.h"

#include "../node/companion.h"

static int run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&talk_group, &talk}};
    struct texts words = {0};
    struct buf b = {0};
    char **rest;
    int status = 0;

    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status)) {
        buf_printf(&b, "etrace %s (companion %s, for OTP 27 and newer)\n", ETRACE_VERSION, companion.hash);
        out_take(ctx->out, &b);
    }
    texts_release(&words);
    buf_release(&b);
    return status;
}

static const struct opt_group *const groups[] = {&talk_group, NULL};
const struct cmd cmd_version = {"version", "", "Says which build this is", NULL, run, groups};

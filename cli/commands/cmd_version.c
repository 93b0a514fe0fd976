/* SPDX-License-Identifier: Apache-2.0 */
/* etrace version: prints the version and how it was built. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "cmd.h"
#include "groups.h"

#include "../node/companion.h"

struct version_opts {
    bool verbose;
};

static const struct opt rows[] = {
    OPT_ROW(struct version_opts, 'v', "verbose", NULL, OPT_FLAG, verbose, "also print what it was built from"),
};
static const struct opt_group version_group = {"Output", rows, ARRAY_LEN(rows)};

static void put_details(struct buf *b)
{
    char pcre2[64] = "";
    uint32_t jit = 0;

    pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
    pcre2_config(PCRE2_CONFIG_JIT, &jit);
    buf_printf(b, "companion  SHA-256 %s\n", companion.sum);
    buf_printf(b, "           module %zu bytes (to trace %zu, for questions %zu), NIF for %s, %zu bytes\n",
               companion.modules[COMPANION_WHOLE].beam_len, companion.modules[COMPANION_TRACE].beam_len,
               companion.modules[COMPANION_QUESTIONS].beam_len, companion.architectures, companion.libraries_len);
    buf_printf(b, "built      %s, by C compiler %s\n", ETRACE_BUILD, __VERSION__);
    buf_printf(b, "PCRE2      %s%s\n", pcre2, jit ? ", with JIT" : "");
}

static int cmd_version_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct version_opts o = {0};
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&version_group, &o}, {&talk_group, &talk}};
    struct texts words = {0};
    struct buf b = {0};
    char **rest;
    int status = 0;

    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status) &&
        cmd_no_words(ctx, self, &words, NULL, &status)) {
        buf_printf(&b, "etrace %s (companion %s, for OTP 27 and newer)\n", ETRACE_VERSION, companion.hash);
        if (o.verbose)
            put_details(&b);
        out_take(ctx->out, &b);
    }
    texts_release(&words);
    buf_release(&b);
    return status;
}

static const struct opt_group *const groups[] = {&version_group, &talk_group, NULL};
const struct cmd cmd_version = {
    .name = "version",
    .usage = "[-v]",
    .summary = "Prints the version and the build",
    .run = cmd_version_run,
    .aside = true,
    .groups = groups,
};

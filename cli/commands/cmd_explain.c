/* SPDX-License-Identifier: Apache-2.0 */
/* etrace explain: prints what an expression means, without a node. */
#include <string.h>

#include "cmd.h"
#include "../trace/exprs.h"
#include "../trace/overlap.h"

struct explain_opts {
    int format; /* index into "text|erl|json" */
    const char *dump;
    int64_t otp;
};

#define ROW(...) OPT_ROW(struct explain_opts, __VA_ARGS__)
static const struct opt rows[] = {
    ROW(0, "format", "text|erl|json", OPT_CHOICE, format, "how to print specifications (default text)"),
    ROW(0, "dump", "PASSES", OPT_TEXT, dump, "what the passes made: tokens, ast, spec (with commas between)"),
    ROW(0, "otp", "N", OPT_NUMBER, otp, "for a node of that OTP release"),
};
static const struct opt_group explain_group = {"Output", rows, ARRAY_LEN(rows)};

static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (; list && *list; list += strcspn(list, ","), list += *list == ',')
        if (strcspn(list, ",") == len && !memcmp(list, word, len))
            return true;
    return false;
}

static bool known_words(const char *list, struct err *e)
{
    for (bool more = list; more; list += strcspn(list, ","), more = *list == ',', list += more) {
        size_t len = strcspn(list, ",");
        char word[16] = "";
        memcpy(word, list, MIN(len, sizeof(word) - 1));
        if (!has_word("tokens,ast,spec", word))
            return err_set(e, ERR_USAGE, "--dump takes tokens, ast and spec, not '%s'", word);
    }
    return true;
}

/* With several probes the text has numbers, which overlap_explain() refers to. */
static void explain_one(const struct exprs *exprs, size_t i, enum lang_format format, struct buf *b)
{
    if (exprs->count > 1 && format == LANG_TEXT)
        buf_printf(b, "%zu. ", i + 1);
    lang_explain(exprs->specs[i], format, b);
}

static int explain(struct ctx *ctx, const struct explain_opts *o, struct what_opts *what, const struct texts *words)
{
    struct exprs exprs;
    struct buf tokens = {0}, ast = {0}, out = {0};
    struct texts none = {0}, texts = {0};
    struct err e;
    int status = 0;

    exprs_init(&exprs);
    exprs.may_count = true;
    exprs.dump_tokens = has_word(o->dump, "tokens") ? &tokens : NULL;
    exprs.dump_ast = has_word(o->dump, "ast") ? &ast : NULL;
    bool ok = known_words(o->dump, &e) && exprs_pipes(ctx, what, &exprs.arena, &e) &&
              exprs_texts(ctx, what, words, &exprs.arena, &texts, &e) &&
              exprs_compile(&exprs, what, &texts, &none, (int)o->otp, &e) && exprs_regexes(&exprs, &e);
    buf_str(&out, buf_view(&tokens));
    buf_str(&out, buf_view(&ast));
    if (!ok) {
        status = ctx_fail(ctx, &e);
    } else {
        exprs_warn(&exprs, ctx);
        for (size_t i = 0; i < exprs.count && (!o->dump || has_word(o->dump, "spec")); i++)
            explain_one(&exprs, i, (enum lang_format)o->format, &out);
        if (o->format == LANG_TEXT && (!o->dump || has_word(o->dump, "spec")))
            overlap_explain(&exprs, &out);
    }
    out_take(ctx->out, &out);
    texts_release(&texts);
    texts_release(&what->pipes);
    exprs_release(&exprs);
    buf_release(&tokens);
    buf_release(&ast);
    buf_release(&out);
    return status;
}

static int cmd_explain_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct explain_opts o = {0};
    struct what_opts what = WHAT_OPTS_INIT;
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&explain_group, &o}, {&what_group, &what}, {&talk_group, &talk}};
    struct texts words = {0};
    char **rest;
    int status = 0;

    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status)) {
        if (words.count || what.files.count) {
            status = explain(ctx, &o, &what, &words);
        } else {
            struct err e;
            err_set(&e, ERR_USAGE, "what shall be explained?");
            err_hint(&e, "for example etrace explain 'lists:seq(_, N) when N > 10 -> return'");
            status = ctx_fail(ctx, &e);
        }
    }
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&words);
    return status;
}

static const struct opt_group *const groups[] = {&explain_group, &what_group, &talk_group, NULL};
const struct cmd cmd_explain = {
    .name = "explain",
    .usage = "[OPTIONS] EXPR...",
    .summary = "Prints what expressions mean to the virtual machine",
    .run = cmd_explain_run,
    .groups = groups,
};

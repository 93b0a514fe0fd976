/* SPDX-License-Identifier: Apache-2.0 */
/* etrace help [WORD]: prints help from the tables of commands, options and words of the expression language. */
#include "cmd.h"

#include <string.h>

#include "../ground/near.h"
#include "../trace/habits.h"
#include "../views/sink.h"
#include "groups.h"
#include "topics.h"

struct help_opts {
    bool all;
};

#define ROW(letter, name, arg, type, field, help) OPT_ROW(struct help_opts, letter, name, arg, type, field, help)
static const struct opt help_rows[] = {
    ROW('a', "all", NULL, OPT_FLAG, all, "every command, or every option of the command"),
};
static const struct opt_group help_group = {"What is explained", help_rows, ARRAY_LEN(help_rows)};

/* ---- the overview ---- */

/* Prints words in lines of at most 80 columns. */
struct word_lines {
    struct buf *to;
    size_t column;
};

static void put_word(void *data, const char *word)
{
    struct word_lines *l = data;
    const size_t len = strlen(word) + 1;

    if (l->column + len > 80) {
        buf_puts(l->to, "\n ");
        l->column = 1;
    }
    buf_printf(l->to, " %s", word);
    l->column += len;
}

static void overview_aside(struct buf *b)
{
    struct word_lines lines = {b, strlen("  more:")};

    buf_puts(b, "  more:");
    for (const struct cmd *const *c = cmd_all(); *c; c++)
        if ((*c)->aside)
            put_word(&lines, (*c)->name);
    buf_puts(b, "\n");
}

static void overview_views(struct buf *b)
{
    struct word_lines lines = {b, 80};

    buf_puts(b, "\nviews, for --as:");
    for (const struct sink_type *const *t = sink_types; *t; t++)
        put_word(&lines, (*t)->name);
    buf_puts(b, "\n");
}

/* Prints all commands and views. Unless `all`, prints only the names of rare commands (struct cmd, aside). */
static void overview(struct buf *b, bool all)
{
    struct word_lines lines = {b, 80};

    buf_puts(b, "usage: etrace [trace] [-n NODE] [OPTIONS] EXPR...\n"
                "Traces a running Erlang or Elixir node from outside, and removes its tracer.\n\n"
                "  etrace 'shop_stock:reserve(_, N) when N > 1 -> return, caller'\n"
                "  etrace 'Shop.Repo.get/2 -> return' --json | jq '.dur_us // empty'\n"
                "  etrace -n demo ps     any command on a small shop, to try it\n\n"
                "commands:\n");
    for (const struct cmd *const *c = cmd_all(); *c; c++)
        if (all || !(*c)->aside)
            buf_printf(b, "  %-12s %s\n", (*c)->name, (*c)->summary);
    if (!all)
        overview_aside(b);
    overview_views(b);
    buf_puts(b, "\n`etrace help WORD` explains a command, an option, a word of an expression, or:");
    topics_each(put_word, &lines);
    buf_puts(b, "\n");
}

/* ---- words ---- */

/* Returns the option that `text` names: by its long name with or without dashes, or by a dash and its letter. */
static const struct opt *option_named(const struct cmd *c, const char *text)
{
    const char *name = text + strspn(text, "-");
    const char letter = name == text + 1 && name[0] && !name[1] ? name[0] : 0;

    return cmd_find_option(c, name, strlen(name), letter);
}

/* Prints the option that `text` names, with the help of the first command that has it. */
static void print_option(struct buf *b, const char *text)
{
    const struct opt *o = NULL;

    for (const struct cmd *const *c = cmd_all(); *c && !o; c++)
        o = option_named(*c, text);
    if (o && b->len)
        buf_puts(b, "\n");
    if (o)
        help_option(b, o);
}

static void try_name(void *near, const char *name)
{
    near_try(near, name);
}

static int reject_word(struct ctx *ctx, const char *word)
{
    struct near near = near_start(word, strlen(word));
    struct err e;

    for (const struct cmd *const *each = cmd_all(); *each; each++)
        near_try(&near, (*each)->name);
    topic_names(try_name, &near);
    err_set(&e, ERR_USAGE, "no help for '%s'", word);
    if (!habit_command_hint(word, "", &e))
        err_hint(&e, near.best ? "did you mean %s?" : "etrace help lists commands and topics", near.best);
    return ctx_fail(ctx, &e);
}

static int explain_word(struct ctx *ctx, const char *word, bool all)
{
    const struct cmd *c = cmd_find(word);
    struct buf b = {0};
    int status = 0;

    if (c) {
        cmd_print_help(&b, c, all);
    } else {
        topic_print(&b, word, "--");
        print_option(&b, word);
    }
    if (!b.len)
        status = reject_word(ctx, word);
    out_take(ctx->out, &b);
    buf_release(&b);
    return status;
}

static int cmd_help_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct help_opts help = {0};
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&help_group, &help}, {&talk_group, &talk}};
    struct texts words = {0};
    struct buf b = {0};
    char **rest;
    int status = 0;

    /* In `etrace help --ring`, an option that help itself does not have is the word to explain. */
    if (argv[0] && !argv[1] && argv[0][0] == '-' && argv[0][1] && strcmp(argv[0], "--") != 0 &&
        !option_named(self, argv[0]))
        return explain_word(ctx, argv[0], false);
    if (!cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status)) {
        texts_release(&words);
        return status;
    }
    if (!words.count)
        overview(&b, help.all);
    out_take(ctx->out, &b);
    buf_release(&b);
    for (size_t i = 0; i < words.count && !status; i++)
        status = explain_word(ctx, words.items[i], help.all);
    texts_release(&words);
    return status;
}

static const struct opt_group *const groups[] = {&help_group, &talk_group, NULL};
const struct cmd cmd_help = {
    .name = "help",
    .usage = "[WORD...]",
    .summary = "Explains a command, an option or a word of an expression",
    .run = cmd_help_run,
    .aside = true,
    .groups = groups,
};

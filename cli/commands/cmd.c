/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../views/sink.h"
#include "groups.h"

static const struct cmd *rows[] = {
#define COMMAND(name) &cmd_##name,
#include "cmds.def"
#undef COMMAND
    NULL, NULL, /* the first NULL is the place for cmd_add() */
};

const struct cmd *const *cmd_all(void)
{
    return rows;
}

void cmd_add(const struct cmd *c)
{
    memmove(rows + 2, rows + 1, (ARRAY_LEN(rows) - 3) * sizeof(*rows));
    rows[1] = c;
}

const struct cmd *cmd_find(const char *name)
{
    for (const struct cmd *const *c = rows; *c; c++)
        if (!strcmp((*c)->name, name))
            return *c;
    return strcmp(name, cmd_complete.name) ? NULL : &cmd_complete;
}

#define COLUMN 26

/* Prints an option in one column and its help in the next, wrapped at 80 columns. */
static void print_option(struct buf *b, const struct opt *o)
{
    char left[64];
    int width = snprintf(left, sizeof(left), "%s%c%s--%s%s%s", o->letter ? "-" : "", o->letter ? o->letter : ' ',
                         o->letter ? ", " : "   ", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    const char *text = o->help;
    size_t room = 80 - COLUMN - 4;

    buf_printf(b, "  %s", left);
    if (width >= COLUMN)
        buf_printf(b, "\n%*s", COLUMN + 4, "");
    else
        buf_printf(b, "%*s", COLUMN + 2 - width, "");
    while (strlen(text) > room) {
        size_t cut = room;
        while (cut && text[cut] != ' ')
            cut--;
        buf_printf(b, "%.*s\n%*s", (int)cut, text, COLUMN + 4, "");
        text += cut + 1;
    }
    buf_printf(b, "%s\n", text);
}

static void print_views(struct buf *b)
{
    buf_puts(b, "\nViews, for --as:\n");
    for (const struct sink_type *const *t = sink_types; *t; t++)
        buf_printf(b, "  %-12s %s\n", (*t)->name, (*t)->about);
}

void cmd_print_help(struct buf *b, const struct cmd *c)
{
    buf_printf(b, "usage: etrace %s %s\n%s.\n", c->name, c->usage, c->summary);
    if (c->about)
        buf_printf(b, "\n%s", c->about);
    for (const struct opt_group *const *g = c->groups; *g; g++) {
        buf_printf(b, "\n%s%s", (*g)->title, *(*g)->title ? ":\n" : "");
        for (size_t i = 0; i < (*g)->count; i++)
            print_option(b, &(*g)->rows[i]);
    }
    if (c == &cmd_trace)
        print_views(b);
}

bool cmd_no_words(struct ctx *ctx, const struct cmd *self, const struct texts *words, const char *hint, int *ret_status)
{
    struct err e;

    if (!words->count)
        return true;
    err_set(&e, ERR_USAGE, "%s takes no arguments, but got '%s'", self->name, words->items[0]);
    if (hint)
        err_hint(&e, "%s", hint);
    *ret_status = ctx_fail(ctx, &e);
    return false;
}

bool cmd_options(struct ctx *ctx, const struct cmd *self, const struct opt_use *uses, size_t nuses, char **argv,
                 struct texts *ret_words, char ***ret_rest, int *ret_status)
{
    struct err e;

    /* Unless a command takes a COMMAND, the words after `--` are ordinary words. */
    if (!opts_parse(uses, nuses, argv, ret_words, ret_rest, &e)) {
        if (!e.hint[0])
            err_hint(&e, "etrace help %s", self->name);
        *ret_status = ctx_fail(ctx, &e);
        return false;
    }
    for (char **word = *ret_rest; word && *word && !strstr(self->usage, "COMMAND..."); word++)
        texts_add(ret_words, *word);
    for (size_t i = 0; i < nuses; i++) {
        struct talk_opts *talk = uses[i].group == &talk_group ? uses[i].target : NULL;
        if (!talk)
            continue;
        ctx->quiet = talk->quiet;
        if (talk->help) {
            struct buf b = {0};
            cmd_print_help(&b, self);
            out_take(ctx->out, &b);
            buf_release(&b);
            *ret_status = 0;
            return false;
        }
    }
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../ground/command_line.h"
#include "../trace/demo_node.h"
#include "../views/grid.h"
#include "groups.h"

static const struct cmd *rows[] = {
#define COMMAND(name) &cmd_##name,
#include "cmds.def"
#undef COMMAND
    NULL, NULL, /* cmd_add() sets the first NULL */
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

const struct opt *cmd_find_option(const struct cmd *c, const char *name, size_t len, char letter)
{
    for (const struct opt_group *const *g = c->groups; *g; g++)
        for (size_t i = 0; i < (*g)->count; i++) {
            const struct opt *o = &(*g)->rows[i];
            if (letter ? o->letter == letter : strlen(o->name) == len && !memcmp(o->name, name, len))
                return o;
        }
    return NULL;
}

static const struct opt *option_of_any(const char *name, size_t len, char letter)
{
    const struct opt *found = cmd_find_option(&cmd_trace, name, len, letter);

    for (const struct cmd *const *c = rows; *c && !found; c++)
        found = cmd_find_option(*c, name, len, letter);
    return found;
}

/* Returns true if the value of the option is in the next argument, as in -n shop, but not in -nshop or --node=shop. */
static bool value_follows(const char *option)
{
    const struct opt *o;

    if (option[1] == '-')
        return !strchr(option, '=') && (o = option_of_any(option + 2, strlen(option + 2), 0)) && o->arg;
    for (const char *c = option + 1; *c; c++)
        if ((o = option_of_any(NULL, 0, *c)) && o->arg)
            return !c[1];
    return false;
}

bool cmd_takes_expressions(const struct cmd *c)
{
    return strstr(c->usage, "EXPR") || strstr(c->usage, "SELECTOR") || strstr(c->usage, "TARGET");
}

char **cmd_first_word(char **argv)
{
    for (char **at = argv; *at && strcmp(*at, "--") != 0; at++)
        if ((*at)[0] != '-' || !(*at)[1])
            return at;
        else if (value_follows(*at) && !*++at)
            break;
    return NULL;
}

#define COLUMN 30 /* column at which the help of an option begins */

void help_row(struct buf *b, const char *left, const char *text, unsigned column)
{
    const size_t room = 80 - column, width = strlen(left) + 2;

    buf_printf(b, "  %s", left);
    if (width + 1 > column)
        buf_printf(b, "\n%*s", (int)column, "");
    else
        buf_printf(b, "%*s", (int)(column - width), "");
    while (strlen(text) > room) {
        size_t cut = room;
        while (cut && text[cut] != ' ')
            cut--;
        buf_printf(b, "%.*s\n%*s", (int)cut, text, (int)column, "");
        text += cut + 1;
    }
    buf_printf(b, "%s\n", text);
}

void help_option(struct buf *b, const struct opt *o)
{
    struct buf text = {0};
    char left[64];

    buf_puts(&text, o->help);
    if (o->table) {
        buf_puts(&text, "; columns: ");
        grid_column_names(o->table, ", ", &text);
    }
    snprintf(left, sizeof(left), "%s%c%s--%s%s%s", o->letter ? "-" : "", o->letter ? o->letter : ' ',
             o->letter ? ", " : "   ", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    help_row(b, left, buf_cstr(&text), COLUMN);
    buf_release(&text);
}

/* Returns true if the help of the command shows the option. Counts in *left_out the options that it does not show. */
static bool shows_option(const struct cmd *c, const struct opt *o, bool all, unsigned *left_out)
{
    char name[64];

    if (all || !c->often)
        return true;
    snprintf(name, sizeof name, " %s ", o->name);
    if (strstr(c->often, name))
        return true;
    ++*left_out;
    return false;
}

void cmd_print_help(struct buf *b, const struct cmd *c, bool all)
{
    unsigned left_out = 0;

    buf_printf(b, "usage: etrace %s %s\n%s.\n", c->name, c->usage, c->summary);
    if (c->about)
        buf_printf(b, "\n%s", c->about);
    for (const struct opt_group *const *g = c->groups; *g; g++) {
        bool titled = false;
        for (size_t i = 0; i < (*g)->count; i++) {
            if (!shows_option(c, &(*g)->rows[i], all, &left_out))
                continue;
            if (!titled)
                buf_printf(b, "\n%s%s", (*g)->title, *(*g)->title ? ":\n" : "");
            titled = true;
            help_option(b, &(*g)->rows[i]);
        }
    }
    if (left_out)
        buf_printf(b, "\n`etrace help %s --all` also describes %u other options.\n", c->name, left_out);
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

bool cmd_format(bool json, int *as, struct err *e)
{
    if (json && *as != GRID_TEXT && *as != GRID_JSON)
        return err_set(e, ERR_USAGE, "--json and --as exclude each other");
    *as = json ? GRID_JSON : *as;
    return true;
}

/*
 * Sets *ret to the name of the file to which standard output is redirected. Returns false if it is not a regular file.
 */
static bool output_file(char *ret, size_t size)
{
    struct stat st;
    char path[4096];

    if (fstat(STDOUT_FILENO, &st) || !S_ISREG(st.st_mode))
        return false;
    ssize_t n = readlink("/proc/self/fd/1", path, sizeof path - 1);
    path[MAX(n, 0)] = '\0';
    const char *slash = strrchr(path, '/');
    snprintf(ret, size, "%s", slash ? slash + 1 : "");
    return true;
}

/*
 * Rejects an expression without quotes. The shell has split such an expression into words, and has read the > of an
 * arrow as a redirection of the output to a file.
 */
static bool require_quotes(const struct texts *words, struct err *e)
{
    static const char *const inner[] = {"when", "where", "by", "inside"};
    char file[256];

    for (size_t i = 0; i < words->count; i++) {
        const char *word = words->items[i];
        const size_t len = strlen(word);
        bool split = !strcmp(word, "-") || !strncmp(word, "->", 2);
        if (len && word[len - 1] == '-' && output_file(file, sizeof file)) {
            err_set(e, ERR_USAGE, "the shell read the > of an arrow as a redirection%s%s",
                    *file ? ", and wrote the file " : "", file);
            err_hint(e, "quote the whole expression: etrace 'lists:seq/2 -> return'");
            return false;
        }
        for (size_t k = 0; i && k < ARRAY_LEN(inner); k++)
            split = split || !strcmp(word, inner[k]);
        if (split) {
            err_set(e, ERR_USAGE, "'%s' is only a part of an expression", word);
            err_hint(e, "quote the whole expression: etrace 'lists:seq/2 -> return'");
            return false;
        }
    }
    return true;
}

/* Returns the options of the node, or NULL if the command has none. */
static struct node_opts *node_options(const struct opt_use *uses, size_t nuses)
{
    for (size_t i = 0; i < nuses; i++)
        if (uses[i].group == &node_group)
            return uses[i].target;
    return NULL;
}

/*
 * Rejects a node name before the expressions, as in etrace shop@host 'lists:seq/2'. A module can have such a name, too,
 * so rejects it only if no option names a node and an expression follows.
 */
static bool require_node_option(const struct opt_use *uses, size_t nuses, const struct texts *words, struct err *e)
{
    const char *name = words->count > 1 ? words->items[0] : "", *at = strchr(name, '@');
    struct command_line command = {0};
    const struct node_opts *node = node_options(uses, nuses);

    if (!node || node->nodes.count || node->os_pid || !at || at == name || strpbrk(name, ":/( |'\""))
        return true;
    err_set(e, ERR_USAGE, "'%s' is no expression, but may be the name of a node", name);
    command_line_add(&command, "-n");
    command_line_word(&command, name);
    err_hint(e, "%s attaches to it", command_line_text(&command));
    command_line_release(&command);
    return false;
}

bool cmd_options(struct ctx *ctx, const struct cmd *self, const struct opt_use *uses, size_t nuses, char **argv,
                 struct texts *ret_words, char ***ret_rest, int *ret_status)
{
    struct err e;

    /* The words after `--` count as arguments, unless the command takes a COMMAND there. */
    if (!opts_parse(uses, nuses, argv, ret_words, ret_rest, &e) ||
        (cmd_takes_expressions(self) &&
         !(require_quotes(ret_words, &e) && require_node_option(uses, nuses, ret_words, &e)))) {
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
            cmd_print_help(&b, self, false);
            out_take(ctx->out, &b);
            buf_release(&b);
            *ret_status = 0;
            return false;
        }
    }
    struct node_opts *node = node_options(uses, nuses);
    return !node || demo_node_named(ctx, node, ret_status);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a command of etrace, such as `ls`, inside the interactive session. */
#include "repl_shell.h"

#include <stdint.h>
#include <string.h>

#include "repl_syntax.h"

static bool takes_group(const struct cmd *c, const struct opt_group *group)
{
    for (const struct opt_group *const *g = c->groups; *g; g++)
        if (*g == group)
            return true;
    return false;
}

static bool is_listed(const struct opt *o, const char *const *names)
{
    while (*names && strcmp(o->name, *names) != 0)
        names++;
    return *names;
}

/* Options that name a node. With one of them, a command is not about the current node. */
static const char *const naming[] = {"node", "pid", "port", "ssh", NULL};
/* Options of node_group that do not say how to connect: they say which node, or what happens if it is lost. */
static const char *const others[] = {"node", "pid", "cluster", "reattach", NULL};

/* Adds the options that name the current node and say how to connect to it, as far as the command has them. */
static void add_node(const struct repl_parts *r, const struct cmd *c, struct texts *argv)
{
    const char *name = repl_nodes_current_name(r->nodes);

    if (!takes_group(c, &node_group) || !name)
        return;
    texts_add(argv, "-n");
    texts_add(argv, arena_strndup(&r->base->options.arena, name, strlen(name)));
    for (size_t i = 0; i < node_group.count; i++) {
        const struct opt *o = &node_group.rows[i];
        const void *at = (const char *)&r->base->options.node + o->offset;
        const char *text = NULL;
        if (is_listed(o, others))
            continue;
        if (o->type == OPT_TEXT)
            text = *(const char *const *)at;
        else if ((o->type == OPT_NUMBER || o->type == OPT_POSITIVE) && *(const int64_t *)at)
            text = arena_printf(&r->base->options.arena, "%lld", (long long)*(const int64_t *)at);
        if (!text && !(o->type == OPT_FLAG && *(const bool *)at))
            continue;
        texts_add(argv, arena_printf(&r->base->options.arena, "--%s", o->name));
        if (text)
            texts_add(argv, text);
    }
}

/* Returns the value of the option as the command gets it. */
static const char *read_value(const struct repl_parts *r, const struct opt *o, const char *typed)
{
    return !strcmp(o->arg, "FILE") ? repl_file_name(&r->base->options.arena, typed) : typed;
}

/*
 * Adds the option in `w` and its value, which is in `w` or the next word of *rest. Returns true if the option names a
 * node.
 */
static bool read_option(const struct repl_parts *r, const struct cmd *c, char *w, char **rest, struct texts *to)
{
    struct opt_use uses[16];
    const char *value = NULL;
    size_t n = 0;

    for (; c->groups[n] && n < ARRAY_LEN(uses); n++)
        uses[n] = (struct opt_use){c->groups[n], NULL};
    const struct opt *o = opts_with_value(uses, n, w, &value);
    if (!o || !value)
        texts_add(to, w);
    else
        texts_add(to, arena_printf(&r->base->options.arena, "%.*s%s", (int)(value - w), w, read_value(r, o, value)));
    if (o && !value && (value = repl_next_word(rest)))
        texts_add(to, read_value(r, o, value));
    return o && is_listed(o, naming);
}

/* Splits `rest` into words. If the command takes an expression, everything after the options stays one word. */
static void read_arguments(const struct repl_parts *r, const struct cmd *c, char *rest, struct texts *argv)
{
    const bool expression = strstr(c->usage, "EXPR"), files = strstr(c->usage, "FILE");
    struct texts options = {0}, words_of = {0};
    bool names_node = false;

    for (rest = repl_trimmed(rest); *rest; rest = repl_trimmed(rest)) {
        if (expression && *rest != '-') {
            texts_add(&words_of, rest);
            break;
        }
        char *w = repl_next_word(&rest);
        if (*w == '-')
            names_node |= read_option(r, c, w, &rest, &options);
        else
            texts_add(&words_of, files ? repl_file_name(&r->base->options.arena, w) : w);
    }
    if (!names_node)
        add_node(r, c, argv);
    for (size_t i = 0; i < options.count; i++)
        texts_add(argv, options.items[i]);
    for (size_t i = 0; i < words_of.count; i++)
        texts_add(argv, words_of.items[i]);
    texts_release(&options);
    texts_release(&words_of);
}

int repl_shell(const struct repl_parts *r, const struct cmd *c, char *rest)
{
    struct texts argv = {0};
    int quiet = r->base->ctx->quiet;

    read_arguments(r, c, rest, &argv);
    texts_add(&argv, NULL);
    repl_views_lend(r->views);
    if (r->base->line)
        editor_lend(r->base->line);
    int status = c->run(r->base->ctx, c, (char **)(uintptr_t)argv.items);
    if (r->base->line)
        editor_return(r->base->line);
    repl_views_return(r->views);
    repl_interrupted(r->base);
    r->base->ctx->quiet = quiet;
    texts_release(&argv);
    return status;
}

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

/* Returns the row of the option that is written as -x or --long, or NULL if the command has no such option. */
static const struct opt *option_of(const struct cmd *c, const char *word)
{
    for (const struct opt_group *const *g = c->groups; *g; g++)
        for (size_t k = 0; k < (*g)->count; k++) {
            const struct opt *o = &(*g)->rows[k];
            if (word[1] == '-' ? !strcmp(word + 2, o->name) : word[1] == o->letter && !word[2])
                return o;
        }
    return NULL;
}

/*
 * Returns true if the option says how to connect to a node. The options in `others` say which node, or what happens
 * when it is lost.
 */
static bool is_how(const struct opt *o)
{
    static const char *const others[] = {"node", "pid", "cluster", "reattach"};

    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (!strcmp(o->name, others[i]))
            return false;
    return true;
}

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
        if (!is_how(o))
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

/* Splits `rest` into words. If the command takes an expression, everything after the options stays one word. */
static void read_arguments(const struct repl_parts *r, const struct cmd *c, char *rest, struct texts *argv)
{
    bool expression = strstr(c->usage, "EXPR") != NULL, names_node = false;
    struct texts options = {0}, words_of = {0};

    for (;;) {
        char *before = repl_trimmed(rest), *w;
        rest = before;
        if (!*rest)
            break;
        if (expression && *rest != '-') {
            texts_add(&words_of, rest);
            break;
        }
        w = repl_next_word(&rest);
        const struct opt *o = *w == '-' ? option_of(c, w) : NULL;
        names_node = names_node || (o && o->letter == 'n');
        texts_add(*w == '-' ? &options : &words_of, repl_file_name(&r->base->options.arena, w));
        if (o && o->arg && (w = repl_next_word(&rest)))
            texts_add(&options, repl_file_name(&r->base->options.arena, w));
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

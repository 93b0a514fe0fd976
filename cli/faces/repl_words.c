/*
 * :commands. Those that are about the session stand here as rows; every option of a tracing command is a setting of the same
 * name; every command of the shell and every view is one, too. Nothing is done here that a row elsewhere does.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "../ground/mem.h"
#include "../ground/near.h"
#include "repl.h"

struct word {
    const char *name, *also; /* another name, or NULL */
    const char *usage, *help;
    int (*run)(struct repl *r, char *rest);
};

static void print(struct repl *r, struct buf *b)
{
    if (r->base.line)
        line_above(r->base.line, buf_view(b));
    else
        buf_str(&r->pending, buf_view(b)); /* in its place among the events */
    buf_release(b);
}

static int PRINTF_LIKE(2, 3) usage(struct repl *r, const char *fmt, ...)
{
    struct err e;
    char text[400];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    err_set(&e, ERR_USAGE, "%s", text);
    return repl_fail(&r->base, &e);
}

/* ---- probes ---- */

static int do_probes(struct repl *r, char *rest UNUSED)
{
    struct buf b = {0};

    repl_list(r, &b);
    print(r, &b);
    return 0;
}

static int do_drop(struct repl *r, char *rest)
{
    char *label = repl_next_word(&rest);

    if (!label)
        return usage(r, "which probe? :drop LABEL, or :drop all");
    for (; label; label = repl_next_word(&rest))
        if (!repl_drop(r, label))
            return usage(r, "there is no probe %s", label);
    return 0;
}

/* Without a label, all of them. */
static int each_label(struct repl *r, char *rest, bool (*each)(struct repl *r, const char *label))
{
    char *label = repl_next_word(&rest);

    do
        if (!each(r, label))
            return usage(r, "there is no probe %s", label);
    while (label && (label = repl_next_word(&rest)));
    return 0;
}

static int do_start(struct repl *r, char *rest)
{
    return each_label(r, rest, repl_start);
}

static int do_stop(struct repl *r, char *rest)
{
    return each_label(r, rest, repl_stop);
}

/* ---- nodes ---- */

static int do_attach(struct repl *r, char *rest)
{
    char *name = repl_next_word(&rest);
    struct err e;

    if (!name)
        return usage(r, "which node? :attach NODE");
    for (; name; name = repl_next_word(&rest))
        if (!repl_attach(r, name, WISH_TYPED, &e))
            return repl_fail(&r->base, &e);
    return 0;
}

static int do_detach(struct repl *r, char *rest)
{
    char *name = repl_next_word(&rest);
    struct peer *p = name ? repl_peer(r, name) : repl_current(r);

    if (!p)
        return usage(r, name ? "%s is not attached" : "no node is attached", name);
    repl_detach(r, p);
    return 0;
}

static int do_node(struct repl *r, char *rest)
{
    char *name = repl_next_word(&rest);
    struct buf b = {0};

    if (name) {
        struct peer *p = repl_peer(r, name);
        if (!p)
            return usage(r, "%s is not attached: :attach %s", name, name);
        r->current = (int)p->index;
        repl_names_forget(r);
        return 0;
    }
    for (size_t i = 0; i < r->run.peers.count; i++) {
        const struct peer *p = &r->run.peers.items[i];
        if (p->came || p->state == PEER_CONNECTING || peer_is_there(p))
            buf_printf(&b, "%s %s%s\n", (int)i == r->current ? "*" : " ", peer_name(p) ? peer_name(p) : "?",
                       p->state == PEER_CONNECTING ? "   (connecting)" : !peer_is_there(p) ? "   (not attached)" : "");
    }
    if (!b.len)
        buf_puts(&b, "no node is attached: :attach NODE\n");
    print(r, &b);
    return 0;
}

static int do_reattach(struct repl *r, char *rest)
{
    char *word = repl_next_word(&rest);

    if (!word || !strcmp(word, "on") || !strcmp(word, "off"))
        r->base.options.reattach = !word || !strcmp(word, "on");
    else
        return usage(r, ":reattach takes on or off, not '%s'", word);
    for (size_t i = 0; i < r->run.peers.count; i++)
        if (r->nodes[i].lost)
            r->nodes[i].retry_at = r->base.options.reattach ? loop_now() : -1;
    repl_wake(&r->base);
    return 0;
}

/* ---- what was captured ---- */

static bool is_on(const struct repl *r)
{
    return r->armed && r->base.line;
}

static const struct sink_type *view_type(const struct view_opts *v)
{
    const char *name = v->as ? v->as : v->json ? "json" : v->summary ? "summary" : "text";

    return sink_by_name(name);
}

static int show(struct repl *r, const struct view_opts *v)
{
    const struct sink_type *type = view_type(v);

    return type && (type->flags & SINK_AGAIN) && is_on(r) ? repl_show_screen(r, v) : repl_show_once(r, v, NULL);
}

/* The settings of the view, without what else is written meanwhile. */
static struct view_opts only_view(const struct repl *r, const char *name)
{
    struct view_opts v = r->base.options.view;

    v.json = v.summary = false;
    v.as = name;
    v.outputs = (struct texts){0};
    return v;
}

static int save(struct repl *r, const char *name, const char *file)
{
    struct view_opts v = only_view(r, name);
    struct scroll_counts c;
    int status = repl_show_once(r, &v, file);

    scroll_counts(r->base.scroll, &c);
    if (!status)
        ctx_say(r->base.ctx, "%s: %llu event%s", file, (unsigned long long)c.events, PLURAL(c.events));
    return status;
}

static int as_view(struct repl *r, const char *name)
{
    struct view_opts v = only_view(r, name), before = r->base.options.view;
    const struct sink_type *type = sink_by_name(name);

    if (!type || !(type->flags & SINK_LINES))
        return show(r, &v);
    v.outputs = before.outputs;
    r->base.options.view = v;
    if (repl_show_live(r, false))
        return 0;
    r->base.options.view = before;
    return ERR_USAGE;
}

static int do_as(struct repl *r, char *rest)
{
    const char *name = NULL, *file = NULL;

    for (char *w; (w = repl_next_word(&rest));) {
        if (!strcmp(w, "-o") || !strcmp(w, "--output")) {
            file = repl_next_word(&rest);
            if (!file)
                return usage(r, "-o needs a file");
        } else if (name) {
            return usage(r, "one view at a time: :as VIEW [-o FILE]");
        } else {
            name = w;
        }
    }
    if (!name)
        return usage(r, "which view? :as text, json, tree, summary, hist, ...");
    name = arena_strndup(&r->base.options.arena, name, strlen(name));
    return file ? save(r, name, file) : as_view(r, name);
}

static int do_save(struct repl *r, char *rest)
{
    char *file = repl_next_word(&rest);

    return file ? save(r, NULL, file) : usage(r, "which file? :save FILE.etr, or in the view of another extension");
}

/* What came before it is shown, and is in the files of -o: those have everything. */
static int do_clear(struct repl *r, char *rest UNUSED)
{
    uint64_t end = scroll_end(r->base.scroll);
    struct err e;

    if (!repl_files_catch_up(r)) {
        repl_interrupted(&r->base);
        err_set(&e, ERR_RUN, "nothing is cleared: the files do not have it yet, and it was interrupted");
        return repl_fail(&r->base, &e);
    }
    repl_catch_up(r);
    scroll_clear(r->base.scroll, end);
    return 0;
}

static int do_scrollback(struct repl *r, char *rest UNUSED)
{
    struct scroll_counts c;
    struct buf b = {0};

    scroll_counts(r->base.scroll, &c);
    buf_printf(&b, "%llu event%s kept in %zu kB", (unsigned long long)c.events, PLURAL(c.events), c.bytes / 1024);
    if (c.dropped)
        buf_printf(&b, " · %llu older events were dropped", (unsigned long long)c.dropped);
    buf_char(&b, '\n');
    print(r, &b);
    return 0;
}

/* ---- waiting, for scripts ---- */

/* Every event is waited for once: it does not matter whether it came before the command or comes after it. */
static bool came(struct repl *r, uint64_t wanted)
{
    struct scroll_counts c;

    scroll_counts(r->base.scroll, &c);
    return c.taken - r->waited >= wanted;
}

#define ON_ITS_WAY_MS 1000

static int do_wait(struct repl *r, char *rest)
{
    char *amount = repl_next_word(&rest), *unit = repl_next_word(&rest), *end;
    int64_t ns, until = -1, idle = -1;
    uint64_t wanted = 0;

    if (amount && unit && !strncmp(unit, "event", 5))
        wanted = strspn(amount, "0123456789") == strlen(amount) ? strtoull(amount, &end, 10) : 0;
    else if (amount && !unit && opt_duration(amount, &ns))
        until = loop_now() + ns / 1000000;
    if (!wanted && until < 0)
        return usage(r, ":wait takes a duration, or N events");
    while ((until < 0 || loop_now() < until) && !(wanted && came(r, wanted)) && !r->base.leaving && repl_attached(r)) {
        /* what is on its way when the last probe stops */
        idle = !wanted || repl_running(r) ? -1 : idle < 0 ? loop_now() + ON_ITS_WAY_MS : idle;
        if (idle >= 0 && loop_now() >= idle)
            return usage(r, "nothing is traced that could be waited for");
        repl_step(&r->base, wanted ? idle : until);
        if (repl_interrupted(&r->base))
            return 0;
    }
    r->waited += wanted;
    return 0;
}

static int do_set(struct repl *r, char *rest UNUSED)
{
    struct buf b = {0};

    repl_options_list(&r->base.options, &b);
    print(r, &b);
    return 0;
}

/* ---- the commands of the shell ---- */

static bool takes(const struct cmd *c, const struct opt_group *group)
{
    for (const struct opt_group *const *g = c->groups; *g; g++)
        if (*g == group)
            return true;
    return false;
}

/* -x or --long at the beginning of a line, with its value where the row has one. */
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

/* Which node it is, is said by its name; whether it is waited for is not the command's affair. */
static bool is_how(const struct opt *o)
{
    static const char *const others[] = {"node", "pid", "cluster", "reattach"};

    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (!strcmp(o->name, others[i]))
            return false;
    return true;
}

/* The node that is asked, and how it is connected to. */
static void add_node(struct repl *r, const struct cmd *c, struct texts *argv)
{
    const char *name = r->current >= 0 ? peer_name(&r->run.peers.items[r->current]) : NULL; /* it may be on its way */

    if (!takes(c, &node_group) || !name)
        return;
    texts_add(argv, "-n");
    texts_add(argv, arena_strndup(&r->base.options.arena, name, strlen(name)));
    for (size_t i = 0; i < node_group.count; i++) {
        const struct opt *o = &node_group.rows[i];
        const void *at = (const char *)&r->base.options.node + o->offset;
        const char *text = NULL;
        if (!is_how(o))
            continue;
        if (o->type == OPT_TEXT)
            text = *(const char *const *)at;
        else if (o->type == OPT_NUMBER && *(const int64_t *)at)
            text = arena_printf(&r->base.options.arena, "%lld", (long long)*(const int64_t *)at);
        if (!text && !(o->type == OPT_FLAG && *(const bool *)at))
            continue;
        texts_add(argv, arena_printf(&r->base.options.arena, "--%s", o->name));
        if (text)
            texts_add(argv, text);
    }
}

/* An expression stands as it is, behind the options; other commands take words. */
static void split(struct repl *r, const struct cmd *c, char *rest, struct texts *argv)
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
        texts_add(*w == '-' ? &options : &words_of, w);
        if (o && o->arg && (w = repl_next_word(&rest)))
            texts_add(&options, w);
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

/* It has the terminal and Ctrl-C while it runs; what we trace goes on into the scrollback. */
static int do_command(struct repl *r, const struct cmd *c, char *rest)
{
    struct texts argv = {0};
    int quiet = r->base.ctx->quiet;

    split(r, c, rest, &argv);
    texts_add(&argv, NULL);
    repl_pause(r);
    r->held = true;
    if (r->base.line)
        line_lend(r->base.line);
    int status = c->run(r->base.ctx, c, (char **)(uintptr_t)argv.items);
    if (r->base.line)
        line_return(r->base.line);
    r->paused = r->held = false;
    repl_show_go_on(r);
    repl_interrupted(&r->base);
    r->base.ctx->quiet = quiet;
    texts_release(&argv);
    return status;
}

/* `:hist EXPR` traces that, and shows it so. */
static int do_view(struct repl *r, const char *name, char *rest)
{
    if (*rest && !repl_probe(r, rest))
        return ERR_USAGE;
    while (*rest && repl_arming(r) && !r->base.leaving && !repl_interrupted(&r->base))
        repl_step(&r->base, -1);
    return as_view(r, arena_strndup(&r->base.options.arena, name, strlen(name)));
}

/* ---- help and the end ---- */

static int do_quit(struct repl *r, char *rest UNUSED)
{
    r->base.leaving = true;
    return 0;
}

static int do_help(struct repl *r, char *rest);

static const struct word words[] = {
    {"probes", NULL, "", "what is traced, each with its label", do_probes},
    {"stop", NULL, "[LABEL...]", "stop probes, or all of them, as Ctrl-C does", do_stop},
    {"start", NULL, "[LABEL...]", "start them again", do_start},
    {"drop", NULL, "LABEL...|all", "forget probes", do_drop},
    {"as", NULL, "VIEW [-o FILE]", "what was captured, in another view; lines go on in it", do_as},
    {"save", NULL, "FILE", "what was captured, into a file: .etr, or another view", do_save},
    {"scrollback", NULL, "", "how much is captured", do_scrollback},
    {"clear", NULL, "", "forget what was captured", do_clear},
    {"attach", NULL, "NODE...", "attach to one more node", do_attach},
    {"detach", NULL, "[NODE]", "leave a node as it was", do_detach},
    {"node", NULL, "[NODE]", "the node that commands ask; alone: all there are", do_node},
    {"reattach", NULL, "on|off", "attach again by itself when a node comes back", do_reattach},
    {"wait", NULL, "TIME|N events", "wait, in scripts", do_wait},
    {"set", NULL, "", "all settings", do_set},
    {"help", "commands", "[NAME]", "this, or more about one of them", do_help},
    {"quit", "q", "", "leave; Ctrl-D does, too", do_quit},
    {NULL, NULL, NULL, NULL, NULL},
};

void repl_words(void (*each)(void *data, const char *word, const char *help), void *data)
{
    for (const struct word *w = words; w->name; w++)
        each(data, w->name, w->help);
    repl_options_each(each, data);
    for (const struct cmd *const *c = cmd_all(); *c; c++)
        if (*c != &cmd_repl && *c != &cmd_help)
            each(data, (*c)->name, (*c)->summary);
}

static void put_wrapped(struct buf *to, const char *name, size_t *col)
{
    size_t len = strlen(name) + 2;

    if (*col + len > 78 || !*col) {
        buf_puts(to, *col ? "\n " : " ");
        *col = 1;
    }
    buf_printf(to, " :%s", name);
    *col += len;
}

/* One screen: what is used most stands last, beside the prompt. */
static void overview(struct buf *b)
{
    size_t col = 0;

    buf_puts(b, "Settings are the options of etrace trace, such as :grep RE and :where EXPR; :set\n"
                "lists them, :help NAME explains. Commands of the shell, and views (:hist EXPR):\n");
    for (const struct cmd *const *c = cmd_all(); *c; c++)
        if (*c != &cmd_repl && *c != &cmd_help && *c != &cmd_completion && *c != &cmd_schema)
            put_wrapped(b, (*c)->name, &col);
    for (const struct sink_type *const *t = sink_types; *t; t++)
        put_wrapped(b, (*t)->name, &col);
    buf_char(b, '\n');
    for (const struct word *each = words; each->name; each++) {
        char left[64];
        snprintf(left, sizeof(left), ":%s %s", each->name, each->usage);
        buf_printf(b, "  %-22s %s\n", left, each->help);
    }
    buf_puts(b, "An expression is traced; it may have a label: sorts: lists:sort(L) -> return\n"
                "Ctrl-C stops what is traced, Ctrl-D leaves, Tab completes.\n");
}

static void help_on(struct buf *b, const char *name)
{
    const struct opt *o;
    const struct cmd *c;

    for (const struct word *w = words; w->name; w++)
        if (!strcmp(w->name, name) || (w->also && !strcmp(w->also, name))) {
            buf_printf(b, ":%s %s\n%s\n", w->name, w->usage, w->help);
            return;
        }
    if ((o = repl_setting_row(name)))
        buf_printf(b, ":%s %s\n%s\n", o->name, o->arg ? o->arg : "on|off", o->help);
    else if ((c = cmd_find(name)))
        cmd_print_help(b, c);
}

static int do_help(struct repl *r, char *rest)
{
    char *name = repl_next_word(&rest);
    struct buf b = {0};

    if (!name)
        overview(&b);
    else
        help_on(&b, name + (*name == ':'));
    if (!b.len)
        return usage(r, "there is no command :%s", name);
    print(r, &b);
    return 0;
}

static void try_near(void *near, const char *word, const char *help UNUSED)
{
    near_try(near, word);
}

int repl_word(struct repl *r, char *line)
{
    char *rest = line = repl_trimmed(line);
    const struct cmd *c;
    int status;

    if (!*line)
        return usage(r, "which command? :help lists them");
    while (*rest && !isspace((unsigned char)*rest))
        rest++;
    if (*rest)
        *rest++ = 0;
    rest = repl_trimmed(rest);
    for (const struct word *w = words; w->name; w++)
        if (!strcmp(w->name, line) || (w->also && !strcmp(w->also, line)))
            return *w->usage || !*rest ? w->run(r, rest) : usage(r, ":%s takes no words, and there is '%s'", w->name, rest);
    if (sink_by_name(line)) /* before --json and --summary, which are such views */
        return do_view(r, line, rest);
    if (repl_setting(r, line, rest, &status))
        return status;
    if ((c = cmd_find(line)) && strcmp(c->name, "repl") != 0)
        return do_command(r, c, rest);
    struct near near = near_start(line, strlen(line));
    struct err e;
    repl_words(try_near, &near);
    err_set(&e, ERR_USAGE, "there is no command :%s", line);
    if (near.best)
        err_hint(&e, "did you mean :%s?", near.best);
    else
        err_hint(&e, ":help lists them");
    return repl_fail(&r->base, &e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the lines of the interactive mode: expressions and :commands. */
#include "repl_words.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../commands/cmd.h"
#include "../commands/topics.h"
#include "../ground/mem.h"
#include "../ground/near.h"
#include "../trace/habits.h"
#include "repl_settings.h"
#include "repl_shell.h"
#include "repl_syntax.h"

struct word {
    const char *name, *also; /* also: other names of the command, each with a blank after it; NULL: none */
    const char *usage, *help;
    int (*run)(struct repl_words *w, char *rest);
};

struct repl_words {
    struct repl_parts parts;
    struct buf typed;     /* the line that is being run, as the user typed it */
    const char *typed_at; /* the same line in the buffer of the parser, which overwrites it */
    uint64_t waited;      /* number of events for which earlier :wait commands have waited */
};

static int repl_words_fail(struct repl_words *w, const struct err *e)
{
    return repl_fail(w->parts.base, e);
}

static void repl_words_print(struct repl_words *w, struct buf *b)
{
    repl_views_print(w->parts.views, b);
}

static int PRINTF_LIKE(2, 3) usage(struct repl_words *w, const char *fmt, ...)
{
    struct err e;
    char text[400];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    err_set(&e, ERR_USAGE, "%s", text);
    return repl_words_fail(w, &e);
}

static void try_near(void *near, const char *word, const char *help UNUSED)
{
    near_try(near, word);
}

/* Sets a hint if another tool has a command, option or view of this name. Returns true if it has set one. */
static bool hint_of_habit(const char *name, struct err *e)
{
    const struct str word = {name, strlen(name)};
    const char *means = habit_meaning(HABIT_REPL, word);
    const struct sink_type *view = habit_view(word);

    if (!means)
        means = habit_meaning(HABIT_OPTION, word);
    if (means && strchr(means, ' '))
        err_hint(e, "%s", means);
    else if (means || view)
        err_hint(e, "did you mean :%s?", means ? means : view->name);
    return means || view || habit_command_hint(name, ":", e);
}

/* Rejects an unknown name, and suggests a similar one. each() lists the known names; `what` says what they name. */
static int unknown_word(struct repl_words *w, const char *what, const char *name,
                        void (*each)(void (*each)(void *data, const char *word, const char *help), void *data))
{
    struct near near = near_start(name, strlen(name));
    struct err e;

    if (repl_recorder_refuses(name, &e))
        return repl_words_fail(w, &e);
    each(try_near, &near);
    err_set(&e, ERR_USAGE, "unknown %s ':%s'", what, name);
    if (hint_of_habit(name, &e))
        return repl_words_fail(w, &e);
    if (near.best)
        err_hint(&e, "did you mean :%s?", near.best);
    else
        err_hint(&e, !strcmp(what, "command") ? ":help lists them" : ":set lists them");
    return repl_words_fail(w, &e);
}

/* ---- probes ---- */

/*
 * Prints the error of an expression. If the line fits into one line of the terminal, prints only carets below the line
 * that the user has typed; otherwise also repeats the line.
 */
static void repl_words_wrong(struct repl_words *w, const char *expr, struct err *e)
{
    static const char prompt[] = "etrace> ";
    struct repl_base *base = w->parts.base;
    const char *line = buf_cstr(&w->typed);
    size_t skipped = (size_t)(expr - w->typed_at);

    if (!base->line || !e->line[0] || strcmp(e->line, expr) || strchr(line, '\n') ||
        editor_column(base->line, prompt, line, strlen(line)) >= editor_width(base->line)) {
        repl_fail(base, e);
        return;
    }
    struct buf b = {0};
    repl_options_reword(e);
    size_t from = editor_column(base->line, prompt, line, skipped + MIN(e->from, strlen(expr)));
    size_t to = editor_column(base->line, prompt, line, MIN(skipped + e->from + e->len, strlen(line)));
    bool colour = base->ctx->color_talk;
    buf_printf(&b, "%*s%s", (int)from, "", colour ? "\033[1;31m" : "");
    for (size_t i = from; i < MAX(to, from + 1); i++)
        buf_char(&b, '^');
    buf_printf(&b, "%s%s%s\n", colour ? "\033[m" : "", e->note[0] ? " " : "", e->note);
    editor_above(base->line, buf_view(&b));
    buf_release(&b);
    e->line[0] = 0;
    repl_fail(base, e);
}

/* Adds a probe and sends the request to the nodes. If either fails, prints the error and returns false. */
static bool trace_probe(struct repl_words *w, const char *line)
{
    const char *expr;
    struct err e;

    if (!repl_probes_add(w->parts.probes, line, &expr, &e)) {
        repl_words_wrong(w, expr, &e);
        return false;
    }
    repl_views_revive(w->parts.views);
    return repl_probes_begin(w->parts.probes);
}

static int do_probes(struct repl_words *w, char *rest UNUSED)
{
    struct buf b = {0};

    probe_list_print(repl_probes_list(w->parts.probes), &b);
    repl_words_print(w, &b);
    return 0;
}

static int do_drop(struct repl_words *w, char *rest)
{
    char *label = repl_next_word(&rest);

    if (!label)
        return usage(w, "which probe? :drop LABEL, or :drop all");
    for (; label; label = repl_next_word(&rest))
        if (!repl_probes_drop(w->parts.probes, label))
            return usage(w, "unknown probe '%s'", label);
    return 0;
}

/* Calls each() for every label in `rest`. Without labels, calls it once with NULL, which means all probes. */
static int each_label(struct repl_words *w, char *rest, bool (*each)(struct repl_words *w, const char *label))
{
    char *label = repl_next_word(&rest);

    do
        if (!each(w, label))
            return usage(w, "unknown probe '%s'", label);
    while (label && (label = repl_next_word(&rest)));
    return 0;
}

static bool repl_words_start(struct repl_words *w, const char *label)
{
    if (!repl_probes_resume(w->parts.probes, label))
        return false;
    repl_views_revive(w->parts.views);
    repl_probes_arm(w->parts.probes);
    return true;
}

static bool stop_probes(struct repl_words *w, const char *label)
{
    return repl_probes_stop(w->parts.probes, label);
}

static int do_start(struct repl_words *w, char *rest)
{
    return each_label(w, rest, repl_words_start);
}

static int do_stop(struct repl_words *w, char *rest)
{
    return each_label(w, rest, stop_probes);
}

/* ---- nodes ---- */

static int do_attach(struct repl_words *w, char *rest)
{
    char *name = repl_next_word(&rest);
    struct err e;

    if (!name)
        return usage(w, "which node? :attach NODE");
    for (; name; name = repl_next_word(&rest))
        if (!repl_nodes_attach(w->parts.nodes, name, WISH_TYPED, &e))
            return repl_words_fail(w, &e);
    return 0;
}

static int do_detach(struct repl_words *w, char *rest)
{
    char *name = repl_next_word(&rest);
    struct peer *p = name ? repl_nodes_find(w->parts.nodes, name) : repl_nodes_current(w->parts.nodes);

    if (!p)
        return usage(w, name ? "%s is not attached" : "no node is attached", name);
    repl_nodes_detach(w->parts.nodes, p);
    return 0;
}

static int do_node(struct repl_words *w, char *rest)
{
    char *name = repl_next_word(&rest);
    struct buf b = {0};

    if (name) {
        struct peer *p = repl_nodes_find(w->parts.nodes, name);
        if (!p)
            return usage(w, "%s is not attached: :attach %s", name, name);
        repl_nodes_choose(w->parts.nodes, p);
        return 0;
    }
    repl_nodes_list(w->parts.nodes, &b);
    if (!b.len)
        buf_puts(&b, "no node is attached: :attach NODE\n");
    repl_words_print(w, &b);
    return 0;
}

/* ---- captured events ---- */

static bool is_on(const struct repl_words *w)
{
    return repl_probes_armed(w->parts.probes) && w->parts.base->line;
}

static const struct sink_type *view_type(const struct view_opts *v)
{
    const char *name = v->as ? v->as : v->json ? "json" : v->summary ? "summary" : "text";

    return sink_by_name(name);
}

static int repl_words_show(struct repl_words *w, const struct view_opts *v)
{
    const struct sink_type *type = view_type(v);

    return type && (type->flags & SINK_AGAIN) && is_on(w) ? repl_views_screen(w->parts.views, v)
                                                          : repl_views_once(w->parts.views, v, NULL);
}

/* Returns the options of the named view, without the files of -o. */
static struct view_opts only_view(const struct repl_words *w, const char *name)
{
    struct view_opts v = w->parts.base->options.view;

    v.json = v.summary = false;
    v.as = name;
    v.outputs = (struct texts){0};
    return v;
}

static int save_view(struct repl_words *w, const char *name, const char *typed)
{
    const char *file = repl_file_name(&w->parts.base->options.arena, typed);
    struct view_opts v = only_view(w, name);

    return repl_views_once(w->parts.views, &v, file);
}

static int as_view(struct repl_words *w, const char *name)
{
    struct view_opts v = only_view(w, name), before = w->parts.base->options.view;
    const struct sink_type *type = sink_by_name(name);

    if (!type || !(type->flags & SINK_LINES))
        return repl_words_show(w, &v);
    v.outputs = before.outputs;
    w->parts.base->options.view = v;
    if (repl_views_open(w->parts.views, false))
        return 0;
    w->parts.base->options.view = before;
    return ERR_USAGE;
}

static int do_as(struct repl_words *w, char *rest)
{
    const char *name = NULL, *file = NULL;

    for (char *word; (word = repl_next_word(&rest));) {
        if (!strcmp(word, "-o") || !strcmp(word, "--output")) {
            file = repl_next_word(&rest);
            if (!file)
                return usage(w, "-o needs a file");
        } else if (name) {
            return usage(w, "one view at a time: :as VIEW [-o FILE]");
        } else {
            name = word;
        }
    }
    if (!name)
        return usage(w, "which view? :as text, json, tree, summary, hist, ...");
    name = arena_strndup(&w->parts.base->options.arena, name, strlen(name));
    return file ? save_view(w, name, file) : as_view(w, name);
}

static int do_save(struct repl_words *w, char *rest)
{
    char *file = repl_next_word(&rest);

    return file ? save_view(w, NULL, file)
                : usage(w, "which file? :save FILE.etr records; any other extension selects its view");
}

/* Clears the scrollback. First shows its events and writes them to the files of -o, which must get all events. */
static int do_clear(struct repl_words *w, char *rest UNUSED)
{
    uint64_t end = scroll_end(w->parts.base->scroll);
    struct err e;

    if (!repl_files_catch_up(w->parts.files)) {
        repl_interrupted(w->parts.base);
        err_set(&e, ERR_RUN, "nothing was cleared: writing the events to the files was interrupted");
        return repl_words_fail(w, &e);
    }
    repl_views_catch_up(w->parts.views);
    scroll_clear(w->parts.base->scroll, end);
    return 0;
}

static int do_scrollback(struct repl_words *w, char *rest UNUSED)
{
    struct scroll_counts c;
    struct buf b = {0};

    scroll_counts(w->parts.base->scroll, &c);
    buf_printf(&b, "%llu event%s kept in %zu kB", (unsigned long long)c.events, PLURAL(c.events), c.bytes / 1024);
    if (c.dropped)
        buf_printf(&b, " · %llu older events were dropped", (unsigned long long)c.dropped);
    buf_char(&b, '\n');
    repl_words_print(w, &b);
    return 0;
}

/* ---- waiting, for scripts ---- */

/*
 * Returns true if `wanted` more events have arrived, not counting those for which earlier :wait commands have waited.
 * Events that arrived before this :wait count.
 */
static bool have_come(struct repl_words *w, uint64_t wanted)
{
    struct scroll_counts c;

    scroll_counts(w->parts.base->scroll, &c);
    return c.taken - w->waited >= wanted;
}

#define ON_ITS_WAY_MS 1000

static int wait_without_node(struct repl_words *w)
{
    struct err e;

    err_set(&e, ERR_NODE, "no node is attached, so no event can arrive");
    err_hint(&e, ":attach NODE attaches one");
    return repl_words_fail(w, &e);
}

static int do_wait(struct repl_words *w, char *rest)
{
    char *amount = repl_next_word(&rest), *unit = repl_next_word(&rest), *end;
    int64_t ns, until = -1, idle = -1;
    uint64_t wanted = 0;

    if (amount && unit && !strncmp(unit, "event", 5))
        wanted = strspn(amount, "0123456789") == strlen(amount) ? strtoull(amount, &end, 10) : 0;
    else if (amount && !unit && opt_duration(amount, &ns))
        until = loop_now() + ns / 1000000;
    if (!wanted && until < 0)
        return usage(w, ":wait takes a duration, or N events");
    while ((until < 0 || loop_now() < until) && !(wanted && have_come(w, wanted))) {
        if (!repl_nodes_expected(w->parts.nodes))
            return wanted ? wait_without_node(w) : 0;
        /* Waits ON_ITS_WAY_MS longer if no probe is running, because the last events may still arrive. */
        idle = !wanted || probe_list_running(repl_probes_list(w->parts.probes)) ? -1
               : idle < 0                                                       ? loop_now() + ON_ITS_WAY_MS
                                                                                : idle;
        if (idle >= 0 && loop_now() >= idle)
            return usage(w, "no probe is running, so no event can arrive");
        repl_step(w->parts.base, wanted ? idle : until);
        if (repl_interrupted(w->parts.base) || w->parts.base->leaving)
            return 0;
    }
    w->waited += wanted;
    return 0;
}

/* Changes a setting, or lists all settings. `:set NAME VALUE` means the same as `:NAME VALUE`. */
static int do_set(struct repl_words *w, char *rest)
{
    struct buf b = {0};
    char *name = repl_next_word(&rest);
    int status;

    if (name) {
        name += *name == ':';
        return repl_setting(&w->parts, name, repl_trimmed(rest), &status)
                   ? status
                   : unknown_word(w, "setting", name, repl_options_each);
    }
    repl_options_list(&w->parts.base->options, &b);
    repl_words_print(w, &b);
    return 0;
}

static int do_snapshot(struct repl_words *w, char *rest UNUSED)
{
    bool interrupted;
    struct err e;

    repl_views_revive(w->parts.views);
    if (!repl_recorder_snapshot(w->parts.recorder, &interrupted, &e))
        return repl_words_fail(w, &e);
    if (interrupted) /* after Ctrl-C, there may be too many events to read them */
        repl_views_go_on(w->parts.views);
    return 0;
}

/* Shows all captured events in the view. With an expression, as in `:hist EXPR`, first adds a probe. */
static int do_view(struct repl_words *w, const char *name, char *rest)
{
    if (*rest && !trace_probe(w, rest))
        return ERR_USAGE;
    while (*rest && repl_probes_arming(w->parts.probes) && !w->parts.base->leaving && !repl_interrupted(w->parts.base))
        repl_step(w->parts.base, -1);
    return as_view(w, arena_strndup(&w->parts.base->options.arena, name, strlen(name)));
}

/* ---- help and the end ---- */

static int do_quit(struct repl_words *w, char *rest UNUSED)
{
    w->parts.base->leaving = true;
    return 0;
}

static int do_help(struct repl_words *w, char *rest);

static const struct word words[] = {
    {"probes", NULL, "", "the probes, each with its label", do_probes},
    {"stop", NULL, "[LABEL...]", "stop these probes, or all of them as Ctrl-C does", do_stop},
    {"start", NULL, "[LABEL...]", "start them again", do_start},
    {"drop", NULL, "LABEL...|all", "forget probes", do_drop},
    {"as", NULL, "VIEW [-o FILE]", "show captured and new events in another view", do_as},
    {"snapshot", NULL, "", "show the last events of a flight recorder (:ring)", do_snapshot},
    {"save", NULL, "FILE", "write the captured events: .etr, or another view", do_save},
    {"scrollback", NULL, "", "the number of captured events, and their memory", do_scrollback},
    {"clear", NULL, "", "forget the captured events", do_clear},
    {"attach", NULL, "NODE...", "attach to one more node", do_attach},
    {"detach", NULL, "[NODE]", "detach from a node and clean it up", do_detach},
    {"node", NULL, "[NODE]", "select the node of :commands; alone: list the nodes", do_node},
    {"wait", NULL, "TIME|N events", "wait, in scripts", do_wait},
    {"set", NULL, "[NAME [VALUE]]", "change a setting; alone: list them", do_set},
    {"help", "commands ", "[NAME]", "this list, or more about one command", do_help},
    {"quit", "q exit ", "", "leave, as Ctrl-D does", do_quit},
    {NULL, NULL, NULL, NULL, NULL},
};

static const struct word *word_find(const char *name)
{
    const size_t len = strlen(name);

    for (const struct word *row = words; row->name; row++) {
        if (!strcmp(row->name, name))
            return row;
        for (const char *also = row->also; also && *also; also += strcspn(also, " ") + 1)
            if (strcspn(also, " ") == len && !memcmp(also, name, len))
                return row;
    }
    return NULL;
}

static bool is_offered(const struct cmd *c)
{
    return c != &cmd_help && strcmp(c->name, "repl") != 0;
}

void repl_words_each(void (*each)(void *data, const char *word, const char *help), void *data)
{
    for (const struct word *row = words; row->name; row++)
        each(data, row->name, row->help);
    repl_options_each(each, data);
    for (const struct cmd *const *c = cmd_all(); *c; c++)
        if (is_offered(*c))
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

/*
 * Appends the text of :help, which fits on one screen. The most frequent commands are at its end, close to the prompt.
 */
static void put_overview(struct buf *b)
{
    size_t col = 0;

    buf_puts(b, "Settings are the options of etrace trace, such as :grep RE and :where EXPR; :set\n"
                "lists them, :help NAME explains. Commands of the shell, and views (:hist EXPR):\n");
    for (const struct cmd *const *c = cmd_all(); *c; c++)
        if (is_offered(*c) && *c != &cmd_completion && *c != &cmd_schema)
            put_wrapped(b, (*c)->name, &col);
    for (const struct sink_type *const *t = sink_types; *t; t++)
        put_wrapped(b, (*t)->name, &col);
    buf_char(b, '\n');
    for (const struct word *each = words; each->name; each++) {
        char left[64];
        snprintf(left, sizeof(left), ":%s %s", each->name, each->usage);
        buf_printf(b, "  %-22s %s\n", left, each->help);
    }
    buf_puts(b, "An expression, with or without a label, is traced: sorts: lists:sort(L)\n"
                "Ctrl-C stops all probes, Ctrl-D leaves, Tab completes.\n");
}

/*
 * Prints every meaning of the name. Explains a command of etrace only if the session has no :command and no setting of
 * this name.
 */
static void help_on(struct buf *b, const char *name)
{
    const struct word *row = word_find(name);
    const struct opt *o = repl_setting_row(name);
    const struct cmd *c = row || o ? NULL : cmd_find(name);

    if (row)
        buf_printf(b, ":%s %s\n%s\n", row->name, row->usage, row->help);
    else if (o)
        buf_printf(b, ":%s %s\n%s\n", o->name, o->arg ? o->arg : "on|off", o->help);
    if (c)
        cmd_print_help(b, c, true);
    else if (!row)
        topic_print(b, name, ":");
}

static int do_help(struct repl_words *w, char *rest)
{
    char *name = repl_next_word(&rest);
    struct buf b = {0};

    if (!name)
        put_overview(&b);
    else
        help_on(&b, name + (*name == ':'));
    if (!b.len)
        return unknown_word(w, "command", name + (*name == ':'), repl_words_each);
    repl_words_print(w, &b);
    return 0;
}

static int do_word(struct repl_words *w, char *line)
{
    char *rest = line = repl_trimmed(line);
    const struct cmd *c;
    int status;

    if (!*line)
        return usage(w, "which command? :help lists them");
    while (*rest && !isspace((unsigned char)*rest))
        rest++;
    if (*rest)
        *rest++ = 0;
    rest = repl_trimmed(rest);
    const struct word *row = word_find(line);
    if (row)
        return *row->usage || !*rest ? row->run(w, rest)
                                     : usage(w, ":%s takes no arguments, but got '%s'", row->name, rest);
    c = cmd_find(line);
    /*
     * Look for a view before a setting: json and summary are both, and the word means the view. If a view and a command
     * have the same name, the name alone means the view, and the name with arguments means the command.
     */
    if (sink_by_name(line) && !(c && *rest)) {
        if (c)
            ctx_say(w->parts.base->ctx,
                    ":%s alone shows captured events; with arguments, as in ':%s --for 10s', it traces", line, line);
        return do_view(w, line, rest);
    }
    if (repl_setting(&w->parts, line, rest, &status))
        return status;
    if (c && strcmp(c->name, "repl") != 0)
        return repl_shell(&w->parts, c, rest);
    return unknown_word(w, "command", line, repl_words_each);
}

/*
 * Rejects the name of a command without its colon, because it would select all functions of a module. Returns true if
 * it has rejected the line.
 */
static bool reject_bare_command(struct repl_words *w, const char *name)
{
    struct err e;

    if (!word_find(name) && !cmd_find(name))
        return false;
    err_set(&e, ERR_USAGE, "'%s' is a command: :%s", name, name);
    err_hint(&e, "%s:_ selects the functions of a module with this name", name);
    repl_words_fail(w, &e);
    return true;
}

void repl_words_run(struct repl_words *w, char *line)
{
    struct repl_base *base = w->parts.base;
    char *at = line;

    buf_clear(&w->typed);
    buf_puts(&w->typed, line);
    w->typed_at = line;
    if (lang_is_blank((struct str){line, strlen(line)}))
        return;
    while (*at == ' ' || *at == '\t')
        at++;
    if (repl_is_command((struct str){at, strlen(at)})) {
        int status = do_word(w, at + 1);
        if (status && !base->status)
            base->status = status;
    } else if (!reject_bare_command(w, repl_trimmed(at))) {
        trace_probe(w, line);
    }
}

/* ---- beginning and end ---- */

struct repl_words *repl_words_new(const struct repl_parts *parts)
{
    struct repl_words *w = mem_zalloc(sizeof(*w));

    w->parts = *parts;
    return w;
}

void repl_words_free(struct repl_words *w)
{
    if (!w)
        return;
    buf_release(&w->typed);
    free(w);
}

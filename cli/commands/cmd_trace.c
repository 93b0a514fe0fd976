/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etrace [trace]: attaches to nodes and streams the events that the expressions select. With `-- COMMAND`, starts the
 * command and traces its node.
 */
#include <string.h>
#include <unistd.h>

#include "../ground/screen.h"
#include "../trace/assertions.h"
#include "../trace/child.h"
#include "browse_trace.h"
#include "cmd.h"
#include "../trace/command_node.h"
#include "../trace/habits.h"
#include "../trace/live.h"
#include "../trace/outputs.h"
#include "../trace/snapshot_command.h"
#include "../trace/together.h"
#include "recorder.h"
#include "snapshot_stacks.h"
#include "table_screen.h"
#include "unmatched.h"

static int no_expression(struct ctx *ctx)
{
    struct err e;

    err_set(&e, ERR_USAGE, "no expression to trace");
    err_hint(&e, "for example etrace 'lists:seq/2 -> return'; etrace help trace");
    return ctx_fail(ctx, &e);
}

/* Returns true if the cookie is read from standard input. */
static bool reads_cookie(const struct node_opts *node)
{
    return node->cookie_file && !strcmp(node->cookie_file, "-");
}

/*
 * Reads the actions of --then. Compiles their probes already now, because no user may be present to read an error when
 * a snapshot begins.
 */
static bool read_then(struct ctx *ctx, const struct recorder_opts *o, const struct node_opts *node,
                      struct then_opts *ret, struct err *e)
{
    const struct what_opts what = WHAT_OPTS_INIT;
    struct exprs exprs;
    struct texts texts = {0}, none = {0};
    bool later;

    ret->for_ns = o->then_for_ns;
    if (!snapshot_actions(&o->then, ret, e))
        return false;
    if (!ret->probes.count)
        return true;
    if (!TOGETHER(e, KNOWN(COOKIE_INPUT, reads_cookie(node)), KNOWN(THEN_TRACE, true)))
        return false;
    exprs_init(&exprs);
    exprs.find_record = exprs_later;
    exprs.find_data = &later;
    const bool ok = exprs_texts(ctx, &what, &ret->probes, &exprs.arena, &texts, e) &&
                    exprs_compile(&exprs, &what, &texts, &none, 0, e);
    texts_release(&texts);
    exprs_release(&exprs);
    return ok;
}

/* Rejects options about snapshots if the trace has no recorder that takes snapshots. */
static bool require_recorder(const struct recorder_opts *o, const struct texts *outputs, struct err *e)
{
    const struct recorder_opts unset = RECORDER_OPTS_INIT;
    const char *option = o->then.count                         ? "--then"
                         : o->then_for_ns != unset.then_for_ns ? "--then-for"
                         : o->snapshots != unset.snapshots     ? "--snapshots"
                         : o->interval_ns != unset.interval_ns ? "--snapshot-every"
                         : o->after_ns != unset.after_ns       ? "--snapshot-after"
                                                               : NULL;
    struct texts plain = {0}, numbered = {0};

    outputs_split(outputs, &plain, &numbered);
    const bool ok = TOGETHER(e, KNOWN_TEXT(RECORDER, recorder_option(o)), KNOWN_TEXT(SNAPSHOTS, option),
                             KNOWN_TEXT(NUMBERED, numbered.count ? numbered.items[0] : NULL));
    texts_release(&plain);
    texts_release(&numbered);
    return ok;
}

static bool read_recorder(struct ctx *ctx, const struct recorder_opts *o, const struct node_opts *node,
                          const struct texts *outputs, struct limit_opts *limit, struct texts *words, struct err *e)
{
    struct ring_opts *ring = &limit->ring;

    if (!require_recorder(o, outputs, e))
        return false;
    if (!recorder_read(o, limit, e))
        return false;
    if (ring->system)
        texts_add(words, o->when);
    return !ring->on || read_then(ctx, o, node, &ring->then, e);
}

/* Rejects a first word that is the name of a command of etrace or of another tool, not an expression. */
static bool reject_command(const struct texts *words, struct err *e)
{
    struct err meant = {0};
    const char *name = words->count ? words->items[0] : "";

    if (!words->count)
        return false;
    if (cmd_find(name)) {
        err_set(e, ERR_USAGE, "'%s' is a command: etrace %s ...", name, name);
        err_hint(e, "%s:_ selects the functions of a module with this name", name);
        return true;
    }
    if (!habit_command_hint(name, "etrace ", &meant))
        return false;
    err_set(e, ERR_USAGE, "etrace has no command '%s'", name);
    err_hint(e, "%s (%s:_ selects the functions of a module with this name)", meant.hint, name);
    return true;
}

static int cmd_trace_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct node_opts node = NODE_OPTS_INIT;
    struct what_opts what = WHAT_OPTS_INIT;
    struct limit_opts limit = LIMIT_OPTS_INIT;
    struct view_opts view = VIEW_OPTS_INIT;
    struct assert_opts asserts = {0};
    struct recorder_opts recorder = RECORDER_OPTS_INIT;
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&node_group, &node},         {&what_group, &what},      {&limit_group, &limit},
                             {&view_group, &view},         {&screen_group, &view},    {&recorder_group, &recorder},
                             {&snapshot_group, &recorder}, {&assert_group, &asserts}, {&talk_group, &talk}};
    struct texts words = {0};
    struct table_screen screen;
    struct browse_trace browse = {0};
    struct snapshot_stacks *stacks = NULL;
    struct buf unmatched = {0};
    struct arena arena;
    struct err e;
    char **rest;
    int status = 0;

    arena_init(&arena);
    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status)) {
        struct live_options o = {.node = &node,
                                 .what = &what,
                                 .limit = &limit,
                                 .view = &view,
                                 .asserts = &asserts,
                                 .words = &words,
                                 .unmatched = &unmatched};
        table_screen_init(&screen, ctx, "trace", 0, view.color);
        screen.table.if_counts = true;
        view.turn = &screen.refresh.turn;
        view.screen = &screen.screen;
        const bool knows =
            read_recorder(ctx, &recorder, &node, &view.outputs, &limit, &words, &e) &&
            TOGETHER(&e, KNOWN(BROWSE, view.browse), KNOWN(COMMAND, rest != NULL),
                     KNOWN_TEXT(RECORDER, recorder_option(&recorder))) &&
            (!view.browse ||
             browse_trace_begin(&browse, ctx, &(struct browse_settings){&node, &what, &view, &asserts, &words}, &e));
        if (limit.ring.then.stacks) {
            stacks = snapshot_stacks_new(ctx);
            o.moment = snapshot_stacks_moment(stacks);
        }
        if (!rest && !limit.ring.on && screen_can(STDIN_FILENO, STDOUT_FILENO))
            o.table = view.browse ? &browse.table : &screen.table;
        if (!knows || reject_command(&words, &e))
            status = ctx_fail(ctx, &e);
        else if (!words.count && !what.files.count)
            status = no_expression(ctx);
        else if (!TOGETHER(&e, KNOWN(COOKIE_INPUT, reads_cookie(&node)),
                           KNOWN(FILE_INPUT, texts_has(&what.files, "-"))) ||
                 !exprs_pipes(ctx, &what, &arena, &e))
            status = ctx_fail(ctx, &e);
        else if (rest)
            status = command_node_run(ctx, &o, &what, rest);
        else
            do
                status = live_run(ctx, &o, "text");
            while (browse_trace_again(&browse, &status));
        if (!rest && !status)
            unmatched_show(ctx, &o, buf_cstr(&unmatched));
        table_screen_release(&screen);
        browse_trace_end(&browse);
        snapshot_stacks_free(stacks);
    }
    buf_release(&unmatched);
    texts_release(&limit.ring.then.probes);
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&what.pipes);
    texts_release(&words);
    arena_release(&arena);
    return status;
}

static const char about[] = "  etrace 'lists:seq/2'                            calls of a function\n"
                            "  etrace 'ets:lookup(_, K) when K > 9 -> return'  some of them, with results\n"
                            "  etrace 'MyApp.Repo.get/2 -> return, caller'     who called, how long it took\n"
                            "  etrace 'send(_, {reply, _})' -P my_server       messages\n"
                            "  etrace 'my_app:_' -- mix run                    a node that etrace starts\n"
                            "\netrace-expr(7) explains expressions. Each expression is one argument.\n";

static const struct opt_group *const groups[] = {&node_group,     &what_group,
                                                 &limit_group,    &view_group,
                                                 &screen_group,   &recorder_group,
                                                 &snapshot_group, &assert_group,
                                                 &talk_group,     NULL};
const struct cmd cmd_trace = {
    .name = "trace",
    .usage = "[-n NODE] [OPTIONS] EXPR... [-- COMMAND...]",
    .summary = "Prints the events that the expressions select",
    .often = " node pid proc where grep limit for rate as json summary output by ring quiet help ",
    .about = about,
    .run = cmd_trace_run,
    .groups = groups,
};

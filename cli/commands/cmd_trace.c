/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etrace [trace]: attaches to nodes and streams the events that the expressions ask for, or starts a command and traces
 * its node.
 */
#include <string.h>
#include <unistd.h>

#include "../ground/screen.h"
#include "../trace/assertions.h"
#include "../trace/child.h"
#include "cmd.h"
#include "../trace/command_node.h"
#include "../trace/live.h"
#include "../trace/snapshot_command.h"
#include "table_screen.h"

static int no_expression(struct ctx *ctx)
{
    struct err e;

    err_set(&e, ERR_USAGE, "no expression to trace");
    err_hint(&e, "for example etrace 'lists:seq/2 -> return'; etrace help trace");
    return ctx_fail(ctx, &e);
}

static int both_read_input(struct ctx *ctx)
{
    struct err e;

    err_set(&e, ERR_USAGE, "--cookie-file - and --file - both read standard input: use only one");
    return ctx_fail(ctx, &e);
}

#define RATE_ABSENT (-1) /* --rate is not given; its default does not apply to a flight recorder */
#define RING_LEAST (256 << 10)
#define RING_TIMED (8 << 20) /* with --ring TIME */

static uint32_t milliseconds(int64_t ns)
{
    return (uint32_t)MIN(MAX(ns / 1000000, 1), (int64_t)INT32_MAX);
}

/* Reads --ring: a size, rounded up to a power of two, or a time. The letter m alone could be either. */
static bool read_ring(const char *text, struct limit_opts *limit, struct err *e)
{
    struct ring_opts *ring = &limit->ring;
    int64_t n = 0;
    const char *unit = text + strspn(text, "0123456789.");
    const bool known = *unit && strcmp(unit, "m") != 0 && strcmp(unit, "M") != 0;

    if (!known || (!opt_size(text, &n) && !opt_duration(text, &n)) || !n) {
        err_set(e, ERR_USAGE, "--ring does not take '%s'", text);
        err_hint(e, "a size with its unit such as 8MB, or a time such as 30s or 5min");
        return false;
    }
    ring->on = true;
    if (!opt_size(text, &n)) {
        opt_duration(text, &n);
        ring->bytes = RING_TIMED;
        ring->most_ms = milliseconds(n);
    } else {
        if (n < RING_LEAST || n > RING_MOST)
            return err_set(e, ERR_USAGE, "--ring takes a size from 256kB to 64MB, not %s", text);
        for (ring->bytes = RING_LEAST; ring->bytes < n;)
            ring->bytes *= 2;
    }
    return true;
}

static bool read_recorder(const struct recorder_opts *o, struct limit_opts *limit, struct texts *words, struct err *e)
{
    struct ring_opts *ring = &limit->ring;

    if (o->then && !o->ring && !o->when)
        return err_set(e, ERR_USAGE, "--then needs --ring or --snapshot-when");
    if (!o->ring && !o->when)
        return true;
    if (o->then && !snapshot_command_check(o->then, e))
        return false;
    if (!o->ring)
        *ring = (struct ring_opts){.on = true, .bytes = RING_TIMED};
    else if (!read_ring(o->ring, limit, e))
        return false;
    if (limit->limit) {
        err_set(e, ERR_USAGE, "%s and --limit cannot be combined: the node keeps the last events, not the first",
                o->ring ? "--ring" : "--snapshot-when");
        err_hint(e, "--for ends the recording after a time");
        return false;
    }
    ring->when = o->when;
    ring->system = o->when && *o->when == '@';
    if (ring->system && !exprs_system_trigger(o->when, e))
        return false;
    if (ring->system)
        texts_add(words, o->when);
    ring->after_ms = milliseconds(o->after_ns);
    ring->interval_ms = milliseconds(o->interval_ns);
    ring->snapshots = (uint64_t)o->snapshots;
    ring->then = o->then;
    return true;
}

/* Whether the first expression is the name of a command, as in etrace -n shop top. */
static bool is_command(const struct texts *words, struct err *e)
{
    if (!words->count || !cmd_find(words->items[0]))
        return false;
    err_set(e, ERR_USAGE, "'%s' is a command, and stands before its options: etrace %s ...", words->items[0], words->items[0]);
    err_hint(e, "%s:_ selects the functions of a module with this name", words->items[0]);
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
    struct opt_use uses[] = {{&node_group, &node},         {&what_group, &what},         {&limit_group, &limit}, {&view_group, &view},
                             {&recorder_group, &recorder}, {&assert_group, &asserts}, {&talk_group, &talk}};
    struct texts words = {0};
    struct table_screen screen;
    struct arena arena;
    struct err e;
    char **rest;
    int status = 0;

    arena_init(&arena);
    limit.rate = RATE_ABSENT;
    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status)) {
        struct live_options o = {&node, &what, &limit, &view, &asserts, &words, NULL, NULL};
        table_screen_init(&screen, ctx, "trace", 0, view.color);
        screen.table.if_counts = true;
        const bool knows = read_recorder(&recorder, &limit, &words, &e);
        if (limit.rate == RATE_ABSENT)
            limit.rate = limit.ring.on ? 0 : RATE_DEFAULT;
        if (!rest && !limit.ring.on && screen_can(STDIN_FILENO, STDOUT_FILENO))
            o.table = &screen.table;
        if (!knows || is_command(&words, &e))
            status = ctx_fail(ctx, &e);
        else if (!words.count && !what.files.count)
            status = no_expression(ctx);
        else if (node.cookie_file && !strcmp(node.cookie_file, "-") && texts_has(&what.files, "-"))
            status = both_read_input(ctx);
        else if (!exprs_pipes(ctx, &what, &arena, &e))
            status = ctx_fail(ctx, &e);
        else
            status = rest ? command_node_run(ctx, &o, &what, rest) : live_run(ctx, &o, "text");
        table_screen_release(&screen);
    }
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

static const struct opt_group *const groups[] = {&node_group,   &what_group, &limit_group, &view_group,
                                                 &recorder_group, &assert_group, &talk_group, NULL};
const struct cmd cmd_trace = {
    .name = "trace",
    .usage = "[-n NODE] [OPTIONS] EXPR... [-- COMMAND...]",
    .summary = "Prints the events that the expressions select",
    .about = about,
    .run = cmd_trace_run,
    .groups = groups,
};

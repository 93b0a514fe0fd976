/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etrace died: shows which processes exit, why, and what their exits do to other processes. It runs a trace with fixed
 * expressions; the views of exits combine its events (fold/deaths.h).
 */
#include <string.h>

#include "../fold/death_choice.h"
#include "../trace/live.h"
#include "../trace/outputs.h"
#include "../trace/who.h"
#include "../views/sink.h"
#include "cmd.h"
#include "recorder.h"

/* Default of --rate: one exit has several events, and a rate limit could leave out some of them. */
#define RATE 100000

/*
 * Events about exits and their causes. If a process traps exits, the exit of a linked process is reported as
 * getting_unlinked, even if the link is older than the trace. Names of exiting processes come from the node. The calls
 * of exit and raise are rare. They tell whether a process ended by itself or by a signal, and who sent the signal.
 */
static const char *const causes[] = {
    "@exit",
    "@spawn",
    "@register",
    "@unregister",
    "@link",
    "@unlink",
    "@getting_unlinked",
    /* Not `caller`: exit/1 never returns, so the VM may name the next function of the module instead of the caller. */
    "erlang:exit/1 -> stack(1)",
    "erlang:exit/2 -> caller",
    "erlang:exit/3 -> caller",
    "erlang:exit_signal/2 -> caller",
    "erlang:exit_signal/3 -> caller",
    "erlang:raise(exit, _, _)",
    /* The message 'DOWN'. It has no fixed tag, because the monitoring process can choose another one. */
    "recv({_, R, process, _, _}) when is_reference(R)",
};

struct died_opts {
    struct what_opts what;
    bool all;
};

#define ROW(letter, name, arg, type, field, help) OPT_ROW(struct died_opts, letter, name, arg, type, field, help)

static const struct opt rows[] = {
    ROW(0, "all", NULL, OPT_FLAG, all,
        "also normal exits: normal, shutdown, {shutdown,_} and answers of erpc, which are only counted by default"),
    ROW(0, "dry-run", NULL, OPT_FLAG, what.dry_run, "attach, print what would be traced, and exit"),
};

static const struct opt_group own_group = {"What is shown of the exits", rows, ARRAY_LEN(rows)};

static int cmd_died_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct node_opts node = NODE_OPTS_INIT;
    struct died_opts own = {.what = {.inherit = 0}};
    struct limit_opts limit = LIMIT_OPTS_INIT;
    struct view_opts view = VIEW_OPTS_INIT;
    struct assert_opts asserts = {0};
    struct recorder_opts recorder = RECORDER_OPTS_INIT;
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&node_group, &node}, {&own_group, &own},           {&limit_group, &limit},
                             {&view_group, &view}, {&recorder_group, &recorder}, {&talk_group, &talk}};
    struct texts words = {0}, texts = {0};
    struct death_choice choice = {0};
    struct arena arena;
    struct err e;
    char **rest;
    int status = 0;

    arena_init(&arena);
    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status)) {
        struct live_options o =
            {.node = &node, .what = &own.what, .limit = &limit, .view = &view, .asserts = &asserts, .words = &texts};
        outputs_of_items(&view, "exit");
        /* Names from other registries are unknown here: a process that exits is no longer registered. */
        if (!who_names(&words, "died", false, &arena, &choice.names, &e) || !recorder_read(&recorder, &limit, &e)) {
            status = ctx_fail(ctx, &e);
        } else {
            choice.all = own.all;
            if (outputs_shows(&view, "died", "exit")) { /* --limit counts exits, not their events */
                choice.most = (uint64_t)limit.limit;
                limit.limit = 0;
            }
            if (limit.rate < 0 && !limit.ring.on)
                limit.rate = RATE;
            view.deaths = &choice;
            own.what.allow_empty = own.what.builtin = true;
            for (size_t i = 0; i < ARRAY_LEN(causes); i++)
                texts_add(&texts, causes[i]);
            status = live_run(ctx, &o, "died");
            who_names_warn(ctx, &choice.names, &words, "", "exit of");
        }
    }
    arena_release(&arena);
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&words);
    texts_release(&texts);
    return status;
}

static const char about[] = "  etrace died                        until Ctrl-C\n"
                            "  etrace died feed                   exits of feed, also after restarts\n"
                            "  etrace died --all --for 10s        normal exits, too\n"
                            "  etrace died --ring 5min            keep them on the node; show them at the end\n"
                            "  etrace died -o exits.etr           record; etrace replay exits.etr --as died\n"
                            "\nPrints each process that exits, its reason and the cause: its own error or exit,\n"
                            "or the signal of another process. Below it stand the processes that the exit\n"
                            "reached by links and monitors, those that exited with it, and who started it\n"
                            "again. Exits of the same process again and again become one line. Only what\n"
                            "events show is stated as a cause: 'link?' means that two processes exited with\n"
                            "one reason, and that a link from before the trace may be the cause.\n"
                            "-l N stops after N exits. NAME is a pid, a registered name or a callback module.\n";

static const struct opt_group *const groups[] = {&node_group,     &own_group,  &limit_group, &view_group,
                                                 &recorder_group, &talk_group, NULL};
const struct cmd cmd_died = {
    .name = "died",
    .usage = "[-n NODE] [OPTIONS] [NAME...]",
    .summary = "Shows which processes exit, why, and what their exits do",
    .about = about,
    .run = cmd_died_run,
    .groups = groups,
};

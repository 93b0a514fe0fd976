/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs.h"

#include "by.h"
#include "drain.h"
#include "gate.h"
#include "inside.h"
#include "leftover.h"
#include "make.h"
#include "owed.h"
#include "program.h"
#include "requests.h"
#include "snapshot.h"
#include "tick.h"
#include "tracer.h"

#define CHOSEN_AT_ONCE 1000

/* The rules (gate.h) that a verb clears, and the rules that it then sets. */
struct rules {
    uint32_t off, on;
};

/* A verb that is being run: its rules and its arguments. */
struct words {
    const struct rules *rules;
    const ERL_NIF_TERM *args;
};

static ERL_NIF_TERM set_rules(ErlNifEnv *env, const struct words *w)
{
    gate_change(w->rules->off, w->rules->on);
    return make_ok(env);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* Changes which calls owe a result. Clears `slow`, so that the owner is woken again if a thread takes too long. */
static ERL_NIF_TERM set_returns(ErlNifEnv *env, const struct words *w)
{
    atomic_store(&session.slow, false);
    if (gate_rules() & RULE_STUCK)
        owed_clear();
    return set_rules(env, w);
}

static ERL_NIF_TERM forget_results(ErlNifEnv *env, const struct words *w)
{
    atomic_store(&session.slow, false);
    owed_clear();
    return set_rules(env, w);
}

static ERL_NIF_TERM resume_stacks(ErlNifEnv *env, const struct words *w)
{
    (void)w;
    stacks_resume();
    return make_ok(env);
}

/* ---- what happens to the events ---------------------------------------------------------------------------------- */

/*
 * Returns the answer to a verb that opens tables: ok, an error if memory is short, or `more` while old tables are being
 * cleared. After `more` the caller repeats the verb. Applies the rules of the verb if the tables are open.
 */
static ERL_NIF_TERM answer_opened(ErlNifEnv *env, enum rows_opened how, const struct words *w)
{
    enif_consume_timeslice(env, 20);
    if (how == ROWS_CLEARING)
        return enif_make_atom(env, "more");
    if (how != ROWS_OPEN)
        return make_error(env, "memory");
    gate_change(w->rules->off, w->rules->on);
    return make_ok(env);
}

static ERL_NIF_TERM open_figures(ErlNifEnv *env, const struct words *w, struct rows_room room)
{
    return answer_opened(env, tally_open(&room, tick_per_ms(), tracer_is_alive), w);
}

static ERL_NIF_TERM count_by_function(ErlNifEnv *env, const struct words *w)
{
    unsigned functions;
    if (!enif_get_uint(env, w->args[0], &functions))
        return enif_make_badarg(env);
    return open_figures(env, w, tally_functions(functions));
}

static ERL_NIF_TERM count_by_key(ErlNifEnv *env, const struct words *w)
{
    unsigned keys;
    if (!enif_get_uint(env, w->args[2], &keys) || !by_set(env, w->args[0], w->args[1]))
        return enif_make_badarg(env);
    return open_figures(env, w, by_room(keys));
}

static ERL_NIF_TERM wait_for_results(ErlNifEnv *env, const struct words *w)
{
    return open_figures(env, w, tally_functions(0));
}

static ERL_NIF_TERM keep_trees(ErlNifEnv *env, const struct words *w)
{
    return trees_begin() ? wait_for_results(env, w) : make_error(env, "memory");
}

static ERL_NIF_TERM set_requests(ErlNifEnv *env, const struct words *w)
{
    unsigned flags;
    if (!enif_get_uint(env, w->args[0], &flags))
        return enif_make_badarg(env);
    requests_set(flags);
    gate_change(w->rules->on, flags & ETW_REQUESTS ? w->rules->on : 0);
    return make_ok(env);
}

static ERL_NIF_TERM read_waits(ErlNifEnv *env, const struct words *w)
{
    (void)w;
    return drain_waits(env);
}

/* ---- which events ------------------------------------------------------------------------------------------------ */

static bool accepts_value(void *env, const void *program, uint64_t value)
{
    return program_accepts(env, program, value);
}

static bool get_programs(ErlNifEnv *env, ERL_NIF_TERM list, struct verdict_programs *ret)
{
    ERL_NIF_TERM steps;

    while (ret->count < ETW_FILTER_PROGRAMS && enif_get_list_cell(env, list, &steps, &list)) {
        struct program *p = program_new(env, steps, true);
        if (!p || !program_takes(p, 1))
            return false;
        ret->programs[ret->count++] = p;
    }
    return enif_is_empty_list(env, list);
}

static ERL_NIF_TERM set_filter(ErlNifEnv *env, const struct words *w)
{
    struct verdict_programs programs = {.accepts = accepts_value};
    ErlNifBinary steps;

    if (!enif_inspect_binary(env, w->args[0], &steps) || !get_programs(env, w->args[1], &programs) ||
        !verdict_set(steps.data, steps.size, &programs))
        return enif_make_badarg(env);
    gate_change(w->rules->on, verdict_measured ? w->rules->on : 0);
    return make_ok(env);
}

/* Sets the labels to report. The owner passes only small integers and atoms, so equal labels are equal raw terms. */
static ERL_NIF_TERM want_labels(ErlNifEnv *env, const struct words *w)
{
    ERL_NIF_TERM list = w->args[0], label;
    uint64_t words[LABELS_MAX];
    unsigned count = 0;

    for (; enif_get_list_cell(env, list, &label, &list); count++)
        if (count < LABELS_MAX)
            words[count] = label;
    gate_want_labels(words, count);
    return make_ok(env);
}

/*
 * Shows events only inside of roots (inside.h). Its arguments are the numbers of the probes for roots, `true` if a
 * process outside of roots loses all flags (RULE_LEAVES), N to show one of N roots, and the kinds of events as a bit
 * set.
 */
static ERL_NIF_TERM show_inside(ErlNifEnv *env, const struct words *w)
{
    ERL_NIF_TERM list = w->args[0], probe;
    uint32_t roots[INSIDE_ROOTS];
    unsigned count = 0, sample;
    ErlNifUInt64 kinds;

    for (; count < INSIDE_ROOTS && enif_get_list_cell(env, list, &probe, &list); count++)
        if (!enif_get_uint(env, probe, &roots[count]))
            return enif_make_badarg(env);
    if (!enif_is_empty_list(env, list) || !enif_get_uint(env, w->args[2], &sample) || !sample ||
        !enif_get_uint64(env, w->args[3], &kinds))
        return enif_make_badarg(env);
    if (!inside_begin(roots, count, sample, tracer_is_alive))
        return make_error(env, "memory");
    atomic_store(&session.inside, kinds);
    gate_change(w->rules->off, w->rules->on | (w->args[1] == make_bool(env, true) ? w->rules->off : 0));
    return make_ok(env);
}

/*
 * Passes its arguments to inside_choose(). Returns the processes that are left for the next call, or {many, Most} if
 * inside_choose() fails. A pid of this node is an immediate term, so the raw term identifies the process.
 */
static ERL_NIF_TERM choose_roots(ErlNifEnv *env, const struct words *w)
{
    ERL_NIF_TERM list = w->args[1], pid;
    uint64_t processes[CHOSEN_AT_ONCE];
    size_t count = 0;

    for (; count < CHOSEN_AT_ONCE && enif_get_list_cell(env, list, &pid, &list); count++)
        processes[count] = pid;
    if (inside_choose(processes, count, w->args[0] == make_bool(env, true)))
        return list;
    return enif_make_tuple2(env, enif_make_atom(env, "many"), enif_make_uint(env, INSIDE_CHOSEN));
}

static ERL_NIF_TERM count_asked(ErlNifEnv *env, const struct words *w)
{
    (void)w;
    gate_ask();
    return make_ok(env);
}

static ERL_NIF_TERM read_asked(ErlNifEnv *env, const struct words *w)
{
    (void)w;
    return enif_make_uint(env, gate_asked());
}

static ERL_NIF_TERM read_times(ErlNifEnv *env, const struct words *w)
{
    uint64_t least, most;
    (void)w;
    if (!verdict_times(&least, &most))
        return enif_make_atom(env, "none");
    return enif_make_tuple2(env, enif_make_uint64(env, least), enif_make_uint64(env, most));
}

/* ---- the budget -------------------------------------------------------------------------------------------------- */

static ERL_NIF_TERM set_budget(ErlNifEnv *env, const struct words *w)
{
    unsigned calls;
    if (!enif_get_uint(env, w->args[0], &calls))
        return enif_make_badarg(env);
    gate_budget(calls, gate_rules() & RULE_BUDGET);
    return set_rules(env, w);
}

static ERL_NIF_TERM read_spent(ErlNifEnv *env, const struct words *w)
{
    const struct gate_spent spent = gate_spent();
    (void)w;
    return enif_make_tuple2(env, enif_make_uint64(env, spent.admitted), enif_make_uint64(env, spent.rejected));
}

static ERL_NIF_TERM read_worked(ErlNifEnv *env, const struct words *w)
{
    (void)w;
    return enif_make_uint64(env, tick_worked_ns());
}

static ERL_NIF_TERM name_trial(ErlNifEnv *env, const struct words *w)
{
    (void)w;
    return enif_make_atom(env, "trial");
}

/* ---- the flight recorder ----------------------------------------------------------------------------------------- */

static ERL_NIF_TERM overwrite_rings(ErlNifEnv *env, const struct words *w)
{
    (void)w;
    lanes_overwrite();
    return make_ok(env);
}

static ERL_NIF_TERM begin_snapshot(ErlNifEnv *env, const struct words *w)
{
    unsigned most_ms, after_ms;
    if (!enif_get_uint(env, w->args[0], &most_ms) || !enif_get_uint(env, w->args[1], &after_ms))
        return enif_make_badarg(env);
    const struct snapshot_reach reach = snapshot_begin(most_ms, after_ms);
    return enif_make_tuple2(env, enif_make_uint64(env, reach.from), enif_make_uint64(env, reach.us));
}

static ERL_NIF_TERM show_recorded(ErlNifEnv *env, ERL_NIF_TERM ms, bool at_end)
{
    unsigned most_ms;
    if (!enif_get_uint(env, ms, &most_ms))
        return enif_make_badarg(env);
    snapshot_show(at_end, most_ms);
    return make_ok(env);
}

static ERL_NIF_TERM show_at_end(ErlNifEnv *env, const struct words *w)
{
    return show_recorded(env, w->args[0], true);
}

static ERL_NIF_TERM show_at_trigger(ErlNifEnv *env, const struct words *w)
{
    return show_recorded(env, w->args[0], false);
}

static ERL_NIF_TERM watch_triggers(ErlNifEnv *env, const struct words *w)
{
    (void)w;
    return enif_make_uint64(env, lanes_watch());
}

static ERL_NIF_TERM unwatch_triggers(ErlNifEnv *env, const struct words *w)
{
    (void)w;
    return make_bool(env, lanes_unwatch());
}

static ERL_NIF_TERM fire_trigger(ErlNifEnv *env, const struct words *w)
{
    (void)w;
    return make_bool(env, lanes_fire());
}

static ERL_NIF_TERM read_fired(ErlNifEnv *env, const struct words *w)
{
    (void)w;
    return make_bool(env, atomic_load(&lanes.still));
}

/* ---- the end of the node ----------------------------------------------------------------------------------------- */

static ERL_NIF_TERM set_path(ErlNifEnv *env, const struct words *w)
{
    ErlNifBinary path;
    return enif_inspect_binary(env, w->args[0], &path) && leftover_to(path.data, path.size) ? make_ok(env)
                                                                                            : enif_make_badarg(env);
}

static ERL_NIF_TERM send_leftover(ErlNifEnv *env, const struct words *w)
{
    (void)w;
    drain_leftover();
    return make_ok(env);
}

static ERL_NIF_TERM forget_batches(ErlNifEnv *env, const struct words *w)
{
    unsigned seq;
    if (!enif_get_uint(env, w->args[0], &seq))
        return enif_make_badarg(env);
    if (drain_begin())
        leftover_forget(seq);
    drain_end();
    return make_ok(env);
}

/* ---- all verbs --------------------------------------------------------------------------------------------------- */

static const struct verb {
    const char *name;
    int arguments;
    ERL_NIF_TERM (*act)(ErlNifEnv *env, const struct words *w);
    struct rules rules;
} verbs[] = {
    {"open", 0, set_rules, {.off = RULE_CLOSED}},
    {"closed", 0, set_rules, {.on = RULE_CLOSED}},
    {"early", 0, set_rules, {RULE_ASKED, RULE_GIVEN(RULE_EARLY)}},
    {"late", 0, set_rules, {.off = RULE_GIVEN(RULE_EARLY)}},
    {"plain", 0, set_rules, {.on = RULE_PLAIN}},
    {"answered", 0, set_rules, {.off = RULE_PLAIN}},

    {"fresh", 0, forget_results, {.off = RULE_STUCK | RULE_HALT}},
    {"returns", 0, set_returns, {RULE_STUCK | RULE_OWES, RULE_RETURNS}},
    {"owing", 0, set_returns, {RULE_STUCK | RULE_RETURNS, RULE_OWES}},
    {"no_returns", 0, set_returns, {.off = RULE_RETURNS | RULE_OWES | RULE_STUCK}},
    {"resume", 0, resume_stacks, {0}},

    {"events", 0, set_rules, {RULE_ROUTE, ROUTE_SEND}},
    {"tally", 1, count_by_function, {RULE_ROUTE, ROUTE_TALLY}},
    {"by", 3, count_by_key, {RULE_ROUTE, ROUTE_BY}},
    {"hold", 0, wait_for_results, {RULE_ROUTE, ROUTE_HOLD}},
    {"trees", 0, keep_trees, {RULE_ROUTE, ROUTE_TREES}},
    {"requests", 1, set_requests, {.on = RULE_REQUESTS}},
    {"waits", 0, read_waits, {0}},

    {"filter", 2, set_filter, {.on = RULE_MEASURE}},
    {"labels", 1, want_labels, {0}},
    {"inside", 4, show_inside, {RULE_LEAVES, RULE_INSIDE}},
    {"outside", 0, set_rules, {.off = RULE_INSIDE | RULE_LEAVES}},
    {"choose", 2, choose_roots, {0}},
    {"ask", 0, count_asked, {0}},
    {"asked", 0, read_asked, {0}},
    {"times", 0, read_times, {0}},

    {"budget", 1, set_budget, {.on = RULE_BUDGET}},
    {"no_budget", 0, set_rules, {.off = RULE_BUDGET}},
    {"spent", 0, read_spent, {0}},
    {"worked", 0, read_worked, {0}},
    {"trial", 0, name_trial, {0}},

    {"overwrite", 0, overwrite_rings, {0}},
    {"snapshot", 2, begin_snapshot, {0}},
    {"at_end", 1, show_at_end, {0}},
    {"at_trigger", 1, show_at_trigger, {0}},
    {"trigger", 0, wait_for_results, {.on = RULE_TRIGGER}},
    {"watch", 0, watch_triggers, {0}},
    {"unwatch", 0, unwatch_triggers, {0}},
    {"fire", 0, fire_trigger, {0}},
    {"fired", 0, read_fired, {0}},

    {"leftover", 1, set_path, {0}},
    {"leftover", 0, send_leftover, {0}},
    {"got", 1, forget_batches, {0}},
};

#define VERBS (sizeof verbs / sizeof *verbs)

static ERL_NIF_TERM names[VERBS];

void verbs_load(ErlNifEnv *env)
{
    for (size_t i = 0; i < VERBS; i++)
        names[i] = enif_make_atom(env, verbs[i].name);
}

ERL_NIF_TERM verbs_do(ErlNifEnv *env, ERL_NIF_TERM verb)
{
    const ERL_NIF_TERM *words = &verb;
    int count = 1;
    if (!enif_is_atom(env, verb) && (!enif_get_tuple(env, verb, &count, &words) || count < 1))
        return enif_make_badarg(env);
    for (size_t i = 0; i < VERBS; i++)
        if (names[i] == words[0] && verbs[i].arguments == count - 1)
            return verbs[i].act(env, &(struct words){&verbs[i].rules, words + 1});
    return enif_make_badarg(env);
}

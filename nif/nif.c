/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defines the NIF library: load and unload, the table of functions, and the functions that the owner process calls.
 * etrace_tracer.erl documents their arguments and results.
 *
 * An instance of the library serves one client, so its state is static. The module name is a placeholder, which is
 * overwritten in the file before the node loads it. ErlNifEntry has the oldest NIF version with all functions that this
 * library uses, not the version of the headers, so the file loads on every VM that can run it.
 */
#include <erl_nif.h>
#include <string.h>

#include "bell.h"
#include "by.h"
#include "drain.h"
#include "figures.h"
#include "gate.h"
#include "imm.h"
#include "inside.h"
#include "leftover.h"
#include "make.h"
#include "owed.h"
#include "program.h"
#include "requests.h"
#include "tick.h"
#include "tracer.h"
#include "unasked.h"
#include "verbs.h"
#include "verdict.h"

#define API_MAJOR 2
#define API_MINOR 16
#define API_OLDEST "erts-13.0"

#define NONCE_MOST 64
#define RING_LEAST (16u * 1024)
#define RING_MOST (1u << 30)
#define COUNTED_BYTES 4096 /* more than the frame of tally/4 */

/* This text is replaced in the file, so it must not occur at another place of the file. */
__attribute__((used)) static char module_name[] = "etrace_00000000_0";

enum { NAME_HASH = 7, NAME_HASH_BYTES = 8 };

#define GENERATIONS 0x3ffffffu /* the most states: small integers on any VM, whose raw terms are never 0 */

#if ERL_NIF_MINOR_VERSION < 17 && ERL_NIF_MAJOR_VERSION == 2 /* the headers of OTP 25; each node has the function */
extern int enif_set_option(ErlNifEnv *env, int option, ...);
#endif
#define OPTION_ON_HALT 2 /* on_halt of enif_set_option(): the VM calls drain_halted() when the node halts */

static uint8_t nonce[NONCE_MOST];
static size_t nonce_bytes;
static ERL_NIF_TERM opened; /* the state that the last open/1 or renew/1 returned; the owner passes it to each call */
/*
 * The number of the current state. Each open/1 and renew/1 increments it. Each instance starts at a different number: a
 * traced process may still have a return trace of an earlier instance with the same module name on its stack. That
 * event has a state of the earlier instance, which must differ from the states of this instance.
 */
static unsigned generation;

static ERL_NIF_TERM nif_hello(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    uint8_t hash[NAME_HASH_BYTES];
    (void)argc, (void)argv;
    for (unsigned i = 0; i < NAME_HASH_BYTES; i++)
        /* volatile: read the bytes that were replaced in the file, not a constant of the compiler */
        hash[i] = ((const volatile uint8_t *)module_name)[NAME_HASH + i];
    return enif_make_tuple2(env, make_binary(env, hash, sizeof hash), make_binary(env, nonce, nonce_bytes));
}

static uint64_t get_number(ErlNifEnv *env, ERL_NIF_TERM t, uint64_t least, uint64_t most, bool *ok)
{
    ErlNifUInt64 value;
    if (enif_get_uint64(env, t, &value) && value >= least && value <= most)
        return value;
    *ok = false;
    return least;
}

static ERL_NIF_TERM nif_open(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    const ERL_NIF_TERM *o;
    int n;
    bool ok = true;
    (void)argc;
    if (!enif_get_tuple(env, argv[0], &n, &o) || n != 9)
        return enif_make_badarg(env);
    uint64_t ring_bytes = get_number(env, o[0], RING_LEAST, RING_MOST, &ok),
             count = get_number(env, o[1], 1, LANES_MAX, &ok);
    uint64_t bytes = get_number(env, o[2], 0, ETW_MAX_SIZE, &ok), depth = get_number(env, o[3], 0, ETW_MAX_DEPTH, &ok);
    uint64_t items = get_number(env, o[4], 0, ETW_MAX_ITEMS, &ok), limit = get_number(env, o[5], 0, UINT64_MAX, &ok);
    uint64_t rate = get_number(env, o[6], 0, UINT32_MAX, &ok);
    lanes.ring_most = get_number(env, o[8], 0, RING_MOST, &ok);
    if (!ok || ring_bytes & (ring_bytes - 1) || lanes.ring_most & (lanes.ring_most - 1))
        return enif_make_badarg(env);
    if (atomic_load(&session.live))
        return make_error(env, "open");
    if (!encode_redact(env, o[7]))
        return make_error(env, "redact");
    struct encode_limits limits = {(uint32_t)bytes, (uint32_t)depth, (uint32_t)items};
    if (!lanes_open((uint32_t)count, ring_bytes, bytes + TRACER_RESERVE, limits))
        return make_error(env, "memory");
    if (!bell_open(env))
        return make_error(env, "bell");
    gate_begin(limit, rate, tick_per_ms());
    verdict_set(NULL, 0, NULL);
    program_clear();
    owed_begin(tracer_is_alive);
    unasked_forget();
    drain_open();
    opened = enif_make_uint(env, ++generation & GENERATIONS);
    atomic_store(&session.live, opened);
    return enif_make_tuple2(env, enif_make_atom(env, "ok"), opened);
}

static ERL_NIF_TERM nif_exclude(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    uint64_t words[EXCLUDED_MAX];
    unsigned count = 0;
    ERL_NIF_TERM list = argv[0], who;
    ErlNifPid pid;
    ErlNifPort port;
    (void)argc;
    while (count < EXCLUDED_MAX && enif_get_list_cell(env, list, &who, &list)) {
        if (!enif_get_local_pid(env, who, &pid) && !enif_get_local_port(env, who, &port))
            return enif_make_badarg(env);
        words[count++] = who;
    }
    gate_exclude(words, count);
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM nif_gate(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return argv[0] == opened ? verbs_do(env, argv[1]) : enif_make_badarg(env);
}

static ERL_NIF_TERM nif_kinds(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifUInt64 kinds;
    (void)argc;
    if (argv[0] != opened || !enif_get_uint64(env, argv[1], &kinds))
        return enif_make_badarg(env);
    gate_want(kinds);
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM nif_program(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM list = argv[2], mfa, taken = enif_make_list(env, 0);
    const ERL_NIF_TERM *f;
    unsigned arity, seen = 0;
    int n;
    (void)argc;
    if (argv[0] != opened)
        return enif_make_badarg(env);
    if (list == enif_make_atom(env, "all")) {
        gate_change(RULE_PROGRAMS, 0);
        program_clear();
        return taken;
    }
    struct program *program = program_new(env, argv[1], false);
    for (; enif_get_list_cell(env, list, &mfa, &list); seen++) {
        if (!enif_get_tuple(env, mfa, &n, &f) || n != 3 || !enif_is_atom(env, f[0]) || !enif_is_atom(env, f[1]) ||
            !enif_get_uint(env, f[2], &arity))
            return enif_make_badarg(env);
        if (program_bind(program, f[0], f[1], arity) && program)
            taken = enif_make_list_cell(env, mfa, taken);
    }
    if (!enif_is_empty_list(env, taken))
        gate_change(0, RULE_PROGRAMS);
    enif_consume_timeslice(env, (int)(seen / 64 < 100 ? seen / 64 + 1 : 100));
    return taken;
}

static bool get_function(ErlNifEnv *env, ERL_NIF_TERM t, struct stack_function *ret)
{
    const ERL_NIF_TERM *f;
    unsigned arity;
    int n;
    if (!enif_get_tuple(env, t, &n, &f) || n != 3 || !enif_is_atom(env, f[0]) || !enif_is_atom(env, f[1]) ||
        !enif_get_uint(env, f[2], &arity))
        return false;
    *ret = (struct stack_function){f[0], f[1], arity};
    return true;
}

static ERL_NIF_TERM make_function(ErlNifEnv *env, const struct stack_function *f)
{
    return enif_make_tuple3(env, f->module, f->name, enif_make_uint(env, f->arity));
}

static ERL_NIF_TERM owed_questions(ErlNifEnv *env)
{
    ERL_NIF_TERM list = enif_make_list(env, 0);
    struct stack_function f;
    uint64_t process;
    for (uint32_t at = 0; owed_question(&at, &process, &f); at++)
        list = enif_make_list_cell(env, enif_make_tuple2(env, process, make_function(env, &f)), list);
    return list;
}

/*
 * Sets RULE_HALT if a process is halted, else clears the rule. Clears the rule before the check, so that it does not
 * clear the rule of a callback that halts a process at the same time: the callback halts, then sets the rule.
 */
static void set_halt(void)
{
    atomic_fetch_and(&session.rules, ~(uint32_t)RULE_HALT);
    if (owed_is_halting())
        atomic_fetch_or(&session.rules, RULE_HALT);
}

static ERL_NIF_TERM owed_answered(ErlNifEnv *env, ERL_NIF_TERM process, const struct stack_function *f,
                                  ERL_NIF_TERM answer)
{
    unsigned more;
    if (enif_get_uint(env, answer, &more)) {
        owed_answer(process, f, more, false);
    } else if (answer == enif_make_atom(env, "trusted")) {
        struct owed_count now;
        owed_answer(process, f, owed_read(process, f, &now) ? now.count : OWED_ASK, true);
    } else if (answer == enif_make_atom(env, "forget")) {
        owed_forget(process);
    } else if (answer == enif_make_atom(env, "endless")) {
        owed_halt(process, f);
        if (!owed_end(f))
            owed_answer(process, f, UINT32_MAX, true); /* its frames stay, but it goes on */
        gate_change(0, RULE_ENDLESS);
    } else {
        return enif_make_badarg(env);
    }
    set_halt();
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM nif_owing(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    const ERL_NIF_TERM *about;
    struct stack_function f;
    struct owed_count now;
    ErlNifPid pid;
    int n;
    (void)argc;
    if (argv[0] != opened)
        return enif_make_badarg(env);
    if (argv[1] == enif_make_atom(env, "all_questions"))
        owed_reopen();
    if (argv[1] == enif_make_atom(env, "questions") || argv[1] == enif_make_atom(env, "all_questions"))
        return bell_answers(env) ? owed_questions(env) : enif_make_badarg(env);
    if (get_function(env, argv[1], &f)) {
        owed_release(&f);
        set_halt();
        return enif_make_atom(env, "ok");
    }
    if (!enif_get_tuple(env, argv[1], &n, &about) || n < 2 || n > 3 || !enif_get_local_pid(env, about[0], &pid) ||
        !get_function(env, about[1], &f))
        return enif_make_badarg(env);
    if (n == 3)
        return owed_answered(env, about[0], &f, about[2]);
    if (!owed_read(about[0], &f, &now))
        return enif_make_atom(env, "none");
    return enif_make_tuple4(env, enif_make_uint(env, now.count), enif_make_uint(env, now.total),
                            enif_make_uint(env, now.returns), enif_make_uint(env, now.lowest));
}

static bool keep_all(ErlNifEnv *env, ERL_NIF_TERM list)
{
    ERL_NIF_TERM mfa;
    const ERL_NIF_TERM *f;
    unsigned arity;
    int n;
    while (enif_get_list_cell(env, list, &mfa, &list))
        if (!enif_get_tuple(env, mfa, &n, &f) || n != 3 || !enif_get_uint(env, f[2], &arity) ||
            !unasked_keep(f[0], f[1], arity))
            return false;
    return true;
}

static ERL_NIF_TERM nif_unasked(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    if (argv[0] != opened)
        return enif_make_badarg(env);
    if (argv[1] == enif_make_atom(env, "busy"))
        return unasked_busy(env);
    if (argv[1] == enif_make_atom(env, "none")) {
        gate_change(RULE_UNASKED, 0);
        unasked_forget();
        return enif_make_atom(env, "true");
    }
    if (!keep_all(env, argv[1]))
        return enif_make_atom(env, "false");
    gate_change(0, RULE_UNASKED);
    return enif_make_atom(env, "true");
}

static ERL_NIF_TERM nif_ticks(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_uint64(env, tick_now());
}

static ERL_NIF_TERM nif_drain(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifUInt64 most;
    ErlNifBinary own;
    ERL_NIF_TERM taken = 0;
    (void)argc;
    if (argv[0] != opened || !enif_get_uint64(env, argv[1], &most) || !enif_inspect_binary(env, argv[2], &own) ||
        own.size > ETW_MAX_BATCH)
        return enif_make_badarg(env);
    if (drain_begin())
        taken = drain_rings(env, most, &own, argv[3] == make_bool(env, true));
    drain_end();
    return taken ? taken : enif_make_badarg(env);
}

static ERL_NIF_TERM nif_tally(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifUInt64 most;
    ERL_NIF_TERM taken = 0;
    (void)argc;
    if (argv[0] != opened || !enif_get_uint64(env, argv[1], &most))
        return enif_make_badarg(env);
    if (drain_begin())
        taken = drain_figures(env, most);
    drain_end();
    return taken ? taken : enif_make_badarg(env);
}

static ERL_NIF_TERM nif_tally_counted(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    uint8_t frame[COUNTED_BYTES];
    struct stack_function f;
    ErlNifUInt64 calls, seen;
    unsigned how;
    (void)argc;
    if (!get_function(env, argv[0], &f) || !enif_get_uint64(env, argv[1], &calls) ||
        !enif_get_uint64(env, argv[2], &seen) || !enif_get_uint(env, argv[3], &how))
        return enif_make_badarg(env);
    const struct etw_tally figures = {.events = calls, .seen = seen, .counted = how};
    const uint8_t *end = figures_counted(env, frame, &f, &figures);
    return make_binary(env, frame, (size_t)(end - frame));
}

static ERL_NIF_TERM nif_doze(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    if (argv[0] != opened)
        return enif_make_badarg(env);
    if (!bell_arm())
        return enif_make_atom(env, "busy");
    for (uint32_t i = 0; i < lanes_claimed(); i++) {
        struct ring_view view = ring_look(&lane_at(i)->ring);
        if (view.head != view.tail) {
            bell_disarm();
            return enif_make_atom(env, "busy");
        }
    }
    return enif_make_atom(env, "armed");
}

/*
 * Returns a new state for a new session, after another session was destroyed. Late events of the destroyed session have
 * the old state. Such an event is the return of a meta-traced call that is still on the stack of a process.
 */
static ERL_NIF_TERM nif_renew(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    if (argv[0] != opened)
        return enif_make_badarg(env);
    opened = enif_make_uint(env, ++generation & GENERATIONS);
    atomic_store(&session.live, opened);
    return opened;
}

static ERL_NIF_TERM nif_close(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    if (argv[0] != opened)
        return enif_make_badarg(env);
    atomic_store(&session.live, 0);
    bell_disarm();
    return enif_make_atom(env, "ok");
}

/* ---- load and unload --------------------------------------------------------------------------------------------- */

static int on_load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    ErlNifBinary bin;
    (void)priv;
    if (enif_inspect_binary(env, info, &bin) && bin.size <= NONCE_MOST) {
        memcpy(nonce, bin.data, bin.size);
        nonce_bytes = bin.size;
    }
    for (size_t i = 0; i < nonce_bytes; i++)
        generation = generation * 31 + nonce[i];
    tick_start();
    imm_check(env);
    tracer_load(env);
    requests_load(env);
    program_load(env);
    unasked_load(env);
    verbs_load(env);
    bell_load(env);
    lanes.alarm = &bell.armed;
    enif_set_option(env, OPTION_ON_HALT, drain_halted);
    return encode_load(env) ? 0 : 1;
}

/* Unloads the library. The VM has waited for all running callbacks, and no new callback can begin. */
static void on_unload(ErlNifEnv *env, void *priv)
{
    (void)env, (void)priv;
    atomic_store(&session.live, 0);
    bell_unload();
    encode_unload();
    program_unload();
    leftover_to(NULL, 0);
    tally_unmap();
    inside_unmap();
    trees_unmap();
    lanes_unmap();
}

static ErlNifFunc functions[] = {
    {"hello", 0, nif_hello, 0},
    {"open", 1, nif_open, 0},
    {"exclude", 1, nif_exclude, 0},
    {"gate", 2, nif_gate, 0},
    {"kinds", 2, nif_kinds, 0},
    {"program", 3, nif_program, 0},
    {"owing", 2, nif_owing, 0},
    {"unasked", 2, nif_unasked, 0},
    {"ticks", 0, nif_ticks, 0},
    {"drain", 4, nif_drain, 0},
    {"tally", 2, nif_tally, 0},
    {"tally", 4, nif_tally_counted, 0},
    {"doze", 1, nif_doze, 0},
    {"renew", 1, nif_renew, 0},
    {"close", 1, nif_close, 0},
    {"enabled", 3, tracer_enabled, 0},
    {"enabled_call", 3, tracer_enabled_call, 0},
    {"enabled_send", 3, tracer_enabled_event, 0},
    {"enabled_receive", 3, tracer_enabled_event, 0},
    {"enabled_procs", 3, tracer_enabled_event, 0},
    {"enabled_ports", 3, tracer_enabled_event, 0},
    {"enabled_running_procs", 3, tracer_enabled_event, 0},
    {"enabled_running_ports", 3, tracer_enabled_event, 0},
    {"enabled_garbage_collection", 3, tracer_enabled_event, 0},
    {"trace", 5, tracer_trace, 0},
};

static ErlNifEntry entry = {
    .major = API_MAJOR,
    .minor = API_MINOR,
    .name = module_name,
    .num_of_funcs = sizeof functions / sizeof *functions,
    .funcs = functions,
    .load = on_load,
    .unload = on_unload,
    .vm_variant = "beam.vanilla",
    .options = 1,
    .sizeof_ErlNifResourceTypeInit = sizeof(ErlNifResourceTypeInit),
    .min_erts = API_OLDEST,
};

__attribute__((visibility("default"))) ErlNifEntry *nif_init(void);

ErlNifEntry *nif_init(void)
{
    return &entry;
}

/*
 * The library as the VM sees it: load and unload, the table of functions, and what the owner process calls.
 *
 * One instance of the library serves one client, so its state is static. The name of the module is a placeholder here;
 * the companion writes its own over it in the file before loading. etrace_tracer.erl says what each function takes and
 * returns. The entry states the oldest interface that is used, not the newest that the headers know, so that the file
 * loads wherever it can run.
 */
#include <erl_nif.h>
#include <string.h>

#include "batch.h"
#include "bell.h"
#include "filter.h"
#include "imm.h"
#include "owed.h"
#include "program.h"
#include "session.h"
#include "tally.h"
#include "tick.h"
#include "tracer.h"

#define API_MAJOR 2
#define API_MINOR 16
#define API_OLDEST "erts-13.0"

#define NONCE_MOST 64
#define RING_LEAST (16u * 1024)
#define RING_MOST (1u << 30)

/* The only place in the file where this text stands. */
__attribute__((used)) static char module_name[] = "etrace_00000000_0";

enum { NAME_HASH = 7, NAME_HASH_BYTES = 8 };

#define GENERATIONS 0x3ffffffu /* an immediate of any VM, and never the word 0 */

enum { STATUS_MORE = 1, STATUS_HELD = 2, STATUS_OVER = 4, STATUS_STUCK = 8, STATUS_SLOW = 16 };

static uint8_t nonce[NONCE_MOST];
static size_t nonce_bytes;
static ERL_NIF_TERM opened; /* the word of the latest open()'s state; the owner's calls name it */
/*
 * Grows with each open(). Begins somewhere else in each instance: what a traced process has on its stack from an earlier
 * one, whose name this one may bear, comes with that one's state and must not be taken for ours.
 */
static unsigned generation;
static struct batch_state batches;

static ERL_NIF_TERM error(ErlNifEnv *env, const char *what)
{
    return enif_make_tuple2(env, enif_make_atom(env, "error"), enif_make_atom(env, what));
}

static ERL_NIF_TERM bytes_term(ErlNifEnv *env, const void *bytes, size_t n)
{
    ERL_NIF_TERM bin;
    memcpy(enif_make_new_binary(env, n, &bin), bytes, n);
    return bin;
}

static ERL_NIF_TERM nif_hello(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    uint8_t hash[NAME_HASH_BYTES];
    (void)argc, (void)argv;
    for (unsigned i = 0; i < NAME_HASH_BYTES; i++)
        hash[i] = ((const volatile uint8_t *)module_name)[NAME_HASH + i]; /* as it is in the file, not as it was compiled */
    return enif_make_tuple2(env, bytes_term(env, hash, sizeof hash), bytes_term(env, nonce, nonce_bytes));
}

static uint64_t number(ErlNifEnv *env, ERL_NIF_TERM t, uint64_t least, uint64_t most, bool *ok)
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
    if (!enif_get_tuple(env, argv[0], &n, &o) || n != 8)
        return enif_make_badarg(env);
    uint64_t ring_bytes = number(env, o[0], RING_LEAST, RING_MOST, &ok), count = number(env, o[1], 1, LANES_MAX, &ok);
    uint64_t bytes = number(env, o[2], 0, ETW_MAX_SIZE, &ok), depth = number(env, o[3], 0, ETW_MAX_DEPTH, &ok);
    uint64_t items = number(env, o[4], 0, ETW_MAX_ITEMS, &ok), limit = number(env, o[5], 0, UINT64_MAX, &ok);
    uint64_t rate = number(env, o[6], 0, UINT32_MAX, &ok);
    if (!ok || ring_bytes & (ring_bytes - 1))
        return enif_make_badarg(env);
    if (atomic_load(&session.live))
        return error(env, "open");
    if (!encode_redact(env, o[7]))
        return error(env, "redact");
    struct encode_limits limits = {(uint32_t)bytes, (uint32_t)depth, (uint32_t)items};
    if (!lanes_open((uint32_t)count, ring_bytes, bytes + TRACER_RESERVE, limits))
        return error(env, "memory");
    if (!bell_open(env))
        return error(env, "bell");
    session_begin(limit, rate, tick_per_ms());
    filter_set(NULL, 0);
    program_clear();
    memset(&batches, 0, sizeof batches);
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
    while (enif_get_list_cell(env, list, &who, &list)) {
        if (!enif_get_local_pid(env, who, &pid) && !enif_get_local_port(env, who, &port))
            return enif_make_badarg(env);
        if (count < EXCLUDED_MAX)
            words[count++] = who;
    }
    session_exclude(words, count);
    return enif_make_atom(env, "ok");
}

static bool is_alive(void *env, uint64_t process)
{
    ErlNifPid pid;
    return enif_get_local_pid(env, process, &pid) && enif_is_process_alive(env, &pid);
}

static bool set_filter(const ErlNifBinary *steps)
{
    if (!filter_set(steps->data, steps->size))
        return false;
    if (filter_measured)
        atomic_fetch_or(&session.rules, RULE_MEASURE);
    else
        atomic_fetch_and(&session.rules, ~(uint32_t)RULE_MEASURE);
    return true;
}

static ERL_NIF_TERM nif_gate(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    static const struct {
        const char *word;
        uint32_t off, on;
    } words[] = {
        {"open", RULE_CLOSED, 0},
        {"closed", 0, RULE_CLOSED},
        {"early", 0, RULE_EARLY},
        {"late", RULE_EARLY, 0},
        {"plain", 0, RULE_PLAIN},
        {"answered", RULE_PLAIN, 0},
        {"returns", RULE_STUCK | RULE_OWES, RULE_RETURNS},
        {"owing", RULE_STUCK | RULE_RETURNS, RULE_OWES},
        {"no_returns", RULE_RETURNS | RULE_OWES | RULE_STUCK, 0},
        {"tally", RULE_RATE | RULE_LIMIT | RULE_HOLD, RULE_TALLY},
        {"hold", RULE_EARLY | RULE_TALLY, RULE_HOLD},
        {"events", RULE_TALLY | RULE_HOLD, 0},
    };
    ErlNifBinary steps;
    (void)argc;
    if (argv[0] == opened && enif_inspect_binary(env, argv[1], &steps) && set_filter(&steps))
        return enif_make_atom(env, "ok");
    for (size_t i = 0; argv[0] == opened && i < sizeof words / sizeof *words; i++) {
        if (argv[1] != enif_make_atom(env, words[i].word))
            continue;
        if (words[i].off & RULE_STUCK) {
            owed_clear();
            atomic_store(&session.slow, false);
        }
        if (words[i].on & (RULE_TALLY | RULE_HOLD) && !tally_open(tick_per_ms(), is_alive))
            return error(env, "memory");
        atomic_fetch_and(&session.rules, ~words[i].off);
        atomic_fetch_or(&session.rules, words[i].on);
        return enif_make_atom(env, "ok");
    }
    return enif_make_badarg(env);
}

static ERL_NIF_TERM nif_kinds(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifUInt64 kinds;
    (void)argc;
    if (argv[0] != opened || !enif_get_uint64(env, argv[1], &kinds))
        return enif_make_badarg(env);
    session_want(kinds);
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
        atomic_fetch_and(&session.rules, ~(uint32_t)RULE_PROGRAMS);
        program_clear();
        return taken;
    }
    struct program *program = program_new(env, argv[1]);
    for (; enif_get_list_cell(env, list, &mfa, &list); seen++) {
        if (!enif_get_tuple(env, mfa, &n, &f) || n != 3 || !enif_is_atom(env, f[0]) || !enif_is_atom(env, f[1]) || !enif_get_uint(env, f[2], &arity))
            return enif_make_badarg(env);
        if (program_bind(program, f[0], f[1], arity) && program)
            taken = enif_make_list_cell(env, mfa, taken);
    }
    if (!enif_is_empty_list(env, taken))
        atomic_fetch_or(&session.rules, RULE_PROGRAMS);
    enif_consume_timeslice(env, (int)(seen / 64 < 100 ? seen / 64 + 1 : 100));
    return taken;
}

static ERL_NIF_TERM nif_ticks(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_uint64(env, tick_now());
}

/* The pair of the two clocks, as close together as three tries get it. */
static struct batch_clock read_clocks(void)
{
    struct batch_clock best = {0};
    uint64_t narrowest = UINT64_MAX;
    for (int i = 0; i < 3; i++) {
        uint64_t before = tick_now();
        ErlNifTime mono = enif_monotonic_time(ERL_NIF_NSEC);
        uint64_t width = tick_now() - before;
        if (width < narrowest) {
            narrowest = width;
            best.tick = before + width / 2;
            best.mono_ns = mono;
        }
    }
    best.wall_ns = best.mono_ns + enif_time_offset(ERL_NIF_NSEC);
    return best;
}

static ERL_NIF_TERM take_newcomers(ErlNifEnv *env)
{
    ERL_NIF_TERM list = enif_make_list(env, 0);
    for (uint32_t i = 0; i < lanes_claimed(); i++) {
        struct lane *lane = lane_at(i);
        uint32_t head = atomic_load_explicit(&lane->newcomers_head, memory_order_acquire);
        uint32_t tail = atomic_load_explicit(&lane->newcomers_tail, memory_order_relaxed);
        for (; tail != head; tail++)
            list = enif_make_list_cell(env, lane->newcomers[tail % LANE_NEWCOMERS], list);
        atomic_store_explicit(&lane->newcomers_tail, tail, memory_order_release);
    }
    return list;
}

static ERL_NIF_TERM nif_drain(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifUInt64 most;
    ErlNifBinary own;
    struct batch_plan plan;
    unsigned status = 0;
    (void)argc;
    if (argv[0] != opened || !enif_get_uint64(env, argv[1], &most) || !enif_inspect_binary(env, argv[2], &own)
        || own.size > ETW_MAX_BATCH)
        return enif_make_badarg(env);
    if (most > ETW_MAX_BATCH)
        most = ETW_MAX_BATCH;
    bool last = argv[3] == enif_make_atom(env, "true");
    struct batch_clock clock = read_clocks();
    batch_plan(&batches, &clock, tick_slack(), most, own.data, (uint32_t)own.size, last, &plan);
    if (plan.flags & ETW_BATCH_LAST && session_rules() & (RULE_TALLY | RULE_HOLD) && !tally_is_told())
        batch_plan(&batches, &clock, tick_slack(), most, own.data, (uint32_t)own.size, false, &plan);
    if (plan.more)
        status |= STATUS_MORE;
    if (plan.held)
        status |= STATUS_HELD;
    if (session_rules() & RULE_OVER)
        status |= STATUS_OVER;
    if (session_rules() & RULE_STUCK)
        status |= STATUS_STUCK;
    if (atomic_load(&session.slow))
        status |= STATUS_SLOW;
    ERL_NIF_TERM batch = enif_make_atom(env, "none"), newcomers = take_newcomers(env);
    if (plan.wanted) {
        batch_write(&batches, &plan, enif_make_new_binary(env, plan.bytes, &batch));
        session_may_have_room();
        enif_consume_timeslice(env, (int)(plan.bytes / (16 * 1024)) + 1);
    }
    return enif_make_tuple3(env, batch, newcomers, enif_make_uint(env, status));
}

static ERL_NIF_TERM nif_tally(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM list = enif_make_list(env, 0);
    struct stack_function f;
    struct {
        struct etw_tally head;
        struct etw_bucket buckets[ETW_BUCKETS];
    } t;
    (void)argc;
    if (argv[0] != opened || !(session_rules() & (RULE_TALLY | RULE_HOLD)))
        return enif_make_badarg(env);
    for (uint32_t i = 0; i < lanes_claimed(); i++) {
        uint32_t taken = 0;
        for (uint32_t at = 0; tally_take(i, &at, &f, &t.head, t.buckets); taken++) {
            ERL_NIF_TERM function = f.module ? enif_make_tuple3(env, f.module, f.name, enif_make_uint(env, f.arity))
                                             : enif_make_atom(env, "undefined");
            ERL_NIF_TERM figures = bytes_term(env, &t, sizeof t.head + t.head.buckets * sizeof *t.buckets);
            list = enif_make_list_cell(env, enif_make_tuple2(env, function, figures), list);
        }
        enif_consume_timeslice(env, (int)(taken / 64 < 100 ? taken / 64 + 1 : 100));
    }
    return list;
}

static ERL_NIF_TERM nif_doze(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    if (argv[0] != opened)
        return enif_make_badarg(env);
    bell_arm();
    for (uint32_t i = 0; i < lanes_claimed(); i++) {
        struct ring_view view = ring_look(&lane_at(i)->ring);
        if (view.head != view.tail) {
            bell_disarm();
            return enif_make_atom(env, "busy");
        }
    }
    return enif_make_atom(env, "armed");
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

/* ---- load and unload ---------------------------------------------------------------------------------------------- */

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
    program_load(env);
    bell_load(env);
    lanes.alarm = &bell.armed;
    return encode_load(env) ? 0 : 1;
}

/* Purging has waited for every callback that ran; none can begin. */
static void on_unload(ErlNifEnv *env, void *priv)
{
    (void)env, (void)priv;
    atomic_store(&session.live, 0);
    bell_unload();
    encode_unload();
    program_unload();
    tally_unmap();
    lanes_unmap();
}

static ErlNifFunc functions[] = {
    {"hello", 0, nif_hello, 0},
    {"open", 1, nif_open, 0},
    {"exclude", 1, nif_exclude, 0},
    {"gate", 2, nif_gate, 0},
    {"kinds", 2, nif_kinds, 0},
    {"program", 3, nif_program, 0},
    {"ticks", 0, nif_ticks, 0},
    {"drain", 4, nif_drain, 0},
    {"tally", 1, nif_tally, 0},
    {"doze", 1, nif_doze, 0},
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "tracer.h"

#include "bell.h"
#include "by.h"
#include "hold.h"
#include "imm.h"
#include "inside.h"
#include "keep.h"
#include "owed.h"
#include "program.h"
#include "requests.h"
#include "gate.h"
#include "tally.h"
#include "tick.h"
#include "unasked.h"

struct tag {
    const char *name; /* NULL: no such kind */
    uint8_t kind, layout;
    bool in_process; /* the callback runs for the tracee's own process */
};

#define IN_PROCESS(layout)                                                                                             \
    ((layout) == ETW_LAYOUT_CALL || (layout) == ETW_LAYOUT_RETURN || (layout) == ETW_LAYOUT_RETURN_TO ||               \
     (layout) == ETW_LAYOUT_EXTRA_TERM)

static const struct tag tags[ETW_LOST] = {
#define KIND(name, number, tag, json, layout, first, second)                                                           \
    [number] = {tag, number, ETW_LAYOUT_##layout, IN_PROCESS(ETW_LAYOUT_##layout)},
#define OWN(...)
#include "event_kinds.def"
};

#define TAG_SLOTS 128
static struct {
    ERL_NIF_TERM word;
    const struct tag *tag;
} tag_slots[TAG_SLOTS];

static ERL_NIF_TERM atom_call, atom_send, atom_receive, atom_return_from, atom_trace_status, atom_extra,
    atom_match_spec_result, atom_register, atom_unregister;
static ERL_NIF_TERM atom_trace, atom_discard, atom_remove, atom_ok, atom_true, atom_false, atom_etrace_owes,
    atom_etrace_probe, atom_timestamp, atom_trial;
static ERL_NIF_TERM classes[ETW_CLASSES];

bool tracer_is_alive(void *env, uint64_t process)
{
    ErlNifPid pid;
    return enif_get_local_pid(env, process, &pid) && enif_is_process_alive(env, &pid);
}

static unsigned tag_slot(ERL_NIF_TERM word)
{
    return (unsigned)(word * UINT64_C(0x9e3779b97f4a7c15) >> 57);
}

void tracer_load(ErlNifEnv *env)
{
    for (unsigned i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (!tags[i].name)
            continue;
        ERL_NIF_TERM word = enif_make_atom(env, tags[i].name);
        unsigned slot = tag_slot(word);
        while (tag_slots[slot].tag)
            slot = (slot + 1) % TAG_SLOTS;
        tag_slots[slot].word = word;
        tag_slots[slot].tag = &tags[i];
    }
    atom_call = enif_make_atom(env, "call");
    atom_send = enif_make_atom(env, "send");
    atom_receive = enif_make_atom(env, "receive");
    atom_return_from = enif_make_atom(env, "return_from");
    atom_trace_status = enif_make_atom(env, "trace_status");
    atom_extra = enif_make_atom(env, "extra");
    atom_match_spec_result = enif_make_atom(env, "match_spec_result");
    atom_register = enif_make_atom(env, "register");
    atom_unregister = enif_make_atom(env, "unregister");
    atom_trace = enif_make_atom(env, "trace");
    atom_discard = enif_make_atom(env, "discard");
    atom_remove = enif_make_atom(env, "remove");
    atom_ok = enif_make_atom(env, "ok");
    atom_true = enif_make_atom(env, "true");
    atom_false = enif_make_atom(env, "false");
    atom_etrace_owes = enif_make_atom(env, "etrace_owes");
    atom_etrace_probe = enif_make_atom(env, "etrace_probe");
    atom_timestamp = enif_make_atom(env, "timestamp");
    atom_trial = enif_make_atom(env, "trial");
    classes[ETW_CLASS_ERROR] = enif_make_atom(env, "error");
    classes[ETW_CLASS_EXIT] = enif_make_atom(env, "exit");
    classes[ETW_CLASS_THROW] = enif_make_atom(env, "throw");
}

static inline const struct tag *tag_of(ERL_NIF_TERM word)
{
    for (unsigned slot = tag_slot(word);; slot = (slot + 1) % TAG_SLOTS) {
        if (tag_slots[slot].word == word)
            return tag_slots[slot].tag;
        if (!tag_slots[slot].tag)
            return &tags[ETW_SYSTEM];
    }
}

static void count_roofless(void)
{
    atomic_fetch_add_explicit(&lanes.roofless, 1, memory_order_relaxed);
}

/* Counts an event of a thread without a lane, unless the limit was reached. */
static void count_without_lane(uint32_t rules)
{
    if (!(rules & RULE_OVER))
        count_roofless();
}

/* ---- enabled: argv is tag, state, tracee ------------------------------------------------------------------------- */

static __attribute__((noinline)) ERL_NIF_TERM enabled_by_rules(uint32_t rules, ERL_NIF_TERM process)
{
    if (rules & RULE_OVER)
        return atom_discard;
    if (rules & RULE_ASKED)
        gate_count_asked();
    enum owed halts = rules & RULE_HALT ? owed_halts(process) : OWED_FINE;
    bool stuck = rules & RULE_STUCK || halts != OWED_FINE;
    if (halts == OWED_STUCK)
        gate_is_stuck();
    if (!(rules & (RULE_EARLY | RULE_BUDGET)) && !stuck)
        return atom_trace;
    struct lane *lane = lane_mine();
    if (!lane) {
        count_roofless();
        return atom_discard;
    }
    if (rules & RULE_BUDGET && !gate_affords(lane))
        return atom_discard;
    if (stuck) {
        ring_lose(&lane->ring, ETW_LOST_GUARD);
        return atom_discard;
    }
    return !(rules & RULE_EARLY) || gate_admits(lane, rules, ETW_LOST_RATE) ? atom_trace : atom_discard;
}

/*
 * Whether the event is of the session with the state `trial`, in which the worker measures what a call costs: the VM
 * does everything that it does for a traced call, and the NIF nothing.
 */
static ERL_NIF_TERM trial_or(ERL_NIF_TERM state, ERL_NIF_TERM otherwise)
{
    return state == atom_trial ? atom_trace : otherwise;
}

/* Local: the process has the flag `call`.
 * The VM asks enabled_call/3 about such a call, and enabled/3 about one in meta. */
static ALWAYS ERL_NIF_TERM enabled_call(const ERL_NIF_TERM argv[], bool local)
{
    if (!gate_is_live(argv[1]))
        return trial_or(argv[1], atom_discard);
    if (gate_excludes(argv[2]))
        return atom_discard;
    uint32_t rules = gate_rules();
    if (__builtin_expect(rules & RULE_INSIDE, 0)) {
        if (local && !inside_is_open(argv[2]))
            return rules & RULE_LEAVES ? atom_remove : atom_discard;
        if (!local && (!inside_is_chosen(argv[2]) || (rules & RULE_ENDLESS && inside_is_flat(argv[2]))))
            return atom_discard;
    }
    const uint32_t applied = RULE_OVER | RULE_STUCK | RULE_HALT | RULE_BUDGET | RULE_ASKED,
                   early = RULE_CLOSED | RULE_RATE | RULE_LIMIT | RULE_FULL; /* without RULE_EARLY, for trace/5 */
    if (__builtin_expect((rules & (rules & RULE_EARLY ? applied | early : applied)) == 0, 1))
        return atom_trace;
    return enabled_by_rules(rules, argv[2]);
}

ERL_NIF_TERM tracer_enabled_call(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc;
    return enabled_call(argv, true);
}

/* Under RULE_INSIDE: whether an event of a kind that is shown only inside of roots is outside of every root. */
static bool is_outside(const ERL_NIF_TERM argv[])
{
    return gate_scopes(tag_of(argv[0])->kind) && !inside_is_open(argv[2]);
}

/*
 * Whether trace/5 must tell the owner that a process gets or loses a name. A process that exits has no name that the
 * owner could ask for, and its exit may be its first event.
 */
static bool names_process(uint32_t rules, ERL_NIF_TERM tag)
{
    return (tag == atom_register || tag == atom_unregister) && gate_wants(rules, ETW_EXIT);
}

/*
 * Rejects early the events that trace/5 would reject anyway. It charges nothing: trace/5 does, and may still ignore the
 * event.
 */
ERL_NIF_TERM tracer_enabled_event(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc;
    if (!gate_is_live(argv[1]) || gate_excludes(argv[2]))
        return atom_discard;
    uint32_t rules = gate_rules();
    if (__builtin_expect(names_process(rules, argv[0]), 0))
        return atom_trace;
    if (rules & RULE_OVER || (rules & RULE_KINDS && !gate_wants(rules, tag_of(argv[0])->kind)))
        return atom_discard;
    if (__builtin_expect(rules & RULE_INSIDE, 0) && is_outside(argv))
        return rules & RULE_LEAVES && tag_of(argv[0])->layout == ETW_LAYOUT_EXTRA_TERM ? atom_remove : atom_discard;
    if (gate_route(rules) == ROUTE_BY)
        return atom_trace; /* trace/5 applies the other rules */
    if (__builtin_expect((rules & (RULE_CLOSED | RULE_RATE | RULE_FULL)) == 0, 1))
        return atom_trace;
    /* trace/5 decides, because only it knows the function, and so whether anybody asked for this result. */
    if (rules & RULE_UNASKED && tag_of(argv[0])->layout == ETW_LAYOUT_RETURN)
        return atom_trace;
    struct lane *lane = lane_mine();
    if (!lane) {
        count_roofless();
        return atom_discard;
    }
    enum etw_loss why;
    if (!ring_has_room_for_new(&lane->ring))
        why = ETW_LOST_RING;
    else if (rules & RULE_CLOSED)
        why = ETW_LOST_GUARD;
    else if (rules & RULE_RATE && !(rules & RULE_REQUESTS) && !gate_rate_allows(tick_now()))
        why = ETW_LOST_RATE;
    else
        return atom_trace;
    ring_lose(&lane->ring, why);
    return atom_discard;
}

ERL_NIF_TERM tracer_enabled(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    if (__builtin_expect(argv[0] == atom_trace_status, 1))
        return gate_is_live(argv[1]) ? atom_trace : trial_or(argv[1], atom_remove);
    if (argv[0] == atom_call)
        return enabled_call(argv, false);
    return tracer_enabled_event(env, argc, argv);
}

/* ---- trace: argv is tag, state, tracee, term, options ------------------------------------------------------------ */

/*
 * Whether to push an event that passed the other checks. Counts a rejected event as lost, unless the limit was reached.
 */
static ALWAYS bool admit_event(struct lane *lane, const struct tag *tag, uint32_t rules)
{
    if (tag->kind == ETW_CALL && rules & RULE_EARLY)
        return gate_has_room_for_new(lane);
    if (tag->kind == ETW_RETURN_FROM || tag->kind == ETW_EXCEPTION_FROM) {
        /* Without RULE_EARLY a lost call still reports its result, so the rate applies to results too. */
        if ((rules & (RULE_EARLY | RULE_RATE)) == RULE_RATE)
            return gate_admits(lane, RULE_RATE, ETW_LOST_HALF);
        return gate_has_room_for_more(lane);
    }
    return !(rules & RULE_OVER) && gate_admits(lane, rules, tag->kind == ETW_CALL ? ETW_LOST_HALF : ETW_LOST_RATE);
}

/* Does under RULE_REQUESTS what admit_event() does without it. */
static __attribute__((noinline)) bool admit_for_requests(ErlNifEnv *env, struct lane *lane, const ERL_NIF_TERM argv[],
                                                         const struct tag *tag, uint32_t rules,
                                                         const struct requests_read *read)
{
    enum gate_part part = GATE_OTHER;
    ERL_NIF_TERM ref = 0;
    if (!gate_sorts(lane, rules))
        return admit_event(lane, tag, rules);
    if (rules & RULE_OVER)
        return false;
    if (tag->kind == ETW_CALL && (ref = requests_of_call(env, argv[3]))) {
        part = GATE_LATER;
    } else if (read->message == REQUESTS_CALL || read->message == REQUESTS_TASK) {
        part = tag->kind == ETW_RECEIVE && requests_are_sent() ? GATE_AGAIN : GATE_FIRST;
        ref = read->ref;
    } else if (read->message == REQUESTS_REPLY || read->message == REQUESTS_DOWN) {
        part = tag->kind == ETW_RECEIVE ? GATE_LAST : GATE_LATER;
        ref = read->ref;
    }
    return gate_admits_part(lane, rules, part, ref ? requests_key(ref) : 0);
}

static ALWAYS bool has_function(const struct tag *tag)
{
    return tag->layout == ETW_LAYOUT_CALL || tag->layout == ETW_LAYOUT_RETURN;
}

/* Finds the function of a call or a result. False: the term does not name a function. */
static bool get_function(ErlNifEnv *env, ERL_NIF_TERM t, struct stack_function *ret)
{
    const ERL_NIF_TERM *mfa;
    unsigned arity;
    if (!encode_is_function(env, t, &mfa))
        return false;
    if (imm_natural(mfa[2]) < imm_bytes)
        arity = (unsigned)imm_natural(mfa[2]);
    else if (!enif_get_list_length(env, mfa[2], &arity) && !enif_get_uint(env, mfa[2], &arity))
        return false;
    *ret = (struct stack_function){mfa[0], mfa[1], arity};
    return true;
}

#define YIELD 100 /* percent of a time slice: the VM schedules the process out at its next call */

/*
 * Pauses a process that owes too many results and makes it yield, because a running process does not answer the asker.
 * enabled/3 could not do this: the VM does not give it the environment of the process.
 */
static __attribute__((noinline)) void pause_process(ErlNifEnv *env, ERL_NIF_TERM process,
                                                    const struct stack_function *f, enum owed owed)
{
    if (owed == OWED_STUCK) {
        gate_is_stuck();
        return;
    }
    if (owed == OWED_ASKS)
        bell_ask();
    if (owed_pause(process, f, session.ticks_per_ms * OWED_PAUSE_US / 1000))
        atomic_fetch_or(&session.rules, RULE_HALT);
    enif_consume_timeslice(env, YIELD);
}

/* Counts owed results. The VM keeps a frame for each return trace, so this counts lost events too. */
static ALWAYS void count_owed(ErlNifEnv *env, const struct tag *tag, ERL_NIF_TERM process, uint32_t rules,
                              struct stack_function f)
{
    if (tag->kind != ETW_CALL) {
        owed_less(process, &f);
        return;
    }
    enum owed owed = owed_more(env, process, &f);
    if (__builtin_expect(owed != OWED_FINE, 0))
        pause_process(env, process, &f, owed);
    else if (__builtin_expect(rules & RULE_HALT, 0) && owed_is_halted(process))
        enif_consume_timeslice(env, YIELD);
}

/*
 * Whether the result of a match specification says that the call owes a result (RULE_OWES). If so, removes that from
 * *result: what remains is the result that the probe's own specification gives, or `true` if it gives none.
 */
static bool strip_owes(ErlNifEnv *env, ERL_NIF_TERM *result)
{
    const ERL_NIF_TERM *parts;
    int n;
    if (*result == atom_etrace_owes) {
        *result = atom_true;
        return true;
    }
    if (!enif_get_tuple(env, *result, &n, &parts) || n != 2 || parts[0] != atom_etrace_owes)
        return false;
    *result = parts[1];
    return true;
}

/*
 * Like count_owed(), if only some calls owe a result. False: the call is armed only to count its result and must not be
 * shown.
 */
static __attribute__((noinline)) bool count_owing(ErlNifEnv *env, const struct tag *tag, const ERL_NIF_TERM argv[],
                                                  uint32_t rules, struct stack_function f)
{
    ERL_NIF_TERM result;
    if (tag->kind != ETW_CALL) {
        count_owed(env, tag, argv[2], rules, f);
        return true;
    }
    if (!enif_get_map_value(env, argv[4], atom_match_spec_result, &result) || !strip_owes(env, &result))
        return true;
    count_owed(env, tag, argv[2], rules, f);
    return result != atom_false;
}

/* Applies the rules on owed results to a call or a result. False: it must not be shown. */
static ALWAYS bool count_open(ErlNifEnv *env, const struct tag *tag, const ERL_NIF_TERM argv[], uint32_t rules,
                              struct stack_function f)
{
    if (rules & RULE_RETURNS)
        count_owed(env, tag, argv[2], rules, f);
    else if (__builtin_expect(rules & RULE_OWES, 0))
        return count_owing(env, tag, argv, rules, f);
    return true;
}

static uint8_t *put_terms(struct encoder *e, uint8_t *at, ERL_NIF_TERM first, ERL_NIF_TERM second)
{
    ERL_NIF_TERM both[2] = {first, second};
    return encode_terms(e, at, e->limits.bytes, both, 2);
}

#define PID_BYTES 9
#define FRAME_HEAD 8     /* bytes of a frame's head without tick and tracee */
#define FUNCTION_BYTES 3 /* bytes of a function whose name the ring has defined */

static ALWAYS uint8_t *put_pid(uint8_t *at, ERL_NIF_TERM t)
{
    return put64(put8(at, ETW_T_PID), imm_pid(t));
}

/* Encodes the receiver and the message. The receiver is nearly always a local pid. */
static ALWAYS uint8_t *put_message(struct encoder *e, uint8_t *at, ERL_NIF_TERM to, ERL_NIF_TERM message)
{
    if (imm_known && imm_is_pid(to) && e->limits.bytes > PID_BYTES)
        return encode_term(e, put_pid(at, to), e->limits.bytes - PID_BYTES, message);
    return put_terms(e, at, to, message);
}

static ALWAYS uint8_t *put_event(struct encoder *e, uint8_t *at, const struct tag *tag, const ERL_NIF_TERM argv[],
                                 struct encode_function f, const ERL_NIF_TERM *args, ERL_NIF_TERM extra)
{
    switch ((enum etw_layout)tag->layout) {
    case ETW_LAYOUT_CALL:
        return encode_call(e, at, f, args);
    case ETW_LAYOUT_RETURN:
        return encode_term(e, encode_result_of(e, at, f), e->limits.bytes, extra);
    case ETW_LAYOUT_RETURN_TO:
        return encode_function(e, at, argv[3]);
    case ETW_LAYOUT_EXTRA_TERM:
        return put_message(e, at, extra, argv[3]);
    case ETW_LAYOUT_TERM_EXTRA:
        return put_terms(e, at, argv[3], extra);
    case ETW_LAYOUT_TAG_TERM:
        return put_terms(e, at, argv[0], argv[3]);
    case ETW_LAYOUT_LABEL:
        return put_terms(e, at, argv[2], argv[3]);
    case ETW_LAYOUT_TERM:
    case ETW_LAYOUT_OWN: /* no trace tag has this layout or the next ones */
    case ETW_LAYOUT_LOST:
    case ETW_LAYOUT_TALLY:
    case ETW_LAYOUT_NO_FRAME:
        break;
    }
    return encode_term(e, at, e->limits.bytes, argv[3]);
}

static ALWAYS bool is_message(const struct tag *tag)
{
    return tag->kind == ETW_RECEIVE || tag->kind == ETW_SEND || tag->kind == ETW_SEND_NOPROC;
}

/* Does under RULE_REQUESTS what put_event() does without it. No view of requests reads the receiver of a message. */
static __attribute__((noinline)) uint8_t *put_for_requests(struct encoder *e, uint8_t *at, const struct tag *tag,
                                                           const ERL_NIF_TERM argv[], struct encode_function f,
                                                           const ERL_NIF_TERM *args, ERL_NIF_TERM extra,
                                                           const struct requests_read *read)
{
    if (tag->kind == ETW_CALL)
        return requests_put_call(e, at, f, args);
    if (!is_message(tag))
        return put_event(e, at, tag, argv, f, args, extra);
    return requests_put(e, tag->layout == ETW_LAYOUT_EXTRA_TERM ? put8(at, ETW_T_ELIDED) : at, read);
}

/*
 * Encodes the result of a match specification. A stack trace can be long, so it also gets the bytes that the event did
 * not use.
 */
static ALWAYS uint8_t *put_result(struct encoder *e, uint8_t *at, ERL_NIF_TERM result, size_t taken)
{
    uint32_t most = e->limits.bytes;
    if (imm_known && imm_is_pid(result)) /* the sender of a received message */
        return put_pid(at, result);
    return encode_term(e, at, TRACER_MS_BYTES + (taken < most ? most - (uint32_t)taken : 0), result);
}

static ALWAYS bool has_match_spec(const struct tag *tag, uint32_t rules)
{
    bool sends = tag->kind == ETW_SEND || tag->kind == ETW_SEND_NOPROC;
    return ((tag->kind == ETW_CALL || sends) && !(rules & RULE_PLAIN)) || tag->kind == ETW_RECEIVE;
}

static ALWAYS bool has_extra(const struct tag *tag)
{
    return tag->layout == ETW_LAYOUT_RETURN || tag->layout == ETW_LAYOUT_EXTRA_TERM ||
           tag->layout == ETW_LAYOUT_TERM_EXTRA;
}

/*
 * Finds the result of the match specification in the options. Few events have one, and reading the size of the map
 * costs less than a failed lookup. But nearly every received message has one, its sender, so the size is not read for
 * received messages.
 */
static ALWAYS bool get_result(ErlNifEnv *env, const struct tag *tag, uint32_t rules, ERL_NIF_TERM options,
                              ERL_NIF_TERM *ret)
{
    size_t n;
    if (!has_match_spec(tag, rules))
        return false;
    if (tag->kind != ETW_RECEIVE && (!enif_get_map_size(env, options, &n) || n <= has_extra(tag)))
        return false;
    return enif_get_map_value(env, options, atom_match_spec_result, ret);
}

/*
 * Whether a call in meta answers a probe that is a root. Only calls of functions that are traced inside, too, name
 * their probes: {etrace_probe, Number | {Number, ...}, ...}.
 */
static bool opens_root(ErlNifEnv *env, ERL_NIF_TERM result)
{
    const ERL_NIF_TERM *parts, *probes;
    unsigned probe;
    int n;
    if (!enif_get_tuple(env, result, &n, &parts) || n < 2 || parts[0] != atom_etrace_probe)
        return true;
    if (!enif_get_tuple(env, parts[1], &n, &probes))
        return enif_get_uint(env, parts[1], &probe) && inside_is_root(probe);
    for (int i = 0; i < n; i++)
        if (enif_get_uint(env, probes[i], &probe) && inside_is_root(probe))
            return true;
    return false;
}

/*
 * Applies RULE_INSIDE to a call or a result. False: it is outside of every root. An event of a local function is
 * inside, because enabled_call/3 admitted its call. Only events in meta have a time stamp, because we set no flag for
 * it.
 */
static bool track_inside(ErlNifEnv *env, const struct tag *tag, const ERL_NIF_TERM argv[], uint32_t rules,
                         struct lane *lane, struct stack_function f, struct inside_closed *ret_closed)
{
    struct inside_meta call = {.function = f,
                               .root = true,
                               .returns = rules & RULE_RETURNS,
                               .keeps = gate_route(rules) == ROUTE_TREES};
    ERL_NIF_TERM at, result;
    *ret_closed = (struct inside_closed){0};
    if (!enif_get_map_value(env, argv[4], atom_timestamp, &at))
        return true;
    if (tag->kind != ETW_CALL)
        return inside_result(argv[2], &f, ret_closed);
    if (get_result(env, tag, rules, argv[4], &result)) {
        call.returns |= strip_owes(env, &result);
        call.root = opens_root(env, result);
    }
    call.loops = __builtin_expect(rules & RULE_ENDLESS, 0) && owed_ended(&f);
    call.returns = call.root || (call.returns && !call.loops);
    call.tick = call.keeps ? tick_now() : 0;
    enum inside_call_is is = inside_call(env, argv[2], &call);
    if (is == INSIDE_LOST)
        ring_lose(&lane->ring, ETW_LOST_REQUEST);
    return is == INSIDE_IN;
}

/* The class of {Class, Reason}. */
static enum etw_class class_of(ErlNifEnv *env, ERL_NIF_TERM exception)
{
    const ERL_NIF_TERM *parts;
    int n;
    unsigned i = 0;
    if (!enif_get_tuple(env, exception, &n, &parts) || n != 2)
        return ETW_CLASSES;
    while (i < ETW_CLASSES && classes[i] != parts[0])
        i++;
    return (enum etw_class)i;
}

/* Whether this call has its return traced, if only some calls do (RULE_OWES). */
static __attribute__((noinline)) bool call_owes(ErlNifEnv *env, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM result;
    return enif_get_map_value(env, argv[4], atom_match_spec_result, &result) && strip_owes(env, &result);
}

/* The parts of a result that a filter may read. */
static struct verdict_end end_of(ErlNifEnv *env, const struct tag *tag, ERL_NIF_TERM extra)
{
    struct verdict_end end = {.class = ETW_CLASSES,
                              .returned = tag->kind == ETW_RETURN_FROM,
                              .value = extra,
                              .env = env};
    if (tag->kind == ETW_EXCEPTION_FROM)
        end.class = class_of(env, extra);
    return end;
}

/* Counts a call or a result instead of sending it. Bytes: measure_frame() if the filter tests sizes, else 0. */
static void tally_event(ErlNifEnv *env, const ERL_NIF_TERM argv[], const struct tag *tag, struct lane *lane,
                        uint32_t rules, const struct stack_function *f, ERL_NIF_TERM extra, size_t bytes)
{
    if (tag->kind == ETW_CALL) {
        bool endless = __builtin_expect(rules & RULE_ENDLESS, 0) && owed_ended(f);
        if (endless)
            tally_drop(lane, argv[2], f);
        bool returns = rules & RULE_RETURNS || (__builtin_expect(rules & RULE_OWES, 0) && call_owes(env, argv));
        tally_call(env, lane, argv[2], f, tick_now(), bytes, returns && !endless);
        return;
    }
    const struct tally_result result = {.tick = tick_now(),
                                        .bytes = bytes,
                                        .failed = tag->kind == ETW_EXCEPTION_FROM,
                                        .end = end_of(env, tag, extra)};
    tally_result(lane, argv[2], f, &result);
}

/*
 * Charges a large event to the time slice of its process. A port has none: what it sends comes in the port's
 * environment.
 */
static void take_time(ErlNifEnv *env, const struct tag *tag, ERL_NIF_TERM who, size_t bytes)
{
    if (__builtin_expect(bytes > 4096, 0) && tag->in_process && enif_is_pid(env, who))
        enif_consume_timeslice(env, bytes < 100 * 1024 ? (int)(bytes / 1024) : 100);
}

/*
 * Prepares lane->held to encode terms that do not become a frame now. The caller uses the place of the ring's next
 * frame as scratch space. It needs room there, but it changes neither the ring's head nor the names that the ring has
 * defined. The encoder treats the function's name as defined, so the function takes FUNCTION_BYTES.
 */
static struct encoder *begin_aside(ErlNifEnv *env, struct lane *lane, struct encode_function f)
{
    struct encoder *e = &lane->held;
    e->env = env;
    e->tick = tick_now();
    e->flags = e->word_count = 0;
    e->names.functions[intern_function(f.module, f.name)] = (struct intern_function){f.module, f.name};
    return e;
}

/* Reads the function of a call or a result, and the arguments of a call. */
static ALWAYS struct encode_function read_function(ErlNifEnv *env, const struct tag *tag, ERL_NIF_TERM t,
                                                   ERL_NIF_TERM *ret_args)
{
    return tag->layout == ETW_LAYOUT_CALL ? encode_read_call(env, t, ret_args) : encode_read_function(env, t);
}

static ALWAYS struct stack_function function_of(struct encode_function f)
{
    return (struct stack_function){f.module, f.name, f.arity % ENCODE_BARE};
}

/* The size of the frame of a call or a result, without tick, tracee, and definitions of names. */
static __attribute__((noinline)) size_t measure_frame(ErlNifEnv *env, const ERL_NIF_TERM argv[], const struct tag *tag,
                                                      struct lane *lane, uint32_t rules, ERL_NIF_TERM extra)
{
    ERL_NIF_TERM args[ENCODE_ARGS], result;
    struct encode_function f = read_function(env, tag, argv[3], args);
    if (f.arity & ENCODE_NO_FUNCTION)
        return 0;
    struct encoder *e = begin_aside(env, lane, f);
    uint8_t *from = ring_place(&lane->ring), *at = put_event(e, from, tag, argv, f, args, extra);
    if (get_result(env, tag, rules, argv[4], &result) &&
        !(__builtin_expect(rules & RULE_OWES, 0) && strip_owes(env, &result) && result == atom_true))
        at = put_result(e, at, result, FRAME_HEAD + (size_t)(at - from));
    return FRAME_HEAD + (size_t)(at - from);
}

/* Counts a result in the row of its key (ROUTE_BY). Returns false if the result must be sent instead. */
static __attribute__((noinline)) bool count_result_by_key(ErlNifEnv *env, const ERL_NIF_TERM argv[],
                                                          const struct tag *tag, struct lane *lane, uint32_t rules,
                                                          struct stack_function f, ERL_NIF_TERM extra)
{
    const ERL_NIF_TERM *parts;
    int n;
    struct by_result r = {.process = argv[2], .function = f, .end = end_of(env, tag, extra)};
    if (tag->kind == ETW_RETURN_FROM) {
        r.value = extra;
    } else if (enif_get_tuple(env, extra, &n, &parts) && n == 2) {
        r.class = parts[0];
        r.reason = parts[1];
    }
    return by_result(env, lane, rules, &r);
}

/*
 * Counts a call or a message in the row of its key (ROUTE_BY), or as lost. Returns false if the event must be sent
 * instead.
 */
static ALWAYS bool count_or_lose(ErlNifEnv *env, struct lane *lane, uint32_t rules, const struct by_event *b)
{
    if (__builtin_expect(!(rules & RULE_CLOSED), 1))
        return by_event(env, lane, b);
    by_lost(env, b, ETW_LOST_GUARD);
    ring_lose(&lane->ring, ETW_LOST_GUARD);
    return true;
}

static __attribute__((noinline)) bool count_message_by_key(ErlNifEnv *env, const ERL_NIF_TERM argv[],
                                                           const struct tag *tag, struct lane *lane, uint32_t rules,
                                                           ERL_NIF_TERM extra)
{
    struct by_event b = {.kind = (enum etw_kind)tag->kind, .process = argv[2], .message = argv[3]};
    b.to = tag->kind == ETW_RECEIVE ? 0 : extra;
    get_result(env, tag, rules, argv[4], &b.result);
    return count_or_lose(env, lane, rules, &b);
}

static __attribute__((noinline)) bool count_call_by_key(ErlNifEnv *env, const ERL_NIF_TERM argv[],
                                                        const struct tag *tag, struct lane *lane, uint32_t rules,
                                                        struct encode_function f, const ERL_NIF_TERM *args)
{
    struct by_event b = {.kind = ETW_CALL,
                         .process = argv[2],
                         .function = function_of(f),
                         .args = args,
                         .bare = f.arity & ENCODE_BARE,
                         .returns = rules & RULE_RETURNS};
    b.count = b.bare ? 0 : f.arity;
    if (get_result(env, tag, rules, argv[4], &b.result) && rules & RULE_OWES && strip_owes(env, &b.result)) {
        b.returns = true;
        b.result = b.result == atom_true ? 0 : b.result;
    }
    if (__builtin_expect(rules & RULE_ENDLESS, 0) && !(rules & RULE_CLOSED) && owed_ended(&b.function)) {
        by_endless(&b);
        b.returns = false;
    }
    return count_or_lose(env, lane, rules, &b);
}

/* Counts an event in the row of its key (ROUTE_BY). Returns false if the event must be sent instead. */
static ALWAYS bool count_by_key(ErlNifEnv *env, const ERL_NIF_TERM argv[], const struct tag *tag, struct lane *lane,
                                uint32_t rules, struct encode_function f, const ERL_NIF_TERM *args, ERL_NIF_TERM extra)
{
    if (is_message(tag))
        return count_message_by_key(env, argv, tag, lane, rules, extra);
    if (!has_function(tag) || f.arity & ENCODE_NO_FUNCTION)
        return false;
    return tag->kind == ETW_CALL ? count_call_by_key(env, argv, tag, lane, rules, f, args)
                                 : count_result_by_key(env, argv, tag, lane, rules, function_of(f), extra);
}

/* Does on ROUTE_TALLY what push_event() does without it, for a call or a result. */
static __attribute__((noinline)) ERL_NIF_TERM push_figures(ErlNifEnv *env, const ERL_NIF_TERM argv[],
                                                           const struct tag *tag, uint32_t rules, ERL_NIF_TERM extra)
{
    struct stack_function f;
    struct inside_closed closed;
    if (!get_function(env, argv[3], &f) || !count_open(env, tag, argv, rules, f))
        return atom_ok;
    struct lane *lane = lane_mine();
    if (!lane)
        count_without_lane(rules);
    else if (__builtin_expect(rules & RULE_INSIDE, 0) && !track_inside(env, tag, argv, rules, lane, f, &closed))
        return atom_ok;
    else if (!(rules & RULE_MEASURE))
        tally_event(env, argv, tag, lane, rules, &f, extra, 0);
    else if (gate_has_room_for_more(lane))
        tally_event(env, argv, tag, lane, rules, &f, extra, measure_frame(env, argv, tag, lane, rules, extra));
    return atom_ok;
}

/* Decides on ROUTE_HOLD whether to send this call or result now (hold.h). */
static __attribute__((noinline)) bool hold_or_send(ErlNifEnv *env, const ERL_NIF_TERM argv[], const struct tag *tag,
                                                   struct lane *lane, uint32_t rules, struct encode_function called,
                                                   const ERL_NIF_TERM *args, ERL_NIF_TERM extra)
{
    struct stack_function f = function_of(called);
    bool known = !(called.arity & ENCODE_NO_FUNCTION);
    ERL_NIF_TERM result;
    if (tag->kind != ETW_CALL) {
        const struct verdict_end end = end_of(env, tag, extra);
        return known ? hold_result(env, lane, rules, argv[2], &f, &end) : admit_event(lane, tag, rules);
    }
    enum etw_loss why = gate_admits_waiting(lane, rules);
    if (why != ETW_LOSSES) {
        if (known)
            hold_lost(env, argv[2], &f, why);
        return false;
    }
    if (!known)
        return false;
    struct encoder *e = begin_aside(env, lane, called);
    uint8_t *from = ring_place(&lane->ring) + FUNCTION_BYTES, *at = encode_call(e, from - FUNCTION_BYTES, called, args);
    if (get_result(env, tag, rules, argv[4], &result)) {
        e->flags |= ETW_F_MS;
        at = put_result(e, at, result, (size_t)(at - from) + FRAME_HEAD + FUNCTION_BYTES);
    }
    if (rules & RULE_RATE)
        gate_spend(lane, tick_now() - e->tick);
    take_time(env, tag, argv[2], (size_t)(at - from));
    if (__builtin_expect(rules & RULE_ENDLESS, 0) && owed_ended(&f))
        return hold_endless(lane, rules, argv[2], &f, (size_t)(at - from));
    return hold_call(lane, rules, argv[2], &f, from, (size_t)(at - from));
}

/*
 * On ROUTE_TREES: whether to send this event now. If not, it is kept until the result of the outermost root, or that
 * result rejects it. Closed: the call that a result closes.
 */
static bool keep_or_send(ErlNifEnv *env, const ERL_NIF_TERM argv[], const struct tag *tag, struct lane *lane,
                         uint32_t rules, struct encode_function f, const ERL_NIF_TERM *args, ERL_NIF_TERM extra,
                         const struct inside_closed *closed, bool *ret_admitted)
{
    const struct verdict_end end = end_of(env, tag, extra);
    ERL_NIF_TERM result;
    if (closed->tree) {
        *ret_admitted = true;
        return keep_end(env, lane, rules, argv[2], closed, &end) && gate_has_room_for_more(lane);
    }
    struct tree *tree = inside_tree(argv[2]);
    if (!tree)
        return has_function(tag);
    if (tag->layout == ETW_LAYOUT_RETURN_TO)
        f = encode_read_function(env, argv[3]);
    if (tag->kind == ETW_CALL ? gate_admits_waiting(lane, rules) != ETW_LOSSES : !gate_has_room_for_more(lane))
        return false;
    struct encoder *e = begin_aside(env, lane, f);
    uint8_t *from = ring_place(&lane->ring), *at = put_event(e, from, tag, argv, f, args, extra);
    if (get_result(env, tag, rules, argv[4], &result) &&
        !(rules & RULE_OWES && strip_owes(env, &result) && result == atom_true)) {
        e->flags |= ETW_F_MS;
        at = put_result(e, at, result, (size_t)(at - from) + FRAME_HEAD);
    }
    const size_t function = f.arity & ENCODE_NO_FUNCTION ? 0 : FUNCTION_BYTES;
    const struct keep_event event = {.function = function_of(f),
                                     .bare = !function,
                                     .kind = (enum etw_kind)tag->kind,
                                     .terms = from + function,
                                     .bytes = (size_t)(at - from) - function,
                                     .roots = tree->count == 0};
    keep_event(lane, tree, &event);
    if (closed->call.root)
        keep_inner(tree, closed, e->tick, &end);
    if (rules & RULE_RATE)
        gate_spend(lane, tick_now() - e->tick);
    take_time(env, tag, argv[2], (size_t)(at - from));
    return false;
}

/* Applies RULE_INSIDE and ROUTE_TREES: whether to send this event now.
 * Admitted: the rate has admitted it with its tree. */
static __attribute__((noinline)) bool apply_inside(ErlNifEnv *env, const ERL_NIF_TERM argv[], const struct tag *tag,
                                                   struct lane *lane, uint32_t rules, struct encode_function f,
                                                   const ERL_NIF_TERM *args, ERL_NIF_TERM extra, bool *ret_admitted)
{
    struct inside_closed closed = {0};
    if (has_function(tag)) {
        if (f.arity & ENCODE_NO_FUNCTION || !track_inside(env, tag, argv, rules, lane, function_of(f), &closed))
            return false;
    } else if (!gate_scopes(tag->kind)) { /* enabled/3 has rejected those of scoped kinds outside of roots */
        return true;
    }
    return gate_route(rules) != ROUTE_TREES ||
           keep_or_send(env, argv, tag, lane, rules, f, args, extra, &closed, ret_admitted);
}

/*
 * Applies RULE_TRIGGER to a call or a result, whether or not there is room for it. The stacks know when the calls
 * began.
 */
static __attribute__((noinline)) void look_for_trigger(ErlNifEnv *env, const ERL_NIF_TERM argv[], const struct tag *tag,
                                                       uint32_t rules, struct stack_function f, ERL_NIF_TERM extra)
{
    if (tag->kind == ETW_CALL) {
        bool returns = rules & RULE_RETURNS || (rules & RULE_OWES && call_owes(env, argv));
        if (returns && !(rules & RULE_ENDLESS && owed_ended(&f)))
            stack_push(env, argv[2], &(struct stack_call){.function = f, .tick = tick_now()});
        return;
    }
    struct stack *s;
    struct stack_call *call = stack_pop(argv[2], &f, &s);
    bool known = call && call->sure;
    uint64_t began = known ? call->tick : 0;
    if (s)
        stack_rest(s);
    const struct verdict_end end = end_of(env, tag, extra);
    if (known ? verdict_result(0, tally_ns(began, tick_now()), &end) : verdict_result_untimed(&end))
        if (lanes_fire())
            bell_wake();
}

/*
 * Finds the tracee of a sequential trace event: the process or port that sent, received or printed. It is [] unless it
 * is a local pid or port. False: drop the event, because a process of ours is involved or nobody asked for its label.
 * The label takes the tracee's place in the arguments; it may be any term, so no reference to it may be kept.
 */
static bool seq_tracee(ErlNifEnv *env, ERL_NIF_TERM label, ERL_NIF_TERM info, ERL_NIF_TERM *ret_who)
{
    const ERL_NIF_TERM *parts;
    int n;
    ErlNifPid pid;
    ErlNifPort port;
    *ret_who = imm_nil;
    if (!gate_wants_label(label))
        return false;
    if (!enif_get_tuple(env, info, &n, &parts) || n != 5)
        return true;
    ERL_NIF_TERM who = parts[0] == atom_receive ? parts[3] : parts[2];
    if (enif_get_local_pid(env, who, &pid) || enif_get_local_port(env, who, &port))
        *ret_who = who;
    return !gate_excludes(parts[2]) && !gate_excludes(parts[3]);
}

static ALWAYS ERL_NIF_TERM push_event(ErlNifEnv *env, const ERL_NIF_TERM argv[], const struct tag *tag, uint32_t rules)
{
    ERL_NIF_TERM who = argv[2], extra = imm_nil, result;
    if (!gate_wants(rules, tag->kind) || (tag->layout == ETW_LAYOUT_LABEL && !seq_tracee(env, argv[2], argv[3], &who)))
        return atom_ok;
    if (has_extra(tag)) {
        enif_get_map_value(env, argv[4], atom_extra, &extra);
        if (tag->layout == ETW_LAYOUT_EXTRA_TERM && gate_excludes(extra))
            return atom_ok;
    }
    if (tag->kind == ETW_RETURN_TO && gate_excludes(who))
        return atom_ok;
    struct encode_function f = {.arity = ENCODE_NO_FUNCTION};
    ERL_NIF_TERM args[ENCODE_ARGS];
    if (has_function(tag)) {
        if (__builtin_expect(gate_route(rules) == ROUTE_TALLY, 0))
            return push_figures(env, argv, tag, rules, extra);
        f = read_function(env, tag, argv[3], args);
        if (!(f.arity & ENCODE_NO_FUNCTION) && !count_open(env, tag, argv, rules, function_of(f)))
            return atom_ok;
    }
    struct requests_read read = {.message = REQUESTS_OTHER};
    if (rules & RULE_REQUESTS && is_message(tag)) {
        read = requests_read(env, argv[3]);
        if (read.message == REQUESTS_OTHER)
            return atom_ok;
    }
    struct lane *lane = lane_mine();
    if (__builtin_expect(!lane, 0)) {
        count_without_lane(rules);
        return atom_ok;
    }
    if (__builtin_expect(rules & RULE_TRIGGER, 0) && has_function(tag) && !(f.arity & ENCODE_NO_FUNCTION))
        look_for_trigger(env, argv, tag, rules, function_of(f), extra);
    if (__builtin_expect(gate_route(rules) == ROUTE_BY, 0) && count_by_key(env, argv, tag, lane, rules, f, args, extra))
        return atom_ok;
    bool admitted = false;
    if (__builtin_expect(rules & RULE_INSIDE, 0) &&
        !apply_inside(env, argv, tag, lane, rules, f, args, extra, &admitted))
        return atom_ok;
    if (__builtin_expect(gate_route(rules) == ROUTE_HOLD, 0) && has_function(tag)) {
        if (!hold_or_send(env, argv, tag, lane, rules, f, args, extra))
            return atom_ok;
    } else if (!admitted &&
               (__builtin_expect(rules & RULE_REQUESTS, 0) ? !admit_for_requests(env, lane, argv, tag, rules, &read)
                                                           : !admit_event(lane, tag, rules))) {
        return atom_ok;
    }

    struct encoder *e = &lane->encoder;
    uint64_t tracee = tracer_tracee(env, lane, who);
    e->env = env;
    ring_busy(&lane->ring);
    struct frame frame = frame_begin(&lane->ring, tick_now(), tracee);
    e->tick = frame.tick;
    e->flags = frame.flags;
    uint8_t *at = rules & RULE_REQUESTS ? put_for_requests(e, frame.next, tag, argv, f, args, extra, &read)
                                        : put_event(e, frame.next, tag, argv, f, args, extra);
    if (!(rules & RULE_REQUESTS) && get_result(env, tag, rules, argv[4], &result) &&
        !(__builtin_expect(rules & RULE_OWES, 0) && strip_owes(env, &result) && result == atom_true)) {
        e->flags |= ETW_F_MS;
        at = put_result(e, at, result, (size_t)(at - frame.at));
    }
    /* Reload them, so that they occupy no registers during the encoding */
    frame.tick = e->tick, frame.flags = e->flags;
    size_t bytes = (size_t)(at - frame.at);
    frame_end(&lane->ring, frame, at, tag->kind);
    if (rules & RULE_RATE)
        gate_spend(lane, tick_now() - e->tick);
    bell_ring();
    take_time(e->env, tag, who, bytes);
    return atom_ok;
}

/*
 * Calls, results and messages have their own inlined copies of push_event(), with a constant tag. Calls under the rules
 * of most clients have a copy with constant rules too.
 */
#define RULES_OF_MOST (RULE_EARLY | RULE_PLAIN)

static __attribute__((noinline)) ERL_NIF_TERM push_call(ErlNifEnv *env, uint32_t rules, const ERL_NIF_TERM argv[])
{
    return push_event(env, argv, &tags[ETW_CALL], rules);
}

static __attribute__((noinline)) ERL_NIF_TERM push_send(ErlNifEnv *env, uint32_t rules, const ERL_NIF_TERM argv[])
{
    return push_event(env, argv, &tags[ETW_SEND], rules);
}

static __attribute__((noinline)) ERL_NIF_TERM push_receive(ErlNifEnv *env, uint32_t rules, const ERL_NIF_TERM argv[])
{
    return push_event(env, argv, &tags[ETW_RECEIVE], rules);
}

static __attribute__((noinline)) ERL_NIF_TERM push_result(ErlNifEnv *env, uint32_t rules, const ERL_NIF_TERM argv[])
{
    if (__builtin_expect(rules & RULE_UNASKED, 0) && unasked_drops(env, argv[3]))
        return atom_ok;
    return push_event(env, argv, &tags[ETW_RETURN_FROM], rules);
}

static __attribute__((noinline)) ERL_NIF_TERM push_other(ErlNifEnv *env, uint32_t rules, const ERL_NIF_TERM argv[])
{
    const struct tag *tag = tag_of(argv[0]);
    if (__builtin_expect(rules & RULE_UNASKED, 0) && tag->layout == ETW_LAYOUT_RETURN && unasked_drops(env, argv[3]))
        return atom_ok;
    if (names_process(rules, argv[0])) {
        struct lane *lane = enif_is_pid(env, argv[2]) ? lane_mine() : NULL;
        if (lane) {
            lane_name(lane, argv[2], argv[3]);
            bell_ring();
        }
        if (rules & RULE_INSIDE && is_outside(argv)) /* the only rule that trace/5 leaves to enabled/3 */
            return atom_ok;
    }
    return push_event(env, argv, tag, rules);
}

ERL_NIF_TERM tracer_trace(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    if (!gate_is_live(argv[1]))
        return atom_ok;
    /* Only enabled_call/3 applies the budget and counts what is asked; gate.c reads what was given. */
    uint32_t rules = gate_rules() & ~(RULE_BUDGET | RULE_ASKED | RULE_GIVEN(RULE_RATE | RULE_LIMIT | RULE_EARLY));
    if (argv[0] == atom_return_from)
        return push_result(env, rules, argv);
    if (argv[0] == atom_send)
        return push_send(env, rules, argv);
    if (argv[0] == atom_receive)
        return push_receive(env, rules, argv);
    if (argv[0] != atom_call)
        return push_other(env, rules, argv);
    if (__builtin_expect(rules & RULE_UNASKED, 0)) {
        if (unasked_drops(env, argv[3]))
            return atom_ok;
        rules &= ~(uint32_t)RULE_UNASKED;
    }
    if ((rules & ~(uint32_t)RULE_KINDS) == RULES_OF_MOST)
        return push_event(env, argv, &tags[ETW_CALL], RULES_OF_MOST | (rules & RULE_KINDS));
    if (rules & RULE_PROGRAMS && !program_admits(env, argv[3]))
        return atom_ok;
    return push_call(env, rules, argv);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tracer.h"

#include "bell.h"
#include "inside.h"
#include "program.h"
#include "routes.h"
#include "tally.h"
#include "unasked.h"

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

static ERL_NIF_TERM atom_call, atom_send, atom_receive, atom_return_from, atom_trace_status, atom_register,
    atom_unregister, atom_trace, atom_discard, atom_remove, atom_ok, atom_trial;

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
    atom_register = enif_make_atom(env, "register");
    atom_unregister = enif_make_atom(env, "unregister");
    atom_trace = enif_make_atom(env, "trace");
    atom_discard = enif_make_atom(env, "discard");
    atom_remove = enif_make_atom(env, "remove");
    atom_ok = enif_make_atom(env, "ok");
    atom_trial = enif_make_atom(env, "trial");
    traced_load(env);
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

static void count_no_lane(void)
{
    atomic_fetch_add_explicit(&lanes.no_lane, 1, memory_order_relaxed);
}

/* Counts an event of a thread without a lane. After the limit was reached, counts nothing. */
static void count_without_lane(uint32_t rules)
{
    if (!(rules & RULE_OVER))
        count_no_lane();
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
        count_no_lane();
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
 * Returns the answer for a session that is not live: `trace` if its state is `trial`, else `otherwise`. In the trial
 * session the worker measures what the VM needs for a traced call, so the NIF does nothing.
 */
static ERL_NIF_TERM trial_or(ERL_NIF_TERM state, ERL_NIF_TERM otherwise)
{
    return state == atom_trial ? atom_trace : otherwise;
}

/*
 * Decides about a call. local: the call has local tracing, so the VM asks enabled_call/3. For a call with meta tracing
 * the VM asks enabled/3.
 */
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
                   early = RULE_CLOSED | RULE_RATE | RULE_LIMIT | RULE_FULL; /* without RULE_EARLY: for trace/5 */
    if (__builtin_expect((rules & (rules & RULE_EARLY ? applied | early : applied)) == 0, 1))
        return atom_trace;
    return enabled_by_rules(rules, argv[2]);
}

ERL_NIF_TERM tracer_enabled_call(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc;
    return enabled_call(argv, true);
}

/*
 * Returns true if RULE_INSIDE hides an event: its kind is shown only inside of roots, and its process is outside of
 * every root.
 */
static bool is_outside(const ERL_NIF_TERM argv[])
{
    return gate_scopes(tag_of(argv[0])->kind) && !inside_is_open(argv[2]);
}

/*
 * Returns true if trace/5 must tell the owner that a process gets or loses a name. The owner needs the name if exits
 * are traced: an exit may be the first event of a process, and then the owner can no longer look up the name.
 */
static bool names_process(uint32_t rules, ERL_NIF_TERM tag)
{
    return (tag == atom_register || tag == atom_unregister) && gate_wants(rules, ETW_EXIT);
}

/*
 * Rejects events that trace/5 would reject anyway, and counts the lost ones. Charges nothing for the other events:
 * trace/5 does that, and may still ignore the event.
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
    /* Only trace/5 knows the function of this result, and so whether the client asked for it. */
    if (rules & RULE_UNASKED && tag_of(argv[0])->layout == ETW_LAYOUT_RETURN)
        return atom_trace;
    struct lane *lane = lane_mine();
    if (!lane) {
        count_no_lane();
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
 * Finds the tracee of a sequential trace event: the process or port that sent, received or printed. If that is not a
 * local pid or port, the tracee is []. Returns false if the event must be dropped, because an excluded process is
 * involved or nobody asked for its label. For these events the VM passes the label instead of the tracee. The label may
 * be any term, so it must not be kept as a raw term.
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

/* Finds the tracee and the extra term of an event. Returns false if the event must be ignored. */
static ALWAYS bool begin_event(struct traced *t)
{
    const struct tag *tag = t->tag;
    ERL_NIF_TERM who = t->argv[2], extra = imm_nil;
    if (!gate_wants(t->rules, tag->kind) ||
        (tag->layout == ETW_LAYOUT_LABEL && !seq_tracee(t->env, t->argv[2], t->argv[3], &who)))
        return false;
    if (tag_has_extra(tag)) {
        enif_get_map_value(t->env, t->argv[4], traced_words.extra, &extra);
        if (tag->layout == ETW_LAYOUT_EXTRA_TERM && gate_excludes(extra))
            return false;
    }
    t->who = who;
    t->extra = extra;
    return tag->kind != ETW_RETURN_TO || !gate_excludes(who);
}

/* Finds the lane of this thread. If no lane is left, counts the event in lanes.no_lane and returns false. */
static ALWAYS bool find_lane(struct traced *t)
{
    t->lane = lane_mine();
    if (__builtin_expect(!t->lane, 0))
        count_without_lane(t->rules);
    return t->lane;
}

/* Writes the frame of an admitted event. read: for the views of requests, what they read of the event; else NULL. */
static ALWAYS ERL_NIF_TERM send_event(struct traced *t, const struct requests_read *read)
{
    struct ring *ring = &t->lane->ring;
    struct encoder *e = &t->lane->encoder;
    uint64_t tracee = tracer_tracee(t->env, t->lane, t->who);
    e->env = t->env;
    ring_busy(ring);
    struct frame frame = frame_begin(ring, tick_now(), tracee);
    e->tick = frame.tick;
    e->flags = frame.flags;
    uint8_t *at = read ? routes_put_request(t, e, frame.next, read) : traced_put(t, e, frame.next);
    if (!read)
        at = traced_put_addition(t, e, at, (size_t)(at - frame.at));
    /* Reload the tick and the flags, so that the compiler need not keep them in registers during the encoding. */
    frame.tick = e->tick, frame.flags = e->flags;
    size_t bytes = (size_t)(at - frame.at);
    frame_end(ring, frame, at, t->tag->kind);
    if (t->rules & RULE_RATE)
        gate_spend(t->lane, tick_now() - e->tick);
    bell_ring();
    t->env = e->env;
    traced_charge(t, bytes);
    return atom_ok;
}

/* The rules that push_event() does not apply. If one of them is set, trace_by_route() handles the event. */
#define RULES_OF_ROUTES (RULE_ROUTE | RULE_INSIDE | RULE_REQUESTS | RULE_TRIGGER | RULE_OWES)

/* Sends an event, if it is admitted. Most events come here. */
static ALWAYS ERL_NIF_TERM push_event(ErlNifEnv *env, uint32_t rules, const ERL_NIF_TERM argv[], const struct tag *tag)
{
    ERL_NIF_TERM args[ENCODE_ARGS];
    struct traced t = {.env = env, .argv = argv, .tag = tag, .rules = rules & ~RULES_OF_ROUTES, .args = args};
    if (!begin_event(&t))
        return atom_ok;
    if (tag_has_function(tag)) {
        t.f = traced_read_function(env, tag, argv[3], args);
        if (rules & RULE_RETURNS && traced_is_known(&t))
            traced_count_owed(&t);
    }
    return find_lane(&t) && traced_admit(&t) ? send_event(&t, NULL) : atom_ok;
}

/* Reads {Module, Name, Arity | Arguments} without the arguments. */
static ALWAYS struct encode_function read_arity(ErlNifEnv *env, ERL_NIF_TERM term)
{
    const ERL_NIF_TERM *mfa;
    unsigned arity;
    if (!encode_is_function(env, term, &mfa))
        return (struct encode_function){.arity = ENCODE_NO_FUNCTION};
    if (imm_natural(mfa[2]) < imm_bytes)
        arity = (unsigned)imm_natural(mfa[2]);
    else if (!enif_get_list_length(env, mfa[2], &arity) && !enif_get_uint(env, mfa[2], &arity))
        return (struct encode_function){.arity = ENCODE_NO_FUNCTION};
    return (struct encode_function){mfa[0], mfa[1], arity % ENCODE_BARE};
}

/* Counts the result that a call owes, or a result that has come. Returns false if the event must not be shown. */
static ALWAYS bool count_results(const struct traced *t)
{
    if (!traced_is_known(t))
        return true;
    if (__builtin_expect(t->rules & RULE_OWES, 0))
        return routes_count_owing(t);
    if (t->rules & RULE_RETURNS)
        traced_count_owed(t);
    return true;
}

/* Returns true if calls and results are counted by function under the most frequent rules, without a filter. */
static ALWAYS bool only_counts(uint32_t rules)
{
    return (rules & ~(uint32_t)(RULE_KINDS | RULE_RETURNS)) == (RULE_EARLY | RULE_PLAIN | ROUTE_TALLY) &&
           !verdict_is_set();
}

/* Counts a call or a result if only_counts() is true. */
static ALWAYS ERL_NIF_TERM count_only(ErlNifEnv *env, uint32_t rules, const ERL_NIF_TERM argv[], const struct tag *tag)
{
    struct traced t = {.env = env, .argv = argv, .tag = tag, .rules = rules, .who = argv[2]};
    if (!gate_wants(rules, tag->kind))
        return atom_ok;
    t.f = read_arity(env, argv[3]);
    if (!traced_is_known(&t))
        return atom_ok;
    if (rules & RULE_RETURNS)
        traced_count_owed(&t);
    if (!find_lane(&t))
        return atom_ok;
    const struct stack_function f = traced_function(&t);
    const bool returns = rules & RULE_RETURNS;
    if (tag->kind == ETW_CALL)
        tally_call(env, t.lane, t.who, &f, returns ? tick_now() : 0, 0, returns);
    else
        tally_result(t.lane, t.who, &f, &(struct tally_result){.tick = tick_now()});
    return atom_ok;
}

/* Counts a call or a result on ROUTE_TALLY. */
static ALWAYS ERL_NIF_TERM tally_event(struct traced *t)
{
    bool admitted;
    t->f = read_arity(t->env, t->argv[3]);
    if (traced_is_known(t) && count_results(t) && find_lane(t) &&
        (!(t->rules & RULE_INSIDE) || routes_inside(t, &admitted)) &&
        (!(t->rules & RULE_MEASURE) || gate_has_room_for_more(t->lane)))
        routes_tally(t);
    return atom_ok;
}

/* Sends an event of a request, or another event that the views of requests read, if it is admitted. */
static ALWAYS ERL_NIF_TERM push_request(struct traced *t)
{
    struct requests_read read = {.message = REQUESTS_OTHER};
    if (tag_is_message(t->tag)) {
        read = requests_read(t->env, t->argv[3]);
        if (read.message == REQUESTS_OTHER)
            return atom_ok;
    }
    return find_lane(t) && routes_admit_request(t, &read) ? send_event(t, &read) : atom_ok;
}

/* Counts, holds, keeps or sends an event, as its route says. */
static ALWAYS ERL_NIF_TERM push_by_route(struct traced *t)
{
    const enum gate_route route = gate_route(t->rules);
    bool admitted = false;
    if (!find_lane(t))
        return atom_ok;
    if (__builtin_expect(t->rules & RULE_TRIGGER, 0) && traced_is_known(t))
        routes_trigger(t);
    if (route == ROUTE_BY && routes_count(t))
        return atom_ok;
    if (__builtin_expect(t->rules & RULE_INSIDE, 0) && !routes_inside(t, &admitted))
        return atom_ok;
    if (route == ROUTE_HOLD && traced_is_known(t))
        admitted = routes_hold(t);
    else
        admitted = admitted || traced_admit(t);
    return admitted ? send_event(t, NULL) : atom_ok;
}

static void tell_name(ErlNifEnv *env, const ERL_NIF_TERM argv[])
{
    struct lane *lane = enif_is_pid(env, argv[2]) ? lane_mine() : NULL;
    if (!lane)
        return;
    lane_name(lane, argv[2], argv[3]);
    bell_ring();
}

static ALWAYS ERL_NIF_TERM trace_by_route(ErlNifEnv *env, uint32_t rules, const ERL_NIF_TERM argv[],
                                          const struct tag *tag)
{
    ERL_NIF_TERM args[ENCODE_ARGS];
    struct traced t =
        {.env = env, .argv = argv, .tag = tag, .rules = rules, .args = args, .f = {.arity = ENCODE_NO_FUNCTION}};
    if (!begin_event(&t))
        return atom_ok;
    if (tag_has_function(tag) && gate_route(rules) == ROUTE_TALLY)
        return tally_event(&t);
    if (tag_has_function(tag)) {
        t.f = traced_read_function(env, tag, argv[3], args);
        if (!count_results(&t))
            return atom_ok;
    }
    return rules & RULE_REQUESTS ? push_request(&t) : push_by_route(&t);
}

/*
 * Calls, results and messages have their own inlined copies of push_event(), with a constant tag. Calls under the most
 * frequent rules also have a copy with constant rules.
 */
#define RULES_OF_MOST (RULE_EARLY | RULE_PLAIN)

static __attribute__((noinline)) ERL_NIF_TERM count_call(ErlNifEnv *env, uint32_t rules, const ERL_NIF_TERM argv[])
{
    return count_only(env, rules, argv, &tags[ETW_CALL]);
}

static __attribute__((noinline)) ERL_NIF_TERM count_return(ErlNifEnv *env, uint32_t rules, const ERL_NIF_TERM argv[])
{
    return count_only(env, rules, argv, &tags[ETW_RETURN_FROM]);
}

static __attribute__((noinline)) ERL_NIF_TERM route_call(ErlNifEnv *env, uint32_t rules, const ERL_NIF_TERM argv[])
{
    return trace_by_route(env, rules, argv, &tags[ETW_CALL]);
}

static __attribute__((noinline)) ERL_NIF_TERM push_call(ErlNifEnv *env, uint32_t rules, const ERL_NIF_TERM argv[])
{
    return push_event(env, rules, argv, &tags[ETW_CALL]);
}

static __attribute__((noinline)) ERL_NIF_TERM route_send(ErlNifEnv *env, uint32_t rules, const ERL_NIF_TERM argv[])
{
    return trace_by_route(env, rules, argv, &tags[ETW_SEND]);
}

static __attribute__((noinline)) ERL_NIF_TERM push_send(ErlNifEnv *env, uint32_t rules, const ERL_NIF_TERM argv[])
{
    return push_event(env, rules, argv, &tags[ETW_SEND]);
}

static __attribute__((noinline)) ERL_NIF_TERM route_receive(ErlNifEnv *env, uint32_t rules, const ERL_NIF_TERM argv[])
{
    return trace_by_route(env, rules, argv, &tags[ETW_RECEIVE]);
}

static __attribute__((noinline)) ERL_NIF_TERM push_receive(ErlNifEnv *env, uint32_t rules, const ERL_NIF_TERM argv[])
{
    return push_event(env, rules, argv, &tags[ETW_RECEIVE]);
}

static __attribute__((noinline)) ERL_NIF_TERM route_result(ErlNifEnv *env, uint32_t rules, const ERL_NIF_TERM argv[])
{
    return trace_by_route(env, rules, argv, &tags[ETW_RETURN_FROM]);
}

static __attribute__((noinline)) ERL_NIF_TERM push_result(ErlNifEnv *env, uint32_t rules, const ERL_NIF_TERM argv[])
{
    return push_event(env, rules, argv, &tags[ETW_RETURN_FROM]);
}

static __attribute__((noinline)) ERL_NIF_TERM push_other(ErlNifEnv *env, uint32_t rules, const ERL_NIF_TERM argv[])
{
    if (names_process(rules, argv[0])) {
        tell_name(env, argv);
        if (rules & RULE_INSIDE && is_outside(argv)) /* the enabled callbacks apply this rule to all other events */
            return atom_ok;
    }
    return trace_by_route(env, rules, argv, tag_of(argv[0]));
}

ERL_NIF_TERM tracer_trace(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    if (!gate_is_live(argv[1]))
        return atom_ok;
    /* Only enabled_call/3 applies the budget and counts calls for RULE_ASKED, and only gate.c reads the given rules. */
    uint32_t rules = gate_rules() & ~(RULE_BUDGET | RULE_ASKED | RULE_GIVEN(RULE_RATE | RULE_LIMIT | RULE_EARLY));
    if (__builtin_expect(rules & RULE_UNASKED, 0)) {
        if (tag_has_function(tag_of(argv[0])) && unasked_drops(env, argv[3]))
            return atom_ok;
        rules &= ~(uint32_t)RULE_UNASKED;
    }
    const bool plain = !(rules & RULES_OF_ROUTES);
    if (argv[0] == atom_call) {
        if ((rules & ~(uint32_t)RULE_KINDS) == RULES_OF_MOST)
            return push_event(env, RULES_OF_MOST | (rules & RULE_KINDS), argv, &tags[ETW_CALL]);
        if (rules & RULE_PROGRAMS && !program_admits(env, argv[3]))
            return atom_ok;
        if (plain)
            return push_call(env, rules, argv);
        return only_counts(rules) ? count_call(env, rules, argv) : route_call(env, rules, argv);
    }
    if (argv[0] == atom_return_from) {
        if (plain)
            return push_result(env, rules, argv);
        return only_counts(rules) ? count_return(env, rules, argv) : route_result(env, rules, argv);
    }
    if (argv[0] == atom_send)
        return plain ? push_send(env, rules, argv) : route_send(env, rules, argv);
    if (argv[0] == atom_receive)
        return plain ? push_receive(env, rules, argv) : route_receive(env, rules, argv);
    return push_other(env, rules, argv);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "routes.h"

#include "bell.h"
#include "by.h"
#include "hold.h"
#include "inside.h"
#include "intern.h"
#include "keep.h"
#include "tally.h"

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* Returns true if the function loops (owed.h), so that nobody waits for its results. */
static bool loops(const struct traced *t, const struct stack_function *f)
{
    return __builtin_expect(t->rules & RULE_ENDLESS, 0) && owed_ended(f);
}

/* Returns true if the return of this call is traced. */
static bool call_returns(const struct traced *t)
{
    ERL_NIF_TERM result;
    return t->rules & RULE_RETURNS ||
           (__builtin_expect(t->rules & RULE_OWES, 0) &&
            enif_get_map_value(t->env, t->argv[4], traced_words.match_spec_result, &result) &&
            traced_strip_owes(t->env, &result));
}

/* Returns the class of {Class, Reason}. */
static enum etw_class class_of(ErlNifEnv *env, ERL_NIF_TERM exception)
{
    const ERL_NIF_TERM *parts;
    int n;
    unsigned i = 0;
    if (!enif_get_tuple(env, exception, &n, &parts) || n != 2)
        return ETW_CLASSES;
    while (i < ETW_CLASSES && traced_words.classes[i] != parts[0])
        i++;
    return (enum etw_class)i;
}

/* Returns the parts of a result that a filter may read. */
static struct verdict_end end_of(const struct traced *t)
{
    struct verdict_end end = {.class = ETW_CLASSES,
                              .returned = t->tag->kind == ETW_RETURN_FROM,
                              .value = t->extra,
                              .env = t->env};
    if (t->tag->kind == ETW_EXCEPTION_FROM)
        end.class = class_of(t->env, t->extra);
    return end;
}

bool routes_count_owing(const struct traced *t)
{
    ERL_NIF_TERM result;
    if (t->tag->kind != ETW_CALL) {
        traced_count_owed(t);
        return true;
    }
    if (!enif_get_map_value(t->env, t->argv[4], traced_words.match_spec_result, &result) ||
        !traced_strip_owes(t->env, &result))
        return true;
    traced_count_owed(t);
    return result != traced_words.is_false;
}

void routes_trigger(const struct traced *t)
{
    const struct stack_function f = traced_function(t);
    if (t->tag->kind == ETW_CALL) {
        if (call_returns(t) && !loops(t, &f))
            stack_push(t->env, t->who, &(struct stack_call){.function = f, .tick = tick_now()});
        return;
    }
    struct stack *s;
    struct stack_call *call = stack_pop(t->who, &f, &s);
    bool known = call && call->sure;
    uint64_t began = known ? call->tick : 0;
    if (s)
        stack_rest(s);
    const struct verdict_end end = end_of(t);
    if (known ? verdict_result(0, tally_ns(began, tick_now()), &end) : verdict_result_untimed(&end))
        if (lanes_fire())
            bell_wake();
}

/* ---- encoding apart from the ring -------------------------------------------------------------------------------- */

/*
 * Prepares lane->held to encode terms that do not become a frame now. The caller uses the place of the ring's next
 * frame as scratch space. So the ring must have room, but its head and its defined names do not change. The encoder
 * treats the function's name as defined, so the function takes TRACED_FUNCTION bytes.
 */
static struct encoder *begin_aside(const struct traced *t)
{
    struct encoder *e = &t->lane->held;
    e->env = t->env;
    e->tick = tick_now();
    e->flags = e->word_count = 0;
    e->names.functions[intern_function(t->f.module, t->f.name)] = (struct intern_function){t->f.module, t->f.name};
    return e;
}

/* Returns the size that the frame of a call or a result would have without tick, tracee and definitions of names. */
static size_t measure_frame(const struct traced *event)
{
    ERL_NIF_TERM args[ENCODE_ARGS];
    struct traced t = *event;
    t.f = traced_read_function(t.env, t.tag, t.argv[3], args);
    t.args = args;
    if (!traced_is_known(&t))
        return 0;
    struct encoder *e = begin_aside(&t);
    uint8_t *from = ring_place(&t.lane->ring), *at = traced_put(&t, e, from);
    return TRACED_HEAD + (size_t)(traced_put_addition(&t, e, at, TRACED_HEAD + (size_t)(at - from)) - from);
}

/* ---- figures by function ----------------------------------------------------------------------------------------- */

void routes_tally(const struct traced *t)
{
    const struct stack_function f = traced_function(t);
    const size_t bytes = t->rules & RULE_MEASURE ? measure_frame(t) : 0;
    if (t->tag->kind == ETW_CALL) {
        const bool endless = loops(t, &f);
        if (endless)
            tally_drop(t->lane, t->who, &f);
        const bool returns = call_returns(t) && !endless;
        tally_call(t->env, t->lane, t->who, &f, returns ? tick_now() : 0, bytes, returns);
        return;
    }
    const struct tally_result result = {.tick = tick_now(),
                                        .bytes = bytes,
                                        .failed = t->tag->kind == ETW_EXCEPTION_FROM,
                                        .end = end_of(t)};
    tally_result(t->lane, t->who, &f, &result);
}

/* ---- figures by key ---------------------------------------------------------------------------------------------- */

static bool count_result(const struct traced *t)
{
    const ERL_NIF_TERM *parts;
    int n;
    struct by_result r = {.process = t->who, .function = traced_function(t), .end = end_of(t)};
    if (t->tag->kind == ETW_RETURN_FROM) {
        r.value = t->extra;
    } else if (enif_get_tuple(t->env, t->extra, &n, &parts) && n == 2) {
        r.class = parts[0];
        r.reason = parts[1];
    }
    return by_result(t->env, t->lane, t->rules, &r);
}

/* Counts a call or a message, or counts it as lost if the gate is closed. Returns false if the caller must send it. */
static bool count_or_lose(const struct traced *t, const struct by_event *b)
{
    if (__builtin_expect(!(t->rules & RULE_CLOSED), 1))
        return by_event(t->env, t->lane, b);
    by_lost(t->env, b, ETW_LOST_GUARD);
    ring_lose(&t->lane->ring, ETW_LOST_GUARD);
    return true;
}

static bool count_message(const struct traced *t)
{
    struct by_event b = {.kind = (enum etw_kind)t->tag->kind,
                         .process = t->who,
                         .message = t->argv[3],
                         .to = t->tag->kind == ETW_RECEIVE ? 0 : t->extra};
    traced_result(t, &b.result);
    return count_or_lose(t, &b);
}

static bool count_call(const struct traced *t)
{
    const bool bare = t->f.arity & ENCODE_BARE;
    struct by_event b = {.kind = ETW_CALL,
                         .process = t->who,
                         .function = traced_function(t),
                         .args = t->args,
                         .count = bare ? 0 : t->f.arity,
                         .bare = bare,
                         .returns = t->rules & RULE_RETURNS};
    if (traced_result(t, &b.result) && t->rules & RULE_OWES && traced_strip_owes(t->env, &b.result)) {
        b.returns = true;
        b.result = b.result == traced_words.is_true ? 0 : b.result;
    }
    if (!(t->rules & RULE_CLOSED) && loops(t, &b.function)) {
        by_endless(&b);
        b.returns = false;
    }
    return count_or_lose(t, &b);
}

bool routes_count(const struct traced *t)
{
    if (tag_is_message(t->tag))
        return count_message(t);
    if (!traced_is_known(t))
        return false;
    return t->tag->kind == ETW_CALL ? count_call(t) : count_result(t);
}

/* ---- calls that wait for their result ---------------------------------------------------------------------------- */

bool routes_hold(const struct traced *t)
{
    const struct stack_function f = traced_function(t);
    if (t->tag->kind != ETW_CALL) {
        const struct verdict_end end = end_of(t);
        return hold_result(t->env, t->lane, t->rules, t->who, &f, &end);
    }
    enum etw_loss why = gate_admits_waiting(t->lane, t->rules);
    if (why != ETW_LOSSES) {
        hold_lost(t->env, t->who, &f, why);
        return false;
    }
    struct encoder *e = begin_aside(t);
    uint8_t *from = ring_place(&t->lane->ring) + TRACED_FUNCTION, *at = traced_put(t, e, from - TRACED_FUNCTION);
    ERL_NIF_TERM result;
    if (traced_result(t, &result)) {
        e->flags |= ETW_F_MS;
        at = traced_put_result(e, at, result, (size_t)(at - from) + TRACED_HEAD + TRACED_FUNCTION);
    }
    if (t->rules & RULE_RATE)
        gate_spend(t->lane, tick_now() - e->tick);
    traced_charge(t, (size_t)(at - from));
    if (loops(t, &f))
        return hold_endless(t->lane, t->rules, t->who, &f, (size_t)(at - from));
    return hold_call(t->lane, t->rules, t->who, &f, from, (size_t)(at - from));
}

/* ---- inside of roots --------------------------------------------------------------------------------------------- */

/*
 * Reports whether a call with meta tracing opens a root. If its function is also traced inside of roots, the result of
 * its match specification names the matching probes: {etrace_probe, Number | {Number, ...}, ...}. Otherwise every call
 * opens a root.
 */
static bool opens_root(ErlNifEnv *env, ERL_NIF_TERM result)
{
    const ERL_NIF_TERM *parts, *probes;
    unsigned probe;
    int n;
    if (!enif_get_tuple(env, result, &n, &parts) || n < 2 || parts[0] != traced_words.probe)
        return true;
    if (!enif_get_tuple(env, parts[1], &n, &probes))
        return enif_get_uint(env, parts[1], &probe) && inside_is_root(probe);
    for (int i = 0; i < n; i++)
        if (enif_get_uint(env, probes[i], &probe) && inside_is_root(probe))
            return true;
    return false;
}

/*
 * Opens or closes a call with meta tracing. Returns false if the event is outside of every root. An event of local
 * tracing is inside a root, because enabled_call/3 admitted its call. Events of meta tracing are recognised by their
 * time stamp: other events have none, because etrace sets no flag for time stamps.
 */
static bool track_inside(const struct traced *t, struct inside_closed *ret_closed)
{
    const struct stack_function f = traced_function(t);
    struct inside_meta call = {.function = f,
                               .root = true,
                               .returns = t->rules & RULE_RETURNS,
                               .keeps = gate_route(t->rules) == ROUTE_TREES,
                               .loops = loops(t, &f)};
    ERL_NIF_TERM at, result;
    if (!enif_get_map_value(t->env, t->argv[4], traced_words.timestamp, &at))
        return true;
    if (t->tag->kind != ETW_CALL)
        return inside_result(t->who, &f, ret_closed);
    if (traced_result(t, &result)) {
        call.returns |= traced_strip_owes(t->env, &result);
        call.root = opens_root(t->env, result);
    }
    call.returns = call.root || (call.returns && !call.loops);
    call.tick = call.keeps ? tick_now() : 0;
    enum inside_call_is is = inside_call(t->env, t->who, &call);
    if (is == INSIDE_LOST)
        ring_lose(&t->lane->ring, ETW_LOST_REQUEST);
    return is == INSIDE_IN;
}

/*
 * Returns true if the event is to be sent now (ROUTE_TREES). Otherwise the event is kept until the result of the
 * outermost root, or is lost, or is the result of an outermost root that the filter rejects. closed: the call that a
 * result closes.
 */
static bool keep_or_send(const struct traced *event, const struct inside_closed *closed, bool *ret_admitted)
{
    struct traced t = *event;
    const struct verdict_end end = end_of(&t);
    if (closed->tree) {
        *ret_admitted = true;
        return keep_end(t.env, t.lane, t.rules, t.who, closed, &end) && gate_has_room_for_more(t.lane);
    }
    struct tree *tree = inside_tree(t.who);
    if (!tree)
        return tag_has_function(t.tag);
    if (t.tag->layout == ETW_LAYOUT_RETURN_TO)
        t.f = encode_read_function(t.env, t.argv[3]);
    if (t.tag->kind == ETW_CALL ? gate_admits_waiting(t.lane, t.rules) != ETW_LOSSES : !gate_has_room_for_more(t.lane))
        return false;
    struct encoder *e = begin_aside(&t);
    uint8_t *from = ring_place(&t.lane->ring), *at = traced_put(&t, e, from);
    at = traced_put_addition(&t, e, at, (size_t)(at - from) + TRACED_HEAD);
    const size_t function = t.f.arity & ENCODE_NO_FUNCTION ? 0 : TRACED_FUNCTION;
    const struct keep_event kept = {.function = traced_function(&t),
                                    .bare = !function,
                                    .kind = (enum etw_kind)t.tag->kind,
                                    .terms = from + function,
                                    .bytes = (size_t)(at - from) - function,
                                    .roots = tree->count == 0};
    keep_event(t.lane, tree, &kept);
    if (closed->call.root)
        keep_inner(tree, closed, e->tick, &end);
    if (t.rules & RULE_RATE)
        gate_spend(t.lane, tick_now() - e->tick);
    traced_charge(&t, (size_t)(at - from));
    return false;
}

bool routes_inside(const struct traced *t, bool *ret_admitted)
{
    struct inside_closed closed = {0};
    if (tag_has_function(t->tag)) {
        if (!traced_is_known(t) || !track_inside(t, &closed))
            return false;
    } else if (!gate_scopes(t->tag->kind)) { /* events of this kind are shown outside of roots, too */
        return true;
    }
    return gate_route(t->rules) != ROUTE_TREES || keep_or_send(t, &closed, ret_admitted);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

bool routes_admit_request(const struct traced *t, const struct requests_read *read)
{
    const enum etw_kind kind = (enum etw_kind)t->tag->kind;
    enum gate_part part = GATE_OTHER;
    ERL_NIF_TERM ref = 0;
    if (!gate_sorts(t->lane, t->rules))
        return traced_admit(t);
    if (t->rules & RULE_OVER)
        return false;
    if (kind == ETW_CALL && (ref = requests_of_call(t->env, t->argv[3]))) {
        part = GATE_LATER;
    } else if (read->message == REQUESTS_CALL || read->message == REQUESTS_TASK) {
        part = kind == ETW_RECEIVE && requests_are_sent() ? GATE_AGAIN : GATE_FIRST;
        ref = read->ref;
    } else if (read->message == REQUESTS_REPLY || read->message == REQUESTS_DOWN) {
        part = kind == ETW_RECEIVE ? GATE_LAST : GATE_LATER;
        ref = read->ref;
    }
    return gate_admits_part(t->lane, t->rules, part, ref ? requests_key(ref) : 0);
}

/* Encodes an event for the views of requests. They do not read the receiver of a message. */
uint8_t *routes_put_request(const struct traced *t, struct encoder *e, uint8_t *at, const struct requests_read *read)
{
    if (t->tag->kind == ETW_CALL)
        return requests_put_call(e, at, t->f, t->args);
    if (!tag_is_message(t->tag))
        return traced_put(t, e, at);
    return requests_put(e, t->tag->layout == ETW_LAYOUT_EXTRA_TERM ? put8(at, ETW_T_ELIDED) : at, read);
}

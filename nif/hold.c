/* SPDX-License-Identifier: Apache-2.0 */
#include "hold.h"

#include <string.h>

#include "tally.h"
#include "tick.h"

#define HEAD_LEAST (8 + 3) /* the fewest and the most bytes of a call's frame before its terms */
#define HEAD_MOST (8 + 8 + 8 + 3)

/*
 * Returns the verdict about a call whose terms have this many bytes. The exact size of its frame is not known yet.
 * Returns TALLY_SENT if the filter shows the call, or if the possible sizes lead to different verdicts: then the client
 * decides.
 */
static unsigned verdict_of(size_t bytes, bool returns)
{
    enum verdict v = returns ? verdict_sizeless : verdict_call(0, false);
    if (verdict_measured)
        v = verdict_call(bytes + HEAD_LEAST, returns);
    for (size_t head = HEAD_LEAST + 8; verdict_measured && head <= HEAD_MOST; head += 8)
        if (verdict_call(bytes + head, returns) != v)
            return TALLY_SENT;
    return v == VERDICT_SHOWS ? TALLY_SENT : (unsigned)v;
}

void hold_lost(ErlNifEnv *env, ERL_NIF_TERM process, const struct stack_function *f, enum etw_loss why)
{
    stack_push(env, process, &(struct stack_call){.function = *f, .verdict = TALLY_LOST, .flags = (uint8_t)why});
}

bool hold_call(struct lane *lane, uint32_t rules, ERL_NIF_TERM process, const struct stack_function *f,
               const uint8_t *terms, size_t bytes)
{
    const struct encoder *e = &lane->held;
    struct stack_call call = {.function = *f,
                              .tick = e->tick,
                              .verdict = (uint8_t)verdict_of(bytes, true),
                              .flags = (uint8_t)e->flags};
    if (e->word_count > ENCODER_WORDS)
        call.verdict = TALLY_SENT;
    if (call.verdict == VERDICT_WAITS) {
        call.words = (uint16_t)e->word_count;
        call.bytes = (uint32_t)(call.words * sizeof *e->words + bytes);
    }
    bool waits = call.verdict != TALLY_SENT, admitted = waits || gate_admits_waited(rules, 1);
    if (!admitted)
        call.verdict = TALLY_LOST, call.flags = ETW_LOST_RATE;
    struct stack_call *place = stack_push(e->env, process, &call);
    if (waits && place) {
        if (call.bytes) {
            memcpy(stack_beside(place), e->words, call.words * sizeof *e->words);
            memcpy(stack_beside(place) + call.words * sizeof *e->words, terms, bytes);
        }
        tally_hide(lane, 1);
        return false;
    }
    if (waits)
        admitted = gate_admits_waited(rules, 1);
    if (!admitted)
        ring_lose(&lane->ring, place ? ETW_LOST_RATE : ETW_LOST_HALF);
    return admitted;
}

void hold_send(ErlNifEnv *env, struct lane *lane, ERL_NIF_TERM process, enum etw_kind kind, uint32_t flags,
               uint64_t tick, const struct encode_held *held)
{
    struct encoder *e = &lane->encoder;
    struct ring *ring = &lane->ring;
    uint64_t tracee = tracer_tracee(env, lane, process);
    ring_busy(ring);
    struct frame frame = frame_begin(ring, tick_now(), tracee);
    e->env = env;
    e->tick = frame.tick;
    e->flags = frame.flags | flags | (kind == ETW_CALL ? ETW_F_BEGAN : ETW_F_KEPT);
    uint8_t *at = encode_anew(e, put64(frame.next, tick), frame.at + ring->need, held);
    frame.flags = e->flags;
    frame_close(ring, frame, at, kind);
    ring_rest(ring);
}

static void send_held_call(ErlNifEnv *env, struct lane *lane, ERL_NIF_TERM process, struct stack_call *call)
{
    size_t words = call->words * sizeof(uint64_t);
    struct encode_held held = {
        .module = call->function.module,
        .name = call->function.name,
        .words = (const uint64_t *)(const void *)stack_beside(call),
        .terms = stack_beside(call) + words,
        .bytes = call->bytes > words ? call->bytes - (uint32_t)words : 0,
        .word_count = call->words,
        .arity = (uint8_t)call->function.arity,
    };
    hold_send(env, lane, process, ETW_CALL, call->flags, call->tick, &held); /* hold_call() counted it as seen */
}

/*
 * Sends a held call. Returns false if the rate or a full ring prevents that: both the call and its result then count as
 * lost.
 */
static bool show_call(ErlNifEnv *env, struct lane *lane, uint32_t rules, ERL_NIF_TERM process, struct stack_call *call)
{
    tally_waiting(lane, -1, -1);
    if (!gate_admits_waited(rules, 1)) {
        ring_lose_seen(&lane->ring, ETW_LOST_RATE);
        ring_lose(&lane->ring, ETW_LOST_RATE);
        return false;
    }
    if (!gate_has_room_for_new(lane)) {
        ring_lose_seen(&lane->ring, ETW_LOST_RING);
        return false;
    }
    send_held_call(env, lane, process, call);
    return true;
}

static bool show_held_call(ErlNifEnv *env, struct lane *lane, uint32_t rules, ERL_NIF_TERM process,
                           struct stack_call *call)
{
    tally_begin(lane);
    bool shown = show_call(env, lane, rules, process, call);
    tally_end(lane);
    return shown && gate_has_room_for_more(lane);
}

/* Counts one held call less. The call stays hidden. */
static void stop_waiting(struct lane *lane)
{
    tally_begin(lane);
    tally_waiting(lane, 0, -1);
    tally_end(lane);
}

bool hold_endless(struct lane *lane, uint32_t rules, ERL_NIF_TERM process, const struct stack_function *f, size_t bytes)
{
    struct stack *s;
    struct stack_call *call;
    bool hidden = verdict_of(bytes, false) != TALLY_SENT;
    while ((call = stack_drop(process, f, &s))) {
        bool waited = call->verdict != TALLY_SENT && call->verdict != TALLY_LOST;
        stack_rest(s);
        if (waited)
            stop_waiting(lane);
    }
    if (hidden) {
        tally_hide(lane, 0);
        return false;
    }
    if (gate_admits_waited(rules, 1))
        return true;
    ring_lose(&lane->ring, ETW_LOST_RATE);
    return false;
}

bool hold_result(ErlNifEnv *env, struct lane *lane, uint32_t rules, ERL_NIF_TERM process,
                 const struct stack_function *f, const struct verdict_end *end)
{
    struct stack *s;
    struct stack_call *call = stack_pop(process, f, &s);
    bool shown;
    if (call && !call->sure) { /* the result may belong to an older call, so this call stays hidden */
        if (call->verdict != TALLY_SENT && call->verdict != TALLY_LOST)
            stop_waiting(lane);
        call = NULL;
    }
    if (!call) { /* the call may have been sent, so send the result if the rate and the ring admit it */
        shown = rules & RULE_RATE ? gate_admits(lane, RULE_RATE, ETW_LOST_HALF) : gate_has_room_for_more(lane);
    } else if (call->verdict == TALLY_LOST) {
        shown = false;
        ring_lose(&lane->ring, (enum etw_loss)call->flags);
    } else if (call->verdict == TALLY_SENT) {
        shown = gate_has_room_for_more(lane);
    } else if (call->verdict == VERDICT_WAITS && verdict_result_may(tally_ns(call->tick, tick_now()), end)) {
        shown = show_held_call(env, lane, rules, process, call);
    } else {
        shown = false;
        tally_begin(lane);
        tally_waiting(lane, 1, -1);
        ring_count_seen(&lane->ring);
        tally_end(lane);
    }
    if (s)
        stack_rest(s);
    return shown;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defines an event that trace/5 is handling, and the steps that are common to all routes: admit the event, read the
 * result of its match specification, and encode it.
 *
 * The functions are inlined, because most events need all of them.
 */
#ifndef ETRACE_TRACED_H
#define ETRACE_TRACED_H

#include "encode.h"
#include "frame.h"
#include "gate.h"
#include "hidden.h"
#include "imm.h"
#include "owed.h"
#include "tick.h"
#include "tracer.h"
#include "verdict.h"

/* A trace tag of the VM, such as return_from. */
struct tag {
    const char *name; /* NULL: no such kind */
    uint8_t kind, layout;
    bool in_process; /* the VM calls the callback while it runs the tracee */
};

struct traced {
    ErlNifEnv *env;
    const ERL_NIF_TERM *argv; /* the arguments of trace/5: tag, state, tracee, term, options */
    const struct tag *tag;
    uint32_t rules;
    ERL_NIF_TERM who;         /* the tracee: argv[2]; of a sequential trace event, the process or port in its term */
    ERL_NIF_TERM extra;       /* the option `extra`: the value of a result, the receiver of a message, … */
    struct encode_function f; /* the function of a call or a result */
    const ERL_NIF_TERM *args; /* the arguments of a call */
    struct lane *lane;
};

/* Atoms that the callbacks compare with or look up. Made when the library is loaded. */
struct traced_words {
    ERL_NIF_TERM match_spec_result, extra, timestamp, owes, probe, is_true, is_false;
    ERL_NIF_TERM classes[ETW_CLASSES];
};
extern HIDDEN struct traced_words traced_words;

void traced_load(ErlNifEnv *env);

/* ---- what it is -------------------------------------------------------------------------------------------------- */

static ALWAYS bool tag_has_function(const struct tag *tag)
{
    return tag->layout == ETW_LAYOUT_CALL || tag->layout == ETW_LAYOUT_RETURN;
}

static ALWAYS bool tag_is_message(const struct tag *tag)
{
    return tag->kind == ETW_RECEIVE || tag->kind == ETW_SEND || tag->kind == ETW_SEND_NOPROC;
}

static ALWAYS bool tag_has_extra(const struct tag *tag)
{
    return tag->layout == ETW_LAYOUT_RETURN || tag->layout == ETW_LAYOUT_EXTRA_TERM ||
           tag->layout == ETW_LAYOUT_TERM_EXTRA;
}

/* Returns true if the VM has named the function of a call or a result. */
static ALWAYS bool traced_is_known(const struct traced *t)
{
    return tag_has_function(t->tag) && !(t->f.arity & ENCODE_NO_FUNCTION);
}

static ALWAYS struct stack_function traced_function(const struct traced *t)
{
    return (struct stack_function){t->f.module, t->f.name, t->f.arity % ENCODE_BARE};
}

/* Reads the function of a call or a result, and the arguments of a call. */
static ALWAYS struct encode_function traced_read_function(ErlNifEnv *env, const struct tag *tag, ERL_NIF_TERM term,
                                                          ERL_NIF_TERM *ret_args)
{
    return tag->layout == ETW_LAYOUT_CALL ? encode_read_call(env, term, ret_args) : encode_read_function(env, term);
}

/* ---- whether it is shown ----------------------------------------------------------------------------------------- */

/* Pauses a process that owes too many results. */
void traced_pause(ErlNifEnv *env, ERL_NIF_TERM process, struct stack_function f, enum owed owed);
void traced_yield(ErlNifEnv *env);

/*
 * Counts the result that a call owes, or a result that has come. The VM keeps a stack frame for each call whose return
 * is traced, so lost events count, too.
 */
static ALWAYS void traced_count_owed(const struct traced *t)
{
    const struct stack_function f = traced_function(t);
    if (t->tag->kind != ETW_CALL) {
        owed_less(t->who, &f);
        return;
    }
    enum owed owed = owed_more(t->env, t->who, &f);
    if (__builtin_expect(owed != OWED_FINE, 0))
        traced_pause(t->env, t->who, f, owed);
    else if (__builtin_expect(t->rules & RULE_HALT, 0) && owed_is_halted(t->who))
        traced_yield(t->env);
}

/* Returns true if the event is to be sent. Counts a rejected event as lost, unless the limit was reached. */
static ALWAYS bool traced_admit(const struct traced *t)
{
    const unsigned kind = t->tag->kind;
    if (kind == ETW_CALL && t->rules & RULE_EARLY)
        return gate_has_room_for_new(t->lane);
    if (kind == ETW_RETURN_FROM || kind == ETW_EXCEPTION_FROM) {
        /* Without RULE_EARLY a lost call still reports its result, so the rate applies to results too. */
        if ((t->rules & (RULE_EARLY | RULE_RATE)) == RULE_RATE)
            return gate_admits(t->lane, RULE_RATE, ETW_LOST_HALF);
        return gate_has_room_for_more(t->lane);
    }
    return !(t->rules & RULE_OVER) && gate_admits(t->lane, t->rules, kind == ETW_CALL ? ETW_LOST_HALF : ETW_LOST_RATE);
}

/* ---- what its match specification says --------------------------------------------------------------------------- */

/*
 * Finds the result of the match specification in the options. Few events have such a result, so the size of the map is
 * read first: this costs less than a failed lookup. For nearly every received message the result is the sender, so the
 * size is not read for received messages.
 */
static ALWAYS bool traced_result(const struct traced *t, ERL_NIF_TERM *ret)
{
    const struct tag *tag = t->tag;
    const bool sends = tag->kind == ETW_SEND || tag->kind == ETW_SEND_NOPROC;
    size_t n;
    if (tag->kind != ETW_RECEIVE) {
        if ((tag->kind != ETW_CALL && !sends) || t->rules & RULE_PLAIN)
            return false;
        if (!enif_get_map_size(t->env, t->argv[4], &n) || n <= tag_has_extra(tag))
            return false;
    }
    return enif_get_map_value(t->env, t->argv[4], traced_words.match_spec_result, ret);
}

/*
 * Returns true if the result of a match specification says that the call owes a result (RULE_OWES). If so, reduces
 * *result to the result of the probe's own specification, or to `true` if the probe has none.
 */
bool traced_strip_owes(ErlNifEnv *env, ERL_NIF_TERM *result);

/* Finds the term that the probe's own match specification adds to the event. Returns false if it adds no term. */
static ALWAYS bool traced_addition(const struct traced *t, ERL_NIF_TERM *ret)
{
    return traced_result(t, ret) && !(__builtin_expect(t->rules & RULE_OWES, 0) && traced_strip_owes(t->env, ret) &&
                                      *ret == traced_words.is_true);
}

/* ---- how it is encoded ------------------------------------------------------------------------------------------- */

#define TRACED_HEAD 8     /* bytes of a frame's head without tick and tracee */
#define TRACED_FUNCTION 3 /* bytes of a function whose name the ring has defined */
#define TRACED_PID 9

static ALWAYS uint8_t *traced_put_terms(struct encoder *e, uint8_t *at, ERL_NIF_TERM first, ERL_NIF_TERM second)
{
    ERL_NIF_TERM both[2] = {first, second};
    return encode_terms(e, at, e->limits.bytes, both, 2);
}

static ALWAYS uint8_t *traced_put_pid(uint8_t *at, ERL_NIF_TERM t)
{
    return put64(put8(at, ETW_T_PID), imm_pid(t));
}

/* Encodes the receiver and the message. The receiver is nearly always a local pid. */
static ALWAYS uint8_t *traced_put_message(struct encoder *e, uint8_t *at, ERL_NIF_TERM to, ERL_NIF_TERM message)
{
    if (imm_known && imm_is_pid(to) && e->limits.bytes > TRACED_PID)
        return encode_term(e, traced_put_pid(at, to), e->limits.bytes - TRACED_PID, message);
    return traced_put_terms(e, at, to, message);
}

/* Encodes the event without its addition. */
static ALWAYS uint8_t *traced_put(const struct traced *t, struct encoder *e, uint8_t *at)
{
    const ERL_NIF_TERM *argv = t->argv;
    switch ((enum etw_layout)t->tag->layout) {
    case ETW_LAYOUT_CALL:
        return encode_call(e, at, t->f, t->args);
    case ETW_LAYOUT_RETURN:
        return encode_term(e, encode_result_of(e, at, t->f), e->limits.bytes, t->extra);
    case ETW_LAYOUT_RETURN_TO:
        return encode_function(e, at, argv[3]);
    case ETW_LAYOUT_EXTRA_TERM:
        return traced_put_message(e, at, t->extra, argv[3]);
    case ETW_LAYOUT_TERM_EXTRA:
        return traced_put_terms(e, at, argv[3], t->extra);
    case ETW_LAYOUT_TAG_TERM:
        return traced_put_terms(e, at, argv[0], argv[3]);
    case ETW_LAYOUT_LABEL:
        return traced_put_terms(e, at, argv[2], argv[3]);
    case ETW_LAYOUT_TERM:
    case ETW_LAYOUT_OWN: /* no trace tag has this layout or one of the following */
    case ETW_LAYOUT_LOST:
    case ETW_LAYOUT_TALLY:
    case ETW_LAYOUT_NO_FRAME:
        break;
    }
    return encode_term(e, at, e->limits.bytes, argv[3]);
}

/*
 * Encodes the result of a match specification. The result may be a long stack trace, so it also gets the bytes that the
 * event did not use.
 */
static ALWAYS uint8_t *traced_put_result(struct encoder *e, uint8_t *at, ERL_NIF_TERM result, size_t taken)
{
    uint32_t most = e->limits.bytes;
    if (imm_known && imm_is_pid(result)) /* the sender of a received message */
        return traced_put_pid(at, result);
    return encode_term(e, at, TRACER_MS_BYTES + (taken < most ? most - (uint32_t)taken : 0), result);
}

/* Encodes the term that the probe's own match specification adds. taken: the bytes of the event before that term. */
static ALWAYS uint8_t *traced_put_addition(const struct traced *t, struct encoder *e, uint8_t *at, size_t taken)
{
    ERL_NIF_TERM result;
    if (!traced_addition(t, &result))
        return at;
    e->flags |= ETW_F_MS;
    return traced_put_result(e, at, result, taken);
}

/*
 * Charges a large event to the time slice of its process. Events of a port are not charged, because a port has no time
 * slice.
 */
static ALWAYS void traced_charge(const struct traced *t, size_t bytes)
{
    if (__builtin_expect(bytes > 4096, 0) && t->tag->in_process && enif_is_pid(t->env, t->who))
        enif_consume_timeslice(t->env, bytes < 100 * 1024 ? (int)(bytes / 1024) : 100);
}

#endif

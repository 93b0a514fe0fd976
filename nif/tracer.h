/*
 * The callbacks of the erl_tracer behaviour: decide, encode, push, return.
 *
 * They run on any thread of the VM, several at once, sometimes without a process and with locks held. So there is no
 * allocation, no lock, no message, no system call but the bell's, nothing that depends on another process. An event
 * passes here twice: `enabled…` may turn it away before the VM builds its term, trace/5 pushes it; the decision is made in
 * exactly one of the two (session.h). trace_call/5 and its like are not there on purpose: the VM would call them wrongly.
 */
#ifndef ETRACE_TRACER_H
#define ETRACE_TRACER_H

#include <erl_nif.h>

#include "encode.h"
#include "frame.h"
#include "imm.h"
#include "lane.h"

/* A match specification's result may have so many bytes beside those that the terms have left of theirs. */
#define TRACER_MS_BYTES 256
/* The longest frame is this and the bytes captured. */
#define TRACER_RESERVE (FRAME_RESERVE + ENCODE_FUNCTION + 2 * ENCODE_OVERRUN + TRACER_MS_BYTES)

typedef ERL_NIF_TERM tracer_function(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

tracer_function tracer_enabled;       /* enabled/3 */
tracer_function tracer_enabled_call;  /* enabled_call/3 */
tracer_function tracer_enabled_event; /* the other enabled_X/3, for X of send, receive, procs, ports, … */
tracer_function tracer_trace;         /* trace/5 */

static ALWAYS uint64_t tracer_tracee_data(ErlNifEnv *env, ERL_NIF_TERM word)
{
    if (__builtin_expect(imm_known, 1)) {
        if (imm_is_pid(word))
            return imm_pid(word);
        return imm_is_port(word) ? imm_port(word) | ETW_TRACEE_PORT : 0;
    }
    return imm_ask_tracee(env, word);
}

/* The tracee of the next frame of a lane, which the caller is about to write: the ring then has this tracee as its last one. */
static ALWAYS uint64_t tracer_tracee(ErlNifEnv *env, struct lane *lane, ERL_NIF_TERM who)
{
    if (who == lane->tracee)
        return lane->ring.tracee;
    lane->tracee = who;
    if (who == imm_nil)
        return 0;
    lane_greet(lane, who);
    return tracer_tracee_data(env, who);
}

/* At load. */
void tracer_load(ErlNifEnv *env);

#endif

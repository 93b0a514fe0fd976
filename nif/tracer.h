/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements the callbacks of the erl_tracer behaviour: they admit or reject an event, encode it, and push it into the
 * thread's ring.
 *
 * The callbacks run on any thread of the VM, concurrently, sometimes without a process and with locks of the VM held.
 * They therefore never allocate, lock, send a message or depend on another process, and their only system call is the
 * bell's. The VM calls two of them for each event. The first is enabled/3 or one like it, which may reject the event
 * before the VM builds its term. The second is trace/5, which pushes the event. Exactly one of the two charges and
 * counts the event (gate.h). trace_call/5 and similar callbacks are left out on purpose, because the VM would call them
 * wrongly.
 */
#ifndef ETRACE_TRACER_H
#define ETRACE_TRACER_H

#include <erl_nif.h>

#include "encode.h"
#include "frame.h"
#include "imm.h"
#include "lane.h"

/* Bytes for the result of a match specification, in addition to the bytes that the event's terms do not use. */
#define TRACER_MS_BYTES 256
/* The longest frame has this number of bytes plus the limit for encoded terms (encode_limits.bytes). */
#define TRACER_RESERVE (FRAME_RESERVE + ENCODE_FUNCTION + 2 * ENCODE_OVERRUN + TRACER_MS_BYTES)

typedef ERL_NIF_TERM tracer_function(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

tracer_function tracer_enabled;       /* enabled/3 */
tracer_function tracer_enabled_call;  /* enabled_call/3 */
tracer_function tracer_enabled_event; /* the other enabled_X/3: send, receive, procs, ports, … */
tracer_function tracer_trace;         /* trace/5 */

/* Returns the tracee as it is written in frames. word: the raw term of a pid or port. */
static ALWAYS uint64_t tracer_tracee_data(ErlNifEnv *env, ERL_NIF_TERM word)
{
    if (__builtin_expect(imm_known, 1)) {
        if (imm_is_pid(word))
            return imm_pid(word);
        return imm_is_port(word) ? imm_port(word) | ETW_TRACEE_PORT : 0;
    }
    return imm_ask_tracee(env, word);
}

/*
 * Returns the tracee for the next frame of a lane, and queues a new tracee for naming. The caller must write that
 * frame, because the lane now has `who` as the tracee of its last frame.
 */
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

void tracer_load(ErlNifEnv *env);

/* Returns true if a process of this node is alive. env: the environment of a call or a callback. */
bool tracer_is_alive(void *env, uint64_t process);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes events and figures out of the library: for the owner, which sends them, and when the node ends, for the socket
 * of the client (leftover.h).
 *
 * The owner's calls use these functions. When the node halts, no process runs any more, but a call of the owner may
 * still run on another scheduler. So calls that take something are between drain_begin() and drain_end().
 */
#ifndef ETRACE_DRAIN_H
#define ETRACE_DRAIN_H

#include <erl_nif.h>
#include <stdbool.h>
#include <stdint.h>

void drain_open(void);

/*
 * Begins a call that takes events or figures. Returns false if the node halts: the caller must take nothing. The caller
 * calls drain_end() in both cases.
 */
bool drain_begin(void);
void drain_end(void);

/*
 * Returns {Batch | none, [Tracee | {Process, Name}], Status}; etrace_tracer.erl documents the status. most: bytes of
 * the batch. own: the owner's sections. last: the trace has ended.
 */
ERL_NIF_TERM drain_rings(ErlNifEnv *env, uint64_t most, const ErlNifBinary *own, bool last);

/* Returns {done | more, Frames} with the figures that have grown, or 0 if the node counts none. */
ERL_NIF_TERM drain_figures(ErlNifEnv *env, uint64_t most);

/* Returns {Notice, Process} about counted calls that have not returned, or `none`. */
ERL_NIF_TERM drain_waits(ErlNifEnv *env);

/* Ends the session, and sends everything that the client does not have to its socket. */
void drain_leftover(void);
void drain_halted(void *priv); /* called by the VM when it halts */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes events and figures out of the rings and tables. The owner sends them to the client. When the node ends, the
 * library sends the rest to a socket of the client (leftover.h).
 *
 * The owner calls these functions. When the node halts, no process is scheduled any more, but a call of the owner may
 * still run on another scheduler. So each call that takes events or figures is between drain_begin() and drain_end().
 */
#ifndef ETRACE_DRAIN_H
#define ETRACE_DRAIN_H

#include <erl_nif.h>
#include <stdbool.h>
#include <stdint.h>

void drain_open(void);

/*
 * Begins a call that takes events or figures. Returns false if the node halts: then the caller must not take anything.
 * The caller calls drain_end() in both cases.
 */
bool drain_begin(void);
void drain_end(void);

/*
 * Returns {Batch | none, [Tracee | {Process, Name}], Status}; etrace_tracer.erl documents the status. most: the most
 * bytes of the batch. own: the sections that the owner adds to the batch. last: the trace has ended.
 */
ERL_NIF_TERM drain_rings(ErlNifEnv *env, uint64_t most, const ErlNifBinary *own, bool last);

/* Returns {done | more, Frames} with the figures that have grown, or 0 if the trace has no figures. */
ERL_NIF_TERM drain_figures(ErlNifEnv *env, uint64_t most);

/* Returns {Notice, Process} about counted calls that have not returned, or `none`. */
ERL_NIF_TERM drain_waits(ErlNifEnv *env);

/* Ends the session, and sends all batches that the client does not have to the client's socket. */
void drain_leftover(void);
void drain_halted(void *priv); /* called by the VM when it halts */

#endif

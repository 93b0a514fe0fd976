/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of gate(State, Verb): what the owner and the worker tell the callbacks to do. etrace_tracer.erl documents
 * them. A verb is an atom, or a tuple of an atom and arguments.
 */
#ifndef ETRACE_VERBS_H
#define ETRACE_VERBS_H

#include <erl_nif.h>

void verbs_load(ErlNifEnv *env);

/* Runs a verb and returns its answer. Raises badarg if no verb has this name and arity, or an argument is wrong. */
ERL_NIF_TERM verbs_do(ErlNifEnv *env, ERL_NIF_TERM verb);

#endif

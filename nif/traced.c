/* SPDX-License-Identifier: Apache-2.0 */
#include "traced.h"

#include "bell.h"

#define YIELD 100 /* percent of a time slice: makes the VM schedule the process out at its next call */

struct traced_words traced_words;

void traced_load(ErlNifEnv *env)
{
    traced_words = (struct traced_words){
        .match_spec_result = enif_make_atom(env, "match_spec_result"),
        .extra = enif_make_atom(env, "extra"),
        .timestamp = enif_make_atom(env, "timestamp"),
        .owes = enif_make_atom(env, "etrace_owes"),
        .probe = enif_make_atom(env, "etrace_probe"),
        .is_true = enif_make_atom(env, "true"),
        .is_false = enif_make_atom(env, "false"),
        .classes =
            {
                [ETW_CLASS_ERROR] = enif_make_atom(env, "error"),
                [ETW_CLASS_EXIT] = enif_make_atom(env, "exit"),
                [ETW_CLASS_THROW] = enif_make_atom(env, "throw"),
            },
    };
}

bool traced_strip_owes(ErlNifEnv *env, ERL_NIF_TERM *result)
{
    const ERL_NIF_TERM *parts;
    int n;
    if (*result == traced_words.owes) {
        *result = traced_words.is_true;
        return true;
    }
    if (!enif_get_tuple(env, *result, &n, &parts) || n != 2 || parts[0] != traced_words.owes)
        return false;
    *result = parts[1];
    return true;
}

/*
 * Also makes the process yield, because the asker cannot look at the stack of a running process. enabled/3 could not do
 * this: the VM does not give it the environment of the process.
 */
__attribute__((noinline)) void traced_pause(ErlNifEnv *env, ERL_NIF_TERM process, struct stack_function f,
                                            enum owed owed)
{
    if (owed == OWED_STUCK) {
        gate_is_stuck();
        return;
    }
    if (owed == OWED_ASKS)
        bell_ask();
    if (owed_pause(process, &f, session.ticks_per_ms * OWED_PAUSE_US / 1000))
        atomic_fetch_or(&session.rules, RULE_HALT);
    enif_consume_timeslice(env, YIELD);
}

void traced_yield(ErlNifEnv *env)
{
    enif_consume_timeslice(env, YIELD);
}

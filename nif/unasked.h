/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drops the events of functions that nobody asked for: module_info, and compiler-generated functions, whose names begin
 * with '-'.
 *
 * A call of trace:function costs the same for a function as for a module, so the worker traces whole modules, with such
 * functions. This file recognises their events by the function's name. The events are neither sent nor counted.
 * unasked_busy() tells the worker which of these functions are called often. The worker then stops tracing them.
 *
 * The owner and its worker call unasked_keep(), unasked_forget() and unasked_busy(), one at a time. Any thread calls
 * the rest.
 */
#ifndef ETRACE_UNASKED_H
#define ETRACE_UNASKED_H

#include <erl_nif.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hidden.h"

#define UNASKED_NAMES 4096 /* a power of two */

/*
 * A direct-mapped cache of atoms. An entry is twice the atom's raw term, plus 1 if the atom is the name of a generated
 * function.
 */
extern HIDDEN _Atomic uint64_t unasked_names[UNASKED_NAMES];

void unasked_load(ErlNifEnv *env);

/* Keeps the events of this function, because a probe names it. Returns false if there is no room. */
bool unasked_keep(ERL_NIF_TERM module, ERL_NIF_TERM name, unsigned arity);
void unasked_forget(void); /* undoes all unasked_keep(); the caller has cleared RULE_UNASKED before */

/* Returns true if a dropped function has become busy since the last unasked_busy(). */
bool unasked_is_busy(void);
/*
 * Returns the busy functions as a list of {Module, Name, Arity}. Other threads may write at the same time, so an
 * element may mix two functions. The worker therefore checks that it really traces the function.
 */
ERL_NIF_TERM unasked_busy(ErlNifEnv *env);

HIDDEN bool unasked_is_generated(ErlNifEnv *env, ERL_NIF_TERM name);
HIDDEN bool unasked_drop(ErlNifEnv *env, const ERL_NIF_TERM *mfa);

static inline unsigned unasked_slot(ERL_NIF_TERM name)
{
    return (unsigned)(name * UINT64_C(0x9e3779b97f4a7c15) >> 52);
}

/*
 * Returns true if the event of a function {M, F, Args | Arity} is to be dropped, and counts it in the thread's table.
 */
static inline bool unasked_drops(ErlNifEnv *env, ERL_NIF_TERM function)
{
    const ERL_NIF_TERM *mfa;
    int n;
    if (!enif_get_tuple(env, function, &n, &mfa) || n != 3)
        return false;
    uint64_t known = atomic_load_explicit(&unasked_names[unasked_slot(mfa[1])], memory_order_relaxed);
    if (__builtin_expect(known == mfa[1] << 1, 1))
        return false;
    return unasked_is_generated(env, mfa[1]) && unasked_drop(env, mfa);
}

#endif

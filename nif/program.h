/*
 * Programs that decide about calls before anything is written: what a plain match specification would decide, for a
 * fraction of its price (etrace_wire.h has their form). A function that has one is armed with `true`.
 *
 * program_load/unload: load and unload; program_new/bind/clear: the calls of the owner and its worker, one at a time;
 * program_admits(): any thread, at any time. What a producer may be reading never changes and is freed by program_unload()
 * alone, when no callback can run any more; the place of a function in the table is its own for good, and only its program
 * is exchanged.
 *
 * A program ends: each step leads to a later one. It reads nothing that is not there: program_bind() looks at every way through
 * it. And it is short, and compares with small terms alone, so it takes a bounded time whatever the arguments are.
 */
#ifndef ETRACE_PROGRAM_H
#define ETRACE_PROGRAM_H

#include <erl_nif.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hidden.h"

#define PROGRAM_SLOTS 8192 /* a power of two */

struct program;

struct program_slot {
    _Atomic ERL_NIF_TERM module; /* 0: free; written last */
    ERL_NIF_TERM name;
    unsigned arity;
    _Atomic(struct program *) program; /* NULL: none, or none any more */
};

extern HIDDEN struct program_slot program_slots[PROGRAM_SLOTS];

void program_load(ErlNifEnv *env);

/* From a list of steps; NULL: this is no program, or there is no room for one more. */
struct program *program_new(ErlNifEnv *env, ERL_NIF_TERM steps);

/* Gives it to a function in the place of the one it has, if any; NULL: it has none from now on. False: it cannot have it. */
bool program_bind(struct program *program, ERL_NIF_TERM module, ERL_NIF_TERM name, unsigned arity);

void program_clear(void); /* no function has one */
void program_unload(void);

static inline unsigned program_slot(ERL_NIF_TERM module, ERL_NIF_TERM name)
{
    return (unsigned)((module ^ name << 5) * UINT64_C(0x9e3779b97f4a7c15) >> 51);
}

HIDDEN bool program_decide(ErlNifEnv *env, unsigned at, const ERL_NIF_TERM *mfa);

/* Whether a call is shown: {M, F, Args}. */
static inline bool program_admits(ErlNifEnv *env, ERL_NIF_TERM call)
{
    const ERL_NIF_TERM *mfa;
    ERL_NIF_TERM module;
    int n;
    if (!enif_get_tuple(env, call, &n, &mfa) || n != 3)
        return true;
    for (unsigned at = program_slot(mfa[0], mfa[1]);; at = (at + 1) % PROGRAM_SLOTS) {
        module = atomic_load_explicit(&program_slots[at].module, memory_order_acquire);
        if (!module)
            return true;
        if (module == mfa[0] && program_slots[at].name == mfa[1])
            return program_decide(env, at, mfa);
    }
}

#endif

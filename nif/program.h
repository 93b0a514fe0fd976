/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs programs that select calls by their arguments before the callback writes anything. A program decides like a
 * match specification but costs a fraction of one (etrace_wire.h has the format). A function with a program has the
 * trivial match specification `true`.
 *
 * The owner and its worker call program_new(), program_bind() and program_clear(), one at a time. Any thread calls
 * program_admits(), at any time. A program never changes, and only program_unload() frees it, when no callback can run.
 * A function keeps its slot in the table; only the slot's program is replaced.
 *
 * A program terminates, because each step leads to a later one. It reads no undefined value: program_bind() checks
 * every path. Its time is bounded, because it is short and compares arguments only with small terms.
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
    _Atomic ERL_NIF_TERM module; /* 0: free; stored last */
    ERL_NIF_TERM name;
    unsigned arity;
    _Atomic(struct program *) program; /* NULL: the function has no program */
};

extern HIDDEN struct program_slot program_slots[PROGRAM_SLOTS];

void program_load(ErlNifEnv *env);

/*
 * Makes a program from a list of steps. Returns NULL if the list is not a valid program, or there are too many
 * programs. named: the list has {etrace_atom, Name} for an atom; if the node does not have that atom yet, it equals no
 * term.
 */
struct program *program_new(ErlNifEnv *env, ERL_NIF_TERM steps, bool named);

/* Returns true if the program may run with this number of arguments: no path reads a value before it is defined. */
bool program_takes(const struct program *program, unsigned arity);
/* Returns true if a program with one argument accepts this argument. */
bool program_accepts(ErlNifEnv *env, const struct program *program, ERL_NIF_TERM argument);

/*
 * Sets or replaces the program of a function; NULL removes the program. Returns true if the function now has a program.
 * Removes the program and returns false if it does not fit the arity of the function, or the table is full.
 */
bool program_bind(struct program *program, ERL_NIF_TERM module, ERL_NIF_TERM name, unsigned arity);

void program_clear(void); /* removes the programs of all functions */
void program_unload(void);

static inline unsigned program_slot(ERL_NIF_TERM module, ERL_NIF_TERM name)
{
    return (unsigned)((module ^ name << 5) * UINT64_C(0x9e3779b97f4a7c15) >> 51);
}

HIDDEN bool program_decide(ErlNifEnv *env, unsigned at, const ERL_NIF_TERM *mfa);

/* Returns true if the call {M, F, Args} is shown. A call of a function without a program is shown. */
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor: a tracer that accepts every event and does nothing with it, so that only the VM's own cost remains. The
 * bench builds it twice. The second module (DISCARD) answers `discard`, which shows the cost of an event that the
 * tracer rejects at once.
 */
#include <erl_nif.h>

#define STRING_(x) #x
#define STRING(x) STRING_(x)

static ERL_NIF_TERM atom_trace, atom_discard, atom_ok, atom_trace_status;

static ERL_NIF_TERM enabled(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc;
#ifdef DISCARD
    if (argv[0] != atom_trace_status)
        return atom_discard;
#else
    (void)argv;
#endif
    return atom_trace;
}

static ERL_NIF_TERM trace(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    return atom_ok;
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)priv, (void)info;
    atom_trace = enif_make_atom(env, "trace");
    atom_discard = enif_make_atom(env, "discard");
    atom_ok = enif_make_atom(env, "ok");
    atom_trace_status = enif_make_atom(env, "trace_status");
    return 0;
}

static ErlNifFunc functions[] = {{"enabled", 3, enabled, 0}, {"trace", 5, trace, 0}};

static ErlNifEntry entry = {
    .major = 2,
    .minor = 16,
    .name = STRING(MODULE),
    .num_of_funcs = 2,
    .funcs = functions,
    .load = load,
    .vm_variant = "beam.vanilla",
    .options = 1,
    .sizeof_ErlNifResourceTypeInit = sizeof(ErlNifResourceTypeInit),
    .min_erts = "erts-13.0",
};

ErlNifEntry *nif_init(void);

ErlNifEntry *nif_init(void)
{
    return &entry;
}

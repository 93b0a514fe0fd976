/* SPDX-License-Identifier: Apache-2.0 */
/* Makes terms that the functions of the library return to the owner. */
#ifndef ETRACE_MAKE_H
#define ETRACE_MAKE_H

#include <erl_nif.h>
#include <stdbool.h>
#include <string.h>

static inline ERL_NIF_TERM make_ok(ErlNifEnv *env)
{
    return enif_make_atom(env, "ok");
}

static inline ERL_NIF_TERM make_bool(ErlNifEnv *env, bool is)
{
    return enif_make_atom(env, is ? "true" : "false");
}

static inline ERL_NIF_TERM make_error(ErlNifEnv *env, const char *what)
{
    return enif_make_tuple2(env, enif_make_atom(env, "error"), enif_make_atom(env, what));
}

static inline ERL_NIF_TERM make_binary(ErlNifEnv *env, const void *bytes, size_t n)
{
    ERL_NIF_TERM bin;
    memcpy(enif_make_new_binary(env, n, &bin), bytes, n);
    return bin;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes terms as bytes, with limits for bytes, elements of a container, and depth. The encoder cuts a term that
 * exceeds a limit, and sets ETW_F_CUT in the frame.
 *
 * The limit of bytes also bounds the time, because each item takes at least a byte: no term is serialised, measured or
 * copied as a whole. The encoder reads compound terms only through enif_*. It reads immediate terms by their tag bits
 * if imm_known is set. The encoder itself allocates no memory. The VM does so for the iterator of a large map, and for
 * a large integer; the encoder checks the size of the integer first.
 *
 * The owner sets the secrets to redact before a session is live; every producer reads them.
 */
#ifndef ETRACE_ENCODE_H
#define ETRACE_ENCODE_H

#include <erl_nif.h>
#include <stdbool.h>
#include <stdint.h>

#include "encoder.h"
#include "imm.h"

/* OTP 26 and newer accept this value at run time; older headers lack the name. */
#define ENCODING_UTF8 ((ErlNifCharEncoding)2)

/*
 * The most bytes that an encoder writes beyond its limit, including the ends of containers. An item that begins before
 * the limit is written as a whole; the longest item is the definition of an atom.
 */
#define ENCODE_OVERRUN 2048
/* The most bytes of an encoded function. */
#define ENCODE_FUNCTION 2112

/* Forces inlining of functions on the path of every event. */
#define ALWAYS inline __attribute__((always_inline))

/*
 * Creates the terms that the encoder compares other terms with. They live until encode_unload(). Called when the NIF is
 * loaded. Returns false if there is not enough memory.
 */
bool encode_load(ErlNifEnv *env);
void encode_unload(void);

/*
 * Sets the secrets of a session. The list holds the cookie of the node and then the names of keys, all as binaries.
 * Returns false if there are too many names, a name is too long, or the list is malformed.
 */
bool encode_redact(ErlNifEnv *env, ERL_NIF_TERM keys);

/* Returns true if this term, the key of a pair, names a secret. */
bool encode_names_secret(struct encoder *e, ERL_NIF_TERM key);

/* Encodes a term at `at` and returns the end of its bytes. Every item begins within `bytes` bytes of the start. */
uint8_t *encode_term(struct encoder *e, uint8_t *at, uint32_t bytes, ERL_NIF_TERM t);

/*
 * Encodes several terms at `at` and returns the end of their bytes. Every item begins within `bytes` bytes of the
 * start. If `bytes` is large enough, a large term leaves a few bytes for each term after it. A term that finds no room
 * becomes ETW_T_ELIDED.
 */
uint8_t *encode_terms(struct encoder *e, uint8_t *at, uint32_t bytes, const ERL_NIF_TERM *terms, unsigned many);

/* Returns true if the term is a triple, such as {Module, Name, Arity}. */
static inline bool encode_is_function(ErlNifEnv *env, ERL_NIF_TERM t, const ERL_NIF_TERM **ret_mfa)
{
    int n;
    return __builtin_expect(enif_get_tuple(env, t, &n, ret_mfa) && n == 3, 1);
}

/* Encodes {Module, Name, Arity}; any other term as ETW_NO_FUNCTION. */
uint8_t *encode_function(struct encoder *e, uint8_t *at, ERL_NIF_TERM t);

#define ENCODE_ARGS 255
#define ENCODE_BARE 0x100        /* flag in encode_function.arity: the VM gave no arguments, only the arity */
#define ENCODE_NO_FUNCTION 0x200 /* flag in encode_function.arity: the VM gave a term that is not a function */

/*
 * The function of a call or a result. The functions below pass its fields as arguments, because most events then keep
 * them in registers.
 */
struct encode_function {
    ERL_NIF_TERM module, name;
    uint32_t arity; /* the arity, or'ed with one of the flags above */
};

/* Reads {Module, Name, Arity}. */
static inline struct encode_function encode_read_function(ErlNifEnv *env, ERL_NIF_TERM t)
{
    const ERL_NIF_TERM *mfa;
    uint32_t arity;
    if (!encode_is_function(env, t, &mfa))
        return (struct encode_function){.arity = ENCODE_NO_FUNCTION};
    if (__builtin_expect(imm_natural(mfa[2]) < imm_bytes, 1))
        arity = (uint32_t)imm_natural(mfa[2]);
    else if (!enif_get_uint(env, mfa[2], &arity) || arity > ENCODE_ARGS)
        return (struct encode_function){.arity = ENCODE_NO_FUNCTION};
    return (struct encode_function){mfa[0], mfa[1], arity};
}

/* Reads {Module, Name, Arguments} or {Module, Name, Arity}. */
static inline struct encode_function encode_read_call(ErlNifEnv *env, ERL_NIF_TERM t,
                                                      ERL_NIF_TERM ret_args[static ENCODE_ARGS])
{
    const ERL_NIF_TERM *mfa;
    uint32_t arity;
    if (!encode_is_function(env, t, &mfa))
        return (struct encode_function){.arity = ENCODE_NO_FUNCTION};
    ERL_NIF_TERM args = mfa[2], *next = ret_args;
    while (args != imm_nil && next < ret_args + ENCODE_ARGS && enif_get_list_cell(env, args, next, &args))
        next++;
    if (next == ret_args && args != imm_nil && enif_get_uint(env, args, &arity) && arity <= ENCODE_ARGS)
        return (struct encode_function){mfa[0], mfa[1], arity | ENCODE_BARE};
    return (struct encode_function){mfa[0], mfa[1], (uint32_t)(next - ret_args)};
}

/*
 * An event whose terms an encoder with `words` has encoded (encoder.h). encode_anew() encodes its function and its
 * terms again for the ring of `e`. If the ring does not know an atom, and there is no room before `end` to define the
 * atom, encode_anew() writes ETW_T_ELIDED instead of it.
 */
struct encode_held {
    uint64_t module, name;
    const uint64_t *words;
    const uint8_t *terms;
    uint32_t bytes;
    uint16_t word_count;
    uint8_t arity;
    bool bare; /* the event has no function */
};
uint8_t *encode_anew(struct encoder *e, uint8_t *at, const uint8_t *end, const struct encode_held *held);
/*
 * Like encode_anew(), for terms without a function. Defines every atom, so that the bytes do not depend on earlier
 * frames.
 */
uint8_t *encode_apart(struct encoder *e, uint8_t *at, const uint8_t *end, const struct encode_held *held);

/* Encodes the function of encode_read_call() and its arguments. A bare call sets ETW_F_ARITY. */
uint8_t *encode_call_fields(struct encoder *e, uint8_t *at, ERL_NIF_TERM module, ERL_NIF_TERM name, uint32_t arity,
                            const ERL_NIF_TERM *args);

static inline uint8_t *encode_call(struct encoder *e, uint8_t *at, struct encode_function f, const ERL_NIF_TERM *args)
{
    return encode_call_fields(e, at, f.module, f.name, f.arity, args);
}

/* Encodes the function of encode_read_function(). */
uint8_t *encode_function_fields(struct encoder *e, uint8_t *at, ERL_NIF_TERM module, ERL_NIF_TERM name, uint32_t arity);

static inline uint8_t *encode_result_of(struct encoder *e, uint8_t *at, struct encode_function f)
{
    return encode_function_fields(e, at, f.module, f.name, f.arity);
}

#endif

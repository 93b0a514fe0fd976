/*
 * Terms to bytes, bounded: by bytes, by elements of a container, by depth. What does not fit is cut, and the frame says so.
 *
 * The time is bounded with the bytes, for each item takes some: no term is serialised, measured or copied whole. Compounds are read by enif_* alone,
 * immediates by their tag bits where imm_known. Nothing is allocated here (the VM does for the iterator of a large map,
 * and for the text of a large integer, which is bounded before).
 *
 * The rules (what is redacted) are written before a session is live and read by every producer.
 */
#ifndef ETRACE_ENCODE_H
#define ETRACE_ENCODE_H

#include <erl_nif.h>
#include <stdbool.h>
#include <stdint.h>

#include "encoder.h"

/* The value works on OTP 26 and newer at run time; the headers of older ones lack the name. */
#define ENCODING_UTF8 ((ErlNifCharEncoding)2)

/* An item that begins before the limit may end so far behind it, containers closed: an atom's definition is the longest. */
#define ENCODE_OVERRUN 2048
/* The longest function. */
#define ENCODE_FUNCTION 2112

/* For what is better written down several times than called. */
#define ALWAYS inline __attribute__((always_inline))

/* At load: the bounds of what is a large integer, in an environment that lives until encode_unload(). */
bool encode_load(ErlNifEnv *env);
void encode_unload(void);

/*
 * Sets the secrets of a session. The list has the cookie of the node and then the names of keys, all as binaries. Returns false when
 * there are too many names, or one is too long.
 */
bool encode_redact(ErlNifEnv *env, ERL_NIF_TERM keys);

/* A term; behind the last byte. No item begins `bytes` behind its first. */
uint8_t *encode_term(struct encoder *e, uint8_t *at, uint32_t bytes, ERL_NIF_TERM t);

/* `many` terms side by side, the first of which do not starve the last; returns behind the last byte. No item begins `bytes` behind the first. */
uint8_t *encode_terms(struct encoder *e, uint8_t *at, uint32_t bytes, const ERL_NIF_TERM *terms, unsigned many);

/* Whether it is {Module, Name, _}. */
static inline bool encode_is_function(ErlNifEnv *env, ERL_NIF_TERM t, const ERL_NIF_TERM **ret_mfa)
{
    int n;
    return __builtin_expect(enif_get_tuple(env, t, &n, ret_mfa) && n == 3, 1);
}

/* {Module, Name, Arity}; anything else: as ETW_NO_FUNCTION. */
uint8_t *encode_function(struct encoder *e, uint8_t *at, ERL_NIF_TERM t);

/*
 * Terms that were encoded with e->words, now for a ring: the function and they. Where there is no room before `end` for a name that
 * the ring does not know yet, the atom is left out.
 */
struct encode_held {
    uint64_t module, name;
    const uint64_t *words;
    const uint8_t *terms;
    uint32_t bytes;
    uint16_t word_count;
    uint8_t arity;
};
uint8_t *encode_anew(struct encoder *e, uint8_t *at, const uint8_t *end, const struct encode_held *held);

/* {Module, Name, Arguments}; where there is only their number, nothing stands behind it, and ETW_F_ARITY is set. */
uint8_t *encode_call(struct encoder *e, uint8_t *at, ERL_NIF_TERM t);

#endif

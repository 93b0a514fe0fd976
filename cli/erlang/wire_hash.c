/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes encoded terms so that equal terms (wire_compare() with `exact`) have the same hash, however they are encoded.
 */
#include "../ground/table.h"
#include "wire_order.h"

static uint32_t hash_bytes(uint32_t hash, const void *bytes, size_t n)
{
    return hash_text(hash, (struct str){bytes, n});
}

static uint32_t hash_number(uint32_t hash, const uint8_t *at)
{
    int64_t n;

    if (wire_int(at, &n))
        return hash_bytes(hash, &n, sizeof(n));
    return hash_bytes(hash, at, (size_t)(wire_token(at) - at));
}

static uint32_t hash_list(uint32_t hash, const struct term_env *env, const uint8_t *at)
{
    const uint8_t *first = at, *el;

    if (*at == ETW_T_STRING) {
        for (size_t i = 0; i < wire_u16(at + 1); i++) {
            const int64_t n = at[3 + i];
            hash = hash_bytes(hash_byte(hash, WIRE_NUMBER), &n, sizeof(n));
        }
        return hash;
    }
    if (!wire_list(&first))
        return hash;
    while ((el = wire_list_next(&first)))
        hash = wire_hash(hash, env, el);
    return hash;
}

/* Adds the hashes of the pairs, because their order depends on the node. */
static uint32_t hash_map(uint32_t hash, const struct term_env *env, const uint8_t *at)
{
    uint32_t pairs, sum = 0;
    const uint8_t *key;
    const int64_t known = wire_map(at, &pairs, &key);

    for (int64_t i = 0; i < known; i++) {
        const uint8_t *value = wire_skip(key);
        sum += wire_hash(wire_hash(HASH_BEGIN, env, key), env, value);
        key = wire_skip(value);
    }
    hash = hash_bytes(hash, &pairs, sizeof(pairs));
    return hash_bytes(hash, &sum, sizeof(sum));
}

static uint32_t hash_tuple(uint32_t hash, const struct term_env *env, const uint8_t *at)
{
    uint32_t arity;
    const uint8_t *el;
    const int64_t known = wire_tuple(at, &arity, &el);

    hash = hash_bytes(hash, &arity, sizeof(arity));
    for (int64_t i = 0; i < known; i++, el = wire_skip(el))
        hash = wire_hash(hash, env, el);
    return hash;
}

uint32_t wire_hash(uint32_t hash, const struct term_env *env, const uint8_t *at)
{
    const enum wire_class class = wire_class(at);
    struct raw text;
    uint64_t size;

    hash = hash_byte(hash, (unsigned char)(class == WIRE_NIL ? WIRE_LIST : class));
    switch (class) {
    case WIRE_NUMBER:
        return hash_number(hash, at);
    case WIRE_ATOM:
        wire_atom_text(env, at, &text);
        return hash_text(hash, raw_view(text));
    case WIRE_TUPLE:
        return hash_tuple(hash, env, at);
    case WIRE_MAP:
        return hash_map(hash, env, at);
    case WIRE_LIST:
        return hash_list(hash, env, at);
    case WIRE_BITS:
        if (wire_bin(at, &text, &size))
            hash = hash_text(hash, raw_view(text));
        return hash;
    case WIRE_REF:
    case WIRE_FUN:
    case WIRE_PORT:
    case WIRE_PID:
    case WIRE_RECORD:
        return hash_bytes(hash, at, (size_t)(wire_token(at) - at));
    case WIRE_NIL:
    case WIRE_NOTHING:
        break;
    }
    return hash;
}

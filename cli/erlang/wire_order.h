/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares encoded terms in Erlang's term order:
 * number < atom < reference < fun < port < pid < tuple < native record < map < [] < list < binary.
 * The result is WIRE_UNKNOWN if one of the terms was cut before the first difference. It is WIRE_UNEQUAL if the terms
 * differ but their order depends on parts that were not captured.
 */
#ifndef ETRACE_WIRE_ORDER_H
#define ETRACE_WIRE_ORDER_H

#include "term_wire.h"

enum wire_order { WIRE_LESS = -1, WIRE_EQUAL = 0, WIRE_GREATER = 1, WIRE_UNEQUAL = 2, WIRE_UNKNOWN = 3 };

/*
 * Compares two terms, which must have passed wire_check(). With `exact`, 1 and 1.0 differ (=:=); otherwise they are
 * equal (==).
 */
enum wire_order wire_compare(const struct term_env *ea, const uint8_t *a, const struct term_env *eb, const uint8_t *b,
                             bool exact);

/* Returns the value of a key, or NULL. With NULL, sets *ret_unknown to true if a cut may hide the key. */
const uint8_t *wire_map_find(const struct term_env *em, const uint8_t *map, const struct term_env *ek,
                             const uint8_t *key, bool *ret_unknown);

/*
 * Appends a term in a normal form. If wire_compare() with `exact` finds two terms equal, their normal forms have the
 * same bytes. Two terms that were cut have the same normal form if their captured parts are equal.
 */
void wire_normal(struct buf *to, const struct term_env *env, const uint8_t *at);

/* Reads an integer that fits 64 bits, even in the encoding of larger integers. Returns false for any other term. */
bool wire_whole(const uint8_t *at, int64_t *ret);

/* Reads a number as a double, rounded. Returns false for another term, or if the number is too large for a double. */
bool wire_real(const uint8_t *at, double *ret);

enum wire_class {
    WIRE_NUMBER,
    WIRE_ATOM,
    WIRE_REF,
    WIRE_FUN,
    WIRE_PORT,
    WIRE_PID,
    WIRE_TUPLE,
    WIRE_RECORD,
    WIRE_MAP,
    WIRE_NIL,
    WIRE_LIST,
    WIRE_BITS,
    WIRE_NOTHING, /* cut, elided, redacted, or of an unknown type */
};

enum wire_class wire_class(const uint8_t *at);

#endif

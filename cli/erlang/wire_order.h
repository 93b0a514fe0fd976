/*
 * Comparing encoded terms as Erlang does: number < atom < reference < fun < port < pid < tuple < native record < map < [] < list < binary.
 * Where something was cut before the difference, the answer is not known.
 */
#ifndef ETRACE_WIRE_ORDER_H
#define ETRACE_WIRE_ORDER_H

#include "term_wire.h"

enum wire_order { WIRE_LESS = -1, WIRE_EQUAL = 0, WIRE_GREATER = 1, WIRE_UNKNOWN = 2 };

/* exact: 1 and 1.0 are different (=:=); else they are equal (==). Both terms are checked. */
enum wire_order wire_compare(const struct term_env *ea, const uint8_t *a, const struct term_env *eb, const uint8_t *b,
                             bool exact);

/*
 * The value of a key: NULL when the map has no such key. *ret_unknown says that it might have it, were it not cut.
 */
const uint8_t *wire_map_find(const struct term_env *em, const uint8_t *map, const struct term_env *ek, const uint8_t *key,
                             bool *ret_unknown);

enum wire_class {
    WIRE_NUMBER, WIRE_ATOM, WIRE_REF, WIRE_FUN, WIRE_PORT, WIRE_PID, WIRE_TUPLE, WIRE_RECORD, WIRE_MAP, WIRE_NIL, WIRE_LIST, WIRE_BITS,
    WIRE_NOTHING, /* cut, elided, redacted, of a type that is not known */
};

enum wire_class wire_class(const uint8_t *at);

#endif

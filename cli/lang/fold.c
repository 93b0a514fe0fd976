/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates expressions whose operands are constant, so that check can report a guard that never holds. fold() does not
 * change the tree. It encodes the operands, calls the function in guard.c and decodes the result.
 */
#include <string.h>

#include "../ground/number.h"
#include "check.h"
#include "guard.h"

unsigned term_types(term_t t)
{
    static const unsigned types[] = {
        [TERM_ATOM] = TY_ATOM, [TERM_INT] = TY_INT,     [TERM_BIG] = TY_INT,   [TERM_FLOAT] = TY_FLOAT,
        [TERM_BIN] = TY_BIN,   [TERM_TUPLE] = TY_TUPLE, [TERM_LIST] = TY_LIST, [TERM_MAP] = TY_MAP,
        [TERM_PID] = TY_PID,   [TERM_PORT] = TY_PORT,   [TERM_REF] = TY_REF,   [TERM_EXPORT] = TY_FUN,
    };

    return term_is_atom(t, "true") || term_is_atom(t, "false") ? TY_BOOL : types[t->type];
}

/* Encodes a term. The value is unknown if the term is nested too deeply for the readers of encoded terms. */
static struct value fold_encode(struct arena *a, term_t t)
{
    struct wire_atoms atoms = {0};
    struct buf b = {0};
    const uint8_t *end;
    const char *why;

    term_to_wire(&b, t);
    const uint8_t *at = (const uint8_t *)b.data;
    const bool good = wire_check(&atoms, at, at + b.len, 1, &end, &why) == WIRE_OK && end == at + b.len;
    const struct value v = good ? value_take(a, &b) : VALUE_DONT_KNOW;
    wire_atoms_release(&atoms);
    buf_release(&b);
    return v;
}

/* Returns the part of the term whose encoding is at `part`, or NULL. The term's own encoding is at `at`. */
static term_t fold_part(term_t t, const uint8_t *at, const uint8_t *part)
{
    term_t found = part == at ? t : NULL;

    if (!t->count || part < at || part >= wire_skip(at))
        return found;
    at = wire_token(at);
    for (size_t i = 0; i < t->count && !found; i++, at = wire_skip(at))
        found = fold_part(t->items[i], at, part);
    return found || !t->tail ? found : fold_part(t->tail, at + 1, part);
}

/* Decodes a term that guard.c has made: a number, a boolean or a binary. */
static term_t fold_decode(struct arena *a, struct value v)
{
    struct buf digits = {0};
    struct raw bytes;
    uint64_t size;
    int64_t i;
    double d;
    bool b;

    if (value_is_bool(v, &b))
        return term_bool(a, b);
    if (wire_int(v.at, &i))
        return term_int(a, i);
    if (wire_bin(v.at, &bytes, &size))
        return term_bin(a, bytes.at, bytes.len);
    if (*v.at == ETW_T_FLOAT) {
        memcpy(&d, v.at + 1, sizeof(d));
        return term_float(a, d);
    }
    struct term *big = arena_alloc(a, sizeof(*big));
    print_big(&digits, v.at + 3, wire_u16(v.at + 1), *v.at == ETW_T_BIGNEG);
    *big = (struct term){.type = TERM_BIG, .text = {arena_strndup(a, digits.data, digits.len), digits.len}};
    buf_release(&digits);
    return big;
}

term_t fold(struct arena *a, enum fn fn, const term_t *args, size_t count, bool *ret_fails)
{
    struct value *values = arena_alloc(a, count * sizeof(*values));
    term_t part = NULL;

    *ret_fails = false;
    if (!guard_has(fn))
        return NULL;
    for (size_t i = 0; i < count; i++)
        values[i] = args[i] ? fold_encode(a, args[i]) : VALUE_DONT_KNOW;
    const struct value v = guard_apply(a, fn, values, count, (struct raw){0});
    *ret_fails = v.state == VALUE_FAILED;
    if (v.state != VALUE_TERM)
        return NULL;
    if (fn == FN_TL)
        return term_list(a, args[0]->count - 1, args[0]->items + 1, args[0]->tail);
    for (size_t i = 0; i < count && !part; i++)
        part = values[i].state == VALUE_TERM ? fold_part(args[i], values[i].at, v.at) : NULL;
    return part ? part : fold_decode(a, v);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "wire_order.h"

#include <float.h>
#include <math.h>

/*
 * How to compare an integer with a float: VALUES by value (==), TYPED by value and then by type (=:=), KEYS by type
 * first (keys of maps).
 */
enum how { VALUES, TYPED, KEYS };

static enum wire_order compare_terms(const struct term_env *ea, const uint8_t *a, const struct term_env *eb,
                                     const uint8_t *b, enum how how);

enum wire_class wire_class(const uint8_t *at)
{
    static const uint8_t of_text[] = {WIRE_REF, WIRE_FUN, WIRE_PID, WIRE_PORT, WIRE_NOTHING, WIRE_NUMBER};

    switch (*at) {
    case 0x00 ... ETW_T_FLOAT:
        return WIRE_NUMBER;
    case ETW_T_ATOM:
    case ETW_T_ATOMDEF:
    case ETW_T_ATOMTEXT:
        return WIRE_ATOM;
    case ETW_T_PID:
        return WIRE_PID;
    case ETW_T_PORT:
        return WIRE_PORT;
    case ETW_T_TEXT:
        if (at[1] == ETW_TEXT_OTHER && wire_u16(at + 2) && at[4] == '#')
            return WIRE_RECORD; /* #module:name{...} */
        return at[1] < ARRAY_LEN(of_text) ? (enum wire_class)of_text[at[1]] : WIRE_NOTHING;
    case ETW_T_NIL:
        return WIRE_NIL;
    case ETW_T_LIST:
        return at[1] == ETW_T_END ? WIRE_NIL : WIRE_LIST;
    case ETW_T_STRING:
        return wire_u16(at + 1) ? WIRE_LIST : WIRE_NIL;
    case ETW_T_TUPLE:
    case ETW_T_TUPLE0 ... ETW_T_TUPLE0 + 31:
        return WIRE_TUPLE;
    case ETW_T_MAP:
        return WIRE_MAP;
    case ETW_T_BIN:
    case ETW_T_BITS:
        return WIRE_BITS;
    default:
        return WIRE_NOTHING;
    }
}

static enum wire_order order_of_sign(int v)
{
    return v < 0 ? WIRE_LESS : v > 0 ? WIRE_GREATER : WIRE_EQUAL;
}

/* ---- numbers ---- */

struct number {
    enum { INTEGER, FLOATING, BIG } type;
    int64_t i;
    double d; /* approximate value of a BIG */
    bool negative;
    const uint8_t *digits;
    size_t ndigits;
};

static bool decode_number(const uint8_t *at, struct number *n)
{
    *n = (struct number){.type = INTEGER};
    if (wire_int(at, &n->i))
        return true;
    if (*at == ETW_T_FLOAT) {
        n->type = FLOATING;
        memcpy(&n->d, at + 1, sizeof(n->d));
        return true;
    }
    if (*at != ETW_T_BIGPOS && *at != ETW_T_BIGNEG)
        return false; /* an integer that was too large to capture */
    n->negative = *at == ETW_T_BIGNEG;
    n->digits = at + 3;
    for (n->ndigits = wire_u16(at + 1); n->ndigits && !n->digits[n->ndigits - 1];)
        n->ndigits--;
    if (n->ndigits < 8 || (n->ndigits == 8 && !(n->digits[7] & 0x80))) { /* fits an int64_t, but is encoded as big */
        for (size_t k = n->ndigits; k-- > 0;)
            n->i = (int64_t)((uint64_t)n->i << 8 | n->digits[k]);
        n->i = n->negative ? -n->i : n->i;
        return true;
    }
    n->type = BIG;
    for (size_t k = n->ndigits; k-- > 0;)
        n->d = n->d * 256 + n->digits[k];
    if (n->negative)
        n->d = -n->d;
    return true;
}

bool wire_whole(const uint8_t *at, int64_t *ret)
{
    struct number n;

    if (wire_class(at) != WIRE_NUMBER || !decode_number(at, &n) || n.type != INTEGER)
        return false;
    *ret = n.i;
    return true;
}

bool wire_real(const uint8_t *at, double *ret)
{
    struct number n;

    if (wire_class(at) != WIRE_NUMBER || !decode_number(at, &n))
        return false;
    *ret = n.type == INTEGER ? (double)n.i : n.d;
    return isfinite(*ret);
}

static enum wire_order compare_big(const struct number *x, const struct number *y)
{
    if (x->negative != y->negative)
        return x->negative ? WIRE_LESS : WIRE_GREATER;
    int v = (x->ndigits > y->ndigits) - (x->ndigits < y->ndigits);
    for (size_t k = x->ndigits; !v && k-- > 0;)
        v = (x->digits[k] > y->digits[k]) - (x->digits[k] < y->digits[k]);
    return order_of_sign(x->negative ? -v : v);
}

/* Compares a BIG with a float. Every float of that size is an integer, namely 53 bits followed by zero bits. */
static enum wire_order compare_big_real(const struct number *x, double d)
{
    uint8_t digits[DBL_MAX_EXP / 8 + 8] = {0};
    struct number y = {.type = BIG, .negative = signbit(d), .digits = digits};
    int exponent;

    if (fabs(d) < 0x1p63)
        return x->negative ? WIRE_LESS : WIRE_GREATER;
    uint64_t mantissa = (uint64_t)ldexp(frexp(fabs(d), &exponent), 53);
    for (exponent -= 53; exponent % 8; exponent--)
        mantissa <<= 1;
    for (y.ndigits = (size_t)exponent / 8; mantissa; mantissa >>= 8)
        digits[y.ndigits++] = (uint8_t)mantissa;
    return compare_big(x, &y);
}

static enum wire_order compare_numbers(const uint8_t *a, const uint8_t *b, enum how how)
{
    struct number x, y;

    if (!decode_number(a, &x) || !decode_number(b, &y))
        return WIRE_UNKNOWN;
    if (x.type == FLOATING && y.type == FLOATING)
        return how != VALUES && signbit(x.d) != signbit(y.d) ? (signbit(x.d) ? WIRE_LESS : WIRE_GREATER)
                                                             : order_of_sign((x.d > y.d) - (x.d < y.d));
    if (how == KEYS && (x.type == FLOATING || y.type == FLOATING))
        return x.type == FLOATING ? WIRE_GREATER : WIRE_LESS;
    if (x.type == BIG && y.type == BIG)
        return compare_big(&x, &y);
    if (x.type == BIG && y.type == INTEGER)
        return x.negative ? WIRE_LESS : WIRE_GREATER;
    if (x.type == INTEGER && y.type == BIG)
        return y.negative ? WIRE_GREATER : WIRE_LESS;
    if (x.type == INTEGER && y.type == INTEGER)
        return order_of_sign((x.i > y.i) - (x.i < y.i));
    enum wire_order o;
    if (x.type == BIG) {
        o = compare_big_real(&x, y.d);
    } else if (y.type == BIG) {
        o = order_of_sign(-(int)compare_big_real(&y, x.d));
    } else {
        const long double l = x.type == INTEGER ? (long double)x.i : x.d,
                          r = y.type == INTEGER ? (long double)y.i : y.d;
        o = order_of_sign((l > r) - (l < r));
    }
    if (o == WIRE_EQUAL && how != VALUES)
        return x.type == FLOATING ? WIRE_GREATER : WIRE_LESS;
    return o;
}

/* ---- bytes ---- */

static enum wire_order compare_bytes(struct raw a, struct raw b)
{
    size_t n = MIN(a.len, b.len);
    int v = n ? memcmp(a.at, b.at, n) : 0;

    return order_of_sign(v ? v : (a.len > b.len) - (a.len < b.len));
}

static enum wire_order compare_bits(const uint8_t *a, const uint8_t *b)
{
    const uint8_t *x = a + (*a == ETW_T_BITS ? 2 : 1), *y = b + (*b == ETW_T_BITS ? 2 : 1);
    uint64_t xs = wire_u64(x), ys = wire_u64(y);
    size_t xn = wire_u32(x + 8), yn = wire_u32(y + 8), n = MIN(xn, yn);
    int v = n ? memcmp(x + 12, y + 12, n) : 0;

    if (v && (*a == ETW_T_BIN || n < xs) && (*b == ETW_T_BIN || n < ys))
        return order_of_sign(v);
    if (!v && xs != ys && (n == xs || n == ys) && *a == ETW_T_BIN && *b == ETW_T_BIN)
        return xs < ys ? WIRE_LESS : WIRE_GREATER;
    if (xn < xs || yn < ys)
        return WIRE_UNKNOWN;
    unsigned xb = *a == ETW_T_BITS ? a[1] : 8, yb = *b == ETW_T_BITS ? b[1] : 8;
    return v ? order_of_sign(v) : xs != ys ? order_of_sign(xs < ys ? -1 : 1) : order_of_sign((int)xb - (int)yb);
}

/* ---- containers ---- */

static enum wire_order compare_tuples(const struct term_env *ea, const uint8_t *a, const struct term_env *eb,
                                      const uint8_t *b, enum how how)
{
    uint32_t na, nb;
    const uint8_t *x, *y;
    int64_t ha = wire_tuple(a, &na, &x), hb = wire_tuple(b, &nb, &y);

    if (na != nb)
        return na < nb ? WIRE_LESS : WIRE_GREATER;
    for (int64_t i = 0; i < MIN(ha, hb); i++, x = wire_skip(x), y = wire_skip(y)) {
        enum wire_order o = compare_terms(ea, x, eb, y, how);
        if (o != WIRE_EQUAL)
            return o;
    }
    return MIN(ha, hb) < (int64_t)na ? WIRE_UNKNOWN : WIRE_EQUAL;
}

/* A walk through a list in either encoding (ETW_T_LIST or ETW_T_STRING). */
struct walk {
    const uint8_t *at;
    size_t left; /* bytes left of an ETW_T_STRING */
    bool string;
    uint8_t element[3]; /* the current byte of an ETW_T_STRING, as a term */
};

static void walk_begin(struct walk *w, const uint8_t *at)
{
    w->string = *at == ETW_T_STRING;
    w->left = w->string ? wire_u16(at + 1) : 0;
    w->at = at + (w->string ? 3 : 1);
    if (*at == ETW_T_NIL)
        w->string = true;
}

enum step { ELEMENT, END, TAIL, CUT };

static enum step walk_next(struct walk *w, const uint8_t **ret)
{
    if (w->string) {
        if (!w->left)
            return END;
        w->left--;
        int16_t v = *w->at++;
        w->element[0] = ETW_T_INT16;
        memcpy(w->element + 1, &v, sizeof(v));
        *ret = w->element;
        return ELEMENT;
    }
    switch (*w->at) {
    case ETW_T_END:
        return END;
    case ETW_T_CUT:
        return CUT;
    case ETW_T_TAIL:
        *ret = w->at + 1;
        return TAIL;
    default:
        *ret = w->at;
        w->at = wire_skip(w->at);
        return ELEMENT;
    }
}

static enum wire_order compare_lists(const struct term_env *ea, const uint8_t *a, const struct term_env *eb,
                                     const uint8_t *b, enum how how)
{
    static const uint8_t nil = ETW_T_NIL;
    struct walk wa, wb;

    walk_begin(&wa, a);
    walk_begin(&wb, b);
    for (;;) {
        const uint8_t *x = &nil, *y = &nil;
        enum step sa = walk_next(&wa, &x), sb = walk_next(&wb, &y);
        if (sa == CUT || sb == CUT || (sa == TAIL && *x == ETW_T_CUT) || (sb == TAIL && *y == ETW_T_CUT))
            return WIRE_UNKNOWN;
        if (sa == ELEMENT && sb == ELEMENT) {
            enum wire_order o = compare_terms(ea, x, eb, y, how);
            if (o != WIRE_EQUAL)
                return o;
            continue;
        }
        if (sa == ELEMENT || sb == ELEMENT) { /* one list has more elements: compare them with the tail of the other */
            enum wire_class other = wire_class(sa == ELEMENT ? y : x);
            bool less = other != WIRE_BITS; /* only bit strings sort after lists */
            return other == WIRE_NOTHING || other == WIRE_LIST ? WIRE_UNKNOWN
                   : (sa == ELEMENT) == less                   ? WIRE_GREATER
                                                               : WIRE_LESS;
        }
        return compare_terms(ea, x, eb, y, how);
    }
}

const uint8_t *wire_map_find(const struct term_env *em, const uint8_t *map, const struct term_env *ek,
                             const uint8_t *key, bool *ret_unknown)
{
    uint32_t pairs;
    const uint8_t *p;
    int64_t n = wire_map(map, &pairs, &p);

    *ret_unknown = n < (int64_t)pairs;
    for (int64_t i = 0; i < n; i++) {
        enum wire_order o = wire_compare(em, p, ek, key, true);
        p = wire_skip(p);
        if (o == WIRE_EQUAL)
            return p;
        *ret_unknown |= o == WIRE_UNKNOWN;
        p = wire_skip(p);
    }
    return NULL;
}

/*
 * The result of find_lacking(). LACKS_NOTHING: no key is missing. LACKS_UNKNOWN: a key may be missing. LACKS_SOME_KEY:
 * keys are missing, but the least of them is unknown. LACKS_KEY: the least missing key is known.
 */
enum lacks { LACKS_NOTHING, LACKS_UNKNOWN, LACKS_SOME_KEY, LACKS_KEY };

/* Finds the least key of `map` that `other` lacks. Sets *ret_key for LACKS_KEY. */
static enum lacks find_lacking(const struct term_env *em, const uint8_t *map, const struct term_env *eo,
                               const uint8_t *other, const uint8_t **ret_key)
{
    uint32_t pairs;
    const uint8_t *key;
    const int64_t n = wire_map(map, &pairs, &key);
    bool open = n < (int64_t)pairs, unknown;

    *ret_key = NULL;
    for (int64_t i = 0; i < n; i++, key = wire_skip(wire_skip(key))) {
        if (wire_map_find(eo, other, em, key, &unknown))
            continue;
        open |= unknown;
        if (unknown)
            continue;
        const enum wire_order o = *ret_key ? compare_terms(em, key, em, *ret_key, KEYS) : WIRE_LESS;
        open |= o == WIRE_UNEQUAL || o == WIRE_UNKNOWN;
        *ret_key = o == WIRE_LESS ? key : *ret_key;
    }
    if (open)
        return *ret_key ? LACKS_SOME_KEY : LACKS_UNKNOWN;
    return *ret_key ? LACKS_KEY : LACKS_NOTHING;
}

/*
 * Compares the values of two maps that have the same keys: the least key whose values differ decides. If the maps are
 * themselves keys of a map, OTP 29 orders their keys by when the atoms were created.
 */
static enum wire_order compare_map_values(const struct term_env *ea, const uint8_t *a, const struct term_env *eb,
                                          const uint8_t *b, enum how how)
{
    uint32_t pairs;
    const uint8_t *key, *least = NULL;
    const int64_t n = wire_map(a, &pairs, &key);
    enum wire_order found = WIRE_EQUAL;
    bool differs = false, open = false, unknown;

    for (int64_t i = 0; i < n; i++, key = wire_skip(wire_skip(key))) {
        const enum wire_order o = compare_terms(ea, wire_skip(key), eb, wire_map_find(eb, b, ea, key, &unknown), how);
        if (o == WIRE_EQUAL)
            continue;
        const enum wire_order place = least ? compare_terms(ea, key, ea, least, KEYS) : WIRE_LESS;
        differs |= o != WIRE_UNKNOWN;
        open |= place == WIRE_UNEQUAL || (least && how == KEYS && wire_class(key) == WIRE_ATOM && o != found);
        if (place == WIRE_LESS) {
            least = key;
            found = o;
        }
    }
    return differs && (open || found == WIRE_UNKNOWN) ? WIRE_UNEQUAL : found;
}

static enum wire_order compare_maps(const struct term_env *ea, const uint8_t *a, const struct term_env *eb,
                                    const uint8_t *b, enum how how)
{
    uint32_t na, nb;
    const uint8_t *x, *y;

    wire_map(a, &na, &x);
    wire_map(b, &nb, &y);
    if (na != nb)
        return na < nb ? WIRE_LESS : WIRE_GREATER;
    const enum lacks of_a = find_lacking(ea, a, eb, b, &x), of_b = find_lacking(eb, b, ea, a, &y);
    if (of_a == LACKS_NOTHING && of_b == LACKS_NOTHING)
        return compare_map_values(ea, a, eb, b, how);
    if (of_a == LACKS_KEY && of_b == LACKS_KEY)
        return compare_terms(ea, x, eb, y, KEYS);
    return MAX(of_a, of_b) >= LACKS_SOME_KEY ? WIRE_UNEQUAL : WIRE_UNKNOWN;
}

static enum wire_order compare_terms(const struct term_env *ea, const uint8_t *a, const struct term_env *eb,
                                     const uint8_t *b, enum how how)
{
    enum wire_class ca = wire_class(a), cb = wire_class(b);
    struct raw x, y;

    if (ca == WIRE_NOTHING || cb == WIRE_NOTHING)
        return WIRE_UNKNOWN;
    if (ca != cb)
        return ca < cb ? WIRE_LESS : WIRE_GREATER;
    if (*a == ETW_T_TEXT || *b == ETW_T_TEXT) {
        if (ca == WIRE_NUMBER || ca == WIRE_RECORD)
            return WIRE_UNKNOWN;
        const bool same = *a == *b && wire_u16(a + 2) == wire_u16(b + 2) && !memcmp(a + 4, b + 4, wire_u16(a + 2));
        /* the VM does not order references, funs and remote pids by their text */
        return same ? WIRE_EQUAL : WIRE_UNEQUAL;
    }
    switch (ca) {
    case WIRE_NUMBER:
        return compare_numbers(a, b, how);
    case WIRE_ATOM:
        wire_atom_text(ea, a, &x);
        wire_atom_text(eb, b, &y);
        return compare_bytes(x, y);
    case WIRE_PORT:
    case WIRE_PID:
        return wire_u64(a + 1) < wire_u64(b + 1)   ? WIRE_LESS
               : wire_u64(a + 1) > wire_u64(b + 1) ? WIRE_GREATER
                                                   : WIRE_EQUAL;
    case WIRE_TUPLE:
        return compare_tuples(ea, a, eb, b, how);
    case WIRE_MAP:
        return compare_maps(ea, a, eb, b, how);
    case WIRE_LIST:
        return compare_lists(ea, a, eb, b, how);
    case WIRE_BITS:
        return compare_bits(a, b);
    case WIRE_REF:
    case WIRE_FUN:
    case WIRE_RECORD:
    case WIRE_NIL:
    case WIRE_NOTHING:
        break;
    }
    return WIRE_EQUAL;
}

enum wire_order wire_compare(const struct term_env *ea, const uint8_t *a, const struct term_env *eb, const uint8_t *b,
                             bool exact)
{
    return compare_terms(ea, a, eb, b, exact ? TYPED : VALUES);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Guard functions on encoded terms. They fail where Erlang's functions fail. If the part of a term that they need was
 * cut, the result is unknown. */
#include <math.h>

#include "../erlang/wire_order.h"
#include "../lang/functions.h"
#include "where.h"

static bool is_int(struct value v)
{
    return wire_class(v.at) == WIRE_NUMBER && *v.at != ETW_T_FLOAT;
}

static bool as_double(struct value v, double *ret)
{
    int64_t i;

    if (wire_int(v.at, &i)) {
        *ret = (double)i;
        return true;
    }
    if (*v.at != ETW_T_FLOAT)
        return false;
    memcpy(ret, v.at + 1, sizeof(*ret));
    return true;
}

static bool is_list(struct value v)
{
    return wire_class(v.at) == WIRE_LIST || wire_class(v.at) == WIRE_NIL;
}

/* ---- tests ---- */

static struct value where_fn_test(int name, const struct value *a)
{
    enum wire_class c = wire_class(a[0].at);
    bool b;

    switch (name) {
    case FN_IS_ATOM:
        return value_bool(c == WIRE_ATOM);
    case FN_IS_FLOAT:
        return value_bool(*a[0].at == ETW_T_FLOAT);
    case FN_IS_INTEGER:
        return value_bool(is_int(a[0]));
    case FN_IS_LIST:
        return value_bool(c == WIRE_LIST || c == WIRE_NIL);
    case FN_IS_NUMBER:
        return value_bool(c == WIRE_NUMBER);
    case FN_IS_PID:
        return value_bool(c == WIRE_PID);
    case FN_IS_PORT:
        return value_bool(c == WIRE_PORT);
    case FN_IS_REFERENCE:
        return value_bool(c == WIRE_REF);
    case FN_IS_TUPLE:
        return value_bool(c == WIRE_TUPLE);
    case FN_IS_MAP:
        return value_bool(c == WIRE_MAP);
    case FN_IS_BINARY:
        return value_bool(*a[0].at == ETW_T_BIN);
    case FN_IS_BITSTRING:
        return value_bool(c == WIRE_BITS);
    case FN_IS_BOOLEAN:
        return value_bool(value_is_bool(a[0], &b));
    case FN_IS_FUNCTION:
        return value_bool(c == WIRE_FUN);
    default:
        return VALUE_FAIL;
    }
}

static struct value where_fn_compare(int name, const struct value *a)
{
    bool exact = name == FN_EQ_EXACT || name == FN_NE_EXACT;
    enum wire_order o = wire_compare(a[0].env, a[0].at, a[1].env, a[1].at, exact);

    if (o == WIRE_UNKNOWN)
        return VALUE_DONT_KNOW;
    switch (name) {
    case FN_GT:
        return value_bool(o > 0);
    case FN_GE:
        return value_bool(o >= 0);
    case FN_LT:
        return value_bool(o < 0);
    case FN_LE:
        return value_bool(o <= 0);
    case FN_EQ_EXACT:
    case FN_EQ:
        return value_bool(o == 0);
    case FN_NE_EXACT:
    case FN_NE:
        return value_bool(o != 0);
    case FN_MIN:
        return o <= 0 ? a[0] : a[1];
    default:
        return o >= 0 ? a[0] : a[1]; /* FN_MAX */
    }
}

/* ---- arithmetic: 64 bits; larger results are unknown ---- */

static struct value integers(struct arena *arena, int name, int64_t x, int64_t y)
{
    int64_t r = 0;

    switch (name) {
    case FN_ADD:
        return __builtin_add_overflow(x, y, &r) ? VALUE_DONT_KNOW : value_int(arena, r);
    case FN_SUB:
        return __builtin_sub_overflow(x, y, &r) ? VALUE_DONT_KNOW : value_int(arena, r);
    case FN_MUL:
        return __builtin_mul_overflow(x, y, &r) ? VALUE_DONT_KNOW : value_int(arena, r);
    case FN_DIV:
        return !y ? VALUE_FAIL : x == INT64_MIN && y == -1 ? VALUE_DONT_KNOW : value_int(arena, x / y);
    case FN_REM:
        return !y ? VALUE_FAIL : value_int(arena, y == -1 ? 0 : x % y);
    case FN_BAND:
        return value_int(arena, x & y);
    case FN_BOR:
        return value_int(arena, x | y);
    case FN_BXOR:
        return value_int(arena, x ^ y);
    case FN_BSR:
        return y < 0 ? integers(arena, FN_BSL, x, y == INT64_MIN ? INT64_MAX : -y) : value_int(arena, x >> MIN(y, 63));
    case FN_BSL:
        if (y < 0)
            return integers(arena, FN_BSR, x, y == INT64_MIN ? INT64_MAX : -y);
        return !x                                                         ? value_int(arena, 0)
               : y > 62 || __builtin_mul_overflow(x, INT64_C(1) << y, &r) ? VALUE_DONT_KNOW
                                                                          : value_int(arena, r);
    default:
        return VALUE_FAIL;
    }
}

static struct value rounded(struct arena *arena, double d)
{
    return d >= -9.2e18 && d <= 9.2e18 ? value_int(arena, (int64_t)d) : VALUE_DONT_KNOW;
}

static struct value arithmetic(struct arena *arena, int name, const struct value *a, size_t n)
{
    int64_t x = 0, y = 0;
    double d = 0, c = 0;
    bool ints = wire_int(a[0].at, &x) && (n < 2 || wire_int(a[1].at, &y));

    for (size_t i = 0; i < n; i++) {
        if (wire_class(a[i].at) != WIRE_NUMBER)
            return VALUE_FAIL;
        if (!as_double(a[i], i ? &c : &d))
            return VALUE_DONT_KNOW; /* an integer of more than 64 bits */
    }
    switch (name) {
    case FN_PLUS:
        return a[0];
    case FN_MINUS:
        return ints ? integers(arena, FN_SUB, 0, x) : value_float(arena, -d);
    case FN_ABS:
        return ints && x >= 0 ? a[0] : ints ? integers(arena, FN_SUB, 0, x) : value_float(arena, fabs(d));
    case FN_BNOT:
        return ints ? value_int(arena, ~x) : VALUE_FAIL;
    case FN_ROUND:
        return ints ? a[0] : rounded(arena, round(d));
    case FN_TRUNC:
        return ints ? a[0] : rounded(arena, trunc(d));
    case FN_FLOOR:
        return ints ? a[0] : rounded(arena, floor(d));
    case FN_CEIL:
        return ints ? a[0] : rounded(arena, ceil(d));
    case FN_FLOAT:
        return value_float(arena, d);
    case FN_DIVIDE:
        return c == 0 ? VALUE_FAIL : value_float(arena, d / c);
    default:
        break;
    }
    if (ints)
        return integers(arena, name, x, y);
    switch (name) {
    case FN_ADD:
        return value_float(arena, d + c);
    case FN_SUB:
        return value_float(arena, d - c);
    case FN_MUL:
        return value_float(arena, d * c);
    default:
        return VALUE_FAIL; /* div, rem and bit operations need integers */
    }
}

/* ---- parts of terms ---- */

/* A part of a term; unknown if it was cut. */
static struct value known(struct value part)
{
    return wire_class(part.at) == WIRE_NOTHING ? VALUE_DONT_KNOW : part;
}

static struct value list_part(struct arena *arena, int name, struct value v)
{
    const uint8_t *at = v.at, *el;
    struct buf b = {0};
    int64_t n = 0;

    if (!is_list(v))
        return VALUE_FAIL;
    if (*at == ETW_T_STRING) {
        size_t len = wire_u16(at + 1);
        if (name == FN_LENGTH)
            return value_int(arena, (int64_t)len);
        if (!len)
            return VALUE_FAIL;
        if (name == FN_HD)
            return value_int(arena, at[3]);
        uint16_t rest = (uint16_t)(len - 1);
        buf_char(&b, (char)ETW_T_STRING);
        buf_add(&b, &rest, sizeof(rest));
        buf_add(&b, at + 4, rest);
        struct value tail = value_bytes(arena, &b);
        buf_release(&b);
        return tail;
    }
    wire_list(&at);
    if (name == FN_LENGTH) {
        while (wire_list_next(&at))
            n++;
        if (*at == ETW_T_END)
            return value_int(arena, n);
        return *at == ETW_T_CUT || wire_class(at + 1) == WIRE_NOTHING ? VALUE_DONT_KNOW : VALUE_FAIL;
    }
    if (!(el = wire_list_next(&at)))
        return *at == ETW_T_CUT ? VALUE_DONT_KNOW : VALUE_FAIL;
    if (name == FN_HD)
        return known((struct value){.at = el, .env = v.env});
    if (*at == ETW_T_TAIL)
        return known((struct value){.at = at + 1, .env = v.env});
    buf_char(&b, (char)ETW_T_LIST);
    wire_copy(&b, v.env, (struct wire){at, wire_skip(v.at)}, ETW_MAX_BATCH);
    struct value tail = value_bytes(arena, &b);
    buf_release(&b);
    return tail;
}

static struct value size_of(struct arena *arena, int name, struct value v)
{
    uint32_t n;
    const uint8_t *first;

    if (wire_class(v.at) == WIRE_BITS && name != FN_TUPLE_SIZE && name != FN_MAP_SIZE) {
        bool bits = *v.at == ETW_T_BITS;
        int64_t bytes = (int64_t)MIN(wire_u64(v.at + (bits ? 2 : 1)), (uint64_t)INT64_MAX / 8);
        if (name == FN_BIT_SIZE)
            return value_int(arena, bits ? (bytes - 1) * 8 + v.at[1] : bytes * 8);
        return value_int(arena, name == FN_SIZE && bits ? bytes - 1 : bytes);
    }
    if ((name == FN_SIZE || name == FN_TUPLE_SIZE) && wire_tuple(v.at, &n, &first) >= 0)
        return value_int(arena, n);
    if (name == FN_MAP_SIZE && wire_map(v.at, &n, &first) >= 0)
        return value_int(arena, n);
    return VALUE_FAIL;
}

static struct value element(struct value index, struct value tuple)
{
    uint32_t arity;
    const uint8_t *at;
    int64_t i, n = wire_tuple(tuple.at, &arity, &at);

    if (n < 0 || !wire_int(index.at, &i) || i < 1 || i > (int64_t)arity)
        return VALUE_FAIL;
    if (i > n)
        return VALUE_DONT_KNOW;
    while (--i)
        at = wire_skip(at);
    return known((struct value){.at = at, .env = tuple.env});
}

static struct value in_map(int name, const struct value *a)
{
    bool unknown;

    if (wire_class(a[1].at) != WIRE_MAP)
        return VALUE_FAIL;
    const uint8_t *found = wire_map_find(a[1].env, a[1].at, a[0].env, a[0].at, &unknown);
    if (name == FN_IS_MAP_KEY)
        return found ? value_bool(true) : unknown ? VALUE_DONT_KNOW : value_bool(false);
    if (!found)
        return unknown ? VALUE_DONT_KNOW : VALUE_FAIL;
    return known((struct value){.at = found, .env = a[1].env});
}

static struct value bin_part(struct arena *arena, const struct value *a, size_t n)
{
    struct raw bytes;
    uint64_t size;
    int64_t from, len;
    uint32_t arity;
    const uint8_t *range = a[1].at;

    if (!wire_bin(a[0].at, &bytes, &size))
        return VALUE_FAIL;
    if (n == 2) {
        if (wire_tuple(a[1].at, &arity, &range) != 2 || arity != 2 || !wire_int(range, &from) ||
            !wire_int(wire_skip(range), &len))
            return VALUE_FAIL;
    } else if (!wire_int(a[1].at, &from) || !wire_int(a[2].at, &len)) {
        return VALUE_FAIL;
    }
    if (len < 0 && len > INT64_MIN + 1) {
        from += len;
        len = -len;
    }
    if (from < 0 || len < 0 || (uint64_t)from > size || (uint64_t)len > size - (uint64_t)from)
        return VALUE_FAIL;
    if ((uint64_t)(from + len) > bytes.len)
        return VALUE_DONT_KNOW;
    return value_bin(arena, (struct str){raw_view(bytes).at + from, (size_t)len});
}

/* Appends an atom as the VM prints it. False: the name has characters that the VM may print differently. */
static bool where_fn_put_name(struct buf *b, struct value name)
{
    struct raw text;

    wire_atom(name.env, name.at, &text);
    struct str s = raw_view(text);
    bool plain = s.len && s.at[0] >= 'a' && s.at[0] <= 'z';
    for (size_t i = 0; i < s.len; i++) {
        char c = s.at[i];
        if (c < ' ' || c > '~' || c == '\'' || c == '\\')
            return false;
        plain &= c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
    }
    if (!plain)
        buf_char(b, '\'');
    buf_str(b, s);
    if (!plain)
        buf_char(b, '\'');
    return true;
}

/* is_record(T, Module, Name) on the text of a native record: #module:name{...} */
static struct value is_native(const struct value *a)
{
    struct buf name = {0};

    if (wire_class(a[0].at) != WIRE_RECORD)
        return value_bool(false);
    buf_char(&name, '#');
    bool known = where_fn_put_name(&name, a[1]);
    buf_char(&name, ':');
    known = known && where_fn_put_name(&name, a[2]);
    buf_char(&name, '{');
    bool same = wire_u16(a[0].at + 2) >= name.len && !memcmp(a[0].at + 4, name.data, name.len);
    buf_release(&name);
    return known ? value_bool(same) : VALUE_DONT_KNOW;
}

static struct value is_record(const struct value *a)
{
    uint32_t arity;
    const uint8_t *first;
    int64_t size, n = wire_tuple(a[0].at, &arity, &first);

    if (wire_class(a[1].at) == WIRE_ATOM && wire_class(a[2].at) == WIRE_ATOM)
        return is_native(a);
    if (!wire_int(a[2].at, &size) || wire_class(a[1].at) != WIRE_ATOM)
        return VALUE_FAIL;
    if (n < 0 || arity != size)
        return value_bool(false);
    enum wire_order o = n ? wire_compare(a[0].env, first, a[1].env, a[1].at, true) : WIRE_UNKNOWN;
    return o == WIRE_UNKNOWN ? VALUE_DONT_KNOW : value_bool(o == WIRE_EQUAL);
}

static struct value in_range(const struct value *a)
{
    if (!is_int(a[1]) || !is_int(a[2]))
        return VALUE_FAIL;
    return value_bool(is_int(a[0]) && wire_compare(a[0].env, a[0].at, a[1].env, a[1].at, true) >= 0 &&
                      wire_compare(a[0].env, a[0].at, a[2].env, a[2].at, true) <= 0);
}

struct value where_apply(struct arena *arena, int name, const struct value *a, size_t n, const struct event *e)
{
    enum wire_class class;
    bool x, y;

    for (size_t i = 0; i < n; i++)
        if (wire_class(a[i].at) == WIRE_NOTHING)
            return VALUE_DONT_KNOW;
    switch (name) {
    case FN_IS_FUNCTION2: /* only the text of a fun is captured */
        return wire_class(a[0].at) == WIRE_FUN ? VALUE_DONT_KNOW : value_bool(false);
    case FN_IS_ATOM ... FN_IS_INTEGER:
    case FN_IS_LIST ... FN_IS_FUNCTION:
        return where_fn_test(name, a);
    case FN_IS_INTEGER3:
        return in_range(a);
    case FN_IS_RECORD:
        return is_record(a);
    case FN_IS_MAP_KEY:
    case FN_MAP_GET:
        return in_map(name, a);
    case FN_XOR:
        return value_is_bool(a[0], &x) && value_is_bool(a[1], &y) ? value_bool(x != y) : VALUE_FAIL;
    case FN_HD:
    case FN_TL:
    case FN_LENGTH:
        return list_part(arena, name, a[0]);
    case FN_SIZE:
    case FN_BIT_SIZE:
    case FN_BYTE_SIZE:
    case FN_TUPLE_SIZE:
    case FN_MAP_SIZE:
        return size_of(arena, name, a[0]);
    case FN_ELEMENT:
        return element(a[0], a[1]);
    case FN_MIN:
    case FN_MAX:
    case FN_GT ... FN_NE:
        return where_fn_compare(name, a);
    case FN_BINARY_PART:
        return bin_part(arena, a, n);
    case FN_NODE:
        return value_atom(arena, raw_of(safe_view(e->node->name)));
    case FN_NODE1: /* only the text of remote pids, ports and references is captured */
        if (*a[0].at == ETW_T_PID || *a[0].at == ETW_T_PORT)
            return value_atom(arena, raw_of(safe_view(e->node->name)));
        class = wire_class(a[0].at);
        return class == WIRE_PID || class == WIRE_PORT || class == WIRE_REF ? VALUE_DONT_KNOW : VALUE_FAIL;
    case FN_ABS:
    case FN_ROUND ... FN_FLOAT:
    case FN_ADD ... FN_BNOT:
        return arithmetic(arena, name, a, n);
    default:
        return VALUE_FAIL;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "guard.h"

#include <math.h>

#include "../erlang/wire_order.h"

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

static struct value in_class(const struct value *a, enum wire_class class)
{
    return value_bool(wire_class(a[0].at) == class);
}

enum { LESS = 1, SAME = 2, MORE = 4 }; /* 1 << (enum wire_order - WIRE_LESS) */

/* Whether the order of the first two values is one of the wanted ones. */
static struct value compare_values(const struct value *a, bool exact, unsigned wanted)
{
    enum wire_order o = wire_compare(a[0].env, a[0].at, a[1].env, a[1].at, exact);

    if (o == WIRE_UNEQUAL && (wanted == SAME || wanted == (LESS | MORE)))
        return value_bool(wanted != SAME);
    return o >= WIRE_UNEQUAL ? VALUE_DONT_KNOW : value_bool(wanted >> (o - WIRE_LESS) & 1);
}

static struct value pick_extreme(const struct value *a, enum wire_order other_wins)
{
    enum wire_order o = wire_compare(a[0].env, a[0].at, a[1].env, a[1].at, false);

    return o >= WIRE_UNEQUAL ? VALUE_DONT_KNOW : o == other_wins ? a[1] : a[0];
}

/* ---- arithmetic: 64 bits; larger results are unknown ---- */

struct numbers {
    struct arena *arena;
    struct value first;
    bool ints; /* x and y are valid */
    int64_t x, y;
    double d, c;
};

typedef struct value number_fn(const struct numbers *m);

static struct value number_add(const struct numbers *m)
{
    int64_t r;

    if (!m->ints)
        return value_float(m->arena, m->d + m->c);
    return __builtin_add_overflow(m->x, m->y, &r) ? VALUE_DONT_KNOW : value_int(m->arena, r);
}

static struct value number_sub(const struct numbers *m)
{
    int64_t r;

    if (!m->ints)
        return value_float(m->arena, m->d - m->c);
    return __builtin_sub_overflow(m->x, m->y, &r) ? VALUE_DONT_KNOW : value_int(m->arena, r);
}

static struct value number_mul(const struct numbers *m)
{
    int64_t r;

    if (!m->ints)
        return value_float(m->arena, m->d * m->c);
    return __builtin_mul_overflow(m->x, m->y, &r) ? VALUE_DONT_KNOW : value_int(m->arena, r);
}

static struct value number_divide(const struct numbers *m)
{
    return m->c == 0 ? VALUE_FAIL : value_float(m->arena, m->d / m->c);
}

static struct value number_plus(const struct numbers *m)
{
    return m->first;
}

static struct value number_minus(const struct numbers *m)
{
    if (!m->ints)
        return value_float(m->arena, -m->d);
    return m->x == INT64_MIN ? VALUE_DONT_KNOW : value_int(m->arena, -m->x);
}

static struct value number_abs(const struct numbers *m)
{
    if (!m->ints)
        return value_float(m->arena, fabs(m->d));
    return m->x >= 0 ? m->first : number_minus(m);
}

static struct value number_float(const struct numbers *m)
{
    return value_float(m->arena, m->d);
}

static struct value round_number(const struct numbers *m, double d)
{
    return m->ints ? m->first : d >= -9.2e18 && d <= 9.2e18 ? value_int(m->arena, (int64_t)d) : VALUE_DONT_KNOW;
}

static struct value number_round(const struct numbers *m)
{
    return round_number(m, round(m->d));
}

static struct value number_trunc(const struct numbers *m)
{
    return round_number(m, trunc(m->d));
}

static struct value number_floor(const struct numbers *m)
{
    return round_number(m, floor(m->d));
}

static struct value number_ceil(const struct numbers *m)
{
    return round_number(m, ceil(m->d));
}

/* ---- integers only ---- */

static struct value number_div(const struct numbers *m)
{
    if (!m->ints || !m->y)
        return VALUE_FAIL;
    return m->x == INT64_MIN && m->y == -1 ? VALUE_DONT_KNOW : value_int(m->arena, m->x / m->y);
}

static struct value number_rem(const struct numbers *m)
{
    return !m->ints || !m->y ? VALUE_FAIL : value_int(m->arena, m->y == -1 ? 0 : m->x % m->y);
}

static struct value number_band(const struct numbers *m)
{
    return m->ints ? value_int(m->arena, m->x & m->y) : VALUE_FAIL;
}

static struct value number_bor(const struct numbers *m)
{
    return m->ints ? value_int(m->arena, m->x | m->y) : VALUE_FAIL;
}

static struct value number_bxor(const struct numbers *m)
{
    return m->ints ? value_int(m->arena, m->x ^ m->y) : VALUE_FAIL;
}

static struct value number_bnot(const struct numbers *m)
{
    return m->ints ? value_int(m->arena, ~m->x) : VALUE_FAIL;
}

/* Shifts to the left, or to the right by a negative number. */
static struct value shift_number(const struct numbers *m, int64_t by)
{
    int64_t r;

    if (!m->ints)
        return VALUE_FAIL;
    if (by < 0)
        return value_int(m->arena, m->x >> (by < -63 ? 63 : -by));
    if (!m->x)
        return value_int(m->arena, 0);
    return by > 62 || __builtin_mul_overflow(m->x, INT64_C(1) << by, &r) ? VALUE_DONT_KNOW : value_int(m->arena, r);
}

static struct value number_bsl(const struct numbers *m)
{
    return shift_number(m, m->y);
}

static struct value number_bsr(const struct numbers *m)
{
    return shift_number(m, m->y == INT64_MIN ? INT64_MAX : -m->y);
}

static struct value apply_number(struct arena *arena, const struct value *a, size_t n, number_fn *apply)
{
    struct numbers m = {.arena = arena, .first = a[0]};

    m.ints = wire_int(a[0].at, &m.x) && (n < 2 || wire_int(a[1].at, &m.y));
    for (size_t i = 0; i < n; i++) {
        if (wire_class(a[i].at) != WIRE_NUMBER)
            return VALUE_FAIL;
        if (!as_double(a[i], i ? &m.c : &m.d))
            return VALUE_DONT_KNOW; /* an integer of more than 64 bits */
    }
    return apply(&m);
}

/* ---- parts of terms ---- */

/* A part of a term; unknown if it was cut. */
static struct value known_part(struct value part)
{
    return wire_class(part.at) == WIRE_NOTHING ? VALUE_DONT_KNOW : part;
}

static struct value list_part(struct arena *arena, enum fn fn, struct value v)
{
    const uint8_t *at = v.at, *el;
    struct buf b = {0};
    int64_t n = 0;

    if (!is_list(v))
        return VALUE_FAIL;
    if (*at == ETW_T_STRING) {
        size_t len = wire_u16(at + 1);
        if (fn == FN_LENGTH)
            return value_int(arena, (int64_t)len);
        if (!len)
            return VALUE_FAIL;
        if (fn == FN_HD)
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
    if (fn == FN_LENGTH) {
        while (wire_list_next(&at))
            n++;
        if (*at == ETW_T_END)
            return value_int(arena, n);
        return *at == ETW_T_CUT || wire_class(at + 1) == WIRE_NOTHING ? VALUE_DONT_KNOW : VALUE_FAIL;
    }
    if (!(el = wire_list_next(&at)))
        return *at == ETW_T_CUT ? VALUE_DONT_KNOW : VALUE_FAIL;
    if (fn == FN_HD)
        return known_part((struct value){.at = el, .env = v.env});
    if (*at == ETW_T_TAIL)
        return known_part((struct value){.at = at + 1, .env = v.env});
    buf_char(&b, (char)ETW_T_LIST);
    wire_copy(&b, v.env, (struct wire){at, wire_skip(v.at)}, ETW_MAX_BATCH);
    struct value tail = value_bytes(arena, &b);
    buf_release(&b);
    return tail;
}

static struct value size_of(struct arena *arena, enum fn fn, struct value v)
{
    uint32_t n;
    const uint8_t *first;

    if (wire_class(v.at) == WIRE_BITS && fn != FN_TUPLE_SIZE && fn != FN_MAP_SIZE) {
        bool bits = *v.at == ETW_T_BITS;
        int64_t bytes = (int64_t)MIN(wire_u64(v.at + (bits ? 2 : 1)), (uint64_t)INT64_MAX / 8);
        if (fn == FN_BIT_SIZE)
            return value_int(arena, bits ? (bytes - 1) * 8 + v.at[1] : bytes * 8);
        return value_int(arena, fn == FN_SIZE && bits ? bytes - 1 : bytes);
    }
    if ((fn == FN_SIZE || fn == FN_TUPLE_SIZE) && wire_tuple(v.at, &n, &first) >= 0)
        return value_int(arena, n);
    if (fn == FN_MAP_SIZE && wire_map(v.at, &n, &first) >= 0)
        return value_int(arena, n);
    return VALUE_FAIL;
}

static struct value tuple_element(struct value index, struct value tuple)
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
    return known_part((struct value){.at = at, .env = tuple.env});
}

static struct value in_map(enum fn fn, const struct value *a)
{
    bool unknown;

    if (wire_class(a[1].at) != WIRE_MAP)
        return VALUE_FAIL;
    const uint8_t *found = wire_map_find(a[1].env, a[1].at, a[0].env, a[0].at, &unknown);
    if (fn == FN_IS_MAP_KEY)
        return found ? value_bool(true) : unknown ? VALUE_DONT_KNOW : value_bool(false);
    if (!found)
        return unknown ? VALUE_DONT_KNOW : VALUE_FAIL;
    return known_part((struct value){.at = found, .env = a[1].env});
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
static bool put_plain_name(struct buf *b, struct value name)
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
    bool known = put_plain_name(&name, a[1]);
    buf_char(&name, ':');
    known = known && put_plain_name(&name, a[2]);
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
    if (!is_int(a[0]))
        return value_bool(false);
    const enum wire_order low = wire_compare(a[0].env, a[0].at, a[1].env, a[1].at, true),
                          high = wire_compare(a[0].env, a[0].at, a[2].env, a[2].at, true);
    if (low == WIRE_LESS || high == WIRE_GREATER)
        return value_bool(false);
    return low == WIRE_UNKNOWN || high == WIRE_UNKNOWN ? VALUE_DONT_KNOW : value_bool(true);
}

static struct value home_of(struct arena *arena, struct value v, struct raw node)
{
    enum wire_class class = wire_class(v.at);

    if (*v.at == ETW_T_PID || *v.at == ETW_T_PORT)
        return value_atom(arena, node);
    /* only the text of remote pids, ports and references is captured */
    return class == WIRE_PID || class == WIRE_PORT || class == WIRE_REF ? VALUE_DONT_KNOW : VALUE_FAIL;
}

/* One case for each function, so that the compiler names a function that has none. */
struct value guard_apply(struct arena *arena, enum fn fn, const struct value *a, size_t n, struct raw node)
{
    bool x, y;

    for (size_t i = 0; i < n; i++)
        if (wire_class(a[i].at) == WIRE_NOTHING)
            return VALUE_DONT_KNOW;
    switch (fn) {
    case FN_IS_ATOM:
        return in_class(a, WIRE_ATOM);
    case FN_IS_NUMBER:
        return in_class(a, WIRE_NUMBER);
    case FN_IS_PID:
        return in_class(a, WIRE_PID);
    case FN_IS_PORT:
        return in_class(a, WIRE_PORT);
    case FN_IS_REFERENCE:
        return in_class(a, WIRE_REF);
    case FN_IS_TUPLE:
        return in_class(a, WIRE_TUPLE);
    case FN_IS_MAP:
        return in_class(a, WIRE_MAP);
    case FN_IS_BITSTRING:
        return in_class(a, WIRE_BITS);
    case FN_IS_FUNCTION:
        return in_class(a, WIRE_FUN);
    case FN_IS_FLOAT:
        return value_bool(*a[0].at == ETW_T_FLOAT);
    case FN_IS_INTEGER:
        return value_bool(is_int(a[0]));
    case FN_IS_LIST:
        return value_bool(is_list(a[0]));
    case FN_IS_BINARY:
        return value_bool(*a[0].at == ETW_T_BIN);
    case FN_IS_BOOLEAN:
        return value_bool(value_is_bool(a[0], &x));
    case FN_IS_FUNCTION2: /* only the text of a fun is captured */
        return wire_class(a[0].at) == WIRE_FUN ? VALUE_DONT_KNOW : value_bool(false);
    case FN_IS_INTEGER3:
        return in_range(a);
    case FN_IS_RECORD:
        return is_record(a);
    case FN_GT:
        return compare_values(a, false, MORE);
    case FN_GE:
        return compare_values(a, false, MORE | SAME);
    case FN_LT:
        return compare_values(a, false, LESS);
    case FN_LE:
        return compare_values(a, false, LESS | SAME);
    case FN_EQ:
        return compare_values(a, false, SAME);
    case FN_NE:
        return compare_values(a, false, LESS | MORE);
    case FN_EQ_EXACT:
        return compare_values(a, true, SAME);
    case FN_NE_EXACT:
        return compare_values(a, true, LESS | MORE);
    case FN_MIN:
        return pick_extreme(a, WIRE_GREATER);
    case FN_MAX:
        return pick_extreme(a, WIRE_LESS);
    case FN_XOR:
        return value_is_bool(a[0], &x) && value_is_bool(a[1], &y) ? value_bool(x != y) : VALUE_FAIL;
    case FN_ADD:
        return apply_number(arena, a, n, number_add);
    case FN_SUB:
        return apply_number(arena, a, n, number_sub);
    case FN_MUL:
        return apply_number(arena, a, n, number_mul);
    case FN_DIVIDE:
        return apply_number(arena, a, n, number_divide);
    case FN_PLUS:
        return apply_number(arena, a, n, number_plus);
    case FN_MINUS:
        return apply_number(arena, a, n, number_minus);
    case FN_ABS:
        return apply_number(arena, a, n, number_abs);
    case FN_FLOAT:
        return apply_number(arena, a, n, number_float);
    case FN_ROUND:
        return apply_number(arena, a, n, number_round);
    case FN_TRUNC:
        return apply_number(arena, a, n, number_trunc);
    case FN_FLOOR:
        return apply_number(arena, a, n, number_floor);
    case FN_CEIL:
        return apply_number(arena, a, n, number_ceil);
    case FN_DIV:
        return apply_number(arena, a, n, number_div);
    case FN_REM:
        return apply_number(arena, a, n, number_rem);
    case FN_BAND:
        return apply_number(arena, a, n, number_band);
    case FN_BOR:
        return apply_number(arena, a, n, number_bor);
    case FN_BXOR:
        return apply_number(arena, a, n, number_bxor);
    case FN_BNOT:
        return apply_number(arena, a, n, number_bnot);
    case FN_BSL:
        return apply_number(arena, a, n, number_bsl);
    case FN_BSR:
        return apply_number(arena, a, n, number_bsr);
    case FN_HD:
    case FN_TL:
    case FN_LENGTH:
        return list_part(arena, fn, a[0]);
    case FN_SIZE:
    case FN_BIT_SIZE:
    case FN_BYTE_SIZE:
    case FN_TUPLE_SIZE:
    case FN_MAP_SIZE:
        return size_of(arena, fn, a[0]);
    case FN_IS_MAP_KEY:
    case FN_MAP_GET:
        return in_map(fn, a);
    case FN_ELEMENT:
        return tuple_element(a[0], a[1]);
    case FN_BINARY_PART:
        return bin_part(arena, a, n);
    case FN_NODE:
        return value_atom(arena, node);
    case FN_NODE1:
        return home_of(arena, a[0], node);
    case FN_AND:
    case FN_OR:
    case FN_ANDALSO:
    case FN_ORELSE:
    case FN_NOT:
    case FN_SELF:
    case FN_GET_TCW:
    case FN_IS_SEQ_TRACE:
    case FN_MESSAGE:
    case FN_RETURN_TRACE:
    case FN_EXCEPTION_TRACE:
    case FN_DISPLAY:
    case FN_SET_TCW:
    case FN_PROCESS_DUMP:
    case FN_SET_SEQ_TOKEN:
    case FN_GET_SEQ_TOKEN:
    case FN_SILENT:
    case FN_ENABLE_TRACE:
    case FN_DISABLE_TRACE:
    case FN_TRACE:
    case FN_CALLER:
    case FN_CALLER_LINE:
    case FN_CURRENT_STACKTRACE:
    case FN_COUNT:
    case FN_NONE:
        break;
    }
    return VALUE_FAIL;
}

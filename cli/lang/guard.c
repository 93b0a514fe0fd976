/* SPDX-License-Identifier: Apache-2.0 */
#include "guard.h"

#include <math.h>

#include "../erlang/wire_order.h"

/* A call of a function that has an entry in the table `rows`. */
struct guard_call {
    struct arena *arena;
    enum fn fn;
    const struct value *a;
    size_t n;
    struct raw node; /* the name of the event's node; empty if it is unknown */
    int row;         /* the entry's `row`; its meaning depends on apply(): classes, an order, a tag, … */
};

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

/* Returns true if the class of the value is one of the classes in c->row. */
static struct value in_class(const struct guard_call *c)
{
    return value_bool(c->row >> wire_class(c->a[0].at) & 1);
}

static struct value has_tag(const struct guard_call *c)
{
    return value_bool(*c->a[0].at == c->row);
}

static struct value is_int_value(const struct guard_call *c)
{
    return value_bool(is_int(c->a[0]));
}

static struct value is_bool_value(const struct guard_call *c)
{
    bool b;

    return value_bool(value_is_bool(c->a[0], &b));
}

/* Evaluates is_function(F, Arity). Only the text of a fun is captured, so its arity is not known. */
static struct value is_fun_of(const struct guard_call *c)
{
    return wire_class(c->a[0].at) == WIRE_FUN ? VALUE_DONT_KNOW : value_bool(false);
}

enum { LESS = 1, SAME = 2, MORE = 4, EXACT = 8 }; /* LESS, SAME and MORE are 1 << (enum wire_order - WIRE_LESS) */

/* Returns true if the order of the values is one of the orders in c->row. */
static struct value compare_values(const struct guard_call *c)
{
    const unsigned wanted = c->row & (LESS | SAME | MORE);
    const enum wire_order o = wire_compare(c->a[0].env, c->a[0].at, c->a[1].env, c->a[1].at, c->row & EXACT);

    if (o == WIRE_UNEQUAL && (wanted == SAME || wanted == (LESS | MORE)))
        return value_bool(wanted != SAME);
    return o >= WIRE_UNEQUAL ? VALUE_DONT_KNOW : value_bool(wanted >> (o - WIRE_LESS) & 1);
}

/* Compares the two values. Returns the second one if the result is c->row, else the first one. */
static struct value pick_extreme(const struct guard_call *c)
{
    const enum wire_order o = wire_compare(c->a[0].env, c->a[0].at, c->a[1].env, c->a[1].at, false);

    return o >= WIRE_UNEQUAL ? VALUE_DONT_KNOW : (int)o == c->row ? c->a[1] : c->a[0];
}

/* ---- logic ---- */

struct guard_logic guard_logic_begin(enum fn fn)
{
    const bool conjunction = fn == FN_ANDALSO || fn == FN_AND;

    return (struct guard_logic){.conjunction = conjunction,
                                .all_fail = !conjunction,
                                .can_hold = conjunction,
                                .open = value_bool(conjunction)};
}

bool guard_logic_add(struct guard_logic *l, struct value v)
{
    const bool undecided = value_is_undecided(v);
    bool b, fails = !undecided && !value_is_bool(v, &b);

    l->all_fail &= fails;
    if (undecided) {
        l->never |= v.never;
        l->can_hold |= !v.never;
        l->open = l->open.state == VALUE_LATER ? l->open : v;
        return false;
    }
    if (fails ? !l->conjunction : b == l->conjunction)
        return false;
    if (fails && value_is_undecided(l->open))
        l->never = true;
    else
        l->open = fails ? VALUE_FAIL : v;
    return true;
}

struct value guard_logic_end(const struct guard_logic *l)
{
    struct value v = l->open;

    v.never = value_is_undecided(v) && (l->conjunction ? l->never : !l->can_hold);
    return l->all_fail ? VALUE_FAIL : v;
}

static struct value join_values(const struct guard_call *c)
{
    struct guard_logic l = guard_logic_begin(c->fn);

    for (size_t i = 0; i < c->n && !guard_logic_add(&l, c->a[i]); i++)
        ;
    return guard_logic_end(&l);
}

static struct value negate_test(const struct guard_call *c)
{
    bool b;

    return value_is_bool(c->a[0], &b) ? value_bool(!b) : VALUE_FAIL;
}

static struct value exclusive_or(const struct guard_call *c)
{
    bool x, y;

    return value_is_bool(c->a[0], &x) && value_is_bool(c->a[1], &y) ? value_bool(x != y) : VALUE_FAIL;
}

/* ---- arithmetic: 64 bits; larger results are unknown ---- */

/* Shifts to the left, or to the right by a negative number. */
static struct value shift_number(struct arena *a, int64_t x, int64_t by)
{
    int64_t r;

    if (by < 0)
        return value_int(a, x >> (by < -63 ? 63 : -by));
    if (!x)
        return value_int(a, 0);
    return by > 62 || __builtin_mul_overflow(x, INT64_C(1) << by, &r) ? VALUE_DONT_KNOW : value_int(a, r);
}

static struct value apply_integers(struct arena *a, enum fn fn, int64_t x, int64_t y)
{
    int64_t r;

    switch ((int)fn) {
    case FN_ADD:
        return __builtin_add_overflow(x, y, &r) ? VALUE_DONT_KNOW : value_int(a, r);
    case FN_SUB:
        return __builtin_sub_overflow(x, y, &r) ? VALUE_DONT_KNOW : value_int(a, r);
    case FN_MUL:
        return __builtin_mul_overflow(x, y, &r) ? VALUE_DONT_KNOW : value_int(a, r);
    case FN_DIVIDE:
        return y ? value_float(a, (double)x / (double)y) : VALUE_FAIL;
    case FN_DIV:
        return !y ? VALUE_FAIL : x == INT64_MIN && y == -1 ? VALUE_DONT_KNOW : value_int(a, x / y);
    case FN_REM:
        return !y ? VALUE_FAIL : value_int(a, y == -1 ? 0 : x % y);
    case FN_BAND:
        return value_int(a, x & y);
    case FN_BOR:
        return value_int(a, x | y);
    case FN_BXOR:
        return value_int(a, x ^ y);
    case FN_BNOT:
        return value_int(a, ~x);
    case FN_BSL:
        return shift_number(a, x, y);
    case FN_BSR:
        return shift_number(a, x, y == INT64_MIN ? INT64_MAX : -y);
    case FN_FLOAT:
        return value_float(a, (double)x);
    case FN_ABS:
    case FN_MINUS:
        if (fn == FN_MINUS || x < 0)
            return x == INT64_MIN ? VALUE_DONT_KNOW : value_int(a, -x);
    }
    return value_int(a, x); /* +, and the functions that round */
}

/* Makes a float. Like Erlang, fails if the result is too large for a float. */
static struct value float_result(struct arena *a, double d)
{
    return isfinite(d) ? value_float(a, d) : VALUE_FAIL;
}

static struct value whole_result(struct arena *a, double d)
{
    return d >= -9.2e18 && d <= 9.2e18 ? value_int(a, (int64_t)d) : VALUE_DONT_KNOW;
}

static struct value apply_floats(struct arena *a, enum fn fn, double x, double y)
{
    switch ((int)fn) {
    case FN_ADD:
        return float_result(a, x + y);
    case FN_SUB:
        return float_result(a, x - y);
    case FN_MUL:
        return float_result(a, x * y);
    case FN_DIVIDE:
        return y == 0 ? VALUE_FAIL : float_result(a, x / y);
    case FN_MINUS:
        return value_float(a, -x);
    case FN_ABS:
        return value_float(a, fabs(x));
    case FN_FLOAT:
        return value_float(a, x);
    case FN_ROUND:
        return whole_result(a, round(x));
    case FN_TRUNC:
        return whole_result(a, trunc(x));
    case FN_FLOOR:
        return whole_result(a, floor(x));
    case FN_CEIL:
        return whole_result(a, ceil(x));
    }
    return VALUE_FAIL; /* integers only */
}

/* Negates an integer of any size. */
static struct value negate_big(struct arena *a, struct value v)
{
    const size_t len = 3 + (size_t)wire_u16(v.at + 1);
    uint8_t *copy = arena_alloc(a, len);

    memcpy(copy, v.at, len);
    copy[0] = *v.at == ETW_T_BIGPOS ? ETW_T_BIGNEG : ETW_T_BIGPOS;
    return (struct value){.at = copy, .env = v.env};
}

static struct value apply_number(const struct guard_call *c)
{
    const struct value *a = c->a;
    int64_t x, y = 0;
    double d[2] = {0};

    for (size_t i = 0; i < c->n; i++) {
        if (wire_class(a[i].at) != WIRE_NUMBER)
            return VALUE_FAIL;
        if (c->fn == FN_PLUS)
            return a[0];
        if (c->fn == FN_MINUS && (*a[0].at == ETW_T_BIGPOS || *a[0].at == ETW_T_BIGNEG))
            return negate_big(c->arena, a[0]);
        if (!as_double(a[i], &d[i]))
            return VALUE_DONT_KNOW; /* an integer of more than 64 bits */
    }
    if (wire_int(a[0].at, &x) && (c->n < 2 || wire_int(a[1].at, &y)))
        return apply_integers(c->arena, c->fn, x, y);
    return apply_floats(c->arena, c->fn, d[0], d[1]);
}

/* ---- parts of terms ---- */

/* Returns the part of a term, or an unknown value if the part was cut. */
static struct value known_part(struct value part)
{
    return wire_class(part.at) == WIRE_NOTHING ? VALUE_DONT_KNOW : part;
}

static struct value list_part(const struct guard_call *c)
{
    struct arena *arena = c->arena;
    const enum fn fn = c->fn;
    const struct value v = c->a[0];
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
        return value_take(arena, &b);
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
    return value_take(arena, &b);
}

static struct value size_of(const struct guard_call *c)
{
    struct arena *arena = c->arena;
    const enum fn fn = c->fn;
    const struct value v = c->a[0];
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

static struct value tuple_element(const struct guard_call *c)
{
    const struct value index = c->a[0], tuple = c->a[1];
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

static struct value in_map(const struct guard_call *c)
{
    const struct value *a = c->a;
    bool unknown;

    if (wire_class(a[1].at) != WIRE_MAP)
        return VALUE_FAIL;
    const uint8_t *found = wire_map_find(a[1].env, a[1].at, a[0].env, a[0].at, &unknown);
    if (c->fn == FN_IS_MAP_KEY)
        return found ? value_bool(true) : unknown ? VALUE_DONT_KNOW : value_bool(false);
    if (!found)
        return unknown ? VALUE_DONT_KNOW : VALUE_FAIL;
    return known_part((struct value){.at = found, .env = a[1].env});
}

static struct value bin_part(const struct guard_call *c)
{
    const struct value *a = c->a;
    struct raw bytes;
    uint64_t size;
    int64_t from, len;
    uint32_t arity;
    const uint8_t *range = a[1].at;

    if (!wire_bin(a[0].at, &bytes, &size))
        return VALUE_FAIL;
    if (c->n == 2) {
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
    return value_bin(c->arena, (struct str){raw_view(bytes).at + from, (size_t)len});
}

/* Appends an atom as the VM prints it. Returns false if the name has characters that the VM may escape. */
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

/* Evaluates is_record(T, Module, Name) on the text of a native record: #module:name{...} */
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

static struct value is_record(const struct guard_call *c)
{
    const struct value *a = c->a;
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

static struct value in_range(const struct guard_call *c)
{
    const struct value *a = c->a;

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

static struct value home_of(const struct guard_call *c)
{
    const struct value v = c->a[0];
    const enum wire_class class = wire_class(v.at);

    if (class != WIRE_PID && class != WIRE_PORT && class != WIRE_REF)
        return VALUE_FAIL;
    /* A remote pid, port or reference is captured as text only, so its node is not known. */
    return *v.at != ETW_T_TEXT && c->node.len ? value_atom(c->arena, c->node) : VALUE_DONT_KNOW;
}

/* ---- the functions ---- */

static const struct {
    struct value (*apply)(const struct guard_call *c);
    int row;
} rows[FN_COUNT] = {
    [FN_IS_ATOM] = {in_class, 1 << WIRE_ATOM},
    [FN_IS_NUMBER] = {in_class, 1 << WIRE_NUMBER},
    [FN_IS_PID] = {in_class, 1 << WIRE_PID},
    [FN_IS_PORT] = {in_class, 1 << WIRE_PORT},
    [FN_IS_REFERENCE] = {in_class, 1 << WIRE_REF},
    [FN_IS_TUPLE] = {in_class, 1 << WIRE_TUPLE},
    [FN_IS_MAP] = {in_class, 1 << WIRE_MAP},
    [FN_IS_BITSTRING] = {in_class, 1 << WIRE_BITS},
    [FN_IS_FUNCTION] = {in_class, 1 << WIRE_FUN},
    [FN_IS_LIST] = {in_class, 1 << WIRE_LIST | 1 << WIRE_NIL},
    [FN_IS_FLOAT] = {has_tag, ETW_T_FLOAT},
    [FN_IS_BINARY] = {has_tag, ETW_T_BIN},
    [FN_IS_INTEGER] = {.apply = is_int_value},
    [FN_IS_BOOLEAN] = {.apply = is_bool_value},
    [FN_IS_FUNCTION2] = {.apply = is_fun_of},
    [FN_IS_INTEGER3] = {.apply = in_range},
    [FN_IS_RECORD] = {.apply = is_record},
    [FN_GT] = {compare_values, MORE},
    [FN_GE] = {compare_values, MORE | SAME},
    [FN_LT] = {compare_values, LESS},
    [FN_LE] = {compare_values, LESS | SAME},
    [FN_EQ] = {compare_values, SAME},
    [FN_NE] = {compare_values, LESS | MORE},
    [FN_EQ_EXACT] = {compare_values, SAME | EXACT},
    [FN_NE_EXACT] = {compare_values, LESS | MORE | EXACT},
    [FN_MIN] = {pick_extreme, WIRE_GREATER},
    [FN_MAX] = {pick_extreme, WIRE_LESS},
    [FN_AND... FN_ORELSE] = {.apply = join_values},
    [FN_NOT] = {.apply = negate_test},
    [FN_XOR] = {.apply = exclusive_or},
    [FN_ABS] = {.apply = apply_number},
    [FN_ROUND... FN_FLOAT] = {.apply = apply_number},
    [FN_ADD... FN_BNOT] = {.apply = apply_number},
    [FN_HD... FN_LENGTH] = {.apply = list_part},
    [FN_SIZE... FN_TUPLE_SIZE] = {.apply = size_of},
    [FN_MAP_SIZE] = {.apply = size_of},
    [FN_IS_MAP_KEY] = {.apply = in_map},
    [FN_MAP_GET] = {.apply = in_map},
    [FN_ELEMENT] = {.apply = tuple_element},
    [FN_BINARY_PART] = {.apply = bin_part},
    [FN_NODE1] = {.apply = home_of},
};

bool guard_has(enum fn fn)
{
    return fn != FN_NONE && rows[fn].apply;
}

struct value guard_apply(struct arena *arena, enum fn fn, const struct value *a, size_t n, struct raw node)
{
    const struct guard_call c = {arena, fn, a, n, node, rows[fn].row};
    struct value open = {.state = VALUE_TERM};

    for (size_t i = 0; i < n && rows[fn].apply != join_values; i++) {
        if (a[i].state == VALUE_FAILED)
            return a[i];
        if (value_is_undecided(a[i]) && open.state != VALUE_LATER)
            open = a[i];
        else if (a[i].state == VALUE_TERM && wire_class(a[i].at) == WIRE_NOTHING && open.state == VALUE_TERM)
            open = VALUE_DONT_KNOW;
    }
    return open.state == VALUE_TERM ? rows[fn].apply(&c) : open;
}

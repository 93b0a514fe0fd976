/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates expressions whose operands are constant, so that check can report a guard that never holds. fold() does not
 * change the tree. It returns "not known" whenever the result is not certain.
 */
#include <math.h>
#include <string.h>

#include "check.h"

enum order { LESS = -1, SAME = 0, MORE = 1, UNKNOWN = 2 };

static int type_rank(term_t t)
{
    switch (t->type) {
    case TERM_INT:
    case TERM_BIG:
    case TERM_FLOAT:
        return 0;
    case TERM_ATOM:
        return 1;
    case TERM_REF:
        return 2;
    case TERM_EXPORT:
        return 3;
    case TERM_PORT:
        return 4;
    case TERM_PID:
        return 5;
    case TERM_TUPLE:
        return 6;
    case TERM_MAP:
        return 7;
    case TERM_LIST:
        return t->count ? 9 : 8;
    case TERM_BIN:
        return 10;
    }
    return 11;
}

static enum order order_of(term_t a, term_t b);

static enum order order_numbers(term_t a, term_t b)
{
    if (a->type == TERM_BIG || b->type == TERM_BIG)
        return UNKNOWN;
    if (a->type == TERM_INT && b->type == TERM_INT)
        return a->integer < b->integer ? LESS : a->integer > b->integer ? MORE : SAME;
    if ((a->type == TERM_INT && (a->integer > (1LL << 52) || a->integer < -(1LL << 52))) ||
        (b->type == TERM_INT && (b->integer > (1LL << 52) || b->integer < -(1LL << 52))))
        return UNKNOWN;
    double x = a->type == TERM_INT ? (double)a->integer : a->real,
           y = b->type == TERM_INT ? (double)b->integer : b->real;
    return x < y ? LESS : x > y ? MORE : SAME;
}

static enum order order_text(struct str a, struct str b)
{
    const int order = str_order(a, b);

    return order < 0 ? LESS : order > 0 ? MORE : SAME;
}

static enum order order_items(term_t a, term_t b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        enum order o = order_of(a->items[i], b->items[i]);
        if (o != SAME)
            return o;
    }
    if (a->tail || b->tail)
        return UNKNOWN;
    return a->count < b->count ? LESS : a->count > b->count ? MORE : SAME;
}

static enum order order_of(term_t a, term_t b)
{
    int ra = type_rank(a), rb = type_rank(b);

    if (ra != rb)
        return ra < rb ? LESS : MORE;
    switch (ra) {
    case 0:
        return order_numbers(a, b);
    case 1:
        return order_text(a->text, b->text);
    case 6:
        if (a->count != b->count)
            return a->count < b->count ? LESS : MORE;
        return order_items(a, b);
    case 8:
    case 9:
        return order_items(a, b);
    case 10:
        return a->bits == b->bits ? order_text(a->text, b->text) : UNKNOWN;
    }
    return term_equal(a, b) ? SAME : UNKNOWN;
}

static bool is_bool(term_t t)
{
    return term_is_atom(t, "true") || term_is_atom(t, "false");
}

static bool fold_is_true(term_t t)
{
    return term_is_atom(t, "true");
}

static term_t fold_compare(struct arena *a, enum fn fn, term_t x, term_t y)
{
    if (fn == FN_EQ_EXACT || fn == FN_NE_EXACT) {
        bool zero = x->type == TERM_FLOAT && y->type == TERM_FLOAT && x->real == 0 && y->real == 0;
        if (zero || x->type == TERM_REF || x->type == TERM_PID || x->type == TERM_PORT)
            return NULL;
        return term_bool(a, term_equal(x, y) == (fn == FN_EQ_EXACT));
    }
    enum order o = order_of(x, y);
    if (o == UNKNOWN)
        return NULL;
    bool result = fn == FN_EQ   ? o == SAME
                  : fn == FN_NE ? o != SAME
                  : fn == FN_LT ? o == LESS
                  : fn == FN_LE ? o != MORE
                  : fn == FN_GT ? o == MORE
                                : o != LESS;
    return term_bool(a, result);
}

static term_t fold_integers(struct arena *a, enum fn fn, int64_t l, int64_t r)
{
    int64_t v = 0;

    if (fn == FN_ADD)
        return __builtin_add_overflow(l, r, &v) ? NULL : term_int(a, v);
    if (fn == FN_SUB)
        return __builtin_sub_overflow(l, r, &v) ? NULL : term_int(a, v);
    if (fn == FN_MUL)
        return __builtin_mul_overflow(l, r, &v) ? NULL : term_int(a, v);
    if (fn == FN_DIV)
        return r == 0 || (r == -1 && l == INT64_MIN) ? NULL : term_int(a, l / r);
    if (fn == FN_REM)
        return r == 0 ? NULL : term_int(a, r == -1 ? 0 : l % r);
    if (fn == FN_BAND)
        return term_int(a, l & r);
    if (fn == FN_BOR)
        return term_int(a, l | r);
    if (fn == FN_BXOR)
        return term_int(a, l ^ r);
    if (fn == FN_BSL)
        return r < 0 || r > 40 || l > 1 << 20 || l < -(1 << 20) ? NULL : term_int(a, l * ((int64_t)1 << r));
    return r < 0 ? NULL : term_int(a, r > 62 ? (l < 0 ? -1 : 0) : l >> r); /* FN_BSR */
}

/* Callers have excluded a zero divisor: check reports it. */
static term_t fold_arithmetic(struct arena *a, enum fn fn, term_t x, term_t y)
{
    if (x->type == TERM_FLOAT || y->type == TERM_FLOAT || fn == FN_DIVIDE) {
        if (x->type == TERM_BIG || y->type == TERM_BIG)
            return NULL;
        double f = x->type == TERM_INT ? (double)x->integer : x->real;
        double g = y->type == TERM_INT ? (double)y->integer : y->real;
        double d = fn == FN_ADD ? f + g : fn == FN_SUB ? f - g : fn == FN_MUL ? f * g : 0;
        if (fn == FN_DIVIDE)
            d = f / g;
        return isfinite(d) ? term_float(a, d) : NULL;
    }
    if (x->type != TERM_INT || y->type != TERM_INT)
        return NULL;
    return fold_integers(a, fn, x->integer, y->integer);
}

/* Negates a number of any size. */
static term_t fold_negate(struct arena *a, term_t t)
{
    if (t->type == TERM_FLOAT)
        return term_float(a, -t->real);
    if (t->type == TERM_INT && t->integer != INT64_MIN)
        return term_int(a, -t->integer);
    if (t->type != TERM_BIG)
        return NULL;
    struct term *big = arena_alloc(a, sizeof(*big));
    *big = *t;
    if (t->text.at[0] == '-') {
        big->text.at++;
        big->text.len--;
    } else {
        char *text = arena_alloc(a, t->text.len + 1);
        text[0] = '-';
        memcpy(text + 1, t->text.at, t->text.len);
        big->text = (struct str){text, t->text.len + 1};
    }
    return big;
}

static term_t fold_logic(struct arena *a, enum fn fn, const term_t *args, size_t count)
{
    bool v = fold_is_true(args[0]);

    for (size_t i = 0; i < count; i++)
        if (!is_bool(args[i]))
            return NULL;
    for (size_t i = 1; i < count; i++) {
        bool w = fold_is_true(args[i]);
        v = fn == FN_AND || fn == FN_ANDALSO ? v && w : fn == FN_XOR ? v != w : v || w;
    }
    return term_bool(a, v);
}

static term_t fold_list(struct arena *a, enum fn fn, term_t t, bool *ret_fails)
{
    if (fn == FN_LENGTH) {
        *ret_fails = t->tail != NULL;
        return *ret_fails ? NULL : term_int(a, (int64_t)t->count);
    }
    *ret_fails = !t->count;
    if (!t->count)
        return NULL;
    return fn == FN_HD ? t->items[0] : term_list(a, t->count - 1, t->items + 1, t->tail);
}

static term_t fold_element(const term_t *args, bool *ret_fails)
{
    int64_t i = args[0]->integer;

    *ret_fails = i < 1 || (uint64_t)i > args[1]->count;
    return *ret_fails ? NULL : args[1]->items[i - 1];
}

static term_t type_test(struct arena *a, enum fn fn, term_t t)
{
    static const struct {
        enum fn fn;
        unsigned types;
    } tests[] = {
        {FN_IS_ATOM, TY_ATOM | TY_BOOL},
        {FN_IS_FLOAT, TY_FLOAT},
        {FN_IS_INTEGER, TY_INT},
        {FN_IS_LIST, TY_LIST},
        {FN_IS_NUMBER, TY_INT | TY_FLOAT},
        {FN_IS_PID, TY_PID},
        {FN_IS_PORT, TY_PORT},
        {FN_IS_REFERENCE, TY_REF},
        {FN_IS_TUPLE, TY_TUPLE},
        {FN_IS_MAP, TY_MAP},
        {FN_IS_BITSTRING, TY_BIN},
        {FN_IS_BOOLEAN, TY_BOOL},
        {FN_IS_FUNCTION, TY_FUN},
    };

    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        if (tests[i].fn == fn)
            return term_bool(a, (tests[i].types & term_types(t)) != 0);
    if (fn == FN_IS_BINARY)
        return term_bool(a, t->type == TERM_BIN && (t->bits == 8 || !t->text.len));
    return NULL;
}

unsigned term_types(term_t t)
{
    static const unsigned types[] = {
        [TERM_ATOM] = TY_ATOM, [TERM_INT] = TY_INT,     [TERM_BIG] = TY_INT,   [TERM_FLOAT] = TY_FLOAT,
        [TERM_BIN] = TY_BIN,   [TERM_TUPLE] = TY_TUPLE, [TERM_LIST] = TY_LIST, [TERM_MAP] = TY_MAP,
        [TERM_PID] = TY_PID,   [TERM_PORT] = TY_PORT,   [TERM_REF] = TY_REF,   [TERM_EXPORT] = TY_FUN,
    };

    return is_bool(t) ? TY_BOOL : types[t->type];
}

term_t fold(struct arena *a, enum fn fn, const term_t *args, size_t count, bool *ret_fails)
{
    *ret_fails = false;
    if (fn == FN_ANDALSO || fn == FN_ORELSE) { /* one known operand may decide the result */
        term_t decides = term_bool(a, fn == FN_ORELSE);
        for (size_t i = 0; i < count; i++)
            if (args[i] && term_equal(args[i], decides))
                return fn == FN_ANDALSO || i == 0 ? decides : NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (fn == FN_AND && args[i] && term_is_atom(args[i], "false"))
            return args[i];
        if (!args[i])
            return NULL;
    }
    switch (fn) {
    case FN_GT:
    case FN_GE:
    case FN_LT:
    case FN_LE:
    case FN_EQ_EXACT:
    case FN_EQ:
    case FN_NE_EXACT:
    case FN_NE:
        return fold_compare(a, fn, args[0], args[1]);
    case FN_NOT:
        return is_bool(args[0]) ? term_bool(a, !fold_is_true(args[0])) : NULL;
    case FN_AND:
    case FN_OR:
    case FN_XOR:
    case FN_ANDALSO:
    case FN_ORELSE:
        return fold_logic(a, fn, args, count);
    case FN_MINUS:
        return fold_negate(a, args[0]);
    case FN_PLUS:
        return args[0];
    case FN_BNOT:
        return args[0]->type == TERM_INT ? term_int(a, ~args[0]->integer) : NULL;
    case FN_ADD:
    case FN_SUB:
    case FN_MUL:
    case FN_DIVIDE:
    case FN_DIV:
    case FN_REM:
    case FN_BAND:
    case FN_BOR:
    case FN_BXOR:
    case FN_BSL:
    case FN_BSR:
        return fold_arithmetic(a, fn, args[0], args[1]);
    case FN_LENGTH:
    case FN_HD:
    case FN_TL:
        return fold_list(a, fn, args[0], ret_fails);
    case FN_ELEMENT:
        return args[0]->type == TERM_INT ? fold_element(args, ret_fails) : NULL;
    case FN_TUPLE_SIZE:
        return term_int(a, (int64_t)args[0]->count);
    case FN_MAP_SIZE:
        return term_int(a, (int64_t)args[0]->count / 2);
    case FN_BYTE_SIZE:
        return term_int(a, (int64_t)args[0]->text.len);
    case FN_SIZE:
        return term_int(a, args[0]->type == TERM_BIN ? (int64_t)args[0]->text.len : (int64_t)args[0]->count);
    case FN_IS_ATOM:
    case FN_IS_FLOAT:
    case FN_IS_INTEGER:
    case FN_IS_LIST:
    case FN_IS_NUMBER:
    case FN_IS_PID:
    case FN_IS_PORT:
    case FN_IS_REFERENCE:
    case FN_IS_TUPLE:
    case FN_IS_MAP:
    case FN_IS_BINARY:
    case FN_IS_BITSTRING:
    case FN_IS_BOOLEAN:
    case FN_IS_FUNCTION:
        return type_test(a, fn, args[0]);
    case FN_IS_INTEGER3:
    case FN_IS_FUNCTION2:
    case FN_IS_RECORD:
    case FN_IS_MAP_KEY:
    case FN_MAP_GET:
    case FN_ABS:
    case FN_BIT_SIZE:
    case FN_ROUND:
    case FN_TRUNC:
    case FN_FLOOR:
    case FN_CEIL:
    case FN_FLOAT:
    case FN_MIN:
    case FN_MAX:
    case FN_BINARY_PART:
    case FN_NODE:
    case FN_NODE1:
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
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "where_steps.h"

#include <string.h>

#include "../../nif/etrace_wire.h"
#include "../lang/functions.h"

static void where_steps_add(struct buf *to, enum etw_filter_what what, enum etw_filter_compare compare, int64_t value)
{
    struct etw_filter_step s = {.what = (uint8_t)what, .compare = (uint8_t)compare, .value = value};

    buf_add(to, &s, sizeof(s));
}

/* The comparison with its operands swapped. */
static enum etw_filter_compare turned(enum etw_filter_compare c)
{
    switch (c) {
    case ETW_FILTER_GT:
        return ETW_FILTER_LT;
    case ETW_FILTER_GE:
        return ETW_FILTER_LE;
    case ETW_FILTER_LT:
        return ETW_FILTER_GT;
    case ETW_FILTER_LE:
        return ETW_FILTER_GE;
    case ETW_FILTER_EQ:
    case ETW_FILTER_NE:
    case ETW_FILTER_COMPARES:
        break;
    }
    return c;
}

static bool comparison(int fn, enum etw_filter_compare *ret)
{
    switch (fn) {
    case FN_GT:
        *ret = ETW_FILTER_GT;
        return true;
    case FN_GE:
        *ret = ETW_FILTER_GE;
        return true;
    case FN_LT:
        *ret = ETW_FILTER_LT;
        return true;
    case FN_LE:
        *ret = ETW_FILTER_LE;
        return true;
    case FN_EQ:
    case FN_EQ_EXACT:
        *ret = ETW_FILTER_EQ;
        return true;
    case FN_NE:
    case FN_NE_EXACT:
        *ret = ETW_FILTER_NE;
        return true;
    default:
        return false;
    }
}

static bool class_of(term_t t, int64_t *ret)
{
    static const char *const names[ETW_CLASSES] = {"error", "exit", "throw"};

    for (int64_t i = 0; i < ETW_CLASSES; i++)
        if (term_is_atom(t, names[i])) {
            *ret = i;
            return true;
        }
    return false;
}

static bool where_steps_test(const struct where *name, term_t constant, enum etw_filter_compare c, struct buf *to)
{
    int64_t class;

    switch (name->name) {
    case PROPERTY_dur:
    case PROPERTY_size:
        if (constant->type != TERM_INT)
            return false;
        where_steps_add(to, name->name == PROPERTY_dur ? ETW_FILTER_DUR : ETW_FILTER_SIZE, c, constant->integer);
        return true;
    case PROPERTY_class:
        if (c < ETW_FILTER_EQ || !class_of(constant, &class))
            return false;
        where_steps_add(to, ETW_FILTER_CLASS, c, class);
        return true;
    default:
        return false;
    }
}

static bool steps(const struct where *w, struct buf *to);

static bool all_of(const struct where *const *items, size_t n, enum etw_filter_what operator, struct buf * to)
{
    for (size_t i = 0; i < n; i++) {
        if (!steps(items[i], to))
            return false;
        if (i)
            where_steps_add(to, operator, 0, 0);
    }
    return n > 0;
}

static bool steps(const struct where *w, struct buf *to)
{
    enum etw_filter_compare c;

    if (w->type != WHERE_CALL || to->len > ETW_FILTER_MOST * sizeof(struct etw_filter_step))
        return false;
    switch (w->name) {
    case FN_AND:
    case FN_ANDALSO:
        return all_of(w->items, w->count, ETW_FILTER_AND, to);
    case FN_OR:
    case FN_ORELSE:
        return all_of(w->items, w->count, ETW_FILTER_OR, to);
    case FN_XOR:
        return w->count == 2 && all_of(w->items, w->count, ETW_FILTER_XOR, to);
    case FN_NOT:
        if (w->count != 1 || !steps(w->items[0], to))
            return false;
        where_steps_add(to, ETW_FILTER_NOT, 0, 0);
        return true;
    default:
        break;
    }
    if (w->count != 2 || !comparison(w->name, &c))
        return false;
    const struct where *left = w->items[0], *right = w->items[1];
    if (left->type == WHERE_NAME && right->type == WHERE_CONST)
        return where_steps_test(left, right->constant, c, to);
    return left->type == WHERE_CONST && right->type == WHERE_NAME &&
           where_steps_test(right, left->constant, turned(c), to);
}

/* Copies steps from unaligned memory. Returns 0 if there are too many or if the last step is incomplete. */
static size_t copied(struct str text, struct etw_filter_step *ret)
{
    if (text.len % sizeof(*ret) || text.len > ETW_FILTER_MOST * sizeof(*ret))
        return 0;
    if (text.len)
        memcpy(ret, text.at, text.len);
    return text.len / sizeof(*ret);
}

bool where_steps(const struct where *const *wheres, size_t n, struct buf *ret_steps)
{
    struct etw_filter_step s[ETW_FILTER_MOST];

    return all_of(wheres, n, ETW_FILTER_AND, ret_steps) && etw_filter_valid(s, copied(buf_view(ret_steps), s));
}

/* Appends the steps of each part of a conjunction that the node can evaluate, joined by AND, and skips the other
 * parts. */
static void parts(const struct where *w, size_t *count, struct buf *to)
{
    size_t before = to->len;

    if (w->type == WHERE_CALL && (w->name == FN_AND || w->name == FN_ANDALSO)) {
        for (size_t i = 0; i < w->count; i++)
            parts(w->items[i], count, to);
    } else if (!steps(w, to)) {
        to->len = before;
    } else if ((*count)++) {
        where_steps_add(to, ETW_FILTER_AND, 0, 0);
    }
}

bool where_steps_some(const struct where *const *wheres, size_t n, struct buf *ret_steps)
{
    struct etw_filter_step s[ETW_FILTER_MOST];
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        parts(wheres[i], &count, ret_steps);
    return count && etw_filter_valid(s, copied(buf_view(ret_steps), s));
}

bool where_steps_measure(struct str text)
{
    struct etw_filter_step s[ETW_FILTER_MOST];

    return etw_filter_measures(s, copied(text, s));
}

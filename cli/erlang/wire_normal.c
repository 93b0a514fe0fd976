/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes encoded terms in a normal form: equal terms have the same bytes, however they are encoded. Two terms that were
 * cut have the same bytes if their captured parts are equal.
 */
#include <stdlib.h>

#include "../ground/mem.h"
#include "wire_order.h"

static void normal_token(struct buf *to, uint8_t tag, const void *bytes, size_t n)
{
    buf_char(to, (char)tag);
    buf_add(to, bytes, n);
}

/* Writes the tag, a length of 16 bits, and the bytes. */
static void normal_sized(struct buf *to, uint8_t tag, struct raw bytes)
{
    const uint16_t len = (uint16_t)bytes.len;

    normal_token(to, tag, &len, sizeof(len));
    buf_str(to, raw_view(bytes));
}

static void normal_whole(struct buf *to, int64_t n)
{
    if (n >= 0 && n < 0x80)
        buf_char(to, (char)n);
    else
        normal_token(to, ETW_T_INT64, &n, sizeof(n));
}

static void normal_number(struct buf *to, const uint8_t *at)
{
    int64_t n;

    if (wire_whole(at, &n)) {
        normal_whole(to, n);
        return;
    }
    if (*at != ETW_T_BIGPOS && *at != ETW_T_BIGNEG) {
        buf_add(to, at, (size_t)(wire_token(at) - at));
        return;
    }
    size_t digits = wire_u16(at + 1);
    while (digits && !at[2 + digits])
        digits--;
    normal_sized(to, *at, raw_bytes(at + 3, digits));
}

/* Returns true if the term is a proper list of 1 to UINT16_MAX integers from 0 to 255. */
static bool is_string(const uint8_t *at)
{
    const uint8_t *next = at, *el;
    size_t count = 0;
    int64_t n;

    if (*at != ETW_T_LIST || !wire_list(&next))
        return false;
    for (; (el = wire_list_next(&next)); count++)
        if (count == UINT16_MAX || !wire_whole(el, &n) || n < 0 || n > UINT8_MAX)
            return false;
    return count && *next == ETW_T_END;
}

static void normal_string(struct buf *to, const uint8_t *at)
{
    const uint8_t *el;
    const size_t head = to->len;
    uint16_t count = 0;
    int64_t n = 0;

    normal_token(to, ETW_T_STRING, &count, sizeof(count));
    for (wire_list(&at); (el = wire_list_next(&at)); count++) {
        wire_whole(el, &n);
        buf_char(to, (char)n);
    }
    memcpy(to->data + head + 1, &count, sizeof(count));
}

static void normal_list(struct buf *to, const struct term_env *env, const uint8_t *at)
{
    const uint8_t *el;

    if (wire_class(at) == WIRE_NIL) {
        buf_char(to, (char)ETW_T_NIL);
        return;
    }
    if (*at == ETW_T_STRING) {
        buf_add(to, at, (size_t)(wire_token(at) - at));
        return;
    }
    if (is_string(at)) {
        normal_string(to, at);
        return;
    }
    buf_char(to, (char)ETW_T_LIST);
    for (wire_list(&at); (el = wire_list_next(&at));)
        wire_normal(to, env, el);
    buf_char(to, (char)*at);
    if (*at == ETW_T_TAIL)
        wire_normal(to, env, at + 1);
}

/* Writes the captured terms, and a mark for the end of a container that was cut. */
static void normal_items(struct buf *to, const struct term_env *env, const uint8_t *at, int64_t captured, uint64_t all)
{
    for (int64_t i = 0; i < captured; i++, at = wire_skip(at))
        wire_normal(to, env, at);
    if ((uint64_t)captured < all)
        buf_char(to, (char)ETW_T_CUT);
}

static void normal_tuple(struct buf *to, const struct term_env *env, const uint8_t *at)
{
    uint32_t arity;
    const uint8_t *first;
    const int64_t captured = wire_tuple(at, &arity, &first);

    if (arity < 32)
        buf_char(to, (char)(ETW_T_TUPLE0 + arity));
    else
        normal_token(to, ETW_T_TUPLE, &arity, sizeof(arity));
    normal_items(to, env, first, captured, arity);
}

/* A whole pair of a map, in normal form. */
struct pair {
    size_t at, len; /* offset and length in the buffer of normal_map() */
};

/* Compares two pairs by their normal forms, integers by value and atoms by name. This is a total order. */
static int compare_pairs(const void *a, const void *b, void *data)
{
    const struct pair *p = a, *q = b;
    const char *base = data;
    const uint8_t *x = (const uint8_t *)base + p->at, *y = (const uint8_t *)base + q->at;
    const size_t skipped = *x == *y && *x == ETW_T_ATOMTEXT ? 3 : 0; /* skip the length */
    int64_t m, n;

    if (wire_whole(x, &m) && wire_whole(y, &n) && m != n)
        return m < n ? -1 : 1;
    const int order = memcmp(x + skipped, y + skipped, MIN(p->len, q->len) - skipped);
    if (order || p->len != q->len)
        return order ? order : p->len < q->len ? -1 : 1;
    return memcmp(x, y, p->len);
}

/* Writes the pairs sorted by compare_pairs(). The node's order of pairs depends on when its atoms were created. */
static void normal_map(struct buf *to, const struct term_env *env, const uint8_t *at)
{
    uint32_t pairs;
    const uint8_t *key;
    const int64_t captured = wire_map(at, &pairs, &key);
    struct buf items = {0};
    struct pair few[32], *order = captured > 32 ? mem_zalloc((size_t)captured * sizeof(*order)) : few;

    normal_token(to, ETW_T_MAP, &pairs, sizeof(pairs));
    for (int64_t i = 0; i < captured; i++) {
        order[i].at = items.len;
        wire_normal(&items, env, key);
        key = wire_skip(key);
        wire_normal(&items, env, key);
        key = wire_skip(key);
        order[i].len = items.len - order[i].at;
    }
    if (captured)
        qsort_r(order, (size_t)captured, sizeof(*order), compare_pairs, items.data);
    for (int64_t i = 0; i < captured; i++)
        buf_add(to, items.data + order[i].at, order[i].len);
    if (captured < (int64_t)pairs && *key != ETW_T_CUT) /* the value of this key was cut */
        wire_normal(to, env, key);
    if (captured < (int64_t)pairs)
        buf_char(to, (char)ETW_T_CUT);
    buf_release(&items);
    if (order != few)
        free(order);
}

void wire_normal(struct buf *to, const struct term_env *env, const uint8_t *at)
{
    struct raw text;

    switch (wire_class(at)) {
    case WIRE_NUMBER:
        normal_number(to, at);
        return;
    case WIRE_ATOM:
        wire_atom_text(env, at, &text);
        normal_sized(to, ETW_T_ATOMTEXT, text);
        return;
    case WIRE_TUPLE:
        normal_tuple(to, env, at);
        return;
    case WIRE_MAP:
        normal_map(to, env, at);
        return;
    case WIRE_NIL:
    case WIRE_LIST:
        normal_list(to, env, at);
        return;
    case WIRE_REF:
    case WIRE_FUN:
    case WIRE_PORT:
    case WIRE_PID:
    case WIRE_RECORD:
    case WIRE_BITS:
    case WIRE_NOTHING:
        buf_add(to, at, (size_t)(wire_token(at) - at));
        return;
    }
}

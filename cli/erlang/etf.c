/* SPDX-License-Identifier: Apache-2.0 */
#include "etf.h"

#include <math.h>
#include <string.h>

enum {
    TAG_NEW_FLOAT = 70,
    TAG_BIT_BINARY = 77,
    TAG_NEW_PID = 88,
    TAG_NEW_PORT = 89,
    TAG_NEWER_REF = 90,
    TAG_SMALL_INT = 97,
    TAG_INT = 98,
    TAG_ATOM = 100,
    TAG_PORT = 102,
    TAG_PID = 103,
    TAG_SMALL_TUPLE = 104,
    TAG_LARGE_TUPLE = 105,
    TAG_NIL = 106,
    TAG_STRING = 107,
    TAG_LIST = 108,
    TAG_BINARY = 109,
    TAG_SMALL_BIG = 110,
    TAG_LARGE_BIG = 111,
    TAG_NEW_FUN = 112,
    TAG_EXPORT = 113,
    TAG_NEW_REF = 114,
    TAG_SMALL_ATOM = 115,
    TAG_MAP = 116,
    TAG_ATOM_UTF8 = 118,
    TAG_SMALL_ATOM_UTF8 = 119,
    TAG_V4_PORT = 120,
};

void etf_open(struct etf *r, const void *bytes, size_t len)
{
    *r = (struct etf){.at = bytes, .end = len ? (const unsigned char *)bytes + len : bytes}; /* NULL has the length 0 */
}

bool etf_open_version(struct etf *r, const void *bytes, size_t len)
{
    etf_open(r, bytes, len);
    if (len && *r->at == 131)
        r->at++;
    else
        r->failed = true;
    return !r->failed;
}

bool etf_done(const struct etf *r)
{
    return !r->failed && r->at == r->end;
}

static bool etf_fail(struct etf *r)
{
    r->failed = true;
    return false;
}

static bool etf_need_bytes(struct etf *r, size_t n)
{
    return (size_t)(r->end - r->at) >= n || etf_fail(r);
}

/* Reads a big-endian number of n bytes. Returns 0 and sets `failed` when fewer bytes are left. */
static uint64_t etf_number(struct etf *r, unsigned n)
{
    uint64_t value = 0;

    if (!etf_need_bytes(r, n))
        return 0;
    while (n--)
        value = value << 8 | *r->at++;
    return value;
}

static bool etf_read_text(struct etf *r, size_t len, struct raw *ret)
{
    if (r->failed || !etf_need_bytes(r, len))
        return false;
    *ret = raw_bytes(r->at, len);
    r->at += len;
    return true;
}

/*
 * Sets the number of elements of a container. Each element takes at least `each` bytes. Fails if the remaining bytes
 * cannot hold that many elements.
 */
static bool etf_set_count(struct etf *r, uint64_t count, uint64_t each, struct etf_head *h)
{
    if (r->failed || count * each > (uint64_t)(r->end - r->at))
        return etf_fail(r);
    h->count = (size_t)count;
    return true;
}

static bool etf_read_atom(struct etf *r, unsigned length_bytes, bool latin1, struct etf_head *h)
{
    h->type = ETF_ATOM;
    if (!etf_read_text(r, (size_t)etf_number(r, length_bytes), &h->text) || h->text.len > 1020)
        return etf_fail(r);
    for (size_t i = 0; latin1 && i < h->text.len; i++)
        h->latin1 |= (unsigned char)raw_view(h->text).at[i] > 127;
    return true;
}

static bool etf_read_any_atom(struct etf *r, struct etf_head *h)
{
    unsigned tag = (unsigned)etf_number(r, 1);

    switch (tag) {
    case TAG_ATOM:
    case TAG_ATOM_UTF8:
        return etf_read_atom(r, 2, tag == TAG_ATOM, h);
    case TAG_SMALL_ATOM:
    case TAG_SMALL_ATOM_UTF8:
        return etf_read_atom(r, 1, tag == TAG_SMALL_ATOM, h);
    default:
        return etf_fail(r);
    }
}

static bool etf_read_big(struct etf *r, unsigned length_bytes, struct etf_head *h)
{
    size_t len = (size_t)etf_number(r, length_bytes);
    uint64_t value = 0;

    h->negative = etf_number(r, 1) != 0;
    if (!etf_read_text(r, len, &h->text))
        return false;
    const char *digits = raw_view(h->text).at;
    while (h->text.len && !digits[h->text.len - 1])
        h->text.len--;
    for (size_t i = h->text.len; i-- > 0 && h->text.len <= 8;)
        value = value << 8 | (unsigned char)digits[i];
    if (h->text.len > 8 || value > (uint64_t)INT64_MAX + h->negative) {
        h->type = ETF_BIG;
    } else {
        h->type = ETF_INT;
        h->integer = h->negative ? (int64_t)(0 - value) : (int64_t)value;
    }
    return true;
}

static bool etf_read_float(struct etf *r, struct etf_head *h)
{
    uint64_t bits = etf_number(r, 8);

    h->type = ETF_FLOAT;
    memcpy(&h->real, &bits, sizeof bits);
    return (!r->failed && isfinite(h->real)) || etf_fail(r);
}

static bool etf_read_ref(struct etf *r, unsigned tag, struct etf_head *h)
{
    uint32_t nwords = (uint32_t)etf_number(r, 2);

    if (r->failed || nwords == 0 || nwords > ARRAY_LEN(h->words) || !etf_read_any_atom(r, h))
        return etf_fail(r);
    h->type = ETF_REF;
    h->nwords = nwords;
    h->creation = (uint32_t)etf_number(r, tag == TAG_NEW_REF ? 1 : 4);
    for (uint32_t i = 0; i < nwords; i++)
        h->words[i] = (uint32_t)etf_number(r, 4);
    return !r->failed;
}

static bool etf_read_bits(struct etf *r, struct etf_head *h)
{
    size_t len = (size_t)etf_number(r, 4);

    h->type = ETF_BIN;
    h->bits = (unsigned)etf_number(r, 1);
    if (!etf_read_text(r, len, &h->text))
        return false;
    return (h->bits <= 8 && (h->bits == 0) == (len == 0)) || etf_fail(r);
}

static bool etf_read_identity(struct etf *r, enum etf_type type, unsigned id_bytes, unsigned serial_bytes,
                              unsigned creation_bytes, struct etf_head *h)
{
    if (!etf_read_any_atom(r, h))
        return false;
    h->type = type;
    h->id = etf_number(r, id_bytes);
    h->serial = (uint32_t)etf_number(r, serial_bytes);
    h->creation = (uint32_t)etf_number(r, creation_bytes);
    return !r->failed;
}

/* Reads a fun. Its size precedes it in four bytes, and includes these four bytes. */
static bool etf_read_fun(struct etf *r, struct etf_head *h)
{
    uint64_t size = etf_number(r, 4);

    h->type = ETF_FUN;
    return (size >= 4 && etf_read_text(r, (size_t)size - 4, &h->text)) || etf_fail(r);
}

static bool etf_read_head(struct etf *r, struct etf_head *h)
{
    unsigned tag = (unsigned)etf_number(r, 1);

    if (r->failed || ++r->terms > ETF_MAX_TERMS)
        return etf_fail(r);
    switch (tag) {
    case TAG_SMALL_INT:
        h->type = ETF_INT;
        h->integer = (int64_t)etf_number(r, 1);
        return !r->failed;
    case TAG_INT:
        h->type = ETF_INT;
        h->integer = (int32_t)(uint32_t)etf_number(r, 4);
        return !r->failed;
    case TAG_SMALL_BIG:
        return etf_read_big(r, 1, h);
    case TAG_LARGE_BIG:
        return etf_read_big(r, 4, h);
    case TAG_NEW_FLOAT:
        return etf_read_float(r, h);
    case TAG_ATOM:
    case TAG_ATOM_UTF8:
        return etf_read_atom(r, 2, tag == TAG_ATOM, h);
    case TAG_SMALL_ATOM:
    case TAG_SMALL_ATOM_UTF8:
        return etf_read_atom(r, 1, tag == TAG_SMALL_ATOM, h);
    case TAG_BINARY:
        h->type = ETF_BIN;
        h->bits = 8;
        return etf_read_text(r, (size_t)etf_number(r, 4), &h->text);
    case TAG_BIT_BINARY:
        return etf_read_bits(r, h);
    case TAG_STRING:
        h->type = ETF_STRING;
        return etf_read_text(r, (size_t)etf_number(r, 2), &h->text);
    case TAG_NIL:
        h->type = ETF_NIL;
        return true;
    case TAG_LIST:
        h->type = ETF_LIST;
        return etf_set_count(r, etf_number(r, 4), 1, h) && etf_need_bytes(r, h->count + 1);
    case TAG_SMALL_TUPLE:
    case TAG_LARGE_TUPLE:
        h->type = ETF_TUPLE;
        return etf_set_count(r, etf_number(r, tag == TAG_SMALL_TUPLE ? 1 : 4), 1, h);
    case TAG_MAP:
        h->type = ETF_MAP;
        return etf_set_count(r, etf_number(r, 4), 2, h);
    case TAG_NEW_PID:
        return etf_read_identity(r, ETF_PID, 4, 4, 4, h);
    case TAG_PID:
        return etf_read_identity(r, ETF_PID, 4, 4, 1, h);
    case TAG_V4_PORT:
        return etf_read_identity(r, ETF_PORT, 8, 0, 4, h);
    case TAG_NEW_PORT:
        return etf_read_identity(r, ETF_PORT, 4, 0, 4, h);
    case TAG_PORT:
        return etf_read_identity(r, ETF_PORT, 4, 0, 1, h);
    case TAG_NEW_REF:
    case TAG_NEWER_REF:
        return etf_read_ref(r, tag, h);
    case TAG_EXPORT:
        h->type = ETF_EXPORT;
        return etf_set_count(r, 3, 1, h);
    case TAG_NEW_FUN:
        return etf_read_fun(r, h);
    default:
        return etf_fail(r);
    }
}

bool etf_next(struct etf *r, struct etf_head *ret)
{
    struct etf_head h = {0};

    if (r->failed || !etf_read_head(r, &h))
        return false;
    *ret = h;
    return true;
}

static uint64_t etf_count_children(const struct etf_head *h)
{
    switch (h->type) {
    case ETF_LIST:
        return (uint64_t)h->count + 1;
    case ETF_TUPLE:
    case ETF_EXPORT:
        return h->count;
    case ETF_MAP:
        return 2 * (uint64_t)h->count;
    case ETF_ATOM:
    case ETF_INT:
    case ETF_BIG:
    case ETF_FLOAT:
    case ETF_BIN:
    case ETF_STRING:
    case ETF_NIL:
    case ETF_PID:
    case ETF_PORT:
    case ETF_REF:
    case ETF_FUN:
        break;
    }
    return 0;
}

bool etf_skip(struct etf *r)
{
    struct etf_head h;

    for (uint64_t left = 1; left; left--) {
        if (!etf_next(r, &h))
            return false;
        left += etf_count_children(&h);
        if (left - 1 > (uint64_t)(r->end - r->at))
            return etf_fail(r);
    }
    return true;
}

bool etf_take(struct etf *r, struct etf *ret_term)
{
    struct etf term = *r;

    if (!etf_skip(r))
        return false;
    term.end = r->at;
    term.terms = 0;
    *ret_term = term;
    return true;
}

bool etf_peek(const struct etf *r, struct etf_head *ret)
{
    struct etf copy = *r;

    return etf_next(&copy, ret);
}

bool etf_is_atom(const struct etf *r, const char *name)
{
    struct etf_head h;

    return etf_peek(r, &h) && h.type == ETF_ATOM && h.text.len == strlen(name) && !memcmp(h.text.at, name, h.text.len);
}

static bool etf_get(struct etf *r, enum etf_type type, struct etf_head *ret)
{
    return etf_next(r, ret) && (ret->type == type || etf_fail(r));
}

bool etf_get_tuple(struct etf *r, size_t arity)
{
    struct etf_head h;

    return etf_get(r, ETF_TUPLE, &h) && (h.count == arity || etf_fail(r));
}

bool etf_get_map(struct etf *r, size_t *ret_pairs)
{
    struct etf_head h;

    if (!etf_get(r, ETF_MAP, &h))
        return false;
    *ret_pairs = h.count;
    return true;
}

bool etf_get_list(struct etf *r, size_t *ret_count)
{
    struct etf_head h;

    if (!etf_next(r, &h))
        return false;
    if (h.type != ETF_LIST && h.type != ETF_NIL)
        return etf_fail(r);
    *ret_count = h.count;
    return true;
}

bool etf_get_nil(struct etf *r)
{
    struct etf_head h;

    return etf_get(r, ETF_NIL, &h);
}

bool etf_get_atom(struct etf *r, struct raw *ret)
{
    struct etf_head h;

    if (!etf_get(r, ETF_ATOM, &h))
        return false;
    *ret = h.text;
    return true;
}

bool etf_get_int(struct etf *r, int64_t *ret)
{
    struct etf_head h;

    if (!etf_get(r, ETF_INT, &h))
        return false;
    *ret = h.integer;
    return true;
}

bool etf_get_bin(struct etf *r, struct raw *ret)
{
    struct etf_head h;

    if (!etf_get(r, ETF_BIN, &h) || (h.bits != 8 && h.text.len))
        return etf_fail(r);
    *ret = h.text;
    return true;
}

bool etf_get_pid(struct etf *r, struct etf_head *ret)
{
    struct etf_head h;

    if (!etf_get(r, ETF_PID, &h))
        return false;
    *ret = h;
    return true;
}

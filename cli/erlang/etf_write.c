/* SPDX-License-Identifier: Apache-2.0 */
#include "etf_write.h"

#include <assert.h>
#include <string.h>

enum {
    TAG_VERSION = 131,
    TAG_SMALL_INTEGER = 97,
    TAG_INTEGER = 98,
    TAG_NEW_FLOAT = 70,
    TAG_SMALL_BIG = 110,
    TAG_LARGE_BIG = 111,
    TAG_SMALL_ATOM_UTF8 = 119,
    TAG_ATOM_UTF8 = 118,
    TAG_BINARY = 109,
    TAG_BIT_BINARY = 77,
    TAG_SMALL_TUPLE = 104,
    TAG_LARGE_TUPLE = 105,
    TAG_LIST = 108,
    TAG_NIL = 106,
    TAG_MAP = 116,
    TAG_NEW_PID = 88,
    TAG_NEW_PORT = 89,
    TAG_V4_PORT = 120,
    TAG_NEWER_REFERENCE = 90,
    TAG_EXPORT = 113,
};

static void etf_write_put8(struct buf *b, unsigned v)
{
    buf_char(b, (char)(unsigned char)v);
}

static void etf_write_put16(struct buf *b, unsigned v)
{
    etf_write_put8(b, v >> 8 & 255);
    etf_write_put8(b, v & 255);
}

static void etf_write_put32(struct buf *b, uint32_t v)
{
    etf_write_put16(b, v >> 16);
    etf_write_put16(b, v & 0xffff);
}

static void etf_write_put64(struct buf *b, uint64_t v)
{
    etf_write_put32(b, (uint32_t)(v >> 32));
    etf_write_put32(b, (uint32_t)v);
}

void etf_version(struct buf *b)
{
    etf_write_put8(b, TAG_VERSION);
}

void etf_atom(struct buf *b, struct str name)
{
    assert(name.len <= 65535);
    if (name.len < 256) {
        etf_write_put8(b, TAG_SMALL_ATOM_UTF8);
        etf_write_put8(b, (unsigned)name.len);
    } else {
        etf_write_put8(b, TAG_ATOM_UTF8);
        etf_write_put16(b, (unsigned)name.len);
    }
    buf_str(b, name);
}

void etf_atomz(struct buf *b, const char *name)
{
    etf_atom(b, (struct str){name, strlen(name)});
}

void etf_int(struct buf *b, int64_t value)
{
    if (value >= 0 && value < 256) {
        etf_write_put8(b, TAG_SMALL_INTEGER);
        etf_write_put8(b, (unsigned)value);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        etf_write_put8(b, TAG_INTEGER);
        etf_write_put32(b, (uint32_t)value);
    } else {
        uint64_t size = value < 0 ? ~(uint64_t)value + 1 : (uint64_t)value;
        unsigned n = 0;
        unsigned char bytes[8];
        for (; size; size >>= 8)
            bytes[n++] = (unsigned char)size;
        etf_write_put8(b, TAG_SMALL_BIG);
        etf_write_put8(b, n);
        etf_write_put8(b, value < 0);
        buf_add(b, bytes, n);
    }
}

/*
 * Writes a number of any size. Divides the decimal digits by 256 until the quotient is 0, which takes quadratic time:
 * fine for numbers that people type.
 */
void etf_big(struct buf *b, struct str decimal)
{
    bool negative = decimal.len && decimal.at[0] == '-';
    struct buf digits = {0}, bytes = {0};
    size_t first = 0;

    buf_add(&digits, decimal.at + negative, decimal.len - negative);
    while (first < digits.len) {
        unsigned rest = 0;
        for (size_t i = first; i < digits.len; i++) {
            unsigned v = rest * 10 + (unsigned)(digits.data[i] - '0');
            digits.data[i] = (char)('0' + v / 256); /* v is at most 2559, so the quotient is a single digit */
            rest = v % 256;
        }
        buf_char(&bytes, (char)(unsigned char)rest);
        while (first < digits.len && digits.data[first] == '0')
            first++;
    }
    if (bytes.len < 256) {
        etf_write_put8(b, TAG_SMALL_BIG);
        etf_write_put8(b, (unsigned)bytes.len);
    } else {
        etf_write_put8(b, TAG_LARGE_BIG);
        etf_write_put32(b, (uint32_t)bytes.len);
    }
    etf_write_put8(b, negative);
    buf_add(b, bytes.data, bytes.len);
    buf_release(&digits);
    buf_release(&bytes);
}

void etf_float(struct buf *b, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    etf_write_put8(b, TAG_NEW_FLOAT);
    etf_write_put64(b, bits);
}

void etf_bin(struct buf *b, const void *bytes, size_t len)
{
    etf_write_put8(b, TAG_BINARY);
    etf_write_put32(b, (uint32_t)len);
    buf_add(b, bytes, len);
}

void etf_bits(struct buf *b, const void *bytes, size_t len, unsigned last_bits)
{
    if (!len || last_bits == 8) {
        etf_bin(b, bytes, len);
        return;
    }
    etf_write_put8(b, TAG_BIT_BINARY);
    etf_write_put32(b, (uint32_t)len);
    etf_write_put8(b, last_bits);
    buf_add(b, bytes, len);
}

void etf_tuple(struct buf *b, size_t arity)
{
    if (arity < 256) {
        etf_write_put8(b, TAG_SMALL_TUPLE);
        etf_write_put8(b, (unsigned)arity);
    } else {
        etf_write_put8(b, TAG_LARGE_TUPLE);
        etf_write_put32(b, (uint32_t)arity);
    }
}

void etf_list(struct buf *b, size_t count)
{
    if (!count)
        return;
    etf_write_put8(b, TAG_LIST);
    etf_write_put32(b, (uint32_t)count);
}

void etf_nil(struct buf *b)
{
    etf_write_put8(b, TAG_NIL);
}

void etf_map(struct buf *b, size_t pairs)
{
    etf_write_put8(b, TAG_MAP);
    etf_write_put32(b, (uint32_t)pairs);
}

void etf_pid(struct buf *b, struct str node, uint32_t id, uint32_t serial, uint32_t creation)
{
    etf_write_put8(b, TAG_NEW_PID);
    etf_atom(b, node);
    etf_write_put32(b, id);
    etf_write_put32(b, serial);
    etf_write_put32(b, creation);
}

void etf_port(struct buf *b, struct str node, uint64_t id, uint32_t creation)
{
    etf_write_put8(b, id >> 28 ? TAG_V4_PORT : TAG_NEW_PORT);
    etf_atom(b, node);
    if (id >> 28)
        etf_write_put64(b, id);
    else
        etf_write_put32(b, (uint32_t)id);
    etf_write_put32(b, creation);
}

void etf_ref(struct buf *b, struct str node, uint32_t creation, const uint32_t *words, size_t nwords)
{
    etf_write_put8(b, TAG_NEWER_REFERENCE);
    etf_write_put16(b, (unsigned)nwords);
    etf_atom(b, node);
    etf_write_put32(b, creation);
    for (size_t i = 0; i < nwords; i++)
        etf_write_put32(b, words[i]);
}

void etf_export(struct buf *b, struct str module, struct str function, int arity)
{
    etf_write_put8(b, TAG_EXPORT);
    etf_atom(b, module);
    etf_atom(b, function);
    etf_int(b, arity);
}

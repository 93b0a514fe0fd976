/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks binaries. A literal binary becomes its bytes. A pattern with a fixed beginning and a rest becomes one of the
 * few forms that a match specification can decide by size and binary_part.
 */
#include <math.h>
#include <string.h>

#include "../ground/utf8.h"
#include "check.h"

#define MAX_BITS (64 * 1024 * 8)

struct bits {
    unsigned char *bytes;
    size_t count, cap; /* count: number of bits in use; cap: number of bytes allocated */
};

static bool put_bit(struct check *k, struct bits *b, unsigned bit, const struct ast *at)
{
    if (b->count >= MAX_BITS)
        return diag(k->c, at->from, at->len, "the binary is too large");
    if (b->count / 8 >= b->cap) {
        size_t cap = b->cap ? b->cap * 2 : 32;
        unsigned char *bytes = arena_alloc(k->c->arena, cap);
        if (b->cap)
            memcpy(bytes, b->bytes, b->cap);
        b->bytes = bytes;
        b->cap = cap;
    }
    if (bit)
        b->bytes[b->count / 8] |= (unsigned char)(0x80 >> b->count % 8);
    b->count++;
    return true;
}

static bool put_bytes(struct check *k, struct bits *b, const unsigned char *bytes, size_t bits, const struct ast *at)
{
    for (size_t i = 0; i < bits; i++)
        if (!put_bit(k, b, bytes[i / 8] >> (7 - i % 8) & 1, at))
            return false;
    return true;
}

static bool put_integer(struct check *k, struct bits *b, int64_t value, size_t bits, bool little, const struct ast *at)
{
    const size_t whole = bits / 8 * 8;

    if (bits > MAX_BITS)
        return diag(k->c, at->from, at->len, "the binary is too large");
    if (!little) {
        for (size_t i = bits; i-- > 0;)
            if (!put_bit(k, b, (unsigned)(value >> MIN(i, 63)) & 1, at))
                return false;
        return true;
    }
    for (size_t byte = 0; byte < whole; byte += 8)
        for (size_t i = 8; i-- > 0;)
            if (!put_bit(k, b, (unsigned)(value >> MIN(byte + i, 63)) & 1, at))
                return false;
    for (size_t i = bits; i-- > whole;)
        if (!put_bit(k, b, (unsigned)(value >> MIN(i, 63)) & 1, at))
            return false;
    return true;
}

static bool check_bin_put_float(struct check *k, struct bits *b, double value, size_t bits, bool little,
                                const struct ast *at)
{
    uint64_t raw = 0;

    if (bits == 64) {
        memcpy(&raw, &value, 8);
    } else if (bits == 32) {
        float single = (float)value;
        uint32_t word;
        memcpy(&word, &single, 4);
        raw = word;
    } else {
        return diag(k->c, at->from, at->len, "a float cannot have %zu bits", bits);
    }
    return put_integer(k, b, (int64_t)raw, bits, little, at);
}

static bool put_point(struct check *k, struct bits *b, int64_t value, const struct seg *seg, const struct ast *at)
{
    char text[4];

    if (value < 0 || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
        return diag(k->c, at->from, at->len, "this is not a Unicode character");
    uint32_t cp = (uint32_t)value;
    if (seg->type == SEG_UTF8)
        return put_bytes(k, b, (unsigned char *)text, utf8_put(text, cp) * 8, at);
    if (seg->type == SEG_UTF32)
        return put_integer(k, b, cp, 32, seg->little, at);
    if (cp < 0x10000)
        return put_integer(k, b, cp, 16, seg->little, at);
    return put_integer(k, b, 0xd800 + ((cp - 0x10000) >> 10), 16, seg->little, at) &&
           put_integer(k, b, 0xdc00 + ((cp - 0x10000) & 0x3ff), 16, seg->little, at);
}

/* Sets *ret to the number of bits of a segment, or to -1 if the segment is the rest. Returns false after an error. */
static bool seg_bits(struct check *k, struct ast *seg, enum seg_type type, int64_t *ret)
{
    static const int64_t sizes[] = {8, 8, 64, -1, -1, 0, 0, 0};
    static const int units[] = {1, 1, 1, 8, 1, 1, 1, 1};
    int64_t unit = seg->seg.unit ? seg->seg.unit : units[type];

    *ret = sizes[type];
    if (seg->count < 2)
        return true;
    struct ast *size = check_expr(k, seg->items[1]);
    if (!size)
        return false;
    if (!size->known || size->known->type != TERM_INT || size->known->integer < 0 ||
        size->known->integer > MAX_BITS / unit) {
        diag(k->c, seg->items[1]->from, seg->items[1]->len, "the size of a segment must be a constant number");
        return false;
    }
    *ret = size->known->integer * unit;
    return true;
}

static bool check_bin_put_string(struct check *k, struct bits *b, term_t list, struct ast *seg, int64_t bits)
{
    for (size_t i = 0; i < list->count; i++) {
        int64_t point = list->items[i]->integer;
        bool ok = seg->seg.type >= SEG_UTF8 ? put_point(k, b, point, &seg->seg, seg)
                                            : put_integer(k, b, point, (size_t)bits, seg->seg.little, seg);
        if (!ok)
            return false;
    }
    return true;
}

/* Appends a segment whose value is known. */
static bool put_segment(struct check *k, struct bits *b, struct ast *seg, const struct ast *value)
{
    enum seg_type type = seg->seg.type;
    term_t v = value->known;
    int64_t bits;
    bool little = seg->seg.little || seg->seg.native;

    if (type == SEG_DEFAULT && v->type == TERM_BIN)
        type = SEG_BINARY;
    if (!seg_bits(k, seg, type, &bits))
        return false;
    if (v->type == TERM_LIST && !v->tail && (type <= SEG_INTEGER || type >= SEG_UTF8)) {
        bool text = true;
        for (size_t i = 0; i < v->count; i++)
            text &= v->items[i]->type == TERM_INT;
        if (text)
            return check_bin_put_string(k, b, v, seg, bits);
    }
    if (type >= SEG_UTF8 && v->type == TERM_BIN && v->bits == 8) {
        const char *at = v->text.at, *end = at + v->text.len;
        while (at < end) {
            uint32_t cp = utf8_next(&at, end);
            if (!put_point(k, b, cp == UTF8_BAD ? -1 : (int64_t)cp, &seg->seg, seg))
                return false;
        }
        return true;
    }
    if ((type == SEG_BINARY || type == SEG_BITS) && v->type == TERM_BIN) {
        size_t have = v->text.len ? v->text.len * 8 - 8 + v->bits : 0;
        if (bits >= 0 && (uint64_t)bits > have)
            return diag(k->c, seg->from, seg->len, "this segment is shorter than its size");
        if (type == SEG_BINARY && have % 8 && bits < 0)
            return diag(k->c, seg->from, seg->len, "this segment is not a whole number of bytes");
        return put_bytes(k, b, (const unsigned char *)v->text.at, bits < 0 ? have : (size_t)bits, seg);
    }
    if (v->type == TERM_INT && type <= SEG_INTEGER)
        return put_integer(k, b, v->integer, (size_t)bits, little, seg);
    if ((v->type == TERM_INT || v->type == TERM_FLOAT) && type == SEG_FLOAT)
        return check_bin_put_float(k, b, v->type == TERM_INT ? (double)v->integer : v->real, (size_t)bits, little, seg);
    if (v->type == TERM_INT && type >= SEG_UTF8)
        return put_point(k, b, v->integer, &seg->seg, seg);
    diag(k->c, seg->from, seg->len, "this value does not fit the type of its segment");
    return false;
}

static term_t bits_term(struct check *k, const struct bits *b)
{
    struct term *t = arena_alloc(k->c->arena, sizeof(*t));

    t->type = TERM_BIN;
    t->text = (struct str){b->bytes ? (const char *)b->bytes : "", (b->count + 7) / 8};
    t->bits = b->count % 8 ? (unsigned)(b->count % 8) : 8;
    return t;
}

/* Rejects a number in a binary pattern. Suggests bytes if they compare like the number (unsigned and big-endian). */
static bool report_number(struct check *k, const struct ast *seg, enum seg_type type)
{
    const bool elixir = k->probe->surface == SPEC_ELIXIR;
    const struct str name = seg->items[0]->text;
    const int bits = (int)MIN(seg->bits, 1 << 20);

    diag(k->c, seg->from, seg->len, "a match specification cannot extract a number from a binary");
    if (bits % 8)
        return diag_note(k->c, "it can only extract whole bytes");
    if (type == SEG_FLOAT || seg->seg.is_signed || seg->seg.little || seg->seg.native)
        return diag_note(k->c, "extract bytes: " STR_FMT "%s%d%s", STR_ARG(name), elixir ? "::binary-size(" : ":",
                         bits / 8, elixir ? ")" : "/binary");
    return diag_note(k->c,
                     elixir ? "extract bytes and compare them: " STR_FMT "::binary-size(%d) … when " STR_FMT
                              " > <<9::%d>>"
                            : "extract bytes and compare them: " STR_FMT ":%d/binary … when " STR_FMT " > <<9:%d>>",
                     STR_ARG(name), bits / 8, STR_ARG(name), bits);
}

/* Checks a segment with a variable or `_`. A match specification can bind or skip only whole bytes, or the rest. */
static bool open_segment(struct check *k, struct ast *seg, size_t offset, bool last)
{
    struct ast *value = seg->items[0];
    enum seg_type type = seg->seg.type;
    bool takes = value->type == A_VAR;

    if (type == SEG_DEFAULT)
        type = SEG_INTEGER;
    if (!seg_bits(k, seg, type, &seg->bits))
        return false;
    if (type >= SEG_UTF8) {
        diag(k->c, seg->from, seg->len, "a character of unknown size cannot be matched");
        return false;
    }
    if (takes && (type == SEG_INTEGER || type == SEG_FLOAT))
        return report_number(k, seg, type);
    if (seg->bits < 0 && !last)
        return diag(k->c, seg->from, seg->len, "only the last segment can have no size");
    if (takes && (offset % 8 || (seg->bits >= 0 && seg->bits % 8) || (type == SEG_BITS && seg->bits < 0))) {
        diag(k->c, seg->from, seg->len, "a match specification can only extract whole bytes");
        return false;
    }
    seg->seg.type = type;
    return true;
}

/* Merges each run of known segments into one literal segment. The other segments keep their size in bits. */
struct ast *check_bin(struct check *k, struct ast *n, bool pattern)
{
    struct ptrs segs = {0};
    struct bits run = {0};
    struct ast *out = check_new(k, A_BIN, n);
    size_t offset = 0;

    for (size_t i = 0; i <= n->count; i++) {
        struct ast *seg = i < n->count ? n->items[i] : NULL, *value = NULL;
        if (seg) {
            bool plain = seg->items[0]->type == A_VAR || seg->items[0]->type == A_ANY;
            if (pattern && plain)
                value = seg->items[0];
            else if (!(value = pattern ? check_pattern(k, seg->items[0]) : check_expr(k, seg->items[0])))
                return NULL;
            if (value->known && !plain) {
                if (!put_segment(k, &run, seg, value))
                    return NULL;
                continue;
            }
            if (!pattern) {
                diag(k->c, seg->from, seg->len, "a match specification cannot build a binary");
                return NULL;
            }
            if (!plain) {
                diag(k->c, seg->from, seg->len, "a segment must be a literal, a variable or _");
                return NULL;
            }
        }
        if (run.count) {
            if ((seg || segs.count) && (offset % 8 || run.count % 8)) {
                diag(k->c, n->from, n->len, "a match specification can only compare whole bytes");
                return NULL;
            }
            struct ast *lit = check_new(k, A_SEG, n);
            lit->value = bits_term(k, &run);
            lit->bits = (int64_t)run.count;
            ptrs_add(&segs, k->c->arena, lit);
            offset += run.count;
            run = (struct bits){0};
        }
        if (seg) {
            struct ast *open = check_new(k, A_SEG, seg);
            *open = *seg;
            if (!open_segment(k, open, offset, i + 1 == n->count))
                return NULL;
            if (value->type == A_VAR)
                ptrs_add(&k->names, k->c->arena, value);
            ptrs_add(&segs, k->c->arena, open);
            offset += open->bits < 0 ? 0 : (size_t)open->bits;
        }
    }
    if (!segs.count || (segs.count == 1 && ((struct ast *)segs.items[0])->value)) {
        struct bits none = {0};
        return check_lit(k, segs.count ? ((struct ast *)segs.items[0])->value : bits_term(k, &none), n);
    }
    out->items = (struct ast **)(void *)segs.items;
    out->count = segs.count;
    out->types = TY_BIN;
    return out;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the reader of the external term format: it accepts valid terms, rejects malformed ones, and never reads past
 * the end.
 */
#include "erlang/etf.h"

#include <stdlib.h>

#include "erlang/etf_print.h"
#include "erlang/etf_write.h"
#include "tap.h"

static struct buf b;

/* Copies the bytes into memory of exactly this size, so that a sanitizer reports the first read past the end. */
static unsigned char *exact(const void *bytes, size_t len)
{
    unsigned char *copy = malloc(len ? len : 1);

    memcpy(copy, bytes, len);
    return copy;
}

static bool skips(const void *bytes, size_t len)
{
    unsigned char *copy = exact(bytes, len);
    struct etf r;

    etf_open(&r, copy, len);
    bool good = etf_skip(&r) && etf_done(&r);
    free(copy);
    return good;
}

#define REFUSED(name, ...)                                                                                             \
    do {                                                                                                               \
        static const unsigned char raw[] = {__VA_ARGS__};                                                              \
        ok(!skips(raw, sizeof raw), "refused: %s", name);                                                              \
    } while (0)

static void heads(void)
{
    static const uint32_t words[] = {1, 2, 3};
    struct etf r;
    struct etf_head h;

    buf_clear(&b);
    etf_int(&b, 200), etf_int(&b, -1), etf_int(&b, INT64_MAX), etf_int(&b, INT64_MIN);
    etf_big(&b, STR("-18446744073709551616")), etf_float(&b, -0.5), etf_atomz(&b, "a\xc3\xa9"), etf_bin(&b, "xyz", 3);
    etf_bits(&b, "\xa0", 1, 3), etf_pid(&b, STR("n@h"), 84, 2, 7), etf_port(&b, STR("n@h"), 5, 7);
    etf_ref(&b, STR("n@h"), 7, words, 3), etf_export(&b, STR("m"), STR("f"), 2), etf_tuple(&b, 300), etf_nil(&b);
    etf_open(&r, b.data, b.len);
    int64_t n;
    ok(etf_get_int(&r, &n) && n == 200, "a byte");
    ok(etf_get_int(&r, &n) && n == -1, "a negative integer");
    ok(etf_get_int(&r, &n) && n == INT64_MAX, "the largest 64-bit integer");
    ok(etf_get_int(&r, &n) && n == INT64_MIN, "the smallest 64-bit integer");
    ok(etf_next(&r, &h) && h.type == ETF_BIG && h.negative && h.text.len == 9, "a larger integer keeps its bytes");
    ok(etf_next(&r, &h) && h.type == ETF_FLOAT && h.real == -0.5, "a float");
    ok(etf_is_atom(&r, "a\xc3\xa9") && !etf_is_atom(&r, "a"), "a look at an atom does not consume it");
    ok(etf_next(&r, &h) && h.type == ETF_ATOM && !h.latin1, "an atom");
    struct raw text;
    ok(etf_get_bin(&r, &text) && raw_is(text, "xyz"), "a binary");
    ok(etf_next(&r, &h) && h.type == ETF_BIN && h.bits == 3 && h.text.len == 1, "a bit string");
    ok(etf_get_pid(&r, &h) && h.id == 84 && h.serial == 2 && h.creation == 7 && h.text.len == 3, "a pid");
    ok(etf_next(&r, &h) && h.type == ETF_PORT && h.id == 5, "a port");
    ok(etf_next(&r, &h) && h.type == ETF_REF && h.nwords == 3 && h.words[2] == 3, "a reference");
    ok(etf_next(&r, &h) && h.type == ETF_EXPORT && etf_skip(&r) && etf_skip(&r) && etf_get_int(&r, &n) && n == 2,
       "an external fun");
    ok(!etf_next(&r, &h) && r.failed, "a tuple with more elements than bytes is refused");
    ok(!etf_next(&r, &h), "a failed reader stays failed");
}

static void latin1(void)
{
    static const unsigned char raw[] = {100, 0, 1, 0xe9};
    struct etf r;
    struct etf_head h;

    etf_open(&r, raw, sizeof raw);
    ok(etf_next(&r, &h) && h.type == ETF_ATOM && h.latin1 && h.text.len == 1, "an atom in Latin-1 is marked as such");
}

static void structures(void)
{
    struct etf r, inner;
    struct etf_head h;
    size_t n;
    int64_t x;

    buf_clear(&b);
    etf_version(&b), etf_map(&b, 1), etf_atomz(&b, "k"), etf_list(&b, 2), etf_int(&b, 1), etf_tuple(&b, 0), etf_nil(&b);
    ok(!etf_open_version(&r, b.data + 1, b.len - 1), "a term without its version is refused");
    ok(etf_open_version(&r, b.data, b.len) && etf_get_map(&r, &n) && n == 1, "a map");
    ok(etf_skip(&r) && etf_take(&r, &inner) && etf_done(&r), "a value of the map can be taken as a whole");
    ok(etf_get_list(&inner, &n) && n == 2 && etf_get_int(&inner, &x) && x == 1 && etf_get_tuple(&inner, 0) &&
           etf_get_nil(&inner) && etf_done(&inner),
       "the taken value can be read");
    etf_open_version(&r, b.data, b.len);
    ok(!etf_get_tuple(&r, 1) && r.failed, "a term of another type than the requested one is refused");
    etf_open_version(&r, b.data, b.len);
    ok(etf_peek(&r, &h) && h.type == ETF_MAP && etf_peek(&r, &h) && h.type == ETF_MAP,
       "a look at a term does not consume it");
    etf_open(&r, "jj", 2);
    ok(etf_get_list(&r, &n) && n == 0 && !etf_done(&r), "[] is an empty list, and terms are left after it");
}

static void hostile(void)
{
    REFUSED("no bytes", 0);
    REFUSED("a list of 2^31-1 elements", 108, 0x7f, 0xff, 0xff, 0xff, 106);
    REFUSED("a list without its tail", 108, 0, 0, 0, 1, 97, 1);
    REFUSED("a tuple of 2^32-1 elements", 105, 0xff, 0xff, 0xff, 0xff);
    REFUSED("a map of 2^31 pairs", 116, 0x80, 0, 0, 0, 97, 1);
    REFUSED("a map with half a pair", 116, 0, 0, 0, 1, 97, 1);
    REFUSED("a binary of 2^32-1 bytes", 109, 0xff, 0xff, 0xff, 0xff, 1);
    REFUSED("a large integer of 2^32-1 bytes", 111, 0xff, 0xff, 0xff, 0xff, 0, 1);
    REFUSED("an atom longer than the maximum", 118, 0xff, 0xff, 'a');
    REFUSED("a pid whose node is a number", 88, 97, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1);
    REFUSED("a reference of 0 words", 90, 0, 0, 119, 1, 'n', 0, 0, 0, 1);
    REFUSED("a reference of 6 words", 90, 0, 6, 119, 1, 'n', 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1);
    REFUSED("a float that is not a number", 70, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0);
    REFUSED("a bit string with nine bits in its last byte", 77, 0, 0, 0, 1, 9, 0xff);
    REFUSED("a bit string with no bits in its last byte", 77, 0, 0, 0, 1, 0, 0xff);
    REFUSED("a fun smaller than its head", 112, 0, 0, 0, 3);
    REFUSED("a fun larger than the term", 112, 0xff, 0xff, 0xff, 0xff, 0);
    REFUSED("compressed terms", 80, 0, 0, 0, 1, 120);
    REFUSED("an unknown tag", 1);
    REFUSED("bytes after the term", 97, 1, 97);
}

static void deep(void)
{
    size_t levels = 1000000;

    buf_clear(&b);
    for (size_t i = 0; i < levels; i++)
        etf_list(&b, 1);
    etf_nil(&b);
    for (size_t i = 0; i < levels; i++)
        etf_nil(&b);
    ok(!skips(b.data, b.len), "more terms than the limit are refused");
    buf_clear(&b);
    for (size_t i = 0; i < levels / 2; i++)
        etf_tuple(&b, 1);
    etf_int(&b, 1);
    ok(skips(b.data, b.len), "half a million levels are skipped");
}

/* The reader rejects every truncated term.
 * It accepts or rejects a term with a changed byte, and never reads outside. */
static void damaged(void)
{
    static const uint32_t words[] = {1, 2, 3};
    bool good = true;

    buf_clear(&b);
    etf_tuple(&b, 6), etf_map(&b, 2), etf_atomz(&b, "a"), etf_bits(&b, "\xff\x80", 2, 1), etf_bin(&b, "key", 3),
        etf_float(&b, 1.5);
    etf_list(&b, 2), etf_int(&b, 1000), etf_big(&b, STR("123456789012345678901234567890")), etf_atomz(&b, "tail");
    etf_pid(&b, STR("n@h"), 1, 2, 3), etf_ref(&b, STR("n@h"), 7, words, 3), etf_port(&b, STR("n@h"), 5, 7),
        etf_export(&b, STR("m"), STR("f"), 2);
    ok(skips(b.data, b.len), "a term of every kind");
    for (size_t i = 0; i < b.len; i++)
        good &= !skips(b.data, i);
    ok(good, "a term that is cut at any byte is refused");
    for (size_t i = 0; i < b.len; i++) {
        unsigned char *copy = exact(b.data, b.len);
        for (unsigned x = 0; x < 256; x++) {
            copy[i] = (unsigned char)x;
            skips(copy, b.len);
        }
        free(copy);
    }
    ok(true, "a term with any changed byte does no harm");
}

/* Prints the term in `b`. */
static void prints(const struct etf_limits *limits, const char *want, const char *what)
{
    struct buf text = {0};
    struct etf r;

    etf_open(&r, b.data, b.len);
    etf_print(&text, &r, limits);
    is_text(buf_cstr(&text), want, what);
    ok(etf_done(&r), "and the reader is behind the term");
    buf_release(&text);
}

static void printed(void)
{
    static const struct etf_limits plain = {.depth = 2, .items = 3, .text = 5, .all = 40},
                                   quoted = {.depth = 9, .items = 9, .text = 9, .all = SIZE_MAX, .quotes = true},
                                   brief = {.depth = 9, .items = 9, .text = 9, .all = 6};

    buf_clear(&b);
    etf_tuple(&b, 4), etf_atomz(&b, "An"), etf_bin(&b, "binary", 6);
    etf_list(&b, 2), etf_int(&b, -1), etf_list(&b, 1), etf_int(&b, 2), etf_nil(&b), etf_nil(&b);
    etf_map(&b, 1), etf_int(&b, 1), etf_pid(&b, STR("n@h"), 2, 3, 4);
    prints(&plain, "{An,binar…,[-1,[…]]…}", "limits of depth, items and text");
    prints(&quoted, "{'An',<<\"binary\">>,[-1,[2]],#{1=><0.2.3>}}", "with quotes");
    prints(&brief, "{An,bi…}", "limit of all");
    buf_clear(&b);
    etf_list(&b, 1), etf_int(&b, 1), etf_int(&b, 2);
    prints(&quoted, "[1|…]", "an improper list");
}

int main(void)
{
    printed();
    heads();
    latin1();
    structures();
    hostile();
    deep();
    damaged();
    buf_release(&b);
    return tap_end();
}

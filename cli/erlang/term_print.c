/* SPDX-License-Identifier: Apache-2.0 */
/* Prints terms as io_lib:format("~0tp", [Term]) does, with stricter escapes. */
#include "term_print.h"

#include "../ground/utf8.h"

/* ---- characters ---- */

/* The escape of each ASCII byte inside quotes: 0 for none, 1 for \ooo, or the letter to print after a backslash. */
static const char ascii_escape[128] = {
    [0 ... 7] = 1, ['\b'] = 'b',    ['\t'] = 't', ['\n'] = 'n',    ['\v'] = 'v',  ['\f'] = 'f',
    ['\r'] = 'r',  [14 ... 26] = 1, [27] = 'e',   [28 ... 31] = 1, ['\\'] = '\\', [127] = 'd',
};

static void put_hex(struct buf *to, uint32_t cp)
{
    buf_printf(to, "\\x{%X}", cp);
}

static void put_char(struct buf *to, uint32_t cp, char quote)
{
    char *p = buf_room(to, 16);

    if (likely(cp < 128)) {
        char e = cp == (unsigned char)quote ? quote : ascii_escape[cp];
        if (likely(!e)) {
            *p = (char)cp;
            to->len++;
        } else if (e == 1) {
            p[0] = '\\', p[1] = (char)('0' + (cp >> 6)), p[2] = (char)('0' + (cp >> 3 & 7)),
            p[3] = (char)('0' + (cp & 7));
            to->len += 4;
        } else {
            p[0] = '\\', p[1] = e;
            to->len += 2;
        }
    } else if (cp < 0xa0) {
        p[0] = '\\', p[1] = (char)('0' + (cp >> 6)), p[2] = (char)('0' + (cp >> 3 & 7)), p[3] = (char)('0' + (cp & 7));
        to->len += 4;
    } else if (utf8_shows(cp)) {
        to->len += utf8_put(p, cp);
    } else {
        put_hex(to, cp);
    }
}

void erlang_print_string(struct buf *to, struct raw text, char quote)
{
    const char *at = raw_view(text).at, *end = text.len ? at + text.len : at;

    buf_room(to, text.len + 2);
    buf_char(to, quote);
    while (at < end) {
        const char *run = at;
        at = utf8_plain(at, end, quote);
        buf_add(to, run, (size_t)(at - run));
        if (at == end)
            break;
        run = at;
        uint32_t cp = utf8_next(&at, end);
        if (cp == UTF8_BAD)
            put_hex(to, (unsigned char)*run);
        else
            put_char(to, cp, quote);
    }
    buf_char(to, quote);
}

/* Prints bytes as Latin-1 characters between quotes. */
static void put_latin1(struct buf *to, const char *at, size_t len)
{
    const char *end = at + len;

    buf_char(to, '"');
    while (at < end) {
        const char *run = at;
        at = utf8_plain(at, end, '"');
        buf_add(to, run, (size_t)(at - run));
        if (at < end)
            put_char(to, (unsigned char)*at++, '"');
    }
    buf_char(to, '"');
}

void print_safe(struct buf *to, struct raw text)
{
    const char *at = raw_view(text).at, *end = text.len ? at + text.len : at;

    while (at < end) {
        const char *from = at;
        while (at < end && *at >= ' ' && *at < 127)
            at++;
        if (at > from) {
            buf_add(to, from, (size_t)(at - from));
            continue;
        }
        uint32_t cp = utf8_next(&at, end);
        if (cp == UTF8_BAD)
            put_hex(to, (unsigned char)*from);
        else if (utf8_shows(cp))
            buf_add(to, from, (size_t)(at - from));
        else
            put_hex(to, cp);
    }
}

struct safe safe_keep(struct buf *kept, struct raw text)
{
    buf_clear(kept);
    print_safe(kept, text);
    return (struct safe){buf_view(kept).at, kept->len};
}

char *safe_strdup(struct raw text)
{
    struct buf b = {0};

    print_safe(&b, text);
    buf_cstr(&b);
    return b.data;
}

void safe_copy(char *to, size_t size, struct raw text)
{
    struct buf b = {0};

    print_safe(&b, text);
    size_t len = MIN(b.len, size - 1);
    while (len < b.len && len && ((unsigned char)b.data[len] & 0xc0) == 0x80)
        len--;
    memcpy(to, buf_cstr(&b), len);
    to[len] = 0;
    buf_release(&b);
}

/* ---- atoms ---- */

static bool is_reserved(struct str s)
{
    static const char *const words[] = {
        [2] = "if of or",
        [3] = "and bor bsl bsr div end fun let not rem try xor",
        [4] = "band bnot bxor case cond else when",
        [5] = "after begin catch maybe",
        [6] = "orelse",
        [7] = "andalso receive",
    };

    if (s.len >= ARRAY_LEN(words) || !words[s.len])
        return false;
    for (const char *at = words[s.len];; at += s.len + 1) {
        if (*at == *s.at && !memcmp(at, s.at, s.len))
            return true;
        if (!at[s.len])
            return false;
    }
}

static bool needs_no_quotes(struct str raw)
{
    enum { FIRST = 1, LATER = 2 };
    static const uint8_t plain[128] = {
        ['a' ... 'z'] = FIRST | LATER, ['A' ... 'Z'] = LATER, ['0' ... '9'] = LATER, ['_'] = LATER, ['@'] = LATER,
    };
    const char *at = raw.at, *end;
    uint8_t where = FIRST;

    if (!raw.len)
        return false;
    for (end = at + raw.len; at < end; where = LATER) {
        if (likely((unsigned char)*at < 128)) {
            if (!(plain[(unsigned char)*at++] & where))
                return false;
            continue;
        }
        uint32_t c = utf8_next(&at, end);
        if ((c < 0xdf || c > 0xff || c == 0xf7) && (where == FIRST || c < 0xc0 || c > 0xde || c == 0xd7))
            return false;
    }
    return !is_reserved(raw);
}

void erlang_print_atom(struct buf *to, struct raw name)
{
    if (needs_no_quotes(raw_view(name)))
        buf_str(to, raw_view(name));
    else
        erlang_print_string(to, name, '\'');
}

/*
 * ---- text or numbers ----
 *
 * A list is text if all its elements are printable characters of Latin-1, as for io_lib on a node without flags: a list
 * of larger numbers is seldom text. A binary that is valid UTF-8 is text if all its characters are printable, as for
 * io_lib on a node with +pc unicode.
 */

static bool term_print_is_printable(uint32_t c)
{
    if (c < 0x20)
        return (c >= '\b' && c <= '\r') || c == 27;
    if (c < 0x7f)
        return true;
    if (c < 0xa0)
        return false;
    return c < 0xd800 || (c > 0xdfff && c < 0xfffe) || (c > 0xffff && c <= 0x10ffff);
}

/* Prints the bytes of an ETW_T_STRING, a list of small integers. */
static void print_bytes_list(struct buf *to, const uint8_t *bytes, size_t len)
{
    bool text = len > 0;

    for (size_t i = 0; i < len && text; i++)
        text = term_print_is_printable(bytes[i]);
    if (text) {
        put_latin1(to, (const char *)bytes, len);
        return;
    }
    buf_char(to, '[');
    for (size_t i = 0; i < len; i++) {
        if (i)
            buf_char(to, ',');
        print_u64(to, bytes[i]);
    }
    buf_char(to, ']');
}

/*
 * Prints a list as text and returns the byte after it. If the list is no text, prints nothing and returns NULL. `at` is
 * the byte after the tag of the list.
 */
static const uint8_t *print_as_text(struct buf *to, const uint8_t *at)
{
    const uint8_t *p = at;
    int64_t v;

    while (*p != ETW_T_END && *p != ETW_T_CUT) {
        if (!wire_int(p, &v) || v < 0 || v > 0xff || !term_print_is_printable((uint32_t)v))
            return NULL;
        p += *p < 0x80 ? 1 : *p == ETW_T_INT16 ? 3 : *p == ETW_T_INT32 ? 5 : 9;
    }
    if (p == at)
        return NULL;
    buf_char(to, '"');
    for (const uint8_t *q = at; q < p; q += *q < 0x80 ? 1 : *q == ETW_T_INT16 ? 3 : *q == ETW_T_INT32 ? 5 : 9) {
        wire_int(q, &v);
        put_char(to, (uint32_t)v, '"');
    }
    buf_char(to, '"');
    if (*p == ETW_T_CUT)
        buf_puts(to, "…");
    return p + 1;
}

/* ---- binaries ---- */

enum bin_text { BIN_NUMBERS, BIN_LATIN1, BIN_UTF8 };

/* Returns the number of bytes at the end, 0 to 3, that are an incomplete character because the text was cut. */
static size_t split_char_bytes(const char *at, size_t len)
{
    for (size_t n = 1; n <= 3 && n <= len; n++) {
        unsigned char c = (unsigned char)at[len - n];
        if ((c & 0xc0) == 0x80)
            continue;
        size_t want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        return want > n ? n : 0;
    }
    return 0;
}

static enum bin_text latin1_or_numbers(const char *p, const char *end)
{
    for (; p < end; p++)
        if (!term_print_is_printable((unsigned char)*p))
            return BIN_NUMBERS;
    return BIN_LATIN1;
}

static enum bin_text bin_text(const char *at, size_t len, const struct term_env *env)
{
    const char *p = at, *end = at + len;
    bool ascii = true;

    if (!len)
        return BIN_NUMBERS;
    while ((p = utf8_plain(p, end, '"')) < end) {
        uint32_t c = utf8_next(&p, end);
        if (c == UTF8_BAD)
            return latin1_or_numbers(at, end);
        if (!term_print_is_printable(c))
            return env->otp27 && !utf8_valid(p, (size_t)(end - p)) ? latin1_or_numbers(at, end) : BIN_NUMBERS;
        if (c >= 0x80)
            ascii = false;
    }
    return ascii ? BIN_LATIN1 : BIN_UTF8;
}

static void put_missing(struct buf *to, uint64_t missing, const char *unit)
{
    buf_puts(to, "…+");
    print_u64(to, missing);
    buf_puts(to, unit);
}

static const uint8_t *print_bin(struct buf *to, const struct term_env *env, const uint8_t *at)
{
    unsigned bits = *at == ETW_T_BITS ? at[1] : 8;
    const uint8_t *head = at + (*at == ETW_T_BITS ? 2 : 1);
    uint64_t size = wire_u64(head);
    size_t captured = wire_u32(head + 8), len = captured;
    const char *bytes = (const char *)head + 12;
    const uint8_t *end = head + 12 + captured;
    bool cut = size > captured;

    if (cut)
        len -= split_char_bytes(bytes, len);
    buf_add(to, "<<", 2);
    enum bin_text text = bits == 8 || cut ? bin_text(bytes, len, env) : BIN_NUMBERS;
    if (bits != 8 && cut && text != BIN_NUMBERS)
        text = BIN_NUMBERS;
    if (text == BIN_NUMBERS) {
        len = captured;
        for (size_t i = 0; i < len; i++) {
            bool last = i + 1 == len && !cut && bits != 8;
            char *p = buf_room(to, 8);
            if (i) {
                *p = ',';
                to->len++;
            }
            print_u64(to, (uint64_t)(unsigned char)bytes[i] >> (last ? 8 - bits : 0));
            if (last) {
                buf_char(to, ':');
                print_u64(to, bits);
            }
        }
        if (cut && len)
            buf_char(to, ',');
    } else if (text == BIN_UTF8) {
        erlang_print_string(to, raw_bytes(bytes, len), '"');
        buf_add(to, "/utf8", 5);
    } else {
        put_latin1(to, bytes, len);
    }
    if (cut)
        put_missing(to, size - len, " B");
    buf_add(to, ">>", 2);
    return end;
}

/* ---- containers ---- */

/* Prints a leaf, or a container below LEVELS levels of nesting. */
static const uint8_t *print_other(struct buf *to, const struct term_env *env, const uint8_t *at)
{
    switch (*at) {
    case ETW_T_BIGPOS:
    case ETW_T_BIGNEG:
        print_big(to, at + 3, wire_u16(at + 1), *at == ETW_T_BIGNEG);
        return at + 3 + wire_u16(at + 1);
    case ETW_T_ATOM: {
        const struct wire_atom *a = &env->atoms->table[wire_u16(at + 1)];
        buf_add(to, a->erl, a->erl_len);
        return at + 3;
    }
    case ETW_T_ATOMDEF:
        erlang_print_atom(to, raw_bytes(at + 5, wire_u16(at + 3)));
        return at + 5 + wire_u16(at + 3);
    case ETW_T_ATOMTEXT:
        erlang_print_atom(to, raw_bytes(at + 3, wire_u16(at + 1)));
        return at + 3 + wire_u16(at + 1);
    case ETW_T_PID:
        to->len += print_tracee(buf_room(to, 40), wire_u64(at + 1) & ~ETW_TRACEE_PORT);
        return at + 9;
    case ETW_T_PORT:
        to->len += print_tracee(buf_room(to, 40), wire_u64(at + 1) | ETW_TRACEE_PORT);
        return at + 9;
    case ETW_T_TEXT: {
        struct raw text = raw_bytes(at + 4, wire_u16(at + 2));
        if (text.len)
            print_safe(to, text);
        else
            buf_puts(to, "…");
        return at + 4 + text.len;
    }
    case ETW_T_NIL:
        buf_add(to, "[]", 2);
        return at + 1;
    case ETW_T_BIN:
    case ETW_T_BITS:
        return print_bin(to, env, at);
    case ETW_T_REDACTED:
        buf_puts(to, "'*REDACTED*'");
        return at + 1;
    case ETW_T_STRING:
        print_bytes_list(to, at + 3, wire_u16(at + 1));
        return at + 3 + wire_u16(at + 1);
    case ETW_T_LIST:
    case ETW_T_MAP:
    case ETW_T_TUPLE:
    case ETW_T_TUPLE0 ... ETW_T_TUPLE0 + 31:
        return erlang_print(to, env, at);
    default: /* ETW_T_ELIDED: wire_check() rejects every other tag */
        buf_puts(to, "…");
        return at + 1;
    }
}

/*
 * SMALL(n) has the digits of a number from 0 to 127 in its first three bytes, and the number of digits in the fourth.
 */
#define DIGIT(n) (char)('0' + (n) % 10)
#define SMALL(n)                                                                                                       \
    {                                                                                                                  \
        (n) < 10    ? DIGIT(n)                                                                                         \
        : (n) < 100 ? DIGIT((n) / 10)                                                                                  \
                    : '1',                                                                                             \
            (n) < 100 ? DIGIT(n) : DIGIT((n) / 10), DIGIT(n),                                                          \
            (n) < 10    ? 1                                                                                            \
            : (n) < 100 ? 2                                                                                            \
                        : 3                                                                                            \
    }
#define SMALLS(n)                                                                                                      \
    SMALL(n), SMALL(n + 1), SMALL(n + 2), SMALL(n + 3), SMALL(n + 4), SMALL(n + 5), SMALL(n + 6), SMALL(n + 7)
static const char smalls[128][4] = {
    SMALLS(0),  SMALLS(8),  SMALLS(16), SMALLS(24), SMALLS(32), SMALLS(40),  SMALLS(48),  SMALLS(56),
    SMALLS(64), SMALLS(72), SMALLS(80), SMALLS(88), SMALLS(96), SMALLS(104), SMALLS(112), SMALLS(120),
};

/* Returns false if Erlang cannot print a list as text because of its first element. */
static bool begins_text(const uint8_t *at)
{
    return *at < 0x80 ? term_print_is_printable(*at) : *at <= ETW_T_INT64;
}

/* The levels of nesting that one call of term_print_print() handles. It calls itself for a deeper container. */
#define LEVELS 16
/* The most bytes that term_print_print() writes between two LOAD(): a token, a comma, a cut, and LEVELS brackets. */
#define ROOM 128

enum inside { IN_TERMS /* top level */, IN_TUPLE, IN_MAP, IN_LIST, IN_TAIL };

struct level {
    enum inside inside;
    uint64_t left; /* terms, tuple elements, or keys and values still to print, including the current one */
};

/*
 * term_print_print() writes at `p` and does not update `to`. It calls SAVE() before another function writes to `to`,
 * and LOAD() after that. LOAD() reserves ROOM bytes, enough for a token and the brackets that follow it.
 */
#define SAVE() (to->len = (size_t)(p - to->data))
#define LOAD() (p = buf_room(to, ROOM), limit = to->data + to->cap - ROOM)

static const uint8_t *term_print_print(struct buf *to, const struct term_env *env, const uint8_t *at, unsigned count)
{
    struct level around[LEVELS], in = {IN_TERMS, count};
    unsigned depth = 0;
    const char *limit;
    bool first;
    char *p;

    LOAD();
    for (;;) {
        uint8_t tag = *at;
        if (unlikely(p > limit)) {
            SAVE();
            LOAD();
        }
        first = false;
        if (tag < 0x80) {
            memcpy(p, smalls[tag], 4);
            p += smalls[tag][3];
            at++;
        } else if (tag <= ETW_T_INT64) {
            unsigned bytes = 2u << (tag - ETW_T_INT16);
            p = print_digits(p, bytes == 2   ? (int16_t)wire_u16(at + 1)
                                : bytes == 4 ? (int32_t)wire_u32(at + 1)
                                             : (int64_t)wire_u64(at + 1));
            at += 1 + bytes;
        } else if (tag == ETW_T_ATOM && env->atoms->table[wire_u16(at + 1)].erl_len <= 16) {
            const struct wire_atom *a = &env->atoms->table[wire_u16(at + 1)];
            memcpy(p, a->erl, 16); /* a fixed size, so the compiler inlines this */
            p += a->erl_len;
            at += 3;
        } else if (tag >= ETW_T_TUPLE0 && tag < ETW_T_TUPLE0 + 32 && depth < LEVELS) {
            around[depth++] = in;
            in = (struct level){IN_TUPLE, tag - ETW_T_TUPLE0 + 1u};
            *p++ = '{';
            at++;
            first = true;
        } else if (tag == ETW_T_FLOAT) {
            double d;
            memcpy(&d, at + 1, sizeof(d));
            p = print_float(p, d);
            at += 9;
        } else if (tag == ETW_T_LIST && depth < LEVELS) {
            const uint8_t *end = NULL;
            SAVE();
            if (begins_text(at + 1) && (end = print_as_text(to, at + 1))) {
                LOAD();
                at = end;
            } else {
                around[depth++] = in;
                in.inside = IN_LIST;
                *p++ = '[';
                at++;
                first = true;
            }
        } else if ((tag == ETW_T_TUPLE || tag == ETW_T_MAP) && depth < LEVELS) {
            around[depth++] = in;
            if (tag == ETW_T_MAP)
                *p++ = '#';
            *p++ = '{';
            in = tag == ETW_T_MAP ? (struct level){IN_MAP, UINT64_C(2) * wire_u32(at + 1) + 1}
                                  : (struct level){IN_TUPLE, UINT64_C(1) + wire_u32(at + 1)};
            at += 5;
            first = true;
        } else {
            SAVE();
            at = print_other(to, env, at);
            LOAD();
        }

    behind: /* after a term: print the separator, or close the containers that end here */
        if (in.inside == IN_TERMS) {
            if (--in.left) {
                *p++ = ',', *p++ = ' ';
                continue;
            }
            SAVE();
            return at;
        }
        if (in.inside == IN_TUPLE && --in.left) {
            if (!first)
                *p++ = ',';
            if (likely(*at != ETW_T_CUT))
                continue;
            SAVE();
            put_missing(to, in.left, "");
            LOAD();
            at++;
        } else if (in.inside == IN_LIST && *at == ETW_T_END) {
            at++;
        } else if (in.inside == IN_LIST) {
            if (*at == ETW_T_TAIL) {
                *p++ = '|';
                in.inside = IN_TAIL;
                at++;
            } else if (!first) {
                *p++ = ',';
            }
            if (likely(*at != ETW_T_CUT))
                continue;
            memcpy(p, "…", 3), p += 3;
            at++;
        } else if (in.inside == IN_MAP && --in.left) {
            bool value = in.left % 2;
            if (value)
                memcpy(p, " => ", 4), p += 4;
            else if (!first)
                *p++ = ',';
            if (likely(*at != ETW_T_CUT))
                continue;
            SAVE();
            if (value)
                buf_puts(to, in.left > 1 ? "…," : "…");
            if (in.left > 1)
                put_missing(to, in.left / 2, "");
            LOAD();
            at++;
        }
        *p++ = in.inside < IN_LIST ? '}' : ']';
        in = around[--depth];
        first = false;
        goto behind;
    }
}

#undef SAVE
#undef LOAD

void erlang_print_float(struct buf *to, double value)
{
    char *p = buf_room(to, FLOAT_ROOM);

    to->len += (size_t)(print_float(p, value) - p);
}

/* Writes a serial number fast: most are 0. */
static inline char *put_serial(char *to, uint64_t v)
{
    if (unlikely(v >= 10))
        return print_natural(to, v);
    *to = (char)('0' + v);
    return to + 1;
}

size_t print_tracee(char *to, uint64_t tracee)
{
    char *p = to;

    if (tracee & ETW_TRACEE_PORT) {
        memcpy(p, "#Port<0.", 8);
        p = print_natural(p + 8, tracee & ~ETW_TRACEE_PORT);
    } else {
        memcpy(p, "<0.", 3);
        p = print_natural(p + 3, ETW_PID_NUMBER(tracee));
        *p++ = '.';
        p = put_serial(p, ETW_PID_SERIAL(tracee));
    }
    *p++ = '>';
    return (size_t)(p - to);
}

const uint8_t *erlang_print(struct buf *to, const struct term_env *env, const uint8_t *at)
{
    return term_print_print(to, env, at, 1);
}

static void erlang_terms(struct buf *to, const struct term_env *env, const uint8_t *at, unsigned count)
{
    if (count)
        term_print_print(to, env, at, count);
}

const struct printer printer_erlang = {
    .name = "erlang",
    .term = erlang_print,
    .terms = erlang_terms,
    .atom = erlang_print_atom,
};

/* Erlang's own way: what io_lib:format("~0tp", [Term]) prints, with stricter escapes. */
#include "term_print.h"

#include "../ground/utf8.h"

/* ---- characters ---- */

/* How a byte of ASCII leaves inside of quotes: 0 as it is, a letter behind a backslash, or 1 as \ooo. */
static const char ascii_escape[128] = {
    [0 ... 7] = 1, ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\v'] = 'v', ['\f'] = 'f', ['\r'] = 'r', [14 ... 26] = 1,
    [27] = 'e', [28 ... 31] = 1, ['\\'] = '\\', [127] = 'd',
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
            p[0] = '\\', p[1] = (char)('0' + (cp >> 6)), p[2] = (char)('0' + (cp >> 3 & 7)), p[3] = (char)('0' + (cp & 7));
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

void erlang_print_string(struct buf *to, struct str text, char quote)
{
    const char *at = text.at, *end = text.len ? text.at + text.len : text.at;

    buf_room(to, text.len + 2);
    buf_char(to, quote);
    while (at < end) {
        const char *run = at;
        while (at < end && (unsigned char)*at < 128 && !ascii_escape[(unsigned char)*at] && *at != quote)
            at++;
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

void print_safe(struct buf *to, struct str text)
{
    const char *at = text.at, *end = text.len ? text.at + text.len : text.at;

    while (at < end) {
        const char *from = at;
        uint32_t cp = utf8_next(&at, end);
        if (cp == UTF8_BAD)
            put_hex(to, (unsigned char)*from);
        else if (utf8_shows(cp))
            buf_add(to, from, (size_t)(at - from));
        else
            put_hex(to, cp);
    }
}

/* ---- atoms ---- */

static bool is_reserved(struct str s)
{
    static const char *const words[] = {
        "after", "and", "andalso", "band", "begin", "bnot", "bor", "bsl", "bsr", "bxor", "case", "catch", "cond", "div",
        "else", "end", "fun", "if", "let", "maybe", "not", "of", "or", "orelse", "receive", "rem", "try", "when", "xor",
    };

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strlen(words[i]) == s.len && !memcmp(words[i], s.at, s.len))
            return true;
    return false;
}

bool erlang_atom_is_plain(struct str raw)
{
    const char *at = raw.at, *end;

    if (!raw.len)
        return false;
    end = at + raw.len;
    for (bool first = true; at < end; first = false) {
        uint32_t c = utf8_next(&at, end);
        if ((c >= 'a' && c <= 'z') || (c >= 0xdf && c <= 0xff && c != 0xf7))
            continue;
        if (!first && ((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '@' ||
                       (c >= 0xc0 && c <= 0xde && c != 0xd7)))
            continue;
        return false;
    }
    return !is_reserved(raw);
}

void erlang_print_atom(struct buf *to, struct str raw)
{
    if (erlang_atom_is_plain(raw))
        buf_str(to, raw);
    else
        erlang_print_string(to, raw, '\'');
}

/* ---- text or numbers: what Erlang takes for characters ---- */

static bool is_printable(uint32_t c, bool latin1)
{
    if (c < 0x20)
        return (c >= '\b' && c <= '\r') || c == 27;
    if (c < 0x7f)
        return true;
    if (c < 0xa0)
        return false;
    if (latin1)
        return c <= 0xff;
    return c < 0xd800 || (c > 0xdfff && c < 0xfffe) || (c > 0xffff && c <= 0x10ffff);
}

/* A list of small integers whose bytes are at hand. */
static void print_bytes_list(struct buf *to, const uint8_t *bytes, size_t len, bool latin1)
{
    bool text = len > 0;

    for (size_t i = 0; i < len && text; i++)
        text = is_printable(bytes[i], latin1);
    if (text) {
        buf_char(to, '"');
        for (size_t i = 0; i < len; i++)
            put_char(to, bytes[i], '"');
        buf_char(to, '"');
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

/* Prints the list (behind its tag) as text if Erlang would; NULL if not. */
static const uint8_t *print_as_text(struct buf *to, const struct term_env *env, const uint8_t *at)
{
    const uint8_t *p = at;
    int64_t v;

    while (*p != ETW_T_END && *p != ETW_T_CUT) {
        if (!wire_int(p, &v) || v < 0 || v > 0x10ffff || !is_printable((uint32_t)v, env->latin1))
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

/* Bytes of an unfinished character at the end of what was captured, 0 to 3. */
static size_t unfinished(const char *at, size_t len)
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
        if (!is_printable((unsigned char)*p, true))
            return BIN_NUMBERS;
    return BIN_LATIN1;
}

static enum bin_text bin_text(const char *at, size_t len, const struct term_env *env)
{
    const char *p = at, *end = at + len;
    bool ascii = true;

    if (!len)
        return BIN_NUMBERS;
    while (p < end) {
        uint32_t c = utf8_next(&p, end);
        if (c == UTF8_BAD)
            return latin1_or_numbers(at, end);
        if (!is_printable(c, env->latin1))
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
        len -= unfinished(bytes, len);
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
        erlang_print_string(to, (struct str){bytes, len}, '"');
        buf_add(to, "/utf8", 5);
    } else {
        buf_char(to, '"');
        for (size_t i = 0; i < len; i++)
            put_char(to, (unsigned char)bytes[i], '"');
        buf_char(to, '"');
    }
    if (cut)
        put_missing(to, size - len, " B");
    buf_add(to, ">>", 2);
    return end;
}

/* ---- the walk ---- */

static void put_atom(struct buf *to, const struct wire_atom *a)
{
    char *p = buf_room(to, a->erl_len + 16u);

    memcpy(p, a->erl, 16); /* most are shorter, and a fixed size needs no call */
    if (unlikely(a->erl_len > 16))
        memcpy(p + 16, a->erl + 16, a->erl_len - 16u);
    to->len += a->erl_len;
}

static void put_small(struct buf *to, uint8_t v)
{
    char *p = buf_room(to, 4);
    unsigned hundreds = v >= 100, rest = v - 100 * hundreds;

    *p = '1';
    p += hundreds;
    p[0] = (char)('0' + rest / 10);
    p += hundreds | (rest >= 10);
    *p++ = (char)('0' + rest % 10);
    to->len = (size_t)(p - to->data);
}

/* An element of a container: most are atoms and small numbers, which need no call. */
static inline const uint8_t *put_element(struct buf *to, const struct term_env *env, const uint8_t *at)
{
    if (*at < 0x80) {
        put_small(to, *at);
        return at + 1;
    }
    if (*at == ETW_T_ATOM) {
        put_atom(to, &env->atoms->table[wire_u16(at + 1)]);
        return at + 3;
    }
    return erlang_print(to, env, at);
}

static const uint8_t *print_tuple(struct buf *to, const struct term_env *env, const uint8_t *at, uint32_t arity)
{
    buf_char(to, '{');
    for (uint32_t i = 0; i < arity; i++) {
        if (i)
            buf_char(to, ',');
        if (unlikely(*at == ETW_T_CUT)) {
            put_missing(to, arity - i, "");
            at++;
            break;
        }
        at = put_element(to, env, at);
    }
    buf_char(to, '}');
    return at;
}

static const uint8_t *print_list(struct buf *to, const struct term_env *env, const uint8_t *at)
{
    const uint8_t *text = *at < 0x80 || *at <= ETW_T_INT64 ? print_as_text(to, env, at) : NULL;

    if (text)
        return text;
    buf_char(to, '[');
    for (bool first = true;; first = false) {
        switch (*at) {
        case ETW_T_END:
            buf_char(to, ']');
            return at + 1;
        case ETW_T_CUT:
            buf_puts(to, first ? "…]" : ",…]");
            return at + 1;
        case ETW_T_TAIL:
            buf_char(to, '|');
            if (at[1] == ETW_T_CUT) {
                buf_puts(to, "…");
                at += 2;
            } else {
                at = erlang_print(to, env, at + 1);
            }
            buf_char(to, ']');
            return at;
        default:
            if (!first)
                buf_char(to, ',');
            at = put_element(to, env, at);
        }
    }
}

static const uint8_t *print_map(struct buf *to, const struct term_env *env, const uint8_t *at)
{
    uint32_t pairs = wire_u32(at + 1);

    at += 5;
    buf_add(to, "#{", 2);
    for (uint32_t i = 0; i < pairs; i++) {
        if (i)
            buf_char(to, ',');
        if (*at == ETW_T_CUT) {
            put_missing(to, pairs - i, "");
            at++;
            break;
        }
        at = put_element(to, env, at);
        buf_add(to, " => ", 4);
        if (*at == ETW_T_CUT) {
            buf_puts(to, "…");
            if (i + 1 < pairs) {
                buf_char(to, ',');
                put_missing(to, pairs - i - 1, "");
            }
            at++;
            break;
        }
        at = put_element(to, env, at);
    }
    buf_char(to, '}');
    return at;
}

const uint8_t *erlang_print(struct buf *to, const struct term_env *env, const uint8_t *at)
{
    uint8_t tag = *at;
    int64_t v;

    if (tag < 0x80) {
        put_small(to, tag);
        return at + 1;
    }
    if (tag >= ETW_T_TUPLE0 && tag < ETW_T_TUPLE0 + 32)
        return print_tuple(to, env, at + 1, tag - ETW_T_TUPLE0);
    switch (tag) {
    case ETW_T_INT16:
        wire_int(at, &v);
        print_i64(to, v);
        return at + 3;
    case ETW_T_INT32:
        wire_int(at, &v);
        print_i64(to, v);
        return at + 5;
    case ETW_T_INT64:
        wire_int(at, &v);
        print_i64(to, v);
        return at + 9;
    case ETW_T_BIGPOS:
    case ETW_T_BIGNEG:
        print_big(to, at + 3, wire_u16(at + 1), tag == ETW_T_BIGNEG);
        return at + 3 + wire_u16(at + 1);
    case ETW_T_FLOAT: {
        double d;
        memcpy(&d, at + 1, sizeof(d));
        erlang_print_float(to, d);
        return at + 9;
    }
    case ETW_T_ATOM:
        put_atom(to, &env->atoms->table[wire_u16(at + 1)]);
        return at + 3;
    case ETW_T_ATOMDEF:
        erlang_print_atom(to, (struct str){(const char *)at + 5, wire_u16(at + 3)});
        return at + 5 + wire_u16(at + 3);
    case ETW_T_ATOMTEXT:
        erlang_print_atom(to, (struct str){(const char *)at + 3, wire_u16(at + 1)});
        return at + 3 + wire_u16(at + 1);
    case ETW_T_PID:
        to->len += print_tracee(buf_room(to, 40), wire_u64(at + 1) & ~ETW_TRACEE_PORT);
        return at + 9;
    case ETW_T_PORT:
        to->len += print_tracee(buf_room(to, 40), wire_u64(at + 1) | ETW_TRACEE_PORT);
        return at + 9;
    case ETW_T_TEXT: {
        struct str text = {(const char *)at + 4, wire_u16(at + 2)};
        if (text.len)
            print_safe(to, text);
        else
            buf_puts(to, "…");
        return at + 4 + text.len;
    }
    case ETW_T_NIL:
        buf_add(to, "[]", 2);
        return at + 1;
    case ETW_T_LIST:
        return print_list(to, env, at + 1);
    case ETW_T_TUPLE:
        return print_tuple(to, env, at + 5, wire_u32(at + 1));
    case ETW_T_MAP:
        return print_map(to, env, at);
    case ETW_T_BIN:
    case ETW_T_BITS:
        return print_bin(to, env, at);
    case ETW_T_REDACTED:
        buf_puts(to, "'*REDACTED*'");
        return at + 1;
    case ETW_T_STRING:
        print_bytes_list(to, at + 3, wire_u16(at + 1), env->latin1);
        return at + 3 + wire_u16(at + 1);
    default: /* ETW_T_ELIDED; nothing else passes the check */
        buf_puts(to, "…");
        return at + 1;
    }
}

const struct printer printer_erlang = {
    .name = "erlang",
    .term = erlang_print,
    .atom = erlang_print_atom,
};

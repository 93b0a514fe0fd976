/* SPDX-License-Identifier: Apache-2.0 */
#include "term_json.h"

#include <math.h>

#include "../ground/utf8.h"

static void add_base64(struct buf *to, const char *bytes, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < len; i += 3) {
        size_t n = MIN(len - i, (size_t)3);
        uint32_t v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (k < n ? (unsigned char)bytes[i + k] : 0u);
        for (size_t k = 0; k < 4; k++)
            buf_char(to, k <= n ? digits[v >> (18 - 6 * k) & 63] : '=');
    }
}

/* Prints the term in Erlang's syntax as a JSON string. */
static const uint8_t *term_json_quoted(struct buf *to, const struct term_env *env, const uint8_t *at)
{
    buf_char(to, '"');
    size_t from = to->len;
    at = erlang_print(to, env, at);
    json_escape_tail(to, from);
    buf_char(to, '"');
    return at;
}

static const uint8_t *tagged(struct buf *to, const char *tag, const struct term_env *env, const uint8_t *at)
{
    buf_printf(to, "{\"%s\":", tag);
    at = term_json_quoted(to, env, at);
    buf_char(to, '}');
    return at;
}

static const uint8_t *term_json_put_bin(struct buf *to, const uint8_t *at)
{
    const uint8_t *head = at + (*at == ETW_T_BITS ? 2 : 1);
    uint64_t size = wire_u64(head);
    size_t len = wire_u32(head + 8);
    const char *bytes = (const char *)head + 12;

    if (*at == ETW_T_BIN && size == len && utf8_valid(bytes, len)) {
        json_quote(to, raw_bytes(bytes, len));
        return head + 12 + len;
    }
    if (*at == ETW_T_BIN && utf8_valid(bytes, len)) {
        buf_puts(to, "{\"text\":");
        json_quote(to, raw_bytes(bytes, len));
    } else {
        buf_puts(to, "{\"b64\":\"");
        add_base64(to, bytes, len);
        buf_char(to, '"');
    }
    if (*at == ETW_T_BITS)
        buf_printf(to, ",\"bits\":%u", at[1]);
    if (size > len)
        buf_printf(to, ",\"cut\":true,\"bytes\":%llu", (unsigned long long)size);
    buf_char(to, '}');
    return head + 12 + len;
}

static const char cut_mark[] = "{\"cut\":true}";

static const uint8_t *put_items(struct buf *to, const struct term_env *env, const uint8_t *at, uint64_t count)
{
    buf_char(to, '[');
    for (uint64_t i = 0; i < count; i++) {
        if (i)
            buf_char(to, ',');
        if (*at == ETW_T_CUT) {
            buf_puts(to, cut_mark);
            at++;
            break;
        }
        at = json_term(to, env, at);
    }
    buf_char(to, ']');
    return at;
}

static const uint8_t *term_json_put_list(struct buf *to, const struct term_env *env, const uint8_t *at)
{
    size_t from = to->len;
    const uint8_t *p = ++at;
    int64_t v;

    while (wire_int(p, &v))
        p = wire_token(p);
    if (p > at && (*p == ETW_T_END || *p == ETW_T_CUT)) {
        term_json_quoted(to, env, at - 1); /* let Erlang's printer decide whether the list is text */
        bool text = to->data[from + 1] == '\\';
        to->len = from;
        if (text) {
            struct buf utf8 = {0};
            for (const uint8_t *q = at; q < p; q = wire_token(q)) {
                wire_int(q, &v);
                buf_utf8(&utf8, (uint32_t)v);
            }
            if (*p == ETW_T_CUT)
                buf_puts(to, "{\"text\":");
            json_quote(to, raw_of(buf_view(&utf8)));
            if (*p == ETW_T_CUT)
                buf_puts(to, ",\"cut\":true}");
            buf_release(&utf8);
            return p + 1;
        }
    }
    buf_char(to, '[');
    for (bool first = true;; first = false) {
        if (*at == ETW_T_END) {
            buf_char(to, ']');
            return at + 1;
        }
        if (*at == ETW_T_TAIL) {
            buf_room(to, 8); /* an improper list: replace the array by an object */
            memmove(to->data + from + 8, to->data + from, to->len - from);
            memcpy(to->data + from, "{\"list\":", 8);
            to->len += 8;
            buf_puts(to, "],\"tail\":");
            if (at[1] == ETW_T_CUT) {
                buf_puts(to, cut_mark);
                at += 2;
            } else {
                at = json_term(to, env, at + 1);
            }
            buf_char(to, '}');
            return at;
        }
        if (!first)
            buf_char(to, ',');
        if (*at == ETW_T_CUT) {
            buf_puts(to, cut_mark);
            buf_char(to, ']');
            return at + 1;
        }
        at = json_term(to, env, at);
    }
}

static const uint8_t *put_map(struct buf *to, const struct term_env *env, const uint8_t *at)
{
    uint32_t pairs;
    const uint8_t *p;
    int64_t n = wire_map(at, &pairs, &p);
    const uint8_t *first = p;
    bool plain = true;

    for (int64_t i = 0; i < n && plain; i++) {
        struct raw raw;
        uint64_t size;
        plain = wire_atom(env, p, &raw) ||
                (wire_bin(p, &raw, &size) && size == raw.len && utf8_valid(raw_view(raw).at, raw.len));
        p = wire_skip(wire_skip(p));
    }
    buf_puts(to, plain ? "{" : "{\"map\":[");
    p = first;
    for (int64_t i = 0; i < n; i++) {
        struct raw raw = {NULL, 0};
        uint64_t size;
        if (i)
            buf_char(to, ',');
        if (plain) {
            if (!wire_atom(env, p, &raw))
                wire_bin(p, &raw, &size);
            json_quote(to, raw);
            buf_char(to, ':');
            p = json_term(to, env, wire_skip(p));
        } else {
            buf_char(to, '[');
            p = json_term(to, env, p);
            buf_char(to, ',');
            p = json_term(to, env, p);
            buf_char(to, ']');
        }
    }
    if ((uint64_t)n < pairs) {
        if (*p != ETW_T_CUT) /* a key whose value was cut */
            p = wire_skip(p);
        p++;
        if (n)
            buf_char(to, ',');
        buf_puts(to, plain ? "\"…\":" : "");
        buf_printf(to, "{\"cut\":%llu}", (unsigned long long)(pairs - (uint64_t)n));
    }
    buf_puts(to, plain ? "}" : "]}");
    return p;
}

const uint8_t *json_term(struct buf *to, const struct term_env *env, const uint8_t *at)
{
    uint8_t tag = *at;
    struct raw raw;
    int64_t v;

    if (wire_int(at, &v)) {
        bool exact = v >= -(INT64_C(1) << 53) && v <= INT64_C(1) << 53;
        if (!exact)
            buf_char(to, '"');
        print_i64(to, v);
        if (!exact)
            buf_char(to, '"');
        return wire_token(at);
    }
    if (wire_atom(env, at, &raw)) {
        const char *word = raw_is(raw, "true")    ? "true"
                           : raw_is(raw, "false") ? "false"
                           : raw_is(raw, "null")  ? "null"
                                                  : NULL;
        if (word)
            buf_puts(to, word);
        else
            json_quote(to, raw);
        return wire_token(at);
    }
    if (tag >= ETW_T_TUPLE0 && tag < ETW_T_TUPLE0 + 32) {
        buf_puts(to, "{\"tuple\":");
        at = put_items(to, env, at + 1, tag - ETW_T_TUPLE0);
        buf_char(to, '}');
        return at;
    }
    switch (tag) {
    case ETW_T_TUPLE:
        buf_puts(to, "{\"tuple\":");
        at = put_items(to, env, at + 5, wire_u32(at + 1));
        buf_char(to, '}');
        return at;
    case ETW_T_FLOAT: {
        double d;
        memcpy(&d, at + 1, sizeof(d));
        if (isfinite(d))
            erlang_print_float(to, d);
        else
            buf_puts(to, "null");
        return at + 9;
    }
    case ETW_T_NIL:
        buf_puts(to, "[]");
        return at + 1;
    case ETW_T_LIST:
        return term_json_put_list(to, env, at);
    case ETW_T_STRING: {
        size_t from = to->len;
        const uint8_t *end = term_json_quoted(to, env, at);
        bool text = to->data[from + 1] == '\\';
        to->len = from;
        if (!text) {
            buf_char(to, '[');
            for (const uint8_t *p = at + 3; p < end; p++) {
                if (p > at + 3)
                    buf_char(to, ',');
                print_u64(to, *p);
            }
            buf_char(to, ']');
        } else {
            struct buf utf8 = {0};
            for (const uint8_t *p = at + 3; p < end; p++)
                buf_utf8(&utf8, *p);
            json_quote(to, raw_of(buf_view(&utf8)));
            buf_release(&utf8);
        }
        return end;
    }
    case ETW_T_MAP:
        return put_map(to, env, at);
    case ETW_T_BIN:
    case ETW_T_BITS:
        return term_json_put_bin(to, at);
    case ETW_T_PID:
        return tagged(to, "pid", env, at);
    case ETW_T_PORT:
        return tagged(to, "port", env, at);
    case ETW_T_TEXT: {
        static const char *const tags[] = {"ref", "fun", "pid", "port", "other", "integer"};
        return tagged(to, at[1] < ARRAY_LEN(tags) ? tags[at[1]] : "other", env, at);
    }
    case ETW_T_REDACTED:
        buf_puts(to, "{\"redacted\":true}");
        return at + 1;
    case ETW_T_ELIDED:
        buf_puts(to, cut_mark);
        return at + 1;
    default: /* integers of more than 64 bits */
        return term_json_quoted(to, env, at);
    }
}

const struct printer printer_json = {
    .name = "json",
    .term = json_term,
    .atom = json_quote,
};

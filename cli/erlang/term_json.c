/* SPDX-License-Identifier: Apache-2.0 */
#include "term_json.h"

#include "../ground/utf8.h"

#define CUT_MEMBER "…" /* the member of an object for what was cut */

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
    json_open_string(to);
    size_t from = to->len;
    at = erlang_print(to, env, at);
    json_escape_tail(to, from);
    json_close_string(to);
    return at;
}

static const uint8_t *put_tagged_text(struct buf *to, const char *tag, const struct term_env *env, const uint8_t *at)
{
    json_open_object(to);
    json_key(to, tag);
    at = term_json_quoted(to, env, at);
    json_end_object(to);
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
    json_open_object(to);
    if (*at == ETW_T_BIN && utf8_valid(bytes, len)) {
        json_put_string(to, "text", raw_bytes(bytes, len));
    } else {
        json_key(to, "b64"), json_open_string(to);
        add_base64(to, bytes, len);
        json_close_string(to);
    }
    if (*at == ETW_T_BITS)
        json_put_uint(to, "bits", at[1]);
    if (size > len) {
        json_put_bool(to, "cut", true);
        json_put_uint(to, "bytes", size);
    }
    json_end_object(to);
    return head + 12 + len;
}

static void put_mark(struct buf *to, const char *mark)
{
    json_open_object(to);
    json_put_bool(to, mark, true);
    json_end_object(to);
}

static const uint8_t *put_tuple(struct buf *to, const struct term_env *env, const uint8_t *at, uint64_t count)
{
    json_open_object(to);
    json_put_array(to, "tuple");
    for (uint64_t i = 0; i < count; i++) {
        json_value(to);
        if (*at == ETW_T_CUT) {
            put_mark(to, "cut");
            at++;
            break;
        }
        at = json_term(to, env, at);
    }
    json_end_array(to);
    json_end_object(to);
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
            json_quote(to, raw_of(buf_view(&utf8)));
            if (*p == ETW_T_CUT) {
                json_wrap(to, from, "text");
                json_put_bool(to, "cut", true);
                json_end_object(to);
            }
            buf_release(&utf8);
            return p + 1;
        }
    }
    json_open_array(to);
    while (*at != ETW_T_END && *at != ETW_T_TAIL) {
        json_value(to);
        if (*at == ETW_T_CUT) {
            put_mark(to, "cut");
            break;
        }
        at = json_term(to, env, at);
    }
    json_end_array(to);
    if (*at != ETW_T_TAIL)
        return at + 1;
    json_wrap(to, from, "list"); /* an improper list */
    json_key(to, "tail");
    if (at[1] == ETW_T_CUT) {
        put_mark(to, "cut");
        at += 2;
    } else {
        at = json_term(to, env, at + 1);
    }
    json_end_object(to);
    return at;
}

/*
 * Returns true if the first n keys of a map can be the names of members: all are atoms, or all are whole texts. An atom
 * and a text may have the same name. CUT_MEMBER is the name of a member of ours.
 */
static bool are_names(const struct term_env *env, const uint8_t *at, int64_t n)
{
    bool atoms = true, texts = true;

    for (int64_t i = 0; i < n && (atoms || texts); i++, at = wire_skip(wire_skip(at))) {
        struct raw raw = {NULL, 0};
        uint64_t size;
        atoms = atoms && wire_atom(env, at, &raw) && !raw_is(raw, CUT_MEMBER);
        texts = texts && wire_bin(at, &raw, &size) && size == raw.len && utf8_valid(raw_view(raw).at, raw.len) &&
                !raw_is(raw, CUT_MEMBER);
    }
    return atoms || texts;
}

static const uint8_t *put_map(struct buf *to, const struct term_env *env, const uint8_t *at)
{
    uint32_t pairs;
    const uint8_t *p;
    const int64_t n = wire_map(at, &pairs, &p);
    const bool plain = are_names(env, p, n);

    json_open_object(to);
    if (!plain)
        json_put_array(to, "map");
    for (int64_t i = 0; i < n; i++) {
        struct raw raw = {NULL, 0};
        uint64_t size;
        if (plain) {
            if (!wire_atom(env, p, &raw))
                wire_bin(p, &raw, &size);
            json_key_raw(to, raw);
            p = json_term(to, env, wire_skip(p));
        } else {
            json_begin_array(to);
            p = json_term(to, env, p);
            json_value(to);
            p = json_term(to, env, p);
            json_end_array(to);
        }
    }
    if ((uint64_t)n < pairs) {
        if (*p != ETW_T_CUT) /* the value of this key was cut */
            p = wire_skip(p);
        p++;
        if (plain)
            json_put_object(to, CUT_MEMBER);
        else
            json_begin_object(to);
        json_put_uint(to, "cut", pairs - (uint64_t)n);
        json_end_object(to);
    }
    if (!plain)
        json_end_array(to);
    json_end_object(to);
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
            json_open_string(to);
        print_i64(to, v);
        if (!exact)
            json_close_string(to);
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
    if (tag >= ETW_T_TUPLE0 && tag < ETW_T_TUPLE0 + 32)
        return put_tuple(to, env, at + 1, tag - ETW_T_TUPLE0);
    switch (tag) {
    case ETW_T_TUPLE:
        return put_tuple(to, env, at + 5, wire_u32(at + 1));
    case ETW_T_FLOAT: {
        double d;
        memcpy(&d, at + 1, sizeof(d));
        json_open_real(to, d);
        return at + 9;
    }
    case ETW_T_NIL:
        json_open_array(to);
        json_end_array(to);
        return at + 1;
    case ETW_T_LIST:
        return term_json_put_list(to, env, at);
    case ETW_T_STRING: {
        size_t from = to->len;
        const uint8_t *end = term_json_quoted(to, env, at);
        bool text = to->data[from + 1] == '\\';
        to->len = from;
        if (!text) {
            json_open_array(to);
            for (const uint8_t *p = at + 3; p < end; p++)
                json_uint(to, *p);
            json_end_array(to);
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
        return put_tagged_text(to, "pid", env, at);
    case ETW_T_PORT:
        return put_tagged_text(to, "port", env, at);
    case ETW_T_TEXT: {
        static const char *const tags[] = {"ref", "fun", "pid", "port", "other", "integer"};
        return put_tagged_text(to, at[1] < ARRAY_LEN(tags) ? tags[at[1]] : "other", env, at);
    }
    case ETW_T_REDACTED:
        put_mark(to, "redacted");
        return at + 1;
    case ETW_T_ELIDED:
        put_mark(to, "cut");
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints terms as inspect/2 does without limits, on one line. The Inspect implementations live on the node, so a struct
 * is printed by its fields; term_struct.c handles the exceptions.
 */
#include "term_elixir.h"

#include <stdio.h>

#include "../ground/utf8.h"

/* ---- atoms ---- */

enum atom_class { ALIAS, PLAIN, QUOTED };

static bool term_elixir_is_digit(uint32_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(uint32_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool begins_elixir(struct str s)
{
    return s.len > 7 && !memcmp(s.at, "Elixir.", 7);
}

static bool is_alias(struct str s)
{
    bool begin = true;

    if (!begins_elixir(s))
        return s.len == 6 && !memcmp(s.at, "Elixir", 6);
    for (size_t i = 7; i < s.len; i++) {
        char c = s.at[i];
        if (begin ? !(c >= 'A' && c <= 'Z')
                  : !(is_letter((unsigned char)c) || term_elixir_is_digit((unsigned char)c) || c == '_' || c == '.'))
            return false;
        begin = c == '.';
    }
    return !begin;
}

bool elixir_is_module(struct raw atom)
{
    return begins_elixir(raw_view(atom)) && is_alias(raw_view(atom));
}

static bool is_operator(struct str s)
{
    static const char *const words[] = {
        "%",   "%{}", "{}", "<<>>", "...", "..", ".",    "..//", "->",  "+",   "-",   "*",   "/",  "**", "++",  "--",
        "+++", "---", "<>", "!",    "^",   "&",  "&&",   "&&&",  "|",   "||",  "|||", "=",   "=~", "==", "===", "!=",
        "!==", "<",   ">",  "<=",   ">=",  "<-", "\\\\", "|>",   "<<<", ">>>", "<<~", "~>>", "<~", "~>", "<~>", "@",
    };

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strlen(words[i]) == s.len && !memcmp(words[i], s.at, s.len))
            return true;
    return false;
}

/*
 * Returns true for a name that needs no quotes. Letters beyond Latin-1 do not count as letters here: such a name is
 * quoted, which means the same to Elixir.
 */
static bool is_identifier(struct str s)
{
    const char *at = s.at, *end;
    bool upper = false, first = true;

    if (!s.len)
        return false;
    for (end = at + s.len; at < end; first = false) {
        uint32_t c = utf8_next(&at, end);
        if (first)
            upper = (c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0xde);
        if (is_letter(c) || c == '_' || (c >= 0xc0 && c <= 0xff && c != 0xd7 && c != 0xf7))
            continue;
        if (!first && (term_elixir_is_digit(c) || c == '@' || c == 0xb7 || (c == 0xb5 && upper) ||
                       ((c == '?' || c == '!') && at == end)))
            continue;
        return false;
    }
    return true;
}

static enum atom_class atom_class_of(struct str s)
{
    return is_alias(s) ? ALIAS : is_identifier(s) || is_operator(s) ? PLAIN : QUOTED;
}

/* ---- text ---- */

/* Returns true for characters that inspect/2 escapes because they look like a space. */
static bool is_space(uint32_t c)
{
    return c == 0xa0 || (c >= 0x2000 && c <= 0x200a) || c == 0x205f || c == 0xfffc;
}

void elixir_print_char(struct buf *to, uint32_t c, char quote)
{
    static const char names[128] = {
        [0] = '0',    [7] = 'a',    ['\b'] = 'b', ['\t'] = 't',  ['\n'] = 'n', ['\v'] = 'v',
        ['\f'] = 'f', ['\r'] = 'r', [27] = 'e',   ['\\'] = '\\', [127] = 'd',
    };

    if (c == (unsigned char)quote || (c < 128 && names[c])) {
        buf_char(to, '\\');
        buf_char(to, c == (unsigned char)quote ? quote : names[c]);
    } else if (utf8_shows(c) && !is_space(c)) {
        buf_utf8(to, c);
    } else if (c < 0x100 && c != 0xa0) {
        buf_printf(to, "\\x%02X", c);
    } else if (c < 0x10000) {
        buf_printf(to, "\\u%04X", c);
    } else {
        buf_printf(to, "\\u{%X}", c);
    }
}

static void term_elixir_put_string(struct buf *to, struct str text)
{
    const char *at = text.at, *end = text.len ? at + text.len : at;

    buf_char(to, '"');
    while (at < end) {
        const char *from = at;
        uint32_t c = utf8_next(&at, end);
        if (c == UTF8_BAD)
            buf_printf(to, "\\x%02X", (unsigned char)*from);
        else if (c == '#' && at < end && *at == '{')
            buf_puts(to, "\\#");
        else
            elixir_print_char(to, c, '"');
    }
    buf_char(to, '"');
}

static void print_atom(struct buf *to, struct raw name)
{
    struct str raw = raw_view(name);

    switch (atom_class_of(raw)) {
    case ALIAS:
        if (raw.len > 7)
            raw = (struct str){raw.at + 7, raw.len - 7};
        buf_str(to, raw);
        return;
    case PLAIN:
        if ((raw.len != 3 || memcmp(raw.at, "nil", 3)) && (raw.len != 4 || memcmp(raw.at, "true", 4)) &&
            (raw.len != 5 || memcmp(raw.at, "false", 5)))
            buf_char(to, ':');
        buf_str(to, raw);
        return;
    case QUOTED:
        buf_char(to, ':');
        term_elixir_put_string(to, raw);
    }
}

void elixir_print_key(struct buf *to, struct raw name)
{
    struct str raw = raw_view(name);

    if (atom_class_of(raw) == PLAIN)
        buf_str(to, raw);
    else
        term_elixir_put_string(to, raw);
    buf_puts(to, ": ");
}

/* ---- binaries and lists ---- */

static bool term_elixir_is_printable(uint32_t c)
{
    return (c >= 0x20 && c <= 0x7f) || (c >= 7 && c <= 13) || c == 27 || (c >= 0xa0 && c <= 0xd7ff) ||
           (c >= 0xe000 && c <= 0xfffd) || (c >= 0x10000 && c <= 0x10ffff);
}

static bool is_string(const char *at, size_t len)
{
    const char *end = len ? at + len : at;

    while (at < end)
        if (!term_elixir_is_printable(utf8_next(&at, end)))
            return false;
    return true;
}

void elixir_print_missing(struct buf *to, uint64_t missing, const char *unit)
{
    buf_puts(to, "…+");
    print_u64(to, missing);
    buf_puts(to, unit);
}

static const uint8_t *print_bin(struct buf *to, const uint8_t *at)
{
    unsigned bits = *at == ETW_T_BITS ? at[1] : 8;
    const uint8_t *head = at + (*at == ETW_T_BITS ? 2 : 1);
    uint64_t size = wire_u64(head);
    size_t captured = wire_u32(head + 8), len = captured;
    const char *bytes = (const char *)head + 12;
    bool cut = size > captured;

    for (size_t n = 1; cut && n <= 3 && n <= captured; n++) { /* leave out a character that the cut split */
        unsigned char c = (unsigned char)bytes[captured - n];
        if ((c & 0xc0) == 0x80)
            continue;
        if ((c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : c >= 0xc0 ? 2u : 1u) > n)
            len = captured - n;
        break;
    }
    if (bits == 8 && is_string(bytes, len) && (len || !cut)) {
        term_elixir_put_string(to, (struct str){bytes, len});
        if (cut)
            elixir_print_missing(to, size - len, " B");
        return head + 12 + captured;
    }
    buf_puts(to, "<<");
    for (size_t i = 0; i < captured; i++) {
        bool last = i + 1 == captured && !cut && bits != 8;
        if (i)
            buf_puts(to, ", ");
        print_u64(to, (uint64_t)(unsigned char)bytes[i] >> (last ? 8 - bits : 0));
        if (last)
            buf_printf(to, "::size(%u)", bits);
    }
    if (cut) {
        buf_puts(to, captured ? ", " : "");
        elixir_print_missing(to, size - captured, " B");
    }
    buf_puts(to, ">>");
    return head + 12 + captured;
}

static bool is_ascii_text(int64_t c)
{
    return (c >= 0x20 && c <= 0x7e) || (c >= 7 && c <= 13) || c == 27;
}

static const uint8_t *print_bytes_list(struct buf *to, const uint8_t *at)
{
    size_t len = wire_u16(at + 1);
    bool text = len > 0;

    for (size_t i = 0; i < len && text; i++)
        text = is_ascii_text(at[3 + i]);
    buf_puts(to, text ? "~c\"" : "[");
    for (size_t i = 0; i < len; i++) {
        if (text) {
            if (at[3 + i] == '#' && i + 1 < len && at[4 + i] == '{')
                buf_char(to, '\\');
            elixir_print_char(to, at[3 + i], '"');
            continue;
        }
        if (i)
            buf_puts(to, ", ");
        print_u64(to, at[3 + i]);
    }
    buf_char(to, text ? '"' : ']');
    return at + 3 + len;
}

/* Matches a tuple {key, value} whose key can be printed as `key:`. Sets *ret_key to the name of the key. */
bool elixir_is_pair(const struct term_env *env, const uint8_t *at, struct raw *ret_key, const uint8_t **ret_value)
{
    if (*at != ETW_T_TUPLE0 + 2 || !wire_atom(env, at + 1, ret_key) || begins_elixir(raw_view(*ret_key)))
        return false;
    *ret_value = wire_skip(at + 1);
    return **ret_value != ETW_T_CUT;
}

static bool is_keywords(const struct term_env *env, const uint8_t *at)
{
    struct raw key;
    const uint8_t *value;
    bool any = false;

    for (; *at != ETW_T_END && *at != ETW_T_CUT; any = true) {
        if (*at == ETW_T_TAIL || !elixir_is_pair(env, at, &key, &value))
            return false;
        at = wire_skip(value);
    }
    return any;
}

static const uint8_t *print_list(struct buf *to, const struct term_env *env, const uint8_t *at)
{
    const uint8_t *p = at, *value = at;
    struct raw key;
    int64_t v;

    while (wire_int(p, &v) && is_ascii_text(v))
        p = wire_token(p);
    if (p > at && (*p == ETW_T_END || *p == ETW_T_CUT)) {
        buf_puts(to, "~c\"");
        for (; at < p; at = wire_token(at)) {
            wire_int(at, &v);
            if (v == '#' && *wire_token(at) == '{')
                buf_char(to, '\\');
            elixir_print_char(to, (uint32_t)v, '"');
        }
        buf_puts(to, *p == ETW_T_CUT ? "\"…" : "\"");
        return p + 1;
    }
    bool keywords = *at == ETW_T_TUPLE0 + 2 && is_keywords(env, at);
    buf_char(to, '[');
    for (bool first = true;; first = false) {
        if (*at == ETW_T_END || *at == ETW_T_CUT) {
            if (*at == ETW_T_CUT)
                buf_puts(to, first ? "…" : ", …");
            buf_char(to, ']');
            return at + 1;
        }
        if (*at == ETW_T_TAIL) {
            buf_puts(to, " | ");
            if (at[1] == ETW_T_CUT)
                buf_puts(to, "…");
            at = at[1] == ETW_T_CUT ? at + 2 : elixir_print(to, env, at + 1);
            buf_char(to, ']');
            return at;
        }
        if (!first)
            buf_puts(to, ", ");
        if (keywords) {
            elixir_is_pair(env, at, &key, &value);
            elixir_print_key(to, key);
            at = elixir_print(to, env, value);
        } else {
            at = elixir_print(to, env, at);
        }
    }
}

static const uint8_t *print_tuple(struct buf *to, const struct term_env *env, const uint8_t *at, uint32_t arity)
{
    buf_char(to, '{');
    for (uint32_t i = 0; i < arity; i++) {
        if (i)
            buf_puts(to, ", ");
        if (*at == ETW_T_CUT) {
            elixir_print_missing(to, arity - i, "");
            at++;
            break;
        }
        at = elixir_print(to, env, at);
    }
    buf_char(to, '}');
    return at;
}

/* ---- maps and structs ---- */

/*
 * Prints a struct with its fields in the order of their definition. Returns false if the order is unknown or does
 * not contain every field of the struct.
 */
static bool print_ordered(struct buf *to, const struct elixir_struct *s)
{
    const char *order = elixir_field_order(s->name);
    const uint8_t *values[20];
    struct raw names[ARRAY_LEN(values)];
    size_t n = 0, known = 1 + (elixir_field(s, "__exception__") != NULL);
    char name[32];

    for (const char *at = order; at && *at && n < ARRAY_LEN(values); at += strcspn(at, " ") + 1) {
        size_t len = strcspn(at, " ?");
        snprintf(name, sizeof(name), "%.*s", (int)len, at);
        values[n] = elixir_field(s, name);
        known += values[n] != NULL;
        bool empty = values[n] && (*values[n] == ETW_T_NIL || wire_is_atom(s->env, values[n], "nil"));
        if (values[n] && !(at[len] == '?' && empty))
            names[n++] = raw_bytes(at, len);
    }
    if (!order || known != (size_t)s->pairs)
        return false;
    buf_char(to, '%');
    buf_str(to, s->name);
    buf_char(to, '{');
    for (size_t i = 0; i < n; i++) {
        buf_puts(to, i ? ", " : "");
        elixir_print_key(to, names[i]);
        elixir_print(to, s->env, values[i]);
    }
    buf_char(to, '}');
    return true;
}

static const uint8_t *print_map(struct buf *to, const struct term_env *env, const uint8_t *at)
{
    uint32_t pairs;
    const uint8_t *p, *first;
    int64_t n = wire_map(at, &pairs, &first);
    bool keys = n > 0, any = false;
    struct raw name = {NULL, 0}, key;

    p = first;
    for (int64_t i = 0; i < n; i++) {
        bool atom = wire_atom(env, p, &key);
        keys &= atom && !begins_elixir(raw_view(key));
        const uint8_t *value = wire_skip(p);
        if (atom && raw_is(key, "__struct__"))
            wire_atom(env, value, &name);
        p = wire_skip(value);
    }
    bool is_struct = keys && name.len && is_alias(raw_view(name));
    if (is_struct && n == (int64_t)pairs && begins_elixir(raw_view(name))) {
        struct elixir_struct all = {.env = env,
                                    .name = {raw_view(name).at + 7, name.len - 7},
                                    .first = first,
                                    .pairs = n};
        if (elixir_print_struct(to, &all) || print_ordered(to, &all))
            return p;
    }
    buf_char(to, '%');
    if (is_struct)
        print_atom(to, name);
    buf_char(to, '{');
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *value = wire_skip(first);
        if (is_struct && (wire_is_atom(env, first, "__struct__") || wire_is_atom(env, first, "__exception__"))) {
            first = wire_skip(value);
            continue;
        }
        if (any)
            buf_puts(to, ", ");
        any = true;
        if (keys) {
            wire_atom(env, first, &key);
            elixir_print_key(to, key);
        } else {
            elixir_print(to, env, first);
            buf_puts(to, " => ");
        }
        first = elixir_print(to, env, value);
    }
    if (n < (int64_t)pairs) {
        if (*first != ETW_T_CUT) /* the value of this key was cut */
            first = wire_skip(first);
        first++;
        buf_puts(to, any ? ", " : "");
        elixir_print_missing(to, pairs - (uint64_t)n, "");
    }
    buf_char(to, '}');
    return first;
}

/* ---- the rest ---- */

static bool starts_with(struct str s, const char *with)
{
    return s.len >= strlen(with) && !memcmp(s.at, with, strlen(with));
}

/* Rewrites #Fun<Elixir.Shop.1.2345> as #Function<1.2345 in Shop>. Returns false if the text has another form. */
static bool put_function(struct buf *to, struct str text)
{
    const char *at = text.at + text.len - 1;
    const size_t before = strlen("#Fun<");

    for (int dots = 0; dots < 2 && at > text.at + before; dots += *at == '.')
        at--;
    if (*at != '.' || text.at[text.len - 1] != '>')
        return false;
    struct str module = {text.at + before, (size_t)(at - text.at) - before};
    if (module.len > 2 && *module.at == '\'')
        module = (struct str){module.at + 1, module.len - 2};
    buf_puts(to, "#Function<");
    print_safe(to, raw_of((struct str){at + 1, (size_t)(text.at + text.len - at) - 2}));
    buf_puts(to, " in ");
    print_atom(to, raw_of(module));
    buf_char(to, '>');
    return true;
}

/* Writes the node's text of a pid, reference or function in Elixir's spelling. */
static void term_elixir_put_text(struct buf *to, uint8_t what, struct str text)
{
    if (what == ETW_TEXT_REF && starts_with(text, "#Ref<")) {
        buf_puts(to, "#Reference");
        text = (struct str){text.at + 4, text.len - 4};
    } else if (what == ETW_TEXT_PID && starts_with(text, "<")) {
        buf_puts(to, "#PID");
    } else if (what == ETW_TEXT_FUN && starts_with(text, "#Fun<")) {
        if (put_function(to, text))
            return;
        buf_puts(to, "#Function");
        text = (struct str){text.at + 4, text.len - 4};
    } else if (what == ETW_TEXT_FUN && starts_with(text, "fun ")) {
        const char *colon = memchr(text.at, ':', text.len);
        struct str module = {text.at + 4, colon ? (size_t)(colon - text.at) - 4 : 0};
        if (module.len > 2 && *module.at == '\'')
            module = (struct str){module.at + 1, module.len - 2};
        if (colon) {
            buf_char(to, '&');
            print_atom(to, raw_of(module));
            buf_char(to, '.');
            text = (struct str){colon + 1, text.len - (size_t)(colon + 1 - text.at)};
        }
    }
    print_safe(to, raw_of(text));
}

const uint8_t *elixir_print(struct buf *to, const struct term_env *env, const uint8_t *at)
{
    struct raw raw;

    if (wire_atom(env, at, &raw)) {
        print_atom(to, raw);
        return wire_token(at);
    }
    switch (*at) {
    case ETW_T_FLOAT: {
        double d;
        memcpy(&d, at + 1, sizeof(d));
        if ((d >= 1 || d <= -1) && d < 1e16 && d > -1e16 && d == (double)(int64_t)d) {
            print_i64(to, (int64_t)d);
            buf_puts(to, ".0");
        } else {
            erlang_print_float(to, d);
        }
        return at + 9;
    }
    case ETW_T_PID:
        buf_puts(to, "#PID");
        return erlang_print(to, env, at);
    case ETW_T_TEXT:
        raw = raw_bytes(at + 4, wire_u16(at + 2));
        if (raw.len)
            term_elixir_put_text(to, at[1], raw_view(raw));
        else
            buf_puts(to, "…");
        return at + 4 + raw.len;
    case ETW_T_LIST:
        return print_list(to, env, at + 1);
    case ETW_T_STRING:
        return print_bytes_list(to, at);
    case ETW_T_TUPLE:
        return print_tuple(to, env, at + 5, wire_u32(at + 1));
    case ETW_T_TUPLE0 ... ETW_T_TUPLE0 + 31:
        return print_tuple(to, env, at + 1, *at - ETW_T_TUPLE0);
    case ETW_T_MAP:
        return print_map(to, env, at);
    case ETW_T_BIN:
    case ETW_T_BITS:
        return print_bin(to, at);
    case ETW_T_REDACTED:
        buf_puts(to, ":\"*REDACTED*\"");
        return at + 1;
    default: /* numbers, ports, [] and elided terms look the same in both languages */
        return erlang_print(to, env, at);
    }
}

const struct printer printer_elixir = {
    .name = "elixir",
    .term = elixir_print,
    .atom = print_atom,
};

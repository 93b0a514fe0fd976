/* SPDX-License-Identifier: Apache-2.0 */
#include "json_read.h"

#include "json.h"
#include "utf8.h"

const char *const json_kind_names[] = {"null", "a boolean", "a number", "a string", "an array", "an object"};

struct json_reader {
    const char *begin, *at, *end;
    struct arena *arena;
    struct err *err;
    unsigned depth;
};

static struct json *read_value(struct json_reader *r);

/* Sets the error at the current byte. Returns NULL, so that a caller can return the result. */
static void *json_read_fail(struct json_reader *r, const char *what)
{
    err_set(r->err, ERR_USAGE, "%s at byte %zu", what, (size_t)(r->at - r->begin));
    return NULL;
}

static void skip_space(struct json_reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static bool take_char(struct json_reader *r, char c)
{
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static struct json *new_json(struct json_reader *r, enum json_kind kind)
{
    struct json *json = arena_alloc(r->arena, sizeof(*json));

    json->kind = kind;
    return json;
}

/* ---- strings ---- */

static bool read_hex(struct json_reader *r, uint32_t *ret)
{
    *ret = 0;
    for (unsigned i = 0; i < 4; i++, r->at++) {
        if (r->at == r->end)
            return false;
        const char c = *r->at;
        if (c >= '0' && c <= '9')
            *ret = *ret << 4 | (uint32_t)(c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            *ret = *ret << 4 | (uint32_t)((c | 32) - 'a' + 10);
        else
            return false;
    }
    return true;
}

/* Reads what follows \u. A character beyond U+FFFF is written as two surrogates. */
static bool read_unicode(struct json_reader *r, uint32_t *ret)
{
    uint32_t low;

    if (!read_hex(r, ret))
        return json_read_fail(r, "\\u needs four hexadecimal digits");
    if (*ret < 0xd800 || *ret > 0xdfff)
        return true;
    if (*ret > 0xdbff || r->end - r->at < 2 || r->at[0] != '\\' || r->at[1] != 'u')
        return json_read_fail(r, "a lone surrogate");
    r->at += 2;
    if (!read_hex(r, &low) || low < 0xdc00 || low > 0xdfff)
        return json_read_fail(r, "a lone surrogate");
    *ret = 0x10000 + ((*ret - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

static bool read_escape(struct json_reader *r, uint32_t *ret)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *name = r->at < r->end && *r->at ? strchr(names, *r->at) : NULL;

    if (name) {
        r->at++;
        *ret = (unsigned char)values[name - names];
        return true;
    }
    if (take_char(r, 'u'))
        return read_unicode(r, ret);
    return json_read_fail(r, "an unknown escape");
}

/* Reads one character of a string. *ret_over: the string ends here. */
static bool read_character(struct json_reader *r, uint32_t *ret, bool *ret_over)
{
    if (r->at == r->end)
        return json_read_fail(r, "a string without an end");
    if ((*ret_over = take_char(r, '"')))
        return true;
    if (take_char(r, '\\'))
        return read_escape(r, ret);
    if ((unsigned char)*r->at < ' ')
        return json_read_fail(r, "a control character in a string");
    const char *from = r->at;
    *ret = utf8_next(&r->at, r->end);
    if (*ret != UTF8_BAD)
        return true;
    r->at = from;
    return json_read_fail(r, "malformed UTF-8");
}

/* Reads the rest of a string into the arena, with a NUL after it. A decoded string is never longer than the source. */
static bool read_string(struct json_reader *r, struct raw *ret)
{
    const char *quote = r->at;
    uint32_t c = 0;
    bool over = false;

    while (quote < r->end && *quote != '"')
        quote += *quote == '\\' && quote + 1 < r->end ? 2 : 1;
    char *text = arena_alloc(r->arena, (size_t)(quote - r->at) + 4), *to = text;
    while (read_character(r, &c, &over)) {
        if (over) {
            *ret = raw_bytes(text, (size_t)(to - text));
            return true;
        }
        to += utf8_put(to, c);
    }
    return false;
}

/* ---- other values ---- */

static bool take_digits(struct json_reader *r)
{
    const char *from = r->at;

    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return r->at > from;
}

static struct json *read_number(struct json_reader *r)
{
    const char *from = r->at;

    take_char(r, '-');
    bool ok = take_char(r, '0') || take_digits(r);
    if (ok && take_char(r, '.'))
        ok = take_digits(r);
    if (ok && (take_char(r, 'e') || take_char(r, 'E'))) {
        if (!take_char(r, '+'))
            take_char(r, '-');
        ok = take_digits(r);
    }
    if (!ok)
        return json_read_fail(r, "malformed number");
    struct json *json = new_json(r, JSON_NUMBER);
    const size_t len = (size_t)(r->at - from);
    json->text = raw_bytes(arena_strndup(r->arena, from, len), len);
    return json;
}

static struct json *read_literal(struct json_reader *r)
{
    static const struct {
        const char *word;
        enum json_kind kind;
    } literals[] = {{"true", JSON_BOOL}, {"false", JSON_BOOL}, {"null", JSON_NULL}};

    for (size_t i = 0; i < ARRAY_LEN(literals); i++) {
        const size_t len = strlen(literals[i].word);
        if ((size_t)(r->end - r->at) < len || memcmp(r->at, literals[i].word, len) != 0)
            continue;
        r->at += len;
        struct json *json = new_json(r, literals[i].kind);
        json->truth = i == 0;
        return json;
    }
    return json_read_fail(r, r->at == r->end ? "expected a value" : "no JSON value");
}

static struct json *read_array(struct json_reader *r)
{
    struct json *array = new_json(r, JSON_ARRAY), **at = &array->first;

    skip_space(r);
    if (take_char(r, ']'))
        return array;
    do {
        if (!(*at = read_value(r)))
            return NULL;
        at = &(*at)->next;
    } while (take_char(r, ','));
    return take_char(r, ']') ? array : json_read_fail(r, "expected , or ]");
}

static bool has_key(const struct json *object, struct raw key)
{
    for (const struct json *at = object->first; at; at = at->next)
        if (raw_same(at->key, key))
            return true;
    return false;
}

static struct json *read_member(struct json_reader *r, const struct json *object)
{
    struct raw key;

    skip_space(r);
    if (!take_char(r, '"'))
        return json_read_fail(r, "expected a key");
    if (!read_string(r, &key))
        return NULL;
    if (has_key(object, key))
        return json_read_fail(r, "the same key twice");
    skip_space(r);
    if (!take_char(r, ':'))
        return json_read_fail(r, "expected :");
    struct json *value = read_value(r);
    if (value)
        value->key = key;
    return value;
}

static struct json *read_object(struct json_reader *r)
{
    struct json *object = new_json(r, JSON_OBJECT), **at = &object->first;
    size_t n = 0;

    skip_space(r);
    if (take_char(r, '}'))
        return object;
    do {
        if (n++ == JSON_MEMBERS_MOST)
            return json_read_fail(r, "too many members");
        struct json *member = read_member(r, object);
        if (!member)
            return NULL;
        *at = member;
        at = &member->next;
    } while (take_char(r, ','));
    return take_char(r, '}') ? object : json_read_fail(r, "expected , or }");
}

/* Reads a value and the white space around it. */
static struct json *read_value(struct json_reader *r)
{
    struct json *json;

    skip_space(r);
    if (++r->depth > JSON_DEPTH_MOST)
        return json_read_fail(r, "too many levels");
    if (take_char(r, '{')) {
        json = read_object(r);
    } else if (take_char(r, '[')) {
        json = read_array(r);
    } else if (take_char(r, '"')) {
        json = new_json(r, JSON_STRING);
        json = read_string(r, &json->text) ? json : NULL;
    } else if (r->at < r->end && (*r->at == '-' || (*r->at >= '0' && *r->at <= '9'))) {
        json = read_number(r);
    } else {
        json = read_literal(r);
    }
    r->depth--;
    skip_space(r);
    return json;
}

bool json_read(struct str text, struct arena *a, struct json **ret, struct err *e)
{
    struct json_reader r = {.begin = text.at, .at = text.at, .end = text.at + text.len, .arena = a, .err = e};
    struct json *json = read_value(&r);

    if (!json)
        return false;
    if (r.at < r.end)
        return json_read_fail(&r, "text after the value");
    *ret = json;
    return true;
}

/* ---- writing ---- */

static void put_items(struct buf *to, const struct json *json)
{
    for (const struct json *at = json->first; at; at = at->next) {
        if (json->kind == JSON_OBJECT)
            json_key_raw(to, at->key);
        json_put_read(to, at);
    }
}

void json_put_read(struct buf *to, const struct json *json)
{
    switch (json->kind) {
    case JSON_NULL:
        json_null(to);
        break;
    case JSON_BOOL:
        json_bool(to, json->truth);
        break;
    case JSON_NUMBER:
        json_ready(to, raw_view(json->text));
        break;
    case JSON_STRING:
        json_string(to, json->text);
        break;
    case JSON_ARRAY:
        json_begin_array(to);
        put_items(to, json);
        json_end_array(to);
        break;
    case JSON_OBJECT:
        json_begin_object(to);
        put_items(to, json);
        json_end_object(to);
        break;
    }
}

/* ---- access ---- */

const struct json *json_member(const struct json *object, const char *key)
{
    if (!object || object->kind != JSON_OBJECT)
        return NULL;
    for (const struct json *at = object->first; at; at = at->next)
        if (raw_is(at->key, key))
            return at;
    return NULL;
}

const char *json_text_of(const struct json *json)
{
    if (!json || json->kind != JSON_STRING)
        return NULL;
    const struct str text = raw_view(json->text);
    return memchr(text.at, 0, text.len) ? NULL : text.at;
}

bool json_integer(const struct json *json, int64_t *ret)
{
    if (!json || json->kind != JSON_NUMBER)
        return false;
    struct str text = raw_view(json->text);
    const bool negative = *text.at == '-';
    int64_t n = 0;
    size_t i = negative;

    for (; i < text.len && text.at[i] >= '0' && text.at[i] <= '9'; i++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_sub_overflow(n, text.at[i] - '0', &n))
            return false;
    if (i < text.len && text.at[i] == '.')
        for (i++; i < text.len && text.at[i] == '0'; i++)
            ;
    if (i < text.len || (!negative && n == INT64_MIN))
        return false;
    *ret = negative ? n : -n;
    return true;
}

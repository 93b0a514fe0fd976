/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the reader of JSON: writes the tree again and compares the text. */
#include "ground/json_read.h"
#include "tap.h"

#include <stdlib.h>

static struct arena arena;

/* Copies the text to the end of a block of its own, so that a sanitizer sees a read beyond it. */
static void reads(struct str text, const char *want, const char *name)
{
    struct buf b = {0};
    struct json *json;
    struct err e;
    char *copy = mem_alloc(text.len ? text.len : 1);

    memcpy(copy, text.at, text.len);
    const bool good = json_read((struct str){copy, text.len}, &arena, &json, &e);
    memset(copy, '#', text.len); /* the tree must not refer to the text */
    if (good)
        json_put_read(&b, json);
    else
        buf_printf(&b, "error: %s", e.text);
    is_text(buf_cstr(&b), want, name);
    buf_release(&b);
    free(copy);
}

#define READS(text, want) reads(STR(text), want, "reads " #text)
#define FAILS(text, why) reads(STR(text), "error: " why, "rejects " #text)

static void values(void)
{
    READS("null", "null");
    READS(" [true,\tfalse ,\r\n null] ", "[true,false,null]");
    READS("{}", "{}");
    READS("[]", "[]");
    READS("{\"a\":{\"b\":[1,{}]},\"\":\"\"}", "{\"a\":{\"b\":[1,{}]},\"\":\"\"}");
    FAILS("", "expected a value at byte 0");
    FAILS("  ", "expected a value at byte 2");
    FAILS("nul", "no JSON value at byte 0");
    FAILS("nullx", "text after the value at byte 4");
    FAILS("[1,]", "no JSON value at byte 3");
    FAILS("[1 2]", "expected , or ] at byte 3");
    FAILS("[1", "expected , or ] at byte 2");
    FAILS("{\"a\"}", "expected : at byte 4");
    FAILS("{\"a\":1,}", "expected a key at byte 7");
    FAILS("{a:1}", "expected a key at byte 1");
    FAILS("{\"a\":1", "expected , or } at byte 6");
    FAILS("{\"a\":1,\"\\u0061\":2}", "the same key twice at byte 15");
    FAILS("1 // one", "text after the value at byte 2");
    FAILS("\xef\xbb\xbfnull", "no JSON value at byte 0");
    FAILS("NaN", "no JSON value at byte 0");
}

static void numbers(void)
{
    READS("[0,-0,10,1.5,-1.25e+10,1E-2,123456789012345678901234567890]",
          "[0,-0,10,1.5,-1.25e+10,1E-2,123456789012345678901234567890]");
    FAILS("01", "text after the value at byte 1");
    FAILS("-", "malformed number at byte 1");
    FAILS("1.", "malformed number at byte 2");
    FAILS(".5", "no JSON value at byte 0");
    FAILS("1e", "malformed number at byte 2");
    FAILS("+1", "no JSON value at byte 0");
    FAILS("0x10", "text after the value at byte 1");
}

static void strings(void)
{
    READS("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\u0008\\u000c\\n\\u000d\\u0009\"");
    READS("\"\\u00e5\\u20AC\xc3\xa5\"", "\"å€å\"");
    READS("\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"");
    READS("\"a\\u0000b\"", "\"a\\u0000b\"");
    READS("\"\\\\\"", "\"\\\\\"");
    FAILS("\"", "a string without an end at byte 1");
    FAILS("\"\\", "an unknown escape at byte 2");
    FAILS("\"\\\"", "a string without an end at byte 3");
    FAILS("\"\\x41\"", "an unknown escape at byte 2");
    FAILS("\"\\u12\"", "\\u needs four hexadecimal digits at byte 5");
    FAILS("\"\\ud83d\"", "a lone surrogate at byte 7");
    FAILS("\"\\ud83d\\n\"", "a lone surrogate at byte 7");
    FAILS("\"\\ud83d\\u0041\"", "a lone surrogate at byte 13");
    FAILS("\"\\ude00\"", "a lone surrogate at byte 7");
    FAILS("\"a\nb\"", "a control character in a string at byte 2");
    FAILS("\"a\0b\"", "a control character in a string at byte 2");
    FAILS("\"\xff\"", "malformed UTF-8 at byte 1");
    FAILS("\"\xed\xa0\x80\"", "malformed UTF-8 at byte 1");
    FAILS("\"\xc0\xaf\"", "malformed UTF-8 at byte 1");
    FAILS("'a'", "no JSON value at byte 0");
}

static void bounds(void)
{
    struct buf b = {0};

    for (unsigned i = 0; i < JSON_DEPTH_MOST; i++)
        buf_char(&b, '[');
    for (unsigned i = 0; i < JSON_DEPTH_MOST; i++)
        buf_char(&b, ']');
    reads(buf_view(&b), buf_cstr(&b), "reads as many levels as allowed");
    buf_clear(&b);
    for (unsigned i = 0; i < 100000; i++)
        buf_char(&b, '[');
    reads(buf_view(&b), "error: too many levels at byte 64", "rejects a level more");
    buf_clear(&b);
    for (unsigned i = 0; i <= JSON_MEMBERS_MOST; i++)
        buf_printf(&b, "%c\"%u\":1", i ? ',' : '{', i);
    buf_char(&b, '}');
    struct json *json;
    struct err e;
    ok(!json_read(buf_view(&b), &arena, &json, &e) && !strncmp(e.text, "too many members", 16),
       "rejects a member more than allowed");
    buf_release(&b);
}

static void is_integer(struct str text, bool want, int64_t value, const char *name)
{
    struct json *json;
    struct err e;
    int64_t n = 0;

    ok(json_read(text, &arena, &json, &e) && json_integer(json, &n) == want && n == value, "%s", name);
}

#define INTEGER(text, value) is_integer(STR(text), true, value, text " is an integer")
#define NO_INTEGER(text) is_integer(STR(text), false, 0, text " is no integer")

static void integers(void)
{
    INTEGER("0", 0);
    INTEGER("-7", -7);
    INTEGER("5.00", 5);
    INTEGER("9223372036854775807", INT64_MAX);
    INTEGER("-9223372036854775808", INT64_MIN);
    NO_INTEGER("9223372036854775808");
    NO_INTEGER("-9223372036854775809");
    NO_INTEGER("1.5");
    NO_INTEGER("1e2");
    NO_INTEGER("\"1\"");
}

static void members(void)
{
    struct json *json;
    struct err e;

    if (!ok(json_read(STR("{\"a\":\"x\",\"b\":\"y\\u0000\",\"c\":1}"), &arena, &json, &e), "reads an object"))
        return;
    is_text(json_text_of(json_member(json, "a")), "x", "finds a member");
    ok(!json_text_of(json_member(json, "b")), "a text with a NUL is no text for programs");
    ok(!json_text_of(json_member(json, "c")), "a number is no text");
    int64_t n = 7;
    ok(!json_integer(json_member(json, "d"), &n) && n == 7, "a member that is not there is no integer");
    ok(!json_member(json, "d") && !json_member(json_member(json, "c"), "a") && !json_member(NULL, "a"),
       "finds no member that is not there");
}

int main(void)
{
    arena_init(&arena);
    values();
    numbers();
    strings();
    bounds();
    integers();
    members();
    arena_release(&arena);
    return tap_end();
}

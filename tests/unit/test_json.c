/* SPDX-License-Identifier: Apache-2.0 */
/* Tests terms and text inside JSON. test_pipeline.c tests whole objects. */
#include "ground/utf8.h"
#include "printed.h"

#define JSON(want, name) is_text(printed(&printer_json), want, name)

static void structure(void)
{
    fw_tuple(&w, 3), fw_atom(&w, "ok"), fw_int(&w, -5), fw_tag(&w, ETW_T_NIL);
    JSON("{\"tuple\":[\"ok\",-5,[]]}", "a tuple");
    fw_tag(&w, ETW_T_LIST), fw_atom(&w, "true"), fw_atom(&w, "null"), fw_float(&w, 1.5), fw_tag(&w, ETW_T_END);
    JSON("[true,null,1.5]", "a list of true, null and a float");
    fw_tag(&w, ETW_T_LIST), fw_int(&w, 1), fw_tag(&w, ETW_T_TAIL), fw_int(&w, 2);
    JSON("{\"list\":[1],\"tail\":2}", "an improper list");
    fw_map(&w, 2), fw_bin(&w, "a\"b"), fw_int(&w, 1), fw_bin(&w, "k"), fw_bin(&w, "v\n");
    JSON("{\"a\\\"b\":1,\"k\":\"v\\n\"}", "a map with keys of text");
    fw_map(&w, 1), fw_int(&w, 1), fw_int(&w, 2);
    JSON("{\"map\":[[1,2]]}", "a map with other keys");
    fw_map(&w, 2), fw_atom(&w, "a"), fw_int(&w, 1), fw_bin(&w, "a"), fw_int(&w, 2);
    JSON("{\"map\":[[\"a\",1],[\"a\",2]]}", "a map whose keys are an atom and a text");
    fw_map(&w, 2), fw_atom(&w, "…"), fw_int(&w, 1), fw_tag(&w, ETW_T_CUT);
    JSON("{\"map\":[[\"…\",1],{\"cut\":1}]}", "a map that was cut, with the key of our mark");
    fw_map(&w, 9), fw_atom(&w, "a"), fw_int(&w, 1), fw_tag(&w, ETW_T_CUT);
    JSON("{\"a\":1,\"…\":{\"cut\":8}}", "a map that was cut");
    fw_bin_n(&w, "\x00\xff\x10", 3, 3);
    JSON("{\"b64\":\"AP8Q\"}", "a binary that is not text");
    fw_bin_n(&w, "abc", 3, 10);
    JSON("{\"text\":\"abc\",\"cut\":true,\"bytes\":10}", "text that was cut");
    fw_int(&w, INT64_C(1) << 53);
    JSON("9007199254740992", "the largest exact integer");
    fw_int(&w, (INT64_C(1) << 53) + 1);
    JSON("\"9007199254740993\"", "a larger integer is text");
    fw_string(&w, "abc");
    JSON("\"abc\"", "a list of characters");
    fw_tag(&w, ETW_T_LIST), fw_int(&w, 'a'), fw_int(&w, '"'), fw_tag(&w, ETW_T_END);
    JSON("\"a\\\"\"", "a list of characters with a quote");
    fw_pid(&w, 84);
    JSON("{\"pid\":\"<0.84.0>\"}", "a pid");
}

static void strings(void)
{
    struct buf b = {0};

    json_string(&b, raw_of(STR("a\"b\\c\n\x01\x7f\xff"
                               "\xe2\x80\xa8"
                               "\xf3\xa0\x81\x81"
                               "\xc3\xa5")));
    is_text(buf_cstr(&b), "\"a\\\"b\\\\c\\n\\u0001\\u007f\\ufffd\\u2028\\udb40\\udc41å\"",
            "a string escapes every kind of special character");
    bool good = true;
    for (size_t len = 0; len < 100; len++) {
        for (size_t at = 0; at <= len; at++) { /* a quote at every offset in texts of every length */
            char text[128], want[256], *p = want;
            memset(text, 'x', len);
            text[at < len ? at : 0] = len ? '"' : 'x';
            for (size_t i = 0; i < len; i++) {
                if (text[i] == '"')
                    *p++ = '\\';
                *p++ = text[i];
            }
            buf_clear(&b);
            buf_puts(&b, "\"\\");
            buf_add(&b, text, len);
            json_escape_tail(&b, 2);
            good &= b.len == (size_t)(p - want) + 2 && !memcmp(b.data + 2, want, b.len - 2);
        }
    }
    ok(good, "a quote is escaped at each position");
    buf_release(&b);
}

int main(void)
{
    fw_ring(&w, 1);
    structure();
    strings();
    fw_release(&w);
    return tap_end();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests terms as text: truncated terms, unprintable characters, edge cases of numbers. tests/oracle compares the
 * output with OTP's.
 */
#include "ground/utf8.h"
#include "printed.h"

#define ERL(want, name) is_text(printed(&printer_erlang), want, name)

static void cuts(void)
{
    fw_tag(&w, ETW_T_LIST), fw_int(&w, 1), fw_int(&w, 2), fw_tag(&w, ETW_T_CUT);
    ERL("[1,2,…]", "a list that was cut");
    fw_tag(&w, ETW_T_LIST), fw_tag(&w, ETW_T_CUT);
    ERL("[…]", "a list without a captured element");
    fw_tag(&w, ETW_T_LIST), fw_int(&w, 'a'), fw_int(&w, 'b'), fw_tag(&w, ETW_T_CUT);
    ERL("\"ab\"…", "a string that was cut");
    fw_tag(&w, ETW_T_LIST), fw_int(&w, 1), fw_tag(&w, ETW_T_TAIL), fw_tag(&w, ETW_T_ELIDED);
    ERL("[1|…]", "an improper list without its captured tail");
    fw_tuple(&w, 5), fw_int(&w, 1), fw_int(&w, 2), fw_tag(&w, ETW_T_CUT);
    ERL("{1,2,…+3}", "a tuple that was cut");
    fw_map(&w, 40), fw_atom(&w, "a"), fw_int(&w, 1), fw_tag(&w, ETW_T_CUT);
    ERL("#{a => 1,…+39}", "a map that was cut");
    fw_map(&w, 3), fw_atom(&w, "a"), fw_tag(&w, ETW_T_CUT);
    ERL("#{a => …,…+2}", "a map that was cut after a key");
    fw_map(&w, 1), fw_atom(&w, "a"), fw_tag(&w, ETW_T_REDACTED);
    ERL("#{a => '*REDACTED*'}", "a value that was redacted");
    fw_bin_n(&w, "some text", 9, 1243);
    ERL("<<\"some text\"…+1234 B>>", "a binary that was cut");
    fw_bin_n(&w, "s\xc3\xa5\xe2\x82", 5, 100);
    ERL("<<\"så\"/utf8…+97 B>>", "a binary that was cut within a character");
    fw_bin_n(&w, "\x01\x02", 2, 10);
    ERL("<<1,2,…+8 B>>", "bytes that were cut");
    fw_bin_n(&w, "", 0, 10);
    ERL("<<…+10 B>>", "a binary without a captured byte");
    fw_tuple(&w, 2), fw_tuple(&w, 3), fw_tag(&w, ETW_T_CUT), fw_tag(&w, ETW_T_ELIDED);
    ERL("{{…+3},…}", "cuts within a container");
    fw_text(&w, ETW_TEXT_FUN, "#Fun<a.1\033[2J>");
    ERL("#Fun<a.1\\x{1B}[2J>", "control characters in text are escaped");
}

static void malformed(void)
{
    fw_tag(&w, ETW_T_LIST), fw_int(&w, 1);
    ERL("bad: a term is missing", "a list without an end");
    fw_tag(&w, ETW_T_END);
    ERL("bad: the end of a list outside of one", "an end without a list");
    fw_tuple(&w, 2), fw_int(&w, 1), fw_tag(&w, ETW_T_END);
    ERL("bad: the end of a list outside of one", "an end in a tuple");
    fw_tag(&w, ETW_T_CUT);
    ERL("bad: a cut outside of a container", "a cut outside of a container");
    fw_u8(&w, ETW_T_ATOM), fw_u16(&w, 9);
    ERL("bad: an atom that was not defined", "an unknown atom");
    fw_u8(&w, ETW_T_BIN), fw_u64(&w, 3), fw_u32(&w, 4), fw_u32(&w, 0);
    ERL("bad: more bytes of a binary than it has", "a binary with more captured bytes than it has");
    fw_u8(&w, ETW_T_BIN), fw_u64(&w, 1000), fw_u32(&w, 1000);
    ERL("bad: a term is longer than its frame", "a binary longer than the frame");
    for (int i = 0; i < 300; i++)
        fw_tuple(&w, 1);
    fw_int(&w, 1);
    ERL("bad: terms are nested too deep", "300 levels are too deep");
    for (int i = 0; i < 255; i++)
        fw_tuple(&w, 1);
    fw_int(&w, 1);
    ok(strlen(printed(&printer_erlang)) == 511, "255 levels are printed");
}

static void numbers(void)
{
    static const struct {
        int64_t ns;
        const char *want;
    } durations[] = {
        {0, "0ns"},
        {812, "812ns"},
        {999, "999ns"},
        {1000, "1us"},
        {1049, "1.05us"},
        {12345, "12.3us"},
        {575000, "575us"},
        {999499, "999us"},
        {999500, "1ms"},
        {12300000, "12.3ms"},
        {1040000000, "1.04s"},
        {75000000000, "75s"},
        {3600000000000, "3600s"},
        {INT64_MAX, "9223372036s"},
    };
    struct buf b = {0};

    for (size_t i = 0; i < ARRAY_LEN(durations); i++) {
        buf_clear(&b);
        print_duration(&b, durations[i].ns);
        is_text(buf_cstr(&b), durations[i].want, durations[i].want);
    }
    static const char magnitude[5000] = {[4999] = 1};
    fw_u8(&w, ETW_T_BIGPOS), fw_u16(&w, 5000), fw_raw(&w, magnitude, 5000);
    ERL("…+5000 B", "an integer that is too large to print");
    fw_u8(&w, ETW_T_BIGNEG), fw_u16(&w, 9), fw_raw(&w, magnitude + 4991, 9);
    ERL("-18446744073709551616", "-(2^64)");
    fw_u8(&w, ETW_T_BIGNEG), fw_u16(&w, 0);
    ERL("0", "a big zero");
    fw_pid(&w, 84 | UINT64_C(3) << 28);
    ERL("<0.84.3>", "a pid with a serial");
    fw_u8(&w, ETW_T_PORT), fw_u64(&w, 1234567890123);
    ERL("#Port<0.1234567890123>", "a port");
    buf_release(&b);
}

/* True: the text contains nothing that could control a terminal, and is valid UTF-8. */
static bool harmless(const char *text, size_t len)
{
    const char *at = text, *end = text + len;

    while (at < end) {
        uint32_t c = utf8_next(&at, end);
        if (c == UTF8_BAD || !utf8_shows(c))
            return false;
    }
    return true;
}

static void safety(void)
{
    static const char *const vectors[] = {
        "\033[2J",
        "\x9b"
        "31m",
        "a\rb",
        "a\nb",
        "\xe2\x80\xae"
        "evil",
        "\xe2\x80\x8b",
        "\xf3\xa0\x81\x81",
        "\xef\xbb\xbf",
        "\xed\xa0\x80",
        "\xc0\x80",
        "\xff\xfe",
        "\xe2\x80\xa8",
        "\x07\x08\x7f",
        "\xc2\x9b"
        "31m",
        "\xe2\x81\xa6x",
        "\xd8\x9c",
    };
    bool good = true, json = true;

    for (uint32_t c = 0; c < 0x110000; c += c < 0x3000    ? 1
                                            : c < 0xd700  ? 97
                                            : c < 0x10100 ? 1
                                            : c < 0xdff00 ? 997
                                                          : 1) {
        char text[8];
        size_t n = utf8_put(text, c);
        text[n] = 0;
        fw_bin_n(&w, text, n, n), good &= harmless(printed(&printer_erlang), strlen(printed(&printer_erlang)));
        fw_bin_n(&w, text, n, n);
        const char *p = printed(&printer_erlang);
        good &= harmless(p, strlen(p));
        fw_tag(&w, ETW_T_LIST), fw_int(&w, c), fw_tag(&w, ETW_T_END);
        p = printed(&printer_erlang);
        good &= harmless(p, strlen(p));
        fw_u8(&w, ETW_T_ATOMTEXT), fw_u16(&w, (uint16_t)n), fw_raw(&w, text, n);
        p = printed(&printer_erlang);
        good &= harmless(p, strlen(p));
        fw_u8(&w, ETW_T_TEXT), fw_u8(&w, 0), fw_u16(&w, (uint16_t)n), fw_raw(&w, text, n);
        p = printed(&printer_json);
        json &= harmless(p, strlen(p));
        fw_bin_n(&w, text, n, n);
        p = printed(&printer_json);
        json &= harmless(p, strlen(p));
        if (c == 0xd7ff)
            c = 0xdfff;
    }
    ok(good, "every code point is printed visibly or escaped");
    ok(json, "every code point is also visible or escaped in JSON");
    good = true;
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        fw_bin(&w, vectors[i]);
        const char *p = printed(&printer_erlang);
        good &= harmless(p, strlen(p));
        fw_atom_text(&w, vectors[i]);
        p = printed(&printer_erlang);
        good &= harmless(p, strlen(p));
        fw_string(&w, vectors[i]);
        p = printed(&printer_erlang);
        good &= harmless(p, strlen(p));
    }
    ok(good, "known sequences that deceive terminals are escaped");
    fw_bin(&w, "a\xe2\x80\xae"
               "b");
    ERL("<<\"a\\x{202E}b\"/utf8>>", "an override of the text direction is escaped");
}

/*
 * utf8_plain() reads eight bytes at a time. Tests each byte at each offset, next to the first and last plain
 * characters.
 */
static void plain(void)
{
    static const char fill[] = {' ', '~', '!', '#', '[', ']', '@'};
    char text[21];
    unsigned wrong = 0;

    for (unsigned c = 0; c < 256; c++)
        for (size_t at = 0; at < sizeof(text); at++)
            for (size_t other = at; other < sizeof(text); other++) {
                for (size_t i = 0; i < sizeof(text); i++)
                    text[i] = fill[(i + c) % sizeof(fill)];
                text[at] = (char)c;
                text[other] = other == at ? text[other] : '"';
                bool hit = c < ' ' || c > '~' || c == '"' || c == '\\';
                size_t first = hit ? at : other > at ? other : sizeof(text);
                wrong += utf8_plain(text, text + sizeof(text), '"') != text + first;
            }
    ok(!wrong, "utf8_plain() ends at the first byte that needs an escape");
}

int main(void)
{
    fw_ring(&w, 1);
    plain();
    cuts();
    malformed();
    numbers();
    safety();
    fw_release(&w);
    return tap_end();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests how printed terms are broken into lines: by brackets and quotes, in Erlang, Elixir and JSON. */
#include <stdlib.h>

#include "ground/utf8.h"
#include "tap.h"
#include "views/term_layout.h"

static const char *laid_out(const char *text, unsigned width)
{
    static struct buf b;

    buf_clear(&b);
    term_layout(&b, (struct str){text, strlen(text)}, width);
    return buf_cstr(&b);
}

static void test_lines(void)
{
    is_text(laid_out("call m:f(1, {a,b})", 80), "call m:f(1, {a,b})\n", "what fits stays on its line");
    is_text(laid_out("{ok,#{a => 1,b => 2}}", 80),
            "{\n"
            "  ok,\n"
            "  #{\n"
            "    a => 1,\n"
            "    b => 2\n"
            "  }\n"
            "}\n",
            "each field of a map has a line");
    is_text(laid_out("#{a => 1}", 80), "#{a => 1}\n", "but not that of a map with one field");
    is_text(laid_out("#item{id = 1,name = \"a\"}", 80),
            "#item{\n"
            "  id = 1,\n"
            "  name = \"a\"\n"
            "}\n",
            "a record");
    is_text(laid_out("%Shop.User{id: 2, name: \"B, {\"}", 80),
            "%Shop.User{\n"
            "  id: 2,\n"
            "  name: \"B, {\"\n"
            "}\n",
            "a struct, with a quoted bracket");
    is_text(laid_out("f([aaaa,bbbb,cccc], x)", 14),
            "f(\n"
            "  [\n"
            "    aaaa,\n"
            "    bbbb,\n"
            "    cccc\n"
            "  ],\n"
            "  x\n"
            ")\n",
            "containers that do not fit");
    is_text(laid_out("#{a => {1,2},b => <<1,2,3>>,c => <<\"x>>,\"/utf8>>}", 80),
            "#{\n"
            "  a => {1,2},\n"
            "  b => <<1,2,3>>,\n"
            "  c => <<\"x>>,\"/utf8>>\n"
            "}\n",
            "bit strings stay whole");
    is_text(laid_out("{'aaa\\',b',{}}", 13), "{\n  'aaa\\',b',\n  {}\n}\n", "a quoted atom, and an empty tuple");
    is_text(laid_out("aaaa bbbb cccc dddd", 10), "aaaa bbbb\ncccc dddd\n", "other text is broken at blanks");
    is_text(laid_out("aaaabbbbccccdddd", 10), "aaaabbbbcc\nccdddd\n", "or anywhere");
    is_text(laid_out("", 10), "\n", "an empty line");
}

/* Returns true if no line is wider than the width, and no character is lost except blanks and line ends. */
static bool is_sound(const char *text, unsigned width)
{
    const char *got = laid_out(text, width), *p = text;
    unsigned column = 0;

    for (; *got; got++) {
        column = *got == '\n' ? 0 : column + 1;
        if (column > width)
            return false;
        if (*got != ' ' && *got != '\n') {
            while (*p == ' ')
                p++;
            if (*p++ != *got)
                return false;
        }
    }
    while (*p == ' ')
        p++;
    return !*p;
}

static void test_any_text(void)
{
    static const char some[] = "{}[]()<>#%,'\"\\ ab=";
    char text[200];
    unsigned bad = 0;

    srand(1);
    for (unsigned i = 0; i < 20000; i++) {
        const size_t len = (size_t)rand() % (sizeof(text) - 1);
        for (size_t k = 0; k < len; k++)
            text[k] = some[(size_t)rand() % (sizeof(some) - 1)];
        text[len] = 0;
        bad += !is_sound(text, 10 + (unsigned)rand() % 60);
    }
    is_number(bad, 0, "random text loses nothing, and no line is too wide");
}

int main(void)
{
    test_lines();
    test_any_text();
    return tap_end();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the patterns for names. */
#include "ground/glob.h"
#include "tap.h"

static void compares(struct str pattern, struct str text, bool one, char barrier, bool want)
{
    ok(glob_matches(pattern, text, one, barrier) == want, "%s %s %s", pattern.at, want ? "matches" : "does not match",
       text.at);
}

#define NAME(pattern, text, want) compares(STR(pattern), STR(text), true, 0, want)
#define PATH(pattern, text, want) compares(STR(pattern), STR(text), false, '/', want)

int main(void)
{
    NAME("", "", true);
    NAME("", "a", false);
    NAME("*", "", true);
    NAME("a*c", "abbc", true);
    NAME("a*c", "abbd", false);
    NAME("*ab*ab", "abcabab", true);
    NAME("a?c", "abc", true);
    NAME("a?c", "ac", false);
    NAME("a?c",
         "a\xc3\xa5"
         "c",
         true);
    NAME("?", "\xc3\xa5", true);
    NAME("??", "\xc3\xa5", false);
    NAME("*?", "", false);
    NAME("a*", "a/b", true);
    PATH("/tmp/*.etr", "/tmp/a.etr", true);
    PATH("/tmp/*.etr", "/tmp/a/b.etr", false);
    PATH("/*/*.etr", "/tmp/b.etr", true);
    PATH("/tmp/?.etr", "/tmp/a.etr", false);
    PATH("/tmp/?.etr", "/tmp/?.etr", true);
    return tap_end();
}

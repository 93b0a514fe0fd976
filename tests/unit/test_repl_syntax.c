/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which lines of the interactive mode are commands, which continue on the next line, and how lines are joined. */
#include "faces/repl_syntax.h"
#include "tap.h"

/* Returns the line as a part of the name of a test, which is one printable line. */
static const char *shown(const char *line)
{
    static char text[200];

    snprintf(text, sizeof(text), "%s", line);
    for (char *at = text; *at; at++)
        if (*at < ' ' || *at == 127)
            *at = '?';
    return text;
}

static void opens(const char *line, bool want)
{
    ok(repl_is_open((struct str){line, strlen(line)}) == want, "%s: %s", shown(line), want ? "goes on" : "is complete");
}

static void commands(const char *line, bool want)
{
    ok(repl_is_command((struct str){line, strlen(line)}) == want, "%s is %s command", shown(line), want ? "a" : "no");
}

static void joins(const char *lines, const char *want)
{
    struct buf got = {0};

    repl_join_lines((struct str){lines, strlen(lines)}, &got);
    is_bytes(buf_cstr(&got), got.len, want, want);
    buf_release(&got);
}

static void test_open(void)
{
    static const char *const open[] = {
        "work:two(a,",
        "slow: work:two(a,",
        "MyApp.f(%{id: 1",
        "MyApp.f(?(",
        "work:two([{a",
        "work:two(a, % b)",
        "MyApp.f(1, # b)",
        "work:one(\"abc",
        "work:one('abc",
        "work:one(\"a\\",
        "work:one(\"\"\"",
        "work:one(\"\"\"\nabc",
        "MyApp.f(~w(a b",
        "MyApp.f(~s{a",
        "work:one(_) where text =~ \"a",
        "work:one(_) where text =~ ~/a",
        "work:'my fun",
        "app(shop",
        "send(w, \"abc",
        "send(w, %{a: 1",
        "work:one(X) when",
        "work:one(X) when X > 1 andalso",
        "work:one(X) when X > 1 and",
        "work:one(_) where",
        "work:one(_) by",
        "work:one(_) ->",
        "work:one(_) -> % the result",
        "MyApp.f(_) -> # the result",
        "work:one(1);",
        "work:one(_) |",
        "work:one(_) -> return,",
        "work:one(_) where dur > 5ms &&",
        "work:one(_) where dur > 5ms ||",
        "work:one(_) inside",
        "work:one(_) inside work:two(",
        "work:one(_) inside (",
        "work:one(_) inside (work:two(_, _)",
        "work:one(1). work:two(",
        ":ets.lookup(t,",
    };
    static const char *const complete[] = {
        "",
        "% work:two(",
        "# don't",
        "work:one/1",
        "work:two(a, b)",
        "MyApp.f(%{id: 1}) -> return",
        "MyApp.f(%MyApp.User{id: 1}) -> return",
        "MyApp.f(?()",
        "MyApp.f(?\")",
        "MyApp.f(?', 1)",
        "MyApp.f(1) # don't",
        "work:one(1) % don't (",
        "work:one($\")",
        "work:one($()",
        "work:one(_) where text =~ ~/\"/",
        "work:one(_) where text =~ ~/[(]{/",
        "MyApp.f(_) where text =~ ~r{\"}",
        "~/^shop[(]/:_",
        "work:fo?/1",
        "work:one(<0.1.0>)",
        "MyApp.f(#PID<0.1.0>)",
        "work:one(#{a := 1})",
        "work:one(\"\"\"\nabc\n\"\"\")",
        "lists:and/2",
        "MyApp.by",
        "work:one('when')",
        "when",
        "work:one(_) inside work:two(_, _)",
        "work:one(_) inside (work:two(_, _))",
        "work:one(1). work:two(2, 3).",
        "work:one(\x01",
        "work:one(\xff",
        "work:one(1))",
        ":ets.lookup(t, _)",
    };

    for (size_t i = 0; i < sizeof(open) / sizeof(*open); i++)
        opens(open[i], true);
    for (size_t i = 0; i < sizeof(complete) / sizeof(*complete); i++)
        opens(complete[i], false);
}

static void test_commands(void)
{
    commands(":save x.etr", true);
    commands("  :top work:_", true);
    commands(":", true);
    commands(":json", true);
    commands(":json work:one/1", true);
    commands(":save. x", true);
    commands(":json.decode(_)", false);
    commands(":ets.lookup(t, _)", false);
    commands(" :ets*.lookup/2", false);
    commands(":\"my mod\".f(_)", false);
    commands(":\xc3\xa9t\xc3\xa9.f(_)", false);
    commands("work:one/1", false);
    commands("x: :ets.lookup(t, _)", false);
    commands("", false);
}

static void test_join(void)
{
    joins("work:two(a, b) % both", "work:two(a, b) % both");
    joins("work:two(a, % the first\n  b) % the second", "work:two(a,    b) % the second");
    joins("MyApp.f(%{id: 1}, # don't\n 2)", "MyApp.f(%{id: 1},   2)");
    joins("slow: work:two(\"% a\", % \"b\n'#c')\n->\nreturn", "slow: work:two(\"% a\",  '#c') -> return");
    joins("work:one(_) inside % its caller\n(work:two(_, _) % both\n)", "work:one(_) inside  (work:two(_, _)  )");
    joins("% all\nwork:one(_)", " work:one(_)");
    joins("work:one(\"a\nb", "work:one(\"a b");
}

int main(void)
{
    test_open();
    test_commands();
    test_join();
    return tap_end();
}

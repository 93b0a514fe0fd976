/* SPDX-License-Identifier: Apache-2.0 */
/* Tests filters, written as users write them, with events. */
#include "compiled.h"

static const struct look look = {.time = TIME_RELATIVE};

/* Returns the last number of each line that the probe shows of the scene below. */
static const char *shown(const char *probe, const char *extra)
{
    static struct buf got, lines;
    struct fw w = {0};

    fw_begin(&w);
    fw_name(&w, 1, PID(1), "cart");
    fw_ring(&w, 1);
    fw_call(&w, 1000000, PID(1), "m", "f", 2);
    fw_int(&w, 1), fw_map(&w, 2), fw_atom(&w, "id"), fw_int(&w, 7), fw_atom(&w, "n"), fw_bin(&w, "abc");
    fw_frame_end(&w);
    fw_call(&w, 2000000, PID(2), "m", "f", 2);
    fw_int(&w, 2), fw_string(&w, "hello");
    fw_frame_end(&w);
    fw_return(&w, 3000000, PID(2), "m", "f", 2);
    fw_tuple(&w, 2), fw_atom(&w, "ok"), fw_int(&w, 22);
    fw_frame_end(&w);
    fw_call(&w, 4000000, PID(2), "m", "f", 2);
    fw_int(&w, 3), fw_tag(&w, ETW_T_LIST), fw_atom(&w, "a"), fw_float(&w, 2.5), fw_tag(&w, ETW_T_END);
    fw_frame_end(&w);
    fw_frame(&w, ETW_EXCEPTION_FROM, 4500000, PID(2));
    fw_fun(&w, "m", "f", 2);
    fw_tuple(&w, 2), fw_atom(&w, "error"), fw_tuple(&w, 2), fw_atom(&w, "badkey"), fw_int(&w, 33);
    fw_frame_end(&w);
    fw_return(&w, 9000000, PID(1), "m", "f", 2);
    fw_atom(&w, "none");
    fw_frame_end(&w);
    fw_call(&w, 9500000, PID(3), "m", "f", 2); /* the call never returns; the second argument was not captured */
    fw_int(&w, 4), fw_tag(&w, ETW_T_ELIDED);
    fw_frame_end(&w);
    if (!shown_by(&w, probe, extra, "text", &look, &lines))
        return lines.data;
    buf_clear(&got);
    for (char *line = lines.data, *next; (next = strchr(line, '\n')); line = next + 1) {
        *next = 0;
        const char *pid = strstr(line, "<0."), *kind = strchr(pid, ' ') + 1, *arg = strstr(line, "m:f(");
        buf_printf(&got, "%c%c ", *kind, arg ? arg[4] : pid[3]);
    }
    return buf_cstr(&got);
}

/* c1: the call with 1 as its first argument; r2: the result of process 2; e2: its exception */
#define SHOWS(where, want) is_text(shown("m:f(_, _) -> return where " where, NULL), want, where)

/* Returns true if a condition with a pattern of nested tuples shows a call whose argument is such a term. */
static bool shows_nested(size_t levels)
{
    struct buf where = {0}, lines = {0};
    struct fw w = {0};

    fw_begin(&w);
    fw_ring(&w, 1);
    fw_call(&w, 1000000, PID(1), "m", "f", 1);
    buf_puts(&where, "args[1] = ");
    for (size_t i = 0; i < levels; i++) {
        fw_tuple(&w, 1);
        buf_char(&where, '{');
    }
    fw_atom(&w, "a");
    fw_frame_end(&w);
    buf_char(&where, 'X');
    for (size_t i = 0; i < levels; i++)
        buf_char(&where, '}');
    const bool shows = shown_by(&w, "m:f/1", buf_cstr(&where), "text", &look, &lines) && lines.len;
    buf_release(&where);
    buf_release(&lines);
    return shows;
}

/* Returns true if a condition shows a call whose argument is a text that begins with "abc" and was cut. */
static bool shows_cut(const char *where)
{
    struct buf lines = {0};
    struct fw w = {0};

    fw_begin(&w);
    fw_ring(&w, 1);
    fw_call(&w, 1000000, PID(1), "m", "f", 1);
    fw_bin_n(&w, "abc", 3, 10);
    fw_frame_end(&w);
    const bool shows = shown_by(&w, "m:f/1", where, "text", &look, &lines) && lines.len;
    buf_release(&lines);
    return shows;
}

int main(void)
{
    ok(shows_cut("args[1] =~ \"bc\"") && !shows_cut("args[1] !~ \"bc\""),
       "the beginning of a text that was cut decides");
    ok(shows_cut("args[1] =~ \"x\"") && shows_cut("args[1] !~ \"x\""), "what was cut may match");
    ok(shows_cut("args[1] =~ \"bc$\"") && shows_cut("args[1] !~ \"bc$\""), "the end of a text that was cut is unknown");
    is_text(shown("m:f/2 -> return", NULL), "c1 c2 r2 c3 e2 r1 c4 ", "no condition shows every event");
    SHOWS("args[1] == 2", "c2 r2 ");
    SHOWS("args[1] > 1", "c2 r2 c3 e2 c4 ");
    SHOWS("dur > 5ms", "c1 r1 ");
    SHOWS("dur < 2ms", "c2 r2 c3 e2 ");
    SHOWS("dur > 5ms and args[1] == 1", "c1 r1 ");
    SHOWS("dur > 5ms and args[1] == 2", "");
    SHOWS("dur > 5ms or args[1] == 2", "c2 r2 c1 r1 ");
    SHOWS("not (dur > 5ms)", "c2 r2 c3 e2 ");
    SHOWS("class == error", "c3 e2 ");
    SHOWS("reason == {badkey, 33}", "c3 e2 ");
    SHOWS("ret == {ok, 22}", "c2 r2 ");
    SHOWS("element(2, ret) > 20", "c2 r2 ");
    SHOWS("ret =~ \"no\"", "c1 r1 ");
    SHOWS("map_get(id, args[2]) == 7", "c1 r1 c4 ");
    SHOWS("map_size(args[2]) == 2", "c1 r1 c4 ");
    SHOWS("byte_size(map_get(n, args[2])) == 3", "c1 r1 c4 ");
    SHOWS("args[2] == \"hello\"", "c2 r2 c4 ");
    SHOWS("length(args[2]) == 5", "c2 r2 c4 ");
    SHOWS("hd(args[2]) == $h", "c2 r2 c4 ");
    SHOWS("tl(args[2]) == \"ello\"", "c2 r2 c4 ");
    SHOWS("args[2] == [a, 2.5]", "c3 e2 c4 ");
    SHOWS("hd(tl(args[2])) * 2 == 5", "c3 e2 c4 ");
    SHOWS("[hd(args[2]) | tl(args[2])] =:= args[2] and args[1] < 4", "c2 r2 c3 e2 ");
    SHOWS("[hd(args[2]) | args[2]] =:= args[2] and args[1] < 4", "");
    SHOWS("[hd(args[2]) | args[2]] < args[2] and args[1] < 4", "");
    SHOWS("[z | tl(tl(args[2]))] =:= [z] and args[1] < 4", "c3 e2 ");
    SHOWS("[z | args[1]] =:= [z | 3] and args[1] < 4", "c3 e2 ");
    SHOWS("args[2] =:= [a | [2.5]] and args[1] < 4", "c3 e2 ");
    SHOWS("args[2] =:= [$h, $e | \"llo\"] and args[1] < 4", "c2 r2 ");
    SHOWS("is_list(args[2])", "c2 r2 c3 e2 c4 ");
    SHOWS("is_map(args[2]) orelse args[1] == 3", "c1 c3 e2 r1 c4 ");
    SHOWS("args == [2, \"hello\"]", "c2 r2 ");
    SHOWS("name == cart", "c1 r1 ");
    SHOWS("pid == <0.2.0>", "c2 r2 c3 e2 ");
    SHOWS("mfa == {m, f, 2}", "c1 c2 r2 c3 e2 r1 c4 ");
    SHOWS("text =~ \"hel+o\"", "c2 r2 ");
    SHOWS("args[2] =:= args[2] and args[1] == 4", "c4 ");
    SHOWS("not is_tuple(args[2]) and args[1] =/= 4", "c1 c2 r2 c3 e2 r1 ");
    SHOWS("args[2] = [_|_]", "c2 r2 c3 e2 c4 ");
    SHOWS("args[2] = [a, X]", "c3 e2 c4 ");
    SHOWS("args[2] = [a|T] and args[1] == 3", "c3 e2 ");
    SHOWS("ret = {ok, _}", "c2 r2 ");
    SHOWS("{ok, 23} = ret or {_, 22} = ret", "c2 r2 ");
    SHOWS("class == error or ret = {ok, _}", "c2 r2 c3 e2 ");
    SHOWS("ret == none orelse class == error orelse hd(ret) == 1", "c3 e2 c1 r1 ");
    SHOWS("not (class == throw or dur > 5ms)", "c2 r2 c3 e2 ");
    SHOWS("not (class == throw or hd(ret) == 1)", "c3 e2 ");
    SHOWS("mfa =~ \"^m:f/2$\" and args[1] == 3", "c3 e2 ");
    SHOWS("args[1] bsl 70 > 5 and args[1] == 3", "c3 e2 ");
    SHOWS("is_function(args[1], 2)", "");
    SHOWS("args[1] * 1.0e308 > 0", "c1 r1 "); /* a float overflows, so the guard fails */
    SHOWS("args[1] rem 2 == 0", "c2 r2 c4 ");
    SHOWS("args[2] !~ \"hello\"", "c1 c3 e2 r1 c4 ");
    SHOWS("is_map(args[2]) and args[2] > #{a => 1, b => 2}", "c1 r1 c4 ");
    SHOWS("is_map(args[2]) and args[2] < #{a => 1, b => 2}", "c4 ");
    SHOWS("args[2] == 1 and length(args[1]) > 2", "");
    SHOWS("not (args[2] == 1 and length(args[1]) > 2)", "c1 c2 r2 c3 e2 r1 c4 ");
    SHOWS("args[2] == 1 and length(args[1]) > 2 or args[1] == 3", "c3 e2 ");
    SHOWS("not (args[2] == 1 and length(args[1]) > 2 or args[1] == 3)", "c1 c2 r2 r1 c4 ");
    SHOWS("(args[2] == 1 and length(args[1]) > 2) == false", "c1 c2 r2 c3 e2 r1 c4 ");
    SHOWS("not (dur > 5ms and length(args[1]) > 2)", "c2 r2 c3 e2 ");
    SHOWS("not ({args[2], length(args[1])} == 1)", "");
    is_text(shown("m:f(N, _) -> return where N == 3", NULL), "c3 e2 ", "a condition can use a variable of the head");
    is_text(shown("m:f/2 -> return", "args[1] == 1"), "c1 r1 ", "-e adds a condition");
    is_text(shown("m:f/2", NULL), "c1 c2 r2 c3 e2 r1 c4 ", "results that no probe asked for are shown");
    ok(shows_nested(60), "the work of a match does not double with each level of a pattern");
    return tap_end();
}

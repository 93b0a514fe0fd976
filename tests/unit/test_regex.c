/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests patterns with catastrophic backtracking. A match stops at its limits, and a pattern cannot raise them. A match
 * never reads more of a text than the limit allows. If a pattern gives up on an event, the filter keeps and counts the
 * event. After 1000 such events the pipeline fails and names the reason.
 */
#include "pipetest.h"

#include "pipeline/regex.h"

static enum regex_found search(const char *pattern, struct str text)
{
    struct err e;
    struct regex *r = regex_new((struct str){pattern, strlen(pattern)}, &e);
    enum regex_found found = r ? regex_search(r, text) : REGEX_NO;

    if (!r)
        ok(false, "%s: %s", pattern, e.text);
    regex_free(r);
    return found;
}

static void test_limits(void)
{
    static const char *const evil[] = {"(a+)+$",
                                       "(a|aa)+$",
                                       "(a|a?)+$",
                                       "(.*a){30}$",
                                       "([a-z]+)*$",
                                       "^(([a-z])+.)+[A-Z]([a-z])+$",
                                       "(a+a+)+y",
                                       "(?:(?:a*)*)*b",
                                       "(*LIMIT_MATCH=4000000000)(a+)+$",
                                       "(*NO_JIT)(a+)+$",
                                       "(*NO_JIT)(*LIMIT_DEPTH=4000000000)(*LIMIT_HEAP=4000000000)(a|aa)+$"};
    char text[REGEX_SUBJECT];
    unsigned gave_up = 0;

    for (size_t len = 40; len <= sizeof(text); len *= 2) {
        memset(text, 'a', len);
        text[len - 1] = '!';
        for (size_t i = 0; i < ARRAY_LEN(evil); i++)
            gave_up += search(evil[i], (struct str){text, len}) == REGEX_GAVE_UP;
    }
    memset(text, 'a', sizeof(text));
    text[59] = '!';
    for (size_t i = 8; i < ARRAY_LEN(evil); i++)
        is_number(search(evil[i], (struct str){text, 60}), REGEX_GAVE_UP, "a pattern cannot raise its limits");
    is_number(search(evil[0], (struct str){text, 60}), REGEX_GAVE_UP, "a pattern with exponential time gives up");
    ok(gave_up > 20, "other patterns with exponential time give up (%u)", gave_up);
}

static void test_subject(void)
{
    char text[REGEX_SUBJECT + 1];

    memset(text, 'a', sizeof(text));
    text[REGEX_SUBJECT - 1] = 'b';
    text[REGEX_SUBJECT] = 'c';
    is_number(search("b", (struct str){text, sizeof(text)}), REGEX_YES,
              "the last byte within the limit of a text is searched");
    is_number(search("c", (struct str){text, sizeof(text)}), REGEX_NO, "bytes after the limit are not searched");
}

static void test_refused(void)
{
    static const char *const wrong[] = {"\033[2J(", "a\\Cb", "(*scs:(1)a)", "(a)(*scan_substring:(1)b)"};
    struct err e;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        ok(!regex_new((struct str){wrong[i], strlen(wrong[i])}, &e) && e.status == ERR_USAGE, "pattern %zu is refused",
           i);
    regex_new((struct str){wrong[0], strlen(wrong[0])}, &e);
    ok(!strcmp(e.line, "?[2J(") && e.from == 5, "the quoted pattern contains no control characters");
}

/* Feeds this many calls whose argument exceeds the pattern's limits. False: the pipeline failed. */
static bool shows(struct pt *t, unsigned calls)
{
    static const struct grep evil[] = {{"(a+)+$", false}};
    const struct spec *specs[] = {pt_spec("m", "_", -1, 0)};
    const struct look look = {.time = TIME_RELATIVE};
    struct fw w = {0};
    char text[61];

    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = 0;
    fw_begin(&w);
    for (unsigned i = 0; i < calls; i++) {
        fw_ring(&w, 1);
        fw_call(&w, 1000 + i, PID(1), "m", "f", 1);
        fw_bin(&w, text);
        fw_frame_end(&w);
    }
    pt_open(t, (const char *const[]){"text", NULL}, &look,
            (struct pipeline_options){.specs = specs, .nspecs = 1, .greps = evil, .ngreps = 1});
    pt_feed(t, 0, fw_batch(&w, 10000, 10000, 10000, ETW_BATCH_LAST));
    fw_release(&w);
    pt_spec_free(specs[0]);
    return t->status != PIPELINE_FAILED;
}

static void test_kept(void)
{
    struct pt t = {0};

    bool good = shows(&t, 3);
    pt_close(&t);
    ok(good && strstr(buf_cstr(&t.out[0]), "m:f(<<\"aaa"), "an event that a pattern gives up on is shown");
    pt_free(&t);
    ok(!shows(&t, 1001), "the pipeline fails after a pattern gave up on 1000 events");
    is_text(t.err.text, "a regular expression of the filters took too long on 1000 events",
            "the error says why the pipeline failed");
    t.err = (struct err){0};
    ok(pipeline_passed(t.p, 0, 20000, 20000, &t.err) == PIPELINE_FAILED && strstr(t.err.text, "took too long"),
       "a later call repeats the error");
    pt_free(&t);
}

int main(void)
{
    test_limits();
    test_subject();
    test_refused();
    test_kept();
    return tap_end();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which result the client pairs with which call: recursion, exceptions, losses, limits, filters. */
#include "pipetest.h"
#include "fold/pairing.h"

static const struct pipeline_options plain = {0};
static const struct look relative = {.time = TIME_RELATIVE};
static const struct spec *specs[2];
static struct fw w; /* the frames for the next pipeline */

static void call(uint64_t tick, uint64_t pid, const char *f, int argument)
{
    fw_call_int(&w, tick, pid, "m", f, argument);
}

static void result(uint64_t tick, uint64_t pid, const char *f, int value)
{
    fw_return_int(&w, tick, pid, "m", f, value);
}

static void exception(uint64_t tick, uint64_t pid, const char *f)
{
    fw_ring(&w, 1);
    fw_frame(&w, ETW_EXCEPTION_FROM, tick, pid);
    fw_fun(&w, "m", f, 1);
    fw_tuple(&w, 2);
    fw_atom(&w, "error");
    fw_atom(&w, "boom");
    fw_frame_end(&w);
}

/* A frame whose term is 0: a collection without details, or an unknown function. */
static void kind(uint8_t kind, uint64_t tick, uint64_t pid)
{
    fw_ring(&w, 1);
    fw_frame(&w, kind, tick, pid);
    fw_int(&w, 0);
    fw_frame_end(&w);
}

/* The node resumes the tracing of calls after a pause. */
static void resumed(uint64_t tick)
{
    fw_ring(&w, ETW_META_RING);
    fw_frame(&w, ETW_NOTICE, tick, 0);
    fw_atom(&w, "resumed");
    fw_atom(&w, "call");
    fw_frame_end(&w);
}

/* Feeds the frames to a pipeline, and forgets them. The caller frees the pipeline. */
static struct pt run(struct pipeline_options o, int64_t mono_ns)
{
    struct pt t = {0};

    o.specs = specs;
    o.nspecs = 2;
    pt_open(&t, (const char *const[]){"text", NULL}, &relative, o);
    pt_feed(&t, 0, fw_batch(&w, 1000000, mono_ns, 1000000, ETW_BATCH_LAST));
    pt_close(&t);
    const struct totals *n = pipeline_totals(t.p);
    uint64_t lost = n->lost[ETW_LOST_RATE] + n->lost[ETW_LOST_RING] + n->lost[ETW_LOST_REQUEST];
    if (n->missing || !n->complete || n->seen != n->shown + n->filtered + lost)
        ok(false, "seen %llu = shown %llu + filtered %llu + lost %llu", (unsigned long long)n->seen,
           (unsigned long long)n->shown, (unsigned long long)n->filtered, (unsigned long long)lost);
    fw_release(&w);
    memset(&w, 0, sizeof(w));
    fw_begin(&w);
    return t;
}

/* Compares the text of the frames. Returns the number of incomplete pairs. */
static int64_t shows(struct pipeline_options o, const char *want, const char *name)
{
    struct pt t = run(o, 1000000);
    int64_t incomplete = (int64_t)pipeline_totals(t.p)->incomplete;

    is_text(buf_cstr(&t.out[0]), want, name);
    pt_free(&t);
    return incomplete;
}

static void test_calls(void)
{
    int64_t incomplete;

    call(1000, 1, "f", 3);
    call(2000, 1, "f", 2);
    call(2500, 2, "f", 9);
    call(3000, 1, "f", 1);
    result(4000, 1, "f", 1);
    result(6000, 1, "f", 2);
    result(6500, 2, "f", 0);
    result(9000, 1, "f", 6);
    incomplete =
        shows(plain,
              "  0.000000 <0.1.0> call m:f(3)\n  0.000001 <0.1.0> call m:f(2)\n  0.000001 <0.2.0> call m:f(9)\n"
              "  0.000002 <0.1.0> call m:f(1)\n  0.000003 <0.1.0> return m:f/1 = 1 1us\n  0.000005 <0.1.0> return "
              "m:f/1 = 2 4us\n"
              "  0.000005 <0.2.0> return m:f/1 = 0 4us\n  0.000008 <0.1.0> return m:f/1 = 6 8us\n",
              "recursion in two processes");
    is_number(incomplete, 0, "every call has its result");

    call(1000, 1, "f", 1);
    call(2000, 1, "g", 1);
    exception(3000, 1, "g");
    exception(4000, 1, "f");
    shows(plain,
          "  0.000000 <0.1.0> call m:f(1)\n  0.000001 <0.1.0> call m:g(1)\n"
          "  0.000002 <0.1.0> exception m:g/1 error:boom 1us\n  0.000003 <0.1.0> exception m:f/1 error:boom 3us\n",
          "an exception ends both calls");

    call(1000, 1, "f", 1);
    call(2000, 1, "g", 1);
    result(3000, 1, "f", 1);
    result(4000, 1, "h", 1);
    incomplete = shows(plain,
                       "  0.000000 <0.1.0> call m:f(1)\n  0.000001 <0.1.0> call m:g(1)\n  0.000002 <0.1.0> return "
                       "m:f/1 = 1 2us\n"
                       "  0.000003 <0.1.0> return m:h/1 = 1\n",
                       "a result without a call has no duration");
    is_number(incomplete, 2, "a call without a result and a result without a call are incomplete");
}

static void test_pauses(void)
{
    int64_t incomplete;

    call(1000, 1, "g", 1);
    call(2000, 1, "f", 2);
    call(3000, 1, "f", 1); /* its result is missed */
    resumed(4000);
    result(5000, 1, "f", 2);
    call(6000, 1, "f", 1);
    result(7000, 1, "f", 1);
    result(8000, 1, "g", 1);
    incomplete =
        shows(plain,
              "  0.000000 <0.1.0> call m:g(1)\n  0.000001 <0.1.0> call m:f(2)\n  0.000002 <0.1.0> call m:f(1)\n"
              "  0.000004 <0.1.0> return m:f/1 = 2\n  0.000005 <0.1.0> call m:f(1)\n"
              "  0.000006 <0.1.0> return m:f/1 = 1 1us\n  0.000007 <0.1.0> return m:g/1 = 1 7us\n",
              "a result after a pause has a duration only if it surely belongs to one call");
    is_number(incomplete, 2, "the uncertain result and the call without a result are incomplete");

    call(1000, 1, "f", 2);
    call(2000, 1, "f", 1);
    call(3000, 1, "g", 1);
    resumed(3500);
    result(4000, 1, "g", 1);
    result(5000, 1, "f", 1);
    resumed(5500);
    result(6000, 1, "f", 2);
    incomplete =
        shows(plain,
              "  0.000000 <0.1.0> call m:f(2)\n  0.000001 <0.1.0> call m:f(1)\n  0.000002 <0.1.0> call m:g(1)\n"
              "  0.000003 <0.1.0> return m:g/1 = 1 1us\n  0.000004 <0.1.0> return m:f/1 = 1 3us\n"
              "  0.000005 <0.1.0> return m:f/1 = 2 5us\n",
              "a call that surely returns after a pause shows that the calls around it were open");
    is_number(incomplete, 0, "no call is incomplete");

    call(1000, 1, "f", 1);
    call(2000, 1, "f", 2);
    call(3000, 1, "f", 3);
    resumed(4000);
    result(5000, 1, "f", 3);
    result(6000, 1, "f", 2);
    result(7000, 1, "f", 1);
    shows((struct pipeline_options){.max_calls = 2},
          "  0.000000 <0.1.0> call m:f(1)\n  0.000001 <0.1.0> call m:f(2)\n  0.000002 <0.1.0> call m:f(3)\n"
          "  0.000004 <0.1.0> return m:f/1 = 3\n  0.000005 <0.1.0> return m:f/1 = 2\n  0.000006 <0.1.0> return m:f/1 = "
          "1\n",
          "after a call was dropped, no pair across a pause is certain");

    for (int i = 0; i < 300; i++)
        call(1000, 1, "f", 1);
    resumed(2000);
    call(3000, 1, "g", 1);
    result(4000, 1, "g", 1);
    struct pt t = run(plain, 1000000);
    is_number((int64_t)pipeline_totals(t.p)->incomplete, 300, "many calls before a pause are dropped at the next call");
    pt_free(&t);
}

static void test_losses(void)
{
    int64_t incomplete;

    call(1000, 1, "f", 1);
    fw_lost(&w, 2000, ETW_LOST_HALF, 3);
    result(3000, 1, "f", 1);
    call(4000, 1, "f", 1);
    result(5000, 1, "f", 1);
    incomplete =
        shows(plain,
              "  0.000000 <0.1.0> call m:f(1)\n*** 3 events lost here (rate) ***\n  0.000002 <0.1.0> return m:f/1 = 1\n"
              "  0.000003 <0.1.0> call m:f(1)\n  0.000004 <0.1.0> return m:f/1 = 1 1us\n",
              "a pair across a loss has no duration");
    is_number(incomplete, 1, "a pair across a loss is incomplete");

    /* When the node's rate limit rejects calls with their results, each admitted call still gets its duration. */
    call(1000, 1, "f", 1);
    fw_lost(&w, 2000, ETW_LOST_RATE, 3);
    result(3000, 1, "f", 1);
    call(4000, 1, "f", 1);
    fw_lost(&w, 5000, ETW_LOST_RING, 3);
    result(6000, 1, "f", 1);
    shows(plain,
          "  0.000000 <0.1.0> call m:f(1)\n*** 3 events lost here (rate) ***\n  0.000002 <0.1.0> return m:f/1 = 1 2us\n"
          "  0.000003 <0.1.0> call m:f(1)\n*** 3 events lost here (ring) ***\n  0.000005 <0.1.0> return m:f/1 = 1\n",
          "a loss by rate keeps pairs complete, and a loss in the ring does not");

    call(1000, 1, "f", 1);
    fw_lost(&w, 2000, ETW_LOST_REQUEST, 1);
    result(3000, 1, "f", 1);
    incomplete = shows(plain,
                       "  0.000000 <0.1.0> call m:f(1)\n*** 1 event lost here (request) ***\n  0.000002 <0.1.0> return "
                       "m:f/1 = 1 2us\n",
                       "a root that is lost leaves the durations of other calls");
    is_number(incomplete, 0, "and no call is incomplete");
}

/*
 * A process continues in another ring after it has lost a result. The first ring reports the loss later: in a frame, or
 * only in its section head.
 */
static void test_late_losses(void)
{
    for (int behind = 0; behind < 2; behind++) {
        call(1000, 1, "f", 1);
        call(2000, 1, "f", 2);
        call(2500, 2, "f", 3);
        if (behind)
            w.r->lost[ETW_LOST_RING] += 1, w.r->seen += 1;
        else
            fw_lost(&w, 5000, ETW_LOST_RING, 1);
        fw_ring(&w, 2);
        fw_return(&w, 3000, 1, "m", "f", 1);
        fw_int(&w, 1);
        fw_frame_end(&w);
        shows(plain,
              "  0.000000 <0.1.0> call m:f(1)\n  0.000001 <0.1.0> call m:f(2)\n  0.000001 <0.2.0> call m:f(3)\n"
              "  0.000002 <0.1.0> return m:f/1 = 1\n*** 1 event lost here (ring) ***\n",
              "a loss that is reported later removes the duration of earlier calls");
    }
}

static void test_eviction(void)
{
    for (int i = 0; i < 100; i++)
        call(1000 + (uint64_t)i, (uint64_t)i, "f", i);
    for (int i = 0; i < 100; i++)
        result(2000 + (uint64_t)i, (uint64_t)i, "f", i);
    struct pt t = run((struct pipeline_options){.max_calls = 10}, 1000000);
    is_number((int64_t)pipeline_totals(t.p)->incomplete, 180,
              "calls that were evicted and their results are incomplete");
    pt_free(&t);
}

/* f(ARGUMENT) calls g(8) and returns 77. The pattern shows the call of f and its result. */
static void test_grep(int argument, struct grep grep, const char *name)
{
    char want[100];

    call(1000, 1, "f", argument);
    call(2000, 1, "g", 8);
    result(3000, 1, "g", 1);
    result(4000, 1, "f", 77);
    snprintf(want, sizeof want, "  0.000000 <0.1.0> call m:f(%d)\n  0.000003 <0.1.0> return m:f/1 = 77 3us\n",
             argument);
    shows((struct pipeline_options){.greps = &grep, .ngreps = 1}, want, name);
}

static void test_limit(void)
{
    for (int i = 0; i < 5; i++) {
        call(1000 * (uint64_t)(2 * i + 1), 1, "f", i);
        result(1000 * (uint64_t)(2 * i + 2), 1, "f", i);
    }
    struct pt t = run((struct pipeline_options){.limit = 2}, 1000000);
    is_text(buf_cstr(&t.out[0]),
            "  0.000000 <0.1.0> call m:f(0)\n  0.000001 <0.1.0> return m:f/1 = 0 1us\n  0.000002 <0.1.0> call m:f(1)\n"
            "  0.000003 <0.1.0> return m:f/1 = 1 1us\n",
            "a limit counts a call and its result once");
    is_number(t.status, PIPELINE_DONE, "the pipeline is done at the limit");
    pt_free(&t);
}

/* Collections and time slices. The node's clock is far below 0, as in a real VM. */
static void test_slices(void)
{
    kind(ETW_IN, 1000, 1);
    kind(ETW_GC_MINOR_START, 2000, 1);
    kind(ETW_IN, 2500, 2);
    kind(ETW_GC_MINOR_END, 3000, 1);
    kind(ETW_GC_MAJOR_START, 4000, 1);
    fw_lost(&w, 5000, ETW_LOST_RATE, 1);
    kind(ETW_GC_MAJOR_END, 6000, 1);
    kind(ETW_OUT, 7000, 1);
    kind(ETW_OUT_EXITED, 8000, 2);
    kind(ETW_IN_EXITING, 9000, 1);
    kind(ETW_OUT_EXITED, 9500, 1);
    struct pt t = run(plain, -576460000000000000);
    is_text(buf_cstr(&t.out[0]),
            "  0.000000 <0.1.0> in\n  0.000001 <0.1.0> gc_minor_start 0\n  0.000001 <0.2.0> in\n"
            "  0.000002 <0.1.0> gc_minor_end 0 1us\n  0.000003 <0.1.0> gc_major_start 0\n*** 1 event lost here (rate) "
            "***\n"
            "  0.000005 <0.1.0> gc_major_end 0\n  0.000006 <0.1.0> out\n  0.000007 <0.2.0> out_exited\n"
            "  0.000008 <0.1.0> in_exiting\n  0.000008 <0.1.0> out_exited 500ns\n",
            "schedules and garbage collections are paired by process, but not across a loss");
    pt_free(&t);
    is_number((int64_t)pairing_begin(UINT64_C(1) << ETW_GC_MAJOR_END | UINT64_C(1) << ETW_RETURN_FROM),
              (int64_t)(UINT64_C(1) << ETW_GC_MINOR_START | UINT64_C(1) << ETW_GC_MAJOR_START),
              "an end needs its beginning");
}

/* The calls that have not returned when the node's time has come to `tick`. */
static struct totals_open open_at(uint64_t tick)
{
    struct pt t = {0};

    pt_open(&t, (const char *const[]){"text", NULL}, &relative, (struct pipeline_options){.specs = specs, .nspecs = 2});
    pt_feed(&t, 0, fw_batch(&w, tick, (int64_t)tick, tick, ETW_BATCH_LAST));
    pt_close(&t);
    struct totals_open open = pipeline_totals(t.p)->open;
    if (open.calls) /* its function lives in the pipeline */
        is_text(open.fun->erl.at, "m:f", "the oldest open call has its function");
    pt_free(&t);
    fw_release(&w);
    memset(&w, 0, sizeof(w));
    fw_begin(&w);
    return open;
}

static void test_open(void)
{
    const uint64_t second = 1000000000;

    call(1000, 1, "f", 1);
    call(second, 2, "f", 2);
    call(second + 1, 2, "g", 3);
    call(3 * second, 3, "f", 4);
    result(3 * second + 1, 2, "g", 0);
    struct totals_open open = open_at(3 * second + 1000);
    is_number((int64_t)open.calls, 2, "calls that have not returned after a second are open");
    is_number(open.ns, (int64_t)(3 * second), "the oldest one is as old as the node's time says");
    ok(open.who.text_len == 7 && !memcmp(open.who.text, "<0.1.0>", 7), "and has its process");

    call(1000, 1, "f", 1);
    result(2000, 1, "f", 1);
    call(3000, 2, "g", 1);
    fw_lost(&w, 4000, ETW_LOST_RING, 1);
    open = open_at(3 * second);
    is_number((int64_t)open.calls, 0, "a call whose result may be lost is not open");
}

int main(void)
{
    specs[0] = pt_spec("m", "_", 1, ACT_RETURN);
    specs[1] = pt_spec("quiet", "_", -1, 0);
    fw_begin(&w);
    test_calls();
    test_pauses();
    test_losses();
    test_late_losses();
    test_eviction();
    test_grep(7, (struct grep){"f.*7", false}, "a matching call is shown with its result");
    test_grep(7, (struct grep){"m:g", true}, "an inverted pattern hides a call and its result");
    test_grep(5, (struct grep){"= 77", false}, "a matching result is shown with its call");
    test_limit();
    test_slices();
    test_open();
    pt_spec_free(specs[0]);
    pt_spec_free(specs[1]);
    fw_release(&w);
    return tap_end();
}

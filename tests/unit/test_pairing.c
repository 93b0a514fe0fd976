/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which result the client pairs with which call: recursion, exceptions, losses, limits, filters. */
#include "pipetest.h"
#include "pipeline/pairing.h"

static const struct look relative = {.time = TIME_RELATIVE};
static const struct spec *specs[2];

static void fcall(struct fw *w, uint64_t tick, uint64_t pid, const char *f, int n)
{
    fw_ring(w, 1);
    fw_call(w, tick, pid, "m", f, 1);
    fw_int(w, n);
    fw_frame_end(w);
}

static void fret(struct fw *w, uint64_t tick, uint64_t pid, const char *f, int value)
{
    fw_ring(w, 1);
    fw_return(w, tick, pid, "m", f, 1);
    fw_int(w, value);
    fw_frame_end(w);
}

static void fexc(struct fw *w, uint64_t tick, uint64_t pid, const char *f)
{
    fw_ring(w, 1);
    fw_frame(w, ETW_EXCEPTION_FROM, tick, pid);
    fw_fun(w, "m", f, 1);
    fw_tuple(w, 2);
    fw_atom(w, "error");
    fw_atom(w, "boom");
    fw_frame_end(w);
}

/* A frame whose term is 0: a collection without details, or an unknown function. */
static void fkind(struct fw *w, uint8_t kind, uint64_t tick, uint64_t pid)
{
    fw_ring(w, 1);
    fw_frame(w, kind, tick, pid);
    fw_int(w, 0);
    fw_frame_end(w);
}

static struct pt run_at(struct fw *w, struct pipeline_options o, int64_t mono_ns)
{
    struct pt t = {0};

    o.specs = specs;
    o.nspecs = 2;
    pt_open(&t, (const char *const[]){"text", NULL}, &relative, o);
    pt_feed(&t, 0, fw_batch(w, 1000000, mono_ns, 1000000, ETW_BATCH_LAST));
    pt_close(&t);
    const struct totals *n = pipeline_totals(t.p);
    uint64_t lost = n->lost[ETW_LOST_RATE] + n->lost[ETW_LOST_RING];
    if (n->missing || !n->complete || n->seen != n->shown + n->filtered + lost)
        ok(false, "seen %llu = shown %llu + filtered %llu + lost %llu", (unsigned long long)n->seen,
           (unsigned long long)n->shown, (unsigned long long)n->filtered, (unsigned long long)lost);
    buf_cstr(&t.out[0]);
    fw_release(w);
    memset(w, 0, sizeof(*w));
    fw_begin(w);
    return t;
}

static struct pt run(struct fw *w, struct pipeline_options o)
{
    return run_at(w, o, 1000000);
}

int main(void)
{
    struct fw w = {0};
    struct pt t;

    specs[0] = pt_spec("m", "_", 1, ACT_RETURN);
    specs[1] = pt_spec("quiet", "_", -1, 0);
    fw_begin(&w);

    fcall(&w, 1000, 1, "f", 3);
    fcall(&w, 2000, 1, "f", 2);
    fcall(&w, 2500, 2, "f", 9);
    fcall(&w, 3000, 1, "f", 1);
    fret(&w, 4000, 1, "f", 1);
    fret(&w, 6000, 1, "f", 2);
    fret(&w, 6500, 2, "f", 0);
    fret(&w, 9000, 1, "f", 6);
    t = run(&w, (struct pipeline_options){0});
    is_text(t.out[0].data,
            "  0.000000 <0.1.0> call m:f(3)\n  0.000001 <0.1.0> call m:f(2)\n  0.000001 <0.2.0> call m:f(9)\n"
            "  0.000002 <0.1.0> call m:f(1)\n  0.000003 <0.1.0> return m:f/1 = 1 1us\n  0.000005 <0.1.0> return m:f/1 = 2 4us\n"
            "  0.000005 <0.2.0> return m:f/1 = 0 4us\n  0.000008 <0.1.0> return m:f/1 = 6 8us\n",
            "recursion in two processes");
    is_number((int64_t)pipeline_totals(t.p)->incomplete, 0, "every call has its result");
    pt_free(&t);

    fcall(&w, 1000, 1, "f", 1);
    fcall(&w, 2000, 1, "g", 1);
    fexc(&w, 3000, 1, "g");
    fexc(&w, 4000, 1, "f");
    t = run(&w, (struct pipeline_options){0});
    is_text(t.out[0].data,
            "  0.000000 <0.1.0> call m:f(1)\n  0.000001 <0.1.0> call m:g(1)\n"
            "  0.000002 <0.1.0> exception m:g/1 error:boom 1us\n  0.000003 <0.1.0> exception m:f/1 error:boom 3us\n",
            "an exception ends both calls");
    pt_free(&t);

    fcall(&w, 1000, 1, "f", 1);
    fcall(&w, 2000, 1, "g", 1);
    fret(&w, 3000, 1, "f", 1);
    fret(&w, 4000, 1, "h", 1);
    t = run(&w, (struct pipeline_options){0});
    is_text(t.out[0].data,
            "  0.000000 <0.1.0> call m:f(1)\n  0.000001 <0.1.0> call m:g(1)\n  0.000002 <0.1.0> return m:f/1 = 1 2us\n"
            "  0.000003 <0.1.0> return m:h/1 = 1\n",
            "a result without a call has no duration");
    is_number((int64_t)pipeline_totals(t.p)->incomplete, 2, "a call without a result and a result without a call");
    pt_free(&t);

    fcall(&w, 1000, 1, "f", 1);
    fw_lost(&w, 2000, ETW_LOST_HALF, 3);
    fret(&w, 3000, 1, "f", 1);
    fcall(&w, 4000, 1, "f", 1);
    fret(&w, 5000, 1, "f", 1);
    t = run(&w, (struct pipeline_options){0});
    is_text(t.out[0].data,
            "  0.000000 <0.1.0> call m:f(1)\n*** 3 events lost here (rate) ***\n  0.000002 <0.1.0> return m:f/1 = 1\n"
            "  0.000003 <0.1.0> call m:f(1)\n  0.000004 <0.1.0> return m:f/1 = 1 1us\n",
            "a pair across a loss has no duration");
    is_number((int64_t)pipeline_totals(t.p)->incomplete, 1, "a pair across a loss is incomplete");
    pt_free(&t);

    /* When the node's rate limit rejects calls with their results, each admitted call still gets its duration. */
    fcall(&w, 1000, 1, "f", 1);
    fw_lost(&w, 2000, ETW_LOST_RATE, 3);
    fret(&w, 3000, 1, "f", 1);
    fcall(&w, 4000, 1, "f", 1);
    fw_lost(&w, 5000, ETW_LOST_RING, 3);
    fret(&w, 6000, 1, "f", 1);
    t = run(&w, (struct pipeline_options){0});
    is_text(t.out[0].data,
            "  0.000000 <0.1.0> call m:f(1)\n*** 3 events lost here (rate) ***\n  0.000002 <0.1.0> return m:f/1 = 1 2us\n"
            "  0.000003 <0.1.0> call m:f(1)\n*** 3 events lost here (ring) ***\n  0.000005 <0.1.0> return m:f/1 = 1\n",
            "a loss by rate keeps pairs complete, and a loss in the ring does not");
    pt_free(&t);

    /*
     * A process continues in another ring after it has lost a result. The first ring reports the loss later: in a
     * frame, or only in its section head.
     */
    for (int behind = 0; behind < 2; behind++) {
        fcall(&w, 1000, 1, "f", 1);
        fcall(&w, 2000, 1, "f", 2);
        fcall(&w, 2500, 2, "f", 3);
        if (behind)
            w.r->lost[ETW_LOST_RING] += 1, w.r->seen += 1;
        else
            fw_lost(&w, 5000, ETW_LOST_RING, 1);
        fw_ring(&w, 2);
        fw_return(&w, 3000, 1, "m", "f", 1);
        fw_int(&w, 1);
        fw_frame_end(&w);
        t = run(&w, (struct pipeline_options){0});
        is_text(t.out[0].data,
                "  0.000000 <0.1.0> call m:f(1)\n  0.000001 <0.1.0> call m:f(2)\n  0.000001 <0.2.0> call m:f(3)\n"
                "  0.000002 <0.1.0> return m:f/1 = 1\n*** 1 event lost here (ring) ***\n",
                "a loss that is reported later removes the duration of earlier calls");
        pt_free(&t);
    }

    for (int i = 0; i < 100; i++)
        fcall(&w, 1000 + (uint64_t)i, (uint64_t)i, "f", i);
    for (int i = 0; i < 100; i++)
        fret(&w, 2000 + (uint64_t)i, (uint64_t)i, "f", i);
    t = run(&w, (struct pipeline_options){.max_calls = 10});
    is_number((int64_t)pipeline_totals(t.p)->incomplete, 180, "calls that were evicted and their results are incomplete");
    pt_free(&t);

    fcall(&w, 1000, 1, "f", 7);
    fcall(&w, 2000, 1, "g", 8);
    fret(&w, 3000, 1, "g", 1);
    fret(&w, 4000, 1, "f", 77);
    struct grep seven = {"f.*7", false}, not_g = {"m:g", true}, value = {"= 77", false};
    t = run(&w, (struct pipeline_options){.greps = &seven, .ngreps = 1});
    is_text(t.out[0].data, "  0.000000 <0.1.0> call m:f(7)\n  0.000003 <0.1.0> return m:f/1 = 77 3us\n",
            "a matching call is shown with its result");
    pt_free(&t);

    fcall(&w, 1000, 1, "f", 7);
    fcall(&w, 2000, 1, "g", 8);
    fret(&w, 3000, 1, "g", 1);
    fret(&w, 4000, 1, "f", 77);
    t = run(&w, (struct pipeline_options){.greps = &not_g, .ngreps = 1});
    is_text(t.out[0].data, "  0.000000 <0.1.0> call m:f(7)\n  0.000003 <0.1.0> return m:f/1 = 77 3us\n",
            "an inverted pattern hides a call and its result");
    pt_free(&t);

    fcall(&w, 1000, 1, "f", 5);
    fcall(&w, 2000, 1, "g", 8);
    fret(&w, 3000, 1, "g", 1);
    fret(&w, 4000, 1, "f", 77);
    t = run(&w, (struct pipeline_options){.greps = &value, .ngreps = 1});
    is_text(t.out[0].data, "  0.000000 <0.1.0> call m:f(5)\n  0.000003 <0.1.0> return m:f/1 = 77 3us\n",
            "a matching result is shown with its call");
    pt_free(&t);

    for (int i = 0; i < 5; i++) {
        fcall(&w, 1000 * (uint64_t)(2 * i + 1), 1, "f", i);
        fret(&w, 1000 * (uint64_t)(2 * i + 2), 1, "f", i);
    }
    t = run(&w, (struct pipeline_options){.limit = 2});
    is_text(t.out[0].data,
            "  0.000000 <0.1.0> call m:f(0)\n  0.000001 <0.1.0> return m:f/1 = 0 1us\n  0.000002 <0.1.0> call m:f(1)\n"
            "  0.000003 <0.1.0> return m:f/1 = 1 1us\n",
            "a limit counts a call and its result once");
    is_number(t.status, PIPELINE_DONE, "the pipeline is done at the limit");
    pt_free(&t);

    /* Collections and time slices. The node's clock is far below 0, as in a real VM. */
    fkind(&w, ETW_IN, 1000, 1);
    fkind(&w, ETW_GC_MINOR_START, 2000, 1);
    fkind(&w, ETW_IN, 2500, 2);
    fkind(&w, ETW_GC_MINOR_END, 3000, 1);
    fkind(&w, ETW_GC_MAJOR_START, 4000, 1);
    fw_lost(&w, 5000, ETW_LOST_RATE, 1);
    fkind(&w, ETW_GC_MAJOR_END, 6000, 1);
    fkind(&w, ETW_OUT, 7000, 1);
    fkind(&w, ETW_OUT_EXITED, 8000, 2);
    fkind(&w, ETW_IN_EXITING, 9000, 1);
    fkind(&w, ETW_OUT_EXITED, 9500, 1);
    t = run_at(&w, (struct pipeline_options){0}, -576460000000000000);
    is_text(t.out[0].data,
            "  0.000000 <0.1.0> in\n  0.000001 <0.1.0> gc_minor_start 0\n  0.000001 <0.2.0> in\n"
            "  0.000002 <0.1.0> gc_minor_end 0 1us\n  0.000003 <0.1.0> gc_major_start 0\n*** 1 event lost here (rate) ***\n"
            "  0.000005 <0.1.0> gc_major_end 0\n  0.000006 <0.1.0> out\n  0.000007 <0.2.0> out_exited\n"
            "  0.000008 <0.1.0> in_exiting\n  0.000008 <0.1.0> out_exited 500ns\n",
            "schedules and garbage collections are paired by process, but not across a loss");
    pt_free(&t);
    is_number((int64_t)pairing_begin(UINT64_C(1) << ETW_GC_MAJOR_END | UINT64_C(1) << ETW_RETURN_FROM),
              (int64_t)(UINT64_C(1) << ETW_GC_MINOR_START | UINT64_C(1) << ETW_GC_MAJOR_START),
              "an end needs its beginning");

    pt_spec_free(specs[0]);
    pt_spec_free(specs[1]);
    fw_release(&w);
    return tap_end();
}

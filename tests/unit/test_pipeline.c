/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the way from batches to lines for people and objects for scripts. */
#include <stdlib.h>
#include <unistd.h>

#include "events/recfile.h"
#include "lang/lang.h"
#include "pipetest.h"

static const struct look utc = {.time = TIME_UTC};

/* Writes one frame of each kind. A tick is one nanosecond. */
static void everything(struct fw *w)
{
    fw_begin(w);
    fw_hello(w, 1000, "shop@h1");
    fw_name(w, 1000, PID(84), "cart");
    fw_ring(w, 1);
    fw_call(w, 118402000, PID(84), "Elixir.MyApp.Repo", "get", 2);
    fw_atom(w, "Elixir.MyApp.User");
    fw_int(w, 12);
    w->flags |= ETW_F_MS;
    fw_tuple(w, 1);
    fw_tuple(w, 4);
    fw_atom(w, "Elixir.MyApp.Cart");
    fw_atom(w, "load");
    fw_int(w, 1);
    fw_tuple(w, 2);
    fw_string(w, "lib/my_app/cart.ex");
    fw_int(w, 31);
    fw_frame_end(w);
    fw_return(w, 118977000, PID(84), "Elixir.MyApp.Repo", "get", 2);
    fw_tuple(w, 2);
    fw_atom(w, "ok");
    fw_bin_n(w, "abc", 3, 1237);
    w->flags |= ETW_F_CUT;
    fw_frame_end(w);
    fw_call(w, 119000000, PID(84), "lists", "seq", 2);
    fw_int(w, 1);
    fw_int(w, 10);
    fw_frame_end(w);
    fw_call(w, 119000100, PID(84), "ets", "lookup", 2);
    w->flags |= ETW_F_ARITY;
    fw_frame_end(w);
    fw_frame(w, ETW_EXCEPTION_FROM, 119012100, PID(84));
    fw_fun(w, "ets", "lookup", 2);
    fw_tuple(w, 2);
    fw_atom(w, "error");
    fw_atom(w, "badarg");
    fw_frame_end(w);
    fw_frame(w, ETW_SEND, 119100000, PID(85));
    fw_pid(w, PID(84));
    fw_tuple(w, 2);
    fw_atom(w, "get");
    fw_int(w, 12);
    fw_frame_end(w);
    fw_frame(w, ETW_RECEIVE, 119100500, PID(84));
    fw_tuple(w, 2);
    fw_atom(w, "get");
    fw_int(w, 12);
    fw_frame_end(w);
    fw_frame(w, ETW_SPAWN, 119200000, PID(84));
    fw_pid(w, PID(99));
    fw_tuple(w, 3);
    fw_atom(w, "shop");
    fw_atom(w, "loop");
    fw_tag(w, ETW_T_LIST);
    fw_int(w, 1);
    fw_tag(w, ETW_T_NIL);
    fw_tag(w, ETW_T_END);
    fw_frame_end(w);
    fw_frame(w, ETW_IN, 119300000, PID(99));
    fw_tuple(w, 3);
    fw_atom(w, "shop");
    fw_atom(w, "loop");
    fw_int(w, 2);
    fw_frame_end(w);
    fw_frame(w, ETW_GC_MINOR_START, 119300100, PID(99));
    fw_tag(w, ETW_T_LIST);
    fw_tuple(w, 2);
    fw_atom(w, "heap_size");
    fw_int(w, 233);
    fw_tag(w, ETW_T_END);
    fw_frame_end(w);
    fw_frame(w, ETW_GC_MINOR_END, 119304100, PID(99));
    fw_tag(w, ETW_T_NIL);
    fw_frame_end(w);
    fw_frame(w, ETW_OUT, 119310000, PID(99));
    fw_int(w, 0);
    fw_frame_end(w);
    fw_lost(w, 119400000, ETW_LOST_RATE, 812);
    fw_frame(w, ETW_EXIT, 119500000, PID(99));
    fw_atom(w, "normal");
    fw_frame_end(w);
}

static const char text_want[] =
    "18:26:50.118402 <0.84.0>(cart) call MyApp.Repo.get(MyApp.User, 12) by MyApp.Cart.load/1 cart.ex:31\n"
    "18:26:50.118977 <0.84.0>(cart) return MyApp.Repo.get/2 = {:ok, \"abc\"…+1234 B} 575us\n"
    "18:26:50.119000 <0.84.0>(cart) call lists:seq(1, 10)\n"
    "18:26:50.119000 <0.84.0>(cart) call ets:lookup/2\n"
    "18:26:50.119012 <0.84.0>(cart) exception ets:lookup/2 error:badarg 12us\n"
    "18:26:50.119100 <0.85.0> send to <0.84.0>(cart) {get,12}\n"
    "18:26:50.119100 <0.84.0>(cart) receive {get,12}\n"
    "18:26:50.119200 <0.84.0>(cart) spawn <0.99.0> shop:loop(1, [])\n"
    "18:26:50.119300 <0.99.0>(shop:loop/2) in shop:loop/2\n"
    "18:26:50.119300 <0.99.0>(shop:loop/2) gc_minor_start heap_size 233\n"
    "18:26:50.119304 <0.99.0>(shop:loop/2) gc_minor_end [] 4us\n"
    "18:26:50.119310 <0.99.0>(shop:loop/2) out 10us\n"
    "*** 812 events lost here (rate) ***\n"
    "18:26:50.119500 <0.99.0>(shop:loop/2) exit normal\n";

/* The beginning of a line. clang-format does not know where a line begins. */
#define HEAD(type, micro, mono)                                                                                        \
    "{\"v\":1,\"type\":\"" type "\",\"ts\":\"2025-11-20T18:26:50." micro "Z\",\"mono_ns\":" mono ",\"node\":\"shop@"   \
    "h1\""

/* clang-format off */
static const char json_want[] =
    HEAD("attached", "000001", "1000")
        ",\"otp\":\"29\"}\n"
    HEAD("call", "118402", "118402000")
        ",\"pid\":\"<0.84.0>\",\"name\":\"cart\",\"m\":\"Elixir.MyApp.Repo\",\"f\":\"get\",\"a\":2,"
        "\"args\":[\"'Elixir.MyApp.User'\",\"12\"],\"caller\":{\"m\":\"Elixir.MyApp.Cart\",\"f\":\"load\",\"a\":1,"
        "\"file\":\"lib/my_app/cart.ex\",\"line\":31}}\n"
    HEAD("return", "118977", "118977000")
        ",\"pid\":\"<0.84.0>\",\"name\":\"cart\",\"m\":\"Elixir.MyApp.Repo\",\"f\":\"get\",\"a\":2,"
        "\"args\":[\"'Elixir.MyApp.User'\",\"12\"],\"value\":\"{ok,<<\\\"abc\\\"…+1234 B>>}\",\"dur_us\":575,"
        "\"cut\":true}\n"
    HEAD("call", "119000", "119000000")
        ",\"pid\":\"<0.84.0>\",\"name\":\"cart\",\"m\":\"lists\",\"f\":\"seq\",\"a\":2,\"args\":[\"1\",\"10\"]}\n"
    HEAD("call", "119000", "119000100")
        ",\"pid\":\"<0.84.0>\",\"name\":\"cart\",\"m\":\"ets\",\"f\":\"lookup\",\"a\":2}\n"
    HEAD("exception", "119012", "119012100")
        ",\"pid\":\"<0.84.0>\",\"name\":\"cart\",\"m\":\"ets\",\"f\":\"lookup\",\"a\":2,\"class\":\"error\","
        "\"reason\":\"badarg\",\"dur_us\":12}\n"
    HEAD("send", "119100", "119100000")
        ",\"pid\":\"<0.85.0>\",\"to\":\"<0.84.0>\",\"msg\":\"{get,12}\"}\n"
    HEAD("receive", "119100", "119100500")
        ",\"pid\":\"<0.84.0>\",\"name\":\"cart\",\"msg\":\"{get,12}\"}\n"
    HEAD("spawn", "119200", "119200000")
        ",\"pid\":\"<0.84.0>\",\"name\":\"cart\",\"child\":\"<0.99.0>\",\"m\":\"shop\",\"f\":\"loop\","
        "\"args\":[\"1\",\"[]\"]}\n"
    HEAD("in", "119300", "119300000")
        ",\"pid\":\"<0.99.0>\",\"name\":\"shop:loop/2\",\"m\":\"shop\",\"f\":\"loop\",\"a\":2}\n"
    HEAD("gc_minor_start", "119300", "119300100")
        ",\"pid\":\"<0.99.0>\",\"name\":\"shop:loop/2\",\"info\":{\"heap_size\":233}}\n"
    HEAD("gc_minor_end", "119304", "119304100")
        ",\"pid\":\"<0.99.0>\",\"name\":\"shop:loop/2\",\"info\":\"[]\",\"dur_us\":4}\n"
    HEAD("out", "119310", "119310000")
        ",\"pid\":\"<0.99.0>\",\"name\":\"shop:loop/2\",\"dur_us\":10}\n"
    HEAD("lost", "119400", "119400000")
        ",\"count\":812,\"reason\":\"rate\"}\n"
    HEAD("exit", "119500", "119500000")
        ",\"pid\":\"<0.99.0>\",\"name\":\"shop:loop/2\",\"reason\":\"normal\"}\n{\"v\":1,\"type\":\"summary\","
        "\"seen\":825,\"shown\":13,\"filtered\":0,\"lost\":{\"rate\":812},\"missing\":0,\"truncated\":1,"
        "\"incomplete\":0,\"filter_errors\":0,\"undecided\":0,\"complete\":true}\n";
/* clang-format on */

/*
 * A call waited on one thread, and another thread decided about it. The node reads the figures of the second thread
 * first, so the total of filtered calls is negative until the next batch. The client shows 0 meanwhile.
 */
static void hidden_for_a_moment(void)
{
    static const int64_t told[] = {-1, 3};
    struct fw w = {0};
    struct pt t = {0};

    pt_open(&t, (const char *const[]){"summary", NULL}, &utc, (struct pipeline_options){0});
    for (unsigned i = 0; i < 2; i++) {
        struct etw_tally figures = {.filtered = told[i]};
        fw_begin(&w);
        if (!i)
            fw_hello(&w, 1, "shop@h1");
        fw_ring(&w, ETW_META_RING);
        fw_frame(&w, ETW_TALLY, 1000 + i, 0);
        fw_fun(&w, "m", "f", 1);
        fw_raw(&w, &figures, sizeof(figures));
        fw_frame_end(&w);
        fw_ring(&w, 1);
        w.r->seen = 2;
        pt_feed(&t, 0, fw_batch(&w, 2000 + i, 2000 + i, 2000 + i, i ? ETW_BATCH_LAST : 0));
        const struct totals *n = pipeline_totals(t.p);
        is_number((int64_t)n->filtered, i ? 2 : 0,
                  i ? "the negative count is zero in the end" : "a negative count of hidden events is shown as zero");
        is_number((int64_t)n->missing, i ? 0 : 2,
                  i ? "no event is missing in the end" : "events whose fate is unknown count as missing");
    }
    pt_close(&t);
    pt_free(&t);
    fw_release(&w);
}

/* The figures of a function: three calls; one took longer. Old: in the form that has no minimum. */
static void function_figures(struct fw *w, const char *name, bool old)
{
    const struct etw_bucket buckets[] = {{etw_bucket_of(1001), 2}, {etw_bucket_of(5000), 1}};
    const struct etw_tally t = {.events = 3,
                                .seen = 6,
                                .timed = 3,
                                .total_ns = 7002,
                                .max_ns = 5000,
                                .buckets = ARRAY_LEN(buckets),
                                .min_ns = 1001};

    fw_frame(w, ETW_TALLY, 1000, 0);
    fw_fun(w, "m", name, 1);
    fw_raw(w, &t, old ? ETW_TALLY_OLD : sizeof(t));
    fw_raw(w, buckets, sizeof(buckets));
    fw_frame_end(w);
}

static void percentiles_in_range(void)
{
    struct fw w = {0};
    struct pt t = {0};

    pt_open(&t, (const char *const[]){"summary", NULL}, &utc, (struct pipeline_options){0});
    fw_begin(&w);
    fw_hello(&w, 1, "shop@h1");
    fw_ring(&w, ETW_META_RING);
    function_figures(&w, "now", false);
    function_figures(&w, "old", true);
    fw_ring(&w, 1);
    w.r->seen = 12;
    pt_feed(&t, 0, fw_batch(&w, 2000, 2000, 2000, ETW_BATCH_LAST));
    pt_close(&t);
    is_text(buf_cstr(&t.out[0]),
            "calls  errors  total    mean    p50  p99  max  function\n"
            "    3       0    7us  2.33us    1us  5us  5us  m:now/1\n"
            "    3       0    7us  2.33us  992ns  5us  5us  m:old/1\n",
            "a percentile is not less than the least duration, if that is known");
    pt_free(&t);
    fw_release(&w);
}

/* A function is called more often than 32 bits count, and a few of its calls take longer. */
static void very_many_calls(void)
{
    const uint64_t many = UINT32_MAX, few = 1000;
    struct fw w = {0};
    struct pt t = {0};

    pt_open(&t, (const char *const[]){"summary", NULL}, &utc, (struct pipeline_options){0});
    fw_begin(&w);
    fw_hello(&w, 1, "shop@h1");
    fw_ring(&w, ETW_META_RING);
    for (unsigned i = 0; i < 3; i++) {
        const struct etw_bucket buckets[] = {{etw_bucket_of(1000), UINT32_MAX}, {etw_bucket_of(5000), (uint32_t)few}};
        const struct etw_tally of = {.events = many + few,
                                     .seen = 2 * (many + few),
                                     .timed = many + few,
                                     .total_ns = many * 1000 + few * 5000,
                                     .max_ns = 5000,
                                     .buckets = ARRAY_LEN(buckets),
                                     .min_ns = 1000};
        fw_frame(&w, ETW_TALLY, 1000, 0);
        fw_fun(&w, "m", "f", 1);
        fw_raw(&w, &of, sizeof(of));
        fw_raw(&w, buckets, sizeof(buckets));
        fw_frame_end(&w);
    }
    fw_ring(&w, 1);
    w.r->seen = 6 * (many + few);
    pt_feed(&t, 0, fw_batch(&w, 2000, 2000, 2000, ETW_BATCH_LAST));
    pt_close(&t);
    ok(strstr(buf_cstr(&t.out[0]), "  1us  1us  5us  m:f/1\n"), "percentiles of more calls than 32 bits count");
    pt_free(&t);
    fw_release(&w);
}

/* A row that the node has counted by one key. Each number `wrong` but 0 makes another part malformed. */
static void counted_row(struct fw *w, unsigned wrong)
{
    struct {
        struct etw_row row;
        struct etw_bucket bucket;
    } f = {.row = {.counts = {1}, .values = {{1, 2000, 2000, 2000}}, .buckets = {1}},
           .bucket = {etw_bucket_of(2000), 1}};
    size_t bytes = sizeof(f);

    f.bucket.bucket = wrong == 1 ? ETW_BUCKETS : f.bucket.bucket;
    f.row.buckets[2] = wrong == 2 ? UINT32_MAX : 0;
    bytes -= wrong == 3 ? 1 : wrong == 4 ? sizeof(f) - 8 : 0;
    fw_frame(w, ETW_ROW, 1000 + wrong, 0);
    fw_tuple(w, wrong == 5 ? 3 : 2);
    fw_int(w, wrong == 8 ? 9 : ETW_ROW_BY);
    fw_tuple(w, 1);
    fw_atom(w, "stock");
    if (wrong == 5) {
        fw_tuple(w, 1);
        fw_atom(w, "stock");
    }
    if (wrong == 6)
        fw_int(w, 1);
    else
        fw_bin_n(w, &f, bytes, wrong == 7 ? bytes + 1 : bytes);
    fw_frame_end(w);
}

static void malformed_rows(void)
{
    struct lang_options options = {0};
    struct spec_list list = {0};
    struct arena arena;
    struct fw w = {0};
    struct pt t = {0};

    arena_init(&arena);
    ok(lang_compile(&options, STR("shop:sell(T) -> return by T: count, sum(dur)"), &arena, &list, &t.err), "%s",
       "the probe compiles");
    pt_open(&t, (const char *const[]){"table", NULL}, &utc,
            (struct pipeline_options){.specs = list.items, .nspecs = list.count});
    fw_begin(&w);
    fw_hello(&w, 1, "shop@h1");
    fw_ring(&w, ETW_META_RING);
    for (unsigned wrong = 0; wrong < 9; wrong++)
        counted_row(&w, wrong);
    pt_feed(&t, 0, fw_batch(&w, 2000, 2000, 2000, ETW_BATCH_LAST));
    pt_close(&t);
    is_text(buf_cstr(&t.out[0]), "T      count  sum(dur)\nstock      1       2us\n",
            "a row that is malformed is left out");
    pt_free(&t);
    fw_release(&w);
    arena_release(&arena);
}

/* The notice of --overhead in a recording from before etrace counted the calls that made no event. */
static void test_old_overhead(void)
{
    struct fw w = {0};
    struct pt t = {0};

    fw_begin(&w);
    fw_ring(&w, ETW_META_RING);
    fw_frame(&w, ETW_NOTICE, 1000, 0);
    fw_atom(&w, "overhead");
    fw_tuple(&w, 3);
    fw_int(&w, 310);
    fw_int(&w, 500);
    fw_int(&w, 7);
    fw_frame_end(&w);
    pt_open(&t, (const char *const[]){"text", NULL}, &utc, (struct pipeline_options){0});
    pt_feed(&t, 0, fw_batch(&w, 2000, 2000, 2000, ETW_BATCH_LAST));
    const struct totals *totals = pipeline_totals(t.p);
    ok(totals->untraced.any && totals->untraced.unknown, "an old notice of --overhead says nothing about their number");
    pt_close(&t);
    pt_free(&t);
    fw_release(&w);
}

static void two_runs_specs(struct pt *t, const char *text)
{
    struct buf specs = {0};
    struct err e;

    recfile_spec_add(&specs, "expr", (struct str){text, strlen(text)});
    t->status = pipeline_item(t->p, &(struct source_item){SOURCE_SPECS, 0, buf_view(&specs), 0}, &e);
    buf_release(&specs);
}

static void two_runs_batch(struct pt *t, struct fw *w, unsigned at, uint32_t flags)
{
    pt_feed(t, 0, fw_batch(w, at, at, at, flags));
}

/*
 * A recording with two runs of a node, whose requests differ. In the first run m:outer/1 stays open, m:loop/1 is
 * endless. Nothing of that holds in the second run.
 */
static void two_runs(void)
{
    struct fw w = {0};
    struct pt t = {0};

    pt_open(&t, (const char *const[]){"folded", "text", NULL}, &utc, (struct pipeline_options){0});
    two_runs_specs(&t, "m:_/1 -> return");
    fw_begin(&w);
    fw_hello(&w, 1, "a@h");
    fw_ring(&w, 1);
    fw_call(&w, 1000, PID(84), "m", "outer", 1), fw_int(&w, 1), fw_frame_end(&w);
    fw_ring(&w, ETW_META_RING);
    fw_frame(&w, ETW_NOTICE, 1001, 0), fw_atom(&w, "endless"), fw_tuple(&w, 3);
    fw_atom(&w, "m"), fw_atom(&w, "loop"), fw_int(&w, 1), fw_frame_end(&w);
    two_runs_batch(&t, &w, 2000, 0);
    two_runs_specs(&t, "m:_/1 -> return, caller"); /* in the same run */
    two_runs_batch(&t, &w, 2500, 0);
    two_runs_specs(&t, "m:_/1 -> return, stack");
    two_runs_batch(&t, &w, 3000, ETW_BATCH_LAST);
    fw_release(&w);
    w = (struct fw){0};
    fw_begin(&w);
    fw_hello(&w, 1, "a@h");
    fw_ring(&w, 1);
    fw_call(&w, 1000, PID(84), "m", "loop", 1), fw_int(&w, 1), fw_frame_end(&w);
    fw_return(&w, 2000, PID(84), "m", "loop", 1), fw_int(&w, 2), fw_frame_end(&w);
    two_runs_batch(&t, &w, 3000, ETW_BATCH_LAST);
    pt_close(&t);
    buf_cstr(&t.out[0]), buf_cstr(&t.out[1]);
    ok(!strstr(t.out[0].data, "outer/1;") && strstr(t.out[0].data, "m:loop/1 1"),
       "a call of the next run is in no call of the one before");
    ok(strstr(t.out[1].data, "return m:loop/1 = 2 1us") != NULL, "what looped before returns in the next run");
    pt_free(&t);
    fw_release(&w);
}

int main(void)
{
    struct fw w = {0};
    struct pt t = {0};
    static const char *const exprs[] = {"MyApp.Repo.get/2 -> return, caller", "ets:lookup/2 -> return"};
    const struct spec *specs[2];
    struct arena arena;
    struct buf said = {0};

    arena_init(&arena);
    for (size_t i = 0; i < 2; i++) {
        struct lang_options options = {0};
        struct spec_list list;
        struct str text = {exprs[i], strlen(exprs[i])};
        if (!lang_compile(&options, text, &arena, &list, &t.err))
            return 1;
        specs[i] = list.items[0];
        recfile_spec_add(&said, "expr", text);
    }
    everything(&w);
    pt_open(&t, (const char *const[]){"text", "json", "record", NULL}, &utc,
            (struct pipeline_options){.specs = specs, .nspecs = 2});
    pipeline_specs(t.p, 0, buf_view(&said));
    struct buf batch = {0};
    buf_str(&batch, fw_batch(&w, 200000000, 200000000, 150000000, ETW_BATCH_LAST));
    pt_feed(&t, 0, buf_view(&batch));
    is_number(t.status, PIPELINE_MORE, "the pipeline accepts the batch");
    pt_close(&t);
    is_bytes(t.out[0].data, t.out[0].len, text_want, "the text view prints every event");
    is_bytes(t.out[1].data, t.out[1].len, json_want, "the JSON view prints every event");
    const struct totals *n = pipeline_totals(t.p);
    is_number((int64_t)n->seen, 812 + 13, "the totals count seen events");
    is_number((int64_t)n->shown, 13, "the totals count shown events");
    is_number((int64_t)n->lost[ETW_LOST_RATE], 812, "the totals count lost events");
    is_number((int64_t)n->missing, 0, "the totals count no missing event");
    is_number((int64_t)n->truncated, 1, "the totals count truncated events");
    is_number((int64_t)n->incomplete, 0, "the totals count no incomplete pair");
    ok(n->complete, "the totals are complete");

    /* A replay of the recording shows the same. */
    char path[] = "/tmp/etrace-test-XXXXXX";
    struct pt again = {0};
    struct source_item item;
    int fd = mkstemp(path);
    ok(write(fd, t.out[2].data, t.out[2].len) == (ssize_t)t.out[2].len, "the recording is written");
    close(fd);
    struct source *s = recfile_open(path, &again.err);
    pt_open(&again, (const char *const[]){"text", "json", "record", NULL}, &utc, (struct pipeline_options){0});
    enum source_got got;
    while ((got = source_next(s, &item, -1, &again.err)) == SOURCE_ITEM)
        pipeline_item(again.p, &item, &again.err);
    is_number(got, SOURCE_END, "the recording is read to its end");
    source_close(s);
    unlink(path);
    pt_close(&again);
    for (size_t i = 0; i < 3; i++)
        ok(t.out[i].len == again.out[i].len && !memcmp(t.out[i].data, again.out[i].data, t.out[i].len),
           "view %zu of the recording is the same to the byte", i);
    pt_free(&again);
    pt_free(&t);
    buf_release(&batch);
    fw_release(&w);
    buf_release(&said);
    arena_release(&arena);
    hidden_for_a_moment();
    percentiles_in_range();
    very_many_calls();
    malformed_rows();
    test_old_overhead();
    two_runs();
    return tap_end();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the views that aggregate events, each with the same scene. */
#include "fold/process_list.h"
#include "pipetest.h"

static const struct spec *specs[1];

/*
 * The scene: order(1) calls price(7) and tax(8), and tax(8) fails; <0.2.0> calls only price(9); there is a message and
 * a loss.
 */
static const char *shown(const char *view, struct look look)
{
    static struct pt t;
    struct fw w = {0};

    pt_free(&t);
    fw_begin(&w);
    fw_hello(&w, 1, "shop@h1");
    fw_name(&w, 1, PID(1), "orders");
    fw_call_int(&w, 1000000, PID(1), "shop", "order", 1);
    fw_call_int(&w, 2000000, PID(1), "shop", "price", 7);
    fw_return_int(&w, 3000000, PID(1), "shop", "price", 70);
    fw_call_int(&w, 3500000, PID(2), "shop", "price", 9);
    fw_call_int(&w, 4000000, PID(1), "shop", "tax", 8);
    fw_frame(&w, ETW_EXCEPTION_FROM, 4500000, PID(1));
    fw_fun(&w, "shop", "tax", 1);
    fw_tuple(&w, 2), fw_atom(&w, "error"), fw_atom(&w, "no,tax");
    fw_frame_end(&w);
    fw_frame(&w, ETW_SEND, 4600000, PID(1));
    fw_pid(&w, PID(2)), fw_bin(&w, "say \"hi\"");
    fw_frame_end(&w);
    fw_return_int(&w, 5000000, PID(1), "shop", "order", 100);
    fw_return_int(&w, 5500000, PID(2), "shop", "price", 90);
    fw_lost(&w, 6000000, ETW_LOST_GUARD, 4);
    pt_open(&t, (const char *const[]){view, NULL}, &look, (struct pipeline_options){.specs = specs, .nspecs = 1});
    if (t.p) {
        pt_feed(&t, 0, fw_batch(&w, 10000000, 10000000, 10000000, ETW_BATCH_LAST));
        pt_close(&t);
    } else {
        buf_puts(&t.out[0], t.err.text);
    }
    fw_release(&w);
    return buf_cstr(&t.out[0]);
}

static void send_to(struct fw *w, uint64_t tick, uint64_t from, uint64_t to)
{
    fw_frame(w, ETW_SEND, tick, from);
    fw_pid(w, to), fw_int(w, 7);
    fw_frame_end(w);
}

/*
 * Feeds a call, its result and a message of each of PROCESS_LIST_MAX + 2 processes. The calls of the last two overlap,
 * so no view may show them as calls of the same process. At the end the first process sends to the last one.
 */
static void feed_processes(struct pt *t)
{
    const uint64_t last = PROCESS_LIST_MAX + 2;
    struct fw w = {0};
    uint64_t tick = 1000000;

    fw_begin(&w);
    fw_hello(&w, 1, "shop@h1");
    fw_ring(&w, 1);
    for (uint64_t i = 1; i <= last; i++) {
        fw_call_int(&w, tick++, PID(i), "shop", "order", 1);
        if (i < last - 1)
            fw_return_int(&w, tick++, PID(i), "shop", "order", 100);
        send_to(&w, tick++, PID(i), PID(i));
        if (i % 1000 == 0)
            pt_feed(t, 0, fw_batch(&w, tick, (int64_t)tick, tick, 0)), fw_ring(&w, 1);
    }
    fw_return_int(&w, tick++, PID(last - 1), "shop", "order", 100);
    fw_return_int(&w, tick++, PID(last), "shop", "order", 100);
    send_to(&w, tick++, PID(1), PID(last));
    pt_feed(t, 0, fw_batch(&w, tick, (int64_t)tick, tick, ETW_BATCH_LAST));
    fw_release(&w);
}

/* Views with a lane for each process leave out what has none, and never mix several processes in one lane. */
static void many_processes(void)
{
    const struct look look = {.time = TIME_RELATIVE};
    const char *speedscope, *perfetto, *sequence;
    struct pt t = {0};

    pt_open(&t, (const char *const[]){"speedscope", "perfetto", "sequence", NULL}, &look,
            (struct pipeline_options){.specs = specs, .nspecs = 1});
    feed_processes(&t);
    pt_close(&t);
    speedscope = buf_cstr(&t.out[0]), perfetto = buf_cstr(&t.out[1]), sequence = buf_cstr(&t.out[2]);
    ok(strstr(speedscope, "\"name\":\"\\u003c0.65536.0\\u003e\"") && !strstr(speedscope, "0.65537.0") &&
           !strstr(speedscope, "other") &&
           strstr(speedscope, "2 calls left out: only the first 65536 processes are shown"),
       "speedscope has no profile for several processes, and counts the calls that it leaves out");
    ok(strstr(perfetto, "\"name\":\"\\u003c0.65536.0\\u003e\"") && !strstr(perfetto, "0.65537.0") &&
           !strstr(perfetto, "other pro") &&
           strstr(perfetto, "6 events left out: only the first 65536 processes are shown"),
       "perfetto has no thread for several processes, and counts the events that it leaves out");
    ok(strstr(sequence, "participant p65536 as #lt;0.65536.0#gt;") && !strstr(sequence, "p65537") &&
           !strstr(sequence, "other-") &&
           strstr(sequence, "2 events left out: only the first 65536 processes are shown"),
       "a sequence has no lane for several processes, and counts the events that it leaves out");
    ok(strstr(sequence, "    p1-)other: to #lt;0.65538.0#gt;: 7\n"), "a message to a process without a lane names it");
    pt_free(&t);
}

int main(void)
{
    const struct look relative = {.time = TIME_RELATIVE}, utc = {.time = TIME_UTC}, narrow = {.width = 45};
    struct look look;

    specs[0] = pt_spec("shop", "_", -1, ACT_RETURN);

    is_text(shown("tree", relative),
            "  0.000000 <0.1.0>(orders) shop:order(1)\n"
            "  0.001000 <0.1.0>(orders)   shop:price(7) = 70 1ms\n"
            "  0.002500 <0.2.0> shop:price(9)\n"
            "  0.003000 <0.1.0>(orders)   shop:tax(8) raised error:'no,tax' 500us\n"
            "  0.003600 <0.1.0>(orders)   send to <0.2.0> <<\"say \\\"hi\\\"\">>\n"
            "  0.004000 <0.1.0>(orders) └ shop:order/1 = 100 4ms\n"
            "  0.004500 <0.2.0> └ shop:price/1 = 90 2ms\n"
            "*** 4 events lost here (guard) ***\n",
            "tree");
    is_text(shown("summary", relative),
            "calls  errors  total   mean     p50    p99    max  function\n"
            "    1       0    4ms    4ms     4ms    4ms    4ms  shop:order/1\n"
            "    2       0    3ms  1.5ms  1.02ms    2ms    2ms  shop:price/1\n"
            "    1       1  500us  500us   500us  500us  500us  shop:tax/1\n"
            "    1       0      -      -       -      -      -  send\n"
            "*** 4 events lost (guard) ***\n",
            "summary");
    is_text(shown("summary", narrow),
            "calls  errors  total    p99  function\n"
            "    1       0    4ms    4ms  shop:order/1\n"
            "    2       0    3ms    2ms  shop:price/1\n"
            "    1       1  500us  500us  shop:tax/1\n"
            "    1       0      -      -  send\n"
            "*** 4 events lost (guard) ***\n",
            "summary on a narrow terminal omits the least important columns");
    is_text(shown("hist", relative),
            "shop:order/1  1, p50 4ms, p99 4ms, max 4ms\n"
            "     2.1ms |########################################| 1\n\n"
            "shop:price/1  2, p50 1.02ms, p99 2ms, max 2ms\n"
            "     524us |########################################| 1\n"
            "    1.05ms |########################################| 1\n\n"
            "shop:tax/1  1, p50 500us, p99 500us, max 500us\n"
            "     262us |########################################| 1\n\n"
            "send  1, no duration known\n"
            "*** 4 events lost (guard) ***\n",
            "hist");
    is_text(shown("folded", relative),
            "shop:order/1 2500000\nshop:order/1;shop:price/1 1000000\nshop:order/1;shop:tax/1 500000\nshop:price/1 "
            "2000000\n"
            "# *** 4 events lost (guard) ***\n",
            "folded");
    is_text(shown("csv", utc),
            "ts,node,pid,name,type,m,f,a,args,value,class,reason,dur_us,to,from,msg,count\n"
            "2025-11-20T18:26:50.001000Z,shop@h1,<0.1.0>,orders,call,shop,order,1,1,,,,,,,,\n"
            "2025-11-20T18:26:50.002000Z,shop@h1,<0.1.0>,orders,call,shop,price,1,7,,,,,,,,\n"
            "2025-11-20T18:26:50.003000Z,shop@h1,<0.1.0>,orders,return,shop,price,1,7,70,,,1000.000,,,,\n"
            "2025-11-20T18:26:50.003500Z,shop@h1,<0.2.0>,,call,shop,price,1,9,,,,,,,,\n"
            "2025-11-20T18:26:50.004000Z,shop@h1,<0.1.0>,orders,call,shop,tax,1,8,,,,,,,,\n"
            "2025-11-20T18:26:50.004500Z,shop@h1,<0.1.0>,orders,exception,shop,tax,1,8,,error,\"'no,tax'\",500.000,,,,"
            "\n"
            "2025-11-20T18:26:50.004600Z,shop@h1,<0.1.0>,orders,send,,,,,,,,,<0.2.0>,<0.1.0>,\"<<\"\"say "
            "\\\"\"hi\\\"\"\"\">>\",\n"
            "2025-11-20T18:26:50.005000Z,shop@h1,<0.1.0>,orders,return,shop,order,1,1,100,,,4000.000,,,,\n"
            "2025-11-20T18:26:50.005500Z,shop@h1,<0.2.0>,,return,shop,price,1,9,90,,,2000.000,,,,\n"
            ",shop@h1,,,lost,,,,,,,guard,,,,,4\n",
            "csv");
    look = utc;
    look.fields = "pid,mfa,dur";
    is_text(shown("csv", look),
            "pid,mfa,dur\n<0.1.0>,shop:order/1,\n<0.1.0>,shop:price/1,\n<0.1.0>,shop:price/1,1ms\n<0.2.0>,shop:price/"
            "1,\n"
            "<0.1.0>,shop:tax/1,\n<0.1.0>,shop:tax/1,500us\n<0.1.0>,,\n<0.1.0>,shop:order/1,4ms\n<0.2.0>,shop:price/"
            "1,2ms\n*** 4 events lost here (guard) ***,,\n",
            "--fields selects columns");
    look.format = "{time} {{{name}}} {call}{value}";
    look.fields = NULL;
    ok(strstr(shown("text", look), "18:26:50.001000 {orders} shop:order(1)\n") &&
           strstr(shown("text", look), "18:26:50.003000 {orders} shop:price(7)70\n"),
       "--format formats an event");
    look.format = "{tme}";
    is_text(shown("text", look), "unknown field 'tme'", "an unknown field is an error");
    look.format = "{time";
    is_text(shown("text", look), "missing } in the format '{time'", "an open brace is an error");
    look.format = NULL;
    look.colour = true;
    ok(strstr(shown("text", look),
              "\033[36m<0.1.0>(orders)\033[0m \033[32mcall\033[0m \033[1mshop:order(1)\033[0m\n") != NULL,
       "text in colour");
    ok(strstr(shown("text", look), "\033[35mreturn\033[0m") != NULL, "a result has another colour than its call");
    ok(strstr(shown("text", look), "\033[33msend\033[0m") != NULL, "a message has a colour of its own");
    ok(!strstr(shown("text", look), "\033[34m"), "nothing is blue, which a black terminal of default colours hides");
    ok(strstr(shown("text", look), "\033[2m") != NULL && !strstr(shown("text", look), "\033[90m"),
       "the time is dim, not in the colour that some themes have as background");
    is_text(sink_by_file("a.speedscope.json", NULL) ? sink_by_file("a.speedscope.json", NULL)->name : "", "speedscope",
            "a file's extension selects its view");
    ok(sink_by_file("a.etr", NULL) == sink_by_name("record") && !sink_by_file("etr", NULL) && !sink_by_name("nothing"),
       "views are found by name and by file");
    many_processes();
    shown("record", relative);
    pt_spec_free(specs[0]);
    return tap_end();
}

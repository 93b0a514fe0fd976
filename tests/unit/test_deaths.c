/* SPDX-License-Identifier: Apache-2.0 */
/* Tests what the view of exits makes of the events of processes. Times are exact. */
#include "fold/death_choice.h"
#include "ground/utf8.h"
#include "pipetest.h"

#define US 1000u
#define MS 1000000u
#define SUP 9

static struct pt t;
static struct fw w, other;
static const struct look relative = {.time = TIME_RELATIVE};

static void begin_node(struct fw *n, const char *name)
{
    fw_release(n);
    *n = (struct fw){0};
    fw_begin(n);
    fw_hello(n, 1, name);
    fw_ring(n, 1);
}

static void begin_look(const struct look *look)
{
    pt_free(&t);
    begin_node(&w, "shop@h1");
    pt_open(&t, (const char *const[]){"died", NULL}, look, (struct pipeline_options){0});
}

static void begin(void)
{
    begin_look(&relative);
}

static const char *end(unsigned at_ms)
{
    pt_feed(&t, 0, fw_batch(&w, (uint64_t)at_ms * MS, (int64_t)at_ms * MS, (uint64_t)at_ms * MS, ETW_BATCH_LAST));
    pt_close(&t);
    return buf_cstr(&t.out[0]);
}

/* Returns the output of the view at this time, while the trace goes on. */
static const char *now(unsigned at_ms)
{
    pt_feed(&t, 0, fw_batch(&w, (uint64_t)at_ms * MS, (int64_t)at_ms * MS, (uint64_t)at_ms * MS, 0));
    fw_ring(&w, 1);
    pipeline_flush(t.p);
    return buf_cstr(&t.out[0]);
}

/* ---- events; times in microseconds ---- */

static void exits(unsigned at, unsigned p, const char *reason)
{
    fw_frame(&w, ETW_EXIT, (1000 + at) * US, PID(p));
    fw_atom(&w, reason);
    fw_frame_end(&w);
}

/* {What, [{shop, sell, 2, []}]} */
static void put_error(const char *what)
{
    fw_tuple(&w, 2), fw_atom(&w, what);
    fw_tag(&w, ETW_T_LIST);
    fw_tuple(&w, 4), fw_atom(&w, "shop"), fw_atom(&w, "sell"), fw_int(&w, 2), fw_tag(&w, ETW_T_NIL);
    fw_tag(&w, ETW_T_END);
}

static void fails(unsigned at, unsigned p, const char *what)
{
    fw_frame(&w, ETW_EXIT, (1000 + at) * US, PID(p));
    put_error(what);
    fw_frame_end(&w);
}

static void about(unsigned kind, unsigned at, unsigned p, unsigned whom)
{
    fw_frame(&w, kind, (1000 + at) * US, PID(p));
    fw_pid(&w, PID(whom));
    fw_frame_end(&w);
}

static void named(unsigned kind, unsigned at, unsigned p, const char *name)
{
    fw_frame(&w, kind, (1000 + at) * US, PID(p));
    fw_atom(&w, name);
    fw_frame_end(&w);
}

/* A gen_server of the module is spawned with proc_lib; name: it will register this name; NULL: none. */
static void spawns_named(unsigned at, unsigned p, unsigned child, const char *module, const char *name)
{
    fw_frame(&w, ETW_SPAWN, (1000 + at) * US, PID(p));
    fw_pid(&w, PID(child));
    fw_tuple(&w, 3), fw_atom(&w, "proc_lib"), fw_atom(&w, "init_p"), fw_tag(&w, ETW_T_LIST);
    fw_pid(&w, PID(p)), fw_tag(&w, ETW_T_NIL), fw_atom(&w, "gen"), fw_atom(&w, "init_it"), fw_tag(&w, ETW_T_LIST);
    fw_atom(&w, "gen_server"), fw_pid(&w, PID(p)), fw_pid(&w, PID(p));
    if (name)
        fw_tuple(&w, 2), fw_atom(&w, "local"), fw_atom(&w, name);
    fw_atom(&w, module), fw_tag(&w, ETW_T_NIL);
    fw_tag(&w, ETW_T_NIL), fw_tag(&w, ETW_T_END);
    fw_tag(&w, ETW_T_END);
    fw_frame_end(&w);
}

static void spawns(unsigned at, unsigned p, unsigned child, const char *module)
{
    spawns_named(at, p, child, module, NULL);
}

static void calls_exit(unsigned at, unsigned p, const char *reason)
{
    fw_call(&w, (1000 + at) * US, PID(p), "erlang", "exit", 1);
    fw_atom(&w, reason);
    fw_frame_end(&w);
}

static void sends_exit(unsigned at, unsigned p, unsigned to, const char *reason)
{
    fw_call(&w, (1000 + at) * US, PID(p), "erlang", "exit", 2);
    fw_pid(&w, PID(to)), fw_atom(&w, reason);
    fw_frame_end(&w);
}

static void down(unsigned at, unsigned p, unsigned whom, const char *reason)
{
    fw_frame(&w, ETW_RECEIVE, (1000 + at) * US, PID(p));
    fw_tuple(&w, 5), fw_atom(&w, "DOWN"), fw_text(&w, ETW_TEXT_REF, "#Ref<0.1.2.3>"), fw_atom(&w, "process");
    fw_pid(&w, PID(whom)), fw_atom(&w, reason);
    fw_frame_end(&w);
}

/* A child of the supervisor exits and gets a successor with its name. */
static void restarts(unsigned at, unsigned p, unsigned next, const char *name, const char *reason)
{
    calls_exit(at, p, reason);
    exits(at + 10, p, reason);
    about(ETW_GETTING_UNLINKED, at + 20, SUP, p);
    spawns(at + 30, SUP, next, "feed");
    named(ETW_REGISTER, at + 40, next, name);
}

/* ---- tests ---- */

static void test_causes(void)
{
    begin();
    calls_exit(0, 1, "bored");
    exits(10, 1, "bored");
    is_text(end(2000), "  0.000000 <0.1.0> exit bored, own exit\n", "a process exits by itself");
    begin();
    fails(0, 1, "badarg");
    is_text(end(2000), "  0.000000 <0.1.0> exit badarg, error in shop:sell/2\n", "an error has its function");
    begin();
    sends_exit(0, 2, 1, "kill");
    exits(10, 1, "killed");
    is_text(end(2000), "  0.000000 <0.1.0> exit killed, by <0.2.0>\n", "another process kills it");
    begin();
    sends_exit(0, 2, 1, "please");
    exits(10, 1, "please");
    is_text(end(2000), "  0.000000 <0.1.0> exit please, exit signal of <0.2.0>\n",
            "another process sends an exit signal");
    begin();
    sends_exit(0, 2, 1, "please");
    calls_exit(5, 1, "bored");
    exits(10, 1, "bored");
    is_text(end(2000), "  0.000000 <0.1.0> exit bored, own exit\n", "a signal with another reason is not the cause");
    begin();
    calls_exit(0, 1, "caught");
    exits(10, 1, "tcp_closed");
    is_text(end(2000), "  0.000000 <0.1.0> exit tcp_closed, cause unknown\n",
            "an exit that was caught is not the cause");
    begin();
    exits(10, 1, "killed");
    is_text(end(2000), "  0.000000 <0.1.0> exit killed, cause unknown\n", "a killer that was not seen is unknown");
}

static void test_chain(void)
{
    begin();
    about(ETW_LINK, 0, 2, 1);
    about(ETW_GETTING_LINKED, 1, 1, 2);
    about(ETW_LINK, 2, 3, 2);
    calls_exit(100, 1, "oops");
    exits(110, 1, "oops");
    exits(120, 2, "oops");
    about(ETW_GETTING_UNLINKED, 125, 4, 2);
    exits(130, 3, "oops");
    down(140, 5, 1, "oops");
    is_text(end(2000),
            "  0.000000 <0.1.0> exit oops, own exit\n"
            "  ├ link -> <0.2.0> (10us)\n"
            "  │ ├ link -> <0.3.0> (10us)\n"
            "  │ └ link -> <0.4.0> (5us), traps exits\n"
            "  └ monitor -> <0.5.0> (30us)\n",
            "links carry an exit on, a trap and a monitor end its way");
    begin();
    named(ETW_REGISTER, 0, 2, "feed");
    about(ETW_LINK, 0, 2, 1);
    about(ETW_UNLINK, 1, 2, 1);
    calls_exit(100, 1, "oops");
    exits(110, 1, "oops");
    calls_exit(115, 2, "oops");
    exits(120, 2, "oops");
    is_text(end(2000),
            "  0.000000 <0.1.0> exit oops, own exit\n"
            "  0.000010 <0.2.0>(feed) exit oops, own exit\n",
            "a link that was removed carries nothing");
    begin();
    exits(110, 1, "oops");
    exits(120, 2, "oops");
    is_text(end(2000),
            "  0.000000 <0.1.0> exit oops, cause unknown\n"
            "  └ link? -> <0.2.0> (10us)\n",
            "a link from before the trace is only a guess");
    begin();
    fails(110, 1, "badarg");
    fails(120, 2, "badarg");
    is_text(end(2000), "  0.000000 <0.1.0> exit badarg, error in shop:sell/2\n  └ link? -> <0.2.0> (10us)\n",
            "it may carry an error, too");
    begin();
    spawns(0, 7, 2, "shop");
    fails(110, 1, "badarg");
    fails(120, 2, "badarg");
    ok(!strstr(end(2000), "link?"), "the links of a process that began during the trace are known");
    begin();
    exits(110, 1, "noconnection");
    exits(120, 2, "noconnection");
    ok(!strstr(end(2000), "link?"), "links to a lost node are no guess about each other");
    begin();
    calls_exit(0, 1, "first");
    exits(10, 1, "first");
    calls_exit(700000, 2, "first");
    exits(700010, 2, "first");
    ok(!strstr(end(2000), "link"), "an exit long before has nothing to do with it");
}

/* A chain of 8000 links. If each level had its line, the indentation alone would be 64 MB. */
static void test_long_chain(void)
{
    const unsigned n = 8000;

    begin();
    for (unsigned p = 2; p <= n; p++)
        about(ETW_LINK, 0, p, p - 1);
    calls_exit(100, 1, "oops");
    for (unsigned p = 1; p <= n; p++)
        exits(110 + p, p, "oops");
    const char *text = end(4000), *deepest = strstr(text, "<0.13.0>");
    is_text(deepest ? deepest : text, "<0.13.0> (1us)\n                          └ and 7987 more\n",
            "the exits below the twelfth level are counted");
}

static void test_call(void)
{
    begin();
    calls_exit(0, 1, "oops");
    exits(10, 1, "oops");
    down(20, 2, 1, "oops");
    fw_frame(&w, ETW_EXIT, 1030 * US, PID(2));
    fw_tuple(&w, 2), fw_atom(&w, "oops"), fw_tuple(&w, 3), fw_atom(&w, "gen_server"), fw_atom(&w, "call");
    fw_tag(&w, ETW_T_LIST), fw_pid(&w, PID(1)), fw_tag(&w, ETW_T_END);
    fw_frame_end(&w);
    is_text(end(2000),
            "  0.000000 <0.1.0> exit oops, own exit\n"
            "  └ its call -> <0.2.0> (20us) exit {oops,{gen_server,call,[<0.1.0>]}}\n",
            "a process exits because the one that it called did");
}

static void test_names(void)
{
    begin();
    calls_exit(0, 1, "oops");
    exits(10, 1, "oops");
    named(ETW_UNREGISTER, 13, 1, "feed");
    is_text(end(2000), "  0.000000 <0.1.0>(feed) exit oops, own exit\n", "the name comes after the exit");
    begin();
    named(ETW_REGISTER, 0, 1, "feed");
    calls_exit(10, 1, "oops");
    exits(20, 1, "oops");
    is_text(end(2000), "  0.000000 <0.1.0>(feed) exit oops, own exit\n", "the name comes before the exit");
    begin();
    spawns(0, SUP, 1, "feed");
    fails(10, 1, "badarg");
    is_text(end(2000), "  0.000000 <0.1.0>(feed:init/1) exit badarg, error in shop:sell/2\n",
            "a process without a name has its callback module");
}

static void test_restarts(void)
{
    begin();
    restarts(0, 1, 2, "feed", "oops");
    named(ETW_UNREGISTER, 12, 1, "other"); /* an event of a process that has ended already */
    ok(strstr(end(2000), "exit oops, own exit\n  └ restarted as <0.2.0>") == NULL,
       "a process with another name is no successor");
    begin();
    named(ETW_REGISTER, 0, 1, "feed");
    restarts(10, 1, 2, "feed", "oops");
    is_text(end(2000),
            "  0.000000 <0.1.0>(feed) exit oops, own exit\n"
            "  └ restarted by <0.9.0> (30us)\n",
            "a supervisor starts a process with the same name");
    begin();
    spawns(0, SUP, 1, "feed");
    fails(10, 1, "badarg");
    about(ETW_GETTING_UNLINKED, 20, SUP, 1);
    spawns(30, SUP, 2, "feed");
    is_text(end(2000),
            "  0.000000 <0.1.0>(feed:init/1) exit badarg, error in shop:sell/2\n"
            "  └ <0.9.0> then started <0.2.0> (20us)\n",
            "without a name, a supervisor starts a process of the same module");
    begin();
    spawns(0, SUP, 1, "feed");
    fails(10, 1, "badarg");
    about(ETW_GETTING_UNLINKED, 20, SUP, 1);
    spawns_named(30, SUP, 2, "feed", "feed");
    ok(!strstr(end(2000), "then started"), "a process with a name does not replace one without");
    begin();
    named(ETW_REGISTER, 0, 1, "feed");
    for (unsigned i = 0; i < 20; i++)
        restarts(100 + i * 100000, 1 + 20 * i, 1 + 20 * (i + 1), "feed", i % 5 == 4 ? "late" : "oops");
    const char *text = end(10000);
    ok(strstr(text, "exit oops, own exit\n  └ restarted by <0.9.0> (30us)\n"),
       "the first exit of a loop is shown whole");
    ok(strstr(text, "exit late, own exit\n  └ restarted by <0.9.0> (30us)\n"), "and the first with another reason");
    ok(strstr(text, " feed: 20 exits in 1.9s, 16 x oops, 4 x late; restarted by <0.9.0>\n"),
       "the others become one line");
    is_number(strlen(text) < 500, 1, "and no other line tells them");
}

/* A tree that grows for ever is shown after a while, with what is known then. */
static void test_longest(void)
{
    begin();
    for (unsigned i = 1; i < 30; i++)
        about(ETW_LINK, i, i + 1, i);
    calls_exit(90, 1, "oops");
    for (unsigned i = 1; i < 30; i++)
        exits(100 + i * 400000, i, "oops");
    const char *text = now(6500);
    ok(strstr(text, "exit oops, own exit\n  └ link -> <0.2.0> (400ms)\n"), "a tree is shown although it still grows");
    end(20000);
}

/* A supervisor after the exit of a child. */
static void test_supervisor(void)
{
    begin();
    fails(0, 1, "badarg");
    about(ETW_LINK, 1, SUP, 2);
    about(ETW_GETTING_UNLINKED, 10, SUP, 1);
    sends_exit(20, SUP, 2, "shutdown");
    exits(30, 2, "shutdown");
    about(ETW_GETTING_UNLINKED, 35, SUP, 2);
    down(36, SUP, 2, "shutdown");
    calls_exit(40, SUP, "shutdown");
    exits(50, SUP, "shutdown");
    is_text(end(2000),
            "  0.000000 <0.1.0> exit badarg, error in shop:sell/2\n"
            "  ├ <0.9.0> -> <0.2.0> (30us) exit shutdown\n"
            "  └ link -> <0.9.0> (50us), then exit shutdown\n",
            "a supervisor stops another child and gives up");
}

static void test_normal(void)
{
    struct death_choice all = {.all = true};
    struct look look = relative;

    begin();
    for (unsigned i = 0; i < 1000; i++) {
        fw_name(&w, (1000 + i) * US, PID(1000 + i), "worker");
        exits(10 + i, 1000 + i, i % 3 ? "normal" : "shutdown");
    }
    is_text(end(2000), "every exit was normal\n1000 normal exits not shown: 1000 x worker\n",
            "normal exits are counted");
    begin();
    named(ETW_REGISTER, 0, 1, "feed");
    restarts(10, 1, 2, "feed", "normal");
    is_text(end(2000), "  0.000000 <0.1.0>(feed) exit normal, own exit\n  └ restarted by <0.9.0> (30us)\n",
            "a normal exit is shown if the process is started again");
    look.deaths = &all;
    begin_look(&look);
    exits(10, 1, "normal");
    is_text(end(2000), "  0.000000 <0.1.0> exit normal\n", "--all shows normal exits");
    begin();
    fw_frame(&w, ETW_EXIT, 1010 * US, PID(1));
    fw_tuple(&w, 3), fw_text(&w, ETW_TEXT_REF, "#Ref<0.1.2.3>"), fw_atom(&w, "return"), fw_atom(&w, "ok");
    fw_frame_end(&w);
    ok(strstr(end(2000), "every exit was normal\n"), "the answer of erpc is a normal exit");
    begin();
    is_text(end(2000), "no process has exited\n", "without any exit the view says so");
}

static void test_choice(void)
{
    bool seen[2] = {false, false};
    const struct str names[2] = {{"feed", 4}, {"<0.7.0>", 7}};
    struct death_choice some = {.names = {.items = names, .seen = seen, .count = 2}};
    struct look look = relative;

    look.deaths = &some;
    begin_look(&look);
    named(ETW_REGISTER, 0, 2, "feed");
    about(ETW_LINK, 1, 2, 1);
    calls_exit(10, 1, "oops");
    exits(20, 1, "oops");
    exits(30, 2, "oops");
    calls_exit(40, 3, "bored");
    exits(50, 3, "bored");
    is_text(end(2000), "  0.000000 <0.1.0> exit oops, own exit\n  └ link -> <0.2.0>(feed) (10us)\n",
            "a name selects the exits that took the process along");
    ok(seen[0] && !seen[1], "a name that no exit had is known");
    some = (struct death_choice){.most = 2};
    begin_look(&look);
    for (unsigned i = 0; i < 5; i++) {
        calls_exit(i, 1 + i, i % 2 ? "oops" : "late");
        exits(10 + i, 1 + i, i % 2 ? "oops" : "late");
    }
    now(3000);
    ok(t.status == PIPELINE_DONE, "a limit ends the trace after so many exits");
    end(3001);
}

static void test_live(void)
{
    begin();
    calls_exit(0, 1, "oops");
    exits(10, 1, "oops");
    is_text(now(400), "", "an exit waits for what follows from it");
    ok(pipeline_waits(t.p), "the view waits for time to pass");
    is_text(now(600), "  0.000000 <0.1.0> exit oops, own exit\n", "when nothing has followed, it is shown");
    ok(!pipeline_waits(t.p), "then the view waits no longer");
    end(700);
}

static void test_nodes(void)
{
    static const char *const want[] = {"shop@h1 <0.1.0>(feed) exit oops", "shop@h2 <0.1.0> exit oops"};
    const char *text;

    begin();
    begin_node(&other, "shop@h2");
    named(ETW_REGISTER, 0, 1, "feed");
    about(ETW_LINK, 1, 2, 1);
    calls_exit(10, 1, "oops");
    exits(20, 1, "oops");
    pt_feed(&t, 0, fw_batch(&w, 5 * (uint64_t)MS, 5 * (int64_t)MS, 5 * (uint64_t)MS, 0));
    fw_frame(&other, ETW_EXIT, 1030 * US, PID(1));
    fw_atom(&other, "oops");
    fw_frame_end(&other);
    pt_feed(&t, 1, fw_batch(&other, 5 * (uint64_t)MS, 5 * (int64_t)MS, 5 * (uint64_t)MS, ETW_BATCH_LAST));
    text = end(2000);
    ok(strstr(text, want[0]) && strstr(text, want[1]) && !strstr(text, "link"),
       "equal pids of two nodes are two processes");
}

/* Each node of a trace with the most nodes has a time of its own. The monotonic clocks of the nodes differ much. */
static void test_many_nodes(void)
{
    const uint64_t ahead = 3600 * UINT64_C(1000) * MS;
    unsigned apart = 0;

    for (unsigned node = 1; node < EVENT_NODES; node++) {
        begin();
        begin_node(&other, "shop@h2");
        other.wall_offset -= (int64_t)ahead;
        fw_frame(&other, ETW_REGISTER, ahead + 1000 * US, PID(1));
        fw_atom(&other, "feed");
        fw_frame_end(&other);
        pt_feed(&t, node, fw_batch(&other, ahead + 5 * MS, (int64_t)(ahead + 5 * MS), ahead + 5 * MS, ETW_BATCH_LAST));
        about(ETW_LINK, 1, 2, 1);
        exits(20, 1, "oops");
        exits(30, 2, "oops");
        apart += strstr(end(2000), "link") != NULL;
    }
    is_number(apart, EVENT_NODES - 1, "the clock of a node does not finish the trees of another node");
}

/* Survivors of the exit of process 1 of shop@h1, at `at` us, are on shop@h2. */
static void far_survivors(unsigned at, const char *reason)
{
    fw_frame(&other, ETW_GETTING_UNLINKED, (1000 + at) * US, PID(5));
    fw_text(&other, ETW_TEXT_PID, "<9.1.0>");
    fw_frame_end(&other);
    fw_frame(&other, ETW_RECEIVE, (1001 + at) * US, PID(6));
    fw_tuple(&other, 5), fw_atom(&other, "DOWN"), fw_text(&other, ETW_TEXT_REF, "#Ref<0.1.2.3>");
    fw_atom(&other, "process"), fw_text(&other, ETW_TEXT_PID, "<9.1.0>"), fw_atom(&other, reason);
    fw_frame_end(&other);
    fw_frame(&other, ETW_RECEIVE, (1002 + at) * US, PID(7));
    fw_tuple(&other, 5), fw_atom(&other, "DOWN"), fw_text(&other, ETW_TEXT_REF, "#Ref<0.1.2.3>");
    fw_atom(&other, "process"), fw_tuple(&other, 2), fw_atom(&other, "feed"), fw_atom(&other, "shop@h1");
    fw_atom(&other, reason);
    fw_frame_end(&other);
}

/* Clocks differ: what an exit does on another node may have an earlier time than the exit. */
static void test_clocks(void)
{
    static const char link[] = "link -> shop@h2 <0.5.0> (", monitor[] = "monitor -> shop@h2 <0.6.0> (",
                      by_name[] = "monitor -> shop@h2 <0.7.0> (";

    for (unsigned at = 0; at < 3; at++) {
        begin();
        begin_node(&other, "shop@h2");
        named(ETW_REGISTER, 0, 1, "feed");
        far_survivors(20 - 10 * at, at == 2 ? "other" : "oops");
        calls_exit(15, 1, "oops");
        exits(15, 1, "oops");
        /* The nodes are not merged here: their events are taken in the order of the batches. */
        for (unsigned i = 0; i < 2; i++)
            if ((at == 0) == (i == 0)) {
                pt_feed(&t, 0, fw_batch(&w, 5 * (uint64_t)MS, 5 * (int64_t)MS, 5 * (uint64_t)MS, 0));
                fw_ring(&w, 1);
            } else {
                pt_feed(&t, 1, fw_batch(&other, 5 * (uint64_t)MS, 5 * (int64_t)MS, 5 * (uint64_t)MS, ETW_BATCH_LAST));
            }
        const char *text = end(2000);
        ok(strstr(text, link) && !strstr(text, monitor) == (at == 2) && !strstr(text, by_name) == (at == 2),
           at == 0   ? "survivors on another node come after the exit"
           : at == 1 ? "or before it"
                     : "but not for another reason");
    }
}

/* Process 5 of shop@h2 calls exit/2 for process 1 of shop@h1. */
static void far_order(unsigned at, const char *reason)
{
    fw_call(&other, (1000 + at) * US, PID(5), "erlang", "exit", 2);
    fw_text(&other, ETW_TEXT_PID, "<9.1.0>"), fw_atom(&other, reason);
    fw_frame_end(&other);
}

/* Clocks differ: a call of exit/2 on another node may have a later time than the exit. */
static void test_order_clocks(void)
{
    for (unsigned at = 0; at < 3; at++) {
        begin();
        begin_node(&other, "shop@h2");
        far_order(10 + 10 * at, at == 2 ? "other" : "oops");
        exits(15, 1, "oops");
        for (unsigned i = 0; i < 2; i++)
            if ((at == 0) == (i == 0)) {
                pt_feed(&t, 1, fw_batch(&other, 5 * (uint64_t)MS, 5 * (int64_t)MS, 5 * (uint64_t)MS, ETW_BATCH_LAST));
            } else {
                pt_feed(&t, 0, fw_batch(&w, 5 * (uint64_t)MS, 5 * (int64_t)MS, 5 * (uint64_t)MS, 0));
                fw_ring(&w, 1);
            }
        ok(!strstr(end(2000), "exit signal of shop@h2 <0.5.0>") == (at == 2),
           at == 0   ? "a call of exit/2 on another node comes before the exit"
           : at == 1 ? "or after it"
                     : "but not with another reason");
    }
}

static void test_many(void)
{
    const char *text;

    begin();
    for (unsigned i = 0; i < LIVES_MAX + 100; i++)
        about(ETW_LINK, i, 1000 + i, 1);
    text = end(2000);
    ok(strstr(text, "*** 101 processes forgotten") || strstr(text, "*** 100 processes forgotten"),
       "the oldest of too many processes are forgotten, and counted");
    begin();
    for (unsigned i = 0; i < DEATHS_OPEN + 50; i++)
        exits(1, 1000 + i, i % 2 ? "a" : "b");
    ok(strstr(end(2000), "exits shown early: too many processes exited at once ***\n"),
       "too many exits at once are counted");
}

/* A tree that is wide does not fill the screen. */
static void test_wide(void)
{
    struct look look = relative;
    const char *text;

    look.width = 40;
    begin_look(&look);
    for (unsigned i = 0; i < 50; i++)
        about(ETW_LINK, i, 100 + i, 1);
    calls_exit(100, 1, "a_reason_that_is_too_long_for_this_terminal");
    exits(110, 1, "a_reason_that_is_too_long_for_this_terminal");
    for (unsigned i = 0; i < 50; i++)
        exits(120 + i, 100 + i, "a_reason_that_is_too_long_for_this_terminal");
    text = end(2000);
    is_number(strncmp(text, "  0.000000 <0.1.0> exit a_reason_tha…, own exit\n", 20), 0,
              "a line begins as without a terminal");
    ok(strstr(text, "  └ and 40 more\n"), "lines of equal kind are counted");
    size_t widest = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        widest = MAX(widest, utf8_width(line, strcspn(line, "\n")));
    ok(widest <= 40, "no line is wider than the terminal");
}

/* A second run of the node, an hour later: its VM has restarted, so its monotonic clock and its processes begin anew.
 */
static void test_next_run(void)
{
    begin();
    about(ETW_LINK, 0, 1, 2);
    exits(1, 1, "kaput");
    pt_feed(&t, 0, fw_batch(&w, 5 * MS, 5 * MS, 5 * MS, ETW_BATCH_LAST));
    begin_node(&w, "shop@h1");
    w.wall_offset += INT64_C(3600) * 1000 * MS + 500 * MS;
    fw_ring(&w, 1);
    for (unsigned pid = 1; pid <= 2; pid++) {
        fw_frame(&w, ETW_EXIT, 3 * MS, PID(pid));
        fw_atom(&w, pid == 1 ? "again" : "kaput");
        fw_frame_end(&w);
    }
    const char *got = end(501);
    ok(strstr(got, "kaput") && strstr(got, "again"), "a process of the next run may have the same pid");
    ok(strstr(got, "3600.501") != NULL, "the times of the next run go on");
    ok(!strstr(got, "exits in"), "exits that are an hour apart are not one group");
}

int main(void)
{
    test_next_run();
    test_causes();
    test_chain();
    test_long_chain();
    test_call();
    test_names();
    test_restarts();
    test_longest();
    test_supervisor();
    test_normal();
    test_choice();
    test_live();
    test_nodes();
    test_many_nodes();
    test_clocks();
    test_order_clocks();
    test_many();
    test_wide();
    pt_free(&t);
    fw_release(&w);
    fw_release(&other);
    return tap_end();
}

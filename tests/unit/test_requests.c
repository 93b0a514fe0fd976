/* SPDX-License-Identifier: Apache-2.0 */
/* Tests what the views of requests tell about requests without a reply. Times are exact. */
#include "events/process_name.h"
#include "fold/request_pairs.h"
#include "pipetest.h"

#define MS UINT64_C(1000000)
#define SERVER 1 /* its callers are 11, 12, ... */
#define OTHER 2  /* a server that replies */

static const struct spec *specs[1];
static struct pt t;
static struct fw w;

static void begin(const char *view, const struct look *look, struct pipeline_options o)
{
    o.specs = specs;
    o.nspecs = 1;
    pt_free(&t);
    fw_release(&w);
    w = (struct fw){0};
    fw_begin(&w);
    fw_hello(&w, 1, "shop@h1");
    fw_ring(&w, 1);
    pt_open(&t, (const char *const[]){view, NULL}, look, o);
}

/* A batch with all events until `at` milliseconds. */
static void pass(unsigned at, unsigned flags)
{
    pt_feed(&t, 0, fw_batch(&w, at * MS, (int64_t)(at * MS), at * MS, flags));
    fw_ring(&w, 1);
}

static const char *end(unsigned at)
{
    buf_clear(&t.out[0]);
    pass(at, ETW_BATCH_LAST);
    pt_close(&t);
    return buf_cstr(&t.out[0]);
}

/* Returns the text of the table while the trace runs. */
static const char *now(void)
{
    buf_clear(&t.out[0]);
    pipeline_snapshot(t.p);
    return buf_cstr(&t.out[0]);
}

static void from_caller(unsigned caller, unsigned n)
{
    char ref[32];

    snprintf(ref, sizeof(ref), "#Ref<0.1.2.%u>", n);
    fw_tuple(&w, 2), fw_pid(&w, PID(caller));
    fw_u8(&w, ETW_T_LIST), fw_atom(&w, "alias"), fw_u8(&w, ETW_T_TAIL), fw_text(&w, ETW_TEXT_REF, ref);
}

static void from(unsigned n)
{
    from_caller(n, n);
}

static void arrives_from(unsigned at, unsigned server, unsigned caller, unsigned n, const char *what)
{
    fw_frame(&w, ETW_RECEIVE, at * MS, PID(server));
    fw_tuple(&w, 3), fw_atom(&w, "$gen_call"), from_caller(caller, n), fw_atom(&w, what);
    fw_frame_end(&w);
}

/* The events of a request of the caller n. */
static void arrives(unsigned at, unsigned server, unsigned n, const char *what)
{
    arrives_from(at, server, n, n, what);
}

static void begins_in(unsigned at, unsigned server, unsigned n, const char *what, const char *module)
{
    fw_call(&w, at * MS, PID(server), "gen_server", "try_handle_call", 4);
    fw_tuple(&w, 2), fw_tag(&w, ETW_T_ELIDED), fw_atom(&w, module);
    fw_atom(&w, what), from(n), fw_tag(&w, ETW_T_ELIDED);
    fw_frame_end(&w);
}

static void begins(unsigned at, unsigned server, unsigned n, const char *what)
{
    begins_in(at, server, n, what, server == SERVER ? "stock" : "other");
}

static void leaves(unsigned at, unsigned server)
{
    fw_call(&w, at * MS, PID(server), "gen_server", "handle_common_reply", 8);
    for (unsigned i = 0; i < 8; i++)
        fw_tag(&w, ETW_T_ELIDED);
    fw_frame_end(&w);
}

static void replies(unsigned at, unsigned server, unsigned n)
{
    char ref[32];

    snprintf(ref, sizeof(ref), "#Ref<0.1.2.%u>", n);
    fw_frame(&w, ETW_SEND, at * MS, PID(server));
    fw_pid(&w, PID(n)), fw_tuple(&w, 2);
    fw_u8(&w, ETW_T_LIST), fw_atom(&w, "alias"), fw_u8(&w, ETW_T_TAIL), fw_text(&w, ETW_TEXT_REF, ref);
    fw_atom(&w, "ok");
    fw_frame_end(&w);
}

static void gives_up(unsigned at, unsigned n)
{
    fw_frame(&w, ETW_RECEIVE, at * MS, PID(n));
    fw_atom(&w, "timeout");
    fw_frame_end(&w);
}

static void notice(unsigned at, const char *what)
{
    fw_ring(&w, ETW_META_RING);
    fw_frame(&w, ETW_NOTICE, at * MS, 0);
    fw_atom(&w, what), fw_int(&w, 1);
    fw_frame_end(&w);
    fw_ring(&w, 1);
}

/* One request of 300 ms at the other server. */
static void other(void)
{
    fw_ring(&w, 2);
    arrives(10, OTHER, 51, "buy");
    begins(20, OTHER, 51, "buy");
    replies(310, OTHER, 51);
    fw_ring(&w, 1);
}

/* The callback of a request goes on, and two callers wait behind it. */
static void hang(void)
{
    arrives(100, SERVER, 11, "put");
    begins(100, SERVER, 11, "put");
    arrives(150, SERVER, 12, "get");
    arrives(350, SERVER, 13, "get");
}

static const char *table_of_both(const struct look *look)
{
    begin("requests", look, (struct pipeline_options){0});
    other(), hang();
    return end(4100);
}

static void test_order(void)
{
    is_text(table_of_both(&(struct look){0}),
            "server  request  calls  waited p50/p99  worked p50/p99  reply p99  timed out  unanswered\n"
            "stock   get          2               -               -          -          -           2\n"
            "stock   put          1       0ns / 0ns               -          -          -           1\n"
            "other   buy          1     10ms / 10ms   290ms / 290ms          -          -           0\n"
            "longest wait: 3.95s so far behind handle_call(put), at stock\n"
            "unanswered: 3 requests, the oldest for 4s: put at <0.1.0> has run for 4s\n",
            "requests without a reply cost the time until now, so a server that hangs comes first");
    is_text(table_of_both(&(struct look){.width = 45}),
            "request  calls  waited p50/p99\n"
            "get          2               -\n"
            "put          1       0ns / 0ns\n"
            "buy          1     10ms / 10ms\n"
            "longest wait: 3.95s so far behind handle_call(put), at stock\n"
            "unanswered: 3 requests, the oldest for 4s:\n"
            "  put at <0.1.0> has run for 4s\n",
            "the line about them is broken on a narrow terminal");
}

/* Returns what follows the rows of the table. */
static const char *notes(const char *text)
{
    const char *longest = strstr(text, "longest wait"), *unanswered = strstr(text, "unanswered: ");

    return longest ? longest : unanswered ? unanswered : text + strlen(text);
}

static void test_stages(void)
{
    const struct look look = {0};

    begin("requests", &look, (struct pipeline_options){0});
    begins(100, SERVER, 99, "put");
    arrives(150, SERVER, 12, "get");
    leaves(250, SERVER);
    replies(260, SERVER, 99);
    is_text(notes(end(1150)),
            "longest wait: 1s so far mostly while no callback ran\n"
            "unanswered: 1 request, the oldest for 1s: get at <0.1.0> has waited mostly while no callback ran\n",
            "a request waits although its server is idle");

    begin("requests", &look, (struct pipeline_options){0});
    arrives(100, SERVER, 11, "put");
    begins(200, SERVER, 11, "put");
    leaves(250, SERVER);
    gives_up(600, 11);
    arrives(800, SERVER, 12, "get");
    begins(800, SERVER, 12, "get");
    arrives(900, SERVER, 13, "get");
    pass(900, 0);
    is_text(notes(now()),
            "longest wait: 100ms while no callback began\n"
            "unanswered: 3 requests, the oldest for 500ms until its caller gave up: put at <0.1.0> has no reply "
            "although its callback has ended\n",
            "nobody waits for a reply after the caller has given up");
    pass(2000, 0);
    is_text(notes(now()),
            "longest wait: 1.1s so far behind handle_call(get)\n"
            "unanswered: 3 requests, the oldest for 1.2s: get at <0.1.0> has run for 1.2s\n",
            "without events, a batch makes the requests older");
    leaves(2100, SERVER);
    replies(2100, SERVER, 12);
    is_text(notes(end(2150)),
            "longest wait: 1.25s so far behind handle_call(get)\n"
            "unanswered: 2 requests, the oldest for 1.25s: get at <0.1.0> has waited behind handle_call(get)\n",
            "a request that has a reply is not open");
}

/* Requests of 20 shapes are open, which become one row while the table refreshes. */
static void test_variants(void)
{
    const struct look look = {0};
    char tag[16];

    begin("requests", &look, (struct pipeline_options){0});
    for (unsigned i = 0; i < 20; i++) {
        fw_frame(&w, ETW_RECEIVE, (100 + i) * MS, PID(SERVER));
        fw_tuple(&w, 3), fw_atom(&w, "$gen_call"), from(10 + i);
        snprintf(tag, sizeof(tag), "key%u", i);
        fw_tuple(&w, 2), fw_atom(&w, "get"), fw_tuple(&w, 2), fw_atom(&w, tag), fw_int(&w, 1);
        fw_frame_end(&w);
        pass(100 + i, 0);
        now();
    }
    ok(strstr(now(), "\n{get,_}     20 "), "open requests of shapes that become one count once");
    ok(strstr(now(), "\nunanswered: 20 requests, the oldest for 19ms: {get,_} at <0.1.0> has waited "
                     "while no callback began\n"),
       "a server without a callback during the trace may be in an earlier one");
}

/* A process is a server before its callback module is known. */
static void test_names(void)
{
    const struct look look = {.terms = TERMS_ELIXIR};

    begin("requests", &look, (struct pipeline_options){0});
    fw_name(&w, 1, PID(SERVER), "stock");
    other();
    arrives(330, SERVER, 11, "stock");
    pass(340, 0);
    ok(strstr(now(), "\nstock   :stock       1 "), "a server without a module has the name of its process");
    begins(350, SERVER, 11, "stock");
    pass(360, 0);
    ok(strstr(now(), "\n:stock  :stock       1 "), "a request, a module and a process of the same name are no text");

    begin("requests", &look, (struct pipeline_options){0});
    fw_name(&w, 1, PID(SERVER), "Elixir.Stock");
    other();
    arrives(330, SERVER, 11, "get");
    pass(340, 0);
    ok(strstr(now(), "\nStock   :get         1 "), "a name that is a module of Elixir");

    begin("requestlog", &(struct look){.terms = TERMS_JSON}, (struct pipeline_options){0});
    arrives(330, SERVER, 11, "get");
    begins_in(350, SERVER, 11, "put", "Elixir.Stock");
    ok(strstr(end(360), " -> <0.1.0> :put waited 20ms "), "a request is in the language of the server");
}

/* A message of Task.async() starts a task. NULL: its function was not captured. */
static void runs(unsigned at, unsigned n, const char *function)
{
    fw_frame(&w, ETW_RECEIVE, at * MS, PID(SERVER));
    fw_tuple(&w, 5), fw_pid(&w, PID(n)), fw_text(&w, ETW_TEXT_REF, "#Ref<0.1.2.9>"), fw_pid(&w, PID(n));
    fw_u8(&w, ETW_T_LIST), fw_u8(&w, ETW_T_END);
    fw_tuple(&w, 3), fw_atom(&w, "lists");
    if (function)
        fw_atom(&w, function), fw_string(&w, "a");
    else
        fw_tag(&w, ETW_T_ELIDED), fw_tag(&w, ETW_T_ELIDED);
    fw_frame_end(&w);
}

static void test_tasks(void)
{
    const struct look look = {0};

    begin("requests", &look, (struct pipeline_options){0});
    runs(100, 11, "max");
    ok(strstr(end(200), "\n:lists.max/1      1 "), "the function of a task");
    begin("requests", &look, (struct pipeline_options){0});
    runs(100, 11, NULL);
    ok(strstr(end(200), "\n(not captured)      1 "), "a task whose function was not captured");
}

/* --server names a callback module as either language writes it. */
static void test_servers(void)
{
    const char *const names[] = {"a stock", "'a stock'", ":\"a stock\"", "stock"};

    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        const struct str item = {names[i], strlen(names[i])};
        bool seen = false;
        struct process_names servers = {.items = &item, .seen = &seen, .count = 1};
        begin("requests", &(struct look){.servers = &servers}, (struct pipeline_options){0});
        arrives(330, SERVER, 11, "get");
        begins_in(350, SERVER, 11, "get", "a stock");
        ok(!strstr(end(360), "\nget ") == (i == 3) && seen == (i < 3), "%s", names[i]);
    }
}

static void test_uncertain(void)
{
    const struct look look = {0};
    struct pipeline_options o = {0};

    begin("requests", &look, o);
    hang();
    fw_lost(&w, 400 * MS, ETW_LOST_RING, 4);
    arrives(500, SERVER, 14, "get");
    is_text(notes(end(1500)),
            "longest wait: 1s so far\n"
            "unanswered: 1 request, the oldest for 1s: get at <0.1.0> has waited\n"
            "may have ended: 3 requests, because events were lost\n"
            "*** 4 events lost (ring) ***\n",
            "a request whose reply may be lost is not said to be open");

    begin("requestjson", &look, o);
    hang();
    fw_lost(&w, 400 * MS, ETW_LOST_RING, 4);
    arrives(500, SERVER, 14, "get");
    const char *json = end(1500);
    ok(strstr(json, "\"shape\":\"get\",\"request\":\"get\",\"answered\":false,\"may_have_ended\":true}"),
       "JSON of such a request");
    ok(strstr(json, "\"answered\":false,\"unanswered_us\":1000000}"), "JSON of an open request");
    ok(strstr(json, "\"shape\":\"get\",\"calls\":3,\"late\":0,\"unanswered\":1,\"oldest_us\":1000000,"
                    "\"may_have_ended\":2,"),
       "JSON of their row");

    begin("requests", &look, o);
    hang();
    fw_lost(&w, 400 * MS, ETW_LOST_REQUEST, 4);
    ok(strstr(end(4100), "unanswered: 3 requests, the oldest for 4s: put at <0.1.0> has run for 4s\n"),
       "requests that are left out leave the others open");
}

/* With --reattach, a node comes back whose processes have the pids of other ones. */
static void test_restart(void)
{
    const struct look look = {0};

    begin("requests", &look, (struct pipeline_options){0});
    hang();
    begins(360, OTHER, 14, "buy");
    pass(400, 0);
    pt_note(&t, 0, ETW_NOTE_DOWN, 500 * MS, "the node closed the connection");
    pt_note(&t, 0, ETW_NOTE_UP, 600 * MS, "shop@h1");
    fw_begin(&w);
    fw_hello(&w, 2, "shop@h1");
    fw_ring(&w, 1);
    gives_up(700, 12);
    leaves(710, OTHER);
    arrives(720, SERVER, 21, "sell");
    begins_in(730, SERVER, 21, "sell", "till");
    replies(740, SERVER, 21);
    leaves(740, SERVER);
    is_text(end(900),
            "server  request  calls  waited p50/p99  worked p50/p99  reply p99  timed out\n"
            "till    sell         1     10ms / 10ms     10ms / 10ms          -          -\n"
            "stock   get          2               -               -          -          -\n"
            "stock   put          1       0ns / 0ns               -          -          -\n"
            "other   buy          1               -               -          -          -\n"
            "longest wait: 10ms while no callback began, at till\n"
            "may have ended: 4 requests, because events or nodes were lost\n",
            "processes of a node that comes back are other ones");
}

/* More servers than the view keeps have open requests, and events were lost before the request to the last server. */
static void test_many_servers(void)
{
    const struct look look = {0};

    begin("requests", &look, (struct pipeline_options){0});
    for (unsigned i = 0; i < 16384; i++) {
        arrives(100, 1000 + i, 100000 + i, "get");
        if (i % 1000 == 0)
            pass(100, 0);
    }
    fw_lost(&w, 200 * MS, ETW_LOST_RING, 4);
    arrives(300, 999, 999, "get");
    const char *got = end(1500);
    ok(strstr(got, "\nunanswered: 1 request\nmay have ended: 16384 requests, because events were lost\n"),
       "the server of the oldest request is not kept");
}

/*
 * REQUEST_SERVERS servers have open requests. If each event of another server looked at all of them, this would take
 * minutes.
 */
static void test_full_servers(void)
{
    const char *got;

    for (unsigned view = 0; view < 2; view++) {
        begin(view ? "requestjson" : "requests", &(struct look){0}, (struct pipeline_options){0});
        for (unsigned i = 0; i < REQUEST_SERVERS + 100000; i++) {
            arrives(100, 1000 + i, 1000000 + i, "get");
            begins(100, 1000 + i, 1000000 + i, "get");
            if (i % 1000 == 999)
                pass(100, 0);
        }
        got = end(1500);
        ok(strstr(got, view ? "\"not_followed\":100000,"
                            : "\n*** 100000 requests to servers that were not followed: "
                              "too many were in use at once ***\n"),
           "the view tells that servers were not followed");
    }
}

/* The requests to REQUEST_SERVERS servers have replies, which their callers never receive. */
static void test_answered(void)
{
    begin("requestlog", &(struct look){.time = TIME_RELATIVE}, (struct pipeline_options){0});
    for (unsigned i = 0; i < REQUEST_SERVERS; i++) {
        fw_frame(&w, ETW_SEND, 100 * MS, PID(1000000 + i));
        fw_pid(&w, PID(1000 + i));
        fw_tuple(&w, 3), fw_atom(&w, "$gen_call"), from(1000000 + i), fw_atom(&w, "get");
        fw_frame_end(&w);
        arrives(100, 1000 + i, 1000000 + i, "get");
        begins(100, 1000 + i, 1000000 + i, "get");
        replies(100, 1000 + i, 1000000 + i);
        leaves(100, 1000 + i);
        if (i % 1000 == 999)
            pass(100, 0);
    }
    pass(150, 0);
    buf_clear(&t.out[0]);
    arrives(200, SERVER, 11, "put");
    begins(220, SERVER, 11, "put");
    replies(230, SERVER, 11);
    pass(300, 0);
    pipeline_flush(t.p);
    ok(strstr(buf_cstr(&t.out[0]), " -> <0.1.0> put waited 20ms worked 10ms "),
       "a server whose requests all have replies is not in use");
}

/* REQUEST_SERVERS processes are killed in a callback, so that nothing shows its end. */
static void test_killed(void)
{
    begin("requestlog", &(struct look){.time = TIME_RELATIVE}, (struct pipeline_options){0});
    for (unsigned i = 0; i < REQUEST_SERVERS; i++) {
        fw_call(&w, 100 * MS, PID(1000 + i), "gen_server", "try_handle_cast", 3);
        fw_tuple(&w, 2), fw_tag(&w, ETW_T_ELIDED), fw_atom(&w, "stock");
        fw_atom(&w, "put"), fw_tag(&w, ETW_T_ELIDED);
        fw_frame_end(&w);
        if (i % 1000 == 999)
            pass(100, 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        buf_clear(&t.out[0]);
        arrives(200 + i * 70000, SERVER + i, 11 + i, "put");
        begins(220 + i * 70000, SERVER + i, 11 + i, "put");
        replies(230 + i * 70000, SERVER + i, 11 + i);
        pass(300 + i * 70000, 0);
        pipeline_flush(t.p);
        ok(strstr(buf_cstr(&t.out[0]), i ? " -> <0.2.0> put waited 20ms worked 10ms " : " -> - put waited - worked - "),
           i ? "a callback that runs for long does not keep its server" : "a callback that runs keeps its server");
    }
}

/* Pids of servers, and shapes with the same tag, leave room for other servers and shapes. */
static void test_keys(void)
{
    char tag[16];
    const char *got;

    begin("requests", &(struct look){0}, (struct pipeline_options){0});
    for (unsigned i = 0; i < 2 * KEYS_MAX; i++) {
        fw_frame(&w, ETW_RECEIVE, 100 * MS, PID(1000 + i));
        fw_tuple(&w, 3), fw_atom(&w, "$gen_call"), from(1000000 + i);
        snprintf(tag, sizeof(tag), "key%u", i);
        fw_tuple(&w, 2), fw_atom(&w, "get"), fw_tuple(&w, 2), fw_atom_text(&w, tag), fw_int(&w, 1);
        fw_frame_end(&w);
        replies(100, 1000 + i, 1000000 + i);
        if (i % 100 == 99)
            pass(100, 0);
    }
    other();
    got = end(1500);
    ok(strstr(got, "\nother              buy          1 "), "a server and a shape after many others have their row");
    ok(strstr(got, "\n(other processes)  {get,_}   7936 "), "servers without a name share a row");
    ok(strstr(got, "\n<0.1255.0>         {get,_}      1 "), "the first servers without a name have their own rows");
}

/*
 * A caller has 250,000 open requests, and stops waiting for half of them. If each event looked at all requests of the
 * caller, this would take minutes.
 */
static void test_many_of_a_caller(void)
{
    begin("requests", &(struct look){0}, (struct pipeline_options){0});
    for (unsigned i = 0; i < 250000; i++) {
        arrives_from(100 + i / 1000, SERVER, 11, 100000 + i, i % 2 ? "put" : "get");
        if (i % 1000 == 999)
            pass(100 + i / 1000, 0);
    }
    for (unsigned i = 0; i < 125000; i++) {
        gives_up(400 + i / 1000, 11);
        if (i % 1000 == 999)
            pass(400 + i / 1000, 0);
    }
    arrives(600, OTHER, 11, "buy");
    gives_up(700, 11);
    is_text(end(1500),
            "server   request   calls  waited p50/p99  worked p50/p99  reply p99  timed out  unanswered\n"
            "<0.1.0>  get      125000               -               -          -      62500      125000\n"
            "<0.1.0>  put      125000               -               -          -      62500      125000\n"
            "<0.2.0>  buy           1               -               -          -          1           1\n"
            "longest wait: 1.4s so far while no callback began, at <0.1.0>\n"
            "unanswered: 250001 requests, the oldest for 1.4s: get at <0.1.0> has waited while no callback began\n",
            "a caller with very many requests stops waiting for the newest ones");
}

/* More requests are open than are kept: the oldest ones are given up, and each of them counts once. */
static void test_too_many(void)
{
    const char *got;
    char want[100];

    begin("requests", &(struct look){0}, (struct pipeline_options){0});
    for (unsigned i = 0; i < REQUESTS_OPEN + 242; i++) {
        arrives_from(100 + i / 1000, SERVER, 11, 100000 + i, "get");
        if (i % 1000 == 999)
            pass(100 + i / 1000, 0);
    }
    got = end(1500);
    snprintf(want, sizeof(want), "\nget      %u ", REQUESTS_OPEN + 242);
    ok(strstr(got, want), "all requests count");
    snprintf(want, sizeof(want), "\nunanswered: %u requests, the oldest for ", REQUESTS_OPEN);
    ok(strstr(got, want), "those that are open are unanswered");
    ok(strstr(got, "\n*** 242 requests given up: too many were open at once ***\n"), "the oldest ones are given up");
}

static void test_lines(void)
{
    const struct look look = {.time = TIME_RELATIVE};

    begin("requestlog", &look, (struct pipeline_options){0});
    hang();
    is_text(end(4100),
            "  0.000000 <0.11.0> -> <0.1.0> put waited 0ns worked - reply -, still running after 4s\n"
            "  0.050000 <0.12.0> -> <0.1.0> get waited - worked - reply -, behind handle_call(put), "
            "still waiting after 3.95s\n"
            "  0.250000 <0.13.0> -> <0.1.0> get waited - worked - reply -, behind handle_call(put), "
            "still waiting after 3.75s\n",
            "the lines of requests without a reply");
}

/* Nothing is known after a limit, a guard or the end of a window. */
static void test_over(void)
{
    const struct look look = {0};
    const char *const expected = "unanswered: 3 requests, the oldest for %s: put at <0.1.0> has run for %s\n";
    char text[128];

    begin("requests", &look, (struct pipeline_options){0});
    hang();
    notice(380, "limit");
    snprintf(text, sizeof(text), expected, "250ms", "250ms");
    ok(strstr(end(4100), text), "after the limit of a node no time passes");
    begin("requests", &look, (struct pipeline_options){0});
    hang();
    notice(400, "guard");
    snprintf(text, sizeof(text), expected, "300ms", "300ms");
    ok(strstr(end(4100), text), "after the guard of a node has stopped the trace no time passes");
    begin("requests", &look, (struct pipeline_options){.limit = 4});
    hang();
    replies(450, SERVER, 12);
    ok(strstr(end(4100), "unanswered: 3 requests, the oldest for 250ms: "),
       "after the limit of the client no time passes");
    begin("requests", &look, (struct pipeline_options){.window = {.to = {MOMENT_AFTER, 900 * (int64_t)MS}}});
    hang();
    snprintf(text, sizeof(text), expected, "900ms", "900ms");
    ok(strstr(end(4100), text), "after the end of the window no time passes");
}

int main(void)
{
    specs[0] = pt_spec("gen_server", "_", -1, 0);
    test_order();
    test_stages();
    test_variants();
    test_uncertain();
    test_restart();
    test_names();
    test_servers();
    test_tasks();
    test_many_servers();
    test_full_servers();
    test_answered();
    test_killed();
    test_keys();
    test_many_of_a_caller();
    test_too_many();
    test_lines();
    test_over();
    pt_spec_free(specs[0]);
    pt_free(&t);
    fw_release(&w);
    return tap_end();
}

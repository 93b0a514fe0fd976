/* SPDX-License-Identifier: Apache-2.0 */
/* Tests what `etrace check --for` reports of its trace: the limits of each finding, and its words. */
#include "commands/check_rules.h"

#include <stdlib.h>

#include "tap.h"

#define MB (INT64_C(1) << 20)

static struct check_trace *trace;
static struct check_seen seen;
static struct check_findings findings;

/* Begins with a node of 300 MB that was traced for ten seconds, and on which nothing happened. */
static void begin(void)
{
    free(trace);
    trace = calloc(1, sizeof(*trace));
    *trace = (struct check_trace){.on = true, .system = true, .to = 10000};
    seen = (struct check_seen){.trace = trace, .nfacts = CHECK_FACTS};
    seen.facts[CHECK_FACTS - 1].figures[CHECK_USED] = 300 * MB;
}

static struct check_event_row *add(enum check_event event, uint64_t count, int64_t most, int64_t sum)
{
    struct check_event_row *x = &trace->rows[trace->nrows++];

    *x = (struct check_event_row){event, {"<0.9.0>", "shop"}, .count = count, .most = most, .sum = sum};
    return x;
}

static void found(enum check_severity severity, enum check_kind kind, const char *text)
{
    if (!ok(findings.n == 1, "%s: one finding", text))
        return;
    struct check_finding *f = &findings.items[0];
    ok(f->severity == severity && f->kind == kind, "its severity and kind");
    is_text(buf_cstr(&f->text), text, "its text");
}

static void decide(void)
{
    struct check_rules r = {&seen, &seen.facts[0], &seen.facts[CHECK_FACTS - 1], &findings};

    check_unseen(&r);
}

static void finds(enum check_severity severity, enum check_kind kind, const char *text)
{
    decide();
    found(severity, kind, text);
    check_findings_release(&findings);
    begin();
}

static void finds_nothing(const char *name)
{
    decide();
    ok(!findings.n, "%s", name);
    check_findings_release(&findings);
    begin();
}

static void collections(void)
{
    add(CHECK_LONG_GC, 14, 310, 2100);
    finds(CHECK_WARNING, CHECK_COLLECTS,
          "<0.9.0>(shop) collected garbage for up to 310ms, 14 times, 2.1s in all in 10s");
    add(CHECK_LONG_GC, 14, 80, 990);
    finds_nothing("less than a tenth of the time is no finding");
    add(CHECK_LONG_GC, 2, 700, 1300);
    finds_nothing("two collections are no finding");
    add(CHECK_LONG_GC, 1, 1200, 1200);
    finds(CHECK_WARNING, CHECK_COLLECTS, "<0.9.0>(shop) collected garbage for 1.2s, once in 10s");
    add(CHECK_LONG_GC, 2, 5000, 5100);
    finds(CHECK_CRITICAL, CHECK_COLLECTS, "<0.9.0>(shop) collected garbage for up to 5s, 2 times, 5.1s in all in 10s");
    add(CHECK_LONG_GC, 20, 90, 1500)->several = true;
    trace->lossy = true;
    finds(CHECK_WARNING, CHECK_COLLECTS,
          "<0.9.0>(shop) and others of this name collected garbage for up to 90ms, at least 20 times, 1.5s in all in "
          "10s");
}

static void slices(void)
{
    snprintf(add(CHECK_LONG_SCHEDULE, 6, 200, 1100)->where, sizeof(trace->rows->where), "shop:price/1");
    finds(CHECK_WARNING, CHECK_SCHEDULER,
          "<0.9.0>(shop) held its scheduler for up to 200ms, 6 times, 1.1s in all in 10s; at the end it was in "
          "shop:price/1");
    add(CHECK_LONG_SCHEDULE, 6, 200, 1100);
    add(CHECK_LONG_GC, 6, 190, 1090);
    finds(CHECK_WARNING, CHECK_COLLECTS,
          "<0.9.0>(shop) collected garbage for up to 190ms, 6 times, 1.09s in all in 10s");
}

static void heaps(void)
{
    add(CHECK_LARGE_HEAP, 3, 280 * MB, 700 * MB);
    finds(CHECK_WARNING, CHECK_MEMORY, "<0.9.0>(shop) had a heap of up to 280 MB at its collections");
    seen.facts[CHECK_FACTS - 1].figures[CHECK_USED] = 1000 * MB;
    add(CHECK_LARGE_HEAP, 1, 280 * MB, 280 * MB);
    finds(CHECK_WARNING, CHECK_MEMORY, "<0.9.0>(shop) had a heap of up to 280 MB at its collections");
    seen.facts[CHECK_FACTS - 1].figures[CHECK_USED] = 4000 * MB;
    add(CHECK_LARGE_HEAP, 3, 280 * MB, 700 * MB);
    finds_nothing("a small part of the node's memory is no finding");
}

static void busy(void)
{
    static struct check_suspect s = {.pid = "<0.9.0>", .samples = {.looks = 20, .suspended = 10}};
    static struct check_suspect *suspects[] = {&s};

    snprintf(add(CHECK_BUSY_PORT, 900, 0, 0)->where, sizeof(trace->rows->where), "#Port<0.5>");
    finds_nothing("a busy port is no finding unless looks have found the process suspended");
    seen.suspects = suspects;
    seen.nsuspects = 1;
    seen.facts[1].ports[0] = (struct check_port){"#Port<0.5>", "tcp_inet", "", {"", ""}, 9};
    seen.facts[1].nports = 1;
    snprintf(add(CHECK_BUSY_PORT, 900, 0, 0)->where, sizeof(trace->rows->where), "#Port<0.5>");
    finds(CHECK_WARNING, CHECK_PORT,
          "<0.9.0>(shop) was suspended at 10 of 20 looks: the busy port #Port<0.5> (tcp_inet) suspended it 900 times "
          "in "
          "10s");
    seen.suspects = suspects;
    seen.nsuspects = 1;
    s.samples.suspended = 9;
    add(CHECK_BUSY_PORT, 900, 0, 0);
    finds_nothing("less than half of the looks are no finding");

    s.samples.suspended = 20;
    seen.suspects = suspects;
    seen.nsuspects = 1;
    snprintf(add(CHECK_BUSY_DIST_PORT, 9, 0, 0)->where, sizeof(trace->rows->where), "#Port<0.7>");
    finds(CHECK_WARNING, CHECK_CONNECTION,
          "<0.9.0>(shop) was suspended at 20 of 20 looks: the busy connection #Port<0.7> to another node suspended it "
          "9 "
          "times in 10s");
    seen.suspects = suspects;
    seen.nsuspects = 1;
    seen.facts[1].ports[0] = (struct check_port){"#Port<0.7>", "tcp_inet", "b@h", {"", ""}, 9};
    seen.facts[1].nports = 1;
    snprintf(add(CHECK_BUSY_DIST_PORT, 9, 0, 0)->where, sizeof(trace->rows->where), "#Port<0.7>");
    finds(CHECK_WARNING, CHECK_CONNECTION,
          "<0.9.0>(shop) was suspended at 20 of 20 looks: the busy connection to b@h suspended it 9 times in 10s");
}

/* Adds a finding of the looks about a queue. */
static void grows(enum check_kind kind)
{
    struct check_rules r = {&seen, &seen.facts[0], &seen.facts[CHECK_FACTS - 1], &findings};
    const struct look_process shop = {"<0.9.0>", "shop"};

    buf_puts(&check_about(&r, CHECK_WARNING, kind, &shop)->text, "has messages");
}

static struct check_inbox *receives(uint64_t most, uint64_t other, uint64_t timers)
{
    struct check_inbox *b = &trace->inboxes[trace->ninboxes++];

    *b = (struct check_inbox){.pid = "<0.9.0>", .received = most + other + timers, .by.n = 3};
    b->by.items[0] = (struct sender_count){{"<0.5.0>", "feeder"}, most, 0};
    b->by.items[1] = (struct sender_count){{"<0.6.0>", ""}, other, 0};
    b->by.items[2] = (struct sender_count){{"", "timers"}, timers, 0};
    trace->received += b->received;
    return b;
}

static void senders(void)
{
    grows(CHECK_QUEUE);
    receives(19000, 1500, 500);
    finds(CHECK_WARNING, CHECK_QUEUE, "<0.9.0>(shop) has messages; 1900 of 2100 messages/s come from <0.5.0>(feeder)");
    grows(CHECK_UNMATCHED);
    receives(600, 300, 300);
    trace->unseen = 1200;
    finds(CHECK_WARNING, CHECK_UNMATCHED,
          "<0.9.0>(shop) has messages; about 120 of 240 messages/s come from <0.5.0>(feeder), 60 from <0.6.0>, 60 from "
          "timers");
    grows(CHECK_QUEUE);
    receives(9, 1, 0);
    finds(CHECK_WARNING, CHECK_QUEUE,
          "<0.9.0>(shop) has messages; 9 of 10 messages came in 10s from <0.5.0>(feeder), 1 from <0.6.0>");
    grows(CHECK_QUEUE);
    receives(9, 9, 9)->received = 1000;
    trace->received = 1000;
    finds(CHECK_WARNING, CHECK_QUEUE,
          "<0.9.0>(shop) has messages; 100 messages/s come from at least 3 senders, and none of them sends a tenth");
    receives(19000, 1500, 500);
    finds_nothing("a queue without a finding has no senders");
}

/* Counts messages of `each` of many senders, then of two more. */
static void many_senders(void)
{
    struct sender_counts *by = calloc(1, sizeof(*by));
    struct look_process one = {"", ""}, late = {"<0.9999.0>", ""};

    for (unsigned i = 0; i < 1000; i++) {
        snprintf(one.pid, sizeof(one.pid), "<0.%u.0>", i);
        sender_counts_add(by, &one);
        if (i % 2)
            sender_counts_add(by, &late);
    }
    sender_counts_sort(by);
    uint64_t sum = 0;
    for (size_t i = 0; i < by->n; i++)
        sum += by->items[i].count;
    ok(by->n == SENDERS_MOST && by->lossy && sum == 1500, "all messages are counted, although there are many senders");
    is_text(by->items[0].process.pid, late.pid, "the sender that sends most has a row");
    ok(by->items[0].count - by->items[0].error <= 500 && by->items[0].count >= 500, "its count");
    free(by);

    grows(CHECK_QUEUE);
    receives(19000, 1500, 500)->by.lossy = true;
    finds(CHECK_WARNING, CHECK_QUEUE,
          "<0.9.0>(shop) has messages; about 1900 of 2100 messages/s come from <0.5.0>(feeder)");
}

/* Short-lived processes have an event each; then come graver events of two other ones. */
static void many_processes(void)
{
    struct look_process one = {"", ""}, grave = {"<0.9998.0>", ""}, often = {"<0.9999.0>", ""};

    for (unsigned i = 0; i < 1000; i++) {
        snprintf(one.pid, sizeof(one.pid), "<0.%u.0>", i);
        check_trace_count(trace, CHECK_LONG_GC, &one, "", 55);
        check_trace_count(trace, CHECK_BUSY_PORT, &one, "#Port<0.1>", 0);
        if (i >= 800 && i % 10 == 0)
            check_trace_count(trace, CHECK_LONG_GC, &often, "", 60);
    }
    check_trace_count(trace, CHECK_LONG_GC, &grave, "", 3000);
    decide();
    if (ok(findings.n == 3, "two findings and a note")) {
        is_text(buf_cstr(&findings.items[0].text),
                "<0.9999.0> collected garbage for up to 60ms, at least 20 times, 1.2s in all in 10s", "many events");
        is_text(buf_cstr(&findings.items[1].text), "<0.9998.0> collected garbage for 3s, at least once in 10s",
                "a grave event");
        is_text(buf_cstr(&findings.items[2].text),
                "more than 100 processes had long collections, long time slices, large heaps or busy ports: those with "
                "the "
                "fewest are unknown",
                "the note");
    }
    check_findings_release(&findings);
    begin();
}

static void is_traced(const char *pids, const char *name)
{
    char got[100] = "";

    for (size_t i = 0; i < trace->ninboxes; i++)
        if (!trace->inboxes[i].to)
            strcat(strcat(got, got[0] ? " " : ""), trace->inboxes[i].pid);
    is_text(got, pids, name);
}

/* The node refuses requests to trace. */
static void refusals(void)
{
    begin();
    trace->counts = true;
    for (unsigned i = 1; i <= 4; i++) {
        char pid[20];
        snprintf(pid, sizeof(pid), "<0.%u.0>", i);
        if (i == 3)
            trace->late = 0;
        check_trace_inbox(trace, pid);
        trace->inboxes[i - 1].received = i;
    }
    check_trace_refuse(trace, "there is no process <0.1.0> on the node");
    is_traced("<0.2.0> <0.3.0> <0.4.0>", "a process that has exited is left out alone");
    check_trace_refuse(trace, "there is no process <0.4.0> on the node");
    is_traced("<0.2.0> <0.3.0>", "so is a new one");
    check_trace_refuse(trace, "the node has no room");
    is_traced("<0.2.0>", "another reason leaves out the new ones first");
    check_trace_refuse(trace, "the node has no room");
    is_traced("", "then all");
    ok(trace->system, "then the system events are left");
    check_trace_refuse(trace, "the node has no room");
    ok(!trace->system, "until the node refuses them, too");
    is_text(trace->why, "the node has no room", "why");
    ok(trace->ninboxes == 4 && trace->inboxes[3].received == 4, "what was counted is kept");
    begin();
}

static void together(void)
{
    grows(CHECK_COLLECTS);
    add(CHECK_LONG_GC, 3, 6000, 9000);
    finds(CHECK_CRITICAL, CHECK_COLLECTS,
          "<0.9.0>(shop) has messages; it collected garbage for up to 6s, 3 times, 9s in all in 10s");
    grows(CHECK_SUSPENDED);
    snprintf(add(CHECK_BUSY_PORT, 1, 0, 0)->where, sizeof(trace->rows->where), "#Port<0.5>");
    finds(CHECK_WARNING, CHECK_SUSPENDED,
          "<0.9.0>(shop) has messages; the busy port #Port<0.5> suspended it once in 10s");
    grows(CHECK_MEMORY);
    add(CHECK_LARGE_HEAP, 3, 280 * MB, 700 * MB);
    finds(CHECK_WARNING, CHECK_MEMORY, "<0.9.0>(shop) has messages; it had a heap of up to 280 MB at its collections");
    trace->on = trace->system = false;
    snprintf(trace->why, sizeof(trace->why), "the node has OTP 27");
    finds(CHECK_NOTE, CHECK_UNKNOWN,
          "long collections, long time slices and busy ports between the looks are unknown: the node has OTP 27");
    seen.trace = NULL;
    finds_nothing("a check that only looks finds nothing of a trace");
}

/* A process that does not answer waits for a scheduler if the node has too few of them. */
static void silence(void)
{
    static struct check_suspect s = {.pid = "<0.9.0>", .samples = {.looks = 3, .silent = 3}};
    static struct check_suspect *suspects[] = {&s};

    s.look = (struct why_look){.n = 1, .cycle = -1};
    snprintf(s.look.chain[0].answer, sizeof(s.look.chain[0].answer), "silent");
    for (unsigned waiting = 0; waiting <= 300; waiting += 300) {
        begin();
        trace->on = false;
        seen.erts = "17.1";
        seen.arch = "x86_64";
        seen.suspects = suspects;
        seen.nsuspects = 1;
        for (unsigned i = 0; i < CHECK_FACTS; i++) {
            seen.facts[i].busy[0] = waiting;
            seen.facts[i].busy[1] = 2;
        }
        check_find(&seen, &findings);
        bool silent = false, overload = false;
        for (size_t i = 0; i < findings.n; i++) {
            silent |= findings.items[i].kind == CHECK_SILENT;
            overload |= findings.items[i].kind == CHECK_OVERLOAD;
        }
        ok(silent == !waiting && overload == !!waiting, "a process does not answer, and %u wait to run", waiting);
        check_findings_release(&findings);
    }
    begin();
}

/* Decides by all rules. */
static void finds_of_all(enum check_severity severity, enum check_kind kind, const char *text)
{
    check_find(&seen, &findings);
    found(severity, kind, text);
    check_findings_release(&findings);
}

/* Begins with a node on which no rule finds anything. */
static void begin_quiet(void)
{
    begin();
    trace->on = false;
    seen.erts = "17.1";
    seen.arch = "x86_64";
    seen.facts[CHECK_FACTS - 1].figures[CHECK_LEFT] = 1024 * MB;
}

static void clocks(void)
{
    static const struct {
        int64_t vm, system, here; /* us */
        const char *text;
    } cases[] = {
        {0, 3000000, 3000000, "the node's time is 3s behind the time of its system, and is being corrected"},
        {3000000, 0, 0, "the node's time is 3s ahead of the time of its system, and is being corrected"},
        {9000000, 9000000, 7000000, "the clock of the node's system is 2s ahead of the clock here"},
        {7000000, 7000000, 9000000, "the clock of the node's system is 2s behind the clock here"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        begin_quiet();
        struct check_facts *f = &seen.facts[CHECK_FACTS - 1];
        f->clock[0] = cases[i].vm;
        f->clock[1] = cases[i].system;
        f->here = cases[i].here;
        finds_of_all(CHECK_WARNING, CHECK_CLOCK, cases[i].text);
    }
    for (int64_t off = -1000000; off <= 1000000; off += 1000000) {
        begin_quiet();
        seen.facts[CHECK_FACTS - 1].clock[0] = seen.facts[CHECK_FACTS - 1].here = off;
        check_find(&seen, &findings);
        ok(!findings.n, "clocks that differ by a second at most are no finding");
        check_findings_release(&findings);
    }
    begin();
}

static void room(void)
{
    static const struct {
        int64_t left;
        enum check_severity severity;
        const char *text;
    } cases[] = {
        {33 * MB, CHECK_WARNING,
         "the node has 300 MB of memory, and the host, its container or its limits leave it 33 MB"},
        {15 * MB, CHECK_CRITICAL,
         "the node has 300 MB of memory, and the host, its container or its limits leave it 15 MB"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        begin_quiet();
        seen.facts[CHECK_FACTS - 1].figures[CHECK_LEFT] = cases[i].left;
        finds_of_all(cases[i].severity, CHECK_MEMORY, cases[i].text);
    }
    begin_quiet();
    seen.facts[CHECK_FACTS - 1].figures[CHECK_LEFT] = 34 * MB;
    check_find(&seen, &findings);
    ok(!findings.n, "a tenth is room enough");
    check_findings_release(&findings);
    begin();
}

static void is_cause(struct check_suspect *s, const char *answer, const char *status, enum check_severity severity,
                     enum check_kind kind, const char *text)
{
    s->look = (struct why_look){.n = 1, .cycle = -1};
    snprintf(s->look.chain[0].process.pid, sizeof(s->look.chain[0].process.pid), "<0.9.0>");
    snprintf(s->look.chain[0].answer, sizeof(s->look.chain[0].answer), "%s", answer);
    snprintf(s->look.chain[0].status, sizeof(s->look.chain[0].status), "%s", status);
    finds_of_all(severity, kind, text);
}

/* Processes that collect a large heap, in short and in long collections, and one that has not finished its exit. */
static void causes(void)
{
    static struct check_suspect s = {.pid = "<0.9.0>", .whole = true};
    static struct check_suspect *suspects[] = {&s};

    begin_quiet();
    seen.suspects = suspects;
    seen.nsuspects = 1;
    s.samples = (struct why_samples){.looks = 30, .silent = 30};
    is_cause(&s, "silent", "", CHECK_CRITICAL, CHECK_SILENT,
             "<0.9.0> did not answer in time: a long NIF or garbage collection keeps it busy");
    s.samples = (struct why_samples){.looks = 30, .collecting = 20, .last.memory = 200 * MB};
    is_cause(&s, "known", "garbage_collecting", CHECK_WARNING, CHECK_COLLECTS,
             "<0.9.0> collects garbage most of the time; it answers late, as a process does that collects a heap of "
             "200 MB");
    s.samples = (struct why_samples){.looks = 30};
    is_cause(&s, "known", "exiting", CHECK_WARNING, CHECK_EXITING, "<0.9.0> is exiting");
    s.samples.looks = 1;
    check_find(&seen, &findings);
    ok(!findings.n, "one look at a process that exits is no finding");
    check_findings_release(&findings);
    begin();
}

/* Fills in a look with all details that has found this chain of pids, which ends at the one with the index `cycle`. */
static void looked_at(struct check_suspect *s, int64_t cycle, const char *const *pids, unsigned n)
{
    *s = (struct check_suspect){.whole = true,
                                .look = {.n = n, .cycle = cycle, .sure = true},
                                .samples = {.looks = 1, .first.answer = "known"}};
    snprintf(s->pid, sizeof(s->pid), "%s", pids[0]);
    for (unsigned i = 0; i < n; i++) {
        snprintf(s->look.chain[i].process.pid, sizeof(s->look.chain[i].process.pid), "%s", pids[i]);
        snprintf(s->look.chain[i].answer, sizeof(s->look.chain[i].answer), "known");
        snprintf(s->look.chain[i].status, sizeof(s->look.chain[i].status), "waiting");
    }
}

/* Each suspect that has seen a deadlock knows it, and those that were not looked at in time say nothing. */
static void deadlocks(void)
{
    static struct check_suspect s[3];
    static struct check_suspect *suspects[] = {&s[0], &s[1], &s[2]};
    static const char *const low[] = {"<0.5.0>", "<0.7.0>"}, *const high[] = {"<0.7.0>", "<0.5.0>"},
                             *const waits[] = {"<0.3.0>", "<0.7.0>", "<0.5.0>"};
    static const char by_low[] = "<0.5.0> deadlock: <0.5.0> -> <0.7.0> -> <0.5.0>",
                      by_high[] = "<0.7.0> deadlock: <0.7.0> -> <0.5.0> -> <0.7.0>",
                      by_waiter[] = "<0.3.0> waits for a deadlock: <0.7.0> -> <0.5.0> -> <0.7.0>";

    begin_quiet();
    seen.suspects = suspects;
    seen.nsuspects = 3;
    looked_at(&s[0], 0, low, 2);
    looked_at(&s[1], 0, high, 2);
    looked_at(&s[2], 1, waits, 3);
    finds_of_all(CHECK_CRITICAL, CHECK_DEADLOCK, by_low);
    s[0].look.cycle = -1;
    s[0].look.n = 1;
    finds_of_all(CHECK_CRITICAL, CHECK_DEADLOCK, by_high);
    s[1].look.cycle = -1;
    s[1].look.n = 1;
    finds_of_all(CHECK_CRITICAL, CHECK_DEADLOCK, by_waiter);

    /* The suspect of the lowest pid was never looked at, and the waiting one not with all details. */
    looked_at(&s[1], 0, high, 2);
    looked_at(&s[2], -1, waits, 1);
    s[2].whole = false;
    s[0] = (struct check_suspect){.pid = "<0.5.0>", .reason = "target"};
    struct check_facts *f = &seen.facts[CHECK_FACTS - 1];
    f->nwaits = 1;
    f->waits[0] = (struct check_wait){.process = {"<0.5.0>", ""}, .ends = true, .count = 1, .nwaiting = 1};
    seen.left_out = 4;
    check_find(&seen, &findings);
    if (ok(findings.n == 2, "a deadlock and a note")) {
        is_text(buf_cstr(&findings.items[0].text), by_high, "the deadlock that was seen");
        ok(findings.items[1].severity == CHECK_NOTE && findings.items[1].kind == CHECK_UNKNOWN, "a note");
        is_text(buf_cstr(&findings.items[1].text), "6 of 7 suspects were not looked at in time",
                "how many are unknown");
    }
    check_findings_release(&findings);
    begin();
}

/* An owner that was not looked at has no state. */
static void unknown_owner(void)
{
    static struct check_suspect s[2];
    static struct check_suspect *suspects[] = {&s[0], &s[1]};
    static const char *const server[] = {"<0.5.0>"};

    begin_quiet();
    seen.suspects = suspects;
    seen.nsuspects = 2;
    looked_at(&s[0], -1, server, 1);
    s[0].look.chain[0].loop = true;
    s[1] = (struct check_suspect){.pid = "<0.6.0>", .reason = "owner"};
    struct check_facts *f = &seen.facts[CHECK_FACTS - 1];
    f->nwaits = 1;
    f->waits[0] = (struct check_wait){.process = {"<0.5.0>", ""},
                                      .count = 1,
                                      .waiting = {{"<0.4.0>", ""}},
                                      .nwaiting = 1,
                                      .owned = 1,
                                      .owners = {{"<0.6.0>", ""}},
                                      .nowners = 1};
    check_find(&seen, &findings);
    if (ok(findings.n == 2 && findings.items[0].kind == CHECK_POOL, "a pool and a note"))
        is_text(buf_cstr(&findings.items[0].text),
                "<0.5.0> is idle; 1 process has waited for it for at least 0ns: <0.4.0>; 1 other may have what they "
                "wait "
                "for: <0.6.0>",
                "the owner without a state");
    check_findings_release(&findings);
    begin();
}

/* A note tells about each part that check has not looked at. */
static void unlooked(void)
{
    static const char *const texts[] = {
        "the node did not answer in time about its ports",
        "the node's locks are unknown, because their copy might be large",
        "more than 8 processes keep others waiting: only those for which most wait were looked at",
        "more than 32 locks are held: only some of them were looked at",
        "100 processes have at least 100 messages: the 6 with the most messages were looked at",
        "13 processes ran, or waited for a scheduler: the 12 with the most reductions were looked at",
    };
    struct check_facts *f = &seen.facts[CHECK_FACTS - 1];
    struct check_rules r = {&seen, &seen.facts[0], f, &findings};

    begin_quiet();
    snprintf(f->unknown[f->nunknown++], sizeof(f->unknown[0]), "ports");
    snprintf(f->large[f->nlarge++], sizeof(f->large[0]), "locks");
    f->more[CHECK_LIST_WAITS] = f->more[CHECK_LIST_LOCKS] = true;
    seen.chosen.all[CHECK_LONG_QUEUE] = 100;
    for (int i = 0; i < 6; i++)
        check_chosen_count(&seen.chosen, "queue");
    seen.chosen.all[CHECK_MUCH_MEMORY] = seen.chosen.chosen[CHECK_MUCH_MEMORY] = 3;
    seen.chosen.all[CHECK_RUNS] = 13;
    seen.chosen.chosen[CHECK_RUNS] = 12;
    check_unlooked(&r);
    if (ok(findings.n == ARRAY_LEN(texts) && !check_count(&findings), "notes only"))
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
            is_text(buf_cstr(&findings.items[i].text), texts[i], "what was not looked at");
    is_text(buf_cstr(&findings.items[4].command.text), "etrace ps --sort queue", "the command that lists all");
    check_findings_release(&findings);
    begin();
}

static void order(void)
{
    static struct check_suspect silent = {.reason = "silent"},
                                late = {.samples = {.looks = 3, .silent = 2}, .wanted = true},
                                queue = {.reason = "queue", .samples = {.looks = 3}}, target = {.wanted = true},
                                owner = {.wanted = true, .samples = {.looks = 9, .silent = 1}};
    struct check_suspect *items[] = {&silent, &late, &queue, &target, &owner};

    check_suspects_order(items, ARRAY_LEN(items));
    ok(items[0] == &target && items[1] == &owner && items[2] == &queue && items[3] == &silent && items[4] == &late,
       "the suspects that others wait for come first, and those that do not answer last");
    ok(check_suspects_ms(33) == 4000 && check_suspects_ms(3) == 1300, "more suspects have more time, up to a limit");
}

int main(void)
{
    begin();
    order();
    deadlocks();
    unknown_owner();
    unlooked();
    collections();
    slices();
    heaps();
    busy();
    senders();
    many_senders();
    many_processes();
    refusals();
    together();
    silence();
    clocks();
    room();
    causes();
    free(trace);
    return tap_end();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests several nodes as one stream: the order by time and by clocks, how long the stream waits for which node, nodes
 * that leave and return, and the replay.
 */
#include <unistd.h>

#include "events/recfile.h"
#include "pipetest.h"

#define W INT64_C(1763663210000000000) /* wall clock of fw_begin() at monotonic time 0 */

static const struct look utc = {.time = TIME_UTC};

struct world {
    struct fw nodes[3];
    struct pt t;
    size_t seen; /* bytes of the first view that fresh() has returned */
};

static void call(struct fw *w, uint64_t tick)
{
    fw_call_int(w, tick, PID(84), "m", "f", (int64_t)tick);
}

static void feed(struct world *w, unsigned node, uint64_t tick, uint32_t flags)
{
    pt_feed(&w->t, node, fw_batch(&w->nodes[node], tick, (int64_t)tick, tick, flags));
}

static void note(struct world *w, unsigned node, uint32_t what, int64_t value, const char *text)
{
    pt_note(&w->t, node, what, value, text);
}

/* Announces a node with its first batch. */
static void attach(struct world *w, unsigned node)
{
    static const char *const names[] = {"a@h", "b@h", "c@h"};

    fw_begin(&w->nodes[node]);
    fw_hello(&w->nodes[node], 1, names[node]);
    feed(w, node, 1000, 0);
}

static void begin(struct world *w, unsigned nodes)
{
    pt_open(&w->t, (const char *const[]){"text", "record", "json", NULL}, &utc, (struct pipeline_options){0});
    for (unsigned i = 0; i < nodes; i++)
        pipeline_specs(w->t.p, i, (struct str){"", 0});
    for (unsigned i = 0; i < nodes; i++)
        attach(w, i);
}

/* Returns the output since the last call: node and argument of each call, and lines of other kinds. */
static const char *fresh(struct world *w)
{
    static char text[2000];
    size_t len = 0;

    *text = 0;
    pipeline_flush(w->t.p);
    const char *at = buf_cstr(&w->t.out[0]) + w->seen, *end = w->t.out[0].data + w->t.out[0].len;
    w->seen = w->t.out[0].len;
    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at)), *arg = memmem(at, (size_t)(line - at), "m:f(", 4);
        if (arg)
            len += (size_t)sprintf(text + len, "%c%.*s ", at[16], (int)strcspn(arg + 4, ")"), arg + 4);
        else
            len += (size_t)sprintf(text + len, "[%.*s] ", (int)(line - at), at);
        at = line + 1;
    }
    return text;
}

/* A replay of the recording prints the same text. */
static void replays(struct world *w, const char *name)
{
    struct pt again = {0};
    struct source_item item;
    struct err e = {0};
    enum source_got got = SOURCE_FAILED;

    pt_close(&w->t);
    pt_open(&again, (const char *const[]){"text", "record", "json", NULL}, &utc, (struct pipeline_options){0});
    FILE *file = tmpfile();
    fwrite(w->t.out[1].data, 1, w->t.out[1].len, file);
    fflush(file);
    int fd = dup(fileno(file));
    lseek(fd, 0, SEEK_SET);
    struct source *s = recfile_open_fd(fd, "it", &e);
    while (s && (got = source_next(s, &item, -1, &e)) == SOURCE_ITEM)
        pipeline_item(again.p, &item, &e);
    source_close(s);
    fclose(file);
    pt_close(&again);
    ok(got == SOURCE_END, "%s: the recording is read to its end", name);
    is_text(buf_cstr(&again.out[0]), buf_cstr(&w->t.out[0]), name);
    is_text(buf_cstr(&again.out[2]), buf_cstr(&w->t.out[2]), name);
    pt_free(&again);
    pt_free(&w->t);
    for (unsigned i = 0; i < 3; i++)
        fw_release(&w->nodes[i]);
}

static void by_time(void)
{
    struct world w = {0};

    begin(&w, 2);
    call(&w.nodes[0], 2000);
    call(&w.nodes[0], 5000);
    feed(&w, 0, 6000, 0);
    is_text(fresh(&w), "", "an event waits while another node may send an older one");
    ok(pipeline_waiting(w.t.p, 0) == 2 && pipeline_waiting(w.t.p, 1) == 0,
       "the pipeline holds two events of the first node");
    ok(pipeline_holds_up(w.t.p, 1) && !pipeline_holds_up(w.t.p, 0), "the second node holds up the pipeline");
    call(&w.nodes[1], 3000);
    feed(&w, 1, 4000, 0);
    is_text(fresh(&w), "a2000 b3000 ", "events come out up to the time that both nodes have reported");
    feed(&w, 1, 7000, 0);
    is_text(fresh(&w), "a5000 ", "an empty batch advances the time of its node");
    call(&w.nodes[1], 8000);
    feed(&w, 1, 9000, ETW_BATCH_LAST);
    call(&w.nodes[0], 8500);
    feed(&w, 0, 9000, 0);
    is_text(fresh(&w), "b8000 a8500 ", "no event waits for a node whose last batch has come");
    const struct totals *t = pipeline_totals(w.t.p);
    ok(t->nnodes == 2 && t->nodes[0].shown == 3 && t->nodes[1].seen == 2 && t->nodes[1].complete &&
           !t->nodes[0].complete && !t->complete,
       "the totals account for each node");
    replays(&w, "by time");
}

/* A source that keeps batches can promise that no older events follow. */
static void passed(void)
{
    struct world w = {0};

    begin(&w, 2);
    call(&w.nodes[0], 2000);
    call(&w.nodes[0], 5000);
    feed(&w, 0, 6000, 0);
    pipeline_passed(w.t.p, 1, 1500, W + 1500, &w.t.err);
    is_text(fresh(&w), "", "an event waits if another node has passed only an earlier time");
    pipeline_passed(w.t.p, 1, 2500, W + 2500, &w.t.err);
    is_text(fresh(&w), "a2000 ", "an event comes out once the other node has passed its time");
    pipeline_passed(w.t.p, 1, 1500, W + 1500, &w.t.err);
    is_text(fresh(&w), "", "an older promise has no effect");
    pipeline_passed(w.t.p, 1, INT64_MAX, INT64_MAX, &w.t.err);
    is_text(fresh(&w), "a5000 ", "events come out if the other node has ended");
    call(&w.nodes[0], 7000);
    feed(&w, 0, 8000, 0);
    is_text(fresh(&w), "a7000 ", "later events do not wait for the node that has ended");
    note(&w, 2, ETW_NOTE_CLOCK, W, "");
    call(&w.nodes[0], 8500);
    feed(&w, 0, 9000, 0);
    is_text(fresh(&w), "", "an event waits for a node of which only the clock is known");
    pipeline_passed(w.t.p, 2, 8600, W + 8600, &w.t.err);
    is_text(fresh(&w), "a8500 ", "the event comes out when that node has passed its time");
    pt_free(&w.t);
    for (unsigned i = 0; i < 2; i++)
        fw_release(&w.nodes[i]);
}

static void marks(void)
{
    struct world w = {0};

    begin(&w, 2);
    call(&w.nodes[0], 2000);
    feed(&w, 0, 2500, 0);
    call(&w.nodes[0], 3000);
    feed(&w, 0, 3500, 0);
    note(&w, 0, ETW_NOTE_MARK, 2, "");
    is_text(fresh(&w), "a2000 ", "a mark releases the batch that has waited, and no later one");
    call(&w.nodes[1], 1500);
    call(&w.nodes[1], 2800);
    feed(&w, 1, 2900, 0);
    is_text(fresh(&w), "b1500 b2800 ", "late events come out after newer ones");
    note(&w, 0, ETW_NOTE_MARK, 3, "");
    is_text(fresh(&w), "a3000 ", "the next mark releases the next batch");
    replays(&w, "marks");
}

static void clocks(void)
{
    struct world w = {0};

    begin(&w, 2);
    note(&w, 0, ETW_NOTE_CLOCK, W + 10000000, "");
    note(&w, 1, ETW_NOTE_CLOCK, W + 9000000, "");
    call(&w.nodes[0], 1000000);
    feed(&w, 0, 1100000, 0);
    call(&w.nodes[1], 1500000);
    call(&w.nodes[1], 2500000);
    feed(&w, 1, 3000000, 0);
    is_text(fresh(&w), "b1500000 a1000000 ", "events are ordered by the time of this host");
    ok(strstr(buf_cstr(&w.t.out[0]), ":50.011000 a@h "), "the text view shows the time of this host");
    note(&w, 1, ETW_NOTE_CLOCK, W + 4000000, "");
    call(&w.nodes[1], 4000000);
    feed(&w, 1, 5000000, 0);
    feed(&w, 0, 9000000, 0);
    is_text(fresh(&w), "b2500000 b4000000 ", "a clock that is set back does not change the order of a node's events");
    replays(&w, "clocks");
}

static void going_and_coming(void)
{
    struct world w = {0};

    begin(&w, 3);
    call(&w.nodes[0], 2000);
    feed(&w, 0, 9000, 0);
    call(&w.nodes[1], 3000);
    feed(&w, 1, 9000, 0);
    is_text(fresh(&w), "", "events wait for the third node");
    note(&w, 2, ETW_NOTE_DOWN, W + 2500, "the node closed the connection");
    is_text(fresh(&w), "a2000 [*** node c@h went down ***] b3000 ", "events come out when the third node is down");
    call(&w.nodes[0], 10000);
    feed(&w, 0, 20000, 0);
    feed(&w, 1, 20000, 0);
    is_text(fresh(&w), "a10000 ", "events do not wait for a node that is down");
    note(&w, 2, ETW_NOTE_UP, W + 30000, "c@h");
    w.nodes[2].seq = 0;
    fw_release(&w.nodes[2]);
    w.nodes[2] = (struct fw){0};
    fw_begin(&w.nodes[2]);
    fw_hello(&w.nodes[2], 1, "c@h");
    feed(&w, 2, 1000, 0);
    note(&w, 2, ETW_NOTE_CLOCK, W + 40000, "");
    call(&w.nodes[2], 2000);
    feed(&w, 2, 3000, 0);
    call(&w.nodes[0], 42500);
    feed(&w, 0, 50000, 0);
    feed(&w, 1, 50000, 0);
    is_text(fresh(&w), "[*** node c@h is back ***] c2000 a42500 ", "a node that is back has another clock");
    ok(strstr(buf_cstr(&w.t.out[2]), "\"type\":\"node_down\"") &&
           strstr(buf_cstr(&w.t.out[2]), "\"node\":\"c@h\",\"reason\":\"the node closed the connection"),
       "the JSON view shows the node that is down and the reason");
    replays(&w, "going and coming");
}

/* A node that joined later has a name before it has sent anything. */
static void late(void)
{
    struct world w = {0};

    begin(&w, 1);
    pipeline_specs(w.t.p, 1, (struct str){"", 0});
    note(&w, 1, ETW_NOTE_UP, W + 500, "b@h");
    call(&w.nodes[0], 2000);
    feed(&w, 0, 3000, 0);
    is_text(fresh(&w), "[*** node b@h is back ***] ", "a node has a name before its first batch");
    replays(&w, "late");
}

/* Nodes are attached in any order, and each repeats the specs. */
static void first_node_last(void)
{
    struct world w = {0};

    begin(&w, 0);
    for (unsigned node = 2; node < 3; node--) {
        pipeline_specs(w.t.p, node, (struct str){"", 0});
        attach(&w, node);
    }
    call(&w.nodes[2], 3000);
    feed(&w, 2, 4000, 0);
    feed(&w, 0, 4000, 0);
    call(&w.nodes[1], 2000);
    feed(&w, 1, 4000, 0);
    is_text(fresh(&w), "b2000 c3000 ", "events wait for a node that was attached before the first node");
    replays(&w, "the first node is attached last");
}

/* Without a name there is no line and no JSON object. */
static void never_named(void)
{
    struct world w = {0};

    begin(&w, 1);
    pipeline_specs(w.t.p, 1, (struct str){"", 0});
    note(&w, 1, ETW_NOTE_DOWN, W + 500, "the node closed the connection");
    call(&w.nodes[0], 2000);
    feed(&w, 0, 3000, 0);
    is_text(fresh(&w), "a2000 ",
            "a node that is lost before its name is known does not hold up events and prints nothing");
    replays(&w, "never named");
}

static void malformed(void)
{
    struct world w = {0};

    begin(&w, 2);
    note(&w, 300, ETW_NOTE_MARK, 1, "");
    ok(w.t.status == PIPELINE_FAILED && strstr(w.t.err.text, "out of range"), "a note of an invalid node fails");
    pt_close(&w.t);
    pt_free(&w.t);
    for (unsigned i = 0; i < 2; i++)
        fw_release(&w.nodes[i]);
    w = (struct world){0};
    begin(&w, 2);
    w.t.status = pipeline_note(w.t.p, 0, (struct str){"short", 5}, &w.t.err);
    ok(w.t.status == PIPELINE_FAILED && strstr(w.t.err.text, "too short"), "a truncated note fails");
    w.t.err = (struct err){0};
    feed(&w, 1, 2000, 0);
    ok(w.t.status == PIPELINE_FAILED && strstr(w.t.err.text, "too short"), "the failure remains after later input");
    pt_close(&w.t);
    pt_free(&w.t);
    for (unsigned i = 0; i < 2; i++)
        fw_release(&w.nodes[i]);
}

int main(void)
{
    by_time();
    passed();
    marks();
    clocks();
    going_and_coming();
    late();
    first_node_last();
    never_named();
    malformed();
    return tap_end();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the scrollback: a reader gets what the writer put in, or the newest part of it. */
#include <stdlib.h>
#include <unistd.h>

#include "events/recfile.h"
#include "events/scroll.h"
#include "lang/lang.h"
#include "pipetest.h"

#define BATCHES 400
#define CALLS 50

static const struct look utc = {.time = TIME_UTC};
static const char *const views[] = {"text", "record", NULL};

/* A batch of calls with results, and a loss. Only the first batch defines the names of processes and atoms. */
static struct str batch_of(struct fw *w, int n, int last)
{
    uint64_t base = (uint64_t)n * 1000000;

    if (!n) {
        fw_begin(w);
        fw_hello(w, 10, "shop@h1");
        fw_name(w, 10, PID(84), "cart");
        fw_name(w, 10, PID(85), "till");
    }
    fw_ring(w, 1);
    for (int i = 0; i < CALLS; i++) {
        uint64_t tick = base + 1000 + (uint64_t)i * 1000;
        fw_call(w, tick, PID(84), "shop", i % 2 ? "take" : "put", 2);
        fw_atom(w, i % 3 ? "apple" : "pear");
        fw_pid(w, PID(85));
        fw_frame_end(w);
        fw_return(w, tick + 500, PID(84), "shop", i % 2 ? "take" : "put", 2);
        fw_int(w, n * CALLS + i);
        fw_frame_end(w);
    }
    if (n % 10 == 9)
        fw_lost(w, base + 900000, ETW_LOST_RATE, 7);
    return fw_batch(w, base + 990000, (int64_t)base + 990000, base + 990000, n == last ? ETW_BATCH_LAST : 0);
}

static struct str batch(struct fw *w, int n)
{
    return batch_of(w, n, -1);
}

static struct str last_batch(struct fw *w, int n)
{
    return batch_of(w, n, n);
}

static void mark(struct fw *w, uint64_t tick, int64_t n)
{
    fw_ring(w, ETW_META_RING);
    fw_frame(w, ETW_NOTICE, tick, 0);
    fw_atom_text(w, "armed");
    fw_int(w, n);
    fw_frame_end(w);
}

static enum source_got play(struct scroll *s, struct pt *t)
{
    struct source *reader = scroll_read(s, false);
    struct source_item item;
    enum source_got got;

    while ((got = source_next(reader, &item, 0, &t->err)) == SOURCE_ITEM)
        t->status = pipeline_item(t->p, &item, &t->err);
    source_close(reader);
    pt_close(t);
    return got;
}

static bool complete(struct scroll *s)
{
    struct pt t = {0};

    pt_open(&t, views, &utc, (struct pipeline_options){0});
    play(s, &t);
    bool ret = pipeline_totals(t.p)->complete;
    pt_free(&t);
    return ret;
}

static size_t lines(const struct buf *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->len; i++)
        n += b->data[i] == '\n';
    return n;
}

static bool ends_alike(const struct buf *part, const struct buf *all)
{
    return part->len <= all->len && !memcmp(part->data, all->data + all->len - part->len, part->len);
}

static uint64_t known(const struct totals *n)
{
    uint64_t sum = n->shown + n->filtered + n->missing;

    for (size_t i = 0; i < ETW_LOSSES; i++)
        sum += n->lost[i];
    return sum;
}

static void note(struct scroll *s, uint32_t what, int64_t value)
{
    const struct etw_note n = {.what = what, .value = value};

    scroll_note(s, 0, (struct str){(const char *)&n, sizeof(n)});
}

/* After a loss on another thread a result gets no duration, as in a live trace. */
static void doubts(void)
{
    struct scroll *s = scroll_new((size_t)256 << 10);
    struct fw w = {0};
    struct pt t = {0};
    struct err e;

    fw_begin(&w);
    fw_hello(&w, 500, "shop@h1");
    for (int i = 0; i < 2; i++) {
        fw_ring(&w, 1);
        fw_call(&w, 1000 + 2000 * (uint64_t)i, PID(84), "m", "f", 0);
        fw_frame_end(&w);
        if (i)
            fw_lost(&w, 5000, ETW_LOST_RING, 1);
        fw_ring(&w, 2);
        fw_return(&w, 2000 + 2000 * (uint64_t)i, PID(84), "m", "f", 0);
        fw_int(&w, i);
        fw_frame_end(&w);
    }
    scroll_batch(s, 0, fw_batch(&w, 1000000, 1000000, 1000000, ETW_BATCH_LAST), &e);
    const struct spec *spec = pt_spec("m", "_", 0, ACT_RETURN);
    pt_open(&t, (const char *const[]){"text", NULL}, &(struct look){.time = TIME_RELATIVE},
            (struct pipeline_options){.specs = &spec, .nspecs = 1});
    play(s, &t);
    buf_cstr(&t.out[0]);
    ok(strstr(t.out[0].data, "return m:f/0 = 0 1us\n") && strstr(t.out[0].data, "return m:f/0 = 1\n"),
       "only a pair without a possible loss has a duration");
    pt_free(&t);
    pt_spec_free(spec);
    fw_release(&w);
    scroll_free(s);
}

static void notice(struct fw *w, uint64_t tick, const char *name, int64_t from)
{
    fw_ring(w, ETW_META_RING);
    fw_frame(w, ETW_NOTICE, tick, 0);
    fw_atom_text(w, name);
    fw_tuple(w, 2);
    fw_int(w, from);
    fw_int(w, 7);
    fw_frame_end(w);
}

static void snapshot_call(struct fw *w, uint64_t tick, const char *name)
{
    fw_ring(w, 1);
    fw_call(w, tick, PID(84), "shop", name, 0);
    fw_frame_end(w);
}

/*
 * A flight recorder: the notice of a snapshot comes before its events, which are older. Events that it overwrites after
 * the last snapshot are counted at its end.
 */
static void recorders(void)
{
    struct scroll *s = scroll_new((size_t)256 << 10);
    struct scroll_snapshots now;
    struct scroll_counts counts;
    struct fw w = {0};
    struct pt t = {0};
    struct err e;

    scroll_of_recorders(s, SCROLL_RECORDERS);
    fw_begin(&w);
    fw_hello(&w, 500, "shop@h1");
    ok(scroll_records(s, 0), "a node that records sends no snapshot at first");
    snapshot_call(&w, 1000, "first");
    notice(&w, 5000, "snapshot", 0);
    scroll_batch(s, 0, fw_batch(&w, 5000, 5000, 5000, 0), &e);
    scroll_snapshots(s, &now);
    ok(now.going && now.begun == 1 && !scroll_records(s, 0), "the snapshot has begun");
    snapshot_call(&w, 6000, "second");
    notice(&w, 7000, "snapshot_end", 0);
    scroll_batch(s, 0, fw_batch(&w, 7000, 7000, 6500, 0), &e);
    scroll_snapshots(s, &now);
    ok(!now.going && now.begun == 1 && scroll_records(s, 0), "the snapshot has ended");
    snapshot_call(&w, 8000, "third");
    notice(&w, 9000, "snapshot_none", 9000);
    scroll_batch(s, 0, fw_batch(&w, 9000, 9000, 9000, ETW_BATCH_LAST), &e);
    pt_open(&t, (const char *const[]){"text", NULL}, &(struct look){.time = TIME_RELATIVE},
            (struct pipeline_options){0});
    play(s, &t);
    buf_cstr(&t.out[0]);
    const char *begins = strstr(t.out[0].data, "a snapshot of"), *first = strstr(t.out[0].data, "shop:first()");
    ok(begins && first && begins < first && strstr(first, "shop:second()"),
       "the notice comes before the events of the snapshot");
    ok(!strstr(t.out[0].data, "shop:third"), "events after the last snapshot are not shown");
    scroll_counts(s, &counts);
    is_number((int64_t)counts.overwritten, 1, "they are counted as overwritten");
    const struct totals *n = pipeline_totals(t.p);
    ok(n->seen == 3 && n->shown == 2 && n->lost[ETW_LOST_OVERWRITTEN] == 1 && known(n) == 3,
       "the totals of a reader add up");
    pt_free(&t);
    fw_release(&w);
    scroll_free(s);
}

/*
 * A reader gets notes in order. A new reader gets the clock first. An old reader learns how many events were dropped
 * before it read them.
 */
static void notes(void)
{
    struct scroll *s = scroll_new((size_t)256 << 10);
    struct source *early = scroll_read(s, false), *late;
    struct fw w = {0};
    struct source_item item;
    struct err e;

    note(s, ETW_NOTE_CLOCK, 5);
    scroll_note(s, 0, STR("short"));
    ok(scroll_batch(s, 0, batch(&w, 0), &e) && scroll_ahead(early) > 0, "the reader has batches ahead");
    ok(source_next(early, &item, 0, &e) == SOURCE_ITEM && item.type == SOURCE_NOTE &&
           item.bytes.len == sizeof(struct etw_note),
       "the note comes first");
    ok(source_next(early, &item, 0, &e) == SOURCE_ITEM && item.type == SOURCE_BATCH, "the batch comes after the note");
    late = scroll_read(s, true);
    is_number((int64_t)scroll_ahead(late), 0, "a reader that begins at the end has nothing ahead");
    for (int n = 1; n < BATCHES; n++)
        scroll_batch(s, 0, batch(&w, n), &e);
    ok(source_next(late, &item, 0, &e) == SOURCE_ITEM && item.type == SOURCE_NOTE,
       "the later reader gets the clock first");
    while (source_next(early, &item, 0, &e) == SOURCE_ITEM)
        ;
    is_number((int64_t)scroll_ahead(early), 0, "the early reader has read everything");
    while (source_next(late, &item, 0, &e) == SOURCE_ITEM)
        ;
    ok(scroll_missed(early) > 0 && !scroll_missed(late), "only the early reader missed dropped events");
    note(s, ETW_NOTE_DOWN, 6);
    ok(source_next(late, &item, 0, &e) == SOURCE_ITEM && item.type == SOURCE_NOTE,
       "a reader gets a note of a lost node at once");
    ok(!scroll_batch(s, UINT16_MAX + 1u, STR(""), &e) && e.text[0], "a batch of an invalid node is refused");
    source_close(early);
    source_close(late);
    scroll_free(s);
    fw_release(&w);
}

/* A call on thread 2 is newer than what thread 1 has sent so far, so it waits. Then the node is lost, or the trace
 * ends. */
static void held_back(void)
{
    for (int lost = 0; lost < 2; lost++) {
        struct scroll *s = scroll_new((size_t)256 << 10);
        struct source *reader = scroll_read(s, false);
        struct scroll_counts c;
        struct fw w = {0};
        struct source_item item;
        struct err e;

        fw_begin(&w);
        fw_hello(&w, 500, "shop@h1");
        fw_ring(&w, 1);
        fw_call(&w, 1000, PID(84), "m", "f", 0);
        fw_frame_end(&w);
        fw_ring(&w, 2);
        fw_call(&w, 3000, PID(85), "m", "f", 0);
        fw_frame_end(&w);
        ok(scroll_batch(s, 0, fw_batch(&w, 4000, 4000, 2000, 0), &e), "the batch is taken");
        scroll_counts(s, &c);
        is_number((int64_t)c.events, 1, "the newer call waits");
        if (lost)
            note(s, ETW_NOTE_DOWN, 6);
        else
            scroll_end_runs(s);
        scroll_counts(s, &c);
        is_number((int64_t)c.events, 2, lost ? "it is there when the node is lost" : "it is there when the trace ends");
        while (source_next(reader, &item, 0, &e) == SOURCE_ITEM && item.type == SOURCE_BATCH)
            ;
        ok(!lost || item.type == SOURCE_NOTE, "the note comes after the events");
        source_close(reader);
        scroll_free(s);
        fw_release(&w);
    }
}

/* Batches that a recorder passes over count as overwritten, and the others are a complete snapshot. */
static void keeps(void)
{
    struct scroll *s = scroll_new((size_t)64 << 20);
    struct source *reader = scroll_read(s, false);
    struct fw w = {0};
    struct pt t = {0};
    struct source_item item;
    struct err e;
    bool given = false;

    scroll_act_as_recorder(reader);
    pt_open(&t, views, &utc, (struct pipeline_options){0});
    for (int n = 0; n < 40; n++)
        scroll_batch(s, 0, n == 39 ? last_batch(&w, n) : batch(&w, n), &e);
    while (scroll_place(reader) < 20)
        given |= scroll_overwrite_oldest(reader, &item);
    ok(!given, "batches that are passed over need not be passed on");
    scroll_begin_snapshot(reader);
    for (int i = 0; source_next(reader, &item, 0, &e) == SOURCE_ITEM; i++) {
        pipeline_item(t.p, &item, &e);
        if (i == 30)
            scroll_end_snapshot(reader);
    }
    pt_close(&t);
    const struct totals *n = pipeline_totals(t.p);
    is_number((int64_t)n->seen, (int64_t)known(n), "every event is shown or counted");
    is_number((int64_t)n->missing, 0, "none is missing");
    is_number((int64_t)n->lost[ETW_LOST_OVERWRITTEN], 20 * 2 * CALLS,
              "events of batches that were passed over are overwritten");
    is_number((int64_t)n->shown, 20 * 2 * CALLS, "the others are shown");
    is_number((int64_t)n->lost[ETW_LOST_RATE], 4 * 7, "losses of batches that were passed over stay losses");
    ok(n->complete, "the node's end was passed on");
    buf_cstr(&t.out[0]);
    ok(strstr(t.out[0].data, "*** 2000 events before this were overwritten ***"), "the snapshot says what it lacks");
    ok(strstr(t.out[0].data, "(cart)"), "it has the names that overwritten events defined");
    pt_free(&t);
    source_close(reader);
    scroll_free(s);
    fw_release(&w);
}

/* A recorder gives the counts of a node before the node begins anew, even if it has given none of its events. */
static void keeps_anew(void)
{
    struct scroll *s = scroll_new((size_t)64 << 20);
    struct source *reader = scroll_read(s, false);
    struct fw w = {0};
    struct pt t = {0};
    struct source_item item;
    struct err e;

    scroll_act_as_recorder(reader);
    pt_open(&t, views, &utc, (struct pipeline_options){0});
    for (int run = 0; run < 2; run++)
        for (int n = 0; n < 5; n++)
            scroll_batch(s, 0, n == 4 && run ? last_batch(&w, n) : batch(&w, n), &e);
    scroll_begin_snapshot(reader);
    source_next(reader, &item, 0, &e);
    pipeline_item(t.p, &item, &e); /* the greeting */
    while (scroll_place(reader) < scroll_end(s))
        if (scroll_overwrite_oldest(reader, &item))
            pipeline_item(t.p, &item, &e);
    pt_close(&t);
    const struct totals *n = pipeline_totals(t.p);
    is_number((int64_t)n->lost[ETW_LOST_OVERWRITTEN], 2 * 5 * 2 * CALLS, "both runs of the node are overwritten");
    is_number((int64_t)n->seen, (int64_t)known(n), "and counted");
    pt_free(&t);
    source_close(reader);
    scroll_free(s);
    fw_release(&w);
}

int main(void)
{
    struct fw w = {0};
    struct pt direct = {0}, whole = {0}, part = {0}, again = {0};
    struct scroll *all = scroll_new((size_t)64 << 20), *some = scroll_new((size_t)256 << 10);
    struct scroll_counts counts;
    struct buf said = {0};
    struct err e;
    bool good = true;

    recfile_spec_add(&said, "expr", STR("shop:_ -> return"));
    pt_open(&direct, views, &utc, (struct pipeline_options){0});
    pipeline_item(direct.p, &(struct source_item){SOURCE_SPECS, 0, buf_view(&said), 0}, &e);
    scroll_specs(all, 1, buf_view(&said));
    scroll_specs(some, 1, buf_view(&said));
    for (int n = 0; n < BATCHES; n++) {
        if (n == 0)
            mark(&w, 0, 1000); /* no request has this mark */
        if (n == 1)
            mark(&w, 0, 1); /* comes in a later batch; the request applies to events from its tick on */
        struct str b = batch(&w, n);
        pt_feed(&direct, 0, b);
        good = good && scroll_batch(all, 0, b, &e) && scroll_batch(some, 0, b, &e);
    }
    ok(good, "the scrollbacks accept every batch");
    pt_close(&direct);

    pt_open(&whole, views, &utc, (struct pipeline_options){0});
    is_number(play(all, &whole), SOURCE_NOTHING, "a reader reads to the end of the scrollback");
    is_number((int64_t)lines(&whole.out[0]), (int64_t)lines(&direct.out[0]),
              "the scrollback shows as many lines as the direct pipeline");
    /* The specs of the first batch are missing, so its calls have no durations.
     * The text after that batch is the same. */
    const char *first = strstr(buf_cstr(&direct.out[0]), "= 50 ");
    const char *same = strstr(buf_cstr(&whole.out[0]), "= 50 ");
    ok(first && same && !strcmp(first, same), "the text after the first batch is the same");
    const struct totals *n = pipeline_totals(whole.p);
    is_number((int64_t)n->seen, (int64_t)pipeline_totals(direct.p)->seen, "as many events were seen");
    is_number((int64_t)n->lost[ETW_LOST_RATE], 7 * BATCHES / 10, "as many events were lost");
    is_number((int64_t)n->missing, 0, "no event is missing");

    scroll_counts(some, &counts);
    ok(counts.dropped > 0 && counts.events > 0 && counts.bytes <= 256 << 10,
       "a small scrollback drops the oldest events");
    is_number((int64_t)(counts.dropped + counts.events), 2 * BATCHES * CALLS,
              "a small scrollback counts the events that it dropped");
    pt_open(&part, views, &utc, (struct pipeline_options){0});
    is_number(play(some, &part), SOURCE_NOTHING, "the small scrollback is read");
    ok(part.out[0].len && ends_alike(&part.out[0], &whole.out[0]), "the small scrollback has the end of the text");
    n = pipeline_totals(part.p);
    is_number((int64_t)n->shown, (int64_t)counts.events, "every remaining event is shown");
    is_number((int64_t)n->missing, 0, "no remaining event is missing");
    is_number((int64_t)n->seen, (int64_t)known(n), "the totals of the small scrollback add up");

    /* A recording of the scrollback shows the same as the scrollback. */
    char path[] = "/tmp/etrace-test-XXXXXX";
    struct source_item item;
    int fd = mkstemp(path);
    ok(write(fd, part.out[1].data, part.out[1].len) == (ssize_t)part.out[1].len, "the recording is written");
    struct source *s = recfile_open(path, &e);
    unlink(path);
    close(fd);
    pt_open(&again, views, &utc, (struct pipeline_options){0});
    while (s && source_next(s, &item, -1, &e) == SOURCE_ITEM)
        pipeline_item(again.p, &item, &e);
    source_close(s);
    pt_close(&again);
    is_bytes(again.out[0].data, again.out[0].len, buf_cstr(&part.out[0]),
             "the recording of the scrollback shows the same text");

    /* The node has restarted, with another clock. */
    struct fw other = {0};
    struct str b = batch(&other, 0);
    ok(scroll_batch(some, 0, b, &e), "the scrollback accepts a batch of the restarted node");
    struct pt last = {0};
    pt_open(&last, views, &utc, (struct pipeline_options){0});
    play(some, &last);
    ok(last.status != PIPELINE_FAILED && strstr(buf_cstr(&last.out[0]), "= 19999 ") && strstr(last.out[0].data, "= 49"),
       "events from before and after the restart are shown");
    n = pipeline_totals(last.p);
    is_number((int64_t)n->seen, (int64_t)known(n), "the totals add up after the restart");

    /* The last batch of a node completes its account. If the node is traced again, the account is open again. */
    ok(!n->complete, "the totals are incomplete while more events may come");
    b = fw_batch(&w, 1000000000, 1000000000, 1000000000, ETW_BATCH_LAST);
    ok(scroll_batch(all, 0, b, &e) && complete(all), "the last batch of a node completes the totals");
    struct fw third = {0};
    ok(scroll_batch(all, 0, batch(&third, 0), &e) && !complete(all),
       "a batch of the restarted node makes the totals incomplete");
    ok(scroll_batch(all, 0, fw_batch(&third, 2000000, 2000000, 2000000, ETW_BATCH_LAST), &e) && complete(all),
       "the last batch of the restarted node completes the totals again");

    struct source *behind = scroll_read(some, false);
    uint64_t end = scroll_end(some);
    ok(scroll_place(behind) < end && scroll_ahead(behind) > 0, "a new reader has events ahead");
    scroll_clear(some, end);
    scroll_counts(some, &counts);
    is_number((int64_t)counts.events, 0, "a cleared scrollback has no events");
    is_number((int64_t)scroll_ahead(behind), 0, "the reader has nothing ahead after the clear");
    ok(scroll_place(behind) == end, "the reader is at the place of the clear");
    source_close(behind);

    notes();
    held_back();
    keeps();
    keeps_anew();
    doubts();
    recorders();

    pt_free(&direct);
    pt_free(&whole);
    pt_free(&part);
    pt_free(&again);
    pt_free(&last);
    scroll_free(all);
    scroll_free(some);
    fw_release(&w);
    fw_release(&other);
    fw_release(&third);
    buf_release(&said);
    return tap_end();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the merge of rings by time: held-back frames, losses, counts, and malformed batches. */
#include "pipetest.h"

#include "events/merge.h"

struct m {
    struct funs funs;
    struct merge *merge;
    struct buf got; /* "pid@mono " for each event */
    struct err e;
    enum merge_got last;
};

static void m_open(struct m *m)
{
    funs_init(&m->funs);
    m->merge = merge_new(0, &m->funs);
}

static void m_close(struct m *m)
{
    merge_free(m->merge);
    funs_release(&m->funs);
    buf_release(&m->got);
    memset(m, 0, sizeof(*m));
}

static void take(struct m *m)
{
    struct event e;

    buf_clear(&m->got);
    while ((m->last = merge_next(m->merge, &e, &m->e)) == MERGE_EVENT) {
        if (e.kind == ETW_LOST)
            buf_printf(&m->got, "lost%llu@%lld ", (unsigned long long)(e.lost[ETW_LOST_RING] + e.lost[ETW_LOST_RATE]),
                       (long long)e.mono_ns);
        else
            buf_printf(&m->got, "%s%.*s@%lld ", e.kind == ETW_NOTICE ? "notice" : "", (int)e.who->text_len - 6,
                       e.who->text + 3, (long long)e.mono_ns);
    }
    buf_cstr(&m->got);
}

static bool feed(struct m *m, struct str batch)
{
    char *copy = malloc(batch.len + !batch.len);

    memcpy(copy, batch.at, batch.len);
    bool good = merge_batch(m->merge, (struct str){copy, batch.len}, &m->e);
    if (good)
        take(m);
    free(copy);
    return good;
}

static void call(struct fw *w, uint32_t ring, uint64_t tick, uint64_t pid)
{
    fw_ring(w, ring);
    fw_call(w, tick, pid, "m", "f", 1);
    fw_atom(w, "x");
    fw_frame_end(w);
}

static void test_order(void)
{
    struct fw w = {0};
    struct m m = {0};

    fw_begin(&w);
    m_open(&m);
    call(&w, 1, 100, 1);
    call(&w, 1, 300, 2);
    call(&w, 1, 500, 3);
    call(&w, 2, 200, 4);
    call(&w, 2, 300, 5);
    call(&w, 2, 900, 6);
    feed(&m, fw_batch(&w, 1000, 1000, 400, 0));
    is_text(m.got.data, "1@100 4@200 2@300 5@300 ", "events of two rings are ordered by tick up to the watermark");
    call(&w, 3, 600, 7);
    call(&w, 2, 950, 8);
    feed(&m, fw_batch(&w, 2000, 2000, 900, 0));
    is_text(m.got.data, "3@500 7@600 6@900 ", "events that were held back precede newer events");
    feed(&m, fw_batch(&w, 3000, 3000, 920, 0));
    is_text(m.got.data, "", "no event precedes the watermark");
    feed(&m, fw_batch(&w, 4000, 4000, 4000, ETW_BATCH_LAST));
    is_text(m.got.data, "8@950 ", "the last batch releases all events");
    struct merge_counts n = {0};
    merge_counts(m.merge, &n);
    is_number((int64_t)n.seen, 8, "seen");
    is_number((int64_t)n.decoded, 8, "decoded");
    ok(n.last, "the counts say that the last batch has come");
    m_close(&m);
    fw_release(&w);
}

static void test_time(void)
{
    struct fw w = {0};
    struct m m = {0};

    /* 3 ticks per nanosecond, then 2. Monotonic time is far below zero, as on a real node. */
    const int64_t base = -576460752303423488;
    fw_begin(&w);
    m_open(&m);
    fw_hello(&w, 30000, "n@h");
    fw_ring(&w, 1);
    feed(&m, fw_batch(&w, 30000, base, 30000, 0));
    call(&w, 1, 30300, 1);
    call(&w, 1, 33000, 2);
    call(&w, 1, 60000, 3);
    feed(&m, fw_batch(&w, 60000, base + 10000, 60000, 0));
    is_text(m.got.data, "1@-576460752303423388 2@-576460752303422488 3@-576460752303413488 ",
            "ticks between two pairs are converted to time");
    call(&w, 1, 60200, 4);
    feed(&m, fw_batch(&w, 80000, base + 20000, 80000, 0));
    is_text(m.got.data, "4@-576460752303413388 ", "the next pair changes the speed of the clock");
    m_close(&m);
    fw_release(&w);
}

static void test_losses(void)
{
    struct fw w = {0};
    struct m m = {0};

    fw_begin(&w);
    m_open(&m);
    call(&w, 1, 100, 1);
    fw_lost(&w, 200, ETW_LOST_RING, 5);
    call(&w, 1, 300, 2);
    fw_lost(&w, 400, ETW_LOST_RATE, 2);
    call(&w, 1, 500, 3);
    feed(&m, fw_batch(&w, 1000, 1000, 1000, 0));
    is_text(m.got.data, "1@100 lost5@200 2@300 lost2@400 3@500 ", "losses are reported in order and once");
    w.r->lost[ETW_LOST_RING] += 7; /* a loss that only the section head reports */
    w.r->seen += 7;
    feed(&m, fw_batch(&w, 2000, 500000000, 2000, 0));
    is_text(m.got.data, "", "losses without a frame are not reported at once");
    feed(&m, fw_batch(&w, 3000, 2000000000, 3000, 0));
    is_text(m.got.data, "lost7@2000000000 ", "losses without a frame are reported after a second");
    fw_ring(&w, 1);
    fw_lost(&w, 3500, ETW_LOST_RING, 0); /* a frame about losses that the merge has reported already */
    call(&w, 1, 3600, 4);
    w.r->lost[ETW_LOST_RATE] += 1;
    w.r->seen += 1;
    feed(&m, fw_batch(&w, 4000, 2000001000, 4000, ETW_BATCH_LAST));
    is_text(m.got.data, "4@2000000600 lost1@2000001000 ",
            "losses are not reported twice, and the last ones are reported at the end");
    struct merge_counts n = {0};
    merge_counts(m.merge, &n);
    is_number((int64_t)n.seen, (int64_t)(n.decoded + n.lost[ETW_LOST_RING] + n.lost[ETW_LOST_RATE]),
              "seen = decoded + lost");
    m_close(&m);
    fw_release(&w);
}

static void test_owner(void)
{
    struct fw w = {0};
    struct m m = {0};

    fw_begin(&w);
    m_open(&m);
    call(&w, 1, 100, 1);
    call(&w, 1, 5000, 2);
    fw_ring(&w, ETW_META_RING);
    fw_frame(&w, ETW_NOTICE, 5500, 0);
    fw_atom_text(&w, "rearmed");
    fw_atom_text(&w, "shop");
    fw_frame_end(&w);
    fw_name(&w, 5600, 1, "first");
    feed(&m, fw_batch(&w, 6000, 6000, 3000, 0));
    is_text(m.got.data, "1@100 notice0@5500 ", "notices of the owner are not held back");
    feed(&m, fw_batch(&w, 7000, 7000, 7000, 0));
    is_text(m.got.data, "2@5000 ", "notices of the owner do not make other events late");

    /* The node has restarted. */
    struct fw again = {0};
    fw_begin(&again);
    call(&again, 1, 50, 9);
    struct str b = fw_batch(&again, 100, 9000, 100, 0);
    ok(merge_begins_anew(m.merge, b), "a batch with the sequence number 1 comes from a restarted node");
    merge_end(m.merge);
    take(&m);
    feed(&m, b);
    is_text(m.got.data, "9@8950 ", "a restarted node has its own clock and names");
    struct merge_counts n = {0};
    merge_counts(m.merge, &n);
    is_number((int64_t)n.seen, 3, "events of both runs are counted");
    m_close(&m);
    fw_release(&w);
    fw_release(&again);
}

static void test_malformed(void)
{
    struct fw w = {0};
    struct m m = {0};

    fw_begin(&w);
    m_open(&m);
    call(&w, 1, 100, 1);
    feed(&m, fw_batch(&w, 1000, 1000, 1000, 0));
    call(&w, 1, 1100, 1);
    fw_ring(&w, 1);
    fw_call(&w, 1200, 1, "m", "f", 1);
    fw_u8(&w, 0x9f);
    fw_frame_end(&w);
    ok(feed(&m, fw_batch(&w, 2000, 2000, 2000, 0)), "the batch with the malformed term is accepted");
    is_text(m.got.data, "1@1100 ", "events before a malformed frame are released");
    is_number(m.last, MERGE_BAD, "the malformed frame ends the merge");
    is_text(m.e.text, "malformed events: no term begins with this byte (batch 2, byte 161)",
            "the error names the malformed byte");
    m_close(&m);

    /* The frame is malformed but held back: the error names the batch in which it came. */
    struct fw v = {0};
    fw_begin(&v);
    m_open(&m);
    call(&v, 1, 100, 1);
    fw_call(&v, 200, 1, "m", "f", 1);
    fw_u8(&v, 0x9f);
    fw_frame_end(&v);
    struct str first = fw_batch(&v, 1000, 1000, 50, 0);
    char want[200];
    snprintf(want, sizeof(want), "malformed events: no term begins with this byte (batch 1, byte %zu)", first.len - 1);
    feed(&m, first);
    is_text(m.got.data, "", "all events are held back");
    call(&v, 1, 300, 1);
    feed(&m, fw_batch(&v, 2000, 2000, 2000, 0));
    is_text(m.got.data, "1@100 ", "the event before the malformed one is released");
    is_text(m.e.text, want, "the error of a frame that was held back names the frame's batch");
    struct fw anew = {0};
    fw_begin(&anew);
    call(&anew, 1, 400, 1);
    struct str begun = fw_batch(&anew, 3000, 3000, 3000, 0);
    ok(merge_failed(m.merge) && merge_begins_anew(m.merge, begun),
       "after a failure the merge accepts only a restart of the node");
    ok(feed(&m, begun) && !merge_failed(m.merge), "the merge reads the restarted node's batch");
    is_text(m.got.data, "1@400 ", "the merge releases the restarted node's event");
    fw_release(&anew);
    m_close(&m);

    struct fw s = {0};
    fw_begin(&s);
    m_open(&m);
    feed(&m, fw_batch(&s, 1, 1, 1, 0));
    s.seq++;
    ok(!feed(&m, fw_batch(&s, 2, 2, 2, 0)), "a missing batch is refused");
    is_text(m.e.text, "malformed events: a batch is missing before this one (batch 3, byte 8)",
            "the error names the missing batch");
    m_close(&m);
    fw_release(&w);
    fw_release(&v);
    fw_release(&s);
}

/* Each truncation and each changed byte of a batch leads to an error or to events.
 * A sanitizer reports anything else. */
static void test_every_byte(void)
{
    struct fw w = {0};
    struct m m = {0};
    struct buf batch = {0};
    unsigned refused = 0;

    fw_begin(&w);
    fw_hello(&w, 10, "n@h");
    fw_name(&w, 10, 1, "one");
    call(&w, 1, 100, 1);
    call(&w, 2, 150, 1);
    fw_lost(&w, 160, ETW_LOST_RATE, 3);
    call(&w, 1, 170, 2);
    buf_str(&batch, fw_batch(&w, 1000, 1000, 1000, ETW_BATCH_LAST));
    for (size_t i = 0; i < batch.len; i++) {
        m_open(&m);
        refused += !feed(&m, (struct str){batch.data, i}) || m.last == MERGE_BAD;
        m_close(&m);
    }
    is_number(refused, (int64_t)batch.len, "every truncation is refused");
    for (size_t i = 0; i < batch.len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            batch.data[i] = (char)(batch.data[i] ^ 1 << bit);
            m_open(&m);
            feed(&m, buf_view(&batch));
            m_close(&m);
            batch.data[i] = (char)(batch.data[i] ^ 1 << bit);
        }
    }
    ok(true, "a batch with any changed bit does no harm");
    buf_release(&batch);
    fw_release(&w);
}

/* The node sends the end of a snapshot with events after the watermark, and then no batch for a while. */
static void test_snapshot_end(void)
{
    struct fw w = {0};
    struct m m = {0};

    fw_begin(&w);
    m_open(&m);
    call(&w, 1, 100, 1);
    call(&w, 1, 600, 2);
    fw_ring(&w, ETW_META_RING);
    fw_frame(&w, ETW_NOTICE, 500, 0);
    fw_atom_text(&w, "snapshot_end");
    fw_int(&w, 0);
    fw_frame_end(&w);
    feed(&m, fw_batch(&w, 1000, 1000, 400, 0));
    ok(strstr(m.got.data, "1@100 ") && strstr(m.got.data, "2@600 "), "the end of a snapshot releases its last events");
    m_close(&m);
    fw_release(&w);
}

int main(void)
{
    test_order();
    test_snapshot_end();
    test_time();
    test_losses();
    test_owner();
    test_malformed();
    test_every_byte();
    return tap_end();
}

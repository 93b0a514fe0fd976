/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the scrollback, as if it were a recording or the batches of a flight recorder. */
#include "scroll.h"

#include <stdlib.h>

#include "../ground/mem.h"
#include "scroll_parts.h"

/*
 * The batch that a reader gives before the next piece of a node, if the reader acts as a flight recorder. The batch has
 * a notice or, with NOTICE_COUNTS, only the counts of the node.
 */
enum reader_notice { NOTICE_NONE, NOTICE_BEGIN, NOTICE_END, NOTICE_COUNTS };

struct reader_node {
    uint64_t seq;
    /* The counts of events that this reader never gets. They are subtracted from all counts of the node. */
    uint64_t seen, lost[ETW_LOSSES];
    bool timed;                               /* the reader has the node's clock note */
    uint64_t expect, expect_lost[ETW_LOSSES]; /* the counts after the piece that was read last */
    enum reader_notice notice;
    bool gap;   /* events were overwritten since the last snapshot */
    bool ended; /* the reader has given the node's last batch, or the note that the node is down */
    bool owes;  /* the node's counts have changed since the reader gave its last batch */
};

struct reader {
    struct source source;
    struct scroll *scroll;
    uint64_t next; /* number of the next piece */
    bool specs_due;
    struct buf specs; /* the request in force at the reader's position; if specs_due, it comes before the next piece */
    uint64_t missed;
    struct reader_node nodes[EVENT_NODES];
    struct buf batch;
    bool records, notices; /* records: acts as a flight recorder; notices: a notice of some node is due */
};

/* Counts the events since the piece that was read last as overwritten. `seen` and `lost` are the counts after them. */
static void reader_overwrite(struct reader_node *n, uint64_t seen, const uint64_t lost[static ETW_LOSSES])
{
    uint64_t events = seen - n->expect;

    for (size_t l = 0; l < ETW_LOSSES; l++)
        events -= lost[l] - n->expect_lost[l];
    n->lost[ETW_LOST_OVERWRITTEN] -= events;
    n->gap = n->gap || events;
    n->owes = n->owes || events;
}

/*
 * Excludes the pieces that were dropped before `p` from this reader's counts, as if they had never existed. If the
 * reader acts as a flight recorder, counts their events as overwritten instead.
 */
static void exclude_dropped(const struct reader *r, struct reader_node *n, const struct scroll_piece *p)
{
    if (r->records)
        reader_overwrite(n, p->seen, p->lost);
    else
        n->seen += p->seen - n->expect;
    for (size_t l = 0; l < ETW_LOSSES && !r->records; l++)
        n->lost[l] += p->lost[l] - n->expect_lost[l];
    n->expect = p->seen;
    memcpy(n->expect_lost, p->lost, sizeof(n->expect_lost));
}

/* Adjusts the node's counts before the reader gives the piece. If the piece begins a new run, the counts begin anew. */
static void enter_piece(const struct reader *r, struct reader_node *n, const struct scroll_piece *p)
{
    exclude_dropped(r, n, p);
    n->ended = p->last;
    if (!p->anew || !n->seq)
        return;
    n->seq = 0;
    n->seen = p->seen;
    memcpy(n->lost, p->lost, sizeof(n->lost));
}

static void expect_behind(struct reader_node *n, const struct scroll_piece *p)
{
    n->expect = p->seen_behind;
    memcpy(n->expect_lost, p->lost_behind, sizeof(n->expect_lost));
}

static void put_greeting(struct reader *r, unsigned node, int64_t mono_ns, int64_t wall_ns)
{
    const struct reader_node *n = &r->nodes[node];

    rebatch_own(ETW_HELLO, merge_node(r->scroll->nodes[node]->merge)->hello, mono_ns, wall_ns, n->expect,
                n->expect_lost, &r->batch);
}

static enum source_got give_batch(struct reader *r, unsigned node, struct source_item *ret)
{
    struct reader_node *n = &r->nodes[node];

    n->owes = false;
    rebatch_rebase(r->batch.data, r->batch.len, ++n->seq, n->seen, n->lost);
    *ret = (struct source_item){.type = SOURCE_BATCH, .node = node, .bytes = buf_view(&r->batch)};
    return SOURCE_ITEM;
}

/* ---- a recorder ---- */

static bool is_down(const struct scroll_piece *p)
{
    struct etw_note note;

    if (p->type != SOURCE_NOTE)
        return false;
    memcpy(&note, p->data, sizeof(note));
    return note.what == ETW_NOTE_DOWN;
}

/* Returns true if the node is down or restarts with this piece, and its counts have changed since its last batch. */
static bool owes_counts(const struct reader_node *n, const struct scroll_piece *p)
{
    return (p->anew || is_down(p)) && n->seq && n->owes;
}

/* Sets the time of a notice. The time is not later than any unread event of the node. */
static void notice_time(const struct reader *r, unsigned node, const struct scroll_piece *next, int64_t *ret_mono,
                        int64_t *ret_wall)
{
    const struct scroll_node *n = r->scroll->nodes[node];
    struct etw_batch head;

    if (next) {
        memcpy(&head, next->data, sizeof(head));
        *ret_mono = next->first_ns;
        *ret_wall = head.wall_ns - (head.mono_ns - next->first_ns);
    } else if (!merge_passed(n->merge, ret_mono, ret_wall)) {
        *ret_mono = n->rebatch.mono_ns;
        *ret_wall = n->rebatch.wall_ns;
    }
}

static void put_notice_atom(struct buf *to, const char *name)
{
    const uint16_t len = (uint16_t)strlen(name);

    buf_char(to, (char)ETW_T_ATOMTEXT);
    buf_add(to, &len, sizeof(len));
    buf_add(to, name, len);
}

static void put_notice_int(struct buf *to, int64_t n)
{
    buf_char(to, (char)ETW_T_INT64);
    buf_add(to, &n, sizeof(n));
}

/*
 * Writes the terms {snapshot, {From, Us}} or {snapshot_end, 0} of a notice. Every event of the snapshot follows the
 * notice, so From only says whether there were older events: 1 or 0.
 */
static void put_notice(struct buf *to, bool begins, bool gap, int64_t us)
{
    put_notice_atom(to, begins ? "snapshot" : "snapshot_end");
    if (begins)
        buf_char(to, (char)(ETW_T_TUPLE0 + 2));
    put_notice_int(to, begins && gap);
    if (begins)
        put_notice_int(to, us);
}

/*
 * Returns how far back the events of a node reach, in microseconds. A node without events reaches back to the last
 * event that was overwritten.
 */
static int64_t reach_us(const struct reader *r, unsigned node, const struct scroll_piece *next, int64_t mono)
{
    int64_t now, ignored;

    notice_time(r, node, NULL, &now, &ignored);
    return MAX(now - (next ? mono : r->scroll->nodes[node]->rebatch.mono_ns), 0) / 1000;
}

/*
 * Gives the notice that is due for a node. If the reader has given nothing from this node yet, gives the node's hello
 * instead, and the notice stays due. `next` is the node's next piece, or NULL.
 */
static enum source_got give_notice(struct reader *r, unsigned node, const struct scroll_piece *next,
                                   struct source_item *ret)
{
    struct reader_node *n = &r->nodes[node];
    const enum reader_notice notice = n->notice;
    struct buf terms = {0};
    int64_t mono, wall;

    notice_time(r, node, next, &mono, &wall);
    buf_clear(&r->batch);
    if (!n->seq && notice != NOTICE_COUNTS) {
        put_greeting(r, node, mono, wall);
        return give_batch(r, node, ret);
    }
    if (notice != NOTICE_COUNTS)
        put_notice(&terms, notice == NOTICE_BEGIN, n->gap, reach_us(r, node, next, mono));
    rebatch_own(notice == NOTICE_COUNTS ? ETW_TICK : ETW_NOTICE,
                (struct wire){(uint8_t *)terms.data, (uint8_t *)terms.data + terms.len}, mono, wall, n->expect,
                n->expect_lost, &r->batch);
    buf_release(&terms);
    n->notice = NOTICE_NONE;
    n->gap = n->gap && notice != NOTICE_BEGIN;
    return give_batch(r, node, ret);
}

/* Gives one due notice of a node that has no further piece. Returns SOURCE_NOTHING if no notice is due. */
static enum source_got give_notices(struct reader *r, struct source_item *ret)
{
    for (unsigned i = 0; i < EVENT_NODES && r->notices; i++)
        if (r->nodes[i].notice != NOTICE_NONE)
            return give_notice(r, i, NULL, ret);
    r->notices = false;
    return SOURCE_NOTHING;
}

static void queue_notices(struct reader *r, enum reader_notice notice)
{
    for (unsigned i = 0; i < EVENT_NODES; i++)
        if (r->scroll->nodes[i] && merge_node(r->scroll->nodes[i]->merge)->attached && !r->nodes[i].ended &&
            (notice != NOTICE_COUNTS || (r->nodes[i].seq && r->nodes[i].owes))) {
            r->nodes[i].notice = notice;
            r->notices = true;
        }
}

void scroll_act_as_recorder(struct source *reader)
{
    ((struct reader *)reader)->records = true;
}

void scroll_begin_snapshot(struct source *reader)
{
    queue_notices((struct reader *)reader, NOTICE_BEGIN);
}

void scroll_end_snapshot(struct source *reader)
{
    queue_notices((struct reader *)reader, NOTICE_END);
}

void scroll_end_recorder(struct source *reader)
{
    queue_notices((struct reader *)reader, NOTICE_COUNTS);
}

static const struct scroll_piece *oldest_unread(const struct source *reader)
{
    const struct scroll *s = ((const struct reader *)reader)->scroll;
    const uint64_t place = scroll_place(reader);

    return place < scroll_end(s) ? s->pieces[s->head + (size_t)(place - s->first)] : NULL;
}

bool scroll_oldest_is_eventless(const struct source *reader)
{
    const struct scroll_piece *p = oldest_unread(reader);

    return p && (p->type != SOURCE_BATCH || p->last || (p->hello && !p->events) ||
                 owes_counts(&((const struct reader *)reader)->nodes[p->node], p));
}

bool scroll_overwrite_oldest(struct source *reader, struct source_item *ret)
{
    struct reader *r = (struct reader *)reader;
    const struct scroll_piece *p = oldest_unread(reader);
    struct err ignored;

    r->next = scroll_place(reader);
    if (!p)
        return false;
    if (scroll_oldest_is_eventless(reader))
        return source_next(reader, ret, 0, &ignored) == SOURCE_ITEM;
    struct reader_node *n = &r->nodes[p->node];
    enter_piece(r, n, p);
    reader_overwrite(n, p->seen_behind, p->lost_behind);
    expect_behind(n, p);
    r->next++;
    return false;
}

/* ---- reading ---- */

/*
 * Makes the reader return the request in `specs` before the next piece; NULL: none. Called when the reader starts, and
 * after pieces were dropped.
 */
static void queue_specs(struct reader *r, const struct scroll_piece *specs)
{
    buf_clear(&r->specs);
    r->specs_due = specs != NULL;
    if (specs)
        buf_add(&r->specs, specs->data, specs->bytes);
}

static enum source_got reader_next(struct source *source, struct source_item *ret, int timeout_ms UNUSED,
                                   struct err *e UNUSED)
{
    struct reader *r = (struct reader *)source;
    struct scroll *s = r->scroll;

    if (r->next < s->first) {
        r->next = s->first;
        queue_specs(r, s->specs_before);
    }
    if (r->next == s->first + s->count)
        return give_notices(r, ret);
    if (r->specs_due) {
        r->specs_due = false;
        *ret = (struct source_item){SOURCE_SPECS, 0, buf_view(&r->specs), 0};
        return SOURCE_ITEM;
    }
    const struct scroll_piece *p = s->pieces[s->head + (size_t)(r->next - s->first)];
    if (p->type == SOURCE_SPECS) {
        r->next++;
        *ret = (struct source_item){SOURCE_SPECS, p->node, {p->data, p->bytes}, 0};
        return SOURCE_ITEM;
    }
    struct reader_node *n = &r->nodes[p->node];
    if (owes_counts(n, p)) {
        n->notice = NOTICE_COUNTS;
        return give_notice(r, p->node, p->type == SOURCE_BATCH ? p : NULL, ret);
    }
    const struct buf *clock = &s->nodes[p->node]->clock;
    if (p->type == SOURCE_NOTE) {
        r->next++;
        n->timed = true;
        if (r->records && is_down(p)) {
            n->ended = true;
            n->notice = NOTICE_NONE;
        }
        *ret = (struct source_item){SOURCE_NOTE, p->node, {p->data, p->bytes}, 0};
        return SOURCE_ITEM;
    }
    if (!n->timed && clock->len) {
        n->timed = true;
        *ret = (struct source_item){SOURCE_NOTE, p->node, buf_view(clock), 0};
        return SOURCE_ITEM;
    }
    r->missed += n->seq ? p->seen - n->expect : 0;
    enter_piece(r, n, p);
    if (n->notice == NOTICE_BEGIN && (p->events || !p->hello))
        return give_notice(r, p->node, p, ret);
    buf_clear(&r->batch);
    if (!n->seq && !p->hello && merge_node(s->nodes[p->node]->merge)->attached) {
        struct etw_batch head;
        memcpy(&head, p->data, sizeof(head));
        put_greeting(r, p->node, head.mono_ns, head.wall_ns);
        return give_batch(r, p->node, ret);
    }
    r->next++;
    expect_behind(n, p);
    buf_add(&r->batch, p->data, p->bytes);
    return give_batch(r, p->node, ret);
}

static void reader_close(struct source *source)
{
    struct reader *r = (struct reader *)source;

    buf_release(&r->batch);
    buf_release(&r->specs);
    free(r);
}

static const struct source_ops reader_ops = {.next = reader_next, .close = reader_close};

struct source *scroll_read(struct scroll *s, bool from_now)
{
    struct reader *r = mem_zalloc(sizeof(*r));
    const struct scroll_piece *specs = s->specs_before;

    r->source.ops = &reader_ops;
    r->scroll = s;
    r->next = s->first;
    for (size_t i = 0; from_now && i < s->count; i++, r->next++)
        if (s->pieces[s->head + i]->type == SOURCE_SPECS)
            specs = s->pieces[s->head + i];
    queue_specs(r, specs);
    return &r->source;
}

uint64_t scroll_missed(const struct source *reader)
{
    return ((const struct reader *)reader)->missed;
}

uint64_t scroll_place(const struct source *reader)
{
    const struct reader *r = (const struct reader *)reader;

    return MAX(r->next, r->scroll->first);
}

size_t scroll_ahead(const struct source *reader)
{
    const struct reader *r = (const struct reader *)reader;
    const struct scroll *s = r->scroll;

    uint64_t next = scroll_place(reader);

    if (next >= scroll_end(s))
        return 0;
    return (size_t)(s->offset - s->pieces[s->head + (size_t)(next - s->first)]->offset);
}

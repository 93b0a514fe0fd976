/* SPDX-License-Identifier: Apache-2.0 */
#include "scroll.h"

#include <stdlib.h>

#include "../ground/mem.h"
#include "rebatch.h"
#include "merge.h"

#define NODES 256

struct piece {
    enum source_type type;
    unsigned node;
    bool hello;
    bool anew; /* first piece of a restarted node, which has other clocks */
    size_t bytes, events;
    uint64_t offset;                 /* sum of the bytes of all earlier pieces */
    uint64_t seen, lost[ETW_LOSSES]; /* the node's counts before this piece */
    uint64_t seen_behind, lost_behind[ETW_LOSSES];
    char data[];
};

struct marked {
    uint64_t mark;
    int64_t mono_ns;
};

struct scroll_node {
    struct merge *merge;
    struct rebatch rebatch;
    uint64_t seen; /* counts already in pieces */
    uint64_t lost[ETW_LOSSES];
    struct marked *marks; /* confirmed by the node, in order; no event after them has come out yet */
    size_t nmarks, marks_cap;
    struct buf clock; /* the latest clock note, for readers that start later */
    bool anew;
    bool snaps;       /* a snapshot has begun and not ended */
    uint64_t begun;   /* snapshots */
    int64_t reach_us; /* of the latest one; -1: nothing was overwritten */
};

struct specs {
    uint64_t mark;
    char *text;
    size_t len;
};

struct scroll {
    size_t max, bytes;
    struct funs funs;
    struct scroll_node *nodes[NODES];
    struct piece **pieces; /* entries begin at `head`; `first` is the number of the oldest piece */
    size_t head, count, cap;
    uint64_t first;
    struct piece *specs_before; /* the request in force at the oldest piece; NULL: none */
    struct specs *specs;        /* requests without any event yet */
    size_t nspecs, specs_cap;
    uint64_t events, dropped, taken, mark;
    uint64_t offset; /* total bytes since the start */
    bool recorders;
    struct buf text;
};

struct scroll *scroll_new(size_t max_bytes)
{
    struct scroll *s = mem_zalloc(sizeof(*s));

    s->max = max_bytes;
    funs_init(&s->funs);
    return s;
}

void scroll_free(struct scroll *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->count; i++)
        free(s->pieces[s->head + i]);
    free(s->pieces);
    free(s->specs_before);
    for (size_t i = 0; i < s->nspecs; i++)
        free(s->specs[i].text);
    free(s->specs);
    for (size_t i = 0; i < NODES; i++)
        if (s->nodes[i]) {
            merge_free(s->nodes[i]->merge);
            rebatch_release(&s->nodes[i]->rebatch);
            free(s->nodes[i]->marks);
            buf_release(&s->nodes[i]->clock);
            free(s->nodes[i]);
        }
    funs_release(&s->funs);
    buf_release(&s->text);
    free(s);
}

/* ---- pieces ---- */

static size_t size_of(const struct piece *p)
{
    return sizeof(*p) + p->bytes;
}

static void drop_oldest(struct scroll *s)
{
    struct piece *p = s->pieces[s->head++];

    s->count--;
    s->first++;
    s->bytes -= size_of(p);
    s->events -= p->events;
    s->dropped += p->events;
    if (p->type == SOURCE_SPECS) {
        free(s->specs_before);
        s->specs_before = p;
    } else {
        free(p);
    }
}

static void append(struct scroll *s, struct piece *p)
{
    if (s->head && s->head + s->count == s->cap) {
        memmove(s->pieces, s->pieces + s->head, s->count * sizeof(*s->pieces));
        s->head = 0;
    }
    s->pieces = mem_grow(s->pieces, &s->cap, s->head + s->count + 1, sizeof(*s->pieces));
    p->offset = s->offset;
    s->offset += p->bytes;
    s->pieces[s->head + s->count++] = p;
    s->bytes += size_of(p);
    s->events += p->events;
    s->taken += p->events;
    while (s->bytes > s->max && s->count > 1)
        drop_oldest(s);
}

static struct piece *piece_new(enum source_type type, unsigned node, struct str bytes)
{
    struct piece *p = mem_zalloc(sizeof(*p) + bytes.len);

    p->type = type;
    p->node = node;
    p->bytes = bytes.len;
    if (bytes.len)
        memcpy(p->data, bytes.at, bytes.len);
    return p;
}

/* Closes the node's current piece. With `last`, creates one even if it is empty, to mark the end of the run. */
static void take_piece(struct scroll *s, unsigned index, bool last)
{
    struct scroll_node *n = s->nodes[index];
    uint64_t seen = n->seen + n->rebatch.events;
    bool hello = n->rebatch.hello;
    size_t events = n->rebatch.events;

    if (rebatch_empty(&n->rebatch) && !last)
        return;
    for (size_t l = 0; l < ETW_LOSSES; l++)
        seen += n->rebatch.lost[l] - n->lost[l];
    buf_clear(&s->text);
    rebatch_take(&n->rebatch, seen, last, &s->text);
    struct piece *p = piece_new(SOURCE_BATCH, index, buf_view(&s->text));
    p->hello = hello;
    p->anew = n->anew;
    n->anew = false;
    p->events = events;
    p->seen = n->seen;
    p->seen_behind = seen;
    memcpy(p->lost, n->lost, sizeof(p->lost));
    memcpy(p->lost_behind, n->rebatch.lost, sizeof(p->lost_behind));
    n->seen = seen;
    memcpy(n->lost, n->rebatch.lost, sizeof(n->lost));
    append(s, p);
}

void scroll_clear(struct scroll *s, uint64_t end)
{
    while (s->count && s->first < end)
        drop_oldest(s);
    s->dropped = 0;
}

/* ---- requests ---- */

void scroll_specs(struct scroll *s, uint64_t mark, struct str bytes)
{
    s->specs = mem_grow(s->specs, &s->specs_cap, s->nspecs + 1, sizeof(*s->specs));
    s->specs[s->nspecs++] = (struct specs){mark, mem_strndup(bytes.at, bytes.len), bytes.len};
}

/* All nodes are armed with the same mark; the first one that gets there switches the request for all. */
static void use_specs(struct scroll *s, uint64_t mark)
{
    size_t kept = 0;

    if (mark <= s->mark)
        return;
    s->mark = mark;
    for (size_t i = 0; i < NODES; i++)
        if (s->nodes[i])
            take_piece(s, (unsigned)i, false);
    for (size_t i = 0; i < s->nspecs; i++) {
        struct specs *p = &s->specs[i];
        if (p->mark == mark)
            append(s, piece_new(SOURCE_SPECS, 0, (struct str){p->text, p->len}));
        if (p->mark <= mark)
            free(p->text);
        else
            s->specs[kept++] = *p;
    }
    s->nspecs = kept;
}

/* ---- batches ---- */

/* Accepts a mark only if scroll_specs() registered it, and only in increasing order, because nodes are untrusted. */
static void take_mark(struct scroll *s, struct scroll_node *n, uint64_t mark, int64_t mono_ns)
{
    bool later = !n->nmarks || n->marks[n->nmarks - 1].mark < mark;
    size_t i = 0;

    while (i < s->nspecs && s->specs[i].mark != mark)
        i++;
    if (!later || i == s->nspecs)
        return;
    n->marks = mem_grow(n->marks, &n->marks_cap, n->nmarks + 1, sizeof(*n->marks));
    n->marks[n->nmarks++] = (struct marked){mark, mono_ns};
}

static void note_snapshot(struct scroll_node *n, const struct event *e)
{
    int64_t from, us;

    if (!event_begins_snapshot(e, &from, &us))
        return;
    n->snaps = true;
    n->begun++;
    n->reach_us = from ? us : -1;
}

/* Returns the event with the time that it has in the batch. */
static struct event recorded_event(const struct scroll_node *n, const struct event *e)
{
    struct event moved = *e;

    if (e->ring == ETW_META_RING && e->kind != ETW_HELLO && n->rebatch.wall_ns) {
        moved.mono_ns = n->rebatch.mono_ns;
        moved.wall_ns = n->rebatch.wall_ns;
    }
    return moved;
}

static void add_event(struct scroll *s, unsigned index, const struct event *e)
{
    struct scroll_node *n = s->nodes[index];

    rebatch_add(&n->rebatch, e);
    if (rebatch_full(&n->rebatch))
        take_piece(s, index, false);
}

static void add_recorded(struct scroll *s, unsigned index, const struct event *e)
{
    const struct event moved = recorded_event(s->nodes[index], e);

    note_snapshot(s->nodes[index], e);
    add_event(s, index, &moved);
}

static void take_event(struct scroll *s, unsigned index, const struct event *e)
{
    struct scroll_node *n = s->nodes[index];
    int64_t mark;

    if (e->kind == ETW_NOTICE && wire_is_atom(&e->env, e->terms.at, "armed")) {
        if (wire_int(wire_skip(e->terms.at), &mark) && mark > 0)
            take_mark(s, n, (uint64_t)mark, e->mono_ns);
        return;
    }
    /* The owner's notice comes out ahead of time; events older than the mark still belong to the previous request. */
    size_t passed = 0;
    while (passed < n->nmarks && event_is_traced(e) && e->mono_ns >= n->marks[passed].mono_ns)
        passed++;
    if (passed) {
        use_specs(s, n->marks[passed - 1].mark);
        n->nmarks -= passed;
        memmove(n->marks, n->marks + passed, n->nmarks * sizeof(*n->marks));
    }
    (s->recorders ? add_recorded : add_event)(s, index, e);
}

static bool scroll_drain(struct scroll *s, unsigned index, struct err *e)
{
    struct event ev;
    enum merge_got got;
    bool ends = false;

    while ((got = merge_next(s->nodes[index]->merge, &ev, e)) == MERGE_EVENT) {
        ends = ends || event_ends_snapshot(&ev);
        take_event(s, index, &ev);
    }
    ends = ends && s->recorders;
    s->nodes[index]->snaps &= !ends;
    take_piece(s, index, ends);
    return got == MERGE_DRY;
}

static struct scroll_node *meet(struct scroll *s, unsigned node)
{
    if (!s->nodes[node]) {
        s->nodes[node] = mem_zalloc(sizeof(*s->nodes[node]));
        s->nodes[node]->merge = merge_new(node, &s->funs);
        rebatch_init(&s->nodes[node]->rebatch);
    }
    return s->nodes[node];
}

void scroll_note(struct scroll *s, unsigned node, struct str bytes)
{
    struct etw_note note;

    if (node >= NODES || bytes.len < sizeof(note))
        return;
    memcpy(&note, bytes.at, sizeof(note));
    struct scroll_node *n = meet(s, node);
    if (note.what == ETW_NOTE_CLOCK) {
        buf_clear(&n->clock);
        buf_str(&n->clock, bytes);
    } else if (note.what == ETW_NOTE_DOWN) {
        buf_clear(&n->clock);
        n->snaps = false;
    }
    append(s, piece_new(SOURCE_NOTE, node, bytes));
}

bool scroll_passed(const struct scroll *s, unsigned node, int64_t *ret_mono, int64_t *ret_wall)
{
    return node < NODES && s->nodes[node] && merge_passed(s->nodes[node]->merge, ret_mono, ret_wall);
}

bool scroll_batch(struct scroll *s, unsigned node, struct str bytes, struct err *e)
{
    if (node >= NODES)
        return err_set(e, ERR_RUN, "malformed events: a node's number out of range");
    meet(s, node);
    struct merge *m = s->nodes[node]->merge;
    if (merge_begins_anew(m, bytes)) {
        bool failed = merge_failed(m); /* the failure was already reported, so ignore its rest */
        merge_end(m);
        if (!scroll_drain(s, node, e) && !failed)
            return false;
        s->nodes[node]->anew = true;
        s->nodes[node]->nmarks = 0;
        s->nodes[node]->snaps = false;
    }
    if (!merge_batch(m, bytes, e) || !scroll_drain(s, node, e))
        return false;
    if (merge_ended(m)) {
        s->nodes[node]->snaps = false;
        take_piece(s, node, true);
    }
    return true;
}

void scroll_of_recorders(struct scroll *s)
{
    s->recorders = true;
}

void scroll_snapshots(const struct scroll *s, struct scroll_snapshots *ret)
{
    *ret = (struct scroll_snapshots){.reach_us = -1};
    for (size_t i = 0; i < NODES; i++) {
        const struct scroll_node *n = s->nodes[i];
        if (!n || !n->begun)
            continue;
        ret->going |= n->snaps;
        ret->begun += n->begun;
        if (n->reach_us >= 0)
            ret->reach_us = ret->reach_us < 0 ? n->reach_us : MIN(ret->reach_us, n->reach_us);
    }
}

void scroll_counts(const struct scroll *s, struct scroll_counts *ret)
{
    *ret = (struct scroll_counts){.bytes = s->bytes, .events = s->events, .dropped = s->dropped, .taken = s->taken};
    for (size_t i = 0; i < NODES; i++)
        if (s->nodes[i])
            ret->seen += s->nodes[i]->seen;
}

uint64_t scroll_begun(const struct scroll *s, unsigned node)
{
    return node < NODES && s->nodes[node] ? s->nodes[node]->begun : 0;
}

/* ---- reading ---- */

struct reader_node {
    uint64_t seq;
    /* dropped before this reader began or caught up; subtracted from all its counts */
    uint64_t seen, lost[ETW_LOSSES];
    bool timed;                               /* the reader has the node's clock note */
    uint64_t expect, expect_lost[ETW_LOSSES]; /* the counts after the piece that was read last */
};

struct reader {
    struct source source;
    struct scroll *scroll;
    uint64_t next; /* number of the next piece */
    bool specs_due;
    struct buf specs; /* the request in force at the reader's position, if specs_due */
    uint64_t missed;
    struct reader_node nodes[NODES];
    struct buf batch;
};

/* Excludes dropped pieces from this reader's counts, as if they had never existed. */
static void leave_out(struct reader_node *n, const struct piece *p)
{
    n->seen += p->seen - n->expect;
    for (size_t l = 0; l < ETW_LOSSES; l++)
        n->lost[l] += p->lost[l] - n->expect_lost[l];
    n->expect = p->seen;
    memcpy(n->expect_lost, p->lost, sizeof(n->expect_lost));
}

static void behind(struct reader_node *n, const struct piece *p)
{
    n->expect = p->seen_behind;
    memcpy(n->expect_lost, p->lost_behind, sizeof(n->expect_lost));
}

static void greet(struct reader *r, const struct piece *p)
{
    const struct scroll_node *n = r->scroll->nodes[p->node];
    struct etw_batch head;

    memcpy(&head, p->data, sizeof(head));
    rebatch_hello(merge_node(n->merge)->hello, head.mono_ns, head.wall_ns, p->seen, p->lost, &r->batch);
}

static enum source_got give(struct reader *r, unsigned node, struct source_item *ret)
{
    struct reader_node *n = &r->nodes[node];

    rebatch_rebase(r->batch.data, r->batch.len, ++n->seq, n->seen, n->lost);
    *ret = (struct source_item){.type = SOURCE_BATCH, .node = node, .bytes = buf_view(&r->batch)};
    return SOURCE_ITEM;
}

/* Queues the request in force, at the reader's start and after dropped pieces. */
static void in_force(struct reader *r, const struct piece *specs)
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
        in_force(r, s->specs_before);
    }
    if (r->next == s->first + s->count)
        return SOURCE_NOTHING;
    if (r->specs_due) {
        r->specs_due = false;
        *ret = (struct source_item){SOURCE_SPECS, 0, buf_view(&r->specs), 0};
        return SOURCE_ITEM;
    }
    const struct piece *p = s->pieces[s->head + (size_t)(r->next - s->first)];
    if (p->type == SOURCE_SPECS) {
        r->next++;
        *ret = (struct source_item){SOURCE_SPECS, 0, {p->data, p->bytes}, 0};
        return SOURCE_ITEM;
    }
    struct reader_node *n = &r->nodes[p->node];
    const struct buf *clock = &s->nodes[p->node]->clock;
    if (p->type == SOURCE_NOTE) {
        r->next++;
        n->timed = true;
        *ret = (struct source_item){SOURCE_NOTE, p->node, {p->data, p->bytes}, 0};
        return SOURCE_ITEM;
    }
    if (!n->timed && clock->len) {
        n->timed = true;
        *ret = (struct source_item){SOURCE_NOTE, p->node, buf_view(clock), 0};
        return SOURCE_ITEM;
    }
    r->missed += n->seq ? p->seen - n->expect : 0;
    leave_out(n, p);
    if (p->anew && n->seq) {
        n->seq = 0;
        n->seen = p->seen;
        memcpy(n->lost, p->lost, sizeof(n->lost));
    }
    buf_clear(&r->batch);
    if (!n->seq && !p->hello && merge_node(s->nodes[p->node]->merge)->attached) {
        greet(r, p);
        return give(r, p->node, ret);
    }
    r->next++;
    behind(n, p);
    buf_add(&r->batch, p->data, p->bytes);
    return give(r, p->node, ret);
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
    const struct piece *specs = s->specs_before;

    r->source.ops = &reader_ops;
    r->scroll = s;
    r->next = s->first;
    for (size_t i = 0; from_now && i < s->count; i++, r->next++)
        if (s->pieces[s->head + i]->type == SOURCE_SPECS)
            specs = s->pieces[s->head + i];
    in_force(r, specs);
    return &r->source;
}

uint64_t scroll_missed(const struct source *reader)
{
    return ((const struct reader *)reader)->missed;
}

uint64_t scroll_end(const struct scroll *s)
{
    return s->first + s->count;
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

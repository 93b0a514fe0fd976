/* SPDX-License-Identifier: Apache-2.0 */
#include "scroll.h"

#include <stdlib.h>

#include "../ground/mem.h"
#include "scroll_parts.h"

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
    for (size_t i = 0; i < EVENT_NODES; i++)
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

static size_t size_of(const struct scroll_piece *p)
{
    return sizeof(*p) + p->bytes;
}

static void drop_oldest(struct scroll *s)
{
    struct scroll_piece *p = s->pieces[s->head++];

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

static void append_piece(struct scroll *s, struct scroll_piece *p)
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

static struct scroll_piece *piece_new(enum source_type type, unsigned node, struct str bytes)
{
    struct scroll_piece *p = mem_zalloc(sizeof(*p) + bytes.len);

    p->type = type;
    p->node = node;
    p->bytes = bytes.len;
    if (bytes.len)
        memcpy(p->data, bytes.at, bytes.len);
    return p;
}

/* Appends the events so far of a node as a piece. With `last`, appends even an empty piece, to mark the run's end. */
static void take_piece(struct scroll *s, unsigned index, bool last)
{
    struct scroll_node *n = s->nodes[index];
    uint64_t seen = n->seen + n->rebatch.events;
    bool hello = n->rebatch.hello;
    size_t events = n->rebatch.events;
    const int64_t first_ns = n->rebatch.begun ? n->rebatch.first_ns : n->rebatch.mono_ns;

    if (rebatch_empty(&n->rebatch) && !last)
        return;
    for (size_t l = 0; l < ETW_LOSSES; l++)
        seen += n->rebatch.lost[l] - n->lost[l];
    buf_clear(&s->text);
    rebatch_take(&n->rebatch, seen, last, &s->text);
    struct scroll_piece *p = piece_new(SOURCE_BATCH, index, buf_view(&s->text));
    p->hello = hello;
    p->anew = n->anew;
    p->last = last && !events;
    p->first_ns = first_ns;
    n->anew = false;
    p->events = events;
    p->seen = n->seen;
    p->seen_behind = seen;
    memcpy(p->lost, n->lost, sizeof(p->lost));
    memcpy(p->lost_behind, n->rebatch.lost, sizeof(p->lost_behind));
    n->seen = seen;
    memcpy(n->lost, n->rebatch.lost, sizeof(n->lost));
    append_piece(s, p);
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
    s->specs[s->nspecs++] = (struct scroll_request){mark, mem_strndup(bytes.at, bytes.len), bytes.len};
}

/* Returns true if the node may still send events. Returns false if there is only one node, which has no clock note. */
static bool is_expected(const struct scroll_node *n)
{
    return n && n->clock.len && !merge_ended(n->merge);
}

static void append_specs(struct scroll *s, const struct scroll_request *p)
{
    append_piece(s, piece_new(SOURCE_SPECS, 0, (struct str){p->text, p->len}));
    /* The snapshots of the nodes come one after another. Announce all nodes, so that readers wait for all of them. */
    for (unsigned i = 1; i < EVENT_NODES && s->recorders; i++)
        if (is_expected(s->nodes[i]))
            append_piece(s, piece_new(SOURCE_SPECS, i, (struct str){p->text, p->len}));
}

/*
 * Switches to the request of this arming mark. All nodes are armed with the same mark. The first node with an event
 * from after the mark switches the request for all nodes.
 */
static void use_specs(struct scroll *s, uint64_t mark)
{
    size_t kept = 0;

    if (mark <= s->mark)
        return;
    s->mark = mark;
    for (size_t i = 0; i < EVENT_NODES; i++)
        if (s->nodes[i])
            take_piece(s, (unsigned)i, false);
    for (size_t i = 0; i < s->nspecs; i++) {
        struct scroll_request *p = &s->specs[i];
        if (p->mark == mark)
            append_specs(s, p);
        if (p->mark <= mark)
            free(p->text);
        else
            s->specs[kept++] = *p;
    }
    s->nspecs = kept;
}

/* ---- batches ---- */

/*
 * Stores an arming mark that the node has confirmed. Ignores a mark that scroll_specs() did not register or that is not
 * larger than the previous mark, because nodes are untrusted.
 */
static void take_mark(struct scroll *s, struct scroll_node *n, uint64_t mark, int64_t mono_ns)
{
    bool later = !n->nmarks || n->marks[n->nmarks - 1].mark < mark;
    size_t i = 0;

    while (i < s->nspecs && s->specs[i].mark != mark)
        i++;
    if (!later || i == s->nspecs)
        return;
    n->marks = mem_grow(n->marks, &n->marks_cap, n->nmarks + 1, sizeof(*n->marks));
    n->marks[n->nmarks++] = (struct scroll_mark){mark, mono_ns};
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

/* Returns a copy of the event. A notice gets the times of the event before it (scroll_of_recorders()). */
static struct event recorded_event(struct scroll_node *n, const struct event *e)
{
    struct event moved = *e;

    if (e->ring == ETW_META_RING && e->kind != ETW_HELLO && n->wall_ns) {
        moved.mono_ns = n->mono_ns;
        moved.wall_ns = n->wall_ns;
    }
    n->mono_ns = moved.mono_ns;
    n->wall_ns = moved.wall_ns;
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
    /* The notice `armed` comes out ahead of time. Events older than the mark still belong to the previous request. */
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
    if (ends && s->recorders)
        s->nodes[index]->snaps = false;
    take_piece(s, index, ends && s->recorders == SCROLL_ONE_BY_ONE);
    return got == MERGE_DRY;
}

static struct scroll_node *ensure_node(struct scroll *s, unsigned node)
{
    if (!s->nodes[node]) {
        s->nodes[node] = mem_zalloc(sizeof(*s->nodes[node]));
        s->nodes[node]->merge = merge_new(node, &s->funs);
        rebatch_init(&s->nodes[node]->rebatch);
    }
    return s->nodes[node];
}

/* Ends the run of a node that sends no more batches: takes the events that the merge held back. */
static bool end_run(struct scroll *s, unsigned index, struct err *e)
{
    struct merge *m = s->nodes[index]->merge;
    const bool failed = merge_failed(m); /* the failure was reported already */

    merge_end(m);
    return scroll_drain(s, index, e) || failed;
}

void scroll_end_runs(struct scroll *s)
{
    struct err e; /* ignored: the pipeline of the same batches reports the error */

    for (unsigned i = 0; i < EVENT_NODES; i++)
        if (s->nodes[i])
            end_run(s, i, &e);
}

void scroll_note(struct scroll *s, unsigned node, struct str bytes)
{
    struct etw_note note;
    struct err e; /* ignored, as in scroll_end_runs() */

    if (node >= EVENT_NODES || bytes.len < sizeof(note))
        return;
    memcpy(&note, bytes.at, sizeof(note));
    struct scroll_node *n = ensure_node(s, node);
    if (note.what == ETW_NOTE_CLOCK) {
        buf_clear(&n->clock);
        buf_str(&n->clock, bytes);
    } else if (note.what == ETW_NOTE_DOWN) {
        end_run(s, node, &e);
        buf_clear(&n->clock);
        n->snaps = false;
    }
    append_piece(s, piece_new(SOURCE_NOTE, node, bytes));
}

bool scroll_passed(const struct scroll *s, unsigned node, int64_t *ret_mono, int64_t *ret_wall)
{
    return node < EVENT_NODES && s->nodes[node] && merge_passed(s->nodes[node]->merge, ret_mono, ret_wall);
}

/*
 * Counts the overwritten events that no loss event has reported: a flight recorder that ends without a snapshot does
 * not report them.
 */
static void take_overwritten(struct scroll_node *n)
{
    uint64_t *lost = &n->rebatch.lost[ETW_LOST_OVERWRITTEN];
    struct merge_counts c;

    merge_counts(n->merge, &c);
    *lost = MAX(*lost, c.lost[ETW_LOST_OVERWRITTEN]);
}

bool scroll_batch(struct scroll *s, unsigned node, struct str bytes, struct err *e)
{
    if (node >= EVENT_NODES)
        return err_set(e, ERR_RUN, "malformed events: a node's number out of range");
    ensure_node(s, node);
    struct merge *m = s->nodes[node]->merge;
    if (merge_begins_anew(m, bytes)) {
        if (!end_run(s, node, e))
            return false;
        s->nodes[node]->anew = true;
        s->nodes[node]->nmarks = 0;
        s->nodes[node]->snaps = false;
    }
    if (!merge_batch(m, bytes, e) || !scroll_drain(s, node, e))
        return false;
    if (merge_ended(m)) {
        take_overwritten(s->nodes[node]);
        s->nodes[node]->snaps = false;
        take_piece(s, node, true);
    }
    return true;
}

void scroll_of_recorders(struct scroll *s, enum scroll_recorders how)
{
    s->recorders = how;
}

bool scroll_records(const struct scroll *s, unsigned node)
{
    return s->recorders && node < EVENT_NODES && !(s->nodes[node] && s->nodes[node]->snaps);
}

void scroll_snapshots(const struct scroll *s, struct scroll_snapshots *ret)
{
    *ret = (struct scroll_snapshots){.reach_us = -1};
    for (size_t i = 0; i < EVENT_NODES; i++) {
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
    for (size_t i = 0; i < EVENT_NODES; i++)
        if (s->nodes[i]) {
            ret->seen += s->nodes[i]->seen;
            ret->overwritten += s->nodes[i]->lost[ETW_LOST_OVERWRITTEN];
        }
}

uint64_t scroll_begun(const struct scroll *s, unsigned node)
{
    return node < EVENT_NODES && s->nodes[node] ? s->nodes[node]->begun : 0;
}

uint64_t scroll_end(const struct scroll *s)
{
    return s->first + s->count;
}

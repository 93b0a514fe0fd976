/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading rings, holding frames back and reporting losses share one state, so they stay in one file despite its length.
 * Ticks, frames and names have files of their own.
 */
#include "merge_state.h"

#include <stdlib.h>

#include "../erlang/term_print.h"

#define HELD ((size_t)32 << 20) /* limit of held bytes for a node */
#define KEPT ((size_t)64 << 10) /* limit of the memory that a ring keeps for reuse while it holds no bytes */
#define VALUE_MAX 1020          /* limit for a node name or version in bytes, the size of the longest atom */
#define TELL_NS 1000000000      /* least time between two reports of losses that no frame reports */

/* ---- init and release ---- */

static void ring_release(struct ring *r)
{
    decode_ring_release(&r->decode);
    buf_release(&r->held);
    free(r->pieces);
}

static void merge_begin(struct merge *m)
{
    tracees_init(&m->decode.tracees);
    m->meta = (struct ring){0};
    decode_ring_init(&m->meta.decode, ETW_META_RING);
    decode_ring_init(&m->namer, ETW_META_RING);
    m->ticks.count = 0;
    m->next_seq = 1;
    m->last_mono = INT64_MIN;
    m->told_ns = INT64_MIN;
    m->held = 0;
    m->decoded = m->tallied = 0;
    m->last = m->ending = m->failed = false;
    m->nheap = m->doubtful = 0;
    m->from = m->older = 0;
    m->gap = m->begins = m->ticks.pinned = false;
}

static void merge_forget(struct merge *m)
{
    for (size_t i = 0; i < m->nrings; i++) {
        m->by_id[m->rings[i]->decode.id] = NULL;
        ring_release(m->rings[i]);
        free(m->rings[i]);
    }
    m->nrings = 0;
    ring_release(&m->meta);
    decode_ring_release(&m->namer);
    tracees_release(&m->decode.tracees);
}

struct merge *merge_new(unsigned index, struct funs *funs)
{
    struct merge *m = mem_zalloc(sizeof(*m));

    m->node.index = index;
    m->decode.node = &m->node;
    m->decode.funs = funs;
    merge_begin(m);
    return m;
}

void merge_free(struct merge *m)
{
    if (!m)
        return;
    merge_forget(m);
    free(m->rings);
    free(m->heap);
    buf_release(&m->text);
    buf_release(&m->hello);
    buf_release(&m->name);
    buf_release(&m->otp);
    buf_release(&m->tracee_name);
    buf_release(&m->learned_name);
    free(m);
}

struct ring *merge_ring(struct merge *m, uint32_t id)
{
    if (id == ETW_META_RING)
        return &m->meta;
    if (id >= MERGE_RINGS)
        return NULL;
    if (!m->by_id[id]) {
        struct ring *r = mem_zalloc(sizeof(*r));
        decode_ring_init(&r->decode, id);
        m->by_id[id] = r;
        m->rings = mem_grow(m->rings, &m->cap, m->nrings + 1, sizeof(struct ring *));
        m->rings[m->nrings++] = r;
        m->heap = mem_realloc(m->heap, (m->nrings + 1) * sizeof(struct ring *));
    }
    return m->by_id[id];
}

/* ---- errors with their position ---- */

static bool fail_at(struct merge *m, uint64_t seq, size_t offset, const char *why, struct err *e)
{
    m->failed = true;
    m->nheap = 0;
    return err_set(e, ERR_RUN, "malformed events: %s (batch %llu, byte %zu)", why, (unsigned long long)seq, offset);
}

static bool fail_in_ring(struct merge *m, const struct ring *r, const struct decode_error *bad, struct err *e)
{
    if (!r->in_held)
        return fail_at(m, m->head.seq, (size_t)((const char *)bad->at - m->batch.at), bad->why, e);
    size_t at = (size_t)((const char *)bad->at - r->held.data), i = r->npieces - 1;
    while (i && r->pieces[i].at > at)
        i--;
    return fail_at(m, r->pieces[i].seq, r->pieces[i].offset + (at - r->pieces[i].at), bad->why, e);
}

/* ---- the heap: rings by the tick of their next frame; equal ticks by ring number, for a deterministic order ---- */

static bool is_earlier(const struct ring *a, const struct ring *b)
{
    return a->head.tick < b->head.tick || (a->head.tick == b->head.tick && a->decode.id + 1 < b->decode.id + 1);
}

static void sift_down(struct merge *m, size_t i)
{
    struct ring *r = m->heap[i];

    for (size_t child; (child = 2 * i + 1) < m->nheap; i = child) {
        if (child + 1 < m->nheap && is_earlier(m->heap[child + 1], m->heap[child]))
            child++;
        if (!is_earlier(m->heap[child], r))
            break;
        m->heap[i] = m->heap[child];
    }
    m->heap[i] = r;
}

static void heap_add(struct merge *m, struct ring *r)
{
    size_t i = m->nheap++;

    for (; i && is_earlier(r, m->heap[(i - 1) / 2]); i = (i - 1) / 2)
        m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = r;
}

/*
 * Reads the head of the ring's next frame. Returns false if the ring has no unread frame, or if the head is malformed.
 * A malformed head also sets m->failed and *e.
 */
static bool advance_ring(struct merge *m, struct ring *r, struct err *e)
{
    struct decode_error bad;

    if (r->at == r->end) {
        if (!r->in_held || !r->section)
            return false;
        r->at = r->section;
        r->end = r->section_end;
        r->in_held = false;
        if (r->at == r->end)
            return false;
    }
    if (!decode_peek(&r->decode, r->at, r->end, &r->head, &bad))
        return fail_in_ring(m, r, &bad, e);
    return true;
}

/*
 * Sets r->doubtful to whether the ring's next loss report contains new losses. `any` is true if the ring has an unread
 * frame, whose head is r->head.
 *
 * The new losses happened after the previous report. A process that lost a result may have continued in another ring.
 * So the events of all rings are doubtful until the report comes out. ETW_LOST_OVERWRITTEN is exempt, because the
 * events from before these losses never come out.
 */
static __attribute__((noinline)) void recompute_doubt(struct merge *m, struct ring *r, bool any)
{
    uint64_t counters[ETW_LOSSES];
    const uint64_t *lost = any ? NULL : r->lost;
    bool doubtful = false;

    if (any && r->head.kind == ETW_LOST && r->head.bytes > sizeof(counters))
        lost = memcpy(counters, r->at + r->head.bytes - sizeof(counters), sizeof(counters));
    for (enum etw_loss l = 0; lost && l < ETW_LOSSES; l++)
        doubtful |= event_loss_tears(l) && l != ETW_LOST_OVERWRITTEN && lost[l] > r->told[l];
    m->doubtful += (unsigned)doubtful - (unsigned)r->doubtful;
    r->doubtful = doubtful;
}

static inline void update_doubt(struct merge *m, struct ring *r, bool any)
{
    if (unlikely(!any || r->head.kind == ETW_LOST || r->doubtful))
        recompute_doubt(m, r, any);
}

static bool merge_load(struct merge *m, struct ring *r, struct err *e)
{
    r->in_held = r->held.len > 0;
    if (r->in_held) {
        r->at = (const uint8_t *)r->held.data;
        r->end = r->at + r->held.len;
    } else {
        r->at = r->section;
        r->end = r->section_end;
    }
    bool any = advance_ring(m, r, e);
    update_doubt(m, r, any);
    if (any)
        heap_add(m, r);
    return !m->failed;
}

/* ---- the hello and process names ---- */

static struct safe keep_term(struct merge *m, struct buf *kept, const struct term_env *env, const uint8_t *at)
{
    buf_clear(&m->text);
    erlang_print(&m->text, env, at);
    return safe_keep(kept, raw_of(buf_view(&m->text)));
}

/* Keeps a registered name: in Elixir syntax if it begins with "Elixir.", otherwise in Erlang syntax. */
static struct safe keep_registered(struct merge *m, struct buf *kept, const struct term_env *env, const uint8_t *at)
{
    struct raw name;

    if (!wire_atom(env, at, &name))
        return keep_term(m, kept, env, at);
    buf_clear(&m->text);
    registered_print(&m->text, name);
    return safe_keep(kept, raw_of(buf_view(&m->text)));
}

/* Keeps the text of an atom or a binary without quotes. Keeps any other term in Erlang syntax. */
static struct safe keep_value(struct merge *m, struct buf *kept, const struct term_env *env, const uint8_t *at)
{
    struct raw text;
    uint64_t size;

    if (!wire_bin(at, &text, &size) && !wire_atom(env, at, &text))
        return keep_term(m, kept, env, at);
    text.len = MIN(text.len, VALUE_MAX);
    return safe_keep(kept, text);
}

static void read_otp(struct merge *m, const struct term_env *env, const uint8_t *at)
{
    struct safe text = m->node.otp = keep_value(m, &m->otp, env, at);

    m->node.otp27 = text.len >= 2 && (text.at[0] < '2' || (text.at[0] == '2' && text.at[1] < '8'));
}

void merge_read_hello(struct merge *m, const struct event *e)
{
    uint32_t pairs;
    const uint8_t *at;
    int64_t n = wire_map(e->terms.at, &pairs, &at);

    for (int64_t i = 0; i < n; i++) {
        const uint8_t *key = at, *value = wire_skip(at);
        at = wire_skip(value);
        if (wire_is_atom(&e->env, key, "node"))
            m->node.name = keep_value(m, &m->name, &e->env, value);
        else if (wire_is_atom(&e->env, key, "otp"))
            read_otp(m, &e->env, value);
        else if (wire_is_atom(&e->env, key, "load_nif"))
            m->node.fallback = wire_is_atom(&e->env, value, "false");
        else if (wire_is_atom(&e->env, key, "elixir"))
            m->node.elixir = wire_is_atom(&e->env, value, "true");
    }
    buf_clear(&m->hello);
    wire_copy(&m->hello, &e->env, e->terms, ETW_MAX_BATCH);
    m->node.hello = (struct wire){(const uint8_t *)m->hello.data, (const uint8_t *)m->hello.data + m->hello.len};
    m->node.attached = true;
}

#define LAST_ARGS 5

/* Returns the length of a list. Puts its last LAST_ARGS elements into ret_last: element i at the index i % LAST_ARGS.
 */
static size_t list_args(const uint8_t *at, const uint8_t *ret_last[static LAST_ARGS])
{
    const uint8_t *arg;
    size_t n = 0;

    if (wire_list(&at))
        for (; (arg = wire_list_next(&at)); n++)
            ret_last[n % LAST_ARGS] = arg;
    return n;
}

/*
 * Formats the initial call {M, F, Args} of a process as m:f/a or Mod.f/a. For proc_lib and gen, uses the function that
 * they call. Leaves *ret unchanged for the module `erlang`, because erlang:apply/2 does not tell which fun it calls.
 */
static void initial_call(struct merge *m, const struct term_env *env, const uint8_t *at, struct safe *ret)
{
    const uint8_t *function, *last[LAST_ARGS];
    struct raw module, name;
    uint32_t arity;

    if (wire_tuple(at, &arity, &at) != 3)
        return;
    function = wire_skip(at);
    if (!wire_atom(env, at, &module) || !wire_atom(env, function, &name) || raw_is(module, "erlang"))
        return;
    size_t n = list_args(wire_skip(function), last);
    if (n == 5 && raw_is(module, "proc_lib")) { /* init_p(Parent, Ancestors, M, F, Args) */
        if (!wire_atom(env, last[2], &module) || !wire_atom(env, last[3], &name))
            return;
        n = list_args(last[4], last);
    }
    /* init_it(..., Mod, Args, Options) */
    if (n >= LAST_ARGS && raw_is(module, "gen") && wire_atom(env, last[(n - 3) % LAST_ARGS], &module)) {
        name = raw_of(STR("init"));
        n = 1;
    }
    const struct fun *fun = funs_get(m->decode.funs, module, name);
    if (!fun)
        return;
    buf_clear(&m->text);
    buf_str(&m->text, fun_text(fun));
    buf_printf(&m->text, "/%zu", n);
    *ret = safe_keep(&m->learned_name, raw_of(buf_view(&m->text)));
}

/*
 * Learns the name of a process from its spawn or register event, because a short-lived process ends before the node can
 * ask for the name. The name applies from the next event on, because the spawn or register event shows the name itself.
 */
static void learn_name(struct merge *m, const struct event *e)
{
    m->learned.id = e->who->id;
    m->learned.registered = e->kind == ETW_REGISTER;
    if (e->kind == ETW_SPAWN && !wire_pid(e->terms.at, &m->learned.id))
        return;
    if (m->learned.registered)
        m->learned.name = keep_registered(m, &m->learned_name, &e->env, e->terms.at);
    else
        initial_call(m, &e->env, wire_skip(e->terms.at), &m->learned.name);
}

static void apply_learned(struct merge *m)
{
    struct tracee *t = tracees_at(&m->decode.tracees, m->learned.id);

    if (m->learned.registered || !t->name_len)
        tracee_name(t, m->learned.name);
    m->learned.name = SAFE("");
}

/* Begins a snapshot with the values {From, Microseconds} of the notice `snapshot`. */
static void begin_snapshot(struct merge *m, const struct event *e)
{
    const uint8_t *at;
    uint32_t arity;
    int64_t from;

    if (wire_tuple(wire_skip(e->terms.at), &arity, &at) != 2 || !wire_int(at, &from) || from < 0)
        return;
    m->from = (uint64_t)from;
    m->gap = m->begins = m->ticks.pinned = true;
}

static bool is_snapshot_notice(const struct event *e)
{
    return wire_is_atom(&e->env, e->terms.at, "snapshot") || wire_is_atom(&e->env, e->terms.at, "snapshot_none");
}

/*
 * Reads the section of the node's owner process ahead of the merge. So the name of a process is known before the first
 * event of the process comes out, whatever the order of the sections in the batch.
 */
static bool read_ahead(struct merge *m, const uint8_t *at, const uint8_t *end, struct err *e)
{
    struct decode_head head;
    struct decode_error bad;
    struct event ev;

    for (; at < end; at += head.bytes) {
        if (!decode_peek(&m->namer, at, end, &head, &bad) || !decode_frame(&m->namer, &m->decode, at, &head, &ev, &bad))
            return fail_at(m, m->head.seq, (size_t)((const char *)bad.at - m->batch.at), bad.why, e);
        if (head.kind == ETW_NAME) {
            bool registered = wire_is_atom_tag(*ev.terms.at);
            struct safe name = (registered ? keep_registered : keep_value)(m, &m->tracee_name, &ev.env, ev.terms.at);
            tracee_name(tracees_at(&m->decode.tracees, ev.who->id), name);
        } else if (head.kind == ETW_HELLO) {
            merge_read_hello(m, &ev);
        } else if (head.kind == ETW_NOTICE && is_snapshot_notice(&ev)) {
            begin_snapshot(m, &ev);
        } else if (head.kind == ETW_NOTICE && event_ends_snapshot(&ev)) {
            m->watermark = UINT64_MAX; /* releases the last events: the node sends no newer watermark for now */
            m->ticks.pinned = false;
        }
    }
    return true;
}

/* ---- a batch ---- */

static void add_counts(const struct merge *m, struct merge_counts *c)
{
    for (size_t i = 0; i <= m->nrings; i++) {
        const struct ring *r = i < m->nrings ? m->rings[i] : &m->meta;
        c->seen += r->seen;
        for (size_t l = 0; l < ETW_LOSSES; l++)
            c->lost[l] += r->lost[l];
    }
    c->decoded += m->decoded;
    c->tallied += m->tallied;
}

static bool read_section(struct merge *m, const uint8_t **at, const uint8_t *end, struct err *e)
{
    const uint8_t *p = *at;
    struct etw_section s;
    size_t offset = (size_t)((const char *)p - m->batch.at);

    if ((size_t)(end - p) < sizeof(s))
        return fail_at(m, m->head.seq, offset, "truncated section header", e);
    memcpy(&s, p, sizeof(s));
    p += sizeof(s);
    if ((size_t)(end - p) < s.bytes)
        return fail_at(m, m->head.seq, offset, "a section longer than its batch", e);
    struct ring *r = merge_ring(m, s.ring);
    if (!r)
        return fail_at(m, m->head.seq, offset, "a ring's number out of range", e);
    if (r->section)
        return fail_at(m, m->head.seq, offset, "two sections for one ring", e);
    if (s.seen < r->seen)
        return fail_at(m, m->head.seq, offset, "an event count that decreased", e);
    for (size_t l = 0; l < ETW_LOSSES; l++)
        if (s.lost[l] < r->lost[l])
            return fail_at(m, m->head.seq, offset, "a loss count that decreased", e);
    r->section = p;
    r->section_end = p + s.bytes;
    r->seen = s.seen;
    memcpy(r->lost, s.lost, sizeof(r->lost));
    *at = p + s.bytes;
    return r != &m->meta || read_ahead(m, r->section, r->section_end, e);
}

static struct ring *ring_at(struct merge *m, size_t i)
{
    return i < m->nrings ? m->rings[i] : &m->meta;
}

void merge_begin_anew(struct merge *m)
{
    add_counts(m, &m->before);
    m->cut |= !m->last;
    if (m->ticks.count) {
        const struct ticks_pair *p = &m->ticks.pairs[m->ticks.count - 1];
        m->ahead_ns = (int64_t)((uint64_t)p->wall - (uint64_t)p->mono);
        m->anew = true;
    }
    merge_forget(m);
    merge_begin(m);
}

bool merge_begins_anew(const struct merge *m, struct str bytes)
{
    struct etw_batch head;

    if (bytes.len < sizeof(head) || (m->next_seq == 1 && !m->failed))
        return false;
    memcpy(&head, bytes.at, sizeof(head));
    return head.magic == ETW_BATCH_MAGIC && head.seq == 1;
}

bool merge_failed(const struct merge *m)
{
    return m->failed;
}

bool merge_ended(const struct merge *m)
{
    return m->last;
}

bool merge_batch(struct merge *m, struct str bytes, struct err *e)
{
    struct etw_batch head;

    if (m->failed && !merge_begins_anew(m, bytes))
        return err_set(e, ERR_RUN, "malformed events: cannot continue after them");
    m->batch = bytes;
    if (bytes.len < sizeof(head))
        return fail_at(m, m->next_seq, 0, "truncated batch header", e);
    memcpy(&head, bytes.at, sizeof(head));
    if (head.magic != ETW_BATCH_MAGIC)
        return fail_at(m, m->next_seq, 0, "bad magic of a batch", e);
    if (merge_begins_anew(m, bytes))
        merge_begin_anew(m);
    m->head = head;
    if (head.bytes != bytes.len)
        return fail_at(m, head.seq, offsetof(struct etw_batch, bytes), "a batch whose length differs from its header",
                       e);
    if (head.seq != m->next_seq)
        return fail_at(m, head.seq, offsetof(struct etw_batch, seq), "a batch is missing before this one", e);
    m->next_seq++;
    m->watermark = head.flags & ETW_BATCH_LAST ? UINT64_MAX : head.watermark;
    m->last = head.flags & ETW_BATCH_LAST;
    m->remainder_told = m->ending = false;
    ticks_add(&m->ticks, head.tick, head.mono_ns, head.wall_ns);
    if (m->anew)
        m->node.shift_ns += (int64_t)((uint64_t)head.wall_ns - (uint64_t)head.mono_ns - (uint64_t)m->ahead_ns);
    m->anew = false;

    for (size_t i = 0; i <= m->nrings; i++)
        ring_at(m, i)->section = ring_at(m, i)->section_end = NULL;
    const uint8_t *at = (const uint8_t *)bytes.at + sizeof(head), *end = (const uint8_t *)bytes.at + bytes.len;
    for (uint32_t i = 0; i < head.sections; i++)
        if (!read_section(m, &at, end, e))
            return false;
    if (at != end)
        return fail_at(m, head.seq, (size_t)((const char *)at - bytes.at), "unused bytes in a batch", e);

    if (!m->heap)
        m->heap = mem_alloc(sizeof(struct ring *));
    m->nheap = 0;
    for (size_t i = 0; i <= m->nrings; i++)
        if (!merge_load(m, ring_at(m, i), e))
            return false;
    return true;
}

void merge_end(struct merge *m)
{
    if (m->failed)
        return;
    if (!m->heap)
        m->heap = mem_alloc(sizeof(struct ring *));
    m->nheap = 0;
    m->batch = (struct str){NULL, 0};
    m->watermark = UINT64_MAX;
    m->ending = true;
    m->remainder_told = m->ticks.count == 0;
    for (size_t i = 0; i <= m->nrings; i++) {
        ring_at(m, i)->section = NULL;
        ring_at(m, i)->section_end = NULL;
        merge_load(m, ring_at(m, i), &m->why);
    }
}

/* ---- events ---- */

/* Copies the unread frames of a ring to r->held, because the batch is borrowed only until MERGE_DRY. */
static void keep_unread(struct merge *m, struct ring *r)
{
    size_t kept = 0, first = 0;

    m->held -= r->held.len;
    if (r->in_held) {
        size_t from = (size_t)(r->at - (const uint8_t *)r->held.data);
        kept = r->held.len - from;
        while (first + 1 < r->npieces && r->pieces[first + 1].at <= from)
            first++;
        if (kept) {
            memmove(r->held.data, r->held.data + from, kept);
            for (size_t i = first; i < r->npieces; i++) {
                struct piece p = r->pieces[i];
                p.offset += p.at < from ? from - p.at : 0;
                p.at = p.at < from ? 0 : p.at - from;
                r->pieces[i - first] = p;
            }
        }
        r->npieces = kept ? r->npieces - first : 0;
        r->held.len = kept;
        r->at = r->section;
        r->end = r->section_end;
    } else {
        r->held.len = 0;
        r->npieces = 0;
    }
    if (r->at < r->end) {
        r->pieces = mem_grow(r->pieces, &r->cap, r->npieces + 1, sizeof(*r->pieces));
        r->pieces[r->npieces++] = (struct piece){r->held.len, m->head.seq, (size_t)((const char *)r->at - m->batch.at)};
        buf_add(&r->held, r->at, (size_t)(r->end - r->at));
    }
    m->held += r->held.len;
    if (!r->held.len)
        buf_shrink(&r->held, KEPT);
    r->at = r->end = r->section = r->section_end = NULL;
    r->in_held = false;
}

static size_t unread_bytes(const struct ring *r)
{
    return (size_t)(r->end - r->at) + (r->in_held ? (size_t)(r->section_end - r->section) : 0);
}

/*
 * Moves the ring of the owner's frames to the top of the heap. This breaks the order of the heap: call rebuild_heap()
 * after reading the frame. Returns NULL if this ring has no frame.
 */
static struct ring *meta_first(struct merge *m)
{
    for (size_t i = 0; i < m->nheap; i++)
        if (m->heap[i] == &m->meta) {
            m->heap[i] = m->heap[0];
            m->heap[0] = &m->meta;
            return &m->meta;
        }
    return NULL;
}

/*
 * Returns the ring whose frame comes out next. This is the first ring of the heap if the watermark has reached its
 * frame or if too many bytes are held back; otherwise the owner's ring, whose frames never wait. While the notice of a
 * snapshot is due, the owner's ring comes first. Returns NULL if no frame may come out.
 */
static struct ring *next_ring(struct merge *m)
{
    if (!m->nheap)
        return NULL;
    if (unlikely(m->begins) && meta_first(m))
        return &m->meta;
    if (likely(m->heap[0]->head.tick <= m->watermark))
        return m->heap[0];
    size_t waiting = 0;
    for (size_t i = 0; i < m->nheap; i++)
        waiting += unread_bytes(m->heap[i]);
    return waiting > HELD ? m->heap[0] : meta_first(m);
}

static void rebuild_heap(struct merge *m)
{
    for (size_t i = m->nheap / 2; i-- > 0;)
        sift_down(m, i);
}

/*
 * Sets `ret` to the losses in `counters` that no event has reported yet, and marks these losses as reported. Returns
 * false if there are none.
 */
static bool take_untold(struct ring *r, const uint64_t *counters, uint64_t *ret)
{
    uint64_t any = 0;

    for (size_t l = 0; l < ETW_LOSSES; l++) {
        ret[l] = counters[l] > r->told[l] ? counters[l] - r->told[l] : 0;
        if (ret[l])
            r->told[l] = counters[l];
        any |= ret[l];
    }
    return any;
}

void merge_own_event(struct merge *m, enum etw_kind kind, struct event *ret)
{
    static const struct ticks_pair never;
    const struct ticks_pair *now = m->ticks.count ? &m->ticks.pairs[m->ticks.count - 1] : &never;

    *ret = (struct event){
        .kind = (uint8_t)kind,
        .ring = ETW_META_RING,
        .mono_ns = MAX(now->mono, m->last_mono),
        .wall_ns = now->wall,
        .shift_ns = m->node.shift_ns,
        .node = &m->node,
        .who = tracees_at(&m->decode.tracees, 0),
        .tracees = &m->decode.tracees,
        .dur_ns = -1,
    };
}

/*
 * Reports the losses that section headers count and that no frame has reported: after the last batch, at the end of the
 * stream, and before that at most once per TELL_NS. Returns false if there is nothing to report now.
 */
static bool tell_remainder(struct merge *m, struct event *ret)
{
    uint64_t some[ETW_LOSSES], any = 0;
    const struct ticks_pair *now = &m->ticks.pairs[m->ticks.count - 1];

    if (m->remainder_told)
        return false;
    m->remainder_told = true;
    if (!m->last && !m->ending) {
        if (m->head.flags & ETW_BATCH_MORE)
            return false;
        if (m->told_ns == INT64_MIN)
            m->told_ns = now->mono;
        if (now->mono < m->told_ns || (uint64_t)now->mono - (uint64_t)m->told_ns < TELL_NS)
            return false;
    }
    m->told_ns = now->mono;
    memset(m->remainder, 0, sizeof(m->remainder));
    for (size_t i = 0; i <= m->nrings; i++) {
        struct ring *r = ring_at(m, i);
        if (r->at < r->end || !take_untold(r, r->lost, some))
            continue;
        update_doubt(m, r, false);
        for (size_t l = 0; l < ETW_LOSSES; l++)
            any |= m->remainder[l] += some[l];
    }
    if (!any)
        return false;
    merge_own_event(m, ETW_LOST, ret);
    ret->lost = m->remainder;
    return true;
}

/*
 * Reports the events that were overwritten before a snapshot. `tick` belongs to the first event of the snapshot.
 * Returns false if no events were overwritten.
 */
static bool tell_gap(struct merge *m, uint64_t tick, struct event *ret)
{
    uint64_t overwritten = m->older;

    m->gap = false;
    m->older = 0;
    for (size_t i = 0; i < m->nrings; i++) {
        struct ring *r = m->rings[i];
        uint64_t *told = &r->told[ETW_LOST_OVERWRITTEN];
        overwritten += r->lost[ETW_LOST_OVERWRITTEN] - MIN(*told, r->lost[ETW_LOST_OVERWRITTEN]);
        *told = r->lost[ETW_LOST_OVERWRITTEN];
    }
    memset(m->remainder, 0, sizeof(m->remainder));
    m->remainder[ETW_LOST_OVERWRITTEN] = overwritten;
    merge_own_event(m, ETW_LOST, ret);
    ticks_convert(&m->ticks, tick, &ret->mono_ns, &ret->wall_ns);
    ret->lost = m->remainder;
    ret->gap = true;
    return overwritten > 0;
}

static void stamp_event(struct merge *m, const struct ring *r, uint64_t tick, struct event *e)
{
    ticks_convert(&m->ticks, tick, &e->mono_ns, &e->wall_ns);
    if (unlikely(e->began)) {
        int64_t mono, wall;
        ticks_convert(&m->ticks, MIN(e->began, tick), &mono, &wall);
        e->waited_ns = (int64_t)((uint64_t)e->mono_ns - (uint64_t)mono);
    }
    if (r == &m->meta)
        return;
    if (unlikely(e->mono_ns < m->last_mono)) { /* the event came out early because too much was held back */
        e->wall_ns = (int64_t)((uint64_t)e->wall_ns + ((uint64_t)m->last_mono - (uint64_t)e->mono_ns));
        e->mono_ns = m->last_mono;
    }
    m->last_mono = e->mono_ns;
}

static void count_tally(struct merge *m, const struct event *e)
{
    m->tallied += e->tally->seen;
}

enum merge_got merge_next(struct merge *m, struct event *ret, struct err *e)
{
    struct decode_error bad;
    struct ring *r;

    if (unlikely(m->learned.name.len))
        apply_learned(m);
    while ((r = next_ring(m))) {
        uint64_t tick = r->head.tick;
        if (unlikely(m->gap) && r != &m->meta && tick > m->from && tell_gap(m, tick, ret))
            return MERGE_EVENT;
        if (!decode_frame(&r->decode, &m->decode, r->at, &r->head, ret, &bad)) {
            fail_in_ring(m, r, &bad, &m->why);
            break;
        }
        uint8_t kind = r->head.kind;
        bool lost = unlikely(kind == ETW_LOST) && take_untold(r, r->decode.lost, r->fresh);
        if (unlikely(m->begins) && kind == ETW_NOTICE)
            m->begins = !is_snapshot_notice(ret);
        if (unlikely(m->doubtful))
            ret->doubtful = true;
        r->at += r->head.bytes;
        bool any = advance_ring(m, r, &m->why);
        update_doubt(m, r, any);
        if (any) {
            if (r == &m->meta)
                rebuild_heap(m);
            else if (m->nheap > 1)
                sift_down(m, 0);
        } else if (!m->failed) {
            m->heap[0] = m->heap[--m->nheap];
            if (r == &m->meta)
                rebuild_heap(m);
            else if (m->nheap)
                sift_down(m, 0);
        }
        if (unlikely(kind >= ETW_LOST)) {
            if (kind == ETW_NAME || kind == ETW_TICK)
                continue;
            if (kind == ETW_LOST && !lost)
                continue;
            if (lost)
                ret->lost = r->fresh;
        } else if (unlikely(tick <= m->from) && r != &m->meta) {
            m->older++;
            m->before.lost[ETW_LOST_OVERWRITTEN]++;
            continue;
        } else {
            m->decoded++;
        }
        if (unlikely(kind == ETW_TALLY))
            count_tally(m, ret);
        if (unlikely(kind == ETW_SPAWN || kind == ETW_SPAWNED || kind == ETW_REGISTER))
            learn_name(m, ret);
        stamp_event(m, r, tick, ret);
        return MERGE_EVENT;
    }
    if (m->failed) {
        *e = m->why;
        return MERGE_BAD;
    }
    if (tell_remainder(m, ret))
        return MERGE_EVENT;
    for (size_t i = 0; i <= m->nrings; i++)
        keep_unread(m, ring_at(m, i));
    m->nheap = 0;
    return MERGE_DRY;
}

void merge_counts(const struct merge *m, struct merge_counts *ret)
{
    *ret = m->before;
    add_counts(m, ret);
    ret->last = m->last && !m->cut;
}

const struct tracee *merge_tracee(const struct merge *m, uint64_t id)
{
    return tracees_find(&m->decode.tracees, id);
}

const struct event_node *merge_node(const struct merge *m)
{
    return &m->node;
}

struct event_node *merge_own_node(struct merge *m)
{
    return &m->node;
}

bool merge_passed(const struct merge *m, int64_t *ret_mono, int64_t *ret_wall)
{
    if (m->last || !m->ticks.count)
        return false;
    ticks_convert(&m->ticks, m->watermark, ret_mono, ret_wall);
    return true;
}

/* Returns the watermark of the batch header as a time. m->watermark only says which events may come out. */
bool merge_reached(const struct merge *m, int64_t *ret_mono, int64_t *ret_wall)
{
    if (!m->ticks.count || !m->head.watermark)
        return false;
    ticks_convert(&m->ticks, m->head.watermark, ret_mono, ret_wall);
    return true;
}

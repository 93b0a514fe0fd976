/* SPDX-License-Identifier: Apache-2.0 */
#include "order.h"

#include <stdlib.h>

#include "../erlang/term_print.h"
#include "../ground/mem.h"

#define TEXT_MAX 256                     /* limit for the text of a note in bytes */
#define GREETINGS_MAX ((size_t)64 << 10) /* limit for the hellos of a node in bytes; beyond it no checkpoints */
#define QUEUED_MAX ((size_t)64 << 20)    /* limit of queued bytes; beyond it events come out early */

struct item {
    struct item *next;
    bool note;
    uint64_t where;
    size_t len, cap;
    char bytes[];
};

enum state { STATE_OPEN, STATE_CLOSING /* merge_end() was called */, STATE_CLOSED };

/* The state of one node. */
struct strand {
    struct merge *merge;
    struct event_node *node; /* owned by the merge */
    struct item *first, **last;
    struct item *item; /* the item that the merge reads; NULL: the merge reads a borrowed batch or nothing */
    /* taken: number of batches that the merge got. freed: batches up to this number do not wait for other nodes. */
    uint64_t taken, freed;
    enum state state;
    bool anew;             /* ORDER_ANEW was returned for the next batch */
    bool expected, loaded; /* expected: more input may come; loaded: the merge has unread input */
    struct event head;     /* the node's next event, if has_head is true */
    bool has_head;
    int64_t key, passed; /* key: time of `head`; passed: lower bound for the times of later events */
    int64_t offset;      /* added to the node's monotonic clock, gives wall time of this host; if node->aligned */
    bool reached;        /* the next two members are set */
    int64_t reached_mono, reached_wall; /* the time up to which the batches so far have every event of the node */
    struct buf why, name;               /* the texts of notes, escaped */

    /* For checkpoints. */
    uint64_t items;       /* number of batches and notes that were taken */
    int64_t newest;       /* the latest time of an event that is no hello */
    struct buf greetings; /* the hellos that came out, each as an encoded struct greeting */
    size_t greeted;       /* number of bytes of restored `greetings` whose events came out again */
    unsigned group;       /* number of the checkpoint that the strand was restored from; 0: none */
    int64_t batch_ns;     /* wall clock of the latest batch */
    bool wanted;          /* save the state as soon as the node is between two batches */
    struct buf saved;     /* the latest saved state, after `saved_items` items */
    uint64_t saved_items;
    int64_t saved_newest;
};

/* A hello that came out. */
struct greeting {
    uint64_t number;  /* 0, 1, 2, ... in the order in which the hellos of all nodes came out */
    int64_t batch_ns; /* wall clock of its batch, by which recordings are merged */
    int64_t wall, mono;
    struct str hello;
};

struct order {
    struct funs *funs;
    struct strand *strands[EVENT_NODES];
    size_t count;
    struct strand *given; /* the strand whose head the caller currently has */
    struct str borrowed;
    struct item *spare; /* a free item for reuse */
    size_t queued;
    bool ending, failed;
    uint64_t where;
    int64_t first_key, first_ns; /* first traced event: its time in the order; when it happened; INT64_MIN: none yet */
    uint64_t greetings;          /* number of greetings that came out */
    bool greets;                 /* restored greetings still have to come out */
    struct event greeting;
    unsigned groups;             /* number of restored checkpoints */
    const struct fun **restored; /* the functions of the checkpoint that is restored */
    size_t nrestored;
};

struct order *order_new(struct funs *funs)
{
    struct order *o = mem_zalloc(sizeof(*o));

    o->funs = funs;
    o->first_key = o->first_ns = INT64_MIN;
    return o;
}

void order_free(struct order *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->count; i++) {
        struct strand *s = o->strands[i];
        if (!s)
            continue;
        for (struct item *item; (item = s->first); free(item))
            s->first = item->next;
        free(s->item);
        buf_release(&s->why);
        buf_release(&s->name);
        buf_release(&s->greetings);
        buf_release(&s->saved);
        merge_free(s->merge);
        free(s);
    }
    free(o->spare);
    free(o->restored);
    free(o);
}

bool order_expect(struct order *o, unsigned node)
{
    if (node >= EVENT_NODES)
        return false;
    if (!o->strands[node]) {
        struct strand *s = mem_zalloc(sizeof(*s));
        s->merge = merge_new(node, o->funs);
        s->node = merge_own_node(s->merge);
        s->last = &s->first;
        s->state = STATE_CLOSED;
        s->key = s->passed = s->newest = INT64_MIN;
        o->strands[node] = s;
        o->count = MAX(o->count, node + 1u);
    }
    o->strands[node]->expected = true;
    o->ending = false;
    return true;
}

/* ---- input ---- */

static void enqueue_item(struct order *o, struct strand *s, struct str bytes, bool note, uint64_t where)
{
    struct item *item = o->spare;

    if (!item || item->cap < bytes.len) {
        free(item);
        item = mem_alloc(sizeof(*item) + bytes.len);
        item->cap = bytes.len;
    }
    o->spare = NULL;
    *item = (struct item){.note = note, .where = where, .len = bytes.len, .cap = item->cap};
    memcpy(item->bytes, bytes.at, bytes.len);
    *s->last = item;
    s->last = &item->next;
    o->queued += bytes.len;
}

static int64_t add_offset(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static bool out_of_range(struct err *e)
{
    return err_set(e, ERR_RUN, "malformed events: a node's number out of range");
}

bool order_batch(struct order *o, unsigned node, struct str bytes, uint64_t where, struct err *e)
{
    if (o->failed)
        return err_set(e, ERR_RUN, "malformed events: cannot continue after them");
    if (!order_expect(o, node))
        return out_of_range(e);
    struct strand *s = o->strands[node];
    if (o->count > 1 || s->first)
        enqueue_item(o, s, bytes, false, where);
    else
        o->borrowed = bytes, o->where = where;
    return true;
}

bool order_note(struct order *o, unsigned node, struct str bytes, struct err *e)
{
    struct etw_note note;

    if (node >= EVENT_NODES)
        return out_of_range(e);
    if (bytes.len < sizeof(note))
        return err_set(e, ERR_RUN, "malformed events: a note is too short");
    memcpy(&note, bytes.at, sizeof(note));
    if (!order_expect(o, node))
        return out_of_range(e);
    struct strand *s = o->strands[node];
    if (note.what == ETW_NOTE_MARK)
        s->freed = MAX(s->freed, (uint64_t)note.value);
    else
        enqueue_item(o, s, bytes, true, 0);
    return true;
}

void order_passed(struct order *o, unsigned node, int64_t mono, int64_t wall)
{
    struct strand *s = node < o->count ? o->strands[node] : NULL;

    if (!s || s->first || s->loaded)
        return;
    /* Before its first batch, a node's times are usable only if its clock offset is known. */
    if (s->state == STATE_OPEN || (s->state == STATE_CLOSED && s->node->aligned))
        s->passed = mono == INT64_MAX ? mono : MAX(s->passed, s->node->aligned ? add_offset(mono, s->offset) : wall);
}

void order_end(struct order *o)
{
    o->ending = true;
    for (size_t i = 0; i < o->count; i++)
        if (o->strands[i])
            o->strands[i]->expected = false;
}

/* ---- the next event of a node ---- */

static void close_strand(struct strand *s)
{
    merge_end(s->merge);
    s->state = STATE_CLOSING;
    s->loaded = true;
}

static void take_item(struct order *o, struct strand *s)
{
    struct item *item = s->first;

    s->first = item->next;
    if (!s->first)
        s->last = &s->first;
    o->queued -= item->len;
    free(o->spare);
    o->spare = s->item;
    s->item = item;
}

/* Sets the time of s->head on the common clock. The times of a node never go back, so its events keep their order. */
static void order_place(struct strand *s)
{
    struct event *e = &s->head;

    if (e->ring == ETW_META_RING) { /* the owner's frames do not advance the node's time */
        if (s->node->aligned)
            e->wall_ns = s->key == INT64_MIN ? add_offset(e->mono_ns, s->offset)
                                             : MAX(s->key, add_offset(e->mono_ns, s->offset));
        return;
    }
    if (s->node->aligned)
        e->wall_ns = MAX(s->key, add_offset(e->mono_ns, s->offset));
    s->key = MAX(s->key, e->wall_ns);
}

static int64_t batch_wall(struct str bytes)
{
    struct etw_batch head;

    memcpy(&head, bytes.at, sizeof(head));
    return head.wall_ns;
}

static bool take_batch(struct strand *s, struct str bytes, struct err *e)
{
    s->loaded = merge_batch(s->merge, bytes, e);
    s->taken++;
    s->items++;
    if (s->loaded)
        s->batch_ns = batch_wall(bytes);
    if (s->state != STATE_OPEN)
        s->key = s->passed = INT64_MIN;
    s->state = STATE_OPEN;
    s->anew = false;
    return s->loaded;
}

/* Takes a note. Returns true if the note is itself an event, which is then s->head. */
static bool take_note(struct strand *s, const struct item *item)
{
    struct etw_note note;

    memcpy(&note, item->bytes, sizeof(note));
    s->items++;
    switch ((enum etw_note_what)note.what) {
    case ETW_NOTE_CLOCK:
        s->offset = note.value;
        s->node->aligned = true;
        return false;
    case ETW_NOTE_DOWN:
    case ETW_NOTE_UP: {
        bool up = note.what == ETW_NOTE_UP;
        struct buf *text = up ? &s->name : &s->why;
        struct safe said =
            safe_keep(text, raw_bytes(item->bytes + sizeof(note), MIN(item->len - sizeof(note), TEXT_MAX)));
        s->node->why = up ? SAFE("") : said;
        if (up)
            s->node->name = said;
        s->expected = up;
        s->node->aligned &= !up; /* a restarted node has a new clock; a later note gives its offset */
        if (!s->node->name.len)
            return false; /* the node was lost before its name arrived; no event */
        merge_own_event(s->merge, up ? ETW_UP : ETW_DOWN, &s->head);
        s->head.wall_ns = s->key = MAX(s->key, note.value);
        s->newest = MAX(s->newest, s->key);
        return true;
    }
    case ETW_NOTE_MARK:
        break;
    }
    return false; /* a mark, or a note of a newer etrace */
}

/* Returns the batch that the node's strand takes next; empty if that is a note, or if there is none yet. */
static struct str next_batch(const struct order *o, const struct strand *s)
{
    if (!s->first)
        return o->borrowed;
    return s->first->note ? (struct str){0} : (struct str){s->first->bytes, s->first->len};
}

/*
 * Returns true if the node's current run has no more input: the next item is a note that the node is down, or begins a
 * new run, or the input ends here.
 */
static bool must_close(const struct order *o, const struct strand *s)
{
    struct etw_note note;

    if (s->state != STATE_OPEN)
        return false;
    if (s->first && s->first->note) {
        memcpy(&note, s->first->bytes, sizeof(note));
        return note.what == ETW_NOTE_DOWN;
    }
    if (s->first || o->borrowed.len)
        return merge_begins_anew(s->merge, next_batch(o, s));
    return o->ending;
}

/* Returns true, once, before the first batch of a new run of the node. */
static bool begins_anew(const struct order *o, const struct strand *s)
{
    return s->state == STATE_CLOSED && !s->anew && merge_begins_anew(s->merge, next_batch(o, s));
}

/* ---- checkpoints ---- */

static void keep_greeting(struct order *o, struct strand *s)
{
    const struct wire hello = s->node->hello;

    if (s->greetings.len >= GREETINGS_MAX)
        return;
    state_number(&s->greetings, o->greetings++);
    state_time(&s->greetings, s->batch_ns);
    state_time(&s->greetings, s->head.wall_ns);
    state_time(&s->greetings, s->head.mono_ns);
    state_text(&s->greetings, (struct str){(const char *)hello.at, (size_t)(hello.end - hello.at)});
}

static void save_strand(struct strand *s)
{
    struct buf *to = &s->saved;

    if (s->loaded || s->has_head)
        return;
    s->wanted = false;
    buf_clear(to);
    s->saved_items = s->items;
    s->saved_newest = s->newest;
    state_number(to, s->taken);
    state_number(to, s->freed);
    state_number(to, s->state == STATE_OPEN);
    state_number(to, s->expected);
    state_number(to, s->node->aligned);
    state_time(to, s->key);
    state_time(to, s->passed);
    state_time(to, s->offset);
    state_text(to, safe_view(s->node->name));
    state_text(to, safe_view(s->node->why));
    state_text(to, buf_view(&s->greetings));
    if (!merge_save(s->merge, to) || s->greetings.len >= GREETINGS_MAX || to->len > ETW_MAX_BLOCK)
        buf_clear(to);
}

void order_save(struct order *o)
{
    for (size_t i = 0; i < o->count; i++)
        if (o->strands[i]) {
            o->strands[i]->wanted = true;
            save_strand(o->strands[i]);
        }
}

bool order_saved(struct order *o)
{
    bool all = o->count && !o->ending && !o->greets;

    for (size_t i = 0; i < o->count; i++)
        all &= !o->strands[i] || !o->strands[i]->wanted;
    return all;
}

bool order_checkpoint(const struct order *o, struct str request, struct buf *to)
{
    struct etw_checkpoint head = {
        .layout = ETW_CHECKPOINT_LAYOUT,
        .newest = INT64_MIN,
        .first_key = o->first_key,
        .first_ns = o->first_ns,
        .request_bytes = (uint32_t)request.len,
    };
    const size_t at = to->len;

    buf_add(to, &head, sizeof(head));
    for (size_t i = 0; i < o->count; i++) {
        const struct strand *s = o->strands[i];
        if (!s)
            continue;
        if (!s->saved.len)
            return false;
        const struct etw_resume resume = {.node = (uint32_t)i, .items = s->saved_items};
        buf_add(to, &resume, sizeof(resume));
        head.nodes++;
        head.newest = MAX(head.newest, s->saved_newest);
    }
    memcpy(to->data + at, &head, sizeof(head));
    buf_str(to, request);
    funs_save(o->funs, to);
    return to->len - at <= ETW_MAX_BLOCK;
}

bool order_state(const struct order *o, unsigned node, struct str *ret)
{
    if (node >= o->count || !o->strands[node])
        return false;
    *ret = buf_view(&o->strands[node]->saved);
    return true;
}

static bool malformed_checkpoint(struct err *e)
{
    return err_set(e, ERR_RUN, "malformed events: invalid checkpoint");
}

bool order_restore(struct order *o, struct str checkpoint, struct str *ret_request, struct err *e)
{
    struct state_in in = {checkpoint.at, checkpoint.at + checkpoint.len, false};
    struct etw_checkpoint head;

    if (checkpoint.len < sizeof(head))
        return malformed_checkpoint(e);
    memcpy(&head, in.at, sizeof(head));
    const size_t fixed = sizeof(head) + head.nodes * sizeof(struct etw_resume);
    if (head.layout != ETW_CHECKPOINT_LAYOUT || head.nodes > EVENT_NODES || checkpoint.len < fixed ||
        checkpoint.len - fixed < head.request_bytes)
        return malformed_checkpoint(e);
    *ret_request = (struct str){in.at + fixed, head.request_bytes};
    in.at += fixed + head.request_bytes;
    free(o->restored);
    o->restored = NULL;
    o->nrestored = 0;
    o->groups++;
    return funs_load(o->funs, &in, &o->restored, &o->nrestored) || malformed_checkpoint(e);
}

/* Reads the restored greeting at *at, and advances *at past it. Returns false if there is none. */
static bool read_greeting(const struct strand *s, size_t *at, struct greeting *ret)
{
    const struct str all = buf_view(&s->greetings);
    struct state_in in = {all.at + *at, all.at + all.len, false};

    if (*at >= all.len)
        return false;
    ret->number = state_read_number(&in);
    ret->batch_ns = state_read_time(&in);
    ret->wall = state_read_time(&in);
    ret->mono = state_read_time(&in);
    ret->hello = state_read_text(&in, ETW_MAX_BATCH);
    *at = (size_t)(in.at - all.at);
    return !in.bad;
}

static bool check_greetings(struct strand *s)
{
    struct greeting g;
    size_t at = 0;

    while (read_greeting(s, &at, &g))
        if (!merge_set_hello(s->merge, g.hello))
            return false;
    return at == s->greetings.len;
}

bool order_restore_node(struct order *o, unsigned node, struct str state, struct err *e)
{
    struct state_in in = {state.at, state.at + state.len, false};

    if (!order_expect(o, node))
        return out_of_range(e);
    struct strand *s = o->strands[node];
    s->taken += state_read_number(&in);
    const uint64_t freed = state_read_number(&in);
    s->freed = MAX(s->freed, freed);
    s->state = state_read_count(&in, 1) ? STATE_OPEN : STATE_CLOSED;
    s->expected = state_read_count(&in, 1);
    s->node->aligned = state_read_count(&in, 1);
    s->key = state_read_time(&in);
    s->passed = state_read_time(&in);
    s->offset = state_read_time(&in);
    struct str name = state_read_text(&in, ETW_MAX_BLOCK);
    s->node->why = safe_keep(&s->why, raw_of(state_read_text(&in, ETW_MAX_BLOCK)));
    buf_clear(&s->greetings);
    buf_str(&s->greetings, state_read_text(&in, ETW_MAX_BLOCK));
    s->greeted = 0;
    s->group = o->groups;
    if (in.bad || !merge_restore(s->merge, o->restored, o->nrestored, &in) || !check_greetings(s)) {
        o->failed = true;
        return malformed_checkpoint(e);
    }
    s->node->name = safe_keep(&s->name, raw_of(name));
    o->greets = true;
    return true;
}

/*
 * Returns the next restored greeting as the event *ret. The greetings of one checkpoint come out in their order; the
 * greetings of several checkpoints are merged by the times of their batches. After the last greeting, the hello of each
 * node is again the one that was saved last. Returns false if there is no greeting left.
 */
static bool give_greeting(struct order *o, struct event **ret, unsigned *ret_node)
{
    struct strand *first = NULL;
    struct greeting least = {0}, own;
    size_t behind = 0;

    for (unsigned group = 1; group <= o->groups; group++) {
        struct strand *next = NULL;
        struct greeting g = {0};
        size_t next_behind = 0;
        for (size_t i = 0; i < o->count; i++) {
            struct strand *s = o->strands[i];
            size_t at = s ? s->greeted : 0;
            if (s && s->group == group && read_greeting(s, &at, &own) && (!next || own.number < g.number))
                next = s, g = own, next_behind = at;
        }
        if (next && (!first || g.batch_ns < least.batch_ns))
            first = next, least = g, behind = next_behind;
    }
    if (!first)
        return o->greets = false;
    first->greeted = behind;
    merge_set_hello(first->merge, least.hello);
    merge_own_event(first->merge, ETW_HELLO, &o->greeting);
    o->greeting.terms = first->node->hello;
    o->greeting.nterms = 1;
    o->greeting.wall_ns = least.wall;
    o->greeting.mono_ns = least.mono;
    o->greetings++;
    *ret = &o->greeting;
    *ret_node = first->node->index;
    return true;
}

enum fetched { FETCH_HEAD, FETCH_ENDED, FETCH_ANEW, FETCH_DRY, FETCH_BAD };

static enum fetched fetch_head(struct order *o, struct strand *s, struct err *e)
{
    for (;;) {
        if (s->loaded) {
            enum merge_got got = merge_next(s->merge, &s->head, e);
            if (got == MERGE_EVENT) {
                order_place(s);
                if (unlikely(s->head.kind == ETW_HELLO))
                    keep_greeting(o, s);
                else
                    s->newest = MAX(s->newest, s->head.wall_ns);
                return FETCH_HEAD;
            }
            if (got == MERGE_BAD)
                return FETCH_BAD;
            s->loaded = false;
            int64_t mono, wall;
            if (merge_passed(s->merge, &mono, &wall))
                s->passed = s->node->aligned ? add_offset(mono, s->offset) : wall;
            else
                s->passed = INT64_MAX;
            if (s->state == STATE_OPEN && merge_reached(s->merge, &mono, &wall)) {
                s->reached = true;
                s->reached_mono = mono;
                s->reached_wall = s->node->aligned ? add_offset(mono, s->offset) : wall;
            }
            if (s->state == STATE_CLOSING) {
                s->state = STATE_CLOSED;
                s->passed = INT64_MIN;
                return FETCH_ENDED;
            }
        }
        if (unlikely(s->wanted))
            save_strand(s);
        if (must_close(o, s)) {
            close_strand(s);
        } else if (begins_anew(o, s)) {
            s->anew = true;
            return FETCH_ANEW;
        } else if (s->first) {
            take_item(o, s);
            if (s->item->note ? take_note(s, s->item) : !take_batch(s, (struct str){s->item->bytes, s->item->len}, e))
                return s->item->note ? FETCH_HEAD : FETCH_BAD;
        } else if (o->borrowed.len) {
            struct str bytes = o->borrowed;
            o->borrowed = (struct str){NULL, 0};
            if (!take_batch(s, bytes, e))
                return FETCH_BAD;
        } else {
            return FETCH_DRY;
        }
    }
}

/* ---- all nodes ---- */

/* Returns true if the earliest event may come out before other nodes have passed its time. */
static bool may_release_earliest(const struct order *o)
{
    bool any = o->ending || o->queued > QUEUED_MAX;

    for (size_t i = 0; i < o->count && !any; i++)
        any = o->strands[i] && o->strands[i]->has_head && o->strands[i]->taken <= o->strands[i]->freed;
    return any;
}

enum order_got order_next(struct order *o, struct event **ret, unsigned *ret_node, struct err *e)
{
    struct strand *first = NULL;
    int64_t passed = INT64_MAX;

    if (unlikely(o->failed)) {
        err_set(e, ERR_RUN, "malformed events: cannot continue after them");
        return ORDER_BAD;
    }
    if (o->given)
        o->given->has_head = false;
    o->given = NULL;
    if (unlikely(o->greets) && give_greeting(o, ret, ret_node))
        return ORDER_EVENT;
    for (size_t i = 0; i < o->count; i++) {
        struct strand *s = o->strands[i];
        if (!s)
            continue;
        if (!s->has_head) {
            switch (fetch_head(o, s, e)) {
            case FETCH_HEAD:
                s->has_head = true;
                break;
            case FETCH_ENDED:
                *ret_node = (unsigned)i;
                return ORDER_ENDED;
            case FETCH_ANEW:
                *ret_node = (unsigned)i;
                return ORDER_ANEW;
            case FETCH_BAD:
                o->where = s->item ? s->item->where : o->where;
                o->failed = true;
                return ORDER_BAD;
            case FETCH_DRY:
                break;
            }
        }
        if (s->has_head) {
            if (!first || s->key < first->key)
                first = s;
        } else if (s->expected) {
            passed = MIN(passed, s->passed);
        }
    }
    if (!first || (first->key > passed && !may_release_earliest(o)))
        return ORDER_DRY;
    o->given = first;
    if (unlikely(o->first_key == INT64_MIN) && (event_is_traced(&first->head) || first->head.tally)) {
        o->first_key = first->head.wall_ns;
        o->first_ns = event_began(&first->head);
    }
    *ret = &first->head;
    *ret_node = first->node->index;
    return ORDER_EVENT;
}

void order_tell_passed(struct order *o, int64_t until)
{
    for (size_t i = 0; i < o->count; i++) {
        const struct strand *s = o->strands[i];
        if (!s || !s->reached)
            continue;
        const uint64_t beyond = s->reached_wall > until ? (uint64_t)s->reached_wall - (uint64_t)until : 0;
        s->node->passed = true;
        s->node->passed_mono_ns = (int64_t)((uint64_t)s->reached_mono - beyond);
        s->node->passed_wall_ns = (int64_t)((uint64_t)s->reached_wall - beyond);
    }
}

uint64_t order_where(const struct order *o)
{
    return o->where;
}

uint64_t order_waiting(const struct order *o, unsigned node)
{
    const struct strand *s = node < o->count ? o->strands[node] : NULL;

    return s && s->has_head && o->given != s ? s->taken : s && s->first ? s->taken + 1 : 0;
}

bool order_holds_up(const struct order *o, unsigned node)
{
    const struct strand *s = node < o->count ? o->strands[node] : NULL;

    if (!s || !s->expected || s->has_head || s->passed == INT64_MAX)
        return false;
    for (size_t i = 0; i < o->count; i++)
        if (o->strands[i] && o->strands[i]->has_head && o->strands[i]->key > s->passed)
            return true;
    return false;
}

size_t order_nodes(const struct order *o)
{
    return o->count;
}

const struct merge *order_merge(const struct order *o, unsigned node)
{
    return node < o->count && o->strands[node] ? o->strands[node]->merge : NULL;
}

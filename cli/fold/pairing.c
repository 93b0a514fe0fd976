/* SPDX-License-Identifier: Apache-2.0 */
#include "pairing.h"

#include <stdlib.h>
#include <string.h>

#include "../events/info.h"
#include "../ground/mem.h"
#include "../ground/table.h"

#define NONE UINT32_MAX
#define IN_USE (UINT32_MAX - 1)
#define PROCESSES (1u << 18)
#define LOOK 4096 /* search at most this many calls of a stack for the call of a result */
/*
 * If the newest open call of a process is from before a pause, and the process has more open calls than this, its next
 * call drops all of them.
 */
#define STALE_MOST 256
#define ENDED_MOST 4096              /* limit for the endless functions */
#define KEEP_ONE ((size_t)64 << 10)  /* a larger call is not copied */
#define SPARES 64                    /* limit for the freed copies kept for reuse */
#define SPARE_MOST ((size_t)4 << 10) /* a larger copy is not kept for reuse */

/* An open call. `up` and `down` link the calls of its process as a stack; `older` and `newer` link all calls by age. */
struct open_call {
    const struct fun *fun;
    const struct spec *spec, *shown;
    int64_t mono_ns, wall_ns;
    uint64_t number;
    struct event *kept;
    uint32_t kept_bytes;
    uint32_t up, down, older, newer, process;
    uint32_t loss;  /* value of torn[] for its node when the call began */
    uint32_t epoch; /* the last epoch of its node in which the call is known to have been open */
    uint8_t arity, fate;
    bool around;  /* see struct event_call */
    bool perhaps; /* the call may report no result, so a missing result is not counted */
    bool follows; /* the call below it on the stack is known to have been open when this call began */
};

/*
 * The span of time that an event begins or ends. Calls nest and are matched by function. A process has at most one open
 * garbage collection and one open time slice. LEAVES: the process has ended, so all its open spans end, too.
 */
enum what { WHAT_NOTHING, WHAT_CALL, WHAT_COLLECTION, WHAT_SLICE, WHATS };
enum part { BEGINS = 1, ENDS = 2, LEAVES = 4 };

static const struct {
    uint8_t what, part;
} pairing[ETW_KINDS] = {
    [ETW_CALL] = {WHAT_CALL, BEGINS},
    [ETW_RETURN_FROM] = {WHAT_CALL, ENDS},
    [ETW_EXCEPTION_FROM] = {WHAT_CALL, ENDS},
    [ETW_GC_MINOR_START] = {WHAT_COLLECTION, BEGINS},
    [ETW_GC_MINOR_END] = {WHAT_COLLECTION, ENDS},
    [ETW_GC_MAJOR_START] = {WHAT_COLLECTION, BEGINS},
    [ETW_GC_MAJOR_END] = {WHAT_COLLECTION, ENDS},
    [ETW_IN] = {WHAT_SLICE, BEGINS},
    [ETW_OUT] = {WHAT_SLICE, ENDS},
    [ETW_IN_EXITING] = {WHAT_SLICE, BEGINS},
    [ETW_OUT_EXITING] = {WHAT_SLICE, ENDS},
    [ETW_OUT_EXITED] = {WHAT_SLICE, ENDS | LEAVES},
    [ETW_EXIT] = {WHAT_NOTHING, LEAVES},
    [ETW_CLOSED] = {WHAT_NOTHING, LEAVES},
};

uint64_t pairing_begin(uint64_t kinds)
{
    unsigned ends = 0;
    uint64_t begin = 0;

    for (unsigned k = 0; k < ETW_LOST; k++)
        if (kinds >> k & 1 && pairing[k].part & ENDS && pairing[k].what != WHAT_CALL)
            ends |= 1u << pairing[k].what;
    for (unsigned k = 0; k < ETW_LOST; k++)
        if (pairing[k].part & BEGINS && ends >> pairing[k].what & 1)
            begin |= UINT64_C(1) << k;
    return begin;
}

struct process {
    uint64_t tracee;
    uint32_t node, next; /* next entry of the free list; IN_USE: the entry is not free */
    uint32_t top, depth; /* the newest open call; the number of open calls */
    struct span {
        int64_t ns;
        uint32_t loss;
        bool open;
    } spans[WHATS];
};

/* An endless function: it calls itself in a loop. */
struct ended {
    struct raw module, name; /* owned copies */
    uint32_t node;
    uint8_t arity;
};

struct pairing {
    struct pairing_options o;
    bool scoped;
    struct ended *ended;
    size_t nended, ended_cap;
    struct open_call *open;
    size_t open_cap, open_used;
    uint32_t open_free, oldest, newest;
    size_t count;
    struct process *processes;
    size_t process_cap, process_used;
    uint32_t process_free;
    struct table by_tracee;
    uint32_t losses[EVENT_NODES]; /* number of loss events of a node that may have lost one end of a span */
    uint32_t torn[EVENT_NODES];   /* number of loss events that may have lost results */
    uint32_t epochs[EVENT_NODES]; /* number of pauses of a node */
    bool gaps;                    /* calls that may still return are missing on the stack of some process */
    size_t kept_bytes;
    uint64_t incomplete;
    struct event_call result; /* event.call of the current event */
    struct event *result_kept;
    size_t result_bytes;
    struct event *spares[SPARES];
    size_t nspares;
    uint32_t last; /* the call that the current event has pushed, or NONE */
};

struct pairing *pairing_new(const struct pairing_options *o)
{
    struct pairing *c = mem_zalloc(sizeof(*c));

    c->o = *o;
    if (!c->o.max)
        c->o.max = 1u << 18;
    if (!c->o.keep_bytes)
        c->o.keep_bytes = (size_t)64 << 20;
    c->open_free = c->process_free = c->oldest = c->newest = c->last = NONE;
    return c;
}

void pairing_free(struct pairing *c)
{
    if (!c)
        return;
    for (uint32_t i = c->oldest; i != NONE; i = c->open[i].newer)
        free(c->open[i].kept);
    free(c->result_kept);
    while (c->nspares)
        free(c->spares[--c->nspares]);
    for (size_t i = 0; i < c->nended; i++)
        free((void *)c->ended[i].module.at);
    free(c->ended);
    free(c->open);
    free(c->processes);
    table_release(&c->by_tracee);
    free(c);
}

/* ---- processes ---- */

static uint32_t pairing_find(const struct pairing *c, uint32_t node, uint64_t tracee)
{
    for (uint32_t step = 0, i; (i = table_next(&c->by_tracee, hash_tracee(tracee, node), &step)) != TABLE_NONE;)
        if (c->processes[i].tracee == tracee && c->processes[i].node == node)
            return i;
    return NONE;
}

static uint32_t pairing_make(struct pairing *c, uint32_t node, uint64_t tracee)
{
    uint32_t i = c->process_free;

    if (i != NONE) {
        c->process_free = c->processes[i].next;
    } else {
        if (c->process_used == PROCESSES)
            return NONE;
        c->processes = mem_grow(c->processes, &c->process_cap, c->process_used + 1, sizeof(*c->processes));
        i = (uint32_t)c->process_used++;
    }
    c->processes[i] = (struct process){.tracee = tracee, .node = node, .next = IN_USE, .top = NONE};
    table_add(&c->by_tracee, hash_tracee(tracee, node), i);
    return i;
}

/* Frees the entry of a process in which nothing is open. */
static void pairing_leave(struct pairing *c, uint32_t i)
{
    struct process *p = &c->processes[i];

    if (p->top != NONE || p->spans[WHAT_COLLECTION].open || p->spans[WHAT_SLICE].open)
        return;
    table_remove(&c->by_tracee, hash_tracee(p->tracee, p->node), i);
    p->next = c->process_free;
    c->process_free = i;
}

/* ---- open calls ---- */

static void recycle_event(struct pairing *c, struct event *kept, size_t bytes)
{
    if (kept && bytes <= SPARE_MOST && c->nspares < SPARES)
        c->spares[c->nspares++] = kept;
    else
        free(kept);
}

static void drop_kept(struct pairing *c, struct open_call *o)
{
    c->kept_bytes -= o->kept_bytes;
    recycle_event(c, o->kept, o->kept_bytes);
    o->kept = NULL;
    o->kept_bytes = 0;
}

/* Removes a call from the stack of its process and the list by age. The caller takes over the copy of the call. */
static void unlink_call(struct pairing *c, uint32_t i)
{
    struct open_call *o = &c->open[i];
    struct process *p = &c->processes[o->process];

    if (o->up != NONE)
        c->open[o->up].down = o->down;
    else
        p->top = o->down;
    if (o->down != NONE)
        c->open[o->down].up = o->up;
    p->depth--;
    if (o->older != NONE)
        c->open[o->older].newer = o->newer;
    else
        c->oldest = o->newer;
    if (o->newer != NONE)
        c->open[o->newer].older = o->older;
    else
        c->newest = o->older;
    o->newer = c->open_free;
    c->open_free = i;
    c->count--;
}

/* Removes a call that will never get a result. Counts it as incomplete if it was certain to report a result. */
static void abandon_call(struct pairing *c, uint32_t i)
{
    struct open_call *o = &c->open[i];

    if (!o->perhaps)
        c->incomplete++;
    if (o->fate == CALL_HELD && !o->around && o->kept && c->o.dropped)
        c->o.dropped(c->o.ctx, o->kept);
    drop_kept(c, o);
    unlink_call(c, i);
}

static void forget_process(struct pairing *c, uint32_t i)
{
    while (c->processes[i].top != NONE)
        abandon_call(c, c->processes[i].top);
    memset(c->processes[i].spans, 0, sizeof(c->processes[i].spans));
    pairing_leave(c, i);
}

static void make_room(struct pairing *c)
{
    uint32_t process = c->open[c->oldest].process;

    c->gaps = true;
    abandon_call(c, c->oldest);
    pairing_leave(c, process);
}

/* Removes all open calls of a process, because most of them may have returned in pauses. */
static void drop_stale(struct pairing *c, uint32_t process)
{
    c->gaps = true;
    while (c->processes[process].top != NONE)
        abandon_call(c, c->processes[process].top);
}

static void add_open_call(struct pairing *c, struct event *e, bool perhaps)
{
    uint32_t p, i;
    size_t bytes = 0;

    while (c->count >= c->o.max)
        make_room(c);
    p = pairing_find(c, e->node->index, e->who->id);
    if (p == NONE && (p = pairing_make(c, e->node->index, e->who->id)) == NONE) {
        c->gaps = true;
        return;
    }
    uint32_t epoch = c->epochs[e->node->index];
    if (c->processes[p].depth > STALE_MOST && c->open[c->processes[p].top].epoch != epoch)
        drop_stale(c, p);
    if (c->open_free != NONE) {
        i = c->open_free;
        c->open_free = c->open[i].newer;
    } else {
        c->open = mem_grow(c->open, &c->open_cap, c->open_used + 1, sizeof(*c->open));
        i = (uint32_t)c->open_used++;
    }
    struct process *pr = &c->processes[p];
    if (c->scoped && pr->top == NONE)
        memset(pr->spans, 0, sizeof(pr->spans));
    c->open[i] = (struct open_call){
        .fun = e->fun,
        .spec = e->spec,
        .mono_ns = e->mono_ns,
        .wall_ns = e->wall_ns,
        .number = e->number,
        .up = NONE,
        .down = pr->top,
        .older = c->newest,
        .newer = NONE,
        .process = p,
        .loss = c->torn[e->node->index],
        .epoch = epoch,
        .arity = e->arity,
        .perhaps = perhaps,
        .follows = pr->top != NONE && c->open[pr->top].epoch == epoch,
    };
    if (pr->top != NONE)
        c->open[pr->top].up = i;
    pr->top = i;
    e->depth = pr->depth++;
    if (c->newest != NONE)
        c->open[c->newest].newer = i;
    else
        c->oldest = i;
    c->newest = i;
    c->count++;
    c->last = i;
    if (!c->o.keep)
        return;
    c->open[i].kept = event_keep(e, KEEP_ONE, c->nspares ? c->spares[--c->nspares] : NULL, &bytes);
    if (c->open[i].kept) {
        c->open[i].kept_bytes = (uint32_t)bytes;
        c->kept_bytes += bytes;
        while (c->kept_bytes > c->o.keep_bytes && c->oldest != i)
            make_room(c);
    }
}

/* Returns to - from. Times in a recording are untrusted, so the result saturates instead of overflowing. */
static int64_t duration_between(int64_t from, int64_t to)
{
    int64_t ns;

    return !__builtin_sub_overflow(to, from, &ns) ? ns : to < from ? 0 : INT64_MAX;
}

/*
 * Returns true if a result certainly belongs to the call `i`, the newest open call of its function. A call from before
 * a pause may have returned in the pause. The result may then belong to an older open call of the same function.
 */
static bool is_sure(const struct pairing *c, uint32_t i, uint32_t epoch)
{
    const struct open_call *o = &c->open[i];
    unsigned looked = 0;

    if (o->epoch == epoch)
        return true;
    if (c->gaps)
        return false;
    for (uint32_t at = o->down; at != NONE; at = c->open[at].down)
        if ((c->open[at].fun == o->fun && c->open[at].arity == o->arity) || ++looked == LOOK)
            return false;
    return true;
}

static void finish_open_call(struct pairing *c, struct event *e)
{
    uint32_t p = pairing_find(c, e->node->index, e->who->id), i = NONE;
    unsigned looked = 0;

    if (p != NONE)
        for (i = c->processes[p].top; i != NONE; i = c->open[i].down)
            if ((c->open[i].fun == e->fun && c->open[i].arity == e->arity) || ++looked == LOOK) {
                i = looked == LOOK ? NONE : i;
                break;
            }
    if (i == NONE) {
        if (c->o.wants_return && c->o.wants_return(c->o.ctx, e) == 1 && !pairing_ended(c, e))
            c->incomplete++;
        e->depth = p == NONE ? 0 : c->processes[p].depth;
        return;
    }
    while (c->processes[p].top != i)
        abandon_call(c, c->processes[p].top);
    struct open_call *o = &c->open[i];
    uint32_t epoch = c->epochs[e->node->index];
    c->result = (struct event_call){
        .mono_ns = o->mono_ns,
        .wall_ns = o->wall_ns,
        .number = o->number,
        .event = o->kept,
        .fate = o->fate,
        .around = o->around,
        .spec = o->spec,
        .shown = o->shown,
        .complete = o->loss == c->torn[e->node->index] && !e->doubtful && is_sure(c, i, epoch),
    };
    c->result_kept = o->kept;
    c->result_bytes = o->kept_bytes;
    c->kept_bytes -= o->kept_bytes;
    o->kept = NULL;
    o->kept_bytes = 0;
    e->call = &c->result;
    if (c->result.complete)
        e->dur_ns = duration_between(o->mono_ns, e->mono_ns);
    else
        c->incomplete++;
    if (c->result.complete && o->follows && o->down != NONE)
        c->open[o->down].epoch = epoch; /* the call below is still open, because it was open when this call began */
    unlink_call(c, i);
    e->depth = c->processes[p].depth;
    pairing_leave(c, p);
}

/* Begins a garbage collection or a time slice, or ends one and sets the event's duration. */
static void update_span(struct pairing *c, struct event *e, enum what what, bool begins)
{
    uint32_t p = pairing_find(c, e->node->index, e->who->id), loss = c->losses[e->node->index];

    if (begins && p == NONE)
        p = pairing_make(c, e->node->index, e->who->id);
    if (p == NONE)
        return;
    struct span *s = &c->processes[p].spans[what];
    e->depth = c->processes[p].depth;
    if (begins) {
        *s = (struct span){.ns = e->mono_ns, .loss = loss, .open = true};
        return;
    }
    if (s->open && s->loss == loss && !e->doubtful)
        e->dur_ns = duration_between(s->ns, e->mono_ns);
    s->open = false;
    pairing_leave(c, p);
}

static void pair_call(struct pairing *c, struct event *e)
{
    int wants = c->o.wants_return && !pairing_ended(c, e) ? c->o.wants_return(c->o.ctx, e) : 0;
    uint32_t p;

    e->expects_return = wants;
    if (wants)
        add_open_call(c, e, wants == 2);
    else if (c->count && (p = pairing_find(c, e->node->index, e->who->id)) != NONE)
        e->depth = c->processes[p].depth;
}

static void count_losses(struct pairing *c, const struct event *e)
{
    bool tears = false, spans = false;

    for (enum etw_loss l = 0; l < ETW_LOSSES; l++) {
        tears |= event_loss_tears(l) && e->lost[l];
        spans |= l != ETW_LOST_REQUEST && e->lost[l];
    }
    c->losses[e->node->index] += spans;
    c->torn[e->node->index] += tears;
}

/* Sets the duration of a system event that contains {timeout, Milliseconds}. */
static void told_duration(struct event *e)
{
    int64_t ms;

    if (info_number(e, wire_skip(e->terms.at), "timeout", &ms) && ms >= 0 && ms < INT64_MAX / 1000000)
        e->dur_ns = ms * 1000000;
}

void pairing_event(struct pairing *c, struct event *e)
{
    enum what what = pairing[e->kind].what;
    unsigned part = pairing[e->kind].part;
    uint32_t p;

    if (c->result_kept) {
        recycle_event(c, c->result_kept, c->result_bytes);
        c->result_kept = NULL;
    }
    c->last = NONE;
    if (what == WHAT_CALL && part == BEGINS)
        pair_call(c, e);
    else if (what == WHAT_CALL)
        finish_open_call(c, e);
    else if (what != WHAT_NOTHING)
        update_span(c, e, what, part == BEGINS);
    else if (e->kind == ETW_LOST)
        count_losses(c, e);
    else if (e->kind == ETW_SYSTEM)
        told_duration(e);
    else if (!(part & LEAVES) && c->count && (p = pairing_find(c, e->node->index, e->who->id)) != NONE)
        e->depth = c->processes[p].depth;
    if (part & LEAVES && (p = pairing_find(c, e->node->index, e->who->id)) != NONE)
        forget_process(c, p);
}

void pairing_keep(struct pairing *c, bool keep)
{
    c->o.keep = keep;
}

void pairing_scope(struct pairing *c, bool scoped)
{
    c->scoped = scoped;
}

void pairing_fate(struct pairing *c, enum call_fate fate, const struct spec *shown)
{
    if (c->last == NONE)
        return;
    c->open[c->last].fate = (uint8_t)fate;
    c->open[c->last].shown = shown;
}

static bool is_in_views(const struct open_call *o)
{
    return o->fate == CALL_SHOWN || o->around;
}

/*
 * Searches from the top of the stack down to the first call that the views have. They have the calls below it, too.
 */
void pairing_around(struct pairing *c, const struct event *e,
                    void (*show)(void *ctx, const struct event *call, enum call_fate fate), void *ctx)
{
    uint32_t p = pairing_find(c, e->node->index, e->who->id), i = p == NONE ? NONE : c->processes[p].top, first = NONE;

    if (i != NONE && i == c->last)
        i = c->open[i].down;
    for (uint32_t at = i; at != NONE && !is_in_views(&c->open[at]); at = c->open[at].down)
        first = at;
    for (uint32_t at = first; at != NONE && at != c->last; at = c->open[at].up) {
        struct open_call *o = &c->open[at];
        if (!o->kept)
            continue;
        o->around = true;
        show(ctx, o->kept, o->fate);
    }
}

static bool is_named(struct raw module, struct raw name, int64_t arity, const struct ended *x)
{
    return arity == x->arity && raw_same(module, x->module) && raw_same(name, x->name);
}

bool pairing_ended(const struct pairing *c, const struct event *e)
{
    for (size_t i = 0; i < c->nended; i++)
        if (c->ended[i].node == e->node->index && is_named(e->fun->module, e->fun->name, e->arity, &c->ended[i]))
            return true;
    return false;
}

uint64_t pairing_endless(const struct pairing *c)
{
    return c->nended;
}

void pairing_end(struct pairing *c, int node, struct raw module, struct raw function, int64_t arity)
{
    if (arity < 0 || arity > UINT8_MAX || c->nended == ENDED_MOST)
        return;
    for (size_t i = 0; i < c->nended; i++)
        if (c->ended[i].node == (uint32_t)node && is_named(module, function, arity, &c->ended[i]))
            return;
    c->ended = mem_grow(c->ended, &c->ended_cap, c->nended + 1, sizeof(*c->ended));
    struct ended *x = &c->ended[c->nended++];
    char *names = mem_alloc(module.len + function.len + 1);
    memcpy(names, module.at, module.len);
    memcpy(names + module.len, function.at, function.len);
    *x = (struct ended){
        .module = raw_bytes(names, module.len),
        .name = raw_bytes(names + module.len, function.len),
        .node = (uint32_t)node,
        .arity = (uint8_t)arity,
    };
    for (uint32_t i = c->oldest, newer; i != NONE; i = newer) {
        struct open_call *o = &c->open[i];
        uint32_t p = o->process;
        newer = o->newer;
        if (c->processes[p].node != (uint32_t)node || !is_named(o->fun->module, o->fun->name, o->arity, x))
            continue;
        o->perhaps = true; /* keeps abandon_call() from counting the call */
        abandon_call(c, i);
        pairing_leave(c, p);
    }
}

void pairing_each_open(const struct pairing *c, unsigned node, void (*show)(void *ctx, const struct pairing_open *call),
                       void *ctx)
{
    for (uint32_t i = c->oldest; i != NONE; i = c->open[i].newer) {
        const struct open_call *o = &c->open[i];
        const struct process *p = &c->processes[o->process];
        if (p->node == node && !o->perhaps && o->loss == c->torn[node] && is_sure(c, i, c->epochs[node]))
            show(ctx, &(struct pairing_open){o->fun, o->arity, p->tracee, o->mono_ns});
    }
}

void pairing_forget(struct pairing *c, int node)
{
    for (uint32_t i = 0; i < c->process_used; i++)
        if (c->processes[i].next == IN_USE && (node < 0 || c->processes[i].node == (uint32_t)node))
            forget_process(c, i);
}

void pairing_begin_run(struct pairing *c, int node)
{
    size_t kept = 0;

    pairing_forget(c, node);
    for (size_t i = 0; i < c->nended; i++)
        if (c->ended[i].node != (uint32_t)node)
            c->ended[kept++] = c->ended[i];
        else
            free((void *)c->ended[i].module.at);
    c->nended = kept;
}

void pairing_resume(struct pairing *c, const struct event_node *node)
{
    c->epochs[node->index]++;
}

bool pairing_kept(const struct pairing *c)
{
    return c->last != NONE && c->open[c->last].kept;
}

uint64_t pairing_incomplete(const struct pairing *c)
{
    return c->incomplete;
}

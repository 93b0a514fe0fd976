/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks.h"

#include <stdlib.h>

#include "../events/names.h"
#include "../events/notice.h"
#include "pairing.h"

#define PROCESSES 32768 /* limit for the processes that have calls */
#define DEPTH 1000      /* limit for the open calls of a process */
#define DONE 4096       /* limit for the ended calls of one process that are not in the tree yet */
#define DONE_ALL 500000 /* limit for the ended calls of all processes that are not in the tree yet */

/* A call. The members key, file and caller are numbers of keys (stack_key). */
struct frame {
    uint32_t depth, key, file, line;
    uint32_t caller; /* 0: unknown */
    int64_t start;
    uint64_t inner_ns; /* duration of the calls inside of this call that are in the tree already */
};

struct done {
    struct frame frame;
    int64_t end;
};

/*
 * A process with its open and ended calls. Ended calls wait until the outermost call around them ends, or until too
 * many wait, because a filter on durations shows a call after the calls inside of it.
 */
struct stack_process {
    uint64_t tracee;
    uint32_t node, nframes;
    uint32_t root;        /* the tree node above the calls of the process */
    struct frame *frames; /* the open calls */
    size_t frames_cap;
    struct done *done;
    size_t ndone, done_cap;
};

void stacks_init(struct stacks *s)
{
    *s = (struct stacks){.room = 128, .n = 1, .nkeys = 1};
    s->nodes = mem_grow(NULL, &s->cap, 64, sizeof(*s->nodes));
    s->nodes[0] = (struct stack_node){0};
    s->keys = mem_grow(NULL, &s->keys_cap, 64, sizeof(*s->keys));
    s->keys[0] = (struct stack_key){.type = STACK_ROOT};
    arena_init(&s->names);
    s->processes = mem_alloc(s->room * sizeof(*s->processes));
}

static void stacks_forget(struct stack_process *p)
{
    free(p->frames);
    free(p->done);
}

void stacks_release(struct stacks *s)
{
    for (size_t i = 0; i < s->nprocesses; i++)
        stacks_forget(&s->processes[i]);
    free(s->processes);
    free(s->nodes);
    table_release(&s->by_tracee);
    free(s->keys);
    table_release(&s->by_key);
    arena_release(&s->names);
    buf_release(&s->file);
}

static struct raw keep_name(struct stacks *s, struct raw name)
{
    return raw_bytes(arena_strndup(&s->names, raw_view(name).at, name.len), name.len);
}

static bool same_key(const struct stack_key *a, const struct stack_key *b)
{
    return a->type == b->type && a->arity == b->arity && raw_same(a->name, b->name) && raw_same(a->module, b->module);
}

/* Returns the number of a key. Adds a copy of the key if it is new. */
static uint32_t stacks_key(struct stacks *s, uint32_t hash, const struct stack_key *key)
{
    uint32_t number;

    for (uint32_t step = 0; (number = table_next(&s->by_key, hash, &step)) != TABLE_NONE;)
        if (same_key(&s->keys[number], key))
            return number;
    number = (uint32_t)s->nkeys++;
    s->keys = mem_grow(s->keys, &s->keys_cap, s->nkeys, sizeof(*s->keys));
    s->keys[number] = *key;
    s->keys[number].module = keep_name(s, key->module);
    s->keys[number].name = keep_name(s, key->name);
    table_add(&s->by_key, hash, number);
    return number;
}

static uint32_t key_of_function(struct stacks *s, uint32_t hash, struct raw module, struct raw name, int64_t arity)
{
    const struct stack_key key = {.type = STACK_FUNCTION, .module = module, .name = name, .arity = arity};

    return stacks_key(s, hash * 31u + (uint32_t)arity, &key);
}

static uint32_t key_of_mfa(struct stacks *s, const struct mfa *m)
{
    bool cut;

    return key_of_function(s, fun_hash(m->module, m->function), m->module, m->function, mfa_arity(m, &cut));
}

/* Returns the number of the key of a node or a file. */
static uint32_t key_of_name(struct stacks *s, enum stack_key_type type, struct raw name)
{
    const struct stack_key key = {.type = type, .name = name};

    return stacks_key(s, hash_text(HASH_BEGIN, raw_view(name)), &key);
}

/* Returns the child of a tree node for a function that is called from this line. Creates the child if needed. */
static uint32_t find_or_add_child(struct stacks *s, uint32_t parent, uint32_t key, uint32_t file, uint32_t line)
{
    uint32_t i = s->nodes[parent].child;

    for (; i; i = s->nodes[i].sibling)
        if (s->nodes[i].key == key && s->nodes[i].line == line && s->nodes[i].file == file)
            return i;
    if (s->n >= STACKS_MAX) {
        s->full = true;
        return parent;
    }
    s->nodes = mem_grow(s->nodes, &s->cap, s->n + 1, sizeof(*s->nodes));
    i = (uint32_t)s->n++;
    s->nodes[i] = (struct stack_node){.parent = parent,
                                      .sibling = s->nodes[parent].child,
                                      .key = key,
                                      .file = file,
                                      .line = line};
    s->nodes[parent].child = i;
    return i;
}

/* Removes idle processes from the array, and grows the array if that does not free enough. */
static void make_room(struct stacks *s)
{
    size_t busy = 0;

    table_clear(&s->by_tracee);
    for (size_t i = 0; i < s->nprocesses; i++) {
        struct stack_process p = s->processes[i];
        if (!p.nframes && !p.ndone) {
            stacks_forget(&p);
            continue;
        }
        table_add(&s->by_tracee, hash_tracee(p.tracee, p.node), (uint32_t)busy);
        s->processes[busy++] = p;
    }
    s->nprocesses = busy;
    s->idle = 0;
    while (busy * 2 >= s->room && s->room < PROCESSES)
        s->room *= 2;
    s->processes = mem_realloc(s->processes, s->room * sizeof(*s->processes));
}

/* Returns the tree node above the outermost calls of an Erlang node. */
static uint32_t root_of(struct stacks *s, const struct event *e)
{
    if (!s->by_node)
        return 0;
    return find_or_add_child(s, 0, key_of_name(s, STACK_NODE, raw_of(safe_view(e->node->name))), 0, 0);
}

static struct stack_process *process_of(struct stacks *s, const struct event *e, bool make)
{
    uint32_t hash = hash_tracee(e->who->id, e->node->index);

    for (uint32_t step = 0, i; (i = table_next(&s->by_tracee, hash, &step)) != TABLE_NONE;)
        if (s->processes[i].tracee == e->who->id && s->processes[i].node == e->node->index)
            return &s->processes[i];
    if (!make)
        return NULL;
    if (s->nprocesses == s->room) {
        /* too few processes are idle to justify a scan of the array */
        if (s->room == PROCESSES && s->idle < PROCESSES / 8)
            return NULL;
        make_room(s);
        if (s->nprocesses == s->room)
            return NULL;
    }
    table_add(&s->by_tracee, hash, (uint32_t)s->nprocesses);
    struct stack_process *p = &s->processes[s->nprocesses++];
    *p = (struct stack_process){.tracee = e->who->id, .node = e->node->index, .root = root_of(s, e)};
    p->frames = mem_grow(NULL, &p->frames_cap, 8, sizeof(*p->frames));
    return p;
}

/* ---- calls and results ---- */

static int stacks_order(const void *a, const void *b)
{
    const struct done *x = a, *y = b;

    if (x->frame.start != y->frame.start)
        return x->frame.start < y->frame.start ? -1 : 1;
    return (x->frame.depth > y->frame.depth) - (x->frame.depth < y->frame.depth);
}

/* Returns the tree node of a call. If the caller is known but not traced, the node is below a node for the caller. */
static uint32_t node_of(struct stacks *s, uint32_t parent, const struct frame *f)
{
    if (f->caller && s->nodes[parent].key != f->caller)
        parent = find_or_add_child(s, parent, f->caller, 0, 0);
    return find_or_add_child(s, parent, f->key, f->file, f->line);
}

/* Returns the duration of a call without its inner calls. */
static uint64_t own_ns(const struct done *d)
{
    uint64_t took = (uint64_t)(d->end - d->frame.start);

    return took - MIN(took, d->frame.inner_ns);
}

/*
 * Adds the ended calls of a process to the tree, each below the calls around it. Calls around it that are still open
 * get a tree node already.
 */
static void settle_process(struct stacks *s, struct stack_process *p)
{
    uint32_t open[DEPTH], outer[DEPTH], nodes[DEPTH], depth = 0;

    if (!p->ndone)
        return;
    if (p->ndone > 1)
        qsort(p->done, p->ndone, sizeof(*p->done), stacks_order);
    for (uint32_t i = 0; i < p->nframes; i++)
        open[i] = node_of(s, i ? open[i - 1] : p->root, &p->frames[i]);
    for (uint32_t i = 0; i < p->ndone; i++) {
        struct done *d = &p->done[i];
        uint64_t took = (uint64_t)(d->end - d->frame.start);
        uint32_t parent = p->root, k = 0;
        while (depth && (p->done[outer[depth - 1]].frame.depth >= d->frame.depth ||
                         p->done[outer[depth - 1]].end < d->frame.start))
            depth--;
        if (depth) {
            struct done *o = &p->done[outer[depth - 1]];
            parent = nodes[depth - 1];
            s->nodes[parent].own_ns -= MIN(took, own_ns(o));
            o->frame.inner_ns += took;
        } else {
            while (k < p->nframes && p->frames[k].depth < d->frame.depth && p->frames[k].start <= d->frame.start)
                parent = open[k++];
            if (k)
                p->frames[k - 1].inner_ns += took;
        }
        uint32_t node = node_of(s, parent, &d->frame);
        s->nodes[node].count++;
        s->nodes[node].own_ns += own_ns(d);
        if (depth < DEPTH) {
            outer[depth] = i;
            nodes[depth++] = node;
        }
    }
    s->ndone -= p->ndone;
    p->ndone = 0;
    s->idle += !p->nframes;
    if (p->done_cap > DONE / 16) { /* free an unusually large array, because there may be many processes */
        free(p->done);
        p->done = NULL;
        p->done_cap = 0;
    }
}

void stacks_settle(struct stacks *s)
{
    for (size_t i = 0; i < s->nprocesses; i++)
        settle_process(s, &s->processes[i]);
    s->top = s->by_node && s->nodes[0].child == 1 && !s->nodes[1].sibling;
}

/* Drops the open calls of a process at this depth and deeper, because their results will not come. */
static void drop_frames(struct stacks *s, struct stack_process *p, uint32_t depth)
{
    if (!p->nframes || p->frames[p->nframes - 1].depth < depth)
        return;
    settle_process(s, p);
    while (p->nframes && p->frames[p->nframes - 1].depth >= depth)
        p->nframes--;
    s->idle += !p->nframes;
}

static void read_caller(struct stacks *s, const struct event *e, struct frame *f)
{
    struct mfa m;

    if (!mfa_read(e, e->caller, &m, &s->file))
        return;
    f->caller = key_of_mfa(s, &m);
    if (m.file.len && m.line > 0 && m.line <= INT32_MAX) {
        f->file = key_of_name(s, STACK_FILE, mfa_base_name(m.file));
        f->line = (uint32_t)m.line;
    }
}

static void enter_call(struct stacks *s, const struct event *e)
{
    struct stack_process *p = process_of(s, e, true);
    struct frame f = {.depth = e->depth, .start = e->mono_ns};

    if (!p) {
        s->full = true;
        return;
    }
    drop_frames(s, p, e->depth);
    if (p->nframes == DEPTH) {
        s->full = true;
        return;
    }
    f.key = key_of_function(s, e->fun->hash, e->fun->module, e->fun->name, e->arity);
    if (s->callers && e->caller)
        read_caller(s, e, &f);
    p->frames = mem_grow(p->frames, &p->frames_cap, p->nframes + 1u, sizeof(*p->frames));
    p->frames[p->nframes++] = f;
}

static void stacks_leave(struct stacks *s, const struct event *e)
{
    struct stack_process *p = process_of(s, e, false);

    if (!p || !e->call)
        return;
    drop_frames(s, p, e->depth + 1);
    if (!p->nframes || p->frames[p->nframes - 1].depth != e->depth)
        return;
    if (e->dur_ns < 0) { /* it is uncertain which call has returned, so the duration is unknown */
        drop_frames(s, p, e->depth);
        return;
    }
    p->done = mem_grow(p->done, &p->done_cap, p->ndone + 1, sizeof(*p->done));
    p->done[p->ndone++] = (struct done){p->frames[--p->nframes], e->mono_ns};
    s->ndone++;
    if (!e->depth || p->ndone >= DONE)
        settle_process(s, p);
    else if (s->ndone >= DONE_ALL)
        stacks_settle(s);
}

/* Adds a stack trace. The first frame of the trace is the innermost call, which becomes the deepest node. */
static void add_trace(struct stacks *s, const struct event *e)
{
    const uint8_t *at = e->stack, *frames[64], *el;
    size_t n = 0;

    if (!wire_list(&at))
        return;
    uint32_t node = root_of(s, e);
    while (n < ARRAY_LEN(frames) && (el = wire_list_next(&at)))
        frames[n++] = el;
    while (n-- > 0) {
        struct mfa m;
        if (mfa_read(e, frames[n], &m, NULL))
            node = find_or_add_child(s, node, key_of_mfa(s, &m), 0, 0);
    }
    s->nodes[node].count += MAX(e->weight, 1);
    s->traces = true;
}

/*
 * Removes the open calls of an endless function in all processes of the node. Otherwise later calls would appear inside
 * of them.
 */
static void close_endless(struct stacks *s, const struct event *e, const struct mfa *m)
{
    uint32_t key = key_of_mfa(s, m);

    for (size_t i = 0; i < s->nprocesses; i++) {
        struct stack_process *p = &s->processes[i];
        uint32_t kept = 0;
        if (p->node != e->node->index)
            continue;
        for (uint32_t k = 0; k < p->nframes; k++)
            if (p->frames[k].key != key)
                p->frames[kept++] = p->frames[k];
        s->idle += p->nframes && !kept && !p->ndone;
        p->nframes = kept;
    }
}

void stacks_event(struct stacks *s, const struct event *e)
{
    struct mfa m;

    if (notice_endless(e, &m)) {
        close_endless(s, e, &m);
        return;
    }
    if (e->stack)
        add_trace(s, e);
    else if (s->traces)
        return;
    else if (e->kind == ETW_CALL && e->expects_return)
        enter_call(s, e);
    else if (event_is_result(e))
        stacks_leave(s, e);
    else if (e->kind == ETW_EXIT || e->kind == ETW_OUT_EXITED) {
        struct stack_process *p = process_of(s, e, false);
        if (p)
            drop_frames(s, p, 0), settle_process(s, p);
    }
}

uint64_t stacks_own(const struct stacks *s, uint32_t node)
{
    return s->traces ? s->nodes[node].count : s->nodes[node].own_ns;
}

uint64_t *stacks_totals(const struct stacks *s)
{
    uint64_t *totals = mem_zalloc(s->n * sizeof(*totals));

    /* go backwards, because children come after their parents in the array */
    for (uint32_t i = (uint32_t)s->n; i-- > 0;) {
        totals[i] += stacks_own(s, i);
        if (i)
            totals[s->nodes[i].parent] += totals[i];
    }
    return totals;
}

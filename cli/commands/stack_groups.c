/* SPDX-License-Identifier: Apache-2.0 */
#include "stack_groups.h"

#include <stdlib.h>
#include <string.h>

#include "../erlang/term_print.h"
#include "../ground/mem.h"

#define FRAMES_MAX 4000000 /* limit for the number of frames in all groups */
#define NAMED_MOST 1000    /* limit for the number of processes in a request for names */

void stack_groups_release(struct stack_groups *g)
{
    for (size_t i = 0; i < g->count; i++)
        free(g->items[i].processes);
    free(g->items);
    free(g->stacks);
    free(g->frames);
    table_release(&g->by_stack);
    table_release(&g->by_initial);
}

/* ---- collecting ---- */

bool stack_rests(const char *status)
{
    return !strcmp(status, "waiting") || !strcmp(status, "suspended");
}

static uint32_t frame_hash(uint32_t hash, struct look_frame f)
{
    return hash * 31u + (f.fun ? f.fun->hash : 0) + (uint32_t)f.arity;
}

static bool same_frame(struct look_frame a, struct look_frame b)
{
    return a.fun == b.fun && a.arity == b.arity;
}

static bool same_frames(const struct look_frame *a, const struct look_frame *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!same_frame(a[i], b[i]))
            return false;
    return true;
}

static uint32_t stack_hash(const struct one_stack *like, const struct look_frame *frames)
{
    uint32_t hash = hash_text(HASH_BEGIN ^ like->node, (struct str){like->status, strlen(like->status)});

    for (size_t i = 0; i < like->count; i++)
        hash = frame_hash(hash, frames[i]);
    return hash;
}

/* Returns the index of the stack; SIZE_MAX: there is no such stack. */
static size_t stack_find(const struct stack_groups *g, const struct one_stack *like, const struct look_frame *frames)
{
    const uint32_t hash = stack_hash(like, frames);

    for (uint32_t step = 0, i; (i = table_next(&g->by_stack, hash, &step)) != TABLE_NONE;) {
        const struct one_stack *x = &g->stacks[i];
        if (x->node == like->node && x->count == like->count && !strcmp(x->status, like->status) &&
            same_frames(g->frames + x->first, frames, x->count))
            return i;
    }
    return SIZE_MAX;
}

/* Returns the index of the stack, and adds the stack if it is new. Returns SIZE_MAX if there is no room for it. */
static size_t stack_of(struct stack_groups *g, const struct one_stack *like, const struct look_frame *frames)
{
    const size_t found = stack_find(g, like, frames);

    if (found != SIZE_MAX || g->count == GROUPS_MAX || g->nframes + like->count > FRAMES_MAX)
        return found;
    g->stacks = mem_grow(g->stacks, &g->stacks_cap, g->nstacks + 1, sizeof(*g->stacks));
    g->frames = mem_grow(g->frames, &g->frames_cap, g->nframes + like->count + 1, sizeof(*g->frames));
    g->stacks[g->nstacks] = *like;
    g->stacks[g->nstacks].first = g->nframes;
    memcpy(g->frames + g->nframes, frames, like->count * sizeof(*frames));
    g->nframes += like->count;
    table_add(&g->by_stack, stack_hash(like, frames), (uint32_t)g->nstacks);
    return g->nstacks++;
}

static uint32_t group_hash(size_t stack, struct look_frame initial)
{
    return frame_hash((uint32_t)stack * 0x9e3779b1u, initial);
}

static struct stack_group *group_find(const struct stack_groups *g, size_t stack, struct look_frame initial)
{
    const uint32_t hash = group_hash(stack, initial);

    for (uint32_t step = 0, i; (i = table_next(&g->by_initial, hash, &step)) != TABLE_NONE;)
        if (g->items[i].stack == stack && same_frame(g->items[i].initial, initial))
            return &g->items[i];
    return NULL;
}

/*
 * Returns the group of the stack and the initial call, and adds the group if it is new. Returns NULL if there are too
 * many groups or frames.
 */
static struct stack_group *group_of(struct stack_groups *g, const struct one_stack *like,
                                    const struct look_frame *frames, struct look_frame initial)
{
    const size_t stack = stack_of(g, like, frames);

    if (stack == SIZE_MAX)
        return NULL;
    struct stack_group *found = group_find(g, stack, initial);
    if (found || g->count == GROUPS_MAX)
        return found;
    g->items = mem_grow(g->items, &g->cap, g->count + 1, sizeof(*g->items));
    g->items[g->count] = (struct stack_group){.stack = stack, .initial = initial};
    table_add(&g->by_initial, group_hash(stack, initial), (uint32_t)g->count);
    return &g->items[g->count++];
}

void stack_groups_drop(struct stack_groups *g, unsigned node, uint64_t left_out)
{
    struct stack_groups kept = {.running = g->running, .grown = g->grown};

    kept.looks = kept.left_out = g->left_out - left_out;
    for (size_t i = 0; i < g->count; i++) {
        struct stack_group *from = &g->items[i];
        const struct one_stack *of = &g->stacks[from->stack];
        if (of->node == node)
            continue;
        struct stack_group *to = group_of(&kept, of, g->frames + of->first, from->initial);
        const size_t stack = to->stack;
        *to = *from;
        to->stack = stack;
        kept.looks += from->looks;
        from->processes = NULL;
    }
    stack_groups_release(g);
    *g = kept;
}

/* Counts processes of a group in a pass. */
static void group_count(struct stack_group *x, uint64_t count, uint64_t pass)
{
    x->looks += count;
    if (!pass)
        x->first += count;
    if (pass != x->pass) {
        x->before = pass == x->pass + 1 ? x->now : 0;
        x->now = 0;
        x->pass = pass;
    }
    x->now += count;
}

void stack_groups_grow(struct stack_groups *g, unsigned node, uint64_t passes)
{
    for (size_t i = 0; i < g->count; i++) {
        struct stack_group *x = &g->items[i];
        if (g->stacks[x->stack].node != node)
            continue;
        const uint64_t last = x->pass + 1 == passes ? x->now : x->pass == passes ? x->before : 0;
        x->growth = (int64_t)last - (int64_t)x->first;
    }
}

void stack_groups_grow_from(struct stack_groups *g, const struct stack_groups *from)
{
    for (size_t i = 0; i < g->count; i++) {
        struct stack_group *x = &g->items[i];
        const struct one_stack *of = &g->stacks[x->stack];
        const size_t stack = stack_find(from, of, g->frames + of->first);
        const struct stack_group *was = stack == SIZE_MAX ? NULL : group_find(from, stack, x->initial);
        x->growth = (int64_t)x->looks - (int64_t)(was ? was->looks : 0);
    }
    g->grown = true;
}

static void add_process(struct stack_group *x, struct raw pid)
{
    struct look_process one = {0};

    safe_copy(one.pid, sizeof(one.pid), pid);
    for (size_t i = 0; i < x->nprocesses; i++)
        if (!strcmp(x->processes[i].pid, one.pid))
            return;
    if (x->nprocesses == STACK_PIDS_ALL)
        return;
    x->processes = mem_grow(x->processes, &x->processes_cap, x->nprocesses + 1, sizeof(*x->processes));
    x->processes[x->nprocesses++] = one;
}

/* Reads a stack: a list of numbers, each the index of a function in `functions`. Drops frames beyond STACK_FRAMES. */
static bool stack_take(struct etf *r, const struct look_frame *functions, size_t nfunctions, struct look_frame *frames,
                       size_t *ret_count)
{
    struct etf_head h;
    int64_t number;
    size_t n = 0;

    if (!etf_next(r, &h))
        return false;
    if (h.type == ETF_STRING) { /* the external term format encodes a list of small integers as a string */
        for (; n < h.text.len && n < STACK_FRAMES; n++) {
            unsigned char byte = (unsigned char)raw_view(h.text).at[n];
            if (byte >= nfunctions)
                return false;
            frames[n] = functions[byte];
        }
    } else if (h.type == ETF_LIST) {
        for (size_t i = 0; i < h.count; i++) {
            if (!etf_get_int(r, &number) || number < 0 || (size_t)number >= nfunctions)
                return false;
            if (n < STACK_FRAMES)
                frames[n++] = functions[number];
        }
        if (!etf_get_nil(r))
            return false;
    } else if (h.type != ETF_NIL) {
        return false;
    }
    *ret_count = n;
    return true;
}

/* Reads a group {Status, [Function], Initial, Idle, Count, [Pid], Ms} and adds it. */
static bool group_take(struct stack_groups *g, unsigned node, struct etf *r, const struct look_frame *functions,
                       size_t nfunctions, uint64_t pass)
{
    struct look_frame frames[STACK_FRAMES];
    struct one_stack like = {.node = node};
    struct raw status, idle, pid;
    struct etf pids;
    size_t npids;
    int64_t initial, count, ms;

    if (!etf_get_tuple(r, 7) || !etf_get_atom(r, &status) ||
        !stack_take(r, functions, nfunctions, frames, &like.count) || !etf_get_int(r, &initial) || initial < -1 ||
        initial >= (int64_t)nfunctions || !etf_get_atom(r, &idle) || !etf_get_int(r, &count) || !etf_take(r, &pids) ||
        !etf_get_int(r, &ms) || count < 0 || !etf_get_list(&pids, &npids))
        return false;
    safe_copy(like.status, sizeof(like.status), status);
    like.idle = raw_is(idle, "true");
    if (g->running && stack_rests(like.status))
        return true;
    g->looks += (uint64_t)count;
    struct stack_group *x = group_of(g, &like, frames, initial < 0 ? (struct look_frame){0} : functions[initial]);
    if (!x) {
        g->left_out += (uint64_t)count;
        return true;
    }
    group_count(x, (uint64_t)count, pass);
    x->waited_ms = MAX(x->waited_ms, ms);
    while (npids--) {
        if (!etf_get_bin(&pids, &pid))
            return false;
        add_process(x, pid);
    }
    return true;
}

bool stack_groups_add(struct stack_groups *g, unsigned node, const struct look_answer *a, uint64_t pass,
                      struct funs *funs, struct err *e)
{
    struct etf functions = a->functions, stacks = a->stacks;
    struct look_frame *frames = NULL;
    size_t nfunctions = 0, nstacks = 0;

    bool ok = etf_get_list(&functions, &nfunctions);
    if (ok)
        frames = mem_alloc((nfunctions + 1) * sizeof(*frames));
    for (size_t i = 0; ok && i < nfunctions; i++)
        ok = look_frame_read(&functions, funs, &frames[i]);
    ok = ok && etf_get_list(&stacks, &nstacks);
    for (size_t i = 0; ok && i < nstacks; i++)
        ok = group_take(g, node, &stacks, frames, nfunctions, pass);
    free(frames);
    return ok || err_set(e, ERR_RUN, "the node's answer about its stacks is malformed");
}

/* ---- names ---- */

bool stack_groups_ask_names(const struct stack_groups *g, unsigned node, int patience_ms, struct buf *to)
{
    struct buf pids = {0};
    size_t n = 0;

    /*
     * Adds the first process of each group, then the second one of each, and so on, so that each group gets names
     * before the limit is reached.
     */
    for (size_t k = 0, more = 1; more && n < NAMED_MOST; k++) {
        more = 0;
        for (size_t i = 0; i < g->count && n < NAMED_MOST; i++) {
            const struct stack_group *x = &g->items[i];
            if (g->stacks[x->stack].node != node || k >= x->nprocesses)
                continue;
            look_names_add(&pids, x->processes[k].pid);
            n++, more++;
        }
    }
    if (n)
        look_names_request(to, &pids, n, patience_ms);
    buf_release(&pids);
    return n > 0;
}

static uint32_t pid_hash(const struct look_process *p)
{
    return hash_text(HASH_BEGIN, (struct str){p->pid, strlen(p->pid)});
}

bool stack_groups_named(struct stack_groups *g, unsigned node, struct etf names)
{
    struct look_list list = look_list(names);
    struct look_process *named = NULL, one;
    struct table by_pid = {0};
    size_t n = 0, cap = 0;

    while (look_list_next(&list, &one)) {
        named = mem_grow(named, &cap, n + 1, sizeof(*named));
        named[n] = one;
        table_add(&by_pid, pid_hash(&one), (uint32_t)n++);
    }
    for (size_t i = 0; i < g->count; i++) {
        const struct stack_group *x = &g->items[i];
        for (size_t k = 0; g->stacks[x->stack].node == node && k < x->nprocesses; k++)
            for (uint32_t step = 0, at; (at = table_next(&by_pid, pid_hash(&x->processes[k]), &step)) != TABLE_NONE;)
                if (!strcmp(x->processes[k].pid, named[at].pid))
                    x->processes[k] = named[at];
    }
    table_release(&by_pid);
    free(named);
    return list.ok;
}

/* ---- views of stacks ---- */

static void wire_text(struct buf *b, struct raw text)
{
    uint16_t len = (uint16_t)MIN(text.len, 1020);

    buf_char(b, (char)ETW_T_ATOMTEXT);
    buf_add(b, &len, sizeof(len));
    buf_add(b, raw_view(text).at, len);
}

/* Encodes a stack as nodes send it: a list of {M, F, A}. */
static void wire_stack(struct buf *b, const struct look_frame *frames, size_t n)
{
    buf_char(b, (char)ETW_T_LIST);
    for (size_t i = 0; i < n; i++) {
        if (!frames[i].fun)
            continue;
        buf_char(b, (char)(ETW_T_TUPLE0 + 3));
        wire_text(b, frames[i].fun->module);
        wire_text(b, frames[i].fun->name);
        int16_t arity = (int16_t)frames[i].arity;
        buf_char(b, (char)ETW_T_INT16);
        buf_add(b, &arity, sizeof(arity));
    }
    buf_char(b, (char)ETW_T_END);
}

void stack_groups_show(const struct stack_groups *g, const struct event_node *nodes, int64_t from_ns, int64_t to_ns,
                       struct sink *view)
{
    struct buf stack = {0};
    static const struct tracee nobody;

    for (size_t i = 0; i < g->count; i++) {
        const struct stack_group *x = &g->items[i];
        const struct one_stack *of = &g->stacks[x->stack];
        buf_clear(&stack);
        wire_stack(&stack, g->frames + of->first, of->count);
        view->type->event(view, &(struct event){
                                    .kind = ETW_CALL,
                                    .mono_ns = i ? to_ns : from_ns,
                                    .wall_ns = i ? to_ns : from_ns,
                                    .node = &nodes[of->node],
                                    .who = &nobody,
                                    .stack = (const uint8_t *)stack.data,
                                    .weight = x->looks,
                                    .dur_ns = -1,
                                });
    }
    buf_release(&stack);
}

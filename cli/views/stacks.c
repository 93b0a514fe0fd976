#include "stacks.h"

#include <stdlib.h>

#include "../ground/mem.h"
#include "calls.h"
#include "ends.h"
#include "line.h"

#define PROCESSES 65536 /* slots, a power of two */
#define DEPTH 1000      /* open calls of a process that are followed */

struct stack_process {
    uint64_t tracee;
    uint32_t node, depth, cap;
    struct frame {
        uint32_t node;
        uint64_t inner_ns; /* taken by calls within */
    } *frames;             /* NULL: the slot is free */
};

void stacks_init(struct stacks *s, enum terms_style terms)
{
    *s = (struct stacks){.nprocesses = PROCESSES, .n = 1, .terms = terms};
    s->nodes = mem_grow(NULL, &s->cap, 64, sizeof(*s->nodes));
    s->nodes[0] = (struct stack_node){0};
    buf_add(&s->names, "all", 4);
    s->processes = mem_zalloc(s->nprocesses * sizeof(*s->processes));
}

void stacks_release(struct stacks *s)
{
    for (size_t i = 0; i < s->nprocesses; i++)
        free(s->processes[i].frames);
    free(s->processes);
    free(s->nodes);
    free(s->name_slots);
    buf_release(&s->names);
    buf_release(&s->text);
    buf_release(&s->file);
}

const char *stacks_name(const struct stacks *s, uint32_t node)
{
    return s->names.data + s->nodes[node].name;
}

static uint32_t hash_text(const char *text)
{
    uint32_t h = 2166136261u;

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

/* The offset of a name in the table of names, which keeps each once. */
static uint32_t name_of(struct stacks *s, const char *text)
{
    if (s->nnames * 2 >= s->nname_slots) {
        s->nname_slots = s->nname_slots ? s->nname_slots * 2 : 1024;
        free(s->name_slots);
        s->name_slots = mem_zalloc(s->nname_slots * sizeof(*s->name_slots));
        for (size_t at = 0; at < s->names.len; at += strlen(s->names.data + at) + 1) {
            size_t i = hash_text(s->names.data + at) & (s->nname_slots - 1);
            while (s->name_slots[i])
                i = (i + 1) & (s->nname_slots - 1);
            s->name_slots[i] = (uint32_t)at + 1;
        }
    }
    size_t i = hash_text(text) & (s->nname_slots - 1);
    for (; s->name_slots[i]; i = (i + 1) & (s->nname_slots - 1))
        if (!strcmp(s->names.data + s->name_slots[i] - 1, text))
            return s->name_slots[i] - 1;
    uint32_t at = (uint32_t)s->names.len;
    buf_add(&s->names, text, strlen(text) + 1);
    s->name_slots[i] = at + 1;
    s->nnames++;
    return at;
}

/* A function below a node, as it was called from this line of `file` (an offset into names). */
static uint32_t below_line(struct stacks *s, uint32_t parent, const char *text, uint32_t file, uint32_t line)
{
    if (s->n >= STACKS_MAX && !s->nodes[parent].child) {
        s->full = true;
        return parent;
    }
    uint32_t name = name_of(s, text), i = s->nodes[parent].child;
    for (; i; i = s->nodes[i].sibling)
        if (s->nodes[i].name == name && s->nodes[i].line == line && s->nodes[i].file == file)
            return i;
    if (s->n >= STACKS_MAX) {
        s->full = true;
        return parent;
    }
    s->nodes = mem_grow(s->nodes, &s->cap, s->n + 1, sizeof(*s->nodes));
    i = (uint32_t)s->n++;
    s->nodes[i] = (struct stack_node){.parent = parent, .sibling = s->nodes[parent].child, .name = name, .file = file, .line = line};
    s->nodes[parent].child = i;
    return i;
}

static uint32_t below(struct stacks *s, uint32_t parent, const char *text)
{
    return below_line(s, parent, text, 0, 0);
}

static size_t slot_of(const struct stacks *s, uint64_t tracee, uint32_t node)
{
    return (size_t)(((tracee ^ (uint64_t)node << 56) * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (s->nprocesses - 1);
}

/* Processes in which nothing is open need no place. */
static void forget_idle(struct stacks *s)
{
    struct stack_process *old = s->processes;

    s->processes = mem_zalloc(s->nprocesses * sizeof(*s->processes));
    s->used = 0;
    for (size_t i = 0; i < s->nprocesses; i++) {
        if (!old[i].depth) {
            free(old[i].frames);
            continue;
        }
        size_t at = slot_of(s, old[i].tracee, old[i].node);
        while (s->processes[at].frames)
            at = (at + 1) & (s->nprocesses - 1);
        s->processes[at] = old[i];
        s->used++;
    }
    free(old);
}

static struct stack_process *process_of(struct stacks *s, const struct event *e, bool make)
{
    size_t i = slot_of(s, e->who->id, e->node->index);

    for (; s->processes[i].frames; i = (i + 1) & (s->nprocesses - 1))
        if (s->processes[i].tracee == e->who->id && s->processes[i].node == e->node->index)
            return &s->processes[i];
    if (!make)
        return NULL;
    if (s->used * 2 >= s->nprocesses) {
        forget_idle(s);
        if (s->used * 2 >= s->nprocesses)
            return NULL;
        for (i = slot_of(s, e->who->id, e->node->index); s->processes[i].frames;)
            i = (i + 1) & (s->nprocesses - 1);
    }
    s->used++;
    s->processes[i] = (struct stack_process){.tracee = e->who->id, .node = e->node->index, .cap = 8};
    s->processes[i].frames = mem_alloc(8 * sizeof(struct frame));
    return &s->processes[i];
}

static void put_name(struct stacks *s, const struct event *e)
{
    buf_clear(&s->text);
    line_fun(&s->text, e, s->terms);
    buf_char(&s->text, '/');
    print_u64(&s->text, e->arity);
    buf_cstr(&s->text);
}

static void put_mfa(struct stacks *s, const struct line_mfa *m)
{
    buf_clear(&s->text);
    line_mfa_name(&s->text, m, s->terms);
    buf_cstr(&s->text);
}

/* The caller is not always one of those that are traced: then it stands between. */
static uint32_t below_caller(struct stacks *s, uint32_t parent, const struct event *e)
{
    struct line_mfa m;
    uint32_t file = 0, line = 0;

    if (line_read_mfa(e, e->caller, &m, &s->file)) {
        put_mfa(s, &m);
        if (strcmp(stacks_name(s, parent), s->text.data))
            parent = below(s, parent, s->text.data);
        if (m.file.len && m.line > 0 && m.line <= INT32_MAX) {
            buf_clear(&s->text);
            print_safe(&s->text, line_base_name(m.file));
            file = name_of(s, buf_cstr(&s->text));
            line = (uint32_t)m.line;
        }
    }
    put_name(s, e);
    return below_line(s, parent, s->text.data, file, line);
}

static void enter(struct stacks *s, const struct event *e)
{
    struct stack_process *p = process_of(s, e, true);

    if (!p) {
        s->full = true;
        return;
    }
    p->depth = MIN(p->depth, e->depth); /* what ended without telling */
    if (p->depth == DEPTH)
        return;
    if (p->depth == p->cap) {
        p->cap *= 2;
        p->frames = mem_realloc(p->frames, p->cap * sizeof(struct frame));
    }
    uint32_t parent = p->depth ? p->frames[p->depth - 1].node : 0, node;
    if (s->callers && e->caller)
        node = below_caller(s, parent, e);
    else
        put_name(s, e), node = below(s, parent, s->text.data);
    p->frames[p->depth++] = (struct frame){.node = node};
}

static void leave(struct stacks *s, const struct event *e)
{
    struct stack_process *p = process_of(s, e, false);

    if (!p || p->depth <= e->depth || !e->call)
        return;
    p->depth = e->depth;
    struct frame *f = &p->frames[e->depth];
    struct stack_node *n = &s->nodes[f->node];
    n->count++;
    if (e->dur_ns < 0)
        return;
    uint64_t dur = (uint64_t)e->dur_ns;
    n->total_ns += dur;
    n->own_ns += dur > f->inner_ns ? dur - f->inner_ns : 0;
    if (e->depth)
        p->frames[e->depth - 1].inner_ns += dur;
}

/* A stack trace has the innermost call first; the tree begins with the outermost. */
static void add_trace(struct stacks *s, const struct event *e)
{
    const uint8_t *at = e->stack, *frames[64], *el;
    size_t n = 0;
    uint32_t node = 0;

    if (!wire_list(&at))
        return;
    while (n < ARRAY_LEN(frames) && (el = wire_list_next(&at)))
        frames[n++] = el;
    while (n-- > 0) {
        struct line_mfa m;
        if (!line_read_mfa(e, frames[n], &m, &s->file))
            continue;
        put_mfa(s, &m);
        node = below(s, node, s->text.data);
    }
    s->nodes[node].count++;
    s->traces = true;
}

void stacks_event(struct stacks *s, const struct event *e)
{
    if (e->stack)
        add_trace(s, e);
    else if (s->traces)
        return;
    else if (e->kind == ETW_CALL && e->expects_return)
        enter(s, e);
    else if (event_is_result(e))
        leave(s, e);
    else if (e->kind == ETW_EXIT || e->kind == ETW_OUT_EXITED) {
        struct stack_process *p = process_of(s, e, false);
        if (p)
            p->depth = 0;
    }
}

uint64_t stacks_own(const struct stacks *s, uint32_t node)
{
    return s->traces ? s->nodes[node].count : s->nodes[node].own_ns;
}

uint64_t *stacks_totals(const struct stacks *s)
{
    uint64_t *totals = mem_zalloc(s->n * sizeof(*totals));

    for (uint32_t i = (uint32_t)s->n; i-- > 0;) { /* what hangs below a node was made after it */
        totals[i] += stacks_own(s, i);
        if (i)
            totals[s->nodes[i].parent] += totals[i];
    }
    return totals;
}

void stacks_missing(const struct stacks *s, struct buf *to, const struct totals *t, const char *prefix)
{
    ends_missing(to, t, prefix);
    if (s->full)
        buf_printf(to, "%s*** too many different stacks: the last ones stand in their callers ***\n", prefix);
}

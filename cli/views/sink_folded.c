/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folded view: each line has a stack and its cost, `a:f/1;b:g/2 1234`, for flame graph tools. With several nodes,
 * the outermost frame is the node. The cost is the own time of the innermost function in nanoseconds; with stack
 * traces, it is the number of times that the stack was seen.
 */
#include "../erlang/term_print.h"
#include "stack_text.h"

struct folded {
    struct sink sink;
    struct stacks stacks;
    struct stack_texts texts;
    struct buf path;
};

static bool open_folded(struct sink *sink, struct err *e)
{
    struct folded *f = (struct folded *)sink;

    (void)e;
    stacks_init(&f->stacks);
    f->stacks.by_node = true;
    return true;
}

static void event_folded(struct sink *s, const struct event *e)
{
    if (event_is_traced(e) || e->kind == ETW_NOTICE)
        stacks_event(&((struct folded *)s)->stacks, e);
}

static void put_path(struct folded *f, uint32_t node)
{
    if (f->stacks.nodes[node].parent > f->stacks.top) {
        put_path(f, f->stacks.nodes[node].parent);
        buf_char(&f->path, ';');
    }
    for (const char *p = stack_text(&f->texts, f->stacks.nodes[node].key); *p; p++)
        buf_char(&f->path, *p == ';' ? ':' : *p);
}

static void end_folded(struct sink *s, const struct totals *t)
{
    struct folded *f = (struct folded *)s;

    stacks_settle(&f->stacks);
    stack_texts_print(&f->texts, &f->stacks, s->look.terms);
    for (uint32_t i = f->stacks.top + 1; i < f->stacks.n; i++) {
        uint64_t value = stacks_own(&f->stacks, i);
        if (!value)
            continue;
        buf_clear(&f->path);
        put_path(f, i);
        buf_str(s->out, buf_view(&f->path));
        buf_char(s->out, ' ');
        print_u64(s->out, value);
        buf_char(s->out, '\n');
    }
    stack_text_missing(&f->stacks, s->out, t, "# ");
}

static void release_folded(struct sink *s)
{
    struct folded *f = (struct folded *)s;

    stacks_release(&f->stacks);
    stack_texts_release(&f->texts);
    buf_release(&f->path);
}

const struct sink_type sink_folded = {
    .name = "folded",
    .extensions = ".folded",
    .about = "stacks with their own time, for flame graph tools",
    .without_results = "shows nothing",
    .size = sizeof(struct folded),
    .flags = SINK_TIMES | SINK_STACKS | SINK_FOLDS,
    .open = open_folded,
    .event = event_folded,
    .end = end_folded,
    .release = release_folded,
};

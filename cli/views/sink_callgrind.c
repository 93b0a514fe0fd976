/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The callgrind view: the cost and the callees of each function, for callgrind_annotate and KCachegrind. Costs are
 * nanoseconds; for stack traces, they count how often each stack was seen.
 *
 * The call site and the caller's file are known only if the probe collects the caller (-> caller). A recursive call
 * adds to the number of calls but not to the time, because the time of the outer call includes that of the inner one.
 * An untraced caller is reported as called once, because its real count is unknown.
 */
#include <stdlib.h>

#include "../erlang/term_print.h"
#include "../ground/mem.h"
#include "stack_text.h"

struct callgrind {
    struct sink sink;
    struct stacks stacks;
    struct stack_texts texts;
};

/* A function: the first of its nodes in the tree of stacks, and its file. */
struct function {
    uint32_t first, file; /* 0: none or unknown */
    bool written;         /* the name was written once, so from now on the number of the function is enough */
};

static bool open_callgrind(struct sink *sink, struct err *e)
{
    struct callgrind *c = (struct callgrind *)sink;

    (void)e;
    stacks_init(&c->stacks);
    c->stacks.callers = true;
    return true;
}

static void event_callgrind(struct sink *s, const struct event *e)
{
    if (event_is_traced(e) || e->kind == ETW_NOTICE)
        stacks_event(&((struct callgrind *)s)->stacks, e);
}

static bool is_recursive(const struct stacks *s, uint32_t node)
{
    for (uint32_t up = s->nodes[node].parent; up; up = s->nodes[up].parent)
        if (s->nodes[up].key == s->nodes[node].key)
            return true;
    return false;
}

/* Writes a reference to a function. The number of the function is the offset of its name in `texts`. */
static void sink_callgrind_put_name(struct callgrind *c, const char *tag, struct function *all, uint32_t key)
{
    buf_printf(c->sink.out, all[key].written ? "%s=(%u)\n" : "%s=(%u) %s\n", tag, c->texts.at[key],
               stack_text(&c->texts, key));
    all[key].written = true;
}

static void put_file(struct callgrind *c, const char *tag, const struct function *f)
{
    buf_printf(c->sink.out, "%s=%s\n", tag, f->file ? stack_text(&c->texts, f->file) : "???");
}

static void sink_callgrind_put_function(struct callgrind *c, struct function *all, uint32_t key, const uint32_t *next,
                                        const uint64_t *totals)
{
    const struct stacks *s = &c->stacks;
    struct buf *to = c->sink.out;
    uint64_t own = 0;

    for (uint32_t i = all[key].first; i; i = next[i])
        own += stacks_own(s, i);
    buf_char(to, '\n');
    put_file(c, "fl", &all[key]);
    sink_callgrind_put_name(c, "fn", all, key);
    buf_printf(to, "0 %llu\n", (unsigned long long)own);
    for (uint32_t i = all[key].first; i; i = next[i])
        for (uint32_t k = s->nodes[i].child; k; k = s->nodes[k].sibling) {
            const struct stack_node *n = &s->nodes[k];
            put_file(c, "cfi", &all[n->key]);
            sink_callgrind_put_name(c, "cfn", all, n->key);
            buf_printf(to, "calls=%llu 0\n%u %llu\n", (unsigned long long)(s->traces ? totals[k] : MAX(n->count, 1)),
                       n->line, (unsigned long long)(is_recursive(s, k) ? 0 : totals[k]));
        }
}

static void end_callgrind(struct sink *sink, const struct totals *t)
{
    struct callgrind *c = (struct callgrind *)sink;
    struct stacks *s = &c->stacks;

    stacks_settle(s);
    stack_texts_print(&c->texts, s, sink->look.terms);
    struct function *all = mem_zalloc(s->nkeys * sizeof(*all));
    uint32_t *next = mem_zalloc(s->n * sizeof(*next));
    uint64_t *totals = stacks_totals(s);
    struct buf *to = sink->out;

    for (uint32_t i = (uint32_t)s->n; i-- > 1;) {
        struct function *f = &all[s->nodes[i].key];
        next[i] = f->first;
        f->first = i;
        if (s->nodes[i].file)
            all[s->nodes[s->nodes[i].parent].key].file = s->nodes[i].file;
    }
    buf_puts(to, "# callgrind format\nversion: 1\ncreator: etrace\n");
    stack_text_missing(s, to, t, "desc: Missing: ");
    buf_printf(to, "positions: line\nevents: %s\nsummary: %llu\n", s->traces ? "seen" : "ns",
               (unsigned long long)totals[0]);
    for (uint32_t i = 1; i < s->n; i++) {
        if (all[s->nodes[i].key].first == i)
            sink_callgrind_put_function(c, all, s->nodes[i].key, next, totals);
    }
    buf_printf(to, "\ntotals: %llu\n", (unsigned long long)totals[0]);
    free(all);
    free(next);
    free(totals);
}

static void release_callgrind(struct sink *s)
{
    struct callgrind *c = (struct callgrind *)s;

    stacks_release(&c->stacks);
    stack_texts_release(&c->texts);
}

const struct sink_type sink_callgrind = {
    .name = "callgrind",
    .extensions = ".callgrind",
    .about = "costs of each function, for callgrind_annotate and KCachegrind",
    .without_results = "shows nothing",
    .size = sizeof(struct callgrind),
    .flags = SINK_WHOLE | SINK_TIMES | SINK_FOLDS,
    .open = open_callgrind,
    .event = event_callgrind,
    .end = end_callgrind,
    .release = release_callgrind,
};

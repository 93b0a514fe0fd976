/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame view: a self-contained SVG with a script, or an HTML page (.html). The file contains the tree as numbers;
 * the script draws only frames that are wide enough to see. Where no script runs, plain shapes show the graph.
 */
#include <stdlib.h>

#include "../erlang/term_print.h"
#include "../ground/mem.h"
#include "flame_still.h"
#include "page.h"
#include "page_parts.h"
#include "stack_text.h"

struct flame {
    struct sink sink;
    struct page page;
    struct stacks stacks;
};

static bool open_flame(struct sink *sink, struct err *e)
{
    struct flame *f = (struct flame *)sink;

    (void)e;
    stacks_init(&f->stacks);
    f->stacks.by_node = true;
    return true;
}

static void event_flame(struct sink *sink, const struct event *e)
{
    struct flame *f = (struct flame *)sink;

    if (e->kind == ETW_NOTICE)
        stacks_event(&f->stacks, e);
    if (!event_is_traced(e))
        return;
    page_event(&f->page, e);
    stacks_event(&f->stacks, e);
}

/* Writes the name of each key, and returns the number that each key has in the output. */
static uint32_t *put_names(const struct stacks *s, const struct stack_texts *texts, struct buf *to)
{
    uint32_t *numbers = mem_zalloc(s->nkeys * sizeof(*numbers)), n = 0;

    json_next_line(to, false);
    json_put_array(to, "names");
    for (uint32_t key = 0; key < s->nkeys; key++) {
        if (s->top && key == s->nodes[s->top].key)
            continue;
        json_next_line(to, n == 0);
        page_string(to, raw_text(stack_text(texts, key)));
        numbers[key] = n++;
    }
    json_end_array(to);
    return numbers;
}

/* Draws the graph for where no script runs. */
static void put_still(const struct flame *f, const struct stack_texts *texts, struct str lines, struct page_still *ret)
{
    struct buf title = {0}, missing = {0};

    page_title(&f->page, &title, (struct str){NULL, 0});
    page_missing(lines, &missing, ", ");
    flame_still(ret, &f->stacks, texts, buf_view(&title), buf_view(&missing));
    buf_release(&title);
    buf_release(&missing);
}

static void end_flame(struct sink *sink, const struct totals *t)
{
    struct flame *f = (struct flame *)sink;
    const struct stacks *s = &f->stacks;
    enum page_kind kind = look_is_file(&sink->look, ".html") ? PAGE_FLAME_HTML : PAGE_FLAME_SVG;
    struct buf *to = sink->out, missing = {0};
    struct stack_texts texts = {0};
    struct page_still still = {0};

    stacks_settle(&f->stacks);
    stack_text_missing(s, &missing, t, "");
    stack_texts_print(&texts, s, sink->look.terms);
    put_still(f, &texts, buf_view(&missing), &still);
    page_begin(to, kind, &still);
    json_begin_object(to);
    page_members(&f->page, to, buf_view(&missing));
    json_put_bool(to, "seen", s->traces);
    uint32_t *numbers = put_names(s, &texts, to);
    json_next_line(to, false);
    json_put_array(to, "nodes");
    for (uint32_t i = s->top + 1; i < s->n; i++) {
        const struct stack_node *n = &s->nodes[i];
        json_uint(to, i - n->parent);
        json_uint(to, numbers[n->key]);
        json_uint(to, stacks_own(s, i));
        json_uint(to, n->count);
    }
    json_end_array(to);
    json_end_object(to);
    page_end(to, kind);
    free(numbers);
    stack_texts_release(&texts);
    buf_release(&still.shapes);
    buf_release(&missing);
}

static void release_flame(struct sink *sink)
{
    struct flame *f = (struct flame *)sink;

    page_release(&f->page);
    stacks_release(&f->stacks);
}

const struct sink_type sink_flame = {
    .name = "flame",
    .extensions = ".svg .html",
    .about = "an interactive flame graph, for a browser",
    .without_results = "shows nothing",
    .size = sizeof(struct flame),
    .flags = SINK_BINARY | SINK_WHOLE | SINK_TIMES | SINK_STACKS | SINK_FOLDS,
    .open = open_flame,
    .event = event_flame,
    .end = end_flame,
    .release = release_flame,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pprof view: a profile for pprof and the tools that read its files, as an uncompressed protocol buffer
 * (github.com/google/pprof, proto/profile.proto). Each stack is a sample, with the number of its calls and the own time
 * of its innermost function. For stack traces, a sample has the number of times that the stack was seen. With several
 * nodes, the outermost frame is the node.
 */
#include <stdlib.h>
#include <string.h>

#include "../ground/mem.h"
#include "page.h"
#include "stack_text.h"

/* Field numbers of the messages that this file writes. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION,
    PROFILE_STRING,
    PROFILE_TIME = 9,
    PROFILE_DURATION,
    PROFILE_COMMENT = 13
};
enum { VALUE_TYPE = 1, VALUE_UNIT };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE };
enum { LOCATION_ID = 1, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1 };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME };

struct pprof {
    struct sink sink;
    struct page page;
    struct stacks stacks;
    struct buf strings; /* the encoded string table */
    int64_t nstrings;
    int64_t began; /* wall clock time of the first event */
};

/* ---- the encoding ---- */

static void pprof_varint(struct buf *to, uint64_t value)
{
    while (value >= 0x80) {
        buf_char(to, (char)(value | 0x80));
        value >>= 7;
    }
    buf_char(to, (char)value);
}

static void pprof_number(struct buf *to, unsigned field, uint64_t value)
{
    pprof_varint(to, field << 3);
    pprof_varint(to, value);
}

static void pprof_bytes(struct buf *to, unsigned field, struct str bytes)
{
    pprof_varint(to, field << 3 | 2);
    pprof_varint(to, bytes.len);
    buf_str(to, bytes);
}

/* Adds a string to the table. Returns its index. */
static uint64_t pprof_string(struct pprof *p, struct str text)
{
    pprof_bytes(&p->strings, PROFILE_STRING, text);
    return (uint64_t)p->nstrings++;
}

static void value_type(struct pprof *p, struct buf *to, struct str type, struct str unit)
{
    struct buf b = {0};

    pprof_number(&b, VALUE_TYPE, pprof_string(p, type));
    pprof_number(&b, VALUE_UNIT, pprof_string(p, unit));
    pprof_bytes(to, PROFILE_SAMPLE_TYPE, buf_view(&b));
    buf_release(&b);
}

/* ---- the view ---- */

static bool open_pprof(struct sink *sink, struct err *e)
{
    struct pprof *p = (struct pprof *)sink;

    (void)e;
    stacks_init(&p->stacks);
    p->stacks.by_node = true;
    return true;
}

static void event_pprof(struct sink *sink, const struct event *e)
{
    struct pprof *p = (struct pprof *)sink;

    if (!event_is_traced(e) && e->kind != ETW_NOTICE)
        return;
    if (event_is_traced(e)) {
        page_event(&p->page, e);
        if (!p->began)
            p->began = event_began(e);
    }
    stacks_event(&p->stacks, e);
}

/*
 * Writes each key as a function with its name, and as a location in this function. Returns the ids of the keys: the
 * function and the location of a key have the same id.
 */
static uint32_t *put_functions(struct pprof *p, struct buf *to)
{
    const struct stacks *s = &p->stacks;
    uint32_t *ids = mem_zalloc(s->nkeys * sizeof(*ids)), id = 0;
    struct stack_texts texts = {0};
    struct buf b = {0}, line = {0};

    stack_texts_print(&texts, s, p->sink.look.terms);
    for (uint32_t key = 0; key < s->nkeys; key++) {
        const char *name = stack_text(&texts, key);
        uint64_t text = pprof_string(p, (struct str){name, strlen(name)});
        ids[key] = ++id;
        buf_clear(&b);
        pprof_number(&b, FUNCTION_ID, id);
        pprof_number(&b, FUNCTION_NAME, text);
        pprof_number(&b, FUNCTION_SYSTEM_NAME, text);
        pprof_bytes(to, PROFILE_FUNCTION, buf_view(&b));
        buf_clear(&line);
        pprof_number(&line, LINE_FUNCTION, id);
        buf_clear(&b);
        pprof_number(&b, LOCATION_ID, id);
        pprof_bytes(&b, LOCATION_LINE, buf_view(&line));
        pprof_bytes(to, PROFILE_LOCATION, buf_view(&b));
    }
    stack_texts_release(&texts);
    buf_release(&b);
    buf_release(&line);
    return ids;
}

static void put_samples_of(const struct pprof *p, const uint32_t *ids, struct buf *to)
{
    const struct stacks *s = &p->stacks;
    struct buf path = {0}, values = {0}, b = {0};

    for (uint32_t i = s->top + 1; i < s->n; i++) {
        const struct stack_node *n = &s->nodes[i];
        if (!n->count && !n->own_ns)
            continue;
        buf_clear(&path);
        for (uint32_t k = i; k > s->top; k = s->nodes[k].parent)
            pprof_varint(&path, ids[s->nodes[k].key]);
        buf_clear(&values);
        pprof_varint(&values, n->count);
        if (!s->traces)
            pprof_varint(&values, n->own_ns);
        buf_clear(&b);
        pprof_bytes(&b, SAMPLE_LOCATION, buf_view(&path));
        pprof_bytes(&b, SAMPLE_VALUE, buf_view(&values));
        pprof_bytes(to, PROFILE_SAMPLE, buf_view(&b));
    }
    buf_release(&path);
    buf_release(&values);
    buf_release(&b);
}

static void end_pprof(struct sink *sink, const struct totals *t)
{
    struct pprof *p = (struct pprof *)sink;
    struct buf *to = sink->out, missing = {0}, title = {0};

    pprof_string(p, STR("")); /* the first string must be empty */
    stacks_settle(&p->stacks);
    if (p->stacks.traces) {
        value_type(p, to, STR("samples"), STR("count"));
    } else {
        value_type(p, to, STR("calls"), STR("count"));
        value_type(p, to, STR("time"), STR("nanoseconds"));
    }
    uint32_t *ids = put_functions(p, to);
    put_samples_of(p, ids, to);
    stack_text_missing(&p->stacks, &missing, t, "");
    page_title(&p->page, &title, buf_view(&missing));
    pprof_number(to, PROFILE_TIME, (uint64_t)MAX(p->began, 0));
    pprof_number(to, PROFILE_DURATION, (uint64_t)MAX(p->page.end_ns, 0));
    pprof_number(to, PROFILE_COMMENT, pprof_string(p, buf_view(&title)));
    buf_str(to, buf_view(&p->strings));
    free(ids);
    buf_release(&missing);
    buf_release(&title);
}

static void release_pprof(struct sink *sink)
{
    struct pprof *p = (struct pprof *)sink;

    page_release(&p->page);
    stacks_release(&p->stacks);
    buf_release(&p->strings);
}

const struct sink_type sink_pprof = {
    .name = "pprof",
    .extensions = ".pprof .pb",
    .about = "a profile for pprof and tools that read its files",
    .without_results = "shows nothing",
    .size = sizeof(struct pprof),
    .flags = SINK_BINARY | SINK_WHOLE | SINK_TIMES | SINK_STACKS | SINK_FOLDS,
    .open = open_pprof,
    .event = event_pprof,
    .end = end_pprof,
    .release = release_pprof,
};

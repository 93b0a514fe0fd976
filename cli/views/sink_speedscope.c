/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The speedscope view: for www.speedscope.app, one profile for each process with its calls. Contains only calls whose
 * begin and end are both known. Keeps at most the first CALLS_MAX calls that end, and those of the first
 * PROCESS_LIST_MAX processes. The stacks that `etrace stacks`
 * samples become one profile, in which a weight says how often each stack was seen.
 */
#include <stdlib.h>
#include <string.h>

#include "../erlang/term_print.h"
#include "../fold/pairing.h"
#include "../ground/mem.h"
#include "key_text.h"
#include "missing.h"
#include "line.h"
#include "page.h"

#define CALLS_MAX (1u << 20)

struct one_call {
    int64_t from, to; /* begin and end of the call, on the axis */
    uint32_t process, frame, depth;
};

struct named_frame {
    const struct fun *fun; /* NULL: a frame of a stack; only its name is known */
    uint32_t name;         /* offset of the name in `names` */
    uint8_t arity;
};

struct speedscope {
    struct sink sink;
    struct page page;
    struct process_list processes;
    struct named_frame *frames;
    size_t nframes, frames_cap;
    struct table by_fun;
    struct buf frame_list; /* JSON text: {"name":"..."},... */
    struct one_call *calls;
    size_t n, cap;
    uint64_t left_out;
    struct buf names;            /* names of the frames of stacks, NUL-terminated */
    struct buf samples, weights; /* the elements of two arrays, as JSON text */
    uint64_t looks;              /* sum of all weights */
    struct buf text, file;
};

/* Adds a frame with the name in `text`. */
static uint32_t add_frame(struct speedscope *s, uint32_t hash, struct named_frame frame)
{
    json_next_line(&s->frame_list, s->nframes == 0);
    json_begin_object(&s->frame_list);
    json_key(&s->frame_list, "name"), page_string(&s->frame_list, raw_of(buf_view(&s->text)));
    json_end_object(&s->frame_list);
    s->frames = mem_grow(s->frames, &s->frames_cap, s->nframes + 1, sizeof(*s->frames));
    s->frames[s->nframes] = frame;
    table_add(&s->by_fun, hash, (uint32_t)s->nframes);
    return (uint32_t)s->nframes++;
}

static uint32_t frame_of(struct speedscope *s, const struct event *e)
{
    uint32_t hash = e->fun->hash * 31u + e->arity;

    for (uint32_t step = 0, i; (i = table_next(&s->by_fun, hash, &step)) != TABLE_NONE;)
        if (s->frames[i].fun == e->fun && s->frames[i].arity == e->arity)
            return i;
    buf_clear(&s->text);
    line_fun_name(&s->text, e, s->sink.look.terms);
    buf_char(&s->text, '/');
    print_u64(&s->text, e->arity);
    return add_frame(s, hash, (struct named_frame){.fun = e->fun, .arity = e->arity});
}

/* Returns the frame with the name in `text`. Adds the frame if it is new. */
static uint32_t frame_called(struct speedscope *s)
{
    const char *name = buf_cstr(&s->text);
    uint32_t hash = hash_text(HASH_BEGIN, buf_view(&s->text)), at = (uint32_t)s->names.len;

    for (uint32_t step = 0, i; (i = table_next(&s->by_fun, hash, &step)) != TABLE_NONE;)
        if (!s->frames[i].fun && !strcmp(s->names.data + s->frames[i].name, name))
            return i;
    buf_add(&s->names, name, strlen(name) + 1);
    return add_frame(s, hash, (struct named_frame){.name = at});
}

/* Adds a stack that was seen e->weight times, with the outermost frame first. */
static void add_sample(struct speedscope *s, const struct event *e)
{
    const uint8_t *at = e->stack, *frames[64], *el;
    struct mfa m;
    size_t n = 0;

    if (!wire_list(&at))
        return;
    while (n < ARRAY_LEN(frames) && (el = wire_list_next(&at)))
        frames[n++] = el;
    json_begin_array(&s->samples);
    if (s->sink.look.nodes) {
        buf_clear(&s->text);
        buf_safe(&s->text, e->node->name);
        json_uint(&s->samples, frame_called(s));
    }
    while (n-- > 0) {
        if (!mfa_read(e, frames[n], &m, &s->file))
            continue;
        buf_clear(&s->text);
        line_mfa_name(&s->text, &m, s->sink.look.terms);
        json_uint(&s->samples, frame_called(s));
    }
    json_end_array(&s->samples);
    json_uint(&s->weights, e->weight);
    s->looks += e->weight;
}

static void event_speedscope(struct sink *sink, const struct event *e)
{
    struct speedscope *s = (struct speedscope *)sink;

    if (!event_is_traced(e))
        return;
    int64_t at = page_event(&s->page, e);
    if (e->weight && e->stack)
        add_sample(s, e);
    if (!event_is_result(e) || !e->call || e->dur_ns < 0 || !e->fun)
        return;
    const uint32_t process = process_list_own(&s->processes, e);
    if (process == PROCESS_LIST_NONE)
        return;
    if (s->n == CALLS_MAX) {
        s->left_out++;
        return;
    }
    s->calls = mem_grow(s->calls, &s->cap, s->n + 1, sizeof(*s->calls));
    s->calls[s->n++] = (struct one_call){
        .from = at - e->dur_ns,
        .to = at,
        .process = process,
        .frame = frame_of(s, e),
        .depth = e->depth,
    };
}

static int sink_speedscope_order(const void *a, const void *b)
{
    const struct one_call *x = a, *y = b;

    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to > y->to ? -1 : 1;
    return (x->depth > y->depth) - (x->depth < y->depth);
}

static void put_frame_event(struct speedscope *s, bool opens, const struct one_call *c, bool *first)
{
    struct buf *to = s->sink.out;

    json_next_line(to, *first);
    json_begin_object(to);
    json_put_text(to, "type", opens ? "O" : "C");
    json_put_uint(to, "frame", c->frame);
    json_put_int(to, "at", opens ? c->from : c->to);
    json_end_object(to);
    *first = false;
}

/* Writes the profile of a process from its sorted calls. `open` is the stack of open calls, as indices into `c`. */
static void put_profile(struct speedscope *s, const struct one_call *c, size_t n, bool first_profile)
{
    struct buf *to = s->sink.out;
    uint32_t *open = mem_alloc(n * sizeof(*open));
    size_t depth = 0;
    bool first = true;

    buf_clear(&s->text);
    process_list_label(&s->processes, c->process, &s->text);
    json_next_line(to, first_profile);
    json_begin_object(to);
    json_put_text(to, "type", "evented");
    json_key(to, "name"), page_string(to, raw_of(buf_view(&s->text)));
    int64_t end = c->to;
    for (size_t i = 0; i < n; i++)
        end = MAX(end, c[i].to);
    json_put_text(to, "unit", "nanoseconds");
    json_put_int(to, "startValue", c->from);
    json_put_int(to, "endValue", end);
    json_put_array(to, "events");
    for (size_t i = 0; i < n; i++) {
        while (depth && c[open[depth - 1]].to <= c[i].from &&
               (c[open[depth - 1]].to < c[i].to || c[open[depth - 1]].depth >= c[i].depth))
            put_frame_event(s, false, &c[open[--depth]], &first);
        put_frame_event(s, true, &c[i], &first);
        open[depth++] = (uint32_t)i;
    }
    while (depth)
        put_frame_event(s, false, &c[open[--depth]], &first);
    json_end_array(to);
    json_end_object(to);
    free(open);
}

static void put_samples(struct speedscope *s)
{
    struct buf *to = s->sink.out;

    json_next_line(to, true);
    json_begin_object(to);
    json_put_text(to, "type", "sampled");
    json_put_text(to, "name", "stacks");
    json_put_text(to, "unit", "none");
    json_put_uint(to, "startValue", 0);
    json_put_uint(to, "endValue", s->looks);
    json_put_array(to, "samples");
    json_ready(to, buf_view(&s->samples));
    json_end_array(to);
    json_put_array(to, "weights");
    json_ready(to, buf_view(&s->weights));
    json_end_array(to);
    json_end_object(to);
}

static void end_speedscope(struct sink *sink, const struct totals *t)
{
    struct speedscope *s = (struct speedscope *)sink;
    struct buf *to = sink->out, missing = {0};

    if (s->n)
        qsort(s->calls, s->n, sizeof(*s->calls), sink_speedscope_order);
    missing_report(&missing, t, "");
    if (s->left_out)
        buf_printf(&missing, "*** %llu calls left out: only the first %u are kept ***\n",
                   (unsigned long long)s->left_out, CALLS_MAX);
    process_list_missing(&s->processes, "call", &missing);
    buf_clear(&s->text);
    page_title(&s->page, &s->text, buf_view(&missing));
    json_begin_object(to);
    json_put_text(to, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_put_text(to, "exporter", "etrace");
    json_key(to, "name"), page_string(to, raw_of(buf_view(&s->text)));
    json_next_line(to, false);
    json_put_object(to, "shared");
    json_put_array(to, "frames");
    json_ready(to, buf_view(&s->frame_list));
    json_end_array(to);
    json_end_object(to);
    json_next_line(to, false);
    json_put_array(to, "profiles");
    if (s->looks)
        put_samples(s);
    for (size_t i = 0, n; i < s->n; i += n) {
        for (n = 1; i + n < s->n && s->calls[i + n].process == s->calls[i].process;)
            n++;
        put_profile(s, s->calls + i, n, i == 0 && !s->looks);
    }
    json_end_array(to);
    json_end_record(to);
    buf_release(&missing);
}

static void release_speedscope(struct sink *sink)
{
    struct speedscope *s = (struct speedscope *)sink;

    page_release(&s->page);
    process_list_release(&s->processes);
    free(s->frames);
    table_release(&s->by_fun);
    buf_release(&s->frame_list);
    free(s->calls);
    buf_release(&s->names);
    buf_release(&s->samples);
    buf_release(&s->weights);
    buf_release(&s->text);
    buf_release(&s->file);
}

const struct sink_type sink_speedscope = {
    .name = "speedscope",
    .extensions = ".speedscope.json .json",
    .about = "calls of each process over time, for speedscope.app",
    .without_results = "shows nothing",
    .size = sizeof(struct speedscope),
    .flags = SINK_BINARY | SINK_WHOLE | SINK_TIMES | SINK_STACKS,
    .event = event_speedscope,
    .end = end_speedscope,
    .release = release_speedscope,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of views: a pipeline whose views write into memory, and handmade specs. */
#ifndef ETRACE_PIPETEST_H
#define ETRACE_PIPETEST_H

#include "framewriter.h"
#include "tap.h"
#include "pipeline/pipeline.h"

#define PID(n) ((uint64_t)(n))

__attribute__((unused)) static bool pt_write(void *output, struct buf *bytes)
{
    buf_str(output, buf_view(bytes));
    bytes->len = 0;
    return true;
}

/* Makes a spec `m:f/a -> …` with these actions. */
__attribute__((unused)) static const struct spec *pt_spec(const char *m, const char *f, int arity, unsigned actions)
{
    struct selector *sel = calloc(1, sizeof(*sel));
    struct spec_clause *clause = calloc(1, sizeof(*clause));
    struct spec *s = calloc(1, sizeof(*s));

    sel->module = (struct sel_name){strcmp(m, "_") ? SEL_ATOM : SEL_ANY, {m, strlen(m)}};
    sel->function = (struct sel_name){strcmp(f, "_") ? SEL_ATOM : SEL_ANY, {f, strlen(f)}};
    sel->arity_lo = arity < 0 ? 0 : arity;
    sel->arity_hi = arity < 0 ? 255 : arity;
    clause->actions = actions;
    *s = (struct spec){.kind = SPEC_CALL, .selectors = sel, .nselectors = 1, .clauses = clause, .nclauses = 1};
    return s;
}

__attribute__((unused)) static void pt_spec_free(const struct spec *s)
{
    free((void *)s->selectors);
    free((void *)s->clauses);
    free((void *)s);
}

struct pt {
    struct buf out[4];
    struct pipeline *p;
    struct err err;
    enum pipeline_status status;
};

/* Opens a pipeline with these views: names of sinks, NULL-terminated. */
__attribute__((unused)) static void pt_open(struct pt *t, const char *const *views, const struct look *look,
                                            struct pipeline_options o)
{
    struct view v[4];
    size_t n = 0;

    for (; views[n]; n++)
        v[n] = (struct view){.type = sink_by_name(views[n]), .look = *look, .write = pt_write, .output = &t->out[n]};
    o.views = v;
    o.nviews = n;
    t->p = pipeline_new(&o, &t->err);
    if (!t->p)
        printf("# pipeline_new: %s\n", t->err.text);
}

/* Feeds an exact copy of the batch, so that a sanitizer reports a read past its end. */
__attribute__((unused)) static void pt_feed(struct pt *t, unsigned node, struct str batch)
{
    char *copy = malloc(batch.len ? batch.len : 1);

    memcpy(copy, batch.at, batch.len);
    t->status = pipeline_batch(t->p, node, (struct str){copy, batch.len}, &t->err);
    free(copy);
}

__attribute__((unused)) static void pt_note(struct pt *t, unsigned node, uint32_t what, int64_t value, const char *text)
{
    struct etw_note n = {.what = what, .value = value};
    struct buf b = {0};

    buf_add(&b, &n, sizeof(n));
    buf_puts(&b, text);
    t->status = pipeline_note(t->p, node, buf_view(&b), &t->err);
    buf_release(&b);
}

__attribute__((unused)) static void pt_close(struct pt *t)
{
    pipeline_end(t->p);
}

__attribute__((unused)) static void pt_free(struct pt *t)
{
    pipeline_free(t->p);
    for (size_t i = 0; i < 4; i++)
        buf_release(&t->out[i]);
    memset(t, 0, sizeof(*t));
}

#endif

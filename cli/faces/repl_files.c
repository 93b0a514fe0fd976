/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the files of -o. */
#include "repl_files.h"

#include <stdlib.h>

#include "../ground/mem.h"

#define SLICE_MS 8 /* limit for one call of repl_files_pump(), so that keys are handled */
#define BACKLOG_MOST ((size_t)1 << 20)

struct repl_files {
    struct repl_base *base;
    struct repl_nodes *nodes;
    struct reel *reel; /* NULL: no file is open */
};

struct repl_files *repl_files_new(struct repl_base *base, struct repl_nodes *nodes)
{
    struct repl_files *f = mem_zalloc(sizeof(*f));

    f->base = base;
    f->nodes = nodes;
    return f;
}

void repl_files_free(struct repl_files *f)
{
    if (!f)
        return;
    reel_free(f->reel);
    free(f);
}

bool repl_files_pump(struct repl_files *f)
{
    struct reel *l = f->reel;
    int64_t until = loop_now() + SLICE_MS;
    enum pipeline_status status = PIPELINE_MORE;
    struct source_item item;
    struct err e;
    bool room = true, closed;

    if (!l || l->done)
        return false;
    while (status == PIPELINE_MORE && loop_now() < until &&
           (room = outputs_backlog(&l->outputs, BACKLOG_MOST) <= BACKLOG_MOST) &&
           source_next(l->source, &item, 0, &e) == SOURCE_ITEM)
        status = pipeline_item(l->pipeline, &item, &e);
    if (status == PIPELINE_MORE && !scroll_ahead(l->source))
        status = reel_keep_order(l, f->base, f->nodes, &e);
    pipeline_flush(l->pipeline);
    bool ended = outputs_ended(&l->outputs, &closed, &e);
    l->done = ended || status != PIPELINE_MORE;
    if ((ended && !closed) || status == PIPELINE_FAILED)
        repl_fail(f->base, &e);
    return !l->done && room && scroll_ahead(l->source);
}

bool repl_files_open(struct repl_files *f, struct err *e)
{
    const struct view_opts *view = &f->base->options.view;
    struct reel_options to_files = {.view = view, .to = TO_FILES, .from_now = true};
    struct reel *next = view->outputs.count ? reel_new(f->base, f->nodes, &to_files, e) : NULL;

    if (view->outputs.count && !next)
        return false;
    repl_files_end(f);
    f->reel = next;
    if (next)
        outputs_begin(&next->outputs);
    return true;
}

bool repl_files_are_open(const struct repl_files *f)
{
    return f->reel;
}

size_t repl_files_behind(const struct repl_files *f)
{
    return reel_behind(f->reel);
}

/* Also ends when the user types Ctrl-C, because a file may be a pipe that nobody reads. */
bool repl_files_catch_up(struct repl_files *f)
{
    const struct reel *l = f->reel;
    struct ctx *ctx = f->base->ctx;
    int64_t patience = ctx_patience(ctx);
    int asked = ctx->interrupts;
    uint64_t end = scroll_end(f->base->scroll);

    while (l && !l->done && scroll_place(l->source) < end && ctx->interrupts == asked && ctx_waits(ctx, &patience))
        loop_step(&ctx->loop, repl_files_pump(f) ? 0 : patience);
    return !l || l->done || scroll_place(l->source) >= end;
}

void repl_files_end(struct repl_files *f)
{
    struct ctx *ctx = f->base->ctx;
    struct reel *l = f->reel;
    int asked = ctx->interrupts;
    struct err e;

    if (!l)
        return;
    bool whole = repl_files_catch_up(f);
    int64_t patience = ctx_patience(ctx);
    uint64_t missed = l->done ? 0 : scroll_missed(l->source);
    if (missed)
        ctx_warn(ctx, "%llu events are not in the files: they came too fast", (unsigned long long)missed);
    pipeline_end(l->pipeline);
    while (outputs_backlog(&l->outputs, 0) && ctx->interrupts == asked && ctx_waits(ctx, &patience))
        loop_step(&ctx->loop, patience);
    if (whole && !outputs_backlog(&l->outputs, 0)) {
        f->base->status = outputs_flush(&l->outputs, ctx, f->base->status);
    } else {
        repl_interrupted(f->base);
        err_set(&e, ERR_RUN, "the files are incomplete: writing was interrupted");
        repl_fail(f->base, &e);
    }
    f->reel = NULL;
    reel_free(l);
}

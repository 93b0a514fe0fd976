/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshots.h"

#include <stdlib.h>

#include "../ground/number.h"
#include "../views/line.h"
#include "live.h"
#include "outputs.h"
#include "snapshot_round.h"

/* ---- beginning and end ---- */

void snapshots_init(struct snapshots *s, struct ctx *ctx, const struct live_options *o, struct view_opts *view)
{
    const struct texts given = view->outputs;

    *s = (struct snapshots){.ctx = ctx, .o = o, .by_hand = ctx->snapshots};
    ctx->takes_snapshots = o->limit->ring.on;
    if (!o->limit->ring.on)
        return;
    s->numbered = *view;
    s->numbered.outputs = view->outputs = (struct texts){0};
    outputs_split(&given, &view->outputs, &s->numbered.outputs);
    view->numbered = s->numbered.outputs;
}

void snapshots_release(struct snapshots *s)
{
    keeper_free(s->keeper);
    snapshot_files_free(s->files);
    texts_release(&s->numbered.outputs);
}

static bool needs_files(const struct snapshots *s)
{
    const struct ring_opts *ring = &s->o->limit->ring;
    const bool acts = ring->then.stacks || ring->then.probes.count || ring->then.command;

    return ring->on && (s->numbered.outputs.count || acts || s->o->node->nodes.count > 1 || s->o->node->cluster);
}

/* Passes events on to the pipeline and the files. */
static enum pipeline_status pass_batch(struct snapshots *s, unsigned node, struct str bytes, struct err *e)
{
    return snapshot_files_batch(s->files, node, bytes, e) ? pipeline_batch(s->pipeline, node, bytes, e)
                                                          : PIPELINE_FAILED;
}

static enum pipeline_status pass_note(struct snapshots *s, unsigned node, struct str bytes, struct err *e)
{
    snapshot_files_note(s->files, node, bytes);
    return pipeline_note(s->pipeline, node, bytes, e);
}

/* Takes a part of a snapshot from the keeper. */
static bool take_kept(void *data, const struct source_item *item, struct err *e)
{
    struct snapshots *s = data;
    const enum pipeline_status status = item->type == SOURCE_NOTE ? pass_note(s, item->node, item->bytes, e)
                                                                  : pass_batch(s, item->node, item->bytes, e);

    s->status = MAX(s->status, status);
    return status != PIPELINE_FAILED;
}

static void on_skipped(void *data, uint64_t times)
{
    struct snapshots *s = data;
    struct buf b = {0};

    line_put_skipped(&b, times);
    ctx_warn(s->ctx, "%s", buf_cstr(&b));
    buf_release(&b);
}

bool snapshots_begin(struct snapshots *s, const struct plan_from *from, enum plan_recorder recorder,
                     struct pipeline *pipeline, const struct pipeline_options *shown,
                     void (*record_specs)(void *data, struct pipeline *to), void *data, struct err *e)
{
    const struct ring_opts *ring = &s->o->limit->ring;
    const struct exprs *exprs = from->exprs;

    s->pipeline = pipeline;
    if (needs_files(s) &&
        !(s->files = snapshot_files_new(&(struct snapshot_files_options){s->ctx, &s->numbered, s->o->limit, s->o->node,
                                                                         exprs, from->nfilters, record_specs, data},
                                        e)))
        return false;
    if (recorder != PLAN_CLIENT_RECORDS)
        return true;
    s->keeper =
        keeper_new(&(struct keeper_options){*shown, exprs->wheres[exprs->nwheres - 1], ring, take_kept, on_skipped, s},
                   e);
    return s->keeper;
}

bool snapshots_step(struct snapshots *s, bool last, struct err *e)
{
    if (snapshot_files_step(s->files, last, e))
        return true;
    snapshot_files_free(s->files);
    s->files = NULL;
    return false;
}

bool snapshots_end(struct snapshots *s, struct err *e)
{
    bool more = s->keeper;

    /* The files take each part of a large snapshot before the next part comes. */
    while (more)
        if (!keeper_end(s->keeper, &more, e) || !snapshot_files_step(s->files, true, e))
            return false;
    return true;
}

/* ---- events ---- */

enum pipeline_status snapshots_batch(struct snapshots *s, unsigned node, struct str bytes, struct err *e)
{
    if (!s->keeper)
        return pass_batch(s, node, bytes, e);
    return keeper_batch(s->keeper, node, bytes, e) ? PIPELINE_MORE : PIPELINE_FAILED;
}

enum pipeline_status snapshots_note(struct snapshots *s, unsigned node, struct str bytes, struct err *e)
{
    if (!s->keeper)
        return pass_note(s, node, bytes, e);
    return keeper_note(s->keeper, node, bytes, e) ? PIPELINE_MORE : PIPELINE_FAILED;
}

enum pipeline_status snapshots_keep(struct snapshots *s, bool fires, bool may_send, struct err *e)
{
    enum pipeline_status status;

    if (!s->keeper)
        return PIPELINE_MORE;
    if (fires && s->by_hand != s->ctx->snapshots && !keeper_fire(s->keeper, e))
        return PIPELINE_FAILED;
    status = keeper_step(s->keeper, may_send, e) ? s->status : PIPELINE_FAILED;
    s->status = PIPELINE_MORE;
    return status;
}

/* ---- the nodes ---- */

bool snapshots_due(struct snapshots *s, bool *ret_begins)
{
    const bool by_hand = s->by_hand != s->ctx->snapshots;

    s->by_hand = s->ctx->snapshots;
    *ret_begins = snapshot_files_begins(s->files);
    return !s->keeper && (by_hand || *ret_begins);
}

void snapshots_ask(struct snapshots *s, struct peer *p)
{
    struct err e;

    if (s->files && !snapshot_files_lacks(s->files, p->index))
        return;
    if (!session_snapshot(p->session, SNAPSHOT_MS, &s->asked[p->index], &e))
        peer_fail(p, &e);
    else
        snapshot_files_asked(s->files, p->index, true);
}

bool snapshots_then(struct snapshots *s)
{
    const struct live_moment *m = s->o->moment;
    char *file = snapshot_files_stacks(s->files);

    snapshot_files_trace(s->files);
    const bool asks = m && m->begin(m->data, snapshot_files_number(s->files), file);
    free(file);
    return asks;
}

void snapshots_answer(struct snapshots *s, const struct peer *p, const struct session_reply *reply)
{
    if (!s->asked[p->index] || reply->id != s->asked[p->index])
        return;
    s->asked[p->index] = 0;
    if (!reply->ok || !etf_is_atom(&reply->term, "true"))
        snapshot_files_asked(s->files, p->index, false);
}

void snapshots_node_moved(struct snapshots *s, const struct peer *p, bool armed)
{
    s->asked[p->index] = 0;
    snapshot_files_asked(s->files, p->index, false);
    if (armed)
        snapshot_files_names_node(s->files, peer_name(p));
}

uint64_t snapshots_count(const struct snapshots *s)
{
    return s->files ? snapshot_files_count(s->files) : pipeline_totals(s->pipeline)->snapshots;
}

void snapshots_tell_reach(struct snapshots *s, int64_t us)
{
    const struct ring_opts *ring = &s->o->limit->ring;
    const int64_t asked_us = (int64_t)ring->most_ms * 1000;
    uint32_t bytes = ring->bytes;
    struct buf b = {0};

    if (s->told_reach || s->keeper || us >= asked_us / 2) /* most_ms is 0 if --ring is a size */
        return;
    s->told_reach = true;
    while (bytes < RING_MOST && us * (bytes / ring->bytes) < asked_us)
        bytes *= 2;
    buf_puts(&b, "the events of ");
    print_duration(&b, us * 1000);
    buf_puts(&b, " fill the buffers, not those of ");
    print_duration(&b, asked_us * 1000);
    buf_printf(&b, ": --ring %uMB would hold about ", bytes >> 20);
    print_duration(&b, us * (bytes / ring->bytes) * 1000);
    ctx_say(s->ctx, "%s", buf_cstr(&b));
    buf_release(&b);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes views of the scrollback. */
#include "repl_reel.h"

#include <stdlib.h>

#include "../ground/mem.h"

static void on_notice(void *ctx, const struct event_node *node, struct str text)
{
    ctx_warn(ctx, "%.*s: %.*s", (int)node->name.len, node->name.at, (int)text.len, text.at);
}

static bool open_show(struct outputs *s, struct ctx *ctx, const struct reel_options *o, struct err *e)
{
    return o->to == TO_FILE    ? outputs_file(s, ctx, o->view, o->view->as, o->file, e)
           : o->to == TO_FILES ? outputs_files(s, ctx, o->view, e)
                               : outputs_here(s, ctx, o->view, "text", e);
}

struct reel *reel_new(struct repl_base *base, struct repl_nodes *nodes, const struct reel_options *o, struct err *e)
{
    struct reel *reel = mem_zalloc(sizeof(*reel));
    struct texts none = {0};

    exprs_init(&reel->exprs);
    reel->nodes = repl_nodes_several(nodes);
    reel->exprs.by_text = o->view->by;
    bool ok = exprs_compile(&reel->exprs, &base->options.what, &none, &o->view->wheres, 0, e) &&
              open_show(&reel->outputs, base->ctx, o, e);
    for (size_t i = 0; ok && i < reel->outputs.count; i++)
        reel->outputs.views[i].look.nodes = reel->nodes;
    if (ok && o->to == TO_US) {
        reel->outputs.views[0].write = o->write;
        reel->outputs.views[0].output = o->output;
    }
    if (ok) {
        struct pipeline_options options = outputs_pipeline(&reel->outputs, &reel->exprs, reel->exprs.nwheres);
        options.limit = o->from_now && o->to == TO_US ? (uint64_t)base->options.limit.limit : 0;
        options.notice = o->tells ? on_notice : NULL;
        options.ctx = base->ctx;
        reel->pipeline = pipeline_new(&options, e);
        ok = reel->pipeline != NULL;
    }
    if (!ok) {
        reel_free(reel);
        return NULL;
    }
    reel->source = scroll_read(base->scroll, o->from_now);
    return reel;
}

void reel_free(struct reel *reel)
{
    if (!reel)
        return;
    source_close(reel->source);
    pipeline_free(reel->pipeline);
    if (reel->outputs.loop)
        outputs_close(&reel->outputs);
    exprs_release(&reel->exprs);
    free(reel);
}

enum pipeline_status reel_keep_order(struct reel *reel, struct repl_base *base, struct repl_nodes *nodes, struct err *e)
{
    const struct peers *peers = repl_nodes_peers(nodes);
    enum pipeline_status status = PIPELINE_MORE;
    int64_t mono, wall;

    for (size_t i = 0; repl_nodes_several(nodes) && i < peers->count; i++) {
        const struct peer *p = &peers->items[i];
        /*
         * The next events of a node that records may be of any age, so events of the other nodes wait for its snapshot,
         * but not for long (node_merge.h). Such a node also sends a snapshot when etrace detaches from it.
         */
        const bool records = base->options.limit.ring.on && peer_is_there(p);
        if (records && scroll_records(base->scroll, p->index))
            continue;
        if (!scroll_passed(base->scroll, p->index, &mono, &wall) || (p->state != PEER_UP && !records))
            mono = wall = INT64_MAX;
        status = MAX(status, pipeline_passed(reel->pipeline, (unsigned)i, mono, wall, e));
    }
    return status;
}

size_t reel_behind(const struct reel *reel)
{
    return reel && !reel->done ? scroll_ahead(reel->source) : 0;
}

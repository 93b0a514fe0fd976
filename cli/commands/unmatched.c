/* SPDX-License-Identifier: Apache-2.0 */
#include "unmatched.h"

#include <string.h>
#include <unistd.h>

#include "../ground/out.h"

#define UNMATCHED_NS 500000000 /* limit for the wait for a call */

static void hear_nothing(void *data UNUSED, struct str lines UNUSED)
{
}

void unmatched_show(struct ctx *ctx, const struct live_options *o, const char *functions)
{
    struct node_opts node = *o->node;
    struct limit_opts limit = *o->limit; /* a copy, so that the redaction of the trace applies */
    const struct live_options traced = {
        .node = &node,
        .what = &(struct what_opts){.procs = o->what->procs, .builtin = true},
        .limit = &limit,
        .view = &(struct view_opts){.format = "etrace: such as {call} by {who}", .color = o->view->color},
        .asserts = &(struct assert_opts){0},
        .words = &(struct texts){.items = &functions, .count = 1},
    };
    struct out *const own = ctx->out;
    const int interrupts = ctx->interrupts, signal = ctx->last_signal;

    if (!*functions || ctx->quiet || ctx->talk || node.ssh || (node.cookie_file && !strcmp(node.cookie_file, "-")))
        return;
    node.reattach = false;
    limit.limit = limit.rate = 1;
    limit.for_ns = UNMATCHED_NS;
    limit.on_loss = 0;
    limit.ring = (struct ring_opts){0};
    ctx->out = out_new(STDERR_FILENO, false, "standard error");
    ctx->talk = hear_nothing; /* suppresses messages, because the first trace has printed them already */
    ctx->interrupts = ctx->last_signal = 0;
    live_run(ctx, &traced, "text");
    out_free(ctx->out);
    ctx->out = own;
    ctx->talk = NULL;
    ctx->interrupts += interrupts;
    ctx->last_signal = ctx->last_signal ? ctx->last_signal : signal;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recording: stores every batch unchanged, so that any other view can replay it, and checkpoints, so that a replay
 * can begin in the middle. The output compresses the bytes (recpack.h).
 */
#include "../events/recfile.h"
#include "sink.h"

static bool open_record(struct sink *s, struct err *e)
{
    (void)e;
    if (!s->look.append)
        recfile_header(s->out);
    return true;
}

static void record_specs(struct sink *s, unsigned node, struct str bytes)
{
    recfile_block(s->out, ETW_BLOCK_SPECS, node, bytes);
}

static void record_batch(struct sink *s, unsigned node, struct str bytes)
{
    recfile_block(s->out, ETW_BLOCK_BATCH, node, bytes);
}

static void record_note(struct sink *s, unsigned node, struct str bytes)
{
    recfile_block(s->out, ETW_BLOCK_NOTE, node, bytes);
}

static void record_checkpoint(struct sink *s, enum etw_block_type type, unsigned node, struct str bytes)
{
    recfile_block(s->out, type, node, bytes);
}

static void end_record(struct sink *s, const struct totals *t)
{
    struct etw_footer f = {
        .seen = t->seen,
        .shown = t->shown,
        .filtered = t->filtered,
        .truncated = t->truncated,
        .incomplete = t->incomplete,
    };

    memcpy(f.lost, t->lost, sizeof(f.lost));
    recfile_block(s->out, ETW_BLOCK_FOOTER, 0, (struct str){(const char *)&f, sizeof(f)});
}

const struct sink_type sink_record = {
    .name = "record",
    .extensions = ".etr",
    .about = "the recording itself, for etrace replay",
    .size = sizeof(struct sink),
    .flags = SINK_RAW | SINK_BINARY,
    .open = open_record,
    .specs = record_specs,
    .batch = record_batch,
    .note = record_note,
    .checkpoint = record_checkpoint,
    .end = end_record,
};

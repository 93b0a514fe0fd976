/* SPDX-License-Identifier: Apache-2.0 */
/* The recording: stores every batch unchanged, so that it can be replayed with any other view. The output compresses it
 * (recpack.h). */
#include <stdlib.h>

#include "../events/recfile.h"
#include "../ground/mem.h"
#include "sink.h"

static struct sink *open_record(const struct look *look, struct buf *out, struct err *e)
{
    struct sink *s = mem_zalloc(sizeof(*s));

    (void)e;
    s->out = out;
    s->look = *look;
    if (!look->append)
        recfile_header(out);
    return s;
}

static void specs(struct sink *s, unsigned node, struct str bytes)
{
    recfile_block(s->out, ETW_BLOCK_SPECS, node, bytes);
}

static void batch(struct sink *s, unsigned node, struct str bytes)
{
    recfile_block(s->out, ETW_BLOCK_BATCH, node, bytes);
}

static void note(struct sink *s, unsigned node, struct str bytes)
{
    recfile_block(s->out, ETW_BLOCK_NOTE, node, bytes);
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

static void free_record(struct sink *s)
{
    free(s);
}

const struct sink_type sink_record = {
    .name = "record",
    .extensions = ".etr",
    .about = "the recording itself, for etrace replay",
    .flags = SINK_RAW | SINK_BINARY,
    .open = open_record,
    .specs = specs,
    .batch = batch,
    .note = note,
    .end = end_record,
    .free = free_record,
};

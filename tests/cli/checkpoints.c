/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a recording with a checkpoint after every N bytes of batches: checkpoints N <FILE.etr >COPY.etr */
#include <stdio.h>
#include <stdlib.h>

#include "events/recpack.h"
#include "events/recfile.h"
#include "pipeline/pipeline.h"

static bool pack(void *state, struct buf *bytes)
{
    struct buf packed = {0};

    recpack.bytes(state, buf_view(bytes), &packed);
    fwrite(packed.data, 1, packed.len, stdout);
    buf_release(&packed);
    bytes->len = 0;
    return true;
}

int main(int argc, char **argv)
{
    void *state = recpack.open();
    struct view view = {.type = sink_by_name("record"), .write = pack, .output = state};
    struct pipeline_options options = {.views = &view, .nviews = 1, .apart = argc > 1 ? strtoul(argv[1], NULL, 10) : 1};
    struct source_item item;
    struct err e = {0};
    struct pipeline *p = pipeline_new(&options, &e);
    struct source *s = recfile_open("-", &e);
    enum source_got got = SOURCE_FAILED;

    while (s && (got = source_next(s, &item, -1, &e)) == SOURCE_ITEM)
        if (pipeline_item(p, &item, &e) == PIPELINE_FAILED)
            break;
    if (got == SOURCE_END)
        pipeline_end(p);
    pipeline_free(p);
    recpack.close(state);
    source_close(s);
    if (got != SOURCE_END)
        fprintf(stderr, "checkpoints: %s\n", e.text);
    return got != SOURCE_END;
}

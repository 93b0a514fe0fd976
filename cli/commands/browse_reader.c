/* SPDX-License-Identifier: Apache-2.0 */
#include "browse_reader.h"

#include <stdlib.h>

#include "../events/ahead.h"
#include "../events/recfile.h"
#include "../ground/mem.h"
#include "recordings.h"

#define IDLE_MS 5
/*
 * Limits for the open calls that the pipeline remembers. `etrace replay` remembers more, but it may use more memory.
 * The pipeline forgets the oldest calls first; their results get no duration.
 */
#define OPEN_CALLS 65536
#define OPEN_BYTES ((size_t)12 << 20)

struct browse_reader {
    const struct browse_recording *of;
    struct recordings files;
    struct source *ahead; /* NULL: no thread reads ahead */
    struct source_item item;
    enum source_got got; /* what the last read returned; `item` is valid if it was SOURCE_ITEM */
    bool fresh;          /* the pipeline has not got `item` yet */
    struct pipeline *pipeline;
    struct view view;       /* the view of the caller */
    size_t from;            /* segment of the checkpoint at which the reader began */
    size_t segment, wanted; /* the current segment; the first segment whose output is kept */
    uint64_t place;
    bool over;
    bool bounded; /* recfile_bound() limits how far the source reads */
};

static bool browse_reader_write(void *data, struct buf *bytes)
{
    struct browse_reader *r = data;

    if (r->segment >= r->wanted)
        return r->view.write(r->view.output, bytes);
    bytes->len = 0;
    return true;
}

static bool make_pipeline(struct browse_reader *r, struct err *e)
{
    struct view view = r->view;
    struct pipeline_options options = r->of->filter;

    view.write = browse_reader_write;
    view.output = r;
    options.views = &view;
    options.nviews = view.type ? 1 : 0;
    options.max_calls = OPEN_CALLS;
    options.max_kept = OPEN_BYTES;
    r->pipeline = pipeline_new(&options, e);
    return r->pipeline;
}

static struct browse_reader *open_files(const struct browse_recording *of, const struct view *view, struct err *e)
{
    struct browse_reader *r = mem_zalloc(sizeof(*r));

    r->of = of;
    if (view)
        r->view = *view;
    if (!recordings_open(&r->files, &of->paths, e)) {
        browse_reader_close(r);
        return NULL;
    }
    r->bounded = of->grows;
    if (r->bounded)
        recfile_bound(r->files.source, of->bytes);
    r->got = source_next(r->files.source, &r->item, -1, e);
    r->fresh = true;
    if (r->got == SOURCE_FAILED || !make_pipeline(r, e)) {
        browse_reader_close(r);
        return NULL;
    }
    return r;
}

/*
 * Continues at the checkpoint of this segment. Output belongs to the previous segment until an item after the
 * checkpoint was read.
 */
static bool begin_segment(struct browse_reader *r, size_t segment)
{
    if (!recfile_seek_place(r->files.source, r->of->places[segment - 1]))
        return false;
    r->fresh = false;
    r->segment = segment - 1;
    r->from = segment;
    return true;
}

/*
 * Starts the thread that reads ahead. Does not start it for a file that grows, because only this thread knows where the
 * last complete block of the file ends.
 */
static void read_files_ahead(struct browse_reader *r)
{
    if (!r->bounded)
        r->ahead = ahead_new(r->files.source, r->fresh ? &r->item : NULL);
}

struct browse_reader *browse_reader_open(const struct browse_recording *of, const struct view *view, size_t segment,
                                         struct err *e)
{
    struct browse_reader *r = open_files(of, view, e);

    if (!r)
        return NULL;
    r->wanted = segment;
    for (size_t at = segment; at && !begin_segment(r, at);)
        at--;
    read_files_ahead(r);
    return r;
}

struct browse_reader *browse_reader_behind(const struct browse_recording *of, const struct view *view, size_t segment,
                                           struct err *e)
{
    struct browse_reader *r = segment + 1 < of->segments ? open_files(of, view, e) : NULL;

    while (r && ++segment < of->segments)
        if (begin_segment(r, segment)) {
            r->wanted = segment;
            read_files_ahead(r);
            return r;
        }
    browse_reader_close(r);
    return NULL;
}

void browse_reader_close(struct browse_reader *r)
{
    if (!r)
        return;
    pipeline_free(r->pipeline);
    ahead_close(r->ahead);
    recordings_close(&r->files);
    free(r);
}

/* Moves on to the segment that contains the given offset. */
static void enter_segment(struct browse_reader *r, uint64_t offset)
{
    while (r->segment + 1 < r->of->segments && offset > r->of->places[r->segment])
        r->segment++;
    r->place = MAX(r->place, offset);
}

static enum browse_got finish_reading(struct browse_reader *r, enum browse_got got)
{
    if (got == BROWSE_FAILED)
        pipeline_cut(r->pipeline);
    pipeline_end(r->pipeline);
    r->over = true;
    return got;
}

static enum browse_got feed_item(struct browse_reader *r, struct err *e)
{
    /* The blocks of a checkpoint are not read in the order of the file, so their offsets say nothing. */
    if (r->item.type != SOURCE_CHECKPOINT && r->item.type != SOURCE_STATE)
        enter_segment(r, r->item.offset);
    const enum pipeline_status status = pipeline_item(r->pipeline, &r->item, e);
    pipeline_flush(r->pipeline);
    return status == PIPELINE_FAILED ? finish_reading(r, BROWSE_FAILED)
           : status == PIPELINE_DONE ? finish_reading(r, BROWSE_END)
                                     : BROWSE_MORE;
}

static enum source_got read_item(struct browse_reader *r, struct err *e)
{
    if (r->ahead)
        return source_next(r->ahead, &r->item, r->got == SOURCE_NOTHING ? IDLE_MS : 0, e);
    if (r->bounded)
        recfile_bound(r->files.source, r->of->grows ? r->of->bytes : UINT64_MAX);
    return source_next(r->files.source, &r->item, r->got == SOURCE_NOTHING && !r->bounded ? IDLE_MS : 0, e);
}

enum browse_got browse_reader_next(struct browse_reader *r, struct err *e)
{
    if (r->over)
        return BROWSE_END;
    if (!r->fresh)
        r->got = read_item(r, e);
    r->fresh = false;
    switch (r->got) {
    case SOURCE_ITEM:
        return feed_item(r, e);
    case SOURCE_NOTHING:
        if (!r->of->grows)
            return BROWSE_NOTHING;
        enter_segment(r, r->of->bytes);
        return BROWSE_WAITS;
    case SOURCE_END:
        return finish_reading(r, BROWSE_END);
    case SOURCE_FAILED:
        break;
    }
    return finish_reading(r, BROWSE_FAILED);
}

size_t browse_reader_segment(const struct browse_reader *r)
{
    return r->segment;
}

size_t browse_reader_from(const struct browse_reader *r)
{
    return r->from;
}

uint64_t browse_reader_number(const struct browse_reader *r)
{
    return pipeline_number(r->pipeline);
}

bool browse_reader_grows(const struct browse_reader *r)
{
    return r->bounded && !r->over;
}

uint64_t browse_reader_place(const struct browse_reader *r)
{
    return r->place;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays a recording, beginning at any of its segments.
 *
 * The checkpoints of a recording cut it into segments: segment 0 begins with the file, segment N with checkpoint N. An
 * event belongs to the segment in which a replay of the whole recording shows it, so a replay from the checkpoint of a
 * segment shows the same events. Only results differ: a result whose call came before the checkpoint has no duration. A
 * reader cannot use checkpoints if there are several recordings, which then are one segment. It cannot use those of
 * runs that were appended to a recording either, so its last segment is long.
 */
#ifndef ETRACE_BROWSE_READER_H
#define ETRACE_BROWSE_READER_H

#include "../ground/texts.h"
#include "../pipeline/pipeline.h"

struct browse_recording {
    struct texts paths; /* borrowed */
    uint64_t *places;   /* places[N]: offset of the checkpoint at which segment N + 1 begins; owned */
    /* the user browses the segments from `first` up to, not including, `segments`; at least one */
    size_t first, segments;
    uint64_t bytes; /* size of the file; 0: there are several files */
    bool grows;     /* the file is still being written; `bytes` is then the end of its last complete block */
    struct pipeline_options filter; /* conditions and time window, without views; borrowed */
    struct look look;
};

struct browse_reader;

enum browse_got {
    BROWSE_MORE,
    BROWSE_NOTHING, /* nothing was read in time; try again */
    BROWSE_WAITS,   /* everything in the file was read; try again when the file has grown */
    BROWSE_END,
    BROWSE_FAILED, /* the recording is damaged at this place; err is filled */
};

/*
 * Opens a reader that writes the output of the view, beginning at the given segment. `view` may be NULL. If the
 * checkpoint of the segment is damaged, the reader begins at an earlier one and drops the output before the segment.
 * Returns NULL, with an error, if a file cannot be read.
 */
struct browse_reader *browse_reader_open(const struct browse_recording *of, const struct view *view, size_t segment,
                                         struct err *e);
/*
 * Opens a reader that continues after damage in `segment`: at the next checkpoint that is not damaged. Returns NULL if
 * there is none.
 */
struct browse_reader *browse_reader_behind(const struct browse_recording *of, const struct view *view, size_t segment,
                                           struct err *e);
void browse_reader_close(struct browse_reader *r); /* accepts NULL */

/*
 * Reads the next item of the recording. Output that it writes belongs to the segment that browse_reader_segment()
 * returns after the call. Before it returns BROWSE_END or BROWSE_FAILED, it writes the events that the pipeline has
 * held back.
 */
enum browse_got browse_reader_next(struct browse_reader *r, struct err *e);

size_t browse_reader_segment(const struct browse_reader *r);
size_t browse_reader_from(const struct browse_reader *r);     /* the segment at whose checkpoint the reader began */
uint64_t browse_reader_number(const struct browse_reader *r); /* event.number of the last event that was read */
/* Returns true if the reader can read on when the file grows. */
bool browse_reader_grows(const struct browse_reader *r);
uint64_t browse_reader_place(const struct browse_reader *r); /* offset of the last item in the file */

#endif

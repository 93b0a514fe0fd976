/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays a recording from any of its segments on.
 *
 * The checkpoints of a recording cut it into segments: segment 0 begins with the file, segment N with checkpoint N. An
 * event belongs to the segment in which a replay of the whole recording shows it, so a replay from the checkpoint of a
 * segment has the same events. Segments differ only in results: a result whose call is before the checkpoint has no
 * duration. Several recordings, and the runs that were appended to one, have no checkpoints that a reader can use, so
 * they have one segment, or a long last one.
 */
#ifndef ETRACE_BROWSE_READER_H
#define ETRACE_BROWSE_READER_H

#include "../ground/texts.h"
#include "../pipeline/pipeline.h"

struct browse_recording {
    struct texts paths;     /* borrowed */
    uint64_t *places;       /* offset of the checkpoint of segment N + 1; owned */
    size_t first, segments; /* the segments [first, segments) are browsed, at least one */
    uint64_t bytes;         /* of the file; 0: several files */
    bool grows;             /* the file is still being written, and `bytes` is the end of its last whole block */
    struct pipeline_options filter; /* conditions and window, without views; borrowed */
    struct look look;
};

struct browse_reader;

enum browse_got {
    BROWSE_MORE,
    BROWSE_NOTHING, /* nothing was read in time; try again */
    BROWSE_WAITS,   /* everything was read that has been written until now; try again when the file has grown */
    BROWSE_END,
    BROWSE_FAILED, /* the recording is damaged here; err is filled */
};

/*
 * Opens a reader that gives the output of the view from this segment on; NULL: there is no view. If the checkpoint of
 * the segment is damaged, begins at an earlier one and gives the same. Returns NULL, with an error, if a file cannot be
 * read.
 */
struct browse_reader *browse_reader_open(const struct browse_recording *of, const struct view *view, size_t segment,
                                         struct err *e);
/* Opens a reader behind damage: at the first checkpoint after this segment that is not damaged. NULL: there is none. */
struct browse_reader *browse_reader_behind(const struct browse_recording *of, const struct view *view, size_t segment,
                                           struct err *e);
void browse_reader_close(struct browse_reader *r); /* accepts NULL */

/*
 * Reads the next item of the recording. All output that comes meanwhile belongs to browse_reader_segment(). With
 * BROWSE_END and BROWSE_FAILED, the events that waited have come out, too.
 */
enum browse_got browse_reader_next(struct browse_reader *r, struct err *e);

size_t browse_reader_segment(const struct browse_reader *r);
size_t browse_reader_from(const struct browse_reader *r);     /* the segment at whose checkpoint the reader began */
uint64_t browse_reader_number(const struct browse_reader *r); /* event.number of the last event that came */
uint64_t browse_reader_begin(const struct browse_reader *r);  /* event.number of the last event before the segment */
bool browse_reader_grows(const struct browse_reader *r);      /* returns true if it can wait for more items */
uint64_t browse_reader_place(const struct browse_reader *r);  /* offset in the file of the last item */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds some consecutive lines of a recording in bounded memory: the lines [first, end) of a replay that began at a
 * segment (browse_reader.h). The window reads further lines at its end and drops lines at its beginning. For any other
 * lines, browse_window_load() drops all lines and begins a replay at another segment. Does not know the terminal.
 *
 * Each event is a line, with one exception: a result that comes soon after its call (within BROWSE_SOON events, in the
 * same segment) is on the line of the call. The lines therefore do not depend on where a replay begins.
 *
 * A spot identifies a line permanently: by its segment and its number in the segment. An index identifies a line of the
 * window until the next load.
 */
#ifndef ETRACE_BROWSE_WINDOW_H
#define ETRACE_BROWSE_WINDOW_H

#include "../views/event_rows.h"
#include "browse_reader.h"

#define BROWSE_SOON 1024

struct browse_spot {
    size_t segment;
    uint64_t line; /* number of the line in its segment, from 0 */
};

struct browse_line {
    struct event_row row; /* row of the event; `dur_ns` is the duration of the result if the line has both */
    struct browse_spot spot;
    uint64_t place;   /* offset in the file at which the event was read */
    const char *text; /* text of the event, row.len bytes */
    const char *more; /* text of the result if it is on this line; NULL: it is not */
    uint16_t more_len;
    uint8_t more_kind;
};

struct browse_window;

struct browse_window *browse_window_new(const struct browse_recording *of);
void browse_window_free(struct browse_window *w); /* accepts NULL */

/*
 * Drops all lines and begins to read at the segment of `from`. Keeps only the lines from `from` on. Returns false, with
 * an error, if a file cannot be read.
 */
bool browse_window_load(struct browse_window *w, struct browse_spot from, struct err *e);
/*
 * Must be called after the size, the segments or `grows` of the recording have changed. Returns true if reading
 * continues at the end of the window. Returns false if the reader has already taken the old end of the file for the end
 * of the recording; the window is then empty and must be loaded again.
 */
bool browse_window_grown(struct browse_window *w);
/*
 * Must be called after the conditions of the recording have changed: drops all lines, and the numbers of lines of all
 * segments.
 */
void browse_window_forget(struct browse_window *w);

enum browse_read {
    BROWSE_READ,
    BROWSE_IDLE, /* nothing was read in time; try again */
    BROWSE_FULL, /* there is no room unless the line `keep` is dropped */
    BROWSE_OVER, /* the window contains the last line of the file */
};

/*
 * Reads an item of the recording and adds its lines. May drop lines before the index `keep` to make room. If the
 * recording is damaged, adds a line about the damage and continues after it.
 */
enum browse_read browse_window_read(struct browse_window *w, uint64_t keep);

uint64_t browse_window_first(const struct browse_window *w);
uint64_t browse_window_end(const struct browse_window *w);
/* Returns the index of the first line that may still change because the result of its call may follow. */
uint64_t browse_window_settled(struct browse_window *w);
/* Returns true if the window has been read to the end of the file. */
bool browse_window_over(const struct browse_window *w);
const struct browse_line *browse_window_line(struct browse_window *w, uint64_t index);
/* Finds the index of the line at a spot. Returns false if the line is not in the window. */
bool browse_window_find(struct browse_window *w, struct browse_spot spot, uint64_t *ret);
/* Sets *ret to the number of lines of a segment. Returns false if the segment has never been read to its end. */
bool browse_window_count(const struct browse_window *w, size_t segment, uint64_t *ret);
/* Returns the segment that is being read; at the end of the recording, the number of segments. */
size_t browse_window_segment(const struct browse_window *w);
uint64_t browse_window_place(const struct browse_window *w); /* offset in the file up to which it was read */
/* Returns the first damage found in the file; its status is 0 if there is none. */
const struct err *browse_window_damage(const struct browse_window *w);

/* Appends the whole line as plain text, without the time of the event. */
void browse_line_text(const struct browse_line *l, struct buf *to);

#endif

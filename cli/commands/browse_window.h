/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds a part of the lines of a recording in bounded memory: the lines [first, end) of a replay that began at a
 * segment (browse_reader.h). It reads on at its end and drops lines at its beginning. Any other part needs another
 * replay: browse_window_load() forgets all lines and begins at another segment. Does not know the terminal.
 *
 * A line is an event, except that the result of a call is on the line of its call if it came soon after it: within
 * BROWSE_SOON events, and in the same segment. So which lines there are does not depend on where a replay began.
 *
 * A spot names a line for ever: its segment and its number in the segment. An index names a line of the window until
 * the next load.
 */
#ifndef ETRACE_BROWSE_WINDOW_H
#define ETRACE_BROWSE_WINDOW_H

#include "../views/event_rows.h"
#include "browse_reader.h"

#define BROWSE_SOON 1024

struct browse_spot {
    size_t segment;
    uint64_t line; /* 0, 1, … in the segment */
};

struct browse_line {
    struct event_row row; /* of the event; `dur_ns` is that of the result if the line has both */
    struct browse_spot spot;
    uint64_t place;   /* offset in the file at which the event was read */
    const char *text; /* row.len bytes */
    const char *more; /* the second part of the result that is on this line; NULL: none is */
    uint16_t more_len;
    uint8_t more_kind;
};

struct browse_window;

struct browse_window *browse_window_new(const struct browse_recording *of);
void browse_window_free(struct browse_window *w); /* accepts NULL */

/*
 * Forgets all lines, and begins to read at a segment. Keeps the lines from this spot on. Returns false, with an error,
 * if a file cannot be read.
 */
bool browse_window_load(struct browse_window *w, struct browse_spot from, struct err *e);
/*
 * Must be called after the extent of the recording has changed, or `grows`. If the window was read to the end of what
 * was written, it reads on there. Returns false if it cannot, because its reader takes the end of the file for the end
 * of the recording: then it has forgotten all lines, and must be loaded again.
 */
bool browse_window_grown(struct browse_window *w);
/* Forgets all lines and what is known of the segments, because the conditions of the recording have changed. */
void browse_window_forget(struct browse_window *w);

enum browse_read {
    BROWSE_READ,
    BROWSE_IDLE, /* nothing was read in time; try again */
    BROWSE_FULL, /* no room without dropping the line `keep` */
    BROWSE_OVER, /* the last line that was written is in the window */
};

/*
 * Reads an item of the recording, and adds its lines. Drops lines before the index `keep` if it needs their room. Where
 * the recording is damaged, a line says so, and the lines after it are those behind the damage.
 */
enum browse_read browse_window_read(struct browse_window *w, uint64_t keep);

uint64_t browse_window_first(const struct browse_window *w);
uint64_t browse_window_end(const struct browse_window *w);
/* Returns the index of the first line that may still change, because the result of its call may come soon. */
uint64_t browse_window_settled(struct browse_window *w);
/* Returns true if the window has been read up to the end of what was written. */
bool browse_window_over(const struct browse_window *w);
const struct browse_line *browse_window_line(struct browse_window *w, uint64_t index);
/* Finds a line by its spot. Returns false if it is not in the window. */
bool browse_window_find(struct browse_window *w, struct browse_spot spot, uint64_t *ret);
/* Sets *ret to the number of lines of a segment. Returns false until the segment has been read to its end once. */
bool browse_window_count(const struct browse_window *w, size_t segment, uint64_t *ret);
/* Returns the segment that is being read, or at the end of the recording the number of segments. */
size_t browse_window_segment(const struct browse_window *w);
uint64_t browse_window_place(const struct browse_window *w); /* the offset in the file up to which it was read */
/* Returns the first damage that was found in the file; empty: none. */
const struct err *browse_window_damage(const struct browse_window *w);

/* Appends a text without its colours. */
void browse_plain(struct buf *to, const char *at, size_t len);
/* Appends the whole line as plain text, without the time. */
void browse_line_text(const struct browse_line *l, struct buf *to);

#endif

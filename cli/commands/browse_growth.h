/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the file of `etrace browse` while another process or this one writes it: extends the recording by the new
 * blocks, and counts the events in them.
 */
#ifndef ETRACE_BROWSE_GROWTH_H
#define ETRACE_BROWSE_GROWTH_H

#include "../events/recgrow.h"
#include "browse_reader.h"

struct browse_growth {
    struct recgrow file;
    struct browse_recording *of;
    struct browse_recording counted; /* a copy of `of` without its conditions */
    struct browse_reader *counter;   /* reads the events that are added; NULL: the file does not grow */
    bool counts;                     /* the counter has not read all events yet */
    bool known;                      /* `seen` is set */
    /* event.number of the last event in the file, and of the last one that the user has seen */
    uint64_t events, seen;
};

/*
 * Opens the file of a recording and sets the extent of the recording (size and segments). The recording has one file,
 * and is borrowed. Returns false, with an error, if the file cannot be read.
 */
bool browse_growth_begin(struct browse_growth *g, struct browse_recording *of, struct err *e);
void browse_growth_end(struct browse_growth *g);

/* Checks whether the file has changed. If it returns RECGROW_MORE or RECGROW_ENDED, it has updated the extent. */
enum recgrow_news browse_growth_look(struct browse_growth *g);
/* Copies the extent to another copy of the same recording. */
void browse_growth_copy(const struct browse_growth *g, struct browse_recording *to);

/* Counts some of the events that were added. Returns true if there may be more to count. */
bool browse_growth_count(struct browse_growth *g);
/* Returns the number of events that were added since the last call with `seen` true. */
uint64_t browse_growth_new(struct browse_growth *g, bool seen);

#endif

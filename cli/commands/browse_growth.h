/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the file of `etrace browse` while it is being written: extends the recording by what has been added, and
 * counts the events that arrive.
 */
#ifndef ETRACE_BROWSE_GROWTH_H
#define ETRACE_BROWSE_GROWTH_H

#include "../events/recgrow.h"
#include "browse_reader.h"

struct browse_growth {
    struct recgrow file;
    struct browse_recording *of;
    struct browse_recording counted; /* `of` without conditions */
    struct browse_reader *counter;   /* reads the events that arrive; NULL: the file does not grow */
    bool counts;                     /* the counter has not read everything yet */
    bool known;                      /* `seen` is set */
    uint64_t events, seen;           /* event.number of the last event that was written, and that the user has seen */
};

/* Sets the extent of a recording of one file, which is borrowed. Returns false, with an error, if it cannot be read. */
bool browse_growth_begin(struct browse_growth *g, struct browse_recording *of, struct err *e);
void browse_growth_end(struct browse_growth *g);

/* Looks at the file. After RECGROW_MORE and RECGROW_ENDED the extent of the recording has changed. */
enum recgrow_news browse_growth_look(struct browse_growth *g);
/* Copies the extent to a recording that is a copy of this one. */
void browse_growth_copy(const struct browse_growth *g, struct browse_recording *to);

/* Counts some events that have arrived. Returns true if there may be more. */
bool browse_growth_count(struct browse_growth *g);
/* Returns the number of events that have arrived since the last call with `seen`. */
uint64_t browse_growth_new(struct browse_growth *g, bool seen);

#endif

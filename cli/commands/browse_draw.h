/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the lines of `etrace browse`. Every text is cut to the width of the terminal. */
#ifndef ETRACE_BROWSE_DRAW_H
#define ETRACE_BROWSE_DRAW_H

#include "../views/clock.h"
#include "browse_list.h"

struct browse_draw {
    unsigned columns;
    bool color;
    enum time_style time, of_day; /* of the lines; of a single time */
    bool begun;                   /* `begin` is the steady time of the first event */
    int64_t begin;
};

/* Begins a line of the screen, and erases what it has. Lines count from 1. */
void browse_draw_begin(struct buf *to, unsigned line);
/* Draws a text. `bold`: as a title. */
void browse_draw_text(const struct browse_draw *d, struct buf *to, struct str text, bool bold);
/* Draws the lines of the list from a line of the screen on. */
void browse_draw_list(const struct browse_draw *d, struct browse_list *l, unsigned line, struct buf *to);
/* Appends the lines of the list as lines of text, none of them as the chosen one. */
void browse_draw_plain(const struct browse_draw *d, struct browse_list *l, struct buf *to);
/* Appends the time of an event, and the date if there is room. */
void browse_draw_time(const struct browse_draw *d, const struct event_row *row, struct buf *to);
/* Appends a number with a comma before each group of three digits. */
void browse_draw_number(struct buf *to, uint64_t number);

#endif

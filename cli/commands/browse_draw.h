/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the lines of `etrace browse`. Cuts every text to the width of the terminal. */
#ifndef ETRACE_BROWSE_DRAW_H
#define ETRACE_BROWSE_DRAW_H

#include "../views/clock.h"
#include "browse_list.h"

struct browse_draw {
    unsigned columns;
    bool color;
    /* `time`: style of the times in the list; `of_day`: style of a time of day, TIME_UTC or TIME_LOCAL */
    enum time_style time, of_day;
    bool begun; /* `begin` is set */
    int64_t begin;
    struct regex *sought; /* marks the matches in the lines of the list; borrowed; NULL: marks nothing */
};

/* Moves to the start of a line of the screen and erases the line. The first line is 1. */
void browse_draw_begin(struct buf *to, unsigned line);
/* Draws a text; `bold` draws it as a title. */
void browse_draw_text(const struct browse_draw *d, struct buf *to, struct str text, bool bold);
/* Draws the lines of the list, beginning at line `line` of the screen. */
void browse_draw_list(const struct browse_draw *d, struct browse_list *l, unsigned line, struct buf *to);
/* Appends the visible lines of the list as plain lines of text, without marking the chosen one. */
void browse_draw_plain(const struct browse_draw *d, struct browse_list *l, struct buf *to);
/* Appends the time of an event, with the date if the screen is wide enough. */
void browse_draw_time(const struct browse_draw *d, const struct event_row *row, struct buf *to);
/* Appends a number with a comma before each group of three digits. */
void browse_draw_number(struct buf *to, uint64_t number);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The text that `etrace browse` scrolls: an open event with all its terms, or the help. */
#ifndef ETRACE_BROWSE_PAGE_H
#define ETRACE_BROWSE_PAGE_H

#include "../views/event_page.h"
#include "browse_draw.h"

#define BROWSE_PAGE_INDENT 17 /* of the lines after the first one of a wrapped text */

struct browse_page {
    struct buf text;  /* an event, or lines to wrap */
    bool terms;       /* the text has terms */
    struct buf lines; /* laid out for `columns` */
    unsigned columns, height;
    size_t count, top; /* lines; the first line of the screen */
    const char *title;
    /* An event is read in steps. */
    struct browse_recording of; /* without conditions, so that every open call is found */
    struct event_sought sought;
    struct browse_reader *reader; /* NULL: the text is complete */
    struct view view;
};

void browse_page_text(struct browse_page *p, const char *title, const char *text);
/*
 * Begins to read an event for a view of one event (look.sought). Returns false, with an error, if a file cannot be
 * read.
 */
bool browse_page_event(struct browse_page *p, const char *title, const struct browse_recording *of,
                       const struct browse_line *line, const struct sink_type *view, struct err *e);
/* Reads a little of an event. Returns true if there is more to read. */
bool browse_page_step(struct browse_page *p);
void browse_page_close(struct browse_page *p); /* stops to read; keeps the memory for the next text */
void browse_page_release(struct browse_page *p);

void browse_page_scroll(struct browse_page *p, int64_t lines);
/* Draws the text from a line of the screen on. */
void browse_page_draw(struct browse_page *p, const struct browse_draw *d, unsigned line, unsigned height,
                      struct buf *to);

#endif

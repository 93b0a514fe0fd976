/* SPDX-License-Identifier: Apache-2.0 */
/* Shows a text that the user of `etrace browse` can scroll: one event with all its terms, or the help. */
#ifndef ETRACE_BROWSE_PAGE_H
#define ETRACE_BROWSE_PAGE_H

#include "../views/event_again.h"
#include "../views/event_page.h"
#include "browse_draw.h"

#define BROWSE_PAGE_INDENT 17 /* columns by which the further lines of a wrapped text are indented */

struct browse_page {
    struct buf text;  /* the text as it was written: an event, or lines to wrap */
    bool terms;       /* lay out `text` as terms, instead of wrapping its lines */
    struct buf lines; /* `text` laid out for `columns` */
    unsigned columns, height;
    size_t count, top; /* number of lines in `lines`, and index of the first one on the screen */
    const char *title;
    /* The members below read an event in steps. */
    struct browse_recording of; /* the recording without conditions, so that the reader finds every open call */
    struct event_sought sought;
    struct again again;           /* filled by the view event_again */
    struct browse_reader *reader; /* NULL: the text is complete */
    struct view view;
};

void browse_page_text(struct browse_page *p, const char *title, const char *text);
/*
 * Begins to read an event for `view`, which shows a single event (look.sought). Returns false, with an error, if a file
 * cannot be read.
 */
bool browse_page_event(struct browse_page *p, const char *title, const struct browse_recording *of,
                       const struct browse_line *line, const struct sink_type *view, struct err *e);
/* Reads a small part of the recording. Returns true if there is more to read. */
bool browse_page_step(struct browse_page *p);
void browse_page_close(struct browse_page *p); /* stops reading; keeps the memory for the next text */
void browse_page_release(struct browse_page *p);

void browse_page_scroll(struct browse_page *p, int64_t lines);
/* Draws `height` lines of the text, beginning at line `line` of the screen. */
void browse_page_draw(struct browse_page *p, const struct browse_draw *d, unsigned line, unsigned height,
                      struct buf *to);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Colours text. Views name the kind of a piece of text; only paint.c knows the escape codes. Every coloured piece ends
 * before the next piece and before the end of the line.
 *
 * The colours are those of the terminal. Blue is hard to read on a black terminal of default colours, so nothing is
 * blue. Yellow is hard to read on a white one, and dim text on Solarized, so these only mark text that the reader does
 * not need, or recognises by its place.
 */
#ifndef ETRACE_PAINT_H
#define ETRACE_PAINT_H

#include "../ground/buf.h"

enum paint_what {
    PAINT_NONE,
    PAINT_TIME,
    PAINT_NODE,
    PAINT_PID,
    PAINT_NAME,
    PAINT_KIND,
    PAINT_RESULT,  /* the word for a result */
    PAINT_MESSAGE, /* the word for a message */
    PAINT_FAILURE, /* the word for an event that reports a failure */
    PAINT_FUN,
    PAINT_DURATION,
    PAINT_ORIGIN,  /* caller, file and line */
    PAINT_TITLE,   /* the title of a column */
    PAINT_COMMAND, /* a command to paste */
    PAINT_LOSS,
    PAINT_WHATS,
};

struct paint {
    bool on;
};

void paint_code(struct buf *to, enum paint_what what);
void paint_plain(struct buf *to);

static inline void paint_begin(const struct paint *p, struct buf *to, enum paint_what what)
{
    if (unlikely(p->on))
        paint_code(to, what);
}

static inline void paint_end(const struct paint *p, struct buf *to)
{
    if (unlikely(p->on))
        paint_plain(to);
}

static inline void paint_str(const struct paint *p, struct buf *to, enum paint_what what, struct str text)
{
    paint_begin(p, to, what);
    buf_str(to, text);
    paint_end(p, to);
}

#endif

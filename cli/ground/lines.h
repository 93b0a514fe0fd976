/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts bytes that arrive in pieces into lines of bounded length. */
#ifndef ETRACE_LINES_H
#define ETRACE_LINES_H

#include "buf.h"

struct lines {
    struct buf line; /* the line so far, without its newline */
    bool too_long;   /* the line is longer than allowed, and only its beginning is in `line` */
};

/* Takes the bytes of one line from *bytes, or all if it has no end there. Returns true at the end of the line. */
bool lines_take(struct lines *l, struct str *bytes, size_t most);
void lines_next(struct lines *l); /* begins the next line */
void lines_release(struct lines *l);

#endif
